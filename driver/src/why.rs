//! `tilec why`: the decisions after a line, an element, a register or a barrier, and what would change them.
//!
//! Nothing is decided here a second time. A pass shows what it did by the lines that it changed, and says why in its remarks. The emitter says in its report
//! what became of a statement. What a pass has not done it says with the missing premise ([`tilec_ir::missed_paths::MissedPath`]), which `require` reads too.

mod advice;
mod answer;
mod by_parameters;
mod chain;
mod channel_slots;
mod costs;
mod element_types;
mod faster;
mod figures;
mod larger_tiles;
mod launches;
mod loss;
mod made;
mod masked;
mod moved;
mod not;
mod numbers;
mod operands;
mod overview;
mod plain;
mod premise;
mod programs;
mod question;
mod road_end;
mod said;
mod scheduled;
mod search;
mod slices;
mod source_changes;
mod steps;
mod tensor_orders;
mod through_buffer;
mod trials;
mod tried;
mod warp_tiles;
mod ways_out;
mod window_lines;

pub use answer::{Answer, Decision, Part, SCHEMA, Says, Unanswered};
pub use question::Question;

use crate::compile::{CompileOptions, Diagnostics, machine_code};
use crate::xray;
use answer::Known;
use programs::Trials;
use tilec_ir::diag::Severity;

/// Compiles `source` and answers.
///
/// # Errors
/// The program does not compile, an assembler fails, or there is nothing of what is asked about.
pub fn why(source: &str, options: &CompileOptions, question: &Question) -> Result<Answer, Unanswered> {
    let mut program = xray::compiled(source, options).map_err(|d| first_of(question, options, d))?;
    if question.needs_assembler() {
        machine_code::measure(&mut program)?;
    }
    machine_code::show_demands(&mut program)?;
    let machine = if question.needs_machine() { machine_code::by_ptx_line(&program)? } else { None };
    let shown = xray::of(&program, machine.as_ref());
    let known = Known { program: &program, shown: &shown, options, trials: Trials::new(source, options) };
    let answered = match question {
        Question::Overview => Ok(overview::overview(&known)),
        Question::Line { column, line } => chain::of_line(&known, column, *line),
        Question::Element(element) => figures::element(&known, element),
        Question::Register => Ok(figures::register(&known)),
        Question::Barrier => Ok(figures::barrier(&known)),
        Question::Not(what) => Ok(not::not(&known, *what)),
    };
    let (about, mut parts) = answered.map_err(Unanswered::Asked)?;
    parts.extend(chain::broken(&known));
    Ok(Answer { schema: SCHEMA, question: question.to_string(), about, parts })
}

/// Errors, as an answer to what is asked: they come before every premise of it.
fn first_of(question: &Question, options: &CompileOptions, mut d: Diagnostics) -> Diagnostics {
    if let (Question::Not(what), Some(first)) = (question, d.list.iter_mut().find(|d| d.severity == Severity::Error)) {
        first.notes.push(format!(
            "`{what}` is not judged, because the program does not compile for {}",
            options.target.name()
        ));
    }
    d
}

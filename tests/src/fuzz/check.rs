//! What must hold of every compilation.
//!
//! * It neither panics nor takes long, and what it writes is bounded.
//! * A refusal has at least one error; every error has a place inside the source, a code of the table, and a note.
//! * What compiles passes the legality check of PTX: that it does not is our error, not the user's.
//! * A program that is `meant` to compile computes, after the last pass, what it computes as written; the last text
//!   compiles to the same PTX.
//! * So does its PTX on the simulator, with the passes of the input and with no optional one.

use super::failure::{Failure, failure, guarded};
use super::input::Input;
use super::time::long;
use super::tried;
use crate::kinds::passes::feed_in_again;
use crate::kinds::text::round_trip;
use crate::oracle::{self, Problem};
use crate::problem::{self, Random, Tensor};
use crate::simulated::Executable;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tilec::{Compiled, Diagnostics};
use tilec_ir::codes;
use tilec_ir::diag::Severity;

/// How long an input may take to compile.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 700 });
/// Bytes of PTX.
const OUTPUT: usize = 16 << 20;

/// CPU time of this thread, if the system reports it: other load on the machine does not count.
fn computed() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Checks an input; returns the outcome as a word.
pub(super) fn check(input: &Input, random: &mut Random) -> Result<&'static str, Failure> {
    let compile = || {
        let (begin, computed) = (Instant::now(), computed());
        let result = guarded(|| tilec::compile(&input.text, &input.options));
        (computed.zip(self::computed()).map_or_else(|| begin.elapsed(), |(a, b)| b.saturating_sub(a)), result)
    };
    let (mut took, result) = compile();
    // Other processes take time too.
    for _ in 0..2 {
        if took > TIME {
            took = took.min(compile().0);
        }
    }
    let result = result?;
    if took > TIME {
        return Err(failure(format!("slow: {}", result.is_ok()), format!("compiling takes {took:?}")));
    }
    match result {
        Ok(done) => accepted(input, &done, random),
        Err(refusal) => {
            refused(&input.text, &refusal)?;
            if input.meant
                && let Some(gap) = refusal.list.iter().find(|d| d.code == codes::NOT_LOWERED)
            {
                return Err(failure(format!("a gap: {}", gap.message), refusal.to_string()));
            }
            if input.meant { Ok(refusal_code(&refusal)) } else { Ok("refused") }
        }
    }
}

fn refusal_code(refusal: &Diagnostics) -> &'static str {
    refusal.list.iter().find(|d| d.severity == Severity::Error).map_or("refused", |d| d.code.0)
}

fn refused(text: &str, refusal: &Diagnostics) -> Result<(), Failure> {
    let drawn = guarded(|| refusal.to_string())?;
    if refusal.errors == 0 || drawn.len() > OUTPUT {
        return Err(failure("refusal without an error", drawn));
    }
    for d in refusal.list.iter().filter(|d| d.severity == Severity::Error) {
        let wrong = if text.get(d.span.start as usize..d.span.end as usize).is_none() || d.span.is_none() {
            "no place"
        } else if !codes::ALL.iter().any(|(code, ..)| *code == d.code) {
            "no stable code"
        } else if d.notes.is_empty() && std::env::var("TILEC_FUZZ_NOTES").is_ok() {
            "no note"
        } else if d.code == codes::ILLEGAL_PTX {
            "illegal PTX"
        } else {
            continue;
        };
        let message: String = d.message.split('`').step_by(2).collect();
        let message: String = message.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
        return Err(failure(format!("{wrong}: {}: {message}", d.code), drawn));
    }
    Ok(())
}

fn accepted(input: &Input, done: &Compiled, random: &mut Random) -> Result<&'static str, Failure> {
    if done.ptx.len() > OUTPUT {
        return Err(failure("huge output", format!("{} bytes of PTX", done.ptx.len())));
    }
    let launch = guarded(|| (done.launch_json(), done.report().to_json(), done.diagnostics.len()))?;
    if launch.0.len() > OUTPUT || launch.1.len() > OUTPUT {
        return Err(failure("huge report", format!("{} and {} bytes", launch.0.len(), launch.1.len())));
    }
    let text = done.kernels.iter().map(|k| tilec_ir::print::print(&k.tile.kernel)).collect::<Vec<_>>().join("\n");
    if input.meant || random.below(8) == 0 {
        guarded(|| round_trip(&text, oracle::parse))?.map_err(|e| failure("the last text does not round-trip", e))?;
        guarded(|| feed_in_again("barriers", &text, &done.ptx, &input.options))?.map_err(|e| {
            let first: String = e.lines().take(4).filter(|l| !l.contains("---")).collect();
            failure(format!("the last text is another program: {}", first.split('`').step_by(2).collect::<String>()), e)
        })?;
    }
    if input.tried {
        let outcome = tried::check(input, done, random)?;
        return assembled(input, done, random).map(|word| if word == "compiled" { outcome } else { word });
    }
    if !input.meant {
        return Ok("compiled");
    }
    // Operands that are copied first have kernels of their own.
    let [kernel] = &done.kernels[..] else { return Ok("compiled, several kernels") };
    let problem =
        guarded(|| Problem::new(&kernel.tile.specialized, &input.run, false))?.map_err(|e| failure("no problem", e))?;
    let source = kernel.tile.source_kernel.as_ref().expect("one kernel means something by itself");
    let before = guarded(|| problem.interpret(&source.kernel, &source.parameters))?;
    let after = guarded(|| problem.interpret(&kernel.tile.kernel, &BTreeMap::new()))?;
    match (before, after) {
        // A program without a meaning may compile to anything.
        (Err(e), _) if e.contains("[E0704]") || e.contains("[E0705]") => Ok("compiled, undefined"),
        (Err(e), _) => Err(failure(format!("the source: {}", &e[..12.min(e.len())]), e)),
        (Ok(_), Err(e)) => Err(failure(format!("the end: {}", &e[..12.min(e.len())]), format!("{e}\n{text}"))),
        (Ok(before), Ok(after)) => match problem::same(&before, &after) {
            Ok(()) => {
                let simulated = simulated(input, done, &problem, &before, random)?;
                assembled(input, done, random).map(|outcome| if outcome == "compiled" { simulated } else { outcome })
            }
            Err(e) => Err(failure("another result", format!("{e}\n{text}"))),
        },
    }
}

/// Multiply-adds, or elements moved, up to which a program is simulated.
const SIMULATED: i64 = 300_000;

/// Runs the PTX on the simulator, launched from the contract.
fn simulated(
    input: &Input,
    done: &Compiled,
    problem: &Problem,
    after: &[Tensor],
    random: &mut Random,
) -> Result<&'static str, Failure> {
    let work: f64 = ["M", "N", "K", "L"].iter().filter_map(|n| input.run.value(n)).product();
    if work > SIMULATED as f64 {
        return Ok("compiled");
    }
    let run = |label: &str, done: &Compiled| -> Result<&'static str, Failure> {
        let wrong = |e: String| {
            let first = e.lines().next().unwrap_or("").split('`').step_by(2).collect::<String>();
            let class: String = first.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
            failure(format!("simulated {label}: {class}"), format!("{e}\n{}", done.ptx))
        };
        let result = guarded(|| match Executable::new("fuzz", done)? {
            Some(executable) => executable.check(&input.run, &problem.tensors, after, None).map(|()| "simulated"),
            None => Ok("compiled"),
        })?;
        match result {
            // The results of such a case depend on the order of additions.
            Err(e) if e.contains("the case is not exact") => Ok("compiled, inexact"),
            Err(e) if e.contains("does not hold") => Ok("compiled, not admitted"),
            result => result.map_err(wrong),
        }
    };
    let outcome = run("as compiled", done)?;
    if outcome == "simulated" && random.below(3) == 0 {
        let mut options = input.options.clone();
        crate::options::disable_all(&mut options);
        match guarded(|| tilec::compile(&input.text, &options))? {
            Ok(plain) => run("without passes", &plain)?,
            Err(refusal) => return Ok(refusal_code(&refusal)),
        };
    }
    Ok(outcome)
}

/// A sample goes to the assembler, in a long run.
fn assembled(input: &Input, done: &Compiled, random: &mut Random) -> Result<&'static str, Failure> {
    if long().is_none() || random.below(12) != 0 {
        return Ok("compiled");
    }
    match crate::kinds::assembled::assemble("fuzz", &done.ptx, input.options.target) {
        Ok(_) => Ok("assembled"),
        Err(e) => Err(failure(format!("ptxas: {}", e.split(':').next_back().unwrap_or("")), e)),
    }
}

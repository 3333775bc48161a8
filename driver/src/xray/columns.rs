//! The program in all its forms, line by line, with the links between them.
//!
//! Every line of a program after a pass, and every instruction of PTX, has a *place*: the lines of the source that its
//! statement came from. A line of the last program and an instruction have a *statement* next to them: the same number is the same
//! statement. An instruction of the machine code has the PTX line that it came from.

use super::diff;
use super::machine::Machine;
use super::remark::Remark;
use crate::compile::machine_code::ByLine;
use crate::compile::source_lines::Places;
use crate::compile::{Compiled, Place, explain};
use crate::console::render::SourceFile;
use serde::Serialize;
use std::collections::BTreeMap;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_passes::analysis::uses::{all_stmts, mentions};

/// The program in all its forms.
#[derive(Clone, Debug, Serialize)]
pub struct Columns {
    /// The lines of the source.
    pub source: Vec<String>,
    /// Places: the first and the last line of the source, from 1.
    pub places: Vec<(usize, usize)>,
    /// The program after each pass, in order.
    pub stages: Vec<Stage>,
    /// The lines of the PTX.
    pub ptx: Vec<String>,
    /// Of each line of the PTX its place, by number; none of what is no instruction, or of nothing in the source.
    pub ptx_places: Vec<Option<usize>>,
    /// Of each line of the PTX its statement in the program after the last pass.
    pub ptx_statements: Vec<Option<usize>>,
    /// Of the places of declarations of buffers and channels, by number, the statements of the program after the last pass that work with them. A declaration
    /// has no instruction of its own: these are what came of it.
    pub buffers: Vec<(usize, Vec<usize>)>,
    /// The machine code; none: there are no tools for it where the page was made.
    pub machine: Option<Machine>,
    /// Messages about the program that are not of passes.
    pub remarks: Vec<Remark>,
}

/// The program after a pass.
#[derive(Clone, Debug, Serialize)]
pub struct Stage {
    /// The pass.
    pub pass: &'static str,
    /// What it does.
    pub about: String,
    /// The lines; none: they are those of the stage in front.
    pub text: Option<Vec<String>>,
    /// Of each line its place, by number; none: nothing in the source.
    pub places: Vec<Option<usize>>,
    /// Of each line its statement; only of the last stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<Option<usize>>,
    /// The lines that the pass changed or added, from 1.
    pub changed: Vec<usize>,
    /// The lines that are no more, and the line, from 1, in front of which each stood.
    pub removed: Vec<(usize, String)>,
    /// What the pass says.
    pub remarks: Vec<Remark>,
}

/// Numbers for places and statements.
struct Numbers<'a> {
    source: &'a SourceFile,
    places: Vec<(usize, usize)>,
    known: BTreeMap<(usize, usize), usize>,
    statements: BTreeMap<(usize, Stmt), usize>,
    /// Where declarations of kernels end that begin at a byte. Passes drop parts of them; they stand for the whole all the same.
    declarations: BTreeMap<u32, u32>,
}

impl<'a> Numbers<'a> {
    fn new(program: &'a Compiled) -> Numbers<'a> {
        let mut declarations = BTreeMap::new();
        let kernels = program.kernels.iter().flat_map(|k| k.tile.places.iter().flatten());
        for place in program.places.iter().flatten().chain(kernels).filter(|p| p.stmt.is_none()) {
            let end = declarations.entry(place.span.start).or_insert(0);
            *end = place.span.end.max(*end);
        }
        let (places, known) = (Vec::new(), BTreeMap::new());
        Numbers { source: &program.source, places, known, statements: BTreeMap::new(), declarations }
    }

    fn place(&mut self, place: Place) -> Option<usize> {
        let mut span = place.span;
        if span.is_none() {
            return None;
        }
        if place.stmt.is_none() {
            span.end = self.declarations.get(&span.start).map_or(span.end, |&end| end.max(span.end));
        }
        // The end of a span is one past it, and may have spaces and line ends in front.
        let start = span.start as usize;
        let text = self.source.text().get(start..span.end as usize).unwrap_or("");
        let lines = (
            self.source.position(start).line,
            self.source.position(start + text.trim_end().len().saturating_sub(1)).line,
        );
        let next = self.places.len();
        let number = *self.known.entry(lines).or_insert(next);
        if number == next {
            self.places.push(lines);
        }
        Some(number)
    }

    fn statement(&mut self, kernel: usize, stmt: Option<Stmt>) -> Option<usize> {
        let next = self.statements.len();
        Some(*self.statements.entry((kernel, stmt?)).or_insert(next))
    }
}

/// A text with the places of its lines, and the kernel of each.
type Text = (String, Vec<(usize, Place)>);

const NOWHERE: Place = Place { stmt: None, span: Span { start: 0, end: 0 } };

impl Columns {
    /// The columns of a program that was compiled with its texts and places kept.
    pub(super) fn new(program: &Compiled, machine: Option<&ByLine>) -> Columns {
        let source = &program.source;
        let mut numbers = Numbers::new(program);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let stages = stages(program, &mut numbers);
        let ptx = lines(&program.ptx);
        let (mut ptx_places, mut ptx_statements) = (vec![None; ptx.len()], vec![None; ptx.len()]);
        let of_kernels: Vec<Places<'_>> = program.kernels.iter().map(|k| Places::new(&k.tile.kernel)).collect();
        for inst in &program.ptx_lines {
            let (at, function) = (inst.line as usize - 1, inst.function as usize);
            ptx_places[at] = numbers.place(of_kernels[function].of_statement(inst.origin));
            ptx_statements[at] = numbers.statement(function, inst.origin);
        }
        let buffers = buffers(program, &of_kernels, &mut numbers);
        let passes = explain::pass_names();
        let others = program.diagnostics.iter().filter(|d| d.kind.is_none_or(|kind| !passes.contains(&kind)));
        Columns {
            source: lines(source.text()),
            stages,
            ptx,
            ptx_places,
            ptx_statements,
            buffers,
            machine: machine.map(|code| Machine::new(code, source)),
            remarks: others.map(|d| Remark::new(d, source)).collect(),
            places: numbers.places,
        }
    }
}

/// The places of declarations of shared memory, and the statements that work with what is declared.
fn buffers(program: &Compiled, of_kernels: &[Places<'_>], numbers: &mut Numbers<'_>) -> Vec<(usize, Vec<usize>)> {
    let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (function, (kernel, places)) in program.kernels.iter().zip(of_kernels).enumerate() {
        let k = &kernel.tile.kernel;
        let all = all_stmts(k, k.body);
        for &s in &all {
            let StmtData::Alloc { value, .. } = k.stmts[s] else { continue };
            let Some(place) = numbers.place(places.of_statement(Some(s))) else { continue };
            let users = all.iter().copied().filter(|&user| user != s && works_with(k, user, value));
            let users: Vec<usize> = users.filter_map(|user| numbers.statement(function, Some(user))).collect();
            out.entry(place).or_default().extend(users);
        }
    }
    out.into_iter().collect()
}

/// Whether a statement names a buffer or a channel, blocks of it apart.
fn works_with(k: &Kernel, s: Stmt, v: Value) -> bool {
    let named = match &k.stmts[s] {
        StmtData::Channel { channels, .. } => channels.contains(&v),
        StmtData::Await { value, .. } => *value == v,
        _ => false,
    };
    named || k.stmts[s].exprs().into_iter().any(|e| mentions(k, e, v))
}

/// The program after each pass.
fn stages(program: &Compiled, numbers: &mut Numbers<'_>) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    let (mut before, mut before_places) = (Vec::<String>::new(), Vec::new());
    let passes = explain::pass_names();
    let last = passes.last().copied();
    for &pass in &passes {
        let Some((text, own)) = text_after(program, pass) else { continue };
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let places: Vec<Option<usize>> = own.iter().map(|(_, place)| numbers.place(*place)).collect();
        assert_eq!(lines.len(), places.len(), "bug: lines without places after `{pass}`");
        let changes = match stages.is_empty() {
            true => diff::Changes::default(),
            false => diff::changes(&before, &lines),
        };
        let same = lines == before && places == before_places;
        let statements = match Some(pass) == last {
            true => own.iter().map(|(kernel, place)| numbers.statement(*kernel, place.stmt)).collect(),
            false => Vec::new(),
        };
        let said = program.diagnostics.iter().filter(|d| d.kind == Some(pass));
        stages.push(Stage {
            pass,
            about: explain::about_pass(pass).to_owned(),
            text: (!same).then(|| lines.clone()),
            places: if same { Vec::new() } else { places.clone() },
            statements,
            changed: changes.added.iter().map(|i| i + 1).collect(),
            removed: changes.removed.iter().map(|&(i, at)| (at + 1, before[i].clone())).collect(),
            remarks: said.map(|d| Remark::new(d, numbers.source)).collect(),
        });
        (before, before_places) = (lines, places);
    }
    stages
}

/// The program after a pass, kernels with an empty line between them; `None`: the text was not kept.
fn text_after(program: &Compiled, pass: &str) -> Option<Text> {
    if let Some(at) = program.texts.iter().position(|(p, _)| *p == pass) {
        let places = program.places[at].iter().map(|&place| (0, place)).collect();
        return Some((program.texts[at].1.clone(), places));
    }
    let (mut text, mut places) = (String::new(), Vec::new());
    for (number, kernel) in program.kernels.iter().enumerate() {
        let at = kernel.tile.texts.iter().position(|(p, _)| *p == pass)?;
        if number > 0 {
            text.push('\n');
            places.push((number, NOWHERE));
        }
        text.push_str(&kernel.tile.texts[at].1);
        places.extend(kernel.tile.places[at].iter().map(|&place| (number, place)));
    }
    for sequence in &program.sequences {
        text.push('\n');
        text.push_str(sequence);
    }
    places.resize(text.lines().count(), (0, NOWHERE));
    Some((text, places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::CompileOptions;
    use tilec_ir::target::Target;

    /// What a declaration of shared memory stands for are the instructions that fill and read it.
    #[test]
    fn declarations_of_shared_memory_have_instructions() {
        for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
            let options = CompileOptions { target, ..CompileOptions::default() };
            let source = include_str!("../../../examples/gemm.tile");
            let program = crate::xray::compiled(source, &options).expect("it compiles");
            let c = Columns::new(&program, None);
            let declared = c.source.iter().position(|l| l.contains("let a = smem")).expect("a buffer") + 1;
            let users = c.buffers.iter().filter(|(place, _)| c.places[*place] == (declared, declared));
            let users: Vec<usize> = users.flat_map(|(_, statements)| statements.clone()).collect();
            let ptx = c.ptx.iter().zip(&c.ptx_statements).filter(|(_, s)| s.is_some_and(|s| users.contains(&s)));
            let ptx: Vec<&String> = ptx.map(|(line, _)| line).collect();
            assert!(ptx.iter().any(|l| l.contains("shared")), "{target:?}: {users:?}");
        }
    }
}

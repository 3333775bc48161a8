//! Tries mutants: a kernel, one statement of it changed, on all its problems until something notices.

use super::edit::Unit;
use super::liveness;
use super::operators::{OPERATORS, Operator};
use super::slice::Slices;
use super::subject::{MODES, Subject};
use super::text::{self, Statement};
use crate::simulated::{Executable, Failure};
use std::collections::BTreeMap;
use std::fmt;
use tilec_sim::{Options, Program, ReportKind};

/// One changed kernel.
pub struct Mutant {
    /// The position and the change; stable while the statement and equal ones before it are unchanged.
    pub name: Name,
    /// The changed text.
    pub ptx: String,
}

/// Names a mutant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The kernel.
    pub kernel: String,
    /// Operator and variant: `barrier/delete`.
    pub change: String,
    /// Among the statements of this kernel that look the same, from 0.
    pub index: usize,
    /// The statement without register numbers; in a comparison or a logical operation with what its operands are computed by.
    pub statement: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {} | {} | {}", self.kernel, self.change, self.index, self.statement)
    }
}

/// The check that killed a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Killer {
    /// The simulator does not accept the text.
    Refused,
    /// A report of the simulator.
    Report(ReportKind),
    /// Another result, or a write where nothing may be written.
    Result,
}

/// A kernel ready to be mutated: it runs unchanged on all problems, in all modes that they are tried in.
pub struct Bench {
    /// The kernel.
    pub subject: Subject,
    /// All its mutants.
    pub mutants: Vec<Mutant>,
    /// Warp instructions that a mutant may execute: several times what the kernel needs.
    fuel: Vec<u64>,
}

impl Bench {
    /// Runs the kernel itself, and lists its mutants.
    ///
    /// # Errors
    /// The kernel is refused, reported, or wrong: a false report, or a kernel that is no test.
    pub fn new(subject: Subject) -> Result<Bench, String> {
        let wrong = |what: &str| format!("{} unchanged: {what}", subject.name);
        let program = Program::parse(&subject.ptx).map_err(|e| wrong(&e.to_string()))?;
        let executable = Executable::of(program, subject.contract.clone());
        let mut fuel = Vec::new();
        for case in &subject.cases {
            let mut most = 0;
            // In the modes in which mutants run on it: the others would say nothing about a mutant.
            for (i, &(landing, order)) in MODES.iter().enumerate().filter(|(i, _)| case.mode.is_none_or(|m| m == *i)) {
                let options =
                    Options { landing, order, seed: case.run.seed + i as u64, fuel: 1 << 24, ..Options::default() };
                let counters = executable
                    .launch(&case.run, &case.before, &case.after, &options)
                    .map_err(|e| wrong(&format!("{} ({landing:?}, {order:?}): {e}", case.label)))?;
                most = most.max(counters.instructions);
            }
            fuel.push(most * 2 + 1000);
        }
        let mutants = mutants(&subject);
        Ok(Bench { subject, mutants, fuel })
    }

    /// The check that kills the mutant, if any.
    ///
    /// # Errors
    /// If the launch itself is impossible.
    pub fn try_mutant(&self, mutant: &Mutant) -> Result<Option<Killer>, String> {
        let Ok(program) = Program::parse(&mutant.ptx) else { return Ok(Some(Killer::Refused)) };
        let executable = Executable::of(program, self.subject.contract.clone());
        for (i, &(landing, order)) in MODES.iter().enumerate() {
            for (case, &fuel) in self.subject.cases.iter().zip(&self.fuel) {
                if case.mode.is_some_and(|m| m != i) {
                    continue;
                }
                let options = Options { landing, order, seed: case.run.seed + i as u64, fuel, ..Options::default() };
                match executable.launch(&case.run, &case.before, &case.after, &options) {
                    Ok(_) => {}
                    Err(Failure::Report(report)) => return Ok(Some(Killer::Report(report.kind))),
                    Err(Failure::Memory(_)) => return Ok(Some(Killer::Result)),
                    Err(Failure::Launch(e)) => return Err(format!("{}: {e}", mutant.name)),
                }
            }
        }
        Ok(None)
    }
}

/// All mutants of a kernel, in the order of its text.
pub(super) fn mutants(subject: &Subject) -> Vec<Mutant> {
    let body = text::body(&subject.ptx);
    let statements = &body.statements;
    let [x, y, z] = subject.contract.block;
    let partial = |s: &Statement| {
        matches!(s.root(), "bar" | "barrier") && !s.has("warp") && (s.has("arrive") || s.operands.len() > 1)
    };
    let unit = Unit {
        slices: Slices::new(statements),
        threads: x * y * z,
        blocks: subject.contract.cluster.iter().product(),
        partial_barriers: statements.iter().any(partial),
    };
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut all = Vec::new();
    let needed = liveness::needed(&body);
    let meaning = Meaning::new(statements);
    for s in statements.iter().zip(needed).filter(|(_, needed)| *needed).map(|(s, _)| s) {
        for Operator { name, edits, .. } in OPERATORS {
            for edit in edits(&unit, s) {
                let change = format!("{name}/{}", edit.variant);
                let statement = meaning.of(s);
                let index = seen.entry((change.clone(), statement.clone())).or_default();
                let name = Name { kernel: subject.name.clone(), change, index: *index, statement };
                *index += 1;
                let ptx = format!("{}{}{}", &subject.ptx[..s.range.start], edit.text, &subject.ptx[s.range.end..]);
                all.push(Mutant { name, ptx });
            }
        }
    }
    all
}

/// Names statements by what they mean rather than by registers, so that names last.
struct Meaning<'a> {
    /// The statement that writes a register, where there is only one.
    definitions: BTreeMap<&'a str, Option<&'a Statement>>,
}

impl<'a> Meaning<'a> {
    fn new(statements: &'a [Statement]) -> Meaning<'a> {
        let mut definitions = BTreeMap::new();
        for s in statements {
            for register in s.writes() {
                definitions.entry(register).and_modify(|d| *d = None).or_insert(Some(s));
            }
        }
        Meaning { definitions }
    }

    fn of(&self, s: &Statement) -> String {
        let depth = match s.root() {
            "setp" | "min" | "max" => 1,
            "and" | "or" if s.has("pred") => 2,
            _ => return s.shape(),
        };
        let mut expanded = s.clone();
        for operand in expanded.operands.iter_mut().skip(1) {
            *operand = self.expand(operand, depth);
        }
        expanded.shape()
    }

    /// An operand that is one register, by its definition: `(add.s32 %r, 8)`, or the name of a parameter.
    fn expand(&self, operand: &str, depth: usize) -> String {
        let Some(Some(s)) = self.definitions.get(operand).filter(|_| depth > 0) else { return operand.to_owned() };
        if s.has("param") {
            return s.operands[1].clone();
        }
        let sources: Vec<String> = s.operands.iter().skip(1).map(|o| self.expand(o, depth - 1)).collect();
        format!("({} {})", s.opcode, sources.join(", "))
    }
}

//! The kernels whose mutants are tried, each with problems that show what it does.
//!
//! Most are compiled here from the examples and the test files, for several targets and decisions; some are PTX of other
//! origin (`stored`). Problems are ragged, with several blocks, at least three steps
//! of the main loop in one and a single step in another, gaps between rows, and different numbers everywhere.

use super::rows::{ROWS, Row};
use super::stored::STORED;
use super::subject::{Case, Subject, expanded, poison_outputs};
use crate::oracle::{self, Problem};
use crate::problem::{Run, Tensor};
use crate::{options, test_file};
use std::fs;
use tilec::contract::Contract;
use tilec_ir::types::Elem;

/// Names of all kernels, without building them.
pub fn names() -> Vec<&'static str> {
    ROWS.iter().map(|r| r.name).chain(STORED.iter().map(|s| s.name)).collect()
}

/// Builds the kernel called `name`.
///
/// # Errors
/// There is none, it does not compile, or its meaning cannot be computed.
pub fn subject(name: &str) -> Result<Subject, String> {
    build(name, true)
}

/// The kernel called `name` without its problems, whose results take time: to list its mutants.
///
/// # Errors
/// There is none, or it does not compile.
pub(super) fn without_cases(name: &str) -> Result<Subject, String> {
    build(name, false)
}

fn build(name: &str, cases: bool) -> Result<Subject, String> {
    let built = match (ROWS.iter().find(|r| r.name == name), STORED.iter().find(|s| s.name == name)) {
        (Some(row), _) => compiled(row, cases),
        (_, Some(stored)) => stored.subject(),
        _ => Err("there is no such kernel".to_owned()),
    };
    built.map_err(|e| format!("{name}: {e}"))
}

fn compiled(row: &Row, with_cases: bool) -> Result<Subject, String> {
    let (file, wanted) = row.path.split_once(':').map_or((row.path, None), |(file, kernel)| (file, Some(kernel)));
    let path = crate::root().join(file);
    let mut runs: Vec<String> = row.runs.iter().copied().flatten().map(|&r| r.to_owned()).collect();
    let text = if file.starts_with("tests/") {
        let file = test_file::TestFile::read(&path, file)?;
        if runs.is_empty() {
            runs.extend(file.values("run").map(str::to_owned));
        }
        file.text
    } else {
        fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?
    };
    let words: Vec<String> = row.args.split_whitespace().map(str::to_owned).collect();
    let (mut options, _) = options::parse(&words)?;
    options.source_name = file.to_owned();
    // The mutants of what the model chooses would change with the model.
    for (name, value) in [("KW", "1"), ("STAGES", "2"), ("RASTER", "8")] {
        if text.contains(&format!("{name} = auto")) && !options.defines.iter().any(|(n, _)| n == name) {
            options.defines.push((name.to_owned(), value.to_owned()));
        }
    }
    let mut done = tilec::optimize(&text, &options).map_err(|e| e.to_string())?;
    let mut source = oracle::parse(&text)?.kernels;
    if let Some(wanted) = wanted {
        // The other kernels of its sequence are subjects of their own.
        done.kernels.retain(|k| k.specialized.name == wanted);
        done.sequences.clear();
        source.retain(|k| k.name == wanted);
    }
    let [source] = &source[..] else { return Err("not one kernel".to_owned()) };
    let [kernel] = &done.kernels[..] else { return Err("not one kernel".to_owned()) };
    let specialized = kernel.specialized.clone();
    let consts = kernel.parameters.iter().cloned().collect();
    let compiled = tilec::lower(done).map_err(|e| e.to_string())?;
    let contracts = Contract::from_json(&compiled.launch_json()).map_err(|e| e.to_string())?;
    let [contract]: [Contract; 1] = contracts.try_into().map_err(|_| "not one kernel".to_owned())?;
    let mut cases = Vec::new();
    for (line, mode) in if with_cases { expanded(&runs)? } else { Vec::new() } {
        let run = Run::parse(&line)?;
        let problem = Problem::new(&specialized, &run, false)?;
        // Integers have no infinities, and nor has e4m3; exponentials, whose problems have a tolerance, make NaN of all of them.
        let elems = || contract.params.iter().filter_map(|p| Some(p.kind.tensor()?.elem));
        let infinite = elems().all(|e| e.is_float() && e != Elem::E4M3) && run.tolerance == 0.0;
        for (label, mut before) in variations(&problem.tensors, mode.is_none() && infinite) {
            poison_outputs(&contract, &run, &mut before);
            let mut problem = Problem::new(&specialized, &run, false)?;
            problem.tensors = before;
            let after = problem.interpret(source, &consts).map_err(|e| format!("{line}: {e}"))?;
            if problem.tensors.iter().zip(&after).all(|(a, b)| a == b || b.addresses().all(|at| b.data[at].is_nan())) {
                return Err(format!("{line}{label}: all results are NaN, which shows nothing"));
            }
            cases.push(Case {
                label: format!("{line}{label}"),
                run: run.clone(),
                mode,
                before: problem.tensors,
                after,
            });
        }
    }
    // Cases that rarely matter come last.
    cases.sort_by_key(|c| (c.label.contains("infinities"), c.mode.is_some()));
    Ok(Subject { name: row.name.to_owned(), ptx: compiled.ptx, contract, cases })
}

/// The memory as it is, and, of three tensors or more, with one that is full of infinities while the others are positive: all
/// sums are then infinite, and NaN as soon as something is multiplied by zero that should not have been read.
fn variations(tensors: &[Tensor], special: bool) -> Vec<(String, Vec<Tensor>)> {
    let mut all = vec![(String::new(), tensors.to_vec())];
    for which in 0..if special && tensors.len() > 2 { tensors.len() - 1 } else { 0 } {
        let mut special = tensors.to_vec();
        for (i, tensor) in special.iter_mut().enumerate() {
            for a in tensor.addresses().collect::<Vec<_>>() {
                tensor.data[a] = if i == which { f64::INFINITY } else { tensor.data[a].abs() + 1.0 };
            }
        }
        all.push((format!(", infinities in {}", tensors[which].name), special));
    }
    all
}

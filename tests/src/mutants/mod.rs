//! Mutation score of the simulator: kernels broken in one place each, which it must notice without a GPU.
//!
//! Every barrier, wait, commit and fence of a kernel is deleted or weakened, every swizzle, stride, guard, bound and fragment
//! changed a little (`operators`), one at a time, and the kernel runs on problems that show what it does (`programs`). A
//! mutant is *killed* when the simulator refuses the text, reports something, or memory is wrong afterwards (`run`). One that
//! survives is a gap of the simulator, unless it is equivalent: then `tests/mutants/equivalent.txt` says why (`equivalent`).
//!
//! The tests take a sample of each kernel, by a hash of the names, so that it is the same everywhere; the binary `mutants` tries
//! all of them and prints the table.

mod bulk;
mod cluster;
pub mod edit;
pub mod equivalent;
mod liveness;
#[cfg(test)]
mod operator_tests;
pub mod operators;
pub mod programs;
mod rows;
pub mod run;
mod slice;
mod stored;
pub mod subject;
mod tensor;
mod text;

use crate::programs::Test;
use equivalent::Entry;
use run::{Bench, Killer, Mutant, Name};
use std::collections::BTreeMap;

/// Mutants of one operator that the tests try in each kernel: with all kernels some dozens of each operator.
const SAMPLE: usize = 1;

/// The fate of a mutant.
pub type Fate = (Name, Option<Killer>);

/// The tests of this module, by name.
pub fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = vec![("mutants/equivalent.txt".to_owned(), Box::new(every_entry_names_a_mutant))];
    for name in programs::names() {
        let check = move || -> Result<(), String> {
            let bench = Bench::new(programs::subject(name)?)?;
            let entries = equivalent::list()?;
            let fates = sample(&bench.mutants).into_iter().map(|m| Ok((m.name.clone(), bench.try_mutant(m)?)));
            judge(&fates.collect::<Result<Vec<Fate>, String>>()?, &entries)
        };
        tests.push((format!("mutants/{name}"), Box::new(check)));
    }
    tests
}

/// The first few mutants of each operator, by hash.
fn sample(all: &[Mutant]) -> Vec<&Mutant> {
    let mut by_operator: BTreeMap<&str, Vec<(u64, &Mutant)>> = BTreeMap::new();
    for mutant in all {
        let operator = mutant.name.change.split('/').next().unwrap_or_default();
        by_operator.entry(operator).or_default().push((hash(&mutant.name.to_string()), mutant));
    }
    let mut chosen = Vec::new();
    for list in by_operator.values_mut() {
        list.sort_by_key(|(hash, _)| *hash);
        chosen.extend(list.iter().take(SAMPLE).map(|(_, m)| *m));
    }
    chosen
}

/// FNV-1a with a final mix.
fn hash(text: &str) -> u64 {
    let h = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    (h ^ h >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Checks that exactly the listed mutants survive.
///
/// # Errors
/// Survivors that are not listed, and listed mutants that were killed.
pub fn judge(fates: &[Fate], entries: &[Entry]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (name, killer) in fates {
        match (killer, entries.iter().find(|e| e.fits(name))) {
            (None, None) => wrong.push(format!("survives, and is not listed as equivalent:\n{name}")),
            (Some(killer), Some(entry)) => wrong.push(format!(
                "listed as equivalent in line {} of tests/mutants/equivalent.txt, but killed ({killer:?}):\n{name}",
                entry.line
            )),
            _ => {}
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The list names no mutant that does not exist.
fn every_entry_names_a_mutant() -> Result<(), String> {
    let mut names = Vec::new();
    for kernel in programs::names() {
        names.extend(run::mutants(&programs::without_cases(kernel)?).into_iter().map(|m| m.name));
    }
    stale(&names, &equivalent::list()?)
}

/// Demands that every entry is about one of `names`.
///
/// # Errors
/// Which are not.
pub fn stale(names: &[Name], entries: &[Entry]) -> Result<(), String> {
    let gone = entries.iter().filter(|e| !names.iter().any(|n| e.fits(n)));
    let lines: Vec<String> = gone.map(|e| e.line.to_string()).collect();
    if lines.is_empty() {
        return Ok(());
    }
    Err(format!("these lines of tests/mutants/equivalent.txt fit no mutant: {}", lines.join(", ")))
}

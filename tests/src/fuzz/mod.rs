//! Fuzzing the compiler as a whole.
//!
//! Four sources of programs:
//!
//! * `mutate` changes words of the programs of this repository; most results are wrong;
//! * `alter` changes their statements, attributes and schedules, as a user who tries variants;
//! * `generate` writes plausible kernels; most are right;
//! * `statements` has every form of statement with every form of operand.
//!
//! `check` has the properties of every compilation, `tried` those of altered programs that compile.
//!
//! Every run tries the same inputs in the same order, as many as `SMOKE` says. For a longer run, from the seed `TILEC_FUZZ_SEED`:
//! `TILEC_FUZZ_SECONDS=300 cargo test --release -p tilec-tests fuzz`. This also assembles a sample. It reports one input for each kind
//! of failure, reduced as long as it fails in the same way.

mod alter;
mod alterations;
mod check;
mod failure;
mod generate;
mod input;
mod mutate;
mod shrink;
mod statements;
pub mod targets;
mod time;
mod tried;
mod words;

use crate::problem::Random;
use failure::silence_panics;
use input::Input;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::long;

/// A source of programs, by the name of its test.
type Source = (&'static str, fn() -> Result<Programs, String>);
/// The next program.
type Programs = Box<dyn Fn(&mut Random) -> Input>;

/// The sources, and how many inputs of each the tests try: not a time, so that a slow machine tries no others than a fast one.
const SOURCES: [(Source, usize); 4] = [
    (
        ("mutated", || {
            mutate::Mutator::new(long().is_some()).map(|m| Box::new(move |r: &mut Random| m.input(r)) as Programs)
        }),
        1500,
    ),
    (("altered", || alter::Alterer::new().map(|a| Box::new(move |r: &mut Random| a.input(r)) as Programs)), 400),
    (("generated", || Ok(Box::new(generate::input))), 60),
    (("statements", || Ok(Box::new(statements::input))), 150),
];
/// No input takes this long; the process ends, naming the input.
const HANG: Duration = Duration::from_secs(60);
/// Different failures after which a long run stops.
const ENOUGH: usize = 40;

/// The tests of this module, by name.
pub fn tests() -> Vec<crate::programs::Test> {
    let mut tests: Vec<crate::programs::Test> = Vec::new();
    for (source, inputs) in SOURCES {
        tests.push((format!("fuzz/{}", source.0), Box::new(move || fuzz(source, inputs))));
    }
    for entry in &targets::TARGETS {
        tests.push((
            format!("fuzz/{}", entry.name),
            Box::new(|| {
                silence_panics();
                targets::smoke(entry)
            }),
        ));
    }
    tests
}

fn fuzz((kind, source): Source, inputs: usize) -> Result<(), String> {
    let seed = std::env::var("TILEC_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let (time, inputs) = match long() {
        Some(seconds) => (Duration::from_secs(seconds), usize::MAX),
        None => (Duration::MAX, inputs),
    };
    let mut random = Random(seed);
    let programs = source()?;
    let current = Arc::new(Mutex::new((Instant::now(), String::new())));
    watch(&current);
    silence_panics();
    let mut tried = BTreeMap::<&str, usize>::new();
    let mut failures = BTreeMap::<String, (Input, String, usize)>::new();
    let start = Instant::now();
    while start.elapsed() < time && tried.values().sum::<usize>() < inputs && failures.len() < ENOUGH {
        let input = programs(&mut random);
        let (target, defines) = (input.options.target.name(), &input.options.defines);
        let what = format!("target {target} defines {defines:?} run {:?}\n{}", input.run, input.text);
        *current.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), what);
        match check::check(&input, &mut random) {
            Ok(outcome) => *tried.entry(outcome).or_default() += 1,
            Err(failure) => {
                *tried.entry("failed").or_default() += 1;
                let entry = failures.entry(failure.class).or_insert_with(|| (input, failure.message, 0));
                entry.2 += 1;
            }
        }
    }
    *current.lock().unwrap_or_else(PoisonError::into_inner) =
        (Instant::now() + Duration::from_secs(1 << 30), String::new());
    if long().is_some() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "fuzz/{kind}: {tried:?} in {:.1} s", start.elapsed().as_secs_f64());
    }
    if failures.is_empty() {
        return Ok(());
    }
    let mut text = format!("{} kinds of failure, {tried:?}\n", failures.len());
    for (class, (input, message, times)) in failures {
        let small = shrink::shrink(&input, &class);
        let _ = writeln!(
            text,
            "==== {class} ({times} times)\n{message}\n---- target {} defines {:?} run {:?}\n{}",
            small.options.target.name(),
            small.options.defines,
            small.run,
            small.text
        );
    }
    Err(text)
}

/// Ends the process when an input takes longer than [`HANG`]: a thread cannot be stopped.
fn watch(current: &Arc<Mutex<(Instant, String)>>) {
    let current = Arc::downgrade(current);
    std::thread::spawn(move || {
        while let Some(current) = current.upgrade() {
            let (since, text) = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // In a long run the assembler and other processes compete for the machine.
            let limit = if long().is_some() { 4 * HANG } else { HANG };
            if Instant::now().saturating_duration_since(since) > limit {
                use std::io::Write as _;
                let _ = writeln!(std::io::stderr(), "this input takes longer than {} s:\n{text}", limit.as_secs());
                std::process::exit(1);
            }
            drop(current);
            std::thread::sleep(Duration::from_millis(500));
        }
    });
}

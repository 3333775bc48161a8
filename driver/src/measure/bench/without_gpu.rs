//! Parts of measuring that `tilec run` does: counts of the simulator where there is no GPU, and the interpreter's verdict on kernels
//! that are no plain matrix product.

use super::protocol::{Check, Counts};
use crate::compile::Compiled;
use crate::contract::number::Args;
use crate::measure::bench::options::BenchOptions;
use crate::run::program::bind_program;
use crate::run::simulate::SimOptions;
use crate::run::{On, Ran, RunOptions, RunReport, run};
use std::process::Command;

/// The subcommand that launches once.
pub(crate) const CHILD: &str = crate::run::child::SUBCOMMAND;
/// Elements of all tensors that the interpreter is given at most.
const MAX_INTERPRETED: u64 = 1 << 24;
/// The reason why it was not executed.
const TOO_LARGE: &str = "too large for the interpreter, `tilec run --check` smaller";
/// Multiply-adds that it is given at most.
const MAX_PRODUCTS: f64 = 4e9;
/// Maximum number of multiply-adds, or elements, that are simulated: some minutes.
const MAX_SIMULATED: f64 = 2e9;

/// Executes the program on the simulator, counts, and compares the whole result with the interpreter's.
pub(super) fn simulate(
    program: &Compiled,
    options: &BenchOptions,
    args: &Args,
    launcher: &mut Command,
) -> Result<(Counts, Check), String> {
    let selected = crate::run::select(program, options.kernel.as_deref(), args).map_err(|d| message(&d))?;
    let bound = bind_program(&selected.contracts(), args)
        .map_err(|e| e.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let product = super::programs::product_of(&selected).and_then(|p| p.extents(&bound.tensors));
    let elements: u64 = bound.tensors.iter().map(|t| t.count()).sum();
    if product.map_or(0.0, |e| e.products()) + elements as f64 > MAX_SIMULATED {
        return Err("too large to simulate here: `M=N=K=1024` is about the limit".to_owned());
    }
    let check = elements <= MAX_INTERPRETED;
    let run_options = RunOptions {
        kernel: options.kernel.clone(),
        args: args.clone(),
        check,
        seed: options.seed,
        repeat: 0,
        timeout: options.timeout,
        on: On::Simulator,
        sim: SimOptions { progress: true, ..SimOptions::default() },
        ..RunOptions::default()
    };
    let report = run(program, &run_options, launcher).map_err(|d| first_error(&d))?;
    let compared = if check { compared(&report) } else { skipped(TOO_LARGE.to_owned()) };
    match report.ran {
        Ran::Simulator(simulated) => {
            let mut counts = Counts::default();
            for launch in &simulated.launches {
                let counters = &launch.counters;
                let all = counters.sum("");
                counts.blocks += launch.blocks;
                counts.instructions += counters.instructions;
                counts.products += counters.mma;
                counts.barriers += counters.barriers;
                counts.wavefronts += all.wavefronts;
                counts.conflicts += all.conflicts();
                counts.sectors += all.sectors;
            }
            Ok((counts, compared))
        }
        Ran::Cuda(_) | Ran::Interpreter => Err("the simulator was asked for and something else answered".to_owned()),
    }
}

/// Compares the whole result with the interpreter's.
pub(crate) fn interpret(
    program: &Compiled,
    options: &BenchOptions,
    args: &Args,
    launcher: &mut Command,
    work: f64,
) -> Check {
    let selected = match crate::run::select(program, options.kernel.as_deref(), args) {
        Ok(selected) => selected,
        Err(d) => return skipped(message(&d)),
    };
    let bound = bind_program(&selected.contracts(), args);
    let elements = bound.map_or(u64::MAX, |b| b.tensors.iter().map(|t| t.count()).sum());
    if elements > MAX_INTERPRETED || work > MAX_PRODUCTS {
        return skipped(TOO_LARGE.to_owned());
    }
    let run_options = RunOptions {
        kernel: options.kernel.clone(),
        args: args.clone(),
        check: true,
        seed: options.seed,
        repeat: 0,
        timeout: options.timeout,
        on: On::Cuda,
        ..RunOptions::default()
    };
    match run(program, &run_options, launcher) {
        Ok(report) => compared(&report),
        Err(d) => skipped(first_error(&d)),
    }
}

fn skipped(why: String) -> Check {
    Check { skipped: Some(why), ..Check::default() }
}

/// The interpreter's verdicts.
fn compared(report: &RunReport) -> Check {
    let mut check = Check::default();
    for (_, verdict) in &report.verdicts {
        check.interpreted += verdict.elements;
        check.wrong += verdict.wrong + verdict.stray_bytes;
        check.shown.extend(verdict.shown.iter().take(5).cloned());
    }
    check
}

fn message(list: &[tilec_ir::diag::Diagnostic]) -> String {
    list.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; ")
}

fn first_error(d: &crate::compile::Diagnostics) -> String {
    let error = d.list.iter().find(|d| d.severity == tilec_ir::diag::Severity::Error);
    error.map_or_else(|| "it failed".to_owned(), |e| format!("[{}] {}", e.code, e.message))
}

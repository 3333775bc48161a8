//! A run of the interpreter alone: the program as it was written, which need not be one that can be compiled to PTX.

use super::facts::Facts;
use super::outcome::{Ran, RunReport};
use super::reference::Reference;
use crate::compile::{Diagnostics, SourceProgram};
use crate::console::clock::Clock;
use crate::contract::Contract;
use crate::run::data;
use crate::run::prepare::{RunOptions, contents, diagnostic, launches, too_large, traffic, values};
use crate::run::program::bind_program;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::interp;

/// Runs what a program means.
///
/// # Errors
/// Arguments that do not fit, unmet preconditions, something that has no defined result.
pub fn interpret(program: &SourceProgram, options: &RunOptions) -> Result<RunReport, Diagnostics> {
    let fail = |list: Vec<Diagnostic>| Diagnostics { source: program.source.clone(), errors: list.len(), list };
    let (name, contracts) = launches(&program.file, options.kernel.as_deref(), &options.args, "file").map_err(fail)?;
    let named = |contract: &&Contract| program.kernels.iter().position(|k| k.name == contract.entry);
    let launched: Vec<usize> = contracts.iter().filter_map(named).collect();
    let meant = launched.iter().map(|&i| &program.source_kernels[i]).collect();
    let bound = bind_program(&contracts, &options.args).map_err(|e| fail(e.iter().map(diagnostic).collect()))?;
    too_large(&bound).map_err(|d| fail(vec![*d]))?;
    let facts: Vec<Facts> = launched.iter().map(|&i| Facts::of(&program.kernels[i])).collect();
    let all = facts.iter().fold(Facts::default(), Facts::and);
    let mut clock = Clock::new(options.timeout, options.sim.progress);
    let mut tensors = contents(&bound, &all, options, &mut clock).map_err(|d| fail(vec![*d]))?;
    clock.check().map_err(|d| fail(vec![*d]))?;
    let how = interp::Options { deadline: clock.deadline(), ..interp::Options::default() };
    let reference = Reference { contracts: &contracts, meant, bound: &bound };
    let result = reference.interpret(&tensors, &how).map_err(|d| fail(vec![timed(*d, &clock)]))?;
    for (plan, bytes) in bound.tensors.iter().zip(&mut tensors).filter(|(plan, _)| plan.access.writes()) {
        if let Some(tensor) = result.tensors.get(&plan.name) {
            plan.for_each(|_, offset| {
                data::set_exact(plan.elem, bytes, offset, tensor.data.get(offset).expect("all of the tensor"))
            });
        }
    }
    Ok(RunReport {
        entry: name,
        target: program.target.name().to_owned(),
        ran: Ran::Interpreter,
        values: values(&contracts, &bound),
        flops: facts.iter().zip(&bound.launches).zip(&contracts).map(|((f, b), c)| f.flops(b, c)).sum(),
        bytes: bound.launches.iter().flat_map(|b| &b.tensors).map(traffic).sum(),
        verdicts: Vec::new(),
        notes: Vec::new(),
        warnings: Vec::new(),
        tensors: bound.tensors.into_iter().zip(tensors).collect(),
    })
}

/// Adds the elapsed time and a remedy to a diagnostic of an exceeded time limit.
fn timed(d: Diagnostic, clock: &Clock) -> Diagnostic {
    if d.code != codes::LAUNCH_TIMEOUT {
        return d;
    }
    let message = format!("the interpreter did not finish within {} s", clock.limit().as_secs());
    let d = Diagnostic { message, label: "it was here".to_owned(), ..d };
    d.with_note("choose smaller sizes, or a larger `--timeout`; does the kernel end at all?")
}

//! Launches on the simulator: arrays of the host, every access checked.

use crate::compiled::Program;
use crate::errors;
use crate::foreign::{read, write};
use crate::plan::Bound;
use pyo3::prelude::*;
use std::time::Duration;
use tilec::Args;
use tilec::clock::Clock;
use tilec::overlap::meets;
use tilec::program::{Aliases, decided, may_alias};
use tilec::render;
use tilec::run::child::Job;
use tilec::simulate::{Origin, SimOptions, simulate};

/// How long a simulation may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the launches on copies of the arrays, and writes back what they wrote.
pub(crate) fn run(
    py: Python<'_>,
    program: &Program,
    of: &Bound<'_>,
    values: &Args,
    names: &[String],
    addresses: &[u64],
) -> PyResult<()> {
    if of.bound.launches.iter().all(|launch| !launch.has_blocks()) {
        return Ok(());
    }
    let address = |name: &str| names.iter().position(|n| n == name).map(|i| addresses[i]);
    let mut aliases = Aliases::new();
    for over in of.bound.tensors.iter().filter(|t| t.access.writes()) {
        let Some(at) = address(&over.name) else { continue };
        let allowed = may_alias(&decided(&of.launches), &over.name);
        for under in of.bound.tensors.iter().filter(|t| t.name != over.name) {
            let Some(other) = address(&under.name) else { continue };
            if !meets(&over.place(at), &under.place(other)) {
                continue;
            }
            if at == other && allowed.contains(&under.name) && over.lies_like(under) {
                aliases.insert(over.name.clone(), under.name.clone());
            } else {
                let text = format!(
                    "`{}` is written, and shares memory with `{}`, which the contract does not allow here",
                    over.name, under.name
                );
                return Err(errors::launch(py, text));
            }
        }
    }
    let tensors: Vec<Vec<u8>> = of
        .bound
        .tensors
        .iter()
        .map(|plan| {
            let bytes = plan.bytes() as usize;
            // Temporaries have no array, and their contents do not matter. Of a tensor without elements there is room for one, and an array without memory.
            let mut all = match address(&plan.name) {
                Some(at) if plan.count() > 0 => read(at, bytes),
                _ => Vec::new(),
            };
            all.resize(bytes, 0xff);
            all
        })
        .collect();
    let job = Job {
        launches: of.launches.iter().map(|c| (*c).clone()).collect(),
        args: values.clone(),
        ptx: program.ptx.clone(),
        repeat: 0,
        aliases,
        tensors: tensors.iter().map(Vec::len).collect(),
    };
    let source = program.source_file();
    let done = py.allow_threads(|| {
        let origin = Origin { source: &source, is_ptx: program.made.is_none(), tiles: Vec::new() };
        simulate(&job, tensors, &origin, &SimOptions::default(), &mut Clock::new(LIMIT, false))
    });
    let (_, after) =
        done.map_err(|d| errors::simulation(py, render::human(&source, &[*d], 1, render::Style::default())))?;
    for (plan, bytes) in of.bound.tensors.iter().zip(&after) {
        if let (true, Some(at)) = (plan.access.writes() && plan.count() > 0, address(&plan.name)) {
            write(at, &bytes[..plan.bytes() as usize]);
        }
    }
    Ok(())
}

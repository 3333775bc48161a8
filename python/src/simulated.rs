//! Launches on the simulator: arrays of the host, every access checked.

use crate::compiled::Program;
use crate::errors;
use crate::foreign::{read, write};
use crate::plan::{Bound, Refusal};
use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyResult, Python};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use tilec::Args;
use tilec::clock::Clock;
use tilec::overlap::may_overlap;
use tilec::program::{Aliases, decided, may_alias};
use tilec::render;
use tilec::run::child::Job;
use tilec::simulate::{Origin, SimOptions, simulate};

/// Time limit of a simulation.
const LIMIT: Duration = Duration::from_secs(600);
/// Interval between checks for signals.
const SIGNALS: Duration = Duration::from_millis(50);

/// Launches on copies of the arrays.
pub(crate) struct Simulation {
    program: Arc<Program>,
    job: Job,
    tensors: Vec<Vec<u8>>,
    /// The results to write back: the tensor, the address, and the number of bytes.
    written: Vec<(usize, u64, usize)>,
}

impl Simulation {
    /// Copies the arrays for launches of a program; `None` where no block is launched.
    ///
    /// # Errors
    /// Tensors share memory, and the contract does not allow that.
    pub(crate) fn new(
        program: &Arc<Program>,
        of: &Bound<'_>,
        values: &Args,
        names: &[String],
        addresses: &[u64],
    ) -> Result<Option<Simulation>, Refusal> {
        if of.bound.launches.iter().all(|launch| !launch.has_blocks()) {
            return Ok(None);
        }
        let address = |name: &str| names.iter().position(|n| n == name).map(|i| addresses[i]);
        let aliases = aliases(of, address)?;
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
        let all = of.bound.tensors.iter().enumerate().filter(|(_, plan)| plan.access.writes() && plan.count() > 0);
        let written = all.filter_map(|(i, plan)| Some((i, address(&plan.name)?, plan.bytes() as usize))).collect();
        Ok(Some(Simulation { program: Arc::clone(program), job, tensors, written }))
    }

    /// The tensors after the launches, unless `stop` becomes true before.
    ///
    /// # Errors
    /// The kernel did what it must not do; the text has the caret.
    pub(crate) fn run(&mut self, stop: &Arc<AtomicBool>) -> Result<Vec<Vec<u8>>, Refusal> {
        let source = self.program.source_file();
        let origin = Origin { source: &source, is_ptx: self.program.made.is_none(), tiles: Vec::new() };
        let tensors = std::mem::take(&mut self.tensors);
        let mut clock = Clock::new(LIMIT, false).stoppable(Arc::clone(stop));
        let done = simulate(&self.job, tensors, &origin, &SimOptions::default(), &mut clock);
        let said = |d| Refusal::Simulation(render::human(&source, &[d], 1, render::Style::default()));
        done.map(|(_, after)| after).map_err(|d| said(*d))
    }

    /// Puts what was written into the arrays.
    pub(crate) fn write(&self, after: &[Vec<u8>]) {
        for (i, address, bytes) in &self.written {
            write(*address, &after[*i][..*bytes]);
        }
    }
}

/// Runs a simulation and writes its results. Other threads of Python run meanwhile; a signal (Ctrl-C) ends it.
pub(crate) fn run(py: Python<'_>, mut simulation: Simulation) -> PyResult<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let done = std::thread::scope(|scope| {
        let (to, mut from) = channel();
        let (work, stopped) = (&mut simulation, &stop);
        let worker = scope.spawn(move || drop(to.send(work.run(stopped))));
        loop {
            // A receiver moves to another thread and is not shared: hence `&mut`.
            let finished = &mut from;
            match py.allow_threads(move || finished.recv_timeout(SIGNALS)) {
                Ok(done) => return done.map_err(|r| errors::refusal(py, r)),
                Err(RecvTimeoutError::Disconnected) => {
                    // Joined, or the scope would hand its panic on.
                    drop(worker.join());
                    return Err(PyRuntimeError::new_err("a bug of tilec: the simulator panicked"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(signal) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                // The thread ends within a fraction of a second.
                drop(py.allow_threads(move || from.recv()));
                return Err(signal);
            }
        }
    });
    simulation.write(&done?);
    Ok(())
}

/// The tensors that are on others, as the contract allows.
fn aliases(of: &Bound<'_>, address: impl Fn(&str) -> Option<u64>) -> Result<Aliases, Refusal> {
    let mut aliases = Aliases::new();
    for over in of.bound.tensors.iter().filter(|t| t.access.writes()) {
        let Some(at) = address(&over.name) else { continue };
        let allowed = may_alias(&decided(&of.launches), &over.name);
        for under in of.bound.tensors.iter().filter(|t| t.name != over.name) {
            let Some(other) = address(&under.name) else { continue };
            if !may_overlap(&over.place(at), &under.place(other)) {
                continue;
            }
            if at == other && allowed.contains(&under.name) && over.same_layout(under) {
                aliases.insert(over.name.clone(), under.name.clone());
            } else {
                return Err(Refusal::Contract(format!(
                    "`{}` is written, and shares memory with `{}`, which the contract does not allow here",
                    over.name, under.name
                )));
            }
        }
    }
    Ok(aliases)
}

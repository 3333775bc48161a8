//! The process that measures: loads the programs, makes data, checks results, passes calls to [`measure`].

mod check;
mod entry;

use super::blas::{self, Call};
use super::limits::Machine;
use super::measure;
use super::protocol::{Answer, Check, Job, Loaded, Measured, Program, Reference, Request, Series};
use crate::cuda::{Cublas, CudaError, Device, FunctionAttributes, Matmul, Stream};
use crate::run::child::Refused;
use crate::run::loaded_kernel::{LoadedKernel, LoadedProgram};
use crate::run::program::bind_program;
use check::Checker;
use entry::{Entry, Group, groups};
use std::io;

type Answers<'a> = &'a mut dyn FnMut(&Answer) -> io::Result<()>;

/// Answers requests until there are no more.
pub(super) fn serve(
    requests: &mut dyn Iterator<Item = io::Result<Request>>,
    answer: &mut dyn FnMut(&Answer) -> io::Result<()>,
) -> io::Result<()> {
    let Some(first) = requests.next() else { return Ok(()) };
    let Request::Setup { programs, cublas } = first? else {
        return answer(&refused("a job came before the programs"));
    };
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(e) => {
            let no_device =
                matches!(e, CudaError::NoLibrary { .. } | CudaError::MissingSymbol { .. } | CudaError::NoDevice { .. });
            return answer(&Answer::Refused(Refused { no_device, reason: e.to_string() }));
        }
    };
    let kernels: Vec<Result<LoadedProgram<'_>, CudaError>> =
        programs.iter().map(|p| LoadedProgram::load(&device, &p.ptx, &p.contracts())).collect();
    let library = (!cublas.is_empty()).then(|| Cublas::open(&device, &cublas));
    let loaded = |program: &Result<LoadedProgram<'_>, CudaError>| match program {
        Ok(program) => {
            let all = program.kernels().iter().map(LoadedKernel::attributes);
            let most = |loaded: Loaded, of: FunctionAttributes| Loaded {
                registers: loaded.registers.max(of.registers),
                local_bytes: loaded.local_bytes.max(of.local_bytes),
            };
            Ok(all.fold(Loaded { registers: 0, local_bytes: 0 }, most))
        }
        Err(e) => Err(e.to_string()),
    };
    answer(&Answer::Ready {
        machine: machine(&device),
        cublas: library.as_ref().map(|library| match library {
            Ok(library) => Ok((library.version(), library.path().to_owned())),
            Err(e) => Err(e.to_string()),
        }),
        programs: kernels.iter().map(loaded).collect(),
    })?;
    let worker =
        Worker { device: &device, programs: &programs, kernels: &kernels, cublas: library.and_then(Result::ok) };
    for request in requests {
        let result = match request? {
            Request::Setup { .. } => Err("the programs came twice".to_owned()),
            Request::Measure(job) => worker.measure(&job, answer).map_err(|e| e.to_string()),
        };
        match result {
            Ok(measured) => answer(&Answer::Measured(measured))?,
            Err(reason) => answer(&refused(&reason))?,
        }
    }
    Ok(())
}

fn refused(reason: &str) -> Answer {
    Answer::Refused(Refused { no_device: false, reason: reason.to_owned() })
}

fn machine(device: &Device) -> Machine {
    let p = device.properties();
    let (major, minor) = p.compute_capability;
    Machine {
        name: p.name.clone(),
        cc: major * 10 + minor,
        driver: format!("{}.{}", p.driver_version.0, p.driver_version.1),
        sm_count: p.sm_count,
        clock_khz: p.clock_khz,
        memory_clock_khz: p.memory_clock_khz,
        memory_bus_bits: p.memory_bus_bits,
        l2_bytes: p.l2_bytes,
    }
}

struct Worker<'d> {
    device: &'d Device,
    programs: &'d [Program],
    kernels: &'d [Result<LoadedProgram<'d>, CudaError>],
    cublas: Option<Cublas>,
}

impl Worker<'_> {
    fn measure(&self, job: &Job, answer: Answers<'_>) -> Result<Measured, CudaError> {
        let mut results: Vec<Option<Result<Series, String>>> = vec![None; job.programs.len()];
        let mut notes = Vec::new();
        let entries = self.bind(job, &mut results, &mut notes);
        let mut tell = |what: &str, done: f64, first: Option<usize>| {
            // A parent that has gone away is noticed when the result is written.
            let _ = answer(&Answer::Progress { what: what.to_owned(), done, first });
        };
        let mut say = |what: &str, done: f64| tell(what, done, None);
        say("making data", 0.0);
        let mut groups = groups(self.device, &entries)?;
        let stream = self.device.stream()?;
        let mut checks: Vec<Check> = entries.iter().map(|_| Check::default()).collect();
        let calls = blas::distinct(entries.iter().filter_map(|e| e.call.as_ref()));
        let plans: Vec<Result<_, String>> = calls
            .iter()
            .map(|call| match &self.cublas {
                Some(cublas) => cublas.plan(call.product, blas::CHOICES).map_err(|e| e.to_string()),
                None => Err("there is no cuBLAS".to_owned()),
            })
            .collect();
        let cc = machine(self.device).cc;
        let (entries, calls, plans, stream) = (&entries[..], &calls[..], &plans[..], &stream);
        let checker = Checker { device: self.device, cc, seed: job.seed, entries, calls, plans, stream };
        for group in &mut groups {
            checker.group(group, &mut checks, &mut |first| tell("checking results", 0.05, Some(first)))?;
        }
        let mut say = |what: &str, done: f64| tell(what, done, None);
        say("warming up", 0.25);
        let mut units: Vec<measure::Unit<'_>> = Vec::new();
        let (mut references, unit_of_reference) =
            self.references(entries, &groups, (calls, plans), stream, &mut units)?;
        let first_program = units.len();
        for (i, entry) in entries.iter().enumerate() {
            let Some(group) = groups.iter().find(|g| g.members.contains(&i)) else { continue };
            units.push(measure::Unit {
                sets: group.sets,
                call: Box::new(move |set, stream| {
                    entry.kernels.launch_bound(stream, &entry.bound, |name| group.address(name, set))
                }),
            });
        }
        let timed =
            measure::interleave(self.device, stream, &units, job.rounds, job.seconds, &mut notes, &mut |done| {
                say("measuring", 0.3 + 0.7 * done);
            })?;
        for (reference, unit) in references.iter_mut().zip(&unit_of_reference) {
            if let Some(unit) = unit {
                reference.us.clone_from(&timed[*unit].us);
            }
        }
        for (i, (entry, check)) in entries.iter().zip(checks).enumerate() {
            let timed = &timed[first_program + i];
            let extents = entry.program.product.as_ref().and_then(|p| p.extents(&entry.bound.tensors));
            results[entry.place] = Some(Ok(Series {
                us: timed.us.clone(),
                launches: timed.launches,
                sets: units[first_program + i].sets.count,
                check,
                reference: entry.call.as_ref().and_then(|call| calls.iter().position(|c| c == call)),
                flops: extents.map_or(0.0, |e| 2.0 * e.products()),
                bytes: entry.traffic(),
            }));
        }
        let programs =
            results.into_iter().map(|r| r.unwrap_or_else(|| Err("it was not measured".to_owned()))).collect();
        Ok(Measured { programs, references, notes })
    }

    /// The programs of a job with their arguments; why one has none is its result.
    fn bind(
        &self,
        job: &Job,
        results: &mut [Option<Result<Series, String>>],
        notes: &mut Vec<String>,
    ) -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        for (place, &index) in job.programs.iter().enumerate() {
            let (program, kernels) = (&self.programs[index], &self.kernels[index]);
            match (kernels, bind_program(&program.contracts(), &job.args)) {
                (Ok(kernels), Ok(bound)) => {
                    let call = program.product.as_ref().map(|p| blas::call(p, &bound, &program.atom));
                    if let (Some(Err(why)), Some(_)) = (&call, &self.cublas) {
                        let note = format!("no comparison, because cuBLAS has no such call: {why}");
                        if !notes.contains(&note) {
                            notes.push(note);
                        }
                    }
                    let call = call.and_then(Result::ok);
                    entries.push(Entry { place, program, kernels, bound, call });
                }
                (Err(e), _) => results[place] = Some(Err(e.to_string())),
                (_, Err(errors)) => {
                    let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
                    results[place] = Some(Err(text.join("; ")));
                }
            }
        }
        entries
    }

    /// cuBLAS's own ways of each call are tried, and the fastest is to be measured with the rest: which unit that is.
    fn references<'a>(
        &self,
        entries: &[Entry<'_>],
        groups: &'a [Group],
        (calls, plans): (&'a [Call], &'a [Result<Matmul<'a>, String>]),
        stream: &Stream,
        units: &mut Vec<measure::Unit<'a>>,
    ) -> Result<(Vec<Reference>, Vec<Option<usize>>), CudaError> {
        let mut references = Vec::new();
        let mut unit_of_reference = Vec::new();
        for (call, plan) in calls.iter().zip(plans) {
            let user = entries.iter().position(|e| e.call.as_ref() == Some(call));
            let group = user.and_then(|user| groups.iter().find(|g| g.members.contains(&user)));
            let (Ok(plan), Some(group)) = (plan, group) else {
                let refused = plan.as_ref().err().cloned();
                references.push(Reference { us: Vec::new(), choice: (0, 0), looked_us: Vec::new(), refused });
                unit_of_reference.push(None);
                continue;
            };
            let run = |choice: usize, set: usize, stream: &Stream| {
                let at = |i: usize| group.at(&call.tensors[i], set);
                plan.launch(stream, choice, call.scalars, [at(0)?, at(1)?, at(2)?])
            };
            let looked_us = measure::estimate_times(self.device, stream, group.sets, plan.choices(), &run)?;
            let best = measure::fastest(&looked_us);
            let refused = best.is_none().then(|| "every algorithm of cuBLAS failed".to_owned());
            references.push(Reference {
                us: Vec::new(),
                choice: (best.unwrap_or(0), plan.choices()),
                looked_us,
                refused,
            });
            unit_of_reference.push(best.map(|best| {
                units.push(measure::Unit { sets: group.sets, call: Box::new(move |set, s| run(best, set, s)) });
                units.len() - 1
            }));
        }
        Ok((references, unit_of_reference))
    }
}

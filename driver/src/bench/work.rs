//! The process that measures: loads the programs, makes data, checks results, hands calls to [`measure`].

use super::blas::{self, Call};
use super::inputs::{Contents, elements};
use super::limits::Machine;
use super::measure::{self, Sets};
use super::place::{self, Placed};
use super::product::AccElem;
use super::reference;
use super::wire::{Answer, Check, Job, Loaded, Measured, Program, Reference, Request, Series};
use crate::bind::TensorPlan;
use crate::cuda::{Cublas, CudaError, Device, FunctionAttributes, Stream};
use crate::data::{GUARD_BYTES, POISON};
use crate::loaded::{LoadedKernel, LoadedProgram};
use crate::program::{BoundProgram, bind_program};
use crate::run::check::accuracy;
use crate::run::child::Refused;
use std::io;
use tilec_ir::types::Elem;

/// Results up to this many bytes are compared as a whole with those of cuBLAS.
const COMPARED_BYTES: usize = 512 << 20;

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

/// A program with this job's arguments.
struct Entry<'d> {
    /// Index in the job.
    place: usize,
    program: &'d Program,
    kernels: &'d LoadedProgram<'d>,
    bound: BoundProgram,
    call: Option<Call>,
}

/// Programs that take the same tensors, and those tensors on the device.
struct Group {
    tensors: Vec<TensorPlan>,
    placed: Vec<Placed>,
    sets: Sets,
    members: Vec<usize>,
}

impl Group {
    fn address(&self, name: &str, set: usize) -> u64 {
        let tensor = self.tensors.iter().position(|t| t.name == name);
        tensor.map_or(0, |i| self.placed[i].argument(set))
    }
}

impl Worker<'_> {
    fn measure(&self, job: &Job, answer: Answers<'_>) -> Result<Measured, CudaError> {
        let mut results: Vec<Option<Result<Series, String>>> = vec![None; job.programs.len()];
        let mut entries = Vec::new();
        let mut notes = Vec::new();
        for (place, &index) in job.programs.iter().enumerate() {
            let (program, kernels) = (&self.programs[index], &self.kernels[index]);
            match (kernels, bind_program(&program.contracts(), &job.args)) {
                (Ok(kernels), Ok(bound)) => {
                    let call = program.product.as_ref().map(|p| blas::call(p, &bound, &program.atom));
                    if let (Some(Err(why)), Some(_)) = (&call, &self.cublas) {
                        let note = format!("no comparison: cuBLAS has no such call: {why}");
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
        let mut tell = |what: &str, done: f64, first: Option<usize>| {
            // A parent that has gone away is noticed when the result is written.
            let _ = answer(&Answer::Progress { what: what.to_owned(), done, first });
        };
        let mut say = |what: &str, done: f64| tell(what, done, None);
        say("making data", 0.0);
        let mut groups = self.groups(&entries)?;
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
        for group in &mut groups {
            self.check(job, group, &entries, &calls, &plans, &stream, &mut checks, &mut |first| {
                tell("checking results", 0.05, Some(first));
            })?;
        }
        let mut say = |what: &str, done: f64| tell(what, done, None);
        say("warming up", 0.25);
        // cuBLAS's own ways are tried first, and the fastest is measured with the rest.
        let mut references = Vec::new();
        let mut units: Vec<measure::Unit<'_>> = Vec::new();
        let mut unit_of_reference = Vec::new();
        for (call, plan) in calls.iter().zip(&plans) {
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
            let looked_us = measure::first_look(self.device, &stream, group.sets, plan.choices(), &run)?;
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
            measure::interleave(self.device, &stream, &units, job.rounds, job.seconds, &mut notes, &mut |done| {
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

    /// Sorts the programs by the tensors they take and makes room for those.
    fn groups(&self, entries: &[Entry<'_>]) -> Result<Vec<Group>, CudaError> {
        let mut kinds: Vec<(Vec<TensorPlan>, Vec<usize>)> = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            match kinds.iter_mut().find(|(tensors, _)| *tensors == entry.bound.tensors) {
                Some((_, members)) => members.push(i),
                None => kinds.push((entry.bound.tensors.clone(), vec![i])),
            }
        }
        let properties = self.device.properties();
        let share = properties.total_memory_bytes / 10 * 8 / kinds.len().max(1);
        kinds
            .into_iter()
            .map(|(tensors, members)| {
                let bytes = tensors.iter().map(|t| place::set_bytes(t).unwrap_or(usize::MAX));
                let set = bytes.fold(0usize, usize::saturating_add);
                if set.saturating_mul(2) > share {
                    let message = format!("two sets of tensors of {set} bytes do not fit the memory of the device");
                    return Err(CudaError::Refused { what: message });
                }
                let sets = Sets::past_cache(set, properties.l2_bytes, share);
                let placed = tensors
                    .iter()
                    .map(|plan| Placed::new(self.device, plan, sets.count as usize))
                    .collect::<Result<_, _>>()?;
                Ok(Group { tensors, placed, sets, members })
            })
            .collect()
    }

    /// Fills all sets of a group with normal data and checks its programs on whole numbers and on that data.
    #[expect(clippy::too_many_arguments, reason = "one step of a job, with the job's state")]
    fn check(
        &self,
        job: &Job,
        group: &mut Group,
        entries: &[Entry<'_>],
        calls: &[Call],
        plans: &[Result<crate::cuda::Matmul<'_>, String>],
        stream: &Stream,
        checks: &mut [Check],
        first: &mut dyn FnMut(usize),
    ) -> Result<(), CudaError> {
        let depth = group.members.iter().filter_map(|&i| entries[i].program.product.as_ref()?.extents(&group.tensors));
        let depth = depth.map(|e| e.k).max().unwrap_or(1);
        let narrow = group.members.iter().any(|&i| entries[i].half_sums());
        let eight_bits = group.tensors.iter().any(|t| matches!(t.elem, Elem::E4M3 | Elem::E5M2));
        let exact_below = match (narrow, eight_bits) {
            (true, _) => 2f64.powi(11),
            // Hopper keeps 13 fraction bits in sums of 8-bit products.
            (_, true) => 2f64.powi(13),
            _ => 2f64.powi(24),
        };
        for contents in [Contents::whole(depth, exact_below), Contents::Normal] {
            let whole = contents != Contents::Normal;
            let fill = |t: &TensorPlan, set: usize| {
                let count = usize::try_from(t.span).unwrap_or(0);
                let mut bytes =
                    elements(t.elem, count, job.seed.wrapping_add(set as u64 * 1_000_003), &t.name, contents);
                bytes.resize(bytes.len() + GUARD_BYTES, POISON);
                bytes
            };
            let host: Vec<(TensorPlan, Vec<u8>)> = group.tensors.iter().map(|t| (t.clone(), fill(t, 0))).collect();
            for (i, (_, bytes)) in host.iter().enumerate() {
                group.placed[i].upload(0, bytes)?;
            }
            // What cuBLAS makes of the whole numbers, for each kind of product in the group.
            let mut theirs: Vec<(usize, Vec<u8>)> = Vec::new();
            for &member in &group.members {
                let entry = &entries[member];
                let Some(product) = &entry.program.product else { continue };
                let Some(out) = group.tensors.iter().position(|t| t.name == product.c.tensor) else { continue };
                let (Some(extents), Some((alpha, beta))) = (product.extents(&group.tensors), &product.epilogue) else {
                    continue;
                };
                let alpha = alpha.value(&entry.bound.values);
                let beta = beta.as_ref().map_or(0.0, |b| b.value(&entry.bound.values));
                let before: Vec<u8> = if beta == 0.0 { vec![POISON; host[out].1.len()] } else { host[out].1.clone() };
                let launch = |run: &dyn Fn() -> Result<(), CudaError>| -> Result<Vec<u8>, CudaError> {
                    let mut after = vec![0; before.len()];
                    group.placed[out].upload(0, &before)?;
                    run()?;
                    self.device.synchronize()?;
                    group.placed[out].download(0, &mut after)?;
                    Ok(after)
                };
                first(entry.place);
                let after =
                    launch(&|| entry.kernels.launch_bound(stream, &entry.bound, |name| group.address(name, 0)))?;
                let f16 = product.acc == AccElem::F16;
                let reference = reference::Reference {
                    product,
                    extents,
                    alpha,
                    beta,
                    tensors: &host,
                    accuracy: accuracy(&entry.program.atom, f16, machine(self.device).cc, entry.program.promoted),
                };
                let exact = whole && alpha.fract() == 0.0 && beta.fract() == 0.0;
                let check = &mut checks[member];
                if reference.compare(&after, exact, check).is_none() {
                    check.skipped = Some("a tensor of the product is missing".to_owned());
                }
                let elements = after.len() - GUARD_BYTES;
                if after[elements..] != before[elements..] {
                    check.wrong += 1;
                    check.shown.push(format!("bytes behind the end of `{}` were written", product.c.tensor));
                }
                if !exact || after.len() > COMPARED_BYTES {
                    continue;
                }
                let Some(call) = entry.call.as_ref().and_then(|call| calls.iter().position(|c| c == call)) else {
                    continue;
                };
                let Ok(plan) = &plans[call] else { continue };
                if !theirs.iter().any(|(c, _)| *c == call) {
                    let tensors = &calls[call].tensors;
                    let run = || {
                        plan.launch(
                            stream,
                            0,
                            calls[call].scalars,
                            [group.at(&tensors[0], 0)?, group.at(&tensors[1], 0)?, group.at(&tensors[2], 0)?],
                        )
                    };
                    match launch(&run) {
                        Ok(bytes) => theirs.push((call, bytes)),
                        Err(_) => continue,
                    }
                }
                if let Some((_, bytes)) = theirs.iter().find(|(c, _)| *c == call) {
                    blas::compare(&group.tensors[out], bytes, &after, reference.rounded(), check);
                }
            }
            if !whole {
                for (i, plan) in group.tensors.iter().enumerate() {
                    for set in 0..group.sets.count as usize {
                        group.placed[i].upload(set, &fill(plan, set))?;
                    }
                }
            }
        }
        for &member in &group.members {
            let product = entries[member].program.product.as_ref();
            if product.is_none_or(|p| p.epilogue.is_none() || p.extents(&group.tensors).is_none()) {
                checks[member].skipped = Some("not a plain matrix product".to_owned());
                // If it hangs or faults, it does so by itself.
                first(entries[member].place);
                entries[member].kernels.launch_bound(stream, &entries[member].bound, |name| group.address(name, 0))?;
                self.device.synchronize()?;
            }
        }
        Ok(())
    }
}

impl Entry<'_> {
    /// Bytes of the tensors that it takes and gives, each moved once.
    fn traffic(&self) -> f64 {
        let asked_for = |t: &&TensorPlan| !self.program.temporaries.contains(&t.name);
        self.bound.tensors.iter().filter(asked_for).map(|t| blas::traffic(t, self.call.as_ref())).sum()
    }

    /// Whether its sums are kept in f16.
    fn half_sums(&self) -> bool {
        self.program.product.as_ref().is_some_and(|p| p.acc == AccElem::F16)
    }
}

impl Group {
    /// A tensor of a set, for cuBLAS.
    fn at(&self, name: &str, set: usize) -> Result<crate::cuda::At<'_>, CudaError> {
        let tensor = self.tensors.iter().position(|t| t.name == name);
        let i = tensor.ok_or_else(|| CudaError::Refused { what: format!("no tensor `{name}`") })?;
        Ok(self.placed[i].at(set))
    }
}

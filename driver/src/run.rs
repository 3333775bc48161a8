//! Running a kernel on a device and comparing its result with the interpreter's.
//!
//! The launch is made from the contract, the PTX and the values of the parameters alone: on a GPU in a process of its own
//! ([`child`]), or on the [simulator](crate::simulate) in this one. The reference is the tile interpreter on the program as
//! it was written, before any pass, with other values of `auto` parameters than were chosen.

pub mod check;
pub mod child;
pub mod data;
#[cfg(feature = "cuda")]
mod device;
mod elements;
mod facts;
mod in_place;
mod interpreted;
mod outcome;
mod prepare;
mod reference;

pub mod simulate;
#[cfg(test)]
mod tests;

pub(crate) use prepare::diagnostic;
pub use prepare::{On, RunOptions, launches};
#[cfg(feature = "cuda")]
pub use tilec_launch::loaded_kernel;
pub use tilec_launch::program::Aliases;
pub use tilec_launch::{bind, dispatch, overlap, program, tensor_map};

use crate::compile::{Compiled, CompiledKernel, Diagnostics, ParsedKernel, whole};
use crate::console::clock::Clock;
use crate::console::render::SourceFile;
use crate::contract::launch_file::disagreement;
use crate::contract::number::Args;
use crate::contract::{Contract, Program};
use crate::run::program::bind_program;
use check::accuracy;
use child::{ChildError, Job, Launched, Outcome, Refused};
pub use elements::Elements;
use facts::Facts;
pub use interpreted::interpret;
pub use outcome::{Ran, RunReport};
use prepare::{contents, too_large, traffic, values};
use reference::Reference;
use simulate::{Origin, simulate};
use std::process::Command;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::interp::{self, SumAccuracy};
use tilec_ir::kernel::ConstValue;

/// A program that may not come from this compiler: PTX and its launch contracts.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// The PTX, under the name that messages call it by.
    pub ptx: SourceFile,
    /// The name of the program.
    pub name: String,
    /// The launches, in order.
    pub launches: Vec<Contract>,
}

/// The program to run, as far as it is known.
struct Subject<'a> {
    name: &'a str,
    launches: Vec<&'a Contract>,
    ptx: &'a str,
    target: &'a str,
    /// The source of diagnostics' spans.
    source: &'a SourceFile,
    /// The launched kernels as compiled; absent for foreign PTX.
    kernels: Vec<&'a CompiledKernel>,
}

/// Runs a kernel of `program`. `launcher` is the command that does [`child::serve`].
///
/// # Errors
/// Arguments that do not fit, unmet preconditions, no device, a launch that fails or does not end, no reference result,
/// whatever the simulator reports. A result that is wrong is not an error: see [`RunReport::ok`].
pub fn run(program: &Compiled, options: &RunOptions, launcher: &mut Command) -> Result<RunReport, Diagnostics> {
    run_with(program, options, |job, tensors| child::launch(launcher, job, tensors, options.timeout))
}

/// Runs PTX from its launch contract. There is no reference: [`RunOptions::check`] is ignored.
///
/// # Errors
/// As those of [`run`].
pub fn run_foreign(foreign: &Foreign, options: &RunOptions, launcher: &mut Command) -> Result<RunReport, Diagnostics> {
    let wrong: Vec<Diagnostic> =
        foreign.launches.iter().filter_map(|contract| of_other_ptx(contract, foreign.ptx.text())).collect();
    if !wrong.is_empty() {
        return Err(Diagnostics { source: foreign.ptx.clone(), errors: wrong.len(), list: wrong });
    }
    let subject = Subject {
        name: &foreign.name,
        launches: foreign.launches.iter().collect(),
        ptx: foreign.ptx.text(),
        target: foreign.launches.first().map_or("", |c| &c.target),
        source: &foreign.ptx,
        kernels: Vec::new(),
    };
    execute(&subject, options, |job, tensors| child::launch(launcher, job, tensors, options.timeout))
}

/// The error that a contract is not that of the PTX: threads, sizes or shared memory would be others.
fn of_other_ptx(contract: &Contract, ptx: &str) -> Option<Diagnostic> {
    let differences = disagreement(contract, ptx);
    if differences.is_empty() {
        return None;
    }
    let message = format!("the launch description of `{}` is not that of this PTX", contract.entry);
    let d = Diagnostic::error(codes::OTHER_LAUNCH, Span::default(), message);
    let d = differences.into_iter().fold(d, Diagnostic::with_note);
    Some(d.with_note(
        "compile both from one source with the same options: `tilec IN.tile .. -o k.ptx` and `tilec IN.tile .. -o k.json`",
    ))
}

/// The result of a launch in the child.
type FromChild = Result<(Outcome, Vec<Vec<u8>>), ChildError>;

/// [`run`] with the launch on a GPU as a function.
fn run_with(
    program: &Compiled,
    options: &RunOptions,
    launch: impl FnOnce(Job, Vec<Vec<u8>>) -> FromChild,
) -> Result<RunReport, Diagnostics> {
    let selected = select(program, options.kernel.as_deref(), &options.args).map_err(|list| Diagnostics {
        source: program.source.clone(),
        errors: list.len(),
        list,
    })?;
    let subject = Subject {
        name: &selected.name,
        launches: selected.contracts(),
        ptx: &program.ptx,
        target: program.target.name(),
        source: &program.source,
        kernels: selected.kernels,
    };
    execute(&subject, options, launch).map_err(|mut d| {
        let weaker = subject.kernels.iter().find_map(|k| alignment_parameter(k));
        for unmet in d.list.iter_mut().filter(|d| d.code == codes::UNMET_PRECONDITION) {
            unmet.notes.extend(weaker.iter().map(|name| {
                format!("`-D {name}=1` compiles for any sizes, with narrower accesses; `--variant {name}=8/1` takes what fits")
            }));
        }
        d
    })
}

/// The compile-time parameter that says what sizes are multiples of, by its usual name.
fn alignment_parameter(kernel: &CompiledKernel) -> Option<String> {
    let promises = |(name, value): &&(String, ConstValue)| {
        name.starts_with("ALIGN") && matches!(value, ConstValue::Int(n) if *n > 1)
    };
    kernel.tile.parameters.iter().find(promises).map(|(name, _)| name.clone())
}

fn execute(
    subject: &Subject<'_>,
    options: &RunOptions,
    launch: impl FnOnce(Job, Vec<Vec<u8>>) -> FromChild,
) -> Result<RunReport, Diagnostics> {
    let fail = |list: Vec<Diagnostic>| Diagnostics { source: subject.source.clone(), errors: list.len(), list };
    let bound = bind_program(&subject.launches, &options.args)
        .map_err(|errors| fail(errors.iter().map(diagnostic).collect()))?;
    let bytes = too_large(&bound).map_err(|d| fail(vec![*d]))?;
    if options.on == On::Simulator && bytes > simulate::MAX_BYTES {
        return Err(fail(vec![*simulate::too_big(bytes)]));
    }
    in_place::allowed(&subject.launches, &bound, &options.aliases).map_err(|d| fail(vec![*d]))?;
    let facts: Vec<Facts> = subject.kernels.iter().map(|k| Facts::of(&k.tile.specialized)).collect();
    let all = facts.iter().fold(Facts::default(), Facts::and);
    let mut clock = Clock::new(options.timeout, options.sim.progress);
    let before = contents(&bound, &all, options, &mut clock).map_err(|d| fail(vec![*d]))?;
    let job = Job {
        launches: subject.launches.iter().map(|c| (*c).clone()).collect(),
        args: bound.values.clone(),
        ptx: subject.ptx.to_owned(),
        repeat: options.repeat,
        aliases: options.aliases.clone(),
        tensors: before.iter().map(Vec::len).collect(),
    };
    let (ran, after) = launch_on(subject, job, &before, options, &mut clock, launch).map_err(|d| fail(vec![*d]))?;
    let mut report = RunReport {
        entry: subject.name.to_owned(),
        target: subject.target.to_owned(),
        values: values(&subject.launches, &bound),
        flops: facts.iter().zip(&bound.launches).zip(&subject.launches).map(|((f, b), c)| f.flops(b, c)).sum(),
        bytes: bound.launches.iter().flat_map(|b| &b.tensors).map(traffic).sum(),
        verdicts: Vec::new(),
        notes: Vec::new(),
        warnings: Vec::new(),
        tensors: Vec::new(),
        ran,
    };
    let cc = report.ran.compute_capability();
    let products = || subject.kernels.iter().flat_map(|k| &k.report.mma);
    let atom = products().next().map_or("", |m| m.atom.as_str());
    if atom == "m8n8k4" && cc >= 80 && matches!(report.ran, Ran::Cuda(_)) {
        report.notes.push("this GPU emulates m8n8k4 with scalar code: its time says nothing about Volta".to_owned());
    }
    if let Ran::Simulator(simulated) = &report.ran {
        report.notes.extend(simulated.unchecked().map(str::to_owned));
        report.warnings.clone_from(&simulated.allowed);
    }
    // An input that an output overlaps now holds the output; unwritten elements of temporaries do not matter.
    let together = Program::new(subject.name, &subject.launches).map_or_else(|_| Vec::new(), |p| p.temporaries);
    let gone =
        |name: &String| options.aliases.values().any(|under| under == name) || together.iter().any(|t| t.name == *name);
    if options.check && !subject.kernels.is_empty() {
        let own = products().map(|m| accuracy(&m.atom, all.f16_accumulators, cc, m.promoted));
        let accuracy = own.reduce(SumAccuracy::or).unwrap_or_else(|| accuracy("", all.f16_accumulators, cc, None));
        // The values of `auto` parameters must not affect results: the reference uses other tiles.
        let meant = whole(subject.kernels.iter().map(|k| (k.contract.entry.as_str(), k.tile.reference())));
        let meant = meant.map_err(|part| fail(vec![*of_part(part)]))?;
        let (meant, promised): (Vec<ParsedKernel>, Vec<bool>) = meant.into_iter().unzip();
        let reference = Reference { contracts: &subject.launches, meant: meant.iter().collect(), bound: &bound };
        let how = interp::Options {
            accuracy: Some(accuracy),
            rerounded: promised.contains(&true),
            ..interp::Options::default()
        };
        report.verdicts =
            reference.verify(&all, (&before, &after), &how, &mut report.notes).map_err(|d| fail(vec![*d]))?;
        report.verdicts.retain(|(name, _)| !gone(name));
    } else {
        for (plan, after) in bound.tensors.iter().zip(&after).filter(|(plan, _)| !gone(&plan.name)) {
            let (name, all) = (&plan.name, plan.count());
            clock.begin(format!("looking for what nobody wrote in `{name}`"), all);
            let found = check::unwritten(plan, after, || clock.more());
            // The launch is done, whatever its result still takes.
            if clock.check().is_err() {
                break;
            }
            if let (count @ 1.., Some(first)) = found {
                let note = format!(
                    "nothing writes {count} of the {all} elements of `{name}`, of which `{name}[{first}]` is the first"
                );
                report.notes.push(note);
            }
        }
    }
    report.tensors = bound.tensors.into_iter().zip(after).collect();
    Ok(report)
}

/// The error for a launch of a part of a sequence: only the whole can be compared.
fn of_part(entry: &str) -> Box<Diagnostic> {
    let message = format!("`{entry}` is a part of what the source says, and there is nothing to compare it with");
    let d = Diagnostic::error(codes::BAD_ARGUMENT, Span::default(), message);
    Box::new(d.with_note("leave `--kernel` out to run and compare all of it, or `--check`; `schedule { align_rows 0 }` makes no other kernels of it"))
}

/// Launches where the options say.
fn launch_on(
    subject: &Subject<'_>,
    job: Job,
    before: &[Vec<u8>],
    options: &RunOptions,
    clock: &mut Clock,
    launch: impl FnOnce(Job, Vec<Vec<u8>>) -> FromChild,
) -> Result<(Ran, Vec<Vec<u8>>), Box<Diagnostic>> {
    let why = match options.on {
        On::Simulator => None,
        On::Auto | On::Cuda => match launch(job.clone(), before.to_vec()) {
            Ok((Outcome { result: Ok(launched), .. }, after)) => return Ok((Ran::Cuda(launched), after)),
            Ok((Outcome { result: Err(refused), .. }, _)) if refused.no_device && options.on == On::Auto => {
                Some(refused.reason)
            }
            Ok((Outcome { result: Err(refused), .. }, _)) => return Err(Box::new(refusal(&refused))),
            Err(e) => {
                let code = match e {
                    ChildError::Timeout(_) => codes::LAUNCH_TIMEOUT,
                    ChildError::Start(_) | ChildError::Died { .. } => codes::LAUNCH_FAILED,
                };
                return Err(Box::new(Diagnostic::error(code, Span::default(), e.to_string())));
            }
        },
    };
    let origin = Origin {
        source: subject.source,
        is_ptx: subject.kernels.is_empty(),
        tiles: subject.kernels.iter().map(|k| k.report.tiles.as_slice()).collect(),
    };
    let (simulated, after) = simulate(&job, before.to_vec(), &origin, &options.sim, clock)?;
    Ok((Ran::Simulator(Box::new(simulate::Simulated { why, ..simulated })), after))
}

/// The kernels of a program that are to be launched, in order.
pub(crate) struct Selected<'a> {
    pub(crate) name: String,
    pub(crate) kernels: Vec<&'a CompiledKernel>,
}

impl<'a> Selected<'a> {
    /// How to launch them.
    pub(crate) fn contracts(&self) -> Vec<&'a Contract> {
        self.kernels.iter().map(|k| &k.contract).collect()
    }
}

/// The contracts to run: see [`launches`].
pub(crate) fn select<'a>(
    program: &'a Compiled,
    name: Option<&str>,
    args: &Args,
) -> Result<Selected<'a>, Vec<Diagnostic>> {
    let file = program.launch_file();
    let (name, launches) = launches(&file, name, args, "file")?;
    let kernel = |contract: &&Contract| program.kernel(&contract.entry);
    Ok(Selected { name, kernels: launches.iter().filter_map(kernel).collect() })
}

fn refusal(refused: &Refused) -> Diagnostic {
    if refused.no_device {
        Diagnostic::error(codes::NO_GPU, Span::default(), format!("no GPU was found: {}", refused.reason))
            .with_note("`--device sim` runs the same PTX without one")
    } else {
        Diagnostic::error(codes::LAUNCH_FAILED, Span::default(), format!("the launch failed: {}", refused.reason))
    }
}

/// The work of the child process: the launch, on the first device.
///
/// # Errors
/// If there is no device, or the launch fails.
pub fn work(job: &Job, tensors: &mut [Vec<u8>]) -> Result<Launched, Refused> {
    #[cfg(feature = "cuda")]
    return device::work(job, tensors);
    #[cfg(not(feature = "cuda"))]
    {
        let _ = (job, tensors);
        Err(Refused { no_device: true, reason: "this tilec was built without the feature `cuda`".to_owned() })
    }
}

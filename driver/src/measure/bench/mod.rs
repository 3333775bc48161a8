//! Measures kernels: variants of one program against each other and against cuBLAS, alternating in one process.
//!
//! The method is in `docs/performance.md`. The command compiles the variants ([`variants`], `programs`) and determines
//! the problems ([`sizes`]). A child process ([`session`]) makes data, checks results and measures. [`report`] and
//! `--format json` print the results.

#[cfg(feature = "cuda")]
mod blas;
#[cfg(feature = "cuda")]
mod device_tensors;
#[cfg(feature = "cuda")]
mod inputs;
mod libraries;
pub mod limits;
#[cfg(feature = "cuda")]
mod measure;
pub mod measured;
mod model_choice;
mod options;
pub mod product;
pub(crate) mod programs;
pub mod protocol;
#[cfg(feature = "cuda")]
mod reference;
pub mod report;
pub mod session;
pub mod sizes;
pub mod stats;
pub mod variants;
pub(crate) mod without_gpu;
#[cfg(feature = "cuda")]
mod worker;

pub use libraries::candidates as cublas_places;
pub use options::BenchOptions;

use crate::compile::Diagnostics;
use crate::console::output::write_stderr;
use crate::console::render::SourceFile;
use crate::measure::bench::model_choice::problem_name;
use crate::run::bind::MAX_TENSOR_BYTES;
use crate::run::child::ChildError;
use crate::run::diagnostic;
use crate::run::program::bind_program;
use programs::{Programs, Use};
use protocol::{Answer, Job, Loaded, Request};
use report::{BenchReport, Problem, Row};
use session::Session;
use std::process::Command;
use std::time::Duration;
use tilec_ir::codes;
use tilec_ir::diag::{Code, Diagnostic, Span};

/// The word that makes this program the child: `tilec __bench`.
pub const SUBCOMMAND: &str = "__bench";

/// Opening a device, loading programs and cuBLAS.
pub(crate) const SETUP_LIMIT: Duration = Duration::from_secs(120);
/// And for each program.
pub(crate) const SETUP_LIMIT_EACH: Duration = Duration::from_secs(10);

/// Compiles and measures. `launcher` is this program's command for a hidden subcommand: [`SUBCOMMAND`] runs
/// [`session::serve`], [`child::SUBCOMMAND`](crate::run::child::SUBCOMMAND) launches once. `progress` receives the
/// current problem, the current action, and the completed fraction of all work (0 to 1).
///
/// # Errors
/// If no variant compiles, arguments fit no problem, or there is no device.
pub fn bench(
    source: &str,
    options: &BenchOptions,
    launcher: &mut dyn FnMut(&str) -> Command,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<BenchReport, Diagnostics> {
    let programs = Programs::new(source, options)?;
    let file = programs.built.first().map_or_else(|| SourceFile::new("", ""), |p| p.compiled.source.clone());
    let fail =
        |code: Code, message: String| Diagnostics::one(file.clone(), Diagnostic::error(code, Span::default(), message));
    let jobs = jobs(&programs, options).map_err(|d| Diagnostics { source: file.clone(), errors: d.len(), list: d })?;
    let cublas = if options.cublas && programs.built.iter().any(|p| p.program.product.is_some()) {
        libraries::candidates()
    } else {
        Vec::new()
    };
    // The driver assembles each of them.
    let setup_limit = SETUP_LIMIT + SETUP_LIMIT_EACH * u32::try_from(programs.built.len()).unwrap_or(u32::MAX);
    let setup = Request::Setup { programs: programs.wire(), cublas };
    let mut report = BenchReport::new(&programs, options);
    let mut loaded: Vec<Option<Loaded>> = Vec::new();
    let mut session: Option<Session> = None;
    let count = jobs.len().max(1) as f64;
    for (i, (job, unfit)) in jobs.into_iter().enumerate() {
        let uses = &programs.uses[i];
        let name = problem_name(&job.args);
        let mut said = |what: &str, done: f64| progress(&format!("{name}: {what}"), (i as f64 + done) / count);
        if session.is_none() {
            said("starting", 0.0);
            let started = Session::start(&mut launcher(SUBCOMMAND)).and_then(|mut new| {
                let answer = new.ask(&setup, setup_limit, &mut |_, _| ())?;
                Ok((new, answer))
            });
            match started {
                Ok((new, Answer::Ready { machine, cublas, programs })) => {
                    report.ready(machine, cublas);
                    loaded = programs.into_iter().map(Result::ok).collect();
                    session = Some(new);
                }
                Ok((_, Answer::Refused(refused))) if refused.no_device => {
                    count_instead(&mut report, &programs, options, launcher, progress, refused.reason);
                    return Ok(report);
                }
                Ok((_, Answer::Refused(refused))) => return Err(fail(codes::LAUNCH_FAILED, refused.reason)),
                Ok(_) => {
                    return Err(fail(codes::LAUNCH_FAILED, "the measuring process gave an invalid answer".to_owned()));
                }
                Err(e) => return Err(fail(code_of(&e), e.to_string())),
            }
        }
        let Some(open) = session.as_mut() else { continue };
        let answer = open.ask(&Request::Measure(job.clone()), options.timeout, &mut said);
        let outcome = match answer {
            Ok(Answer::Measured(measured)) => Ok(measured),
            Ok(Answer::Refused(refused)) => Err(refused.reason),
            Ok(_) => Err("the measuring process gave an invalid answer".to_owned()),
            Err(e) => {
                // The next problem gets a new process.
                session = None;
                Err(e.to_string())
            }
        };
        let mut problem = Problem::new(&job, uses, unfit, outcome);
        for row in &mut problem.rows {
            let used = &uses[row.variant];
            row.chosen.clone_from(&used.chosen);
            row.loaded = loaded.get(used.program).copied().flatten();
            if row.check.skipped.is_some() {
                let (program, work) = (&programs.built[used.program].compiled, row.flops / 2.0);
                row.check =
                    without_gpu::interpret(program, options, &job.args, &mut launcher(without_gpu::CHILD), work);
            }
        }
        report.problems.push(problem);
    }
    Ok(report)
}

pub(crate) fn code_of(e: &ChildError) -> Code {
    match e {
        ChildError::Timeout(_) => codes::LAUNCH_TIMEOUT,
        ChildError::Start(_) | ChildError::Died { .. } => codes::LAUNCH_FAILED,
    }
}

/// Fills the report with what the simulator counts.
fn count_instead(
    report: &mut BenchReport,
    programs: &Programs,
    options: &BenchOptions,
    launcher: &mut dyn FnMut(&str) -> Command,
    progress: &mut dyn FnMut(&str, f64),
    why: String,
) {
    let runs = options.problems.len() * options.variants.len();
    let runs = format!("{runs} simulation{}", if runs == 1 { "" } else { "s" });
    write_stderr(&format!(
        "no GPU was found: the simulator counts instructions, wavefronts and sectors instead (slow): {runs}\n"
    ));
    report.simulated = Some(why);
    let count = (options.problems.len() * options.variants.len()).max(1) as f64;
    for (i, (args, uses)) in options.problems.iter().zip(&programs.uses).enumerate() {
        let row = |(variant, used): (usize, &Use)| {
            let name = format!("{}: {}", problem_name(args), options.variants[variant].label);
            let before = i * uses.len() + variant;
            write_stderr(&format!("  {} of {runs}: {name}\n", before + 1));
            progress(&name, before as f64 / count);
            let program = &programs.built[used.program].compiled;
            let counts = without_gpu::simulate(program, options, args, &mut launcher(without_gpu::CHILD));
            Row { chosen: used.chosen.clone(), ..Row::counted(variant, counts) }
        };
        let rows = uses.iter().enumerate().map(row).collect();
        report.problems.push(Problem {
            args: args.clone(),
            rows,
            references: Vec::new(),
            failed: None,
            notes: Vec::new(),
        });
    }
}

/// The jobs, each with the variants that cannot do it and why.
#[expect(clippy::type_complexity, reason = "a job and the rest")]
fn jobs(programs: &Programs, options: &BenchOptions) -> Result<Vec<(Job, Vec<(usize, String)>)>, Vec<Diagnostic>> {
    let mut jobs = Vec::new();
    for (args, uses) in options.problems.iter().zip(&programs.uses) {
        let mut fit = Vec::new();
        let mut unfit = Vec::new();
        for (i, used) in uses.iter().enumerate() {
            match bind_program(&programs.built[used.program].program.contracts(), args) {
                Ok(bound) => {
                    let bytes = bound.tensors.iter().fold(0u64, |sum, t| sum.saturating_add(t.bytes()));
                    if bytes > MAX_TENSOR_BYTES {
                        unfit.push((i, format!("its tensors have {bytes} bytes, the limit is {MAX_TENSOR_BYTES}")));
                    } else {
                        fit.push(used.program);
                    }
                }
                // A name that is wrong or missing is so for every problem.
                Err(errors) if errors.iter().any(|e| !e.depends_on_size()) => {
                    return Err(errors.iter().map(diagnostic).collect());
                }
                Err(errors) if uses.len() == 1 && options.problems.len() == 1 => {
                    return Err(errors.iter().map(diagnostic).collect());
                }
                Err(errors) => {
                    unfit.push((i, errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
                }
            }
        }
        let job = Job {
            args: args.clone(),
            programs: fit,
            rounds: options.rounds,
            seconds: options.seconds,
            seed: options.seed,
        };
        jobs.push((job, unfit));
    }
    Ok(jobs)
}

//! Finds the fastest schedule by measuring: `tilec tune`.
//!
//! `Tuner::tune` makes the candidates for a problem (`candidates`) and searches them (`search`). A child process
//! measures them (`device`), and the results are cached (`cache`). [`Tuned`] has the result; the winner is the source
//! with its values inserted (`rewrite`).

mod cache;
mod candidates;
mod device;
mod report;
mod rewrite;
mod search;

pub use device::Launcher;
pub use report::{SCHEMA, TuneReport, Tuned};

use crate::compile::Diagnostics;
use crate::compile::options::CompileOptions;
use crate::console::render::SourceFile;
use crate::contract::number::Args;
use crate::measure::bench::limits::Machine;
use crate::measure::bench::report::problem_name;
use crate::run::bind::MAX_TENSOR_BYTES;
use crate::run::diagnostic;
use crate::run::program::bind_program;
use cache::Cache;
use candidates::Space;
use device::{OnDevice, State};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};

/// How to tune.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// Compile options: definitions, target, card, passes.
    pub compile: CompileOptions,
    /// Which kernel or sequence; `None`: the only sequence of the file, or its only kernel.
    pub kernel: Option<String>,
    /// Seconds for each problem.
    pub seconds: f64,
    /// Wall clock of one measurement.
    pub timeout: Duration,
    /// Seed of the data.
    pub seed: u64,
    /// Where results are cached.
    pub cache: Keep,
}

/// Where results are cached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Keep {
    /// In the user's cache directory, if any: one file for each kernel or sequence.
    Usual,
    /// In this file, or in a file of this directory.
    At(PathBuf),
    /// Nowhere.
    Not,
}

/// Problems that can be tuned, and where.
#[derive(Debug)]
pub struct Tuner<'a> {
    source: &'a str,
    options: TuneOptions,
    entry: String,
    machine: Machine,
    cache: Cache,
    /// Why results are not cached.
    unkept: Option<String>,
}

impl<'a> Tuner<'a> {
    /// Checks that `source` has something to tune for each of `problems`, that results can be cached, and that there is
    /// a device.
    ///
    /// # Errors
    /// An error of the program, of an argument, of the cache, or no device: in this order.
    pub fn new(
        source: &'a str,
        options: TuneOptions,
        problems: &[Args],
        launcher: Launcher<'_>,
    ) -> Result<Tuner<'a>, Diagnostics> {
        let mut entry = String::new();
        for args in problems {
            let mut space = Space::new(source, &options.compile, options.kernel.as_deref(), args)?;
            entry = check(&mut space, args, &options)?;
        }
        let (cache, unkept) = open(&options.cache, &entry)?;
        let machine = device::machine(launcher)?;
        Ok(Tuner { source, options, entry, machine, cache, unkept })
    }

    /// A report without a problem yet.
    pub fn report(&self) -> TuneReport {
        TuneReport::new(&self.entry, &self.machine, &self.options.compile)
    }

    /// Tunes for one problem; `progress` hears what is done and which share of the time is spent.
    ///
    /// # Errors
    /// No candidate works.
    pub fn tune(
        &mut self,
        args: &Args,
        launcher: Launcher<'_>,
        progress: &mut dyn FnMut(&str, f64),
    ) -> Result<Tuned, Diagnostics> {
        let began = Instant::now();
        let name = problem_name(args);
        let mut said = |what: &str, done: f64| progress(&format!("{name}: {what}"), done);
        let space = Space::new(self.source, &self.options.compile, self.options.kernel.as_deref(), args)?;
        let mut device = OnDevice {
            space,
            args: args.clone(),
            cache: &mut self.cache,
            machine: &self.machine,
            launcher,
            progress: &mut said,
            kernel: self.options.kernel.clone(),
            seed: self.options.seed,
            timeout: self.options.timeout,
            budget: self.options.seconds,
            began,
            state: State::default(),
        };
        let found = search::search(&mut device, self.options.seconds)?;
        match found {
            Ok(found) => {
                device.state.notes.extend(self.unkept.take());
                Tuned::new(&mut device, &found)
            }
            Err(search::Nothing(dropped)) => {
                let message = format!("of {} candidates none works", dropped.len());
                let mut d = Diagnostic::error(codes::LAUNCH_FAILED, Span::default(), message);
                if let Some((i, first)) = dropped.iter().next() {
                    d = d.with_note(format!("{}: {}", device.space.list[*i], first.why));
                }
                Err(Diagnostics::one(SourceFile::new("", ""), d))
            }
        }
    }
}

/// Checks that the problem can be measured; returns the name of the program.
fn check(space: &mut Space<'_>, args: &Args, options: &TuneOptions) -> Result<String, Diagnostics> {
    let file = SourceFile::new(&options.compile.source_name, "");
    let fail = |list: Vec<Diagnostic>| Diagnostics { source: file.clone(), errors: list.len(), list };
    let Ok(made) = space.compile_candidate(0) else { return Ok(String::new()) };
    let bound = bind_program(&made.built.program.contracts(), args)
        .map_err(|errors| fail(errors.iter().map(diagnostic).collect()))?;
    let bytes = bound.tensors.iter().fold(0u64, |sum, t| sum.saturating_add(t.bytes()));
    if bytes > MAX_TENSOR_BYTES {
        let message = format!("the tensors have {bytes} bytes together, the limit is {MAX_TENSOR_BYTES}");
        return Err(fail(vec![Diagnostic::error(codes::TOO_BIG_TO_RUN, Span::default(), message)]));
    }
    Ok(made.built.program.name.clone())
}

/// The results so far; the usual place is done without where it cannot be had.
fn open(keep: &Keep, entry: &str) -> Result<(Cache, Option<String>), Diagnostics> {
    let file = |directory: &Path| directory.join(format!("{entry}.jsonl"));
    let fail = |path: &Path, e: std::io::Error| format!("results cannot be kept in `{}`: {e}", path.display());
    match keep {
        Keep::Not => Ok((Cache::default(), None)),
        Keep::Usual => {
            let Some(path) = cache::directory().map(|d| file(&d)) else { return Ok((Cache::default(), None)) };
            match Cache::open(&path) {
                Ok(cache) => Ok((cache, None)),
                Err(e) => Ok((Cache::default(), Some(fail(&path, e)))),
            }
        }
        Keep::At(path) => {
            let path = if path.is_dir() { file(path) } else { path.clone() };
            let cache = Cache::open(&path).map_err(|e| {
                let d = Diagnostic::error(codes::NOT_WRITABLE, Span::default(), fail(&path, e));
                let note = "`--cache` names a file of results that `tilec tune` writes, or a directory for it";
                Diagnostics::one(SourceFile::new("", ""), d.with_note(note))
            })?;
            Ok((cache, None))
        }
    }
}

/// The name of the file for the winner: `gemm-M4096-N4096-K4096.tile`.
pub fn file_name(stem: &str, args: &Args) -> String {
    let problem = problem_name(args).replace('=', "");
    let name = format!("{stem} {problem}").trim_end().replace(' ', "-");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    format!("{}.tile", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Number;

    #[test]
    fn files_are_called_by_their_problem() {
        let args: Args = [("K", 8.into()), ("M", 16.into()), ("alpha", Number::Float(-0.5)), ("N", 4.into())]
            .map(|(name, x): (&str, Number)| (name.to_owned(), x))
            .into();
        assert_eq!(file_name("gemm", &args), "gemm-M16-N4-K8-alpha-0.5.tile");
        assert_eq!(file_name("a b/ü", &Args::new()), "a-b__.tile");
    }
}

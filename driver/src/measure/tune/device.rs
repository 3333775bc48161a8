//! Measures candidates in a child process, and stores the outcomes in the cache.

use super::cache::Cache;
use super::candidates::Space;
use super::search::{DropReason, Effort, Measurement, Measurer, Outcome};
use crate::compile::Diagnostics;
use crate::console::render::SourceFile;
use crate::contract::hash::hash;
use crate::contract::number::Args;
use crate::measure::bench::limits::Machine;
use crate::measure::bench::protocol::{Answer, Check, Job, Request, Series};
use crate::measure::bench::session::Session;
use crate::measure::bench::{BenchOptions, SETUP_LIMIT, SETUP_LIMIT_EACH, SUBCOMMAND, code_of, without_gpu};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};
use tilec_ir::codes;
use tilec_ir::diag::{Code, Diagnostic, Span};

/// A batch counts as hanging after this time plus `TIMES` times the last batch's time.
const PATIENCE: Duration = Duration::from_secs(20);
const TIMES: f64 = 5.0;

/// Makes this program's command with a hidden subcommand.
pub type Launcher<'a> = &'a mut dyn FnMut(&str) -> Command;

/// The candidates for a problem on the device.
pub(super) struct OnDevice<'a, 's> {
    pub(super) space: Space<'s>,
    pub(super) args: Args,
    pub(super) cache: &'a mut Cache,
    pub(super) machine: &'a Machine,
    pub(super) launcher: Launcher<'a>,
    /// Hears what is done, and which share of the time is spent.
    pub(super) progress: &'a mut dyn FnMut(&str, f64),
    pub(super) kernel: Option<String>,
    pub(super) seed: u64,
    pub(super) timeout: Duration,
    pub(super) budget: f64,
    pub(super) began: Instant,
    pub(super) state: State,
}

/// State that changes while measuring.
#[derive(Default)]
pub(super) struct State {
    /// A child with the programs of these candidates.
    open: Option<(Vec<usize>, Session)>,
    /// Candidates whose results were not compared, and why.
    pub(super) unchecked: BTreeMap<usize, String>,
    /// Multiply-adds, by candidate.
    work: f64,
    /// Seconds that a job took, for each of its programs.
    each: Option<f64>,
    /// Candidates of which something was known before.
    pub(super) cached: usize,
    /// Candidates that do not compile.
    pub(super) refused: usize,
    /// Further notes.
    pub(super) notes: Vec<String>,
}

/// Opens a device and lets it go.
///
/// # Errors
/// There is none.
pub(super) fn machine(launcher: Launcher<'_>) -> Result<Machine, Diagnostics> {
    let setup = Request::Setup { programs: Vec::new(), cublas: Vec::new() };
    let asked = Session::start(&mut launcher(SUBCOMMAND)).and_then(|mut s| s.ask(&setup, SETUP_LIMIT, &mut |_, _| ()));
    match asked {
        Ok(Answer::Ready { machine, .. }) => Ok(machine),
        Ok(Answer::Refused(refused)) if refused.no_device => {
            let d = Diagnostic::error(codes::NO_GPU, Span::default(), format!("no GPU was found: {}", refused.reason));
            Err(Diagnostics::one(
                SourceFile::new("", ""),
                d.with_note(
                    "tuning takes times; what the model chooses without one is `tilec IN.tile --for M=..,N=..,K=..`",
                )
                .with_note("`tilec bench` counts on the simulator, with `--variant NAME=A/B` for values that you name"),
            ))
        }
        Ok(Answer::Refused(refused)) => Err(failed(codes::LAUNCH_FAILED, refused.reason)),
        Ok(_) => Err(failed(codes::LAUNCH_FAILED, "the measuring process gave an invalid answer".to_owned())),
        Err(e) => Err(failed(code_of(&e), e.to_string())),
    }
}

fn failed(code: Code, message: String) -> Diagnostics {
    Diagnostics::one(SourceFile::new("", ""), Diagnostic::error(code, Span::default(), message))
}

/// A batch that came to nothing.
struct Broken {
    why: String,
    /// The candidate whose first launch it was.
    blamed: Option<usize>,
    /// Whether the child died of it, so that it would do so again.
    for_good: bool,
}

impl OnDevice<'_, '_> {
    /// The cache's key of a candidate; `None`: it does not compile.
    fn key(&mut self, candidate: usize) -> Option<String> {
        let own = self.space.compile_candidate(0).ok()?.code.clone();
        let code = self.space.compile_candidate(candidate).ok()?.code.clone();
        let args: Vec<String> = self.args.iter().map(|(name, x)| format!("{name}={x}")).collect();
        let cc = self.machine.cc.to_string();
        Some(hash(&[
            &code,
            &own,
            &args.join(" "),
            &self.machine.name,
            &cc,
            &self.machine.driver,
            &self.seed.to_string(),
        ]))
    }

    /// A job on programs that are loaded, or loaded for it.
    fn attempt(&mut self, list: &[usize], effort: Effort) -> Result<Vec<Result<Series, String>>, Broken> {
        let broken = |why: String, blamed: Option<usize>, for_good: bool| Broken { why, blamed, for_good };
        let place = |open: &[usize], i: &usize| open.iter().position(|o| o == i);
        let loaded = self.state.open.as_ref().is_some_and(|(open, _)| list.iter().all(|i| place(open, i).is_some()));
        if !loaded {
            self.state.open = None;
            let mut programs = Vec::new();
            for &i in list {
                let made = self.space.compile_candidate(i).map_err(|why| broken(why.to_owned(), Some(i), false))?;
                programs.push(made.built.program.clone());
            }
            let limit = SETUP_LIMIT + SETUP_LIMIT_EACH * u32::try_from(list.len()).unwrap_or(u32::MAX);
            let setup = Request::Setup { programs, cublas: Vec::new() };
            let mut session =
                Session::start(&mut (self.launcher)(SUBCOMMAND)).map_err(|e| broken(e.to_string(), None, false))?;
            match session.ask(&setup, limit, &mut |_, _| ()) {
                Ok(Answer::Ready { .. }) => self.state.open = Some((list.to_vec(), session)),
                Ok(Answer::Refused(refused)) => return Err(broken(refused.reason, None, false)),
                Ok(_) => return Err(broken("the measuring process gave an invalid answer".to_owned(), None, false)),
                Err(e) => return Err(broken(e.to_string(), None, true)),
            }
        }
        let began = Instant::now();
        let Some((open, session)) = &mut self.state.open else {
            return Err(broken("the measuring process has ended".to_owned(), None, false));
        };
        let job = Job {
            args: self.args.clone(),
            programs: list.iter().filter_map(|i| place(open, i)).collect(),
            rounds: effort.rounds,
            seconds: effort.seconds * list.len() as f64,
            seed: self.seed,
        };
        let expected = self.state.each.map(|each| each * list.len() as f64 + job.seconds);
        let patience = |s: f64| PATIENCE + Duration::try_from_secs_f64(TIMES * s).unwrap_or(self.timeout);
        let limit = expected.map_or(self.timeout, patience).min(self.timeout);
        let answer = session.ask(&Request::Measure(job), limit, &mut |_, _| ());
        let blamed = session.first_launched().and_then(|place| list.get(place)).copied();
        let result = match answer {
            Ok(Answer::Measured(measured)) => {
                for note in measured.notes {
                    if !self.state.notes.contains(&note) {
                        self.state.notes.push(note);
                    }
                }
                Ok(measured.programs)
            }
            // A fault destroys the context; lack of memory does not.
            Ok(Answer::Refused(refused)) => Err(broken(refused.reason, blamed, blamed.is_some())),
            Ok(_) => Err(broken("the measuring process gave an invalid answer".to_owned(), blamed, false)),
            Err(e) => Err(broken(e.to_string(), blamed, true)),
        };
        match &result {
            Ok(_) => self.state.each = Some(began.elapsed().as_secs_f64() / list.len().max(1) as f64),
            Err(_) => self.state.open = None,
        }
        result
    }

    /// The outcomes of a batch; a candidate that breaks it is found, and the others are measured without it.
    fn outcomes(&mut self, list: &[usize], effort: Effort) -> BTreeMap<usize, Outcome> {
        let mut rest = list.to_vec();
        let mut all = BTreeMap::new();
        while !rest.is_empty() {
            match self.attempt(&rest, effort) {
                Ok(series) => {
                    all.extend(rest.iter().zip(series).map(|(&i, s)| (i, self.outcome(i, s))).collect::<Vec<_>>());
                    break;
                }
                Err(Broken { why, blamed, for_good }) => {
                    let blamed = blamed.or(if let [only] = rest[..] { Some(only) } else { None });
                    if let Some(blamed) = blamed {
                        all.insert(blamed, Err(DropReason { why, for_good }));
                        rest.retain(|i| *i != blamed);
                    } else {
                        // Nobody was launched for the first time: one half is to blame, or both are.
                        let (a, b) = rest.split_at(rest.len() / 2);
                        all.extend(self.outcomes(a, effort));
                        all.extend(self.outcomes(b, effort));
                        break;
                    }
                }
            }
        }
        all
    }

    fn outcome(&mut self, candidate: usize, series: Result<Series, String>) -> Outcome {
        let series = series.map_err(|why| DropReason { why, for_good: true })?;
        if series.check.wrong > 0 {
            return Err(wrong(&series.check));
        }
        self.state.work = series.flops / 2.0;
        if let Some(why) = series.check.skipped {
            self.state.unchecked.insert(candidate, why);
        }
        Ok(series.us)
    }
}

/// A result that is wrong.
fn wrong(check: &Check) -> DropReason {
    let shown = check.shown.first().map_or_else(String::new, |s| format!(": {s}"));
    DropReason { why: format!("{} elements are wrong{shown}", check.wrong), for_good: true }
}

impl Measurer for OnDevice<'_, '_> {
    type Error = Diagnostics;

    fn count(&self) -> usize {
        self.space.list.len()
    }

    fn predicted(&self, candidate: usize) -> f64 {
        self.space.list[candidate].predicted
    }

    fn known(&mut self, candidate: usize) -> Option<Result<Measurement, DropReason>> {
        if let Err(why) = self.space.compile_candidate(candidate) {
            let why = why.to_owned();
            self.state.refused += 1;
            return Some(Err(DropReason { why, for_good: false }));
        }
        let key = self.key(candidate)?;
        let known = self.cache.get(&key).cloned();
        self.state.cached += usize::from(known.is_some());
        known
    }

    fn measure(&mut self, batch: &[usize], effort: Effort) -> Result<Vec<Outcome>, Diagnostics> {
        let mut all = self.outcomes(batch, effort);
        let lost = || Err(DropReason { why: "it was not measured".to_owned(), for_good: false });
        Ok(batch.iter().map(|i| all.remove(i).unwrap_or_else(lost)).collect())
    }

    fn keep(&mut self, candidate: usize, found: &Result<Measurement, DropReason>) {
        let Some(key) = self.key(candidate) else { return };
        let args: Vec<String> = self.args.iter().map(|(name, x)| format!("{name}={x}")).collect();
        let what = format!("{} for {} on {}", self.space.list[candidate], args.join(" "), self.machine.name);
        if let Err(e) = self.cache.put(&key, &what, found) {
            let note = format!("results cannot be kept: {e}");
            if !self.state.notes.contains(&note) {
                self.state.notes.push(note);
            }
        }
    }

    fn variations(&mut self, candidate: usize) -> Vec<usize> {
        self.space.variations(candidate)
    }

    fn verify(&mut self, candidate: usize) -> Result<(), DropReason> {
        if !self.state.unchecked.contains_key(&candidate) {
            return Ok(());
        }
        let options = BenchOptions {
            kernel: self.kernel.clone(),
            variants: Vec::new(),
            problems: Vec::new(),
            cublas: false,
            rounds: 1,
            seconds: 1.0,
            timeout: self.timeout,
            seed: self.seed,
            ladder: false,
        };
        let work = self.state.work;
        // The device is free for the launch.
        self.state.open = None;
        let Ok(made) = self.space.compile_candidate(candidate) else { return Ok(()) };
        let mut command = (self.launcher)(without_gpu::CHILD);
        let check = without_gpu::interpret(&made.built.compiled, &options, &self.args, &mut command, work);
        match check.skipped {
            _ if check.wrong > 0 => Err(wrong(&check)),
            Some(why) => {
                self.state.unchecked.insert(candidate, why);
                Ok(())
            }
            None => {
                self.state.unchecked.remove(&candidate);
                Ok(())
            }
        }
    }

    fn elapsed(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn progress(&mut self, what: &str) {
        let done = self.elapsed() / self.budget.max(0.01);
        (self.progress)(what, done);
    }
}

#[cfg(all(test, unix))]
#[path = "device_tests.rs"]
mod tests;

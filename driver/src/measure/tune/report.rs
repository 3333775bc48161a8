//! The report of a search, and the text of the fastest candidate.

use super::candidates::Setting;
use super::device::OnDevice;
use super::search::SearchResult;
use crate::compile::Diagnostics;
use crate::compile::options::CompileOptions;
use crate::console::render::SourceFile;
use crate::contract::number::Args;
use crate::measure::bench::limits::Machine;
use crate::measure::bench::report::problem_name;
use crate::measure::bench::stats::Summary;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_passes::choose::Card;

/// The value of `schema` in the JSON.
pub const SCHEMA: &str = "tilec.tune/1";
/// A choice is good if it takes at most this factor of the tuned one's time.
const GOOD: f64 = 1.05;
/// Dropped candidates that the table names.
const SHOWN: usize = 5;

/// Everything that was found out. `Display` is the table.
#[derive(Clone, Debug, Serialize)]
pub struct TuneReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The kernel or sequence.
    pub entry: String,
    /// The device.
    pub machine: Machine,
    /// The target.
    pub target: &'static str,
    /// The card that the model predicts for.
    pub card: &'static str,
    /// The problems, in order.
    pub problems: Vec<Tuned>,
}

/// A problem.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    /// Values of sizes, strides and scalars.
    pub args: Args,
    /// Number of candidates, including variations.
    pub candidates: usize,
    /// Number of measured candidates, cached ones included.
    pub measured: usize,
    /// Number of cached candidates.
    pub cached: usize,
    /// Number of candidates left out because the time limit was reached.
    pub left: usize,
    /// What was dropped.
    pub dropped: Vec<Out>,
    /// The model's own choice.
    pub chosen: Schedule,
    /// The winner.
    pub tuned: Schedule,
    /// Time of the model's own choice over that of the winner, of the rounds of the final; above 1 tuning gains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Summary>,
    /// Why the winner's result was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    /// The file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The source with the winner's values.
    #[serde(skip)]
    text: String,
}

/// A candidate that was dropped.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Out {
    /// Its values.
    pub values: String,
    /// In words.
    pub why: String,
}

/// Values for the parameters that were `auto`.
#[derive(Clone, Debug, Serialize)]
pub struct Schedule {
    /// By kernel and name.
    pub values: BTreeMap<String, BTreeMap<String, i64>>,
    /// Blocks of clusters, of kernels whose schedule names them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, [i64; 2]>,
    /// Whether TMA stores results, for kernels whose schedule decides it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stage_stores: BTreeMap<String, bool>,
    /// Whether blocks share tiles along the reduction, for kernels whose schedule decides it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stream_k: BTreeMap<String, bool>,
    /// Blocks of a cluster that share a tile along the reduction, for kernels whose schedule decides it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub split_k: BTreeMap<String, i64>,
    /// In words.
    pub words: String,
    /// Microseconds that are predicted.
    pub predicted_us: f64,
    /// Microseconds in the final, round by round; empty: it did not get there.
    pub us: Vec<f64>,
    /// Their summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Summary>,
}

impl Schedule {
    fn new(device: &OnDevice<'_, '_>, candidate: usize, found: &SearchResult) -> Schedule {
        let c = &device.space.list[candidate];
        let values = |s: &Setting| (s.kernel.clone(), s.values.iter().cloned().collect());
        let us = found.finals.iter().find(|(i, _)| *i == candidate).map(|(_, us)| us.clone()).unwrap_or_default();
        Schedule {
            values: c.settings.iter().map(values).collect(),
            clusters: c.settings.iter().filter_map(|s| Some((s.kernel.clone(), s.cluster?))).collect(),
            stage_stores: c.settings.iter().filter_map(|s| Some((s.kernel.clone(), s.stage_stores?))).collect(),
            stream_k: c.settings.iter().filter_map(|s| Some((s.kernel.clone(), s.stream_k?))).collect(),
            split_k: c.settings.iter().filter_map(|s| Some((s.kernel.clone(), s.split_k?))).collect(),
            words: c.to_string(),
            predicted_us: c.predicted * 1e6,
            time: Summary::of(&us),
            us,
        }
    }

    fn microseconds(&self) -> String {
        let predicted = format!("{:.1} us predicted", self.predicted_us);
        match &self.time {
            Some(time) => format!("{:.1} us measured, {predicted}", time.median),
            None => format!("not measured, {predicted}"),
        }
    }
}

impl Tuned {
    pub(super) fn new(device: &mut OnDevice<'_, '_>, found: &SearchResult) -> Result<Tuned, Diagnostics> {
        let text = device.space.compile_candidate(found.winner).map(|m| m.text.clone()).map_err(|why| {
            let d = Diagnostic::error(
                codes::LAUNCH_FAILED,
                Span::default(),
                format!("the winner failed afterwards: {why}"),
            );
            Diagnostics::one(SourceFile::new("", ""), d)
        })?;
        let out = |(i, dropped): (&usize, &super::search::DropReason)| Out {
            values: device.space.list[*i].to_string(),
            why: dropped.why.clone(),
        };
        Ok(Tuned {
            args: device.args.clone(),
            candidates: device.space.list.len(),
            measured: found.looked.saturating_sub(device.state.refused),
            cached: device.state.cached,
            left: found.left,
            dropped: found.dropped.iter().map(out).collect(),
            chosen: Schedule::new(device, 0, found),
            tuned: Schedule::new(device, found.winner, found),
            gain: found.gain().filter(|_| found.reference == 0),
            unchecked: device.state.unchecked.get(&found.winner).cloned(),
            seconds: device.began.elapsed().as_secs_f64(),
            notes: std::mem::take(&mut device.state.notes),
            file: None,
            text,
        })
    }

    /// The winner as a program: the source with the values in the place of `auto`, and in front of it what they are for, how fast
    /// they were, and `commands`: how it was made and is compiled.
    pub fn text(&self, source_name: &str, report: &TuneReport, commands: &[String]) -> String {
        let mut lines = vec![
            format!(
                "{source_name}, tuned for {} on {}, {}.",
                problem_name(&self.args),
                report.machine.name,
                report.target
            ),
            format!("{}: {}.", self.tuned.words, self.tuned.microseconds()),
        ];
        lines.push(if self.tuned.words == self.chosen.words {
            "The model chooses the same.".to_owned()
        } else {
            format!("The model chooses {}: {}.", self.chosen.words, self.chosen.microseconds())
        });
        lines.push(String::new());
        lines.extend(commands.iter().map(|c| format!("    {c}")));
        let mut text = String::new();
        for line in lines {
            // A name may hold anything; a comment ends with its line.
            let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            text.push_str(format!("// {line}").trim_end());
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.text);
        text
    }

    /// Whether the model's own choice takes hardly longer than the winner.
    fn good(&self) -> bool {
        self.gain.is_some_and(|g| g.median <= GOOD)
    }
}

impl TuneReport {
    pub(super) fn new(entry: &str, machine: &Machine, options: &CompileOptions) -> TuneReport {
        TuneReport {
            schema: SCHEMA,
            entry: entry.to_owned(),
            machine: machine.clone(),
            target: options.target.name(),
            card: options.card.unwrap_or_else(|| Card::of(options.target)).name,
            problems: Vec::new(),
        }
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings, numbers and lists of them");
        text.push('\n');
        text
    }
}

impl fmt::Display for TuneReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.machine;
        writeln!(
            f,
            "{} for {} on {} (sm_{}, CUDA {}), predicted for {}",
            self.entry, self.target, m.name, m.cc, m.driver, self.card
        )?;
        self.problems.iter().try_for_each(|p| problem(f, p))?;
        if self.problems.len() > 1 {
            let good = self.problems.iter().filter(|p| p.good()).count();
            let least = (GOOD - 1.0) * 100.0;
            writeln!(
                f,
                "\nthe model's own choice is within {least:.0} % of the tuned one on {good} of {}",
                self.problems.len()
            )?;
        }
        Ok(())
    }
}

fn problem(f: &mut fmt::Formatter<'_>, p: &Tuned) -> fmt::Result {
    let before = if p.cached > 0 { format!(" ({} of them before)", p.cached) } else { String::new() };
    let left = if p.left > 0 { format!(", {} not measured for lack of time", p.left) } else { String::new() };
    writeln!(
        f,
        "\n{}: {} of {} candidates measured{before}{left}, {:.0} s",
        problem_name(&p.args),
        p.measured,
        p.candidates,
        p.seconds
    )?;
    writeln!(f, "          {:>9}  {:>6}  {:>9}", "us", "spread", "predicted")?;
    let same = p.tuned.words == p.chosen.words;
    for (name, s) in [("chosen", &p.chosen), ("tuned", &p.tuned)].into_iter().take(if same { 1 } else { 2 }) {
        let (us, spread) = match &s.time {
            Some(time) => (format!("{:.2}", time.median), format!("{:.1}%", 100.0 * time.spread())),
            None => ("-".to_owned(), "-".to_owned()),
        };
        writeln!(f, "  {name:<8}{us:>9}  {spread:>6}  {:>9.2}  {}", s.predicted_us, s.words)?;
    }
    match &p.gain {
        _ if same => writeln!(f, "  nothing is faster by more than the spread: the model's own choice stays")?,
        Some(gain) => writeln!(f, "  {:.3} times as fast ({:.3} to {:.3})", gain.median, gain.min, gain.max)?,
        None => writeln!(f, "  the model's own choice does not work")?,
    }
    for out in p.dropped.iter().take(SHOWN) {
        writeln!(f, "  dropped: {}: {}", out.values, out.why)?;
    }
    if p.dropped.len() > SHOWN {
        writeln!(f, "  and {} more dropped", p.dropped.len() - SHOWN)?;
    }
    if let Some(why) = &p.unchecked {
        writeln!(f, "  the result was compared with nothing: {why}")?;
    }
    p.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))?;
    p.file.iter().try_for_each(|file| writeln!(f, "  written to {file}"))
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

//! Reports of a measurement: a table, or JSON.

pub use super::model_choice::{Chosen, problem_name};

use super::limits::{Bottleneck, Machine, Unit};
use super::programs::{Programs, Use};
use super::protocol::{Check, Counts, Job, Loaded, Measured, Reference};
use super::stats::{Summary, geometric_mean, ratios};
use crate::contract::number::Args;
use crate::measure::bench::options::BenchOptions;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// The value of `schema` in the JSON.
pub const SCHEMA: &str = "tilec.bench/1";

/// Everything that was measured. `Display` is the table.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The date in UTC, given by the caller: `2026-11-27`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The kernel.
    pub entry: String,
    /// The device.
    pub machine: Option<Machine>,
    /// Its cuBLAS.
    pub cublas: Option<Library>,
    /// The programs.
    pub variants: Vec<VariantReport>,
    /// Whether they are the ladder of passes.
    pub ladder: bool,
    /// Rounds requested.
    pub rounds: u32,
    /// Why there are counts of the simulator in place of times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<String>,
    /// The problems, in order.
    pub problems: Vec<Problem>,
}

/// cuBLAS, or why there is none.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Library {
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// A program.
#[derive(Clone, Debug, Serialize)]
pub struct VariantReport {
    /// What it is called.
    pub label: String,
    /// Its target.
    pub target: String,
    /// The instruction of its products.
    pub atom: String,
    /// The unit of its products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
}

/// A problem.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// Values of sizes, strides and scalars.
    pub args: Args,
    /// A row per variant.
    pub rows: Vec<Row>,
    /// cuBLAS.
    pub references: Vec<Reference>,
    /// Why nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
}

/// A variant at a problem.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Index of the variant.
    pub variant: usize,
    /// Microseconds of a launch, round by round; empty if it was not measured.
    pub us: Vec<f64>,
    /// Their summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Summary>,
    /// cuBLAS's time over ours, of the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Summary>,
    /// Index of the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<usize>,
    /// Launches per round.
    pub launches: u32,
    /// Sets of tensors they rotate through.
    pub sets: u32,
    /// Floating-point operations; 0 where the kernel is not a product.
    pub flops: f64,
    /// Bytes, each tensor once.
    pub bytes: f64,
    /// What was compared.
    pub check: Check,
    /// The chosen values of `auto` parameters, kernel by kernel; empty if there was no choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<Chosen>,
    /// The driver's JIT compilation of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaded: Option<Loaded>,
    /// Counts of the simulator, if there was no GPU to measure on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Why it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Row {
    /// A row of counts in place of times.
    pub(super) fn counted(variant: usize, counts: Result<(Counts, Check), String>) -> Row {
        match counts {
            Ok((counts, check)) => {
                Row { counts: Some(counts), check, failed: None, ..Row::failed(variant, String::new()) }
            }
            Err(why) => Row::failed(variant, why),
        }
    }

    pub(super) fn failed(variant: usize, why: String) -> Row {
        Row {
            variant,
            us: Vec::new(),
            time: None,
            ratio: None,
            reference: None,
            launches: 0,
            sets: 0,
            flops: 0.0,
            bytes: 0.0,
            check: Check::default(),
            chosen: Vec::new(),
            loaded: None,
            counts: None,
            failed: Some(why),
        }
    }
}

impl Problem {
    /// Makes the report from the results of the measuring process. `uses`: the programs of the variants; `unfit`:
    /// variants that cannot do the job.
    pub(super) fn new(
        job: &Job,
        uses: &[Use],
        unfit: Vec<(usize, String)>,
        outcome: Result<Measured, String>,
    ) -> Problem {
        let mut rows: Vec<Row> = unfit.into_iter().map(|(variant, why)| Row::failed(variant, why)).collect();
        // A job names its programs in the order of the variants that can do it.
        let fit: Vec<usize> = (0..uses.len()).filter(|&v| rows.iter().all(|r| r.variant != v)).collect();
        let (mut references, mut notes, mut failed) = (Vec::new(), Vec::new(), None);
        match outcome {
            Ok(measured) => {
                references = measured.references;
                notes = measured.notes;
                for (&variant, result) in fit.iter().zip(measured.programs) {
                    rows.push(match result {
                        Err(why) => Row::failed(variant, why),
                        Ok(series) => {
                            let theirs = series.reference.and_then(|r| references.get(r));
                            Row {
                                variant,
                                time: Summary::of(&series.us),
                                ratio: theirs.and_then(|r: &Reference| Summary::of(&ratios(&r.us, &series.us))),
                                us: series.us,
                                reference: series.reference,
                                launches: series.launches,
                                sets: series.sets,
                                flops: series.flops,
                                bytes: series.bytes,
                                check: series.check,
                                chosen: Vec::new(),
                                loaded: None,
                                counts: None,
                                failed: None,
                            }
                        }
                    });
                }
            }
            Err(why) => failed = Some(why),
        }
        rows.sort_by_key(|row| row.variant);
        Problem { args: job.args.clone(), rows, references, failed, notes }
    }
}

impl BenchReport {
    pub(super) fn new(programs: &Programs, options: &BenchOptions) -> BenchReport {
        let first = programs.uses.first().map_or(&[][..], Vec::as_slice);
        let used = || first.iter().map(|used| &programs.built[used.program].program);
        let variants = options.variants.iter().zip(used()).map(|(variant, program)| {
            let input = program.product.as_ref().and_then(|p| program.launches.first()?.param(&p.a.tensor));
            let unit = input.and_then(|p| p.kind.tensor()).map(|t| Unit::of(t.elem));
            VariantReport {
                label: variant.label.clone(),
                target: program.launches.first().map_or_else(String::new, |c| c.target.clone()),
                atom: program.atom.clone(),
                unit,
            }
        });
        BenchReport {
            schema: SCHEMA,
            date: None,
            command: None,
            entry: used().next().map_or_else(String::new, |p| p.name.clone()),
            machine: None,
            cublas: None,
            variants: variants.collect(),
            ladder: options.ladder,
            rounds: options.rounds,
            simulated: None,
            problems: Vec::new(),
        }
    }

    /// The measuring process's answer when it was ready.
    pub(super) fn ready(&mut self, machine: Machine, cublas: Option<Result<(String, PathBuf), String>>) {
        self.machine = Some(machine);
        self.cublas = cublas.map(|library| match library {
            Ok((version, file)) => Library { version: Some(version), file: Some(file), absent: None },
            Err(absent) => Library { version: None, file: None, absent: Some(absent) },
        });
    }

    /// Whether everything was measured and right.
    pub fn ok(&self) -> bool {
        self.problems
            .iter()
            .all(|p| p.failed.is_none() && p.rows.iter().all(|r| r.failed.is_none() && r.check.wrong == 0))
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings, numbers and lists of them");
        text.push('\n');
        text
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.entry)?;
        if let Some(m) = &self.machine {
            let giga = f64::from(m.clock_khz) / 1e6;
            write!(f, " on {} (sm_{}, {} multiprocessors, {giga:.2} GHz", m.name, m.cc, m.sm_count)?;
            if let Some(bytes) = m.peak_bytes() {
                write!(f, ", {:.2} TB/s", bytes / 1e12)?;
            }
            write!(f, ", CUDA {})", m.driver)?;
        }
        if let Some(why) = &self.simulated {
            return self.counted(f, why);
        }
        match &self.cublas {
            Some(Library { version: Some(version), .. }) => writeln!(f, ", cuBLAS {version}")?,
            Some(Library { absent: Some(why), .. }) => writeln!(f, "\nmeasured alone: {why}")?,
            _ => writeln!(f)?,
        }
        let head: Vec<&str> = match self.ladder {
            true => vec!["", "us", "spread", "rate", "limit", "cuBLAS", "", "gain", "checked"],
            false => vec!["", "us", "spread", "rate", "limit", "cuBLAS", "", "checked"],
        };
        let tables: Vec<(usize, Vec<Vec<String>>)> =
            self.problems.iter().enumerate().map(|(i, p)| (i, self.lines(p))).collect();
        let mut widths: Vec<usize> = head.iter().map(|h| h.chars().count()).collect();
        for line in tables.iter().flat_map(|(_, lines)| lines) {
            // A sentence in place of numbers takes the room that it needs.
            let cells = if line.len() > 2 { line.len() } else { 1 };
            for (width, cell) in widths.iter_mut().zip(&line[..cells]) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for (i, lines) in tables {
            let problem = &self.problems[i];
            writeln!(f, "\n{}", problem_name(&problem.args))?;
            if let Some(why) = &problem.failed {
                writeln!(f, "  not measured: {why}")?;
            }
            if lines.iter().any(|line| line.len() > 2) {
                write_line(f, &head.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>(), &widths)?;
            }
            for line in &lines {
                write_line(f, line, &widths)?;
            }
            self.notes(f, problem)?;
            for reference in &problem.references {
                if let (Some(why), Some(Library { version: Some(_), .. })) = (&reference.refused, &self.cublas) {
                    writeln!(f, "  note: no cuBLAS: {why}")?;
                }
            }
            problem.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        }
        self.means(f)?;
        self.unchecked(f)
    }
}

impl BenchReport {
    /// The cells of a problem's table.
    fn lines(&self, problem: &Problem) -> Vec<Vec<String>> {
        let mut lines = Vec::new();
        for (i, reference) in problem.references.iter().enumerate() {
            let Some(time) = Summary::of(&reference.us) else { continue };
            let Some(row) = problem.rows.iter().find(|row| row.reference == Some(i)) else { continue };
            let name = if problem.references.len() > 1 { format!("cuBLAS {}", i + 1) } else { "cuBLAS".to_owned() };
            let mut line = vec![name];
            line.extend(self.timing(row, &time));
            line.extend([String::new(), String::new()]);
            if self.ladder {
                line.push(String::new());
            }
            let (choice, of) = reference.choice;
            line.push(format!("way {} of {of}", choice + 1));
            lines.push(line);
        }
        let mut before: Option<f64> = None;
        for row in &problem.rows {
            let mut line = vec![self.variants[row.variant].label.clone()];
            match (&row.failed, &row.time) {
                (Some(why), _) => line.push(format!("not measured: {why}")),
                (None, None) => line.push("not measured".to_owned()),
                (None, Some(time)) => {
                    line.extend(self.timing(row, time));
                    match &row.ratio {
                        Some(r) => line.extend([format!("{:.3}", r.median), format!("{:.3}..{:.3}", r.min, r.max)]),
                        None => line.extend([String::new(), String::new()]),
                    }
                    if self.ladder {
                        line.push(before.map_or_else(String::new, |before| format!("x{:.2}", before / time.median)));
                    }
                    line.push(checked(&row.check));
                    before = Some(time.median);
                }
            }
            lines.push(line);
        }
        lines
    }

    /// Time, spread, rate and share of the machine's limit.
    fn timing(&self, row: &Row, time: &Summary) -> [String; 4] {
        let seconds = time.median / 1e6;
        let rate = if row.flops > 0.0 {
            format!("{:.1} TFLOP/s", row.flops / seconds / 1e12)
        } else {
            format!("{:.0} GB/s", row.bytes / seconds / 1e9)
        };
        let unit = self.variants[row.variant].unit;
        let least = self.machine.as_ref().and_then(|m| m.least_seconds(unit, row.flops, row.bytes));
        let limit = least.map_or_else(String::new, |(least, why)| {
            let why = match why {
                Bottleneck::Compute => "compute",
                Bottleneck::Memory => "memory",
            };
            format!("{:.0}% {why}", 100.0 * least / seconds)
        });
        [format!("{:.2}", time.median), format!("{:.1}%", 100.0 * time.spread()), rate, limit]
    }

    /// The table of counts.
    fn counted(&self, f: &mut fmt::Formatter<'_>, why: &str) -> fmt::Result {
        writeln!(f, " on the simulator, counts by warp and no times: {why}")?;
        let head =
            ["", "blocks", "instructions", "products", "barriers", "wavefronts", "conflicts", "sectors", "checked"];
        for problem in &self.problems {
            writeln!(f, "\n{}", problem_name(&problem.args))?;
            let mut lines = vec![head.map(str::to_owned).to_vec()];
            for row in &problem.rows {
                let label = self.variants[row.variant].label.clone();
                lines.push(match (&row.counts, &row.failed) {
                    (Some(c), _) => {
                        let numbers =
                            [c.blocks, c.instructions, c.products, c.barriers, c.wavefronts, c.conflicts, c.sectors];
                        std::iter::once(label)
                            .chain(numbers.iter().map(u64::to_string))
                            .chain([checked(&row.check)])
                            .collect()
                    }
                    (None, why) => vec![label, why.clone().unwrap_or_default()],
                });
            }
            let mut widths = vec![0; head.len()];
            for line in lines.iter().filter(|line| line.len() > 2) {
                for (width, cell) in widths.iter_mut().zip(line) {
                    *width = (*width).max(cell.chars().count());
                }
            }
            lines.iter().try_for_each(|line| write_line(f, line, &widths))?;
            self.notes(f, problem)?;
        }
        self.unchecked(f)
    }

    /// Notes on the rows of a problem below its table: mismatches, and chosen values.
    fn notes(&self, f: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
        for row in &problem.rows {
            for line in &row.check.shown {
                writeln!(f, "    {}: {line}", self.variants[row.variant].label)?;
            }
        }
        // Notes that rows share are printed once.
        let mut said: Vec<(&[Chosen], Vec<&str>)> = Vec::new();
        for row in problem.rows.iter().filter(|row| !row.chosen.is_empty()) {
            let label = self.variants[row.variant].label.as_str();
            match said.iter_mut().find(|(chosen, _)| *chosen == row.chosen) {
                Some((_, labels)) => labels.push(label),
                None => said.push((&row.chosen, vec![label])),
            }
        }
        for (chosen, labels) in &said {
            let all = labels.len() == problem.rows.len();
            let who = if all { String::new() } else { format!(" for {}", labels.join(", ")) };
            chosen.iter().try_for_each(|one| {
                let kernel = if chosen.len() > 1 { format!(" in {}", one.kernel) } else { String::new() };
                writeln!(f, "  chosen{who}{kernel}: {one}")
            })?;
        }
        Ok(())
    }

    /// The rows whose results were not compared, over all problems.
    fn unchecked(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |p: &Problem| {
            let skipped = p.rows.iter().filter(|r| r.failed.is_none() && r.check.skipped.is_some());
            let labels: Vec<&str> = skipped.map(|r| self.variants[r.variant].label.as_str()).collect();
            let which = if labels.len() == p.rows.len() { String::new() } else { format!(" ({})", labels.join(", ")) };
            (!labels.is_empty()).then(|| problem_name(&p.args) + &which)
        };
        let all: Vec<String> = self.problems.iter().filter_map(of).collect();
        if all.is_empty() { Ok(()) } else { writeln!(f, "\nnot compared with a reference: {}", all.join("; ")) }
    }

    /// Geometric means of the ratios over the problems.
    fn means(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.problems.len() < 2 {
            return Ok(());
        }
        for (i, variant) in self.variants.iter().enumerate() {
            let of = |p: &Problem| p.rows.iter().find(|r| r.variant == i).and_then(|r| Some(r.ratio?.median));
            let all: Vec<f64> = self.problems.iter().filter_map(of).collect();
            if let Some(mean) = geometric_mean(&all) {
                let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                writeln!(
                    f,
                    "\n{}: geometric mean {mean:.3} of cuBLAS, least {least:.3} (problems: {})",
                    variant.label,
                    all.len()
                )?;
            }
        }
        Ok(())
    }
}

/// The result of a comparison, in a few words.
fn checked(check: &Check) -> String {
    if check.wrong > 0 {
        return format!("WRONG: {} elements", check.wrong);
    }
    if let Some(why) = &check.skipped {
        return format!("not checked: {why}");
    }
    let mut said = Vec::new();
    if check.interpreted > 0 {
        said.push(format!("{} by the interpreter", check.interpreted));
    }
    if check.exact > 0 {
        said.push(format!("{} exact", check.exact));
    }
    if check.cublas_off > 0 {
        said.push(format!("cuBLAS is off in {} elements", check.cublas_off));
    } else if check.against_cublas > 0 {
        said.push("all equal cuBLAS".to_owned());
    }
    if check.bounded > 0 {
        said.push(format!("error {:.1e} of the bound", check.worst));
    }
    said.join(", ")
}

/// The first and the last column to the left, numbers to the right.
fn write_line(f: &mut fmt::Formatter<'_>, line: &[String], widths: &[usize]) -> fmt::Result {
    let mut text = String::from(" ");
    for (i, (cell, width)) in line.iter().zip(widths).enumerate() {
        let gap = width.saturating_sub(cell.chars().count());
        let left = i == 0 || i + 1 == widths.len() || line.len() <= 2;
        let pad = " ".repeat(if line.len() <= 2 && i > 0 { 0 } else { gap });
        text += &if left { format!(" {cell}{pad} ") } else { format!(" {pad}{cell} ") };
    }
    writeln!(f, "{}", text.trim_end())
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

//! Counts by source line, as a table: execution counts, bank conflicts, efficiency of global accesses.

use super::Sources;
use super::sources::tidy;
use crate::console::render::SourceFile;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tilec_ir::target::SECTOR_BYTES;
use tilec_sim::{Counters, Counts, Row};

/// Characters of source text that are shown.
const TEXT_WIDTH: usize = 72;

/// The counts of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// File and line; `None`: instructions that belong to none.
    pub place: Option<(String, u32)>,
    /// Its text; empty if it is not available.
    pub text: String,
    /// Executions of its most executed instruction, by warp.
    pub times: u64,
    /// Executions of matrix products.
    pub products: u64,
    /// Executions of barriers.
    pub barriers: u64,
    /// The sums over its instructions.
    pub counts: Counts,
}

impl Line {
    fn new(place: Option<(String, u32)>, text: String) -> Line {
        Line { place, text, times: 0, products: 0, barriers: 0, counts: Counts::default() }
    }

    fn add(&mut self, row: &Row) {
        self.times = self.times.max(row.counts.executed);
        self.products += if row.is_product() { row.counts.executed } else { 0 };
        self.barriers += if row.is_barrier() { row.counts.executed } else { 0 };
        self.counts.add(&row.counts);
    }
}

/// The counts by line, in order of files and lines. PTX without source lines is counted by its own lines, restricted to
/// those that access memory, multiply or synchronise.
pub fn lines(counters: &Counters, source: &SourceFile, ptx: &str) -> Vec<Line> {
    let mut sources = Sources::new(source);
    let mut out: BTreeMap<Option<(String, u32)>, Line> = BTreeMap::new();
    if counters.rows.iter().any(|r| r.source.is_some()) {
        for row in counters.rows.iter().filter(|r| r.counts.executed > 0) {
            let place = row.source.clone();
            let mut text = || place.as_ref().and_then(|(file, line)| sources.line(file, *line)).unwrap_or_default();
            out.entry(place.clone()).or_insert_with(|| Line::new(place.clone(), text())).add(row);
        }
    } else {
        let texts: Vec<&str> = ptx.lines().collect();
        let touches = |r: &Row| r.counts.wavefronts + r.counts.requests > 0 || r.is_product() || r.is_barrier();
        for row in counters.rows.iter().filter(|r| r.counts.executed > 0) {
            let place = touches(row).then(|| (source.name().to_owned(), row.ptx_line));
            let text = match &place {
                Some(_) => texts.get(row.ptx_line as usize - 1).copied().unwrap_or(""),
                None => "everything else",
            };
            out.entry(place.clone()).or_insert_with(|| Line::new(place, tidy(text))).add(row);
        }
    }
    out.into_values().collect()
}

/// A column: its title under a group, and a cell of a line, empty where there is nothing to count.
struct Column {
    group: &'static str,
    title: &'static str,
    cell: fn(&Line) -> String,
}

fn count(n: u64) -> String {
    if n == 0 { String::new() } else { grouped(n) }
}

/// `12 345 678`
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

const COLUMNS: &[Column] = &[
    Column { group: "", title: "times", cell: |l| count(l.times) },
    Column { group: "executed", title: "instr", cell: |l| count(l.counts.executed) },
    Column { group: "executed", title: "mma", cell: |l| count(l.products) },
    Column { group: "executed", title: "bar", cell: |l| count(l.barriers) },
    Column { group: "shared memory", title: "wavefronts", cell: |l| count(l.counts.wavefronts) },
    Column { group: "shared memory", title: "ideal", cell: |l| count(l.counts.ideal_wavefronts) },
    Column {
        group: "shared memory",
        title: "conflicts",
        cell: |l| match l.counts.conflicts() {
            0 => String::new(),
            n => format!("{} ({:.1}x)", grouped(n), ratio(l.counts.wavefronts, l.counts.ideal_wavefronts)),
        },
    },
    Column { group: "shared memory", title: "parted", cell: |l| count(l.counts.parted) },
    Column { group: "global memory", title: "requests", cell: |l| count(l.counts.requests) },
    Column { group: "global memory", title: "sectors", cell: |l| count(l.counts.sectors) },
    Column {
        group: "global memory",
        title: "per request (ideal)",
        cell: |l| match l.counts.requests {
            0 => String::new(),
            n => format!("{:.1} ({:.1})", ratio(l.counts.sectors, n), ratio(l.counts.ideal_sectors, n)),
        },
    },
    Column { group: "global memory", title: "bytes", cell: |l| count(l.counts.global_bytes) },
];

/// The table with its totals, and a word on bank conflicts. Columns without a count are left out. `align`: at multiples of how many bytes tensors began.
pub fn table(counters: &Counters, source: &SourceFile, ptx: &str, align: u32) -> String {
    let lines = lines(counters, source, ptx);
    let mut total = Line::new(None, "total".to_owned());
    for line in &lines {
        total.times = total.times.max(line.times);
        total.products += line.products;
        total.barriers += line.barriers;
        total.counts.add(&line.counts);
    }
    let columns: Vec<&Column> = COLUMNS.iter().filter(|c| !(c.cell)(&total).is_empty()).collect();
    // The most executed line alone is not informative.
    total.times = 0;
    let several = lines.iter().filter_map(|l| l.place.as_ref()).any(|(file, _)| file != source.name());
    let name = |line: &Line| match &line.place {
        Some((file, n)) if several => format!("{file}:{n}"),
        Some((_, n)) => n.to_string(),
        None => String::new(),
    };
    let mut rows: Vec<(bool, Vec<String>, &str)> = Vec::new();
    for line in lines.iter().chain([&total]) {
        let cells = std::iter::once(name(line)).chain(columns.iter().map(|c| (c.cell)(line))).collect();
        rows.push((line.counts.conflicts() > 0, cells, &line.text));
    }
    let titles: Vec<&str> = std::iter::once("line").chain(columns.iter().map(|c| c.title)).collect();
    let width = |i: usize| rows.iter().map(|(_, c, _)| c[i].len()).chain([titles[i].len()]).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..titles.len()).map(width).collect();
    // A group's columns are at least as wide together as its name.
    let mut groups: Vec<(&str, std::ops::Range<usize>)> = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        match groups.last_mut() {
            Some((name, range)) if *name == column.group => range.end = i + 2,
            _ => groups.push((column.group, i + 1..i + 2)),
        }
    }
    let span =
        |widths: &[usize], r: &std::ops::Range<usize>| widths[r.clone()].iter().sum::<usize>() + 2 * (r.len() - 1);
    for (name, range) in &groups {
        widths[range.start] += name.len().saturating_sub(span(&widths, range));
    }
    let mut out = String::new();
    let _ = write!(out, "  {:>w$}", "", w = widths[0]);
    for (name, range) in &groups {
        let w = span(&widths, range);
        let rule = if name.is_empty() { " ".repeat(w) } else { format!("{name:-^w$}") };
        let _ = write!(out, "  {rule}");
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    let mut line = |mark: bool, cells: &[String], text: &str| {
        let mut row = String::from(if mark { "! " } else { "  " });
        for (i, cell) in cells.iter().enumerate() {
            let _ = write!(row, "{}{cell:>w$}", if i == 0 { "" } else { "  " }, w = widths[i]);
        }
        let _ = write!(row, "  {}", shortened(text));
        let _ = writeln!(out, "{}", row.trim_end());
    };
    line(false, &titles.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>(), "");
    for (mark, cells, text) in &rows {
        line(*mark, cells, text);
    }
    out + &sectors(&lines, &total, align, &name) + &conflicts(&lines, &total, &name)
}

/// Why more is moved than requested, if it is. An access that begins inside of a sector touches one more than it fills, so twice as many at most: beyond
/// that its lanes are apart.
fn sectors(lines: &[Line], total: &Line, align: u32, name: &dyn Fn(&Line) -> String) -> String {
    let Counts { sectors, ideal_sectors, .. } = total.counts;
    if sectors <= ideal_sectors {
        return String::new();
    }
    let mut out =
        format!("{} sectors more than the ideal {}", grouped(sectors - ideal_sectors), grouped(ideal_sectors));
    let more = |l: &&Line| l.counts.sectors.saturating_sub(l.counts.ideal_sectors);
    let apart = |l: &&Line| l.counts.sectors > 2 * l.counts.ideal_sectors;
    let Some(worst) = lines.iter().filter(apart).max_by_key(more) else {
        // If tensors are aligned to sectors already, their alignment is not the reason.
        out.push_str(match align < SECTOR_BYTES {
            true => {
                ": accesses begin inside of sectors, as tensors may that are aligned to no more than their declarations promise (`multiple`, \
                 `align`), or lanes leave bytes out; `--sim-align 256` has tensors begin where allocations of a GPU do, and shows which\n"
            }
            false => {
                ": rows or windows begin inside of sectors although tensors do not, or lanes leave bytes out; rows whose length is a multiple of \
                 32 bytes, and windows that begin at such, use whole sectors\n"
            }
        });
        return out;
    };
    let Counts { sectors, ideal_sectors, .. } = worst.counts;
    let _ = writeln!(
        out,
        ", most at line {}: the access is not coalesced: the lanes of a warp use {:.0} % of the bytes of the sectors that they touch; neighbouring lanes should access neighbours along the contiguous dimension, by another order of loops or through shared memory",
        name(worst),
        100.0 * ratio(ideal_sectors, sectors)
    );
    out
}

fn shortened(text: &str) -> String {
    let mut out: String = text.chars().take(TEXT_WIDTH).collect();
    if out.len() < text.len() {
        out.push_str(" ..");
    }
    out
}

/// The bank conflicts in a sentence, worst lines first.
fn conflicts(lines: &[Line], total: &Line, name: &dyn Fn(&Line) -> String) -> String {
    let Counts { wavefronts, ideal_wavefronts, .. } = total.counts;
    if wavefronts == 0 {
        return String::new();
    }
    let extra = total.counts.conflicts();
    let beyond = |what: &str, more: u64| {
        format!(
            "{what}: {} wavefronts more than the ideal {}, {:.2} times as many\n",
            grouped(more),
            grouped(ideal_wavefronts),
            ratio(ideal_wavefronts + more, ideal_wavefronts)
        )
    };
    let parted = match total.counts.parted {
        0 => String::new(),
        n => beyond("copies of `cp.async` that are split into several lines (no bank conflicts)", n),
    };
    if extra == 0 {
        return "no bank conflicts\n".to_owned() + &parted;
    }
    let mut out = beyond("bank conflicts", extra);
    let mut worst: Vec<&Line> = lines.iter().filter(|l| l.counts.conflicts() > 0).collect();
    worst.sort_by_key(|l| std::cmp::Reverse(l.counts.conflicts()));
    for line in worst {
        let share = 100.0 * ratio(line.counts.conflicts(), extra);
        let _ = writeln!(
            out,
            "  line {}: {} ({share:.0} %)  {}",
            name(line),
            grouped(line.counts.conflicts()),
            shortened(&line.text)
        );
    }
    out + &parted
}

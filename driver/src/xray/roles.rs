//! The roles of a kernel in time: each warpgroup a row, the units of the multiprocessor below, and what each wait waits for.
//! Whoever wrote the roles: the clock is that of [`tilec_passes::timeline`].

use super::lines::DIM;
use super::picture::{Picture, Room};
use super::svg::{Anchor, Key, Svg, TINTS};
use super::time::ranges;
use crate::compile::CompiledKernel;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::print::print_head;
use tilec_passes::timeline::{Event, Line, Row, Timeline, Unit};

/// Width of the whole time.
const WIDTH: f64 = 1360.0;
const ROW: f64 = 22.0;
const TOP: f64 = 44.0;
/// Least distance of marks of the clock.
const APART: f64 = 90.0;
/// A box that is narrower is a part of the one in front of it.
const LEAST: f64 = 1.5;
const WAITS: &str = "#ffffff";
/// Tints of iterations: the last one is too near to that of waits.
const COLORS: usize = TINTS.len() - 1;

/// The picture, of a kernel with roles.
pub(super) fn picture(kernel: &CompiledKernel, prefix: &str) -> Option<Picture> {
    let t = kernel.tile.timeline().ok()?;
    let k = &kernel.tile.kernel;
    let first = k.blocks[k.body].iter().find(|&&s| matches!(k.stmts[s], StmtData::Role { .. }));
    let span = first.map_or_else(Default::default, |&s| k.stmt_spans[s]);
    let title = format!(
        "The roles in time, by the rates of the model and not measured: {} clocks, {} iterations of innermost loops",
        t.end(),
        t.iterations
    );
    let svg = draw(k, &t, &title);
    Some(Picture { title, span, ..Picture::new(Room::Time, format!("{prefix}roles"), svg) })
}

/// Boxes that touch, as one: from when to when, the iteration, and the numbers of their statements.
struct Group {
    begin: u64,
    end: u64,
    iteration: u64,
    waits: bool,
    numbers: Vec<usize>,
}

/// Joins boxes without room for their numbers; `scale`: the width of a clock.
fn joined<'a>(events: impl Iterator<Item = &'a Event>, scale: f64) -> Vec<Group> {
    let width = |begin: u64, end: u64| (end - begin) as f64 * scale;
    let fits = |g: &Group| width(g.begin, g.end) > Svg::wide(&ranges(&g.numbers)) + 4.0;
    let mut all: Vec<Group> = Vec::new();
    for e in events {
        let own = Group { begin: e.begin, end: e.end, iteration: e.iteration, waits: e.waits, numbers: vec![e.number] };
        let Some(last) = all.last_mut().filter(|g| g.end == e.begin) else {
            all.push(own);
            continue;
        };
        let narrow = width(e.begin, e.end) < LEAST;
        let alike = (last.iteration, last.waits) == (e.iteration, e.waits);
        if narrow || alike && !(fits(last) && fits(&own)) {
            last.end = e.end;
            if !last.waits && !last.numbers.contains(&e.number) {
                last.numbers.push(e.number);
                last.numbers.sort_unstable();
            }
        } else {
            all.push(own);
        }
    }
    all
}

/// What a row is called.
fn name(row: &Row) -> String {
    let parts = [row.replica.map(|n| format!("replica {n}")), row.warpgroup.map(|n| format!("warpgroup {n}"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let warps = if row.warps == 1 { "1 warp".to_owned() } else { format!("{} warps", row.warps) };
    match parts.is_empty() {
        true if row.elected => format!("{}, one lane", row.role),
        true => format!("{}, {warps}", row.role),
        false => format!("{} {}", row.role, parts.join(", ")),
    }
}

fn draw(k: &Kernel, t: &Timeline, title: &str) -> String {
    let mut rows: Vec<(String, Vec<&Event>)> = Vec::new();
    for (i, row) in t.rows.iter().enumerate() {
        rows.push((name(row), t.events.iter().filter(|e| e.row == i).collect()));
    }
    let own = rows.len();
    for unit in Unit::ALL {
        rows.extend(lanes(t, unit));
    }
    let left = rows.iter().map(|(name, _)| Svg::wide(name)).fold(0.0, f64::max) + 20.0;
    let scale = WIDTH / t.end().max(1) as f64;
    let x = |clock: u64| left + clock as f64 * scale;
    let mut svg = Svg::new(left + WIDTH + 20.0, TOP, title);
    let mut y = TOP;
    for (at, (name, events)) in rows.iter().enumerate() {
        y += if at == own { 8.0 } else { 0.0 };
        svg.text(left - 8.0, y + 15.0, Anchor::End, name);
        for g in joined(events.iter().copied(), scale) {
            let (from, wide, text) = (x(g.begin), (g.end - g.begin) as f64 * scale, ranges(&g.numbers));
            let fill = if g.waits { WAITS } else { TINTS[(g.iteration % COLORS as u64) as usize] };
            svg.rect((from, y + 2.0), (wide, ROW - 4.0), fill);
            if wide > Svg::wide(&text) + 2.0 {
                svg.text(from + wide / 2.0, y + 15.0, Anchor::Middle, &text);
            }
        }
        y += ROW;
    }
    let step = tick(scale);
    for clock in (0..=t.end()).step_by(step as usize) {
        svg.line((x(clock), 26.0), (x(clock), y), "#bbbbbb", true);
        svg.colored(x(clock) + 2.0, 36.0, Anchor::Start, DIM, &clock.to_string());
    }
    svg.colored(left - 8.0, 36.0, Anchor::End, DIM, "clock");
    y = list(&mut svg, k, t, y + 12.0);
    svg.end(y);
    legend(&mut svg, t);
    svg.done()
}

/// The rows of a unit: of those that warps use themselves one for each warpgroup.
fn lanes(t: &Timeline, unit: Unit) -> Vec<(String, Vec<&Event>)> {
    let of: Vec<&Event> = t.units.iter().filter(|(u, _)| *u == unit).map(|(_, e)| e).collect();
    let mut users: Vec<usize> = of.iter().map(|e| e.row).collect();
    users.dedup();
    let apart = users.len() > 1 && matches!(unit, Unit::TensorCores | Unit::SpecialFunctions);
    if of.is_empty() {
        return Vec::new();
    }
    if !apart {
        let mut of = of;
        of.sort_by_key(|e| e.begin);
        return vec![(unit.name().to_owned(), of)];
    }
    let part = |user: usize| {
        let row = &t.rows[user];
        let number = [row.replica.map(|n| format!("replica {n}")), row.warpgroup.map(|n| format!("warpgroup {n}"))];
        let text = number.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if text.is_empty() { row.role.clone() } else { text }
    };
    let lane = |user: usize| {
        let own = of.iter().copied().filter(|e| e.row == user).collect();
        (format!("{}, {}", unit.name(), part(user)), own)
    };
    users.into_iter().map(lane).collect()
}

/// Clocks between marks.
pub(super) fn tick(scale: f64) -> u64 {
    let wanted = APART / scale;
    let steps = (0..).flat_map(|p| [1, 2, 5].map(|n| n * 10u64.pow(p)));
    steps.take(40).find(|&n| n as f64 >= wanted).unwrap_or(1_000_000_000)
}

/// The statements by their numbers; returns where the list ends.
fn list(svg: &mut Svg, k: &Kernel, t: &Timeline, mut y: f64) -> f64 {
    let mut role = "";
    for line in &t.lines {
        if line.role != role {
            role = &line.role;
            svg.text(12.0, y + 8.0, Anchor::Start, &format!("role {role}"));
            y += 15.0;
        }
        let number = line.number.map_or(String::new(), |n| n.to_string());
        svg.text(36.0, y + 8.0, Anchor::End, &number);
        svg.text(46.0 + 14.0 * f64::from(line.depth), y + 8.0, Anchor::Start, &told(k, t, line));
        y += 15.0;
    }
    y
}

/// A statement, and what it waits for.
fn told(k: &Kernel, t: &Timeline, line: &Line) -> String {
    let waits = line.waits_for.as_ref().map_or(String::new(), |what| {
        let waited = line.number.and_then(|n| {
            let own = t.events.iter().filter(|e| e.waits && e.number == n);
            own.map(|e| e.end - e.begin).max()
        });
        let most = waited.map_or(String::new(), |clocks| format!(" (at most {clocks} clocks)"));
        format!("; waits for {what}{most}")
    });
    let out = if line.left_out { "; left out here" } else { "" };
    format!("{}{waits}{out}", print_head(k, line.stmt).trim().trim_end_matches(" {"))
}

fn legend(svg: &mut Svg, t: &Timeline) {
    let last = t.events.iter().map(|e| e.iteration).max().unwrap_or(0);
    for i in 0..=last.min(COLORS as u64 - 1) {
        let again = if i + COLORS as u64 <= last { format!(", {}", i + COLORS as u64) } else { String::new() };
        svg.key(Key::Cell(TINTS[i as usize]), format!("iteration {i}{again}"));
    }
    svg.key(Key::Text("2-4"), "statements 2 to 4 of the list");
    svg.key(Key::Cell(WAITS), "the warpgroup waits at this statement");
    svg.note(format!(
        "Iterations are counted over all loops, by the slots that they use. Innermost loops run {} iterations here, those around them a few: a real kernel runs more.",
        t.iterations
    ));
    svg.note("Clocks are those of the model for one block alone on a multiprocessor. The tensor cores, and the units for special functions, serve one warpgroup after the other.");
    svg.note(format!(
        "Loads begin to arrive {} clocks after their request, and bring {} bytes per clock: the rate of the second-level cache.",
        t.latency, t.loaded
    ));
    if t.lines.iter().any(|l| l.left_out) {
        svg.note("A branch without `else` that only computes is left out: it is for the last, ragged tile. Of others the first branch is drawn.");
    }
    if let Some(busy) = busy(t) {
        svg.note(format!(
            "From the first product to the end of the last, the tensor cores are busy {busy} % of the time."
        ));
    }
}

/// The share of the time in which the tensor cores multiply.
fn busy(t: &Timeline) -> Option<u64> {
    let products = || t.units.iter().filter(|(unit, _)| *unit == Unit::TensorCores).map(|(_, e)| e);
    let (begin, end) = (products().map(|e| e.begin).min()?, products().map(|e| e.end).max()?);
    let all: u64 = products().map(|e| e.end - e.begin).sum();
    (100 * all).checked_div(end - begin)
}

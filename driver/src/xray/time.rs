//! The pipeline in time: what the roles do in which iteration, what units of the multiprocessor work meanwhile, what each wait waits for, and the slots of
//! the channels. From the schedule, which stands in the program in front of `expand`, and from the clocks of an iteration that the pass said ([`Pace`]).

use super::picture::{Picture, Room};
use super::svg::{Anchor, STRONG, Svg, TINTS};
use crate::compile::CompiledKernel;
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::pace::{Pace, UNCACHED};
use tilec_ir::print::print_head;
use tilec_ir::typing::resolve_view;

/// Iterations that are drawn.
const ITERATIONS: u64 = 4;
/// Width of an iteration.
const WIDTH: f64 = 230.0;
const LEFT: f64 = 170.0;
const ROW: f64 = 22.0;

/// A statement of a loop in time: of iteration 0, in clocks (or places) from its begin.
struct Event {
    stmt: Stmt,
    begin: u64,
    end: u64,
    producer: bool,
}

/// A scheduled loop.
struct Timed<'a> {
    k: &'a Kernel,
    pace: &'a Pace,
    /// From one iteration to the next.
    length: u64,
    events: Vec<Event>,
}

impl<'a> Timed<'a> {
    fn new(k: &'a Kernel, pace: &'a Pace) -> Option<Timed<'a>> {
        let planned: Vec<(Stmt, u64, u64, bool)> = k.blocks[pace.body]
            .iter()
            .filter_map(|&s| {
                let plan = k.plans[s];
                Some((s, u64::from(plan.stage?), u64::from(plan.cycle?), plan.producer))
            })
            .collect();
        if planned.is_empty() {
            return None;
        }
        let last = planned.iter().map(|p| p.2).max().unwrap_or(0);
        // Where cycles are the order of the statements, they share an iteration evenly.
        let length = if pace.in_clocks { pace.clocks.max(last + 1) } else { last + 1 };
        let mut events: Vec<Event> = Vec::new();
        for &(stmt, stage, cycle, producer) in &planned {
            // It is the role's until its next statement begins.
            let next = planned.iter().filter(|p| p.3 == producer && p.2 > cycle).map(|p| p.2).min().unwrap_or(length);
            let begin = stage * length + cycle;
            events.push(Event { stmt, begin, end: begin + (next - cycle).max(1), producer });
        }
        Some(Timed { k, pace, length, events })
    }

    /// What a statement does with channels.
    fn operation(&self, e: &Event) -> Option<(ChannelOp, &'a [Value])> {
        match &self.k.stmts[e.stmt] {
            StmtData::Channel { op, channels, .. } => Some((*op, channels)),
            _ => None,
        }
    }

    /// Whether elements land later than the statement is issued.
    fn lands_later(&self, s: Stmt) -> bool {
        matches!(&self.k.stmts[s], StmtData::Copy { attrs, .. } if attrs.lands_later())
    }

    fn loads(&self, s: Stmt) -> bool {
        match self.k.stmts[s] {
            StmtData::Copy { src, .. } => resolve_view(self.k, src).is_some_and(|v| self.k.tensor_ty(v.base).is_some()),
            _ => false,
        }
    }

    /// When an operation on a channel is done, in iteration 0.
    fn when(&self, channel: Value, op: ChannelOp) -> Option<u64> {
        let is = |e: &&Event| self.operation(e).is_some_and(|(o, channels)| o == op && channels.contains(&channel));
        self.events.iter().find(is).map(|e| e.begin)
    }

    fn x(&self, clock: u64) -> f64 {
        LEFT + clock as f64 / self.length as f64 * WIDTH
    }

    /// Whether a role of its own loads: it fills slots as soon as they are free, and others begin when the first is full.
    fn has_producer(&self) -> bool {
        self.events.iter().any(|e| e.producer)
    }

    /// How long the filling of a slot takes: what a load takes is no part of a schedule.
    fn filling(&self, acquire: u64, publish: u64) -> u64 {
        publish.saturating_sub(acquire) + self.length / 2
    }
}

fn slots(k: &Kernel, v: Value) -> Option<u64> {
    match &k.values[v].def {
        ValueDef::Channel { slots, .. } => u64::try_from(k.as_int(*slots)?).ok(),
        _ => None,
    }
}

/// Pictures of every scheduled loop of a kernel.
pub(super) fn pictures(kernel: &CompiledKernel, prefix: &str) -> Vec<Picture> {
    let Some(k) = &kernel.tile.scheduled else { return Vec::new() };
    let mut out = Vec::new();
    for (i, pace) in kernel.tile.paces.iter().enumerate() {
        let Some(timed) = Timed::new(k, pace) else { continue };
        let number = if kernel.tile.paces.len() > 1 { format!("-{}", i + 1) } else { String::new() };
        let span = loop_of(k, pace.body).map_or_else(Default::default, |s| k.stmt_spans[s]);
        let (title, svg) = pipeline(&timed);
        out.push(Picture { title, span, ..Picture::new(Room::Time, format!("{prefix}pipeline{number}"), svg) });
        if let Some((title, svg)) = channels(&timed) {
            out.push(Picture { title, span, ..Picture::new(Room::Time, format!("{prefix}slots{number}"), svg) });
        }
    }
    out
}

fn loop_of(k: &Kernel, body: Block) -> Option<Stmt> {
    k.stmts.iter().find(|(_, s)| matches!(s, StmtData::For { body: b, .. } if *b == body)).map(|(s, _)| s)
}

/// Roles and units as rows, iterations as colours.
fn pipeline(t: &Timed<'_>) -> (String, String) {
    let places = if t.pace.in_clocks { "" } else { "; statements stand in their order, not at their clocks" };
    let title = format!("the pipeline: {ITERATIONS} iterations of {} clocks, as scheduled{places}", t.pace.clocks);
    let roles: &[(bool, &str)] = match t.has_producer() {
        true => &[(true, "producer warps"), (false, "consumer warps")],
        false => &[(false, "all warps")],
    };
    let stages = t.events.iter().map(|e| e.begin / t.length).max().unwrap_or(0) + 1;
    let ends = (ITERATIONS + stages - 1) * t.length;
    // A line of statements for each stage of each role.
    let lines: Vec<(bool, &str, u64)> = roles
        .iter()
        .flat_map(|&(p, name)| (0..stages).map(move |stage| (p, name, stage)))
        .filter(|&(p, _, stage)| t.events.iter().any(|e| e.producer == p && e.begin / t.length == stage))
        .collect();
    let rows: Vec<&(&str, u64)> = t.pace.units.iter().chain(&t.pace.beside).collect();
    let height = 100.0 + (lines.len() + rows.len() + 1) as f64 * ROW + t.events.len() as f64 * 15.0 + 45.0;
    let mut svg = Svg::new((t.x(ends) + 20.0).max(900.0), height, &title);
    let top = 44.0;
    for i in 0..=ITERATIONS + stages - 1 {
        let x = t.x(i * t.length);
        svg.line((x, 26.0), (x, top + (lines.len() + rows.len()) as f64 * ROW), "#bbbbbb", true);
        if t.pace.in_clocks {
            svg.colored(x + 2.0, 36.0, Anchor::Start, "#555555", &(i * t.length).to_string());
        }
    }
    for (row, &(producer, name, stage)) in lines.iter().enumerate() {
        let y = top + row as f64 * ROW;
        let label = if stages > 1 { format!("{name}, stage {stage}") } else { name.to_owned() };
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, &label);
        for i in 0..ITERATIONS {
            for (begin, end, numbers) in together(t, producer, stage) {
                let (from, to) = (t.x(begin + i * t.length), t.x(end + i * t.length));
                svg.rect((from, y + 2.0), ((to - from).max(3.0), ROW - 4.0), TINTS[i as usize % TINTS.len()]);
                if to - from > Svg::wide(&numbers) + 2.0 {
                    svg.text((from + to) / 2.0, y + 15.0, Anchor::Middle, &numbers);
                }
            }
        }
    }
    let mut y = top + lines.len() as f64 * ROW;
    for (at, (name, clocks)) in rows.iter().enumerate() {
        let share = *clocks as f64 / t.pace.clocks.max(1) as f64;
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, &format!("{name}: {clocks}"));
        for i in 0..ITERATIONS {
            let x = t.x((i + stages - 1) * t.length);
            let (width, text) = (WIDTH * share.min(1.0), format!("{:.0} %", 100.0 * share));
            svg.rect((x, y + 4.0), (width, ROW - 8.0), if at < t.pace.units.len() { "#e6e6e6" } else { "#f2ead8" });
            let inside = width > Svg::wide(&text) + 12.0;
            svg.text(x + if inside { 4.0 } else { width + 4.0 }, y + 15.0, Anchor::Start, &text);
        }
        y += ROW;
    }
    if !t.pace.beside.is_empty() {
        let text = "yellowish: not counted by the schedule. Copies take these beside it, at the rates of the model; `memory, uncached` is as if nothing were in the cache";
        svg.colored(12.0, y + 12.0, Anchor::Start, "#555555", text);
        y += 15.0;
    }
    let longest = t.pace.beside.iter().filter(|(name, _)| *name != UNCACHED).max_by_key(|(_, clocks)| *clocks);
    if let Some((name, clocks)) = longest.filter(|(_, clocks)| t.pace.in_clocks && *clocks > t.pace.clocks) {
        let lasts =
            format!("an iteration then lasts {clocks} clocks or more, for {name} takes longer than the schedule");
        for text in [lasts.as_str(), "`roofline` and `time` count that, and what iterations wait for"] {
            svg.colored(12.0, y + 12.0, Anchor::Start, "#555555", text);
            y += 15.0;
        }
    }
    y += 20.0;
    for (n, e) in t.events.iter().enumerate() {
        let waits = waits_for(t, e).map_or(String::new(), |text| format!("; waits for {text}"));
        svg.text(12.0, y, Anchor::Start, &format!("{:>2}  {}{waits}", n + 1, print_head(t.k, e.stmt)));
        y += 15.0;
    }
    let ahead = if t.has_producer() { "; a producer runs ahead, as far as there are slots" } else { "" };
    let clock = format!("the schedule and the model's rates, not a measurement: the simulator has no clock{ahead}");
    svg.colored(12.0, y + 6.0, Anchor::Start, "#555555", &clock);
    (title, svg.done())
}

/// What a role does in a stage of iteration 0: from when to when, and the numbers of the statements, of those that begin at once together.
fn together(t: &Timed<'_>, producer: bool, stage: u64) -> Vec<(u64, u64, String)> {
    let own = t.events.iter().enumerate().filter(|(_, e)| e.producer == producer && e.begin / t.length == stage);
    let mut all: BTreeMap<u64, (u64, Vec<usize>)> = BTreeMap::new();
    for (n, e) in own {
        let at = all.entry(e.begin).or_default();
        at.0 = at.0.max(e.end);
        at.1.push(n + 1);
    }
    let all = all.into_iter().map(|(begin, (end, numbers))| (begin, end, ranges(&numbers)));
    all.collect()
}

/// Ascending numbers, neighbours as a range: `1, 3-5`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let text = runs.map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    text.collect::<Vec<_>>().join(", ")
}

/// What a wait waits for.
fn waits_for(t: &Timed<'_>, e: &Event) -> Option<String> {
    let (op, channels) = t.operation(e)?;
    let number = |wanted: ChannelOp| {
        let is =
            |e: &&Event| t.operation(e).is_some_and(|(o, c)| o == wanted && c.iter().any(|v| channels.contains(v)));
        t.events.iter().position(|e| is(&e)).map(|n| n + 1)
    };
    let slots = slots(t.k, *channels.first()?)?;
    match op {
        ChannelOp::Wait => {
            let later = t.events.iter().any(|e| t.loads(e.stmt) && t.lands_later(e.stmt));
            let lands = if later { " and the bytes of its copies to land" } else { "" };
            Some(format!("statement {} of the same iteration{lands}", number(ChannelOp::Publish)?))
        }
        ChannelOp::Acquire => Some(format!("statement {}, {slots} iterations earlier", number(ChannelOp::Release)?)),
        ChannelOp::Publish | ChannelOp::Release => None,
    }
}

/// The slots of the channels over time.
fn channels(t: &Timed<'_>) -> Option<(String, String)> {
    let mut all: Vec<(Value, u64)> = Vec::new();
    for e in &t.events {
        for &v in t.operation(e).map_or(&[][..], |(_, channels)| channels) {
            if all.iter().all(|(w, _)| *w != v) {
                all.extend(slots(t.k, v).map(|n| (v, n)));
            }
        }
    }
    let mut rows = 0;
    let known: Vec<(Value, u64, [u64; 4])> = all
        .into_iter()
        .filter_map(|(v, n)| {
            let when =
                [ChannelOp::Acquire, ChannelOp::Publish, ChannelOp::Wait, ChannelOp::Release].map(|op| t.when(v, op));
            let [Some(a), Some(p), Some(w), Some(r)] = when else { return None };
            rows += n;
            Some((v, n, [a, p, w, r]))
        })
        .collect();
    if known.is_empty() {
        return None;
    }
    let title =
        "slots of the channels over time: f being filled, = full, r being read; the numbers are iterations".to_owned();
    let last = known
        .iter()
        .map(|(.., [.., r])| r + (ITERATIONS + u64::from(t.has_producer())) * t.length)
        .max()
        .unwrap_or(1)
        .max(1);
    let mut svg = Svg::new(t.x(last) + 30.0, 46.0 + rows as f64 * ROW + 36.0, &title);
    let mut y = 30.0;
    let first_full = known.iter().map(|(_, _, [a, p, ..])| a + t.filling(*a, *p)).min().unwrap_or(0);
    let first_read = known.iter().map(|(.., [_, _, w, _])| *w).min().unwrap_or(0);
    for (v, n, [acquire, publish, wait, release]) in &known {
        let filling = t.filling(*acquire, *publish);
        // Of a role of its own the first waits until it has loaded.
        let late = if t.has_producer() { first_full.saturating_sub(first_read) } else { 0 };
        for slot in 0..*n {
            svg.text(LEFT - 8.0, y + 15.0, Anchor::End, &format!("{} slot {slot}", t.k.values[*v].name));
            for i in (0..ITERATIONS + n).filter(|i| i % n == slot) {
                let at = i * t.length;
                let (read, free) = (wait + late + at, release + late + at);
                // A producer of its own fills a slot as soon as it is free: the first ones at the begin, the others when they are released.
                let begin = match (t.has_producer(), i.checked_sub(*n)) {
                    (false, _) => acquire + at,
                    (true, None) => (acquire + i * t.length / (2 * n)).min(read.saturating_sub(filling)),
                    (true, Some(before)) => release + late + before * t.length,
                };
                let full = (begin + filling).min(read).max(begin);
                for (from, to, text, fill) in
                    [(begin, full, "f", TINTS[1]), (full, read, "=", TINTS[2]), (read, free, "r", TINTS[0])]
                {
                    let (x, end) = (t.x(from), t.x(to).min(t.x(last)));
                    if end > x {
                        svg.rect((x, y + 2.0), (end - x, ROW - 4.0), fill);
                    }
                    if end - x > 30.0 {
                        svg.text((x + end) / 2.0, y + 15.0, Anchor::Middle, &format!("{text}{i}"));
                    }
                }
                if i >= *n {
                    svg.line((t.x(begin), y), (t.x(begin), y + ROW), STRONG, false);
                }
            }
            y += ROW;
        }
    }
    let note = "blue lines: `empty` completes and the producer goes on; where f ends `full` completes. How long a load takes is not known here: it is drawn as half an iteration";
    svg.colored(12.0, y + 22.0, Anchor::Start, "#555555", note);
    Some((title, svg.done()))
}

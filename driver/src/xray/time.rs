//! The pipeline in time: what the roles do in which iteration, what units of the multiprocessor work meanwhile, what each wait waits for, and the slots of
//! the channels. From the schedule, which stands in the program in front of `expand`, and from the clocks of an iteration that the pass said ([`Pace`]).

use super::picture::{Picture, Room};
use super::svg::{Anchor, STRONG, Svg, TINTS};
use crate::compile::CompiledKernel;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::pace::Pace;
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

    /// How far a producer runs ahead: of a role of its own, as far as there are slots.
    fn ahead(&self, slots: u64) -> u64 {
        if self.events.iter().any(|e| e.producer) { slots.saturating_sub(1) } else { 0 }
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
    let unit = if t.pace.in_clocks { "clocks" } else { "clocks, statements in their order" };
    let title = format!("the pipeline: {ITERATIONS} iterations of {} {unit}, as scheduled", t.pace.clocks);
    let roles: &[(bool, &str)] = match t.events.iter().any(|e| e.producer) {
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
    let list = t.events.iter().filter(|e| !matches!(t.k.stmts[e.stmt], StmtData::Let { .. })).count();
    let height = 70.0 + (lines.len() + t.pace.units.len() + 1) as f64 * ROW + list as f64 * 15.0 + 30.0;
    let mut svg = Svg::new((t.x(ends) + 20.0).max(900.0), height, &title);
    let top = 44.0;
    for i in 0..=ITERATIONS + stages - 1 {
        let x = t.x(i * t.length);
        svg.line((x, 26.0), (x, top + (lines.len() + t.pace.units.len()) as f64 * ROW), "#bbbbbb", true);
        if t.pace.in_clocks {
            svg.colored(x + 2.0, 36.0, Anchor::Start, "#555555", &(i * t.length).to_string());
        }
    }
    for (row, &(producer, name, stage)) in lines.iter().enumerate() {
        let y = top + row as f64 * ROW;
        let label = if stages > 1 { format!("{name}, stage {stage}") } else { name.to_owned() };
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, &label);
        for i in 0..ITERATIONS {
            let own =
                t.events.iter().enumerate().filter(|(_, e)| e.producer == producer && e.begin / t.length == stage);
            for (n, e) in own.filter(|(_, e)| !matches!(t.k.stmts[e.stmt], StmtData::Let { .. })) {
                let (from, to) = (t.x(e.begin + i * t.length), t.x(e.end + i * t.length));
                svg.rect((from, y + 2.0), ((to - from).max(3.0), ROW - 4.0), TINTS[i as usize % TINTS.len()]);
                if to - from > 15.0 {
                    svg.text((from + to) / 2.0, y + 15.0, Anchor::Middle, &(n + 1).to_string());
                }
            }
        }
    }
    let mut y = top + lines.len() as f64 * ROW;
    for (name, clocks) in &t.pace.units {
        let share = *clocks as f64 / t.pace.clocks.max(1) as f64;
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, name);
        for i in 0..ITERATIONS {
            let x = t.x((i + stages - 1) * t.length);
            svg.rect((x, y + 4.0), (WIDTH * share.min(1.0), ROW - 8.0), "#e6e6e6");
            svg.text(
                x + 4.0,
                y + 15.0,
                Anchor::Start,
                &format!("{clocks} of {} ({:.0} %)", t.pace.clocks, 100.0 * share),
            );
        }
        y += ROW;
    }
    y += 20.0;
    for (n, e) in t.events.iter().enumerate().filter(|(_, e)| !matches!(t.k.stmts[e.stmt], StmtData::Let { .. })) {
        let waits = waits_for(t, e).map_or(String::new(), |text| format!("   waits for {text}"));
        svg.text(12.0, y, Anchor::Start, &format!("{:>2}  {}{waits}", n + 1, print_head(t.k, e.stmt)));
        y += 15.0;
    }
    let clock = "the simulator has no clock yet: this is the schedule and the model's rates, not a measurement";
    svg.colored(12.0, y + 6.0, Anchor::Start, "#555555", clock);
    (title, svg.done())
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
            Some(format!("{} of the same iteration{lands}", number(ChannelOp::Publish)?))
        }
        ChannelOp::Acquire => Some(format!("{} of {slots} iterations before", number(ChannelOp::Release)?)),
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
    let last =
        known.iter().map(|(_, n, [.., r])| (r + (ITERATIONS + t.ahead(*n)) * t.length).max(1)).max().unwrap_or(1);
    let mut svg = Svg::new(t.x(last) + 30.0, 46.0 + rows as f64 * ROW + 36.0, &title);
    let mut y = 30.0;
    for (v, n, [acquire, publish, wait, release]) in &known {
        let ahead = t.ahead(*n) * t.length;
        for slot in 0..*n {
            svg.text(LEFT - 8.0, y + 15.0, Anchor::End, &format!("{} slot {slot}", t.k.values[*v].name));
            for i in (0..ITERATIONS + n).filter(|i| i % n == slot) {
                let at = i * t.length;
                // A producer of its own fills a slot as soon as it is free: the first ones at the begin, the others when they are released.
                let begin = match (ahead > 0, i.checked_sub(*n)) {
                    (false, _) => acquire + at,
                    (true, None) => acquire + at.min(i * t.length / (2 * n)),
                    (true, Some(before)) => release + ahead + before * t.length,
                };
                let (read, free) = (wait + ahead + at, release + ahead + at);
                let full = (begin + publish.saturating_sub(*acquire) + t.length / 2).min(read).max(begin);
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

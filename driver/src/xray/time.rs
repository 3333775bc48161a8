//! The pipeline in time: what the roles do in which iteration, what units of the multiprocessor work meanwhile, what each wait waits for, and the slots of
//! the channels. From the schedule, which is in the program in front of `expand`, and from the clocks of an iteration that the pass said ([`Pace`]).

use super::lines::DIM;
use super::picture::{Picture, Room};
use super::svg::{Anchor, INK, Key, STRONG, Svg, TINTS};
use crate::compile::CompiledKernel;
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::iteration_time::{IterationTime, TENSOR_CORES, UNCACHED};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::print::print_head;
use tilec_ir::typing::resolve_view;

/// Iterations that are drawn.
const ITERATIONS: u64 = 4;
/// Width of an iteration.
const WIDTH: f64 = 230.0;
const LEFT: f64 = 170.0;
const ROW: f64 = 22.0;
const TOP: f64 = 44.0;
/// Width of what takes no time that is known.
const NARROW: f64 = 5.0;
/// Units that a schedule counts, and units that it ignores.
const COUNTED: &str = "#d0d0d0";
const BESIDE: &str = "#f2ead8";

/// How titles of pictures of slots begin.
pub(super) const SLOTS: &str = "Slots of the channels";

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
    pace: &'a IterationTime,
    /// From one iteration to the next.
    length: u64,
    events: Vec<Event>,
    /// The time of the product is that of all warpgroups, and longer than the schedule's.
    shared: bool,
}

impl<'a> Timed<'a> {
    fn new(k: &'a Kernel, pace: &'a IterationTime) -> Option<Timed<'a>> {
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
        let mut timed = Timed { k, pace, length, events, shared: false };
        timed.share_tensor_cores();
        Some(timed)
    }

    /// Has the slots of a loop with one asynchronous product be read as long as the tensor cores take for all warpgroups: the schedule has the time of one alone.
    fn share_tensor_cores(&mut self) {
        let is_product = |e: &Event| match &self.k.stmts[e.stmt] {
            StmtData::Assign { src, .. } => match &self.k.exprs[*src] {
                ExprData::Mma(mma) => mma.atom.is_some_and(|atom| atom.row().asynchronous()),
                _ => false,
            },
            _ => false,
        };
        let products: Vec<usize> = (0..self.events.len()).filter(|&i| is_product(&self.events[i])).collect();
        let clocks = self.pace.units.iter().find(|(unit, _)| *unit == TENSOR_CORES).map(|&(_, clocks)| clocks);
        let ([product], Some(clocks), true) = (&products[..], clocks, self.pace.in_clocks) else { return };
        let begin = self.events[*product].begin;
        let end = begin + clocks.min(self.length);
        let released: Vec<bool> = self
            .events
            .iter()
            .map(|e| matches!(self.operation(e), Some((ChannelOp::Release, _))) && (begin..end).contains(&e.begin))
            .collect();
        for (e, _) in self.events.iter_mut().zip(released).filter(|(_, released)| *released) {
            (e.begin, e.end) = (end, e.end.max(end + 1));
            self.shared = true;
        }
        if self.shared {
            self.events[*product].end = end;
        }
    }

    /// Whether its clocks are those of one warpgroup alone.
    fn is_of_one_warpgroup(&self) -> bool {
        self.pace.in_clocks && !self.shared
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

    /// Pipeline stages.
    fn stages(&self) -> u64 {
        self.events.iter().map(|e| e.begin / self.length).max().unwrap_or(0) + 1
    }

    /// A line of statements for each stage of each role.
    fn lines(&self) -> Vec<(bool, &'static str, u64)> {
        let roles: &[(bool, &str)] = match self.has_producer() {
            true => &[(true, "producer warps"), (false, "consumer warps")],
            false => &[(false, "all warps")],
        };
        let all = roles.iter().flat_map(|&(p, name)| (0..self.stages()).map(move |stage| (p, name, stage)));
        let has = |p: bool, stage: u64| self.events.iter().any(|e| e.producer == p && e.begin / self.length == stage);
        all.filter(|&(p, _, stage)| has(p, stage)).collect()
    }

    /// Whether a role of its own loads: it fills slots as soon as they are free, and others begin when the first is full.
    fn has_producer(&self) -> bool {
        self.events.iter().any(|e| e.producer)
    }

    /// How long the filling of a slot takes: what a load takes is not a part of a schedule.
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
    // Whether slots are handed over by mbarriers is decided after the schedule: the last program has their arrivals.
    let last = &kernel.tile.kernel;
    let mbarriers = last.values.keys().any(|v| last.handovers[v].is_some());
    // Where products of several warpgroups share the tensor cores, the clocks of one alone are no picture of the roles, nor of their slots.
    let roles = kernel.tile.timeline().is_ok();
    let mut loops = kernel.tile.iteration_times.iter().filter_map(|pace| Timed::new(k, pace));
    let apart = roles && loops.any(|timed| timed.is_of_one_warpgroup());
    for (i, pace) in kernel.tile.iteration_times.iter().enumerate() {
        let Some(timed) = Timed::new(k, pace) else { continue };
        let number = if kernel.tile.iteration_times.len() > 1 { format!("-{}", i + 1) } else { String::new() };
        let span = loop_of(k, pace.body).map_or_else(Default::default, |s| k.stmt_spans[s]);
        let (title, svg) = if roles && timed.is_of_one_warpgroup() { units(&timed) } else { pipeline(&timed) };
        out.push(Picture { title, span, ..Picture::new(Room::Time, format!("{prefix}pipeline{number}"), svg) });
        if let Some((title, svg)) = channels(&timed, mbarriers).filter(|_| !apart) {
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
    let places = if t.pace.in_clocks { "" } else { ". Statements stand in their order, not at their clocks" };
    let title = format!(
        "The loop in time, as scheduled and not measured: {ITERATIONS} iterations, each of which begins {} clocks after the one before{places}",
        t.pace.clocks
    );
    let lines = t.lines();
    let mut svg = Svg::new(t.x((ITERATIONS + t.stages() - 1) * t.length) + 20.0, TOP, &title);
    let mut y = TOP;
    let mut under = false;
    for line in &lines {
        let high = row(&mut svg, t, line, y);
        under |= high > ROW;
        y += high;
    }
    y = unit_rows(&mut svg, t, t.stages(), y) + 12.0;
    for (n, e) in t.events.iter().enumerate() {
        let waits = waits_for(t, e).map_or(String::new(), |text| format!("; waits for {text}"));
        svg.text(12.0, y + 8.0, Anchor::Start, &format!("{:>2}  {}{waits}", n + 1, print_head(t.k, e.stmt)));
        y += 15.0;
    }
    svg.end(y);
    legend(&mut svg, t, under);
    (title, svg.done())
}

/// The units alone, of a loop whose statements are in the picture of the roles.
fn units(t: &Timed<'_>) -> (String, String) {
    let title = format!(
        "The units of the multiprocessor in the loop, as scheduled and not measured: what an iteration takes of each, of the {} clocks after which the next one begins",
        t.pace.clocks
    );
    let mut svg = Svg::new(t.x(ITERATIONS * t.length) + 20.0, TOP, &title);
    let y = unit_rows(&mut svg, t, 1, TOP) + 4.0;
    svg.end(y);
    unit_keys(&mut svg, t);
    svg.note(
        "The statements are in `roles`: several warpgroups share the tensor cores, so each works and waits at other clocks than the schedule of one alone has.",
    );
    unit_notes(&mut svg, t);
    (title, svg.done())
}

/// Rows of the units, from the iteration at which all `stages` are at work, and the clock; returns where they end.
fn unit_rows(svg: &mut Svg, t: &Timed<'_>, stages: u64, mut y: f64) -> f64 {
    let used = |list: &'static str, of: &[(&'static str, u64)]| {
        of.iter().filter(|u| u.1 > 0).map(|u| (*u, list)).collect::<Vec<_>>()
    };
    for ((name, clocks), fill) in [used(COUNTED, &t.pace.units), used(BESIDE, &t.pace.unmodelled)].concat() {
        let share = clocks as f64 / t.pace.clocks.max(1) as f64;
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, &format!("{name}: {clocks}"));
        for i in 0..ITERATIONS {
            let x = t.x((i + stages - 1) * t.length);
            let (width, text) = (WIDTH * share.min(1.0), format!("{:.0} %", 100.0 * share));
            svg.rect((x, y + 4.0), (width, ROW - 8.0), fill);
            let inside = width > Svg::wide(&text) + 12.0;
            svg.text(x + if inside { 4.0 } else { width + 4.0 }, y + 15.0, Anchor::Start, &text);
        }
        y += ROW;
    }
    for i in 0..=ITERATIONS + stages - 1 {
        let x = t.x(i * t.length);
        svg.line((x, 26.0), (x, y), "#bbbbbb", true);
        if t.pace.in_clocks {
            svg.colored(x + 2.0, 36.0, Anchor::Start, DIM, &(i * t.length).to_string());
        }
    }
    if t.pace.in_clocks {
        svg.colored(LEFT - 8.0, 36.0, Anchor::End, DIM, "clock");
    }
    y
}

/// What the fills of units mean.
fn unit_keys(svg: &mut Svg, t: &Timed<'_>) {
    svg.key(Key::Cell(COUNTED), "clocks an iteration takes of a unit, as the schedule counts");
    if !t.pace.unmodelled.is_empty() {
        svg.key(Key::Cell(BESIDE), "the same, of units that the schedule does not count");
    }
}

/// What the numbers of units are.
fn unit_notes(svg: &mut Svg, t: &Timed<'_>) {
    if !t.pace.unmodelled.is_empty() {
        svg.note("Rates are those of the model. `memory, uncached` is what copies take if the cache had nothing; more than 100 % is drawn as 100 %.");
    }
    let longest = t.pace.unmodelled.iter().filter(|(name, _)| *name != UNCACHED).max_by_key(|(_, clocks)| *clocks);
    if let Some((name, clocks)) = longest.filter(|(_, clocks)| t.pace.in_clocks && *clocks > t.pace.clocks) {
        svg.note(format!(
            "An iteration then lasts {clocks} clocks or more, for {name} takes longer than the schedule. `roofline` and `time` count that, and what iterations wait for."
        ));
    }
}

/// What the signs of a pipeline mean; `under`: some numbers are under their boxes.
fn legend(svg: &mut Svg, t: &Timed<'_>, under: bool) {
    for i in 0..ITERATIONS {
        svg.key(Key::Cell(TINTS[i as usize % TINTS.len()]), format!("iteration {i}"));
    }
    svg.key(Key::Text("2-4"), "statements 2 to 4 of the list");
    unit_keys(svg, t);
    let lasts = match t.pace.in_clocks {
        true => {
            "A box lasts until the next statement of its role begins or the iteration ends, whether the role works or waits. Waits, releases and the like are narrow boxes: how long a wait takes is not known."
        }
        false => "Boxes have one width each, in the order of the statements.",
    };
    svg.note(lasts);
    if t.shared {
        svg.note("The product lasts as long as the tensor cores take for all warpgroups; the cycles of the list are those of one warpgroup alone.");
    }
    if under {
        svg.note(
            "The numbers of narrow boxes stand under iteration 0; the boxes of the other iterations are the same.",
        );
    }
    unit_notes(svg, t);
    if t.has_producer() {
        svg.note("A producer runs ahead, as far as there are free slots: `slots` shows them.");
        if t.is_of_one_warpgroup() {
            svg.note("Clocks are those of one warpgroup alone.");
        }
    }
}

/// A row of statements at this height; returns how high it is, with the numbers under it.
fn row(svg: &mut Svg, t: &Timed<'_>, &(producer, name, stage): &(bool, &str, u64), y: f64) -> f64 {
    let label = if t.stages() > 1 { format!("{name}, stage {stage}") } else { name.to_owned() };
    svg.text(LEFT - 8.0, y + 15.0, Anchor::End, &label);
    // Where the last number under the row ends, in each line of them.
    let mut ends: Vec<f64> = Vec::new();
    for i in 0..ITERATIONS {
        for (begin, end, numbers) in together(t, producer, stage) {
            let (from, to) =
                (t.x(begin + i * t.length), t.x(end + i * t.length).max(t.x(begin + i * t.length) + NARROW));
            svg.rect((from, y + 2.0), (to - from, ROW - 4.0), TINTS[i as usize % TINTS.len()]);
            let (middle, wide) = ((from + to) / 2.0, Svg::wide(&numbers));
            if to - from > wide + 2.0 {
                svg.text(middle, y + 15.0, Anchor::Middle, &numbers);
            } else if i == 0 {
                let left = middle - wide / 2.0;
                let line = ends.iter().position(|&end| end + 4.0 < left).unwrap_or(ends.len());
                ends.resize(ends.len().max(line + 1), 0.0);
                ends[line] = middle + wide / 2.0;
                let at = y + ROW + 14.0 * line as f64;
                svg.line((middle, y + ROW - 2.0), (middle, at + 2.0), DIM, false);
                svg.colored(middle, at + 11.0, Anchor::Middle, INK, &numbers);
            }
        }
    }
    ROW + 14.0 * ends.len() as f64
}

/// What a role does in a stage of iteration 0: from when to when (only waits and the like: for no time that is known), and the numbers of the statements, of those that begin at once together.
fn together(t: &Timed<'_>, producer: bool, stage: u64) -> Vec<(u64, u64, String)> {
    let own = t.events.iter().enumerate().filter(|(_, e)| e.producer == producer && e.begin / t.length == stage);
    let mut all: BTreeMap<u64, (u64, Vec<usize>)> = BTreeMap::new();
    for (n, e) in own {
        let at = all.entry(e.begin).or_default();
        // Of clocks alone it is known how long a statement takes; what a channel has to wait for is not.
        let end = if t.pace.in_clocks && t.operation(e).is_some() { e.begin } else { e.end };
        at.0 = at.0.max(end);
        at.1.push(n + 1);
    }
    let all = all.into_iter().map(|(begin, (end, numbers))| (begin, end, ranges(&numbers)));
    all.collect()
}

/// Ascending numbers, neighbours as a range: `1, 3-5`.
pub(super) fn ranges(numbers: &[usize]) -> String {
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

/// The slots of the channels over time; `mbarriers`: they are handed over by these.
fn channels(t: &Timed<'_>, mbarriers: bool) -> Option<(String, String)> {
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
    let title = format!("{SLOTS} between producer and consumers over time, as scheduled");
    let last = known
        .iter()
        .map(|(.., [.., r])| r + (ITERATIONS + u64::from(t.has_producer())) * t.length)
        .max()
        .unwrap_or(1)
        .max(1);
    let mut svg = Svg::new(t.x(last) + 30.0, 36.0 + rows as f64 * ROW, &title);
    let mut y = 30.0;
    let mut idle = false;
    let waited = !mbarriers && t.events.iter().any(|e| t.loads(e.stmt) && t.lands_later(e.stmt));
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
                // That copies have landed is known when they are waited for.
                let full = if waited { read } else { (begin + filling).min(read).max(begin) };
                for (from, to, text, fill) in
                    [(begin, full, "f", TINTS[6]), (full, read, "=", TINTS[3]), (read, free, "r", TINTS[0])]
                {
                    let (x, end) = (t.x(from), t.x(to).min(t.x(last)));
                    idle |= text == "=" && end > x;
                    // Of one that is cut off at the edge nothing is drawn that has no room for its name.
                    if end > x && (end - x > 30.0 || t.x(to) <= t.x(last)) {
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
    svg.key(Key::Cell(TINTS[6]), "f3: being filled for iteration 3");
    if idle {
        svg.key(Key::Cell(TINTS[3]), "=3: full, and nobody reads it yet");
    }
    svg.key(Key::Cell(TINTS[0]), "r3: being read in iteration 3");
    let (released, full) = handed_over(mbarriers, waited);
    svg.key(Key::Line(STRONG), released);
    match waited {
        true => svg.note(full),
        false => svg.note(format!(
            "{full} How long a load takes is not a part of a schedule: it is drawn as half an iteration."
        )),
    }
    Some((title, svg.done()))
}

/// What a released slot means, and what ends its filling.
fn handed_over(mbarriers: bool, waited: bool) -> (&'static str, &'static str) {
    if mbarriers {
        let released = "the slot was released: its `empty` barrier completes, and the producer goes on";
        return (released, "Where f ends, the `full` barrier completes.");
    }
    let released =
        "the slot was released: all warps have passed a barrier (`bar.sync`) after their reads, and it is filled again";
    let full = match waited {
        true => {
            "Where f ends, the group of its `cp.async` copies is waited for (`cp.async.wait_group`), and all warps pass a barrier. The copies may have landed long before."
        }
        false => "Where f ends, threads have stored what they loaded, and all warps pass a barrier.",
    };
    (released, full)
}

/// Why a kernel has no picture of a loop in time; `None`: it has one.
pub(super) fn missing(kernel: &CompiledKernel) -> Option<String> {
    let k = &kernel.tile.specialized;
    let scheduled = kernel.tile.scheduled.as_ref();
    if scheduled.is_some_and(|k| kernel.tile.iteration_times.iter().any(|pace| Timed::new(k, pace).is_some())) {
        return None;
    }
    let has = |is: fn(&StmtData) -> bool| k.statement_data().any(is);
    let why = if !has(|s| matches!(s, StmtData::For { .. })) {
        "the kernel has no loop"
    } else if has(|s| matches!(s, StmtData::Role { .. })) {
        match kernel.tile.timeline() {
            Ok(_) => return None,
            Err(why) => why,
        }
    } else if k.schedule.stages.and_then(|e| k.as_int(e)) == Some(1) {
        "`stages 1` keeps iterations from overlapping: each waits for what it loads, then computes"
    } else {
        "no loop is pipelined; `tilec why --not pipelined` says why"
    };
    Some(why.to_owned())
}

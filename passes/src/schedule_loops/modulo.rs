//! A modulo schedule of a loop's body: the order of an iteration in the steady state, and which statements lag an
//! iteration later.
//!
//! The consumer's warps issue one statement after the other; wgmma runs in parallel until a statement needs its sums.
//! So two decisions determine the overlap: which products run in the iteration after the one to which their operands
//! belong (stage 1), and the order within an iteration. For each set of lagging products, the other lagging statements
//! follow from the dependence graph. The order is a list schedule on two resources: the warps' issue slots and the
//! tensor cores. A statement that need not wait precedes one that must. The set with the shortest iteration wins; of
//! equals the one with fewer lagging products.
//!
//! This is modulo scheduling (Rau, *Iterative modulo scheduling*, 1994) with two stages, whose search space is small
//! enough to enumerate. It is limited by registers. A value that one stage passes to the next is in one register tile,
//! so it is read before it is written again. The tiles that are live at the same time must fit a thread's registers
//! ([`super::pressure`]).

use super::cost::{self, Cost, LATENCY};
use super::lag;
use super::live_slots;
use super::pressure::Tiles;
use crate::Cx;
use crate::analysis::access_width::slots_of;
use crate::analysis::live_ranges::zeroed;
use crate::analysis::reduction::{self, Reduction};
use crate::analysis::unit_usage as beside;
use crate::analysis::wgmma::is_product;
use crate::graph::{Dep, DepGraph};
use crate::producer_fills::computed;
use crate::refusal::Refused;
use crate::registers::overhead::ADDRESSES;
use crate::roles::{consumer_registers, consumer_warps};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::iteration_time::{IterationTime, TENSOR_CORES};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, StmtPlan, ValueDef};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::target::WARPGROUP;
use tilec_ir::typing::fixed_shape;

/// Most products of a loop whose stages are searched; with more, none lags.
const MOST: u32 = 8;
/// A schedule with more lagging products must be shorter by one part in this number.
const WORTH: u64 = 32;
/// The part, in sixteenths, of the shorter resource that is not overlapped when several warpgroups share the tensor
/// cores.
const EXPOSED: u64 = 4;

/// The role of a statement in the schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// The producer's.
    Producer,
    /// An index or a declaration: it is computed where it is needed.
    Free,
    Product,
    Other,
}

pub(super) struct Loop<'k> {
    pub(super) k: &'k Kernel,
    pub(super) graph: DepGraph,
    kinds: Vec<Kind>,
    costs: Vec<Cost>,
    groups: u64,
    /// The reduction, if the loop only accumulates products.
    sole: Option<Reduction>,
    tiles: Tiles,
    /// Registers of a thread for tiles.
    tile_registers: u64,
}

/// A schedule: stage and cycle of every statement, and the length of an iteration.
#[derive(Clone, Debug)]
struct Schedule {
    stages: Vec<u32>,
    cycles: Vec<u64>,
    length: u64,
    lagging: u32,
    /// Registers that tiles need beyond those available.
    lacks: u64,
    /// Statements that the warpgroups execute one after the other.
    ordered: Vec<usize>,
}

/// Gives each statement of `body` a stage and a cycle. Returns the clocks of an iteration if the schedule differs from
/// program order.
pub(super) fn schedule(k: &mut Kernel, cx: &mut Cx<'_>, body: Block) -> Result<Option<u64>, Reported> {
    let sole = reduction::of(k, body);
    let place = k.blocks[body].iter().find(|&&s| is_product(k, s)).map_or(k.name_span, |&s| k.stmt_spans[s]);
    let lag = lag::stay_pending(k, cx, body, &sole, place)?;
    let l = Loop::new(k, cx, body);
    let units = l.units();
    let [(first, most), ref rest @ ..] = units;
    let rest = rest.map(|(unit, clocks)| format!("{unit} {clocks}"));
    let binds = format!("bound by {first} with {most}; {}", rest.join(", "));
    let found = if l.sole.is_some() { l.with(&|_| false, lag, 0) } else { l.best() };
    let Some(found) = found else {
        // Program order is always a valid schedule.
        let orders = l.graph.accesses.iter().position(|a| a.orders).map(|i| k.stmt_spans[l.graph.stmts[i]]);
        let refused = match orders {
            Some(span) => Refused::by_request_at(span, "this itself synchronises threads"),
            None => Refused::room("no order of its statements fits the available registers and slots"),
        };
        plain(k, body);
        let products = k.blocks[body].iter().copied().filter(|&s| is_product(k, s)).collect();
        refused.or_at(place).report(k, cx, "the loop keeps the order of the text", (FastPath::Overlap, products));
        return Ok(None);
    };
    let list = k.blocks[body].clone();
    let span = list.iter().find(|&&s| is_product(k, s)).map_or(k.name_span, |&s| k.stmt_spans[s]);
    for (i, &s) in list.iter().enumerate() {
        let cycle = u32::try_from(found.cycles[i]).expect("an iteration is short");
        k.plans[s] = StmtPlan { stage: Some(found.stages[i]), cycle: Some(cycle), ..k.plans[s] };
    }
    for i in found.ordered {
        k.plans[list[i]].ordered = true;
    }
    let late = list.iter().zip(&found.stages).filter(|&(&s, &stage)| stage > 0 && is_product(k, s)).count();
    let what = match late {
        0 => "no `wgmma` overlaps the next iteration".to_owned(),
        n => format!("{n} `wgmma` product(s) overlap the next iteration"),
    };
    // No schedule is faster than its most used resource.
    let length = found.length.max(most);
    let message = format!("an iteration takes about {length} clocks of a warpgroup ({binds}): {what}");
    let beside = beside::unmodelled_clocks(k, cx.options.usual_card(), body);
    cx.pace(
        span,
        message,
        IterationTime {
            body,
            variable: k.loop_variable(body).map_or_else(Default::default, |v| k.values[v].span),
            clocks: length,
            in_clocks: true,
            units: units.to_vec(),
            unmodelled: beside,
        },
    );
    Ok(Some(length))
}

/// Schedules everything in program order.
fn plain(k: &mut Kernel, body: Block) {
    for (i, s) in k.blocks[body].clone().into_iter().enumerate() {
        k.plans[s] = StmtPlan { stage: Some(0), cycle: Some(i as u32), ..k.plans[s] };
    }
}

impl Loop<'_> {
    pub(super) fn new<'k>(k: &'k Kernel, cx: &Cx<'_>, body: Block) -> Loop<'k> {
        let graph = DepGraph::of(k, body, true);
        let warpgroups = (consumer_warps(k) / WARPGROUP).max(1);
        let (own, groups) = (consumer_registers(k, warpgroups * WARPGROUP), u64::from(warpgroups));
        let card = cx.options.usual_card();
        let kinds = graph.stmts.iter().map(|&s| kind(k, s)).collect();
        let costs = graph.stmts.iter().map(|&s| cost::of(k, card, s, groups)).collect();
        let sole = reduction::of(k, body).ok();
        let tiles = Tiles::of(k, &graph, groups, &|s| zeroed(k, s));
        let room = u64::try_from(own).expect("a count of registers").saturating_sub(ADDRESSES);
        Loop { k, graph, kinds, costs, groups, sole, tiles, tile_registers: room }
    }

    /// Use of each resource by an iteration, largest first.
    fn units(&self) -> [(&'static str, u64); 3] {
        // The producer's statements run in other warps, and free statements are computed elsewhere.
        let own = |&(kind, _): &(&Kind, &Cost)| !matches!(kind, Kind::Producer | Kind::Free);
        let costs: Vec<&Cost> = self.kinds.iter().zip(&self.costs).filter(own).map(|(_, cost)| cost).collect();
        let sum = |of: fn(&Cost) -> u64| costs.iter().map(|&cost| of(cost)).sum::<u64>();
        // Warpgroups have separate issue slots, and share the other units.
        let mut all = [
            (TENSOR_CORES, sum(|c| c.tensor) * self.groups),
            ("special functions", sum(|c| c.special) * self.groups),
            ("issue slots", sum(|c| c.issue)),
        ];
        all.sort_by_key(|&(_, clocks)| std::cmp::Reverse(clocks));
        all
    }

    fn best(&self) -> Option<Schedule> {
        if self.graph.accesses.iter().any(|a| a.orders) {
            return None;
        }
        let products: Vec<usize> = (0..self.kinds.len()).filter(|&i| self.kinds[i] == Kind::Product).collect();
        let n = if products.len() as u32 <= MOST { products.len() as u32 } else { 0 };
        let releases = self.may_release_late();
        let mut best: Option<Schedule> = None;
        for set in 0..1u32 << n {
            let late = |i: usize| products.iter().position(|&p| p == i).is_some_and(|b| set >> b & 1 == 1);
            for late_release in [false, true] {
                if late_release && !releases {
                    continue;
                }
                let Some(found) = self.with(&late, late_release, set.count_ones()) else { continue };
                // Lagging takes registers or slots, so it must gain enough.
                let better = |b: &Schedule| match found.lagging > b.lagging {
                    _ if found.lacks != b.lacks => found.lacks < b.lacks,
                    true => found.length * WORTH < b.length * (WORTH - 1),
                    false => (found.length, found.lagging) < (b.length, b.lagging),
                };
                if best.as_ref().is_none_or(better) {
                    best = Some(found);
                }
            }
        }
        best
    }

    /// Whether all channels of the loop have a slot to fill while two are held.
    fn may_release_late(&self) -> bool {
        let released =
            (0..self.kinds.len()).filter_map(|i| self.channel(i)).filter(|(op, _)| *op == ChannelOp::Release);
        let slots = |v: &Value| match self.k.values[*v].def {
            ValueDef::Channel { .. } => slots_of(self.k, *v),
            _ => 1,
        };
        let mut some = false;
        let enough = released.flat_map(|(_, channels)| channels).all(|c| {
            some = true;
            slots(c) > 2
        });
        some && enough
    }

    pub(super) fn channel(&self, i: usize) -> Option<(ChannelOp, &[Value])> {
        match &self.k.stmts[self.graph.stmts[i]] {
            StmtData::Channel { op, channels, .. } => Some((*op, channels)),
            _ => None,
        }
    }

    /// The schedule in which these products lag; `late_release`: slots are released an iteration after their products
    /// are issued.
    fn with(&self, late: &dyn Fn(usize) -> bool, late_release: bool, lagging: u32) -> Option<Schedule> {
        let stages = self.stages(late, late_release)?;
        let order = self.order(&stages)?;
        if !live_slots::slots_suffice(self.k, &self.graph.stmts, &order, &stages) {
            return None;
        }
        let (cycles, alone) = self.times(&order, &stages);
        let tensor: u64 = self.costs.iter().map(|c| c.tensor).sum::<u64>() * self.groups;
        // Warpgroups fill each other's gaps, except for a part.
        let (long, short) = (tensor.max(alone), tensor.min(alone));
        let length = if self.groups > 1 { long + short * EXPOSED / 16 } else { long.max(alone) };
        let ordered = self.alternating_statements(&order);
        let lacks = self.tiles.peak(self.k, &self.graph, &order, &stages).saturating_sub(self.tile_registers);
        Some(Schedule { stages, cycles, length, lagging: lagging + u32::from(late_release), lacks, ordered })
    }

    /// The statements that warpgroups execute alternately: from the first product of an iteration to the last one.
    /// Nothing in between may wait for sums, and the rest of the iteration must be long enough for another warpgroup's
    /// products.
    fn alternating_statements(&self, order: &[usize]) -> Vec<usize> {
        if self.groups < 2 || self.sole.is_some() {
            return Vec::new();
        }
        let is_product = |&i: &usize| self.kinds[i] == Kind::Product;
        let (Some(first), Some(last)) = (order.iter().position(is_product), order.iter().rposition(is_product)) else {
            return Vec::new();
        };
        let (issue, rest): (Vec<usize>, Vec<usize>) = order.iter().partition(|&i| order[first..=last].contains(i));
        let others = |list: &[usize]| list.iter().filter(|i| !is_product(i)).map(|&i| self.costs[i].issue).sum::<u64>();
        let tensor: u64 = order.iter().map(|&i| self.costs[i].tensor).sum();
        let quiet = others(&issue) < tensor / 8;
        if quiet && others(&rest) * 4 > tensor { issue } else { Vec::new() }
    }

    /// The stage of each statement.
    fn stages(&self, late: &dyn Fn(usize) -> bool, late_release: bool) -> Option<Vec<u32>> {
        let n = self.kinds.len();
        let mut stages = vec![0u32; n];
        for i in 0..n {
            if matches!(self.kinds[i], Kind::Producer | Kind::Free) {
                continue;
            }
            let mut own = u32::from(late(i));
            for (from, dep) in self.before(i) {
                if dep.distance == 0 && from < i && !matches!(self.kinds[from], Kind::Producer | Kind::Free) {
                    own = own.max(stages[from]);
                }
            }
            let release = matches!(self.channel(i), Some((ChannelOp::Release, _)));
            stages[i] = own.max(u32::from((release || self.adds_part(i)) && late_release));
        }
        // The wait for a slot has the stage of the first reader.
        for i in (0..n).rev() {
            if matches!(self.channel(i), Some((ChannelOp::Wait, _))) {
                let readers = (i + 1..n).filter(|&j| self.before(j).any(|(from, d)| from == i && d.distance == 0));
                stages[i] = readers.map(|j| stages[j]).min().unwrap_or(0);
            }
        }
        // Fills have the stage of the wait for their slot.
        for i in 0..n {
            if self.kinds[i] == Kind::Producer {
                stages[i] = stages[self.wait_behind(i)?];
            }
        }
        let legal = |(a, b, d): (usize, usize, Dep)| stages[b] + d.distance >= stages[a] || self.relaxed(a, b, d);
        self.edges().all(legal).then_some(stages)
    }

    /// Whether a statement adds a partial sum to the accumulator.
    fn adds_part(&self, i: usize) -> bool {
        let part = self.sole.as_ref().and_then(|step| step.part.as_ref());
        part.is_some_and(|part| part.sum == self.graph.stmts[i])
    }

    /// The wait that follows the producer's statements at `i`.
    fn wait_behind(&self, i: usize) -> Option<usize> {
        (i..self.kinds.len()).find(|&j| matches!(self.channel(j), Some((ChannelOp::Wait, _))))
    }

    fn before(&self, i: usize) -> impl Iterator<Item = (usize, Dep)> {
        self.graph.before(self.graph.stmts[i]).filter_map(|(s, d)| Some((self.graph.position(s)?, d)))
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = (usize, usize, Dep)> {
        self.graph.edges().filter_map(|(a, b, d)| Some((self.graph.position(a)?, self.graph.position(b)?, d)))
    }

    /// Whether an edge is no constraint: between roles, from free statements, and from the release of a slot to a wait
    /// for another one.
    pub(super) fn relaxed(&self, a: usize, b: usize, d: Dep) -> bool {
        let free = |i: usize| matches!(self.kinds[i], Kind::Producer | Kind::Free);
        if free(a) || free(b) {
            return true;
        }
        let slots = match self.k.values[d.value].def {
            ValueDef::Channel { .. } => slots_of(self.k, d.value),
            _ => 1,
        };
        let released = matches!(self.channel(a), Some((ChannelOp::Release, _)));
        released && slots > 1 && matches!(self.channel(b), Some((ChannelOp::Wait, _)))
    }

    /// The precedence of statements within an iteration of the steady state; `None`: it is cyclic.
    fn constraints(&self, stages: &[u32]) -> Option<Vec<Vec<usize>>> {
        let mut before = vec![Vec::new(); self.kinds.len()];
        for (a, b, d) in self.edges() {
            if self.relaxed(a, b, d) || a == b {
                continue;
            }
            if (stages[b] + d.distance).checked_sub(stages[a])? == 0 {
                before[b].push(a);
            }
        }
        // A value that passes from one stage to the next is read before the next iteration overwrites it.
        for (at, access) in self.graph.accesses.iter().enumerate() {
            for touch in access.touches.iter().filter(|t| t.reads && !t.declares) {
                let Some(declared) = self.declared(touch.value) else { continue };
                // Two partial sums alternate.
                let part = self.sole.as_ref().and_then(|step| step.part.as_ref());
                if part.is_some_and(|part| part.value == touch.value) {
                    continue;
                }
                if self.kinds[at] == Kind::Free || self.kinds[declared] == Kind::Free && self.is_index(touch.value) {
                    continue;
                }
                for (w, writer) in self.graph.accesses.iter().enumerate() {
                    let writes = writer.get(touch.value).is_some_and(|t| t.writes) && self.kinds[w] != Kind::Free;
                    if !writes || w == at {
                        continue;
                    }
                    match stages[at].checked_sub(stages[w]) {
                        Some(1) => before[w].push(at),
                        Some(2..) => return None,
                        _ => {}
                    }
                }
            }
        }
        Some(before)
    }

    /// The statement of the body that declares a value.
    fn declared(&self, v: Value) -> Option<usize> {
        self.graph.accesses.iter().position(|a| a.get(v).is_some_and(|t| t.declares))
    }

    fn is_index(&self, v: Value) -> bool {
        matches!(self.k.values[v].def, ValueDef::Let)
    }

    /// The order of an iteration of the steady state, as indices of statements.
    fn order(&self, stages: &[u32]) -> Option<Vec<usize>> {
        let before = self.constraints(stages)?;
        let n = self.kinds.len();
        let timed = |i: usize| !matches!(self.kinds[i], Kind::Producer | Kind::Free);
        let mut done = vec![false; n];
        let mut order = Vec::new();
        let mut clock = Clock::new(self);
        while order.len() < (0..n).filter(|&i| timed(i)).count() {
            let ready = (0..n).filter(|&i| timed(i) && !done[i] && before[i].iter().all(|&b| done[b] || !timed(b)));
            let key = |&i: &usize| (clock.waits(i), self.kinds[i] != Kind::Product, i);
            let next = ready.min_by_key(key)?;
            clock.issue(next);
            done[next] = true;
            order.push(next);
        }
        Some(order)
    }

    /// The issue time of each statement in an iteration of the steady state, and the length of an iteration for a
    /// single warpgroup.
    fn times(&self, order: &[usize], _stages: &[u32]) -> (Vec<u64>, u64) {
        let mut clock = Clock::new(self);
        let mut cycles = vec![0; self.kinds.len()];
        let (mut begin, mut length) = (0, 0);
        for _ in 0..4 {
            begin = clock.now;
            for &i in order {
                cycles[i] = clock.now.max(clock.now + clock.waits(i)) - begin;
                clock.issue(i);
            }
            length = clock.now - begin;
        }
        let _ = begin;
        for i in 0..self.kinds.len() {
            if self.kinds[i] == Kind::Producer
                && let Some(wait) = self.wait_behind(i)
            {
                cycles[i] = cycles[wait];
            }
        }
        (cycles, length)
    }
}

/// The time of a warpgroup that issues statements in order.
struct Clock<'a> {
    of: &'a Loop<'a>,
    now: u64,
    /// The time at which the tensor cores finish the issued products.
    tensor: u64,
    /// The times at which the sums of an accumulator are complete, or a product has read a channel's slots or a
    /// register tile.
    complete: Vec<(Value, u64)>,
}

impl Clock<'_> {
    fn new<'a>(of: &'a Loop<'a>) -> Clock<'a> {
        Clock { of, now: 0, tensor: 0, complete: Vec::new() }
    }

    /// The time that the statement waits for products before it can be issued.
    fn waits(&self, i: usize) -> u64 {
        if self.of.kinds[i] == Kind::Product {
            return 0;
        }
        let release = matches!(self.of.channel(i), Some((ChannelOp::Release, _)));
        let at = self.of.graph.accesses[i]
            .touches
            .iter()
            .filter(|t| {
                t.writes || t.reads && (release || !matches!(self.of.k.values[t.value].def, ValueDef::Channel { .. }))
            })
            .filter(|t| release || !matches!(self.of.k.values[t.value].def, ValueDef::Channel { .. }))
            .filter_map(|t| self.complete.iter().find(|c| c.0 == t.value).map(|c| c.1))
            .max()
            .unwrap_or(0);
        at.saturating_sub(self.now)
    }

    fn issue(&mut self, i: usize) {
        self.now += self.waits(i);
        let cost = self.of.costs[i];
        self.now += cost.issue;
        if self.of.kinds[i] == Kind::Product {
            self.tensor = self.tensor.max(self.now) + cost.tensor;
            let end = self.tensor + LATENCY;
            for touch in &self.of.graph.accesses[i].touches {
                self.complete.retain(|c| c.0 != touch.value);
                self.complete.push((touch.value, end));
            }
        }
    }
}

fn kind(k: &Kernel, s: Stmt) -> Kind {
    if k.plans[s].producer {
        return Kind::Producer;
    }
    if is_product(k, s) {
        return Kind::Product;
    }
    match k.stmts[s] {
        StmtData::Var { init: None, .. } | StmtData::Alloc { .. } => Kind::Free,
        StmtData::Let { init, .. } if is_index(k, init) => Kind::Free,
        _ => Kind::Other,
    }
}

/// Whether a name is an index or a window that the loop's computations do not change.
pub(crate) fn is_index(k: &Kernel, init: tilec_ir::entities::Expr) -> bool {
    let scalar = matches!(k.exprs[init], ExprData::View(_)) || fixed_shape(k, init).is_none_or(|s| s.is_empty());
    scalar && computed(k, init).is_none_or(|v| matches!(k.values[v].def, ValueDef::Tensor(_)))
}

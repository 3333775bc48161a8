//! The roles of a kernel as steps with their clocks, and the loops around them. A kernel without roles is one role of all warps.

use super::data::{INNER, Line, NESTED, OUTER};
use crate::analysis::unit_usage::of_elements;
use crate::analysis::wgmma::is_product;
use crate::choose::{Card, known_int_in};
use crate::graph::accesses::Accesses;
use crate::pipeline::product_clocks;
use crate::roles::threads_of;
use crate::schedule_loops::modulo::is_index;
use crate::schedule_loops::{Cost, of_warps};
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::handover::role_warps;
use tilec_ir::index;
use tilec_ir::kernel::{ChannelOp, ENDLESS, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::placement::slots;
use tilec_ir::roles::replicas;
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::types::Lanes;
use tilec_ir::typing::{copy_shape, fixed_shape, let_init, resolve_view};

/// What a step does besides taking its clocks.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Other,
    Product {
        sum: Value,
        asynchronous: bool,
    },
    /// Products of a sum, or stores of a buffer: all but so many are done.
    Await {
        value: Value,
        pending: u32,
    },
    Channel(ChannelOp, Vec<Value>),
    /// From windows of tensors into the slot of a channel, a buffer or registers; `held`: the warps hold the elements in
    /// between. `threads`: they load the elements to registers in any case.
    Load {
        from: Vec<Value>,
        into: Value,
        bytes: u64,
        held: bool,
        threads: bool,
    },
    Store {
        from: Value,
        bytes: u64,
    },
    Barrier,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) act: Act,
    pub(super) cost: Cost,
    /// One lane executes it, of the first warpgroup.
    pub(super) elected: bool,
    /// What it reads and writes, and the channels among it.
    pub(super) reads: Vec<Value>,
    pub(super) writes: Vec<Value>,
    pub(super) channels: Vec<Value>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Step(usize),
    /// A loop that is not unrolled; an unrolled one is its steps.
    Loop {
        at: Stmt,
        trips: u64,
        /// Iterations of a launch, by the given sizes; those that run here, if none are given.
        all: f64,
        body: Vec<Node>,
    },
    /// One warpgroup (replica) after the other; which of these statements it is, and its own step.
    Ordered {
        id: usize,
        step: usize,
        body: Vec<Node>,
    },
}

/// The name of the only role of a kernel that has none.
const BLOCK: &str = "block";

#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) warps: u32,
    pub(super) replicas: u32,
    pub(super) elected: bool,
    pub(super) body: Vec<Node>,
    /// The channels whose slots count its iterations: those of innermost loops.
    pub(super) counting: Vec<Value>,
    /// The one of them that it waits for, or acquires, first.
    pub(super) first: Option<Value>,
}

impl Node {
    /// The steps in it, in order.
    pub(super) fn steps(&self, out: &mut Vec<usize>) {
        match self {
            Node::Step(i) => out.push(*i),
            Node::Loop { body, .. } | Node::Ordered { body, .. } => body.iter().for_each(|node| node.steps(out)),
        }
    }
}

impl Role {
    /// Warpgroups of a replica.
    pub(super) fn groups(&self) -> u32 {
        (self.warps / WARPGROUP).max(1)
    }
}

#[derive(Clone, Default, Debug)]
pub(super) struct Program {
    pub(super) roles: Vec<Role>,
    pub(super) steps: Vec<Step>,
    pub(super) lines: Vec<Line>,
    /// How many ordered statements there are.
    pub(super) ordered: usize,
    /// Iterations of an innermost loop.
    pub(super) iterations: u64,
    /// Loops of which nothing says how often they run.
    pub(super) uncounted: Vec<Stmt>,
}

/// Which iterations of loops run.
#[derive(Copy, Clone, Debug)]
pub(super) enum Iterations<'a> {
    /// A few, whatever the sizes are.
    Few,
    /// As many as with these sizes, up to `most` of an innermost loop and `outer` of another one, for each replica.
    OfSizes { sizes: &'a [(String, i64)], most: u64, outer: u64 },
}

impl Program {
    pub(super) fn of(k: &Kernel, card: &Card, iterations: Iterations<'_>) -> Program {
        let is_role = |&s: &Stmt| matches!(k.stmts[s], StmtData::Role { .. });
        let roles: Vec<Stmt> = k.blocks[k.body].iter().copied().filter(is_role).collect();
        let nested = match roles.is_empty() {
            true => has_nest(k, k.body, 0),
            false => roles.iter().any(|&s| k.sub_blocks(s).iter().any(|&b| has_nest(k, b, 0))),
        };
        let (program, role, variables) = (Program::default(), String::new(), BTreeMap::new());
        let mut made = Maker { k, card, iterations, program, role, warps: 0, elected: false, variables };
        let (most, outer) = match iterations {
            Iterations::Few => (if nested { NESTED } else { INNER }, OUTER),
            Iterations::OfSizes { most, outer, .. } => (most, outer),
        };
        made.program.iterations = most;
        // Roles share the iterations of a loop around others, and each replica has as many.
        let most = roles.iter().filter_map(|&s| replicas(k, s)).max().unwrap_or(1);
        for &s in &roles {
            made.role(s, outer * u64::from(most));
        }
        if roles.is_empty() {
            made.role = BLOCK.to_owned();
            made.warps = threads_of(k).div_ceil(WARP);
            made.body(k.body, 1, outer);
        }
        made.explain();
        made.program
    }
}

/// A loop with products, and the loads by threads among its steps.
pub(super) struct LoopOfLoads {
    pub(super) at: Stmt,
    pub(super) loads: Vec<usize>,
}

impl Program {
    /// The innermost loops with products that load by threads.
    pub(super) fn loops_of_loads(&self) -> Vec<LoopOfLoads> {
        let mut found = Vec::new();
        for role in &self.roles {
            self.loops(&role.body, &mut found);
        }
        found
    }

    fn loops(&self, nodes: &[Node], found: &mut Vec<LoopOfLoads>) {
        for node in nodes {
            match node {
                Node::Step(_) => {}
                Node::Ordered { body, .. } => self.loops(body, found),
                Node::Loop { body, .. } if body.iter().any(has_loop) => self.loops(body, found),
                Node::Loop { at, body, .. } => found.extend(self.of_loop(*at, body)),
            }
        }
    }

    fn of_loop(&self, at: Stmt, body: &[Node]) -> Option<LoopOfLoads> {
        let mut steps = Vec::new();
        body.iter().for_each(|node| node.steps(&mut steps));
        let multiplies = steps.iter().any(|&i| matches!(self.steps[i].act, Act::Product { .. }));
        let mut loads: Vec<usize> = steps;
        loads.retain(|&i| matches!(self.steps[i].act, Act::Load { threads: true, .. }));
        loads.sort_unstable();
        loads.dedup();
        (multiplies && !loads.is_empty()).then_some(LoopOfLoads { at, loads })
    }

    /// The statement of a step.
    pub(super) fn stmt(&self, step: usize) -> Stmt {
        let line = self.lines.iter().find(|line| line.number == Some(step + 1));
        line.map(|line| line.stmt).expect("bug: a step has a line")
    }

    /// Whether the warps hold what a step loads until they store it to memory.
    pub(super) fn is_held(&self, step: usize) -> bool {
        matches!(self.steps[step].act, Act::Load { held: true, .. })
    }

    /// The tensors that a step loads from.
    pub(super) fn tensors(&self, step: usize) -> &[Value] {
        match &self.steps[step].act {
            Act::Load { from, .. } => from,
            _ => &[],
        }
    }

    /// The same with loads that land at once.
    pub(super) fn landed(&self, loads: impl Iterator<Item = usize>) -> Program {
        let mut program = self.clone();
        loads.for_each(|i| program.steps[i].act = Act::Other);
        program
    }
}

struct Maker<'a> {
    k: &'a Kernel,
    card: &'a Card,
    iterations: Iterations<'a>,
    program: Program,
    role: String,
    warps: u32,
    elected: bool,
    /// Values of the variables of loops around, in the middle of their ranges.
    variables: BTreeMap<Value, i64>,
}

impl Maker<'_> {
    fn role(&mut self, s: Stmt, outer: u64) {
        let k = self.k;
        let StmtData::Role { name, body, .. } = &k.stmts[s] else { return };
        self.role.clone_from(name);
        self.warps = role_warps(k, s).unwrap_or(WARPGROUP);
        self.elected = k.lanes[s] == Some(Lanes::Elected);
        self.body(*body, replicas(k, s).unwrap_or(1).max(1), outer);
    }

    /// Adds the role whose name and warps are set.
    fn body(&mut self, body: Block, replicas: u32, outer: u64) {
        let body = self.block(body, 0, outer);
        let mut counting = Vec::new();
        innermost(&body, &self.program.steps, &mut counting);
        let is = |wanted: ChannelOp| {
            let of = counting.iter().find(|(op, _)| *op == wanted);
            of.map(|&(_, c)| c)
        };
        let first = is(ChannelOp::Wait).or_else(|| is(ChannelOp::Acquire));
        let counting = counting.into_iter().map(|(_, c)| c).collect();
        let (name, elected, warps) = (self.role.clone(), self.elected, self.warps);
        self.program.roles.push(Role { name, warps, replicas, elected, body, counting, first });
    }

    fn block(&mut self, block: Block, depth: u32, outer: u64) -> Vec<Node> {
        let list = self.k.blocks[block].clone();
        list.into_iter().filter_map(|s| self.statement(s, depth, outer)).flatten().collect()
    }

    fn line(&mut self, stmt: Stmt, depth: u32, number: Option<usize>) {
        let role = self.role.clone();
        self.program.lines.push(Line { stmt, role, depth, number, waits_for: None, left_out: false });
    }

    fn statement(&mut self, s: Stmt, depth: u32, outer: u64) -> Option<Vec<Node>> {
        let k = self.k;
        match k.stmts[s] {
            StmtData::For { start, end, step, body, unroll: true, .. } => {
                let trips = [start, end, step].map(|e| k.as_int(e));
                let trips = index::trips(trips[0]?, trips[1]?, trips[2]?)?;
                self.line(s, depth, None);
                let body = self.block(body, depth + 1, outer);
                Some((0..trips).flat_map(|_| body.clone()).collect())
            }
            StmtData::For { var, start, end, step, body, .. } => {
                let most = if has_nest(k, body, 1) { outer } else { self.program.iterations };
                let (trips, all) = self.trips(s, (start, end, step), most, has_nest(k, body, 1));
                let middle = self.int(start).zip(self.int(step)).map(|(start, step)| start + (all as i64 / 2) * step);
                self.variables.extend(middle.map(|middle| (var, middle)));
                self.line(s, depth, None);
                let body = self.block(body, depth + 1, outer);
                Some(vec![Node::Loop { at: s, trips, all, body }])
            }
            StmtData::If { then, otherwise, .. } => {
                self.line(s, depth, None);
                // What a ragged tile alone requires is left out.
                if otherwise.is_none() && !matters(k, then) {
                    self.program.lines.last_mut().expect("it was pushed").left_out = true;
                    return None;
                }
                Some(self.block(then, depth + 1, outer))
            }
            StmtData::Ordered { body, .. } => {
                let (act, cost, elected) = (Act::Other, Cost::default(), false);
                self.program.steps.push(Step {
                    act,
                    cost,
                    elected,
                    reads: Vec::new(),
                    writes: Vec::new(),
                    channels: Vec::new(),
                });
                let number = self.program.steps.len();
                self.line(s, depth, Some(number));
                let id = self.program.ordered;
                self.program.ordered += 1;
                let body = self.block(body, depth + 1, outer);
                Some(vec![Node::Ordered { id, step: number - 1, body }])
            }
            StmtData::Role { .. } | StmtData::Alloc { .. } | StmtData::Var { init: None, .. } => None,
            StmtData::Let { init, .. } if is_index(k, init) => None,
            _ => {
                let step = self.step(s);
                self.program.steps.push(step);
                let number = self.program.steps.len();
                self.line(s, depth, Some(number));
                Some(vec![Node::Step(number - 1)])
            }
        }
    }

    /// The value of an index with the sizes.
    fn int(&self, e: Expr) -> Option<i64> {
        match self.iterations {
            Iterations::Few => None,
            Iterations::OfSizes { sizes, .. } => known_int_in(self.k, e, sizes, &self.variables),
        }
    }

    /// The iterations of a loop that run here, at most `most`, and all that it has. A loop of which nothing says how often
    /// it runs counts once.
    fn trips(&mut self, s: Stmt, range: (Expr, Expr, Expr), most: u64, nested: bool) -> (u64, f64) {
        let k = self.k;
        if let Iterations::Few = self.iterations {
            let trips = if nested { most } else { trips(k, range, most) };
            return (trips, trips as f64);
        }
        let (start, end, step) = range;
        let all = || index::trips(self.int(start)?, self.int(end)?, self.int(step)?);
        let Some(all) = all().filter(|_| k.as_int(end) != Some(ENDLESS)) else {
            self.program.uncounted.push(s);
            return (most, 1.0);
        };
        // Other loops may have executed the first ones.
        let first = || u64::try_from(k.as_int(start)? / k.as_int(step)?.max(1)).ok();
        let first = first().filter(|_| !nested).unwrap_or(0);
        (all.saturating_add(first).min(most.max(first)) - first, all as f64)
    }

    fn step(&self, s: Stmt) -> Step {
        let k = self.k;
        let touches = Accesses::of(k, s).touches;
        let reads: Vec<Value> = touches.iter().filter(|t| t.reads).map(|t| t.value).collect();
        let writes: Vec<Value> = touches.iter().filter(|t| t.writes).map(|t| t.value).collect();
        let mut channels: Vec<Value> = touches.iter().map(|t| t.value).collect();
        channels.retain(|&v| matches!(k.values[v].def, ValueDef::Channel { .. }));
        let mut act = self.act(s);
        let elected = self.elected || k.lanes[s] == Some(Lanes::Elected);
        if let Act::Load { into, bytes, .. } = &mut act {
            channels.extend(matches!(k.values[*into].def, ValueDef::Channel { .. }).then_some(*into));
            // Each warpgroup loads its part.
            *bytes /= if elected { 1 } else { u64::from((self.warps / WARPGROUP).max(1)) };
        }
        let mut cost = of_warps(k, self.card, s, if elected { 1 } else { self.warps }, elected);
        match act {
            Act::Product { asynchronous: false, .. } => match product_clocks(k, self.card, s) {
                (true, clocks) => cost.tensor = clocks / u64::from(self.warps.div_ceil(WARPGROUP)),
                // All warps share the units of scalar products.
                (false, clocks) => cost.issue += clocks,
            },
            Act::Await { .. } => cost = Cost::default(),
            _ => {}
        }
        Step { act, cost, elected, reads, writes, channels }
    }

    fn act(&self, s: Stmt) -> Act {
        let k = self.k;
        match &k.stmts[s] {
            StmtData::Assign { dst, src } if matches!(k.exprs[*src], ExprData::Mma(_)) => {
                Act::Product { sum: *dst, asynchronous: is_product(k, s) }
            }
            StmtData::Await { value, pending, .. } => Act::Await { value: *value, pending: *pending },
            StmtData::Channel { op, channels, .. } => Act::Channel(*op, channels.clone()),
            StmtData::Barrier => Act::Barrier,
            StmtData::Copy { src, dst, attrs } => {
                let base = |e| resolve_view(k, e).map(|view| view.base);
                let elements = copy_shape(k, *src, *dst).map_or(0, |shape| shape.iter().product());
                let Some(into) = base(*dst) else { return Act::Other };
                if k.tensor_ty(into).is_some() {
                    return match base(*src).filter(|&v| k.tensor_ty(v).is_none() && attrs.is_tensor()) {
                        Some(from) => Act::Store { from, bytes: of_elements(k, into, elements) },
                        None => Act::Other,
                    };
                }
                let held = !attrs.lands_later() && !matches!(k.values[into].def, ValueDef::Var(_));
                let threads = !attrs.lands_later() && !attrs.is_prefetch();
                self.load(*src, (into, elements), (held, threads))
            }
            // A name of a window loads nothing.
            StmtData::Let { init, .. } if resolve_view(k, *init).is_some() => Act::Other,
            StmtData::Let { value, init } | StmtData::Var { value, init: Some(init) } => self.computed(*init, *value),
            StmtData::Assign { dst, src } => self.computed(*src, *dst),
            _ => Act::Other,
        }
    }

    /// A value whose expression may load windows.
    fn computed(&self, e: Expr, into: Value) -> Act {
        let elements = fixed_shape(self.k, e).map_or(0, |shape| shape.iter().product());
        self.load(e, (into, elements), (false, true))
    }

    /// The load of an expression's windows, if it has any.
    fn load(&self, e: Expr, (into, elements): (Value, u64), (held, threads): (bool, bool)) -> Act {
        let mut windows = Vec::new();
        self.windows(e, elements, &mut windows);
        let (from, bytes): (Vec<Value>, Vec<u64>) = windows.into_iter().unzip();
        if from.is_empty() { Act::Other } else { Act::Load { from, into, bytes: bytes.iter().sum(), held, threads } }
    }

    /// The windows of tensors that an expression of so many elements has, each with its bytes.
    fn windows(&self, e: Expr, elements: u64, out: &mut Vec<(Value, u64)>) {
        let k = self.k;
        // Of the operand of an `iota` only the extents matter.
        if matches!(k.exprs[e], ExprData::Iota { .. }) {
            return;
        }
        if let Some(view) = resolve_view(k, e) {
            let own = || fixed_shape(k, e).map(|shape| shape.iter().product()).unwrap_or(elements);
            out.extend(k.tensor_ty(view.base).map(|_| (view.base, of_elements(k, view.base, own()))));
            return;
        }
        k.children(e).into_iter().for_each(|e| self.windows(e, elements, out));
    }

    /// Says what each step waits for.
    fn explain(&mut self) {
        let said: Vec<Option<String>> = self.program.steps.iter().map(|step| self.waits_for(step)).collect();
        for line in &mut self.program.lines {
            line.waits_for = match self.k.stmts[line.stmt] {
                StmtData::Ordered { .. } => Some("the warpgroup before it to leave this statement".to_owned()),
                _ => line.number.and_then(|n| said[n - 1].clone()),
            };
        }
    }

    fn waits_for(&self, step: &Step) -> Option<String> {
        let numbers = |is: &dyn Fn(&Act) -> bool| {
            let own = self.program.steps.iter().enumerate().filter(|(_, s)| is(&s.act));
            let list: Vec<String> = own.map(|(i, _)| (i + 1).to_string()).collect();
            let (last, front) = list.split_last()?;
            Some(if front.is_empty() { last.clone() } else { format!("{} or {last}", front.join(", ")) })
        };
        // Of each channel one of the statements that hand it over; channels may share theirs.
        let on = |wanted: ChannelOp, channels: &[Value]| {
            let of =
                |c: &Value| numbers(&|act| matches!(act, Act::Channel(op, own) if *op == wanted && own.contains(c)));
            let mut each: Vec<String> = channels.iter().filter_map(of).collect();
            each.dedup();
            (!each.is_empty()).then(|| each.join(" and "))
        };
        match &step.act {
            Act::Channel(ChannelOp::Wait, channels) => {
                let later = |act: &Act| matches!(act, Act::Load { into, held: false, .. } if channels.contains(into));
                let lands = self.program.steps.iter().any(|s| later(&s.act));
                let bytes = if lands { ", and the bytes of the slot to land" } else { "" };
                Some(format!("{}{bytes}", on(ChannelOp::Publish, channels)?))
            }
            Act::Channel(ChannelOp::Acquire, channels) => {
                let slots = channels.first().and_then(|&c| slots(self.k, c))?;
                let times = if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") };
                Some(format!("{} to release the slot: the channel has {times}", on(ChannelOp::Release, channels)?))
            }
            Act::Await { value, pending } => {
                let issued = numbers(&|act| {
                    matches!(act, Act::Product { sum, .. } if sum == value)
                        || matches!(act, Act::Store { from, .. } if from == value)
                })?;
                let but = match pending {
                    0 => String::new(),
                    n => format!(", all but the last {n}"),
                };
                Some(format!("{issued}{but}"))
            }
            Act::Barrier => Some("all warps of the role".to_owned()),
            _ => {
                let held = |into: &Value| matches!(self.k.values[*into].def, ValueDef::Var(_) | ValueDef::Let);
                numbers(&|act| matches!(act, Act::Load { into, .. } if held(into) && step.reads.contains(into)))
                    .map(|list| format!("the elements of {list}"))
            }
        }
    }
}

pub(super) fn has_loop(node: &Node) -> bool {
    match node {
        Node::Step(_) => false,
        Node::Loop { .. } => true,
        Node::Ordered { body, .. } => body.iter().any(has_loop),
    }
}

/// The channel operations of innermost loops.
fn innermost(nodes: &[Node], steps: &[Step], out: &mut Vec<(ChannelOp, Value)>) {
    fn all(nodes: &[Node], steps: &[Step], out: &mut Vec<(ChannelOp, Value)>) {
        for node in nodes {
            match node {
                Node::Step(i) => {
                    if let Act::Channel(op, channels) = &steps[*i].act {
                        out.extend(channels.iter().map(|&c| (*op, c)));
                    }
                }
                Node::Loop { body, .. } | Node::Ordered { body, .. } => all(body, steps, out),
            }
        }
    }
    for node in nodes {
        match node {
            Node::Loop { body, .. } if body.iter().any(has_loop) => innermost(body, steps, out),
            Node::Loop { body, .. } => all(body, steps, out),
            Node::Ordered { body, .. } => innermost(body, steps, out),
            Node::Step(_) => {}
        }
    }
}

/// Whether a block has a loop of more than `around` others, outside of branches that are left out.
fn has_nest(k: &Kernel, block: Block, around: u32) -> bool {
    k.blocks[block].iter().any(|&s| match k.stmts[s] {
        StmtData::For { body, unroll: true, .. } => has_nest(k, body, around),
        StmtData::For { body, .. } => around > 0 || has_nest(k, body, around + 1),
        StmtData::If { .. } | StmtData::Ordered { .. } => k.sub_blocks(s).iter().any(|&b| has_nest(k, b, around)),
        _ => false,
    })
}

/// Whether a branch moves tiles, multiplies or waits.
fn matters(k: &Kernel, block: Block) -> bool {
    k.blocks[block].iter().any(|&s| match k.stmts[s] {
        StmtData::Assign { src, .. } => matches!(k.exprs[src], ExprData::Mma(_)),
        StmtData::For { .. } | StmtData::If { .. } => k.sub_blocks(s).iter().any(|&b| matters(k, b)),
        StmtData::Let { .. } | StmtData::Var { .. } => false,
        _ => true,
    })
}

/// The iterations of an innermost loop that are drawn: those below `most`, of which other loops may have executed the first.
fn trips(k: &Kernel, (start, end, step): (Expr, Expr, Expr), most: u64) -> u64 {
    let known = |e| known(k, e).and_then(|n| u64::try_from(n).ok());
    let step = known(step).unwrap_or(1).max(1);
    let all = known(end).map_or(most, |end| end.div_ceil(step).min(most));
    let first = known(start).map_or(0, |n| n / step);
    all.saturating_sub(first)
}

/// The value of an index, if the text has it.
fn known(k: &Kernel, e: Expr) -> Option<i64> {
    if let Some(n) = k.as_int(e) {
        return Some(n);
    }
    match &k.exprs[e] {
        ExprData::Ref(v) => known(k, let_init(k, *v)?),
        ExprData::Op { op: Op::Add, args } => match args[..] {
            [a, b] => known(k, a)?.checked_add(known(k, b)?),
            _ => None,
        },
        _ => None,
    }
}

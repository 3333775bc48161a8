//! What a block of a kernel takes, read off the kernel after all passes.
//!
//! The roles run with the first iterations of each loop, until the clocks from one iteration to the next no longer change. The
//! others take as long. What each unit works is counted over all iterations.

use super::data::Timeline;
use super::program::{Act, Iterations, Node, Program, Role, has_loop};
use super::run::{run, run_with};
use crate::Options;
use crate::analysis::access_width::{known_elem, tile_shape};
use crate::analysis::wgmma::elements_read;
use crate::choose::{BlockTime, ChannelTime, HeldLoad, LoopTime};
use crate::pipeline::shared_clocks;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::placement::slots;
use tilec_ir::target::{SHARED_BYTES_PER_CLOCK, SPECIAL_CLOCKS, WARP};
use tilec_ir::typing::{product_depth, resolve_view};

/// Iterations of an innermost loop beyond those that fill slots.
const SETTLED: u64 = 8;
/// How many times all slots are filled.
const FILLED: u64 = 3;
/// Iterations of a loop around others, for each replica of the role.
const OUTER: u64 = 4;

/// What a block takes with these sizes. `unknown`: a loop may run as often as data say, and counts once. `None`: its roles do
/// not end, or another loop has no known number of iterations.
pub fn block_time(k: &Kernel, options: &Options, sizes: &[(String, i64)], unknown: bool) -> Option<BlockTime> {
    let card = options.usual_card();
    let deepest = k.values.keys().filter(|&v| matches!(k.values[v].def, ValueDef::Channel { .. }));
    let deepest = deepest.filter_map(|v| slots(k, v)).max().unwrap_or(1);
    let deepest = deepest + 1;
    let most = SETTLED + FILLED * deepest;
    let program = Program::of(k, card, Iterations::OfSizes { sizes, most, outer: OUTER });
    if !program.uncounted.is_empty() && !unknown {
        return None;
    }
    let time = run(k, card, program.clone())?;
    let read = |time: &Timeline| Reader { k, program: &program, time, deepest }.block();
    let mut block = read(&time);
    let filled = filled(&program);
    let with = |more: &dyn Fn(Value) -> bool| {
        let time = run_with(k, card, program.clone(), &|v| u64::from(more(v)))?;
        Some(read(&time))
    };
    block.deeper = with(&|v| filled.contains(&v))?.clocks;
    let longest = |block: &BlockTime| block.loops.iter().map(|own| own.clocks).fold(0.0, f64::max);
    for &channel in &filled {
        let deeper = with(&|v| v == channel)?;
        let name = k.values[channel].name.clone();
        let fills = (0..program.steps.len()).filter(|&i| is_fill(&program, i, channel));
        let fills = fills.map(|i| k.stmt_spans[program.stmt(i)]).collect();
        let waits = (longest(&block) - longest(&deeper)).max(0.0).round() as u64;
        block.channels.push(ChannelTime { name, fills, slots: slots(k, channel).unwrap_or(1), waits });
    }
    let held = held(k, &program);
    let landed = program.landed(held.iter().map(|(i, _)| *i));
    block.landed = read(&run(k, card, landed)?).clocks;
    block.held = held.into_iter().map(|(_, load)| load).collect();
    Some(block)
}

/// The steps that load elements which threads hold until they store them to a channel.
fn held(k: &Kernel, program: &Program) -> Vec<(usize, HeldLoad)> {
    let mut all = Vec::new();
    for role in &program.roles {
        let mut steps = Vec::new();
        role.body.iter().for_each(|node| node.steps(&mut steps));
        steps.sort_unstable();
        steps.dedup();
        let stores = |&i: &usize| match program.steps[i].act {
            Act::Load { into, held: true, .. } => matches!(k.values[into].def, ValueDef::Channel { .. }),
            _ => false,
        };
        all.extend(steps.into_iter().filter(stores).map(|i| {
            let tensors = program.tensors(i).iter().map(|&v| k.values[v].name.clone()).collect();
            (i, HeldLoad { span: k.stmt_spans[program.stmt(i)], role: role.name.clone(), tensors })
        }));
    }
    all
}

/// The channels that innermost loops fill from tensors.
fn filled(program: &Program) -> Vec<Value> {
    let mut all: Vec<Value> = program.roles.iter().flat_map(|role| role.counting.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|&c| (0..program.steps.len()).any(|i| is_fill(program, i, c)));
    all
}

/// Whether a step loads into a channel.
fn is_fill(program: &Program, i: usize, channel: Value) -> bool {
    matches!(program.steps[i].act, Act::Load { into, .. } if into == channel)
}

struct Reader<'a> {
    k: &'a Kernel,
    program: &'a Program,
    time: &'a Timeline,
    deepest: u64,
}

/// Clocks of a part of a role.
#[derive(Copy, Clone, Default)]
struct Clocks {
    /// With all iterations, beyond those of the iterations that were run.
    more: f64,
    /// Of innermost loops.
    looped: f64,
    /// Iterations of innermost loops that multiply operands which they compute, times the warpgroups that do.
    computed: f64,
}

impl Reader<'_> {
    fn block(&self) -> BlockTime {
        let mut all = BlockTime::default();
        let mut row = 0;
        for role in &self.program.roles {
            let groups = if role.elected { 1 } else { role.groups() };
            for _ in 0..role.replicas * groups {
                let own = self.nodes(row, role, &role.body, true);
                let clocks = self.end(row) + own.more;
                if clocks > all.clocks {
                    (all.clocks, all.looped, all.computed) = (clocks, own.looped, own.computed);
                }
                row += 1;
            }
            self.work(role, &role.body, 1.0, &mut all);
            self.loops(role, &role.body, &mut all);
        }
        // Of waits for loads there is no more than what is left of the loops.
        all.looped = all.looped.min(all.clocks);
        all
    }

    /// When a warpgroup has done its last step that ran.
    fn end(&self, row: usize) -> f64 {
        let own = self.time.events.iter().filter(|e| e.row == row).map(|e| e.end);
        own.max().unwrap_or(0) as f64
    }

    fn nodes(&self, row: usize, role: &Role, nodes: &[Node], outside: bool) -> Clocks {
        let mut sum = Clocks::default();
        for node in nodes {
            let own = match node {
                Node::Step(_) => Clocks::default(),
                Node::Ordered { body, .. } => self.nodes(row, role, body, outside),
                Node::Loop { at, trips, all, body } => {
                    // Replicas share the iterations of an outer loop.
                    let shared = if outside { f64::from(role.replicas) } else { 1.0 };
                    let (ran, all) = (self.ran(row, *at, *trips as f64 / shared), all / shared);
                    let inside = self.nodes(row, role, body, false);
                    let pace = self.pace(row, *at);
                    let more = (all - ran) * (pace + inside.more) + ran * inside.more;
                    match body.iter().any(has_loop) {
                        true => Clocks { more, looped: all * inside.looped, computed: all * inside.computed },
                        false => {
                            let groups = if self.computes(body) { f64::from(role.groups()) } else { 0.0 };
                            Clocks { more, looped: all * pace, computed: all * groups }
                        }
                    }
                }
            };
            sum.more += own.more;
            sum.looped += own.looped;
            sum.computed += own.computed;
        }
        sum
    }

    /// Whether a part of a role has wgmma products of operands in registers.
    fn computes(&self, nodes: &[Node]) -> bool {
        let mut steps = Vec::new();
        nodes.iter().for_each(|node| node.steps(&mut steps));
        let k = self.k;
        steps.iter().any(|&i| match (&self.program.steps[i].act, &k.stmts[self.program.stmt(i)]) {
            (Act::Product { asynchronous: true, .. }, StmtData::Assign { src, .. }) => match k.exprs[*src] {
                ExprData::Mma(mma) => [mma.a, mma.b].iter().any(|&e| !self.in_memory(e)),
                _ => false,
            },
            _ => false,
        })
    }

    /// Whether an operand is in shared memory.
    fn in_memory(&self, e: Expr) -> bool {
        resolve_view(self.k, e).is_some_and(|view| slots(self.k, view.base).is_some())
    }

    /// Iterations that a warpgroup ran each time that it came to a loop.
    fn ran(&self, row: usize, at: Stmt, usual: f64) -> f64 {
        let turns = || self.time.turns.iter().filter(|turn| turn.row == row && turn.at == at);
        let times = turns().filter(|turn| turn.first).count();
        if times == 0 { usual } else { turns().count() as f64 / times as f64 }
    }

    /// Clocks from one iteration of a loop to the next, after the first ones.
    fn pace(&self, row: usize, at: Stmt) -> f64 {
        let turns: Vec<_> = self.time.turns.iter().filter(|turn| turn.row == row && turn.at == at).collect();
        let last = turns.iter().rposition(|turn| turn.first).unwrap_or(0);
        let begins: Vec<u64> = turns[last.min(turns.len())..].iter().map(|turn| turn.begin).collect();
        let counted = (2 * self.deepest as usize).min(begins.len().saturating_sub(1) / 2).max(1);
        match begins.len().checked_sub(1 + counted) {
            Some(from) => (begins[begins.len() - 1] - begins[from]) as f64 / counted as f64,
            None => 0.0,
        }
    }

    /// Adds the work of the units for steps that run `times` times.
    fn work(&self, role: &Role, nodes: &[Node], times: f64, all: &mut BlockTime) {
        for node in nodes {
            match node {
                Node::Step(i) => self.step(role, *i, times, all),
                Node::Ordered { body, .. } => self.work(role, body, times, all),
                Node::Loop { all: iterations, body, .. } => self.work(role, body, times * iterations, all),
            }
        }
    }

    fn step(&self, role: &Role, i: usize, times: f64, all: &mut BlockTime) {
        let step = &self.program.steps[i];
        let groups = if step.elected { 1.0 } else { f64::from(role.groups()) };
        all.tensor += times * groups * step.cost.tensor as f64;
        all.special += times * groups * step.cost.special as f64;
        // Beside a special function, which takes its unit several clocks, other warps issue.
        let slots = step.cost.issue as f64 - step.cost.special as f64 * (1.0 - 1.0 / SPECIAL_CLOCKS as f64);
        all.issue += times * groups * slots.max(0.0);
        let s = self.program.stmt(i);
        if let Act::Load { bytes, .. } = step.act {
            all.loaded += times * groups * bytes as f64;
        }
        if !step.elected {
            let threads = u64::from(role.warps * WARP);
            all.shared += times * (SHARED_BYTES_PER_CLOCK * shared_clocks(self.k, s, threads)) as f64;
        }
        if let Act::Product { asynchronous, .. } = step.act {
            self.product(s, asynchronous, times, all);
        }
    }

    fn product(&self, s: Stmt, asynchronous: bool, times: f64, all: &mut BlockTime) {
        let k = self.k;
        let StmtData::Assign { dst, src } = k.stmts[s] else { return };
        let ExprData::Mma(mma) = k.exprs[src] else { return };
        let [rows, cols] = tile_shape(k, dst)[..] else { return };
        let depth = product_depth(k, &mma).unwrap_or(1) as f64;
        all.macs += times * rows as f64 * cols as f64 * depth;
        all.atom = all.atom.or(mma.atom);
        if !asynchronous {
            return;
        }
        let in_memory = [mma.a, mma.b].map(|e| self.in_memory(e));
        let Some(operand) = resolve_view(k, if in_memory[1] { mma.b } else { mma.a }) else { return };
        let elements = elements_read([rows as f64, cols as f64, depth], in_memory);
        all.shared += times * known_elem(k, operand.base).size().traffic(elements);
    }

    /// Adds what an iteration of each innermost loop takes.
    fn loops(&self, role: &Role, nodes: &[Node], all: &mut BlockTime) {
        for node in nodes {
            match node {
                Node::Step(_) => {}
                Node::Ordered { body, .. } => self.loops(role, body, all),
                Node::Loop { body, .. } if body.iter().any(has_loop) => self.loops(role, body, all),
                Node::Loop { at, body, .. } => {
                    let StmtData::For { var, .. } = self.k.stmts[*at] else { continue };
                    let mut work = BlockTime::default();
                    self.work(role, body, 1.0, &mut work);
                    let rows = 0..self.time.rows.len();
                    let clocks = rows.map(|row| self.pace(row, *at)).fold(0.0, f64::max);
                    let variable = self.k.values[var].span;
                    all.loops.push(LoopTime { variable, role: role.name.clone(), clocks, work });
                }
            }
        }
    }
}

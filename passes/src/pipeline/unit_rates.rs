//! Resource use of an iteration of a pipelined loop, and the unit that limits it.
//!
//! The count is for a single block on a multiprocessor. Tensor cores multiply at the rate of the card; shared memory
//! reads or writes 128 bytes per clock; each of the four partitions issues an instruction of one of its warps per
//! clock.

use super::loop_plan::{Fill, Plan};
use super::modulo::{Loop, Step};
use crate::Cx;
use crate::analysis::access_width::{elem_of, known_elem, tile_shape};
use crate::analysis::live_ranges;
use crate::analysis::uses::all_stmts;
use crate::assign_layouts::Threads;
use crate::choose::Card;
use crate::registers::overhead::ADDRESSES;
use crate::registers::thread::cap;
use crate::schedule_loops::issue_clocks;
use crate::swizzle::times_of_width;
use tilec_ir::atoms::Inputs;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::index;
use tilec_ir::iteration_time::TENSOR_CORES;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::target::{SCHEDULERS, SHARED_BYTES_PER_CLOCK, WARP};
use tilec_ir::typing::{product_depth, resolve_view};

/// Issue slots of a warp for an asynchronous copy of 16 bytes for each thread, with its address.
const COPY: u64 = 4;

/// Threads for which an instruction is issued in a clock: a warp for each scheduler.
const ISSUED: u64 = SCHEDULERS * WARP as u64;

/// Clocks of an iteration, or of a part of it.
#[derive(Copy, Clone, Default, Debug)]
struct Clocks {
    products: u64,
    tensor: u64,
    shared: u64,
    issue: u64,
}

/// The loop in the view of the scheduler.
pub(super) fn of(k: &Kernel, cx: &Cx<'_>, plan: &Plan) -> Loop {
    let (ranges, threads) = (live_ranges::ranges(k), Threads::of(k).count());
    let step = |stmts: &[Stmt], registers: u64| {
        let clocks = clocks(k, cx, stmts);
        Step { clocks: clocks.tensor.max(clocks.issue), product: clocks.products > 0, registers }
    };
    let most = |s: Stmt| {
        let inside = k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
        std::iter::once(s).chain(inside).map(|s| live_registers(k, &ranges, s, threads)).max().unwrap_or(0)
    };
    let backbone = match plan.slices.is_empty() {
        true => plan.rest.iter().map(|&s| step(&[s], most(s))).collect(),
        // All slices have the same cost.
        false => plan.slices.iter().map(|slice| step(&slice.products, 0)).collect(),
    };
    let slots = i64::try_from(plan.stages).expect("a few slots");
    let (double_buffered, room) = (plan.double_buffered, room(threads));
    Loop { backbone, slots, double_buffered, tile_registers: room }
}

/// Registers of a thread that hold tiles at a statement.
fn live_registers(k: &Kernel, ranges: &live_ranges::Ranges, s: Stmt, threads: u64) -> u64 {
    let at = ranges.position(s).expect("bug: a statement of the kernel has a place in its text");
    let lives = ranges.tiles.iter().filter(|r| r.from <= at && at < r.to);
    lives.map(|r| live_ranges::registers(k, r.value, &r.tile, threads)).sum()
}

/// Registers of a thread for tiles, without addresses of copies.
fn room(threads: u64) -> u64 {
    cap(threads, 1).saturating_sub(ADDRESSES)
}

/// Use of each resource by an iteration, largest first.
pub(super) fn units(k: &Kernel, cx: &Cx<'_>, plan: &Plan) -> [(&'static str, u64); 3] {
    let stmts: Vec<Stmt> =
        plan.slices.iter().flat_map(|s| s.loads.iter().chain(&s.products)).chain(&plan.rest).copied().collect();
    let all = clocks(k, cx, &stmts);
    let filled = filled(k, plan);
    let mut units = [
        (TENSOR_CORES, all.tensor),
        ("shared memory", all.shared + filled),
        ("issue slots", all.issue + fill(k, plan)),
    ];
    units.sort_by_key(|&(_, clocks)| std::cmp::Reverse(clocks));
    units
}

/// Clocks in which the copies of an iteration write shared memory.
fn filled(k: &Kernel, plan: &Plan) -> u64 {
    let bytes = plan.bytes / plan.stages;
    let fills = |s: Stmt, fill: &Fill| match k.stmts[s] {
        StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|to| to.base == fill.buffer),
        _ => false,
    };
    let inside: Vec<Stmt> = k.sub_blocks(plan.at).into_iter().flat_map(|b| all_stmts(k, b)).collect();
    let again = |fill: &Fill| {
        let own = inside.iter().filter(|&&s| k.stmt_spans[s] == fill.span && fills(s, fill));
        let times = own.map(|&s| times_of_width(k, s, fill.buffer)).fold(1.0, f64::max);
        let of = tile_shape(k, fill.buffer).iter().product();
        known_elem(k, fill.buffer).bytes_of(of) as f64 * (times - 1.0)
    };
    let again: f64 = plan.fills.iter().map(again).sum();
    (bytes + again as u64) / SHARED_BYTES_PER_CLOCK
}

/// Clocks in which a warp issues the copies of an iteration.
fn fill(k: &Kernel, plan: &Plan) -> u64 {
    COPY * (plan.bytes / plan.stages).div_ceil(16 * Threads::of(k).count())
}

fn clocks(k: &Kernel, cx: &Cx<'_>, stmts: &[Stmt]) -> Clocks {
    let mut all = Clocks::default();
    for &s in stmts {
        add(k, cx, (s, 1), &mut all);
    }
    all
}

/// Adds the cost of a statement with this number of executions.
fn add(k: &Kernel, cx: &Cx<'_>, (s, times): (Stmt, u64), all: &mut Clocks) {
    let threads = Threads::of(k).count();
    match k.stmts[s] {
        StmtData::For { start, end, step, body, .. } => {
            let literal = (k.as_int(start), k.as_int(end), k.as_int(step));
            let trips = match literal {
                (Some(start), Some(end), Some(step)) => index::trips(start, end, step).unwrap_or(1),
                _ => 1,
            };
            for &inner in &k.blocks[body] {
                add(k, cx, (inner, times.saturating_mul(trips)), all);
            }
        }
        StmtData::If { .. } => {
            for inner in k.sub_blocks(s).into_iter().flat_map(|b| k.blocks[b].clone()) {
                add(k, cx, (inner, times), all);
            }
        }
        _ => {
            all.products += u64::from(is_product(k, s));
            all.tensor += times.saturating_mul(tensor(k, cx.options.usual_card(), s));
            all.shared += times.saturating_mul(shared_clocks(k, s, threads));
            all.issue +=
                times.saturating_mul(issue_clocks(k, cx.options.usual_card(), s, threads) * threads.div_ceil(ISSUED));
        }
    }
}

fn is_product(k: &Kernel, s: Stmt) -> bool {
    matches!(k.stmts[s], StmtData::Assign { src, .. } if matches!(k.exprs[src], ExprData::Mma(_)))
}

/// Clocks of the tensor cores for a product of the whole block; 0 for scalar products.
fn tensor(k: &Kernel, card: &Card, s: Stmt) -> u64 {
    let (tensor_cores, clocks) = product_clocks(k, card, s);
    if tensor_cores { clocks } else { 0 }
}

/// Whether a product runs on tensor cores, and the clocks of its units for the whole block.
pub(crate) fn product_clocks(k: &Kernel, card: &Card, s: Stmt) -> (bool, u64) {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return (false, 0) };
    let ExprData::Mma(mma) = k.exprs[src] else { return (false, 0) };
    let elem = |e: Expr| resolve_view(k, e).and_then(|view| elem_of(k, view.base));
    let (Some(atom), Some(a), Some(b)) = (mma.atom, elem(mma.a), elem(mma.b)) else { return (false, 0) };
    let depth = product_depth(k, &mma).expect("an operand has extents");
    let rate = card.rate(atom, Inputs { a, b }, known_elem(k, dst));
    let clocks = tile_shape(k, dst).iter().product::<u64>() as f64 * depth as f64 / rate;
    (atom.row().tensor_core, clocks as u64)
}

/// Clocks in which all threads read or write their part of shared memory: the wavefronts of their accesses.
pub(crate) fn shared_clocks(k: &Kernel, s: Stmt, threads: u64) -> u64 {
    let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return 0 };
    let in_memory = |e: Expr| {
        resolve_view(k, e).filter(|v| matches!(k.values[v.base].def, ValueDef::Smem(_) | ValueDef::Channel { .. }))
    };
    let Some(view) = in_memory(src).or_else(|| in_memory(dst)) else { return 0 };
    let registers = [src, dst].into_iter().filter_map(|e| tilec_ir::typing::layout_of(k, e)).next();
    let Some(held) = registers.map(|layout| 1u64 << layout.value_bits().min(32)) else { return 0 };
    let clocks = known_elem(k, view.base).bytes_of(held * threads) / SHARED_BYTES_PER_CLOCK;
    (clocks as f64 * times_of_width(k, s, view.base)) as u64
}

//! Sizes that are 0 by a precondition (`where K == 0`): products and reductions over empty ranges.
//!
//! All other code assumes that sizes are at least 1, so that loops begin without a test. Such a size becomes a literal in the body; extents of tensors and of the grid keep it. Loops
//! that cannot run are removed, with the products in them. If no product is left, schedule items about products and demands on the code are removed, too.

use crate::analysis::uses::{all_stmts, stmt_exprs};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::types::{ElemRef, TileTy};
use tilec_ir::zero_sizes::zero_sizes;

/// Registers of a thread for its tiles.
const HELD: u64 = 64;
/// Fewest and most threads of a block.
const LEAST_THREADS: u64 = 128;
const MOST_THREADS: u64 = 1024;

/// Makes these sizes literals. The result says whether there are any.
pub(super) fn literals(k: &mut Kernel) -> bool {
    let zeros = zero_sizes(k);
    for s in all_stmts(k, k.body) {
        for e in stmt_exprs(k, s) {
            literal(k, &zeros, e);
        }
    }
    !zeros.is_empty()
}

/// Makes grid indices with a single value literals. The result says whether there are any.
pub(super) fn single_blocks(k: &mut Kernel) -> bool {
    let single = k.grid.iter().filter(|axis| k.as_int(axis.extent) == Some(1)).map(|axis| axis.index);
    let single: Vec<Value> = single.collect();
    for s in all_stmts(k, k.body) {
        for e in stmt_exprs(k, s) {
            literal(k, &single, e);
        }
    }
    !single.is_empty()
}

/// Removes loops without iterations, and schedule items for their products. Returns the removed blocks.
pub(super) fn drop_idle(k: &mut Kernel) -> Vec<Block> {
    k.demands.clear();
    let multiplied = multiplies(k);
    let idle = idle_loops(k);
    let mut gone = Vec::new();
    drop_loops(k, k.body, &idle, &mut gone);
    if multiplied && !multiplies(k) {
        if k.schedule.threads.is_none() {
            let threads = threads(k);
            k.schedule.threads = Some(k.int(threads, k.schedule.span));
        }
        let s = &mut k.schedule;
        (s.warp_tile, s.k_warps, s.stages, s.promote, s.pending, s.ping_pong) = (None, None, None, None, None, None);
        (s.align_rows, s.stage_stores, s.stream_k, s.split_k) = (None, None, None, None);
        s.cluster.clear();
    }
    gone
}

fn literal(k: &mut Kernel, zeros: &[Value], e: Expr) {
    if matches!(k.exprs[e], ExprData::Ref(v) if zeros.contains(&v)) {
        k.exprs[e] = ExprData::Int(0);
    }
    for child in k.children(e) {
        literal(k, zeros, child);
    }
}

/// The loops whose end is at most their start in every launch.
fn idle_loops(k: &Kernel) -> Vec<Stmt> {
    let ranges = Ranges::new(k);
    let never = |&s: &Stmt| match k.stmts[s] {
        StmtData::For { start, end, .. } => match (ranges.of(start), ranges.of(end)) {
            (Some(start), Some(end)) => end.hi <= start.lo,
            _ => false,
        },
        _ => false,
    };
    all_stmts(k, k.body).into_iter().filter(never).collect()
}

fn drop_loops(k: &mut Kernel, block: Block, idle: &[Stmt], gone: &mut Vec<Block>) {
    let (dropped, kept): (Vec<Stmt>, Vec<Stmt>) = k.blocks[block].iter().partition(|s| idle.contains(s));
    k.blocks[block].clone_from(&kept);
    gone.extend(dropped.into_iter().flat_map(|s| k.sub_blocks(s)));
    for s in kept {
        k.sub_blocks(s).into_iter().for_each(|b| drop_loops(k, b, idle, gone));
    }
}

/// A thread count with which each thread can hold its part of the register tiles; without products, nothing else
/// determines it.
fn threads(k: &Kernel) -> i64 {
    let words = |data: &tilec_ir::kernel::ValueData| match &data.def {
        ValueDef::Var(TileTy { elem: ElemRef::Known(elem), shape, .. }) => {
            k.const_shape(shape).map_or(0, |shape| elem.words(shape.iter().product()))
        }
        _ => 0,
    };
    let all: u64 = k.values.values().map(words).sum();
    all.div_ceil(HELD).next_power_of_two().clamp(LEAST_THREADS, MOST_THREADS) as i64
}

fn multiplies(k: &Kernel) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| stmt_exprs(k, s).iter().any(|&e| has_product(k, e)))
}

fn has_product(k: &Kernel, e: Expr) -> bool {
    matches!(k.exprs[e], ExprData::Mma(_)) || k.children(e).into_iter().any(|child| has_product(k, child))
}

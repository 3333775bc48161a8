//! The producer's and the consumer's part of a scheduled kernel.
//!
//! The producer's part is the slice of the program that its statements need: their loops, branches, and names for
//! indices and windows. The consumer has everything else. Both run the same loops with the same bounds, so they use the
//! same slots in the same order; the proof of roles (`barriers`) checks this.
//!
//! The grid is persistent ([`TileScheduler`]): the producer fills slots for the next tile while the consumer is in the epilogue
//! of the current one.

use super::awaits;
use super::names::plain_names;
use crate::Cx;
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, depends, for_each_ref, stmt_exprs};
use crate::analysis::wgmma;
use crate::registers::pressure::peak_of_role;
use crate::registers::thread::{Context, contexts};
use crate::rewrite::{Map, clone_block};
use crate::roles::{
    LEAST_BESIDE, consumer_warps, least_slots, ping_pong, registers, registers_beside, replicas, role, slots_of,
};
use crate::tile_scheduler::{TileScheduler, multicast, ping_pong, work_queue};
use tilec_ir::cluster;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::placement::{slots, tile_bytes};
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::typing::{let_init, resolve_view, same_expr};

/// The tile scheduler of the persistent grid. If blocks share tiles, the kernel's loop gets the bounds of a segment,
/// and the block with the first part of a tile executes the epilogue.
pub(super) fn plan_walk(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<TileScheduler>, Reported> {
    let main = reduction::of_kernel(k).map(|(at, _)| at);
    let span = main.as_ref().map_or(k.name_span, |&at| k.stmt_spans[at]);
    if let Some(e) = work_queue::scheduled(k).filter(|_| ping_pong(k).is_some()) {
        return Err(work_queue::refused(k, cx, e, "warpgroups run ping-pong (`ping_pong`)"));
    }
    if let Some(e) = ping_pong(k) {
        ping_pong::check(k, cx, consumer_warps(k))?;
        if let Err(why) = &main {
            return Err(ping_pong::refused(k, cx, e, why));
        }
    }
    let signals = all_stmts(k, k.body).into_iter().find(|&s| matches!(k.stmts[s], StmtData::Signal { .. }));
    if let Some(e) = work_queue::scheduled(k).filter(|_| signals.is_some() || k.grid.is_empty()) {
        return Err(work_queue::refused(k, cx, e, "each block computes one tile and ends"));
    }
    if let Some(s) = signals {
        // A persistent block might wait for a block that cannot start.
        cx.remark(k.stmt_spans[s], "blocks wait for earlier blocks of the grid, so each computes one tile and ends");
        return Ok(None);
    }
    let Some(mut walk) = TileScheduler::new(k, cx, span) else { return Ok(None) };
    let loads = loads_what_it_stores(k);
    walk.share_tiles(k, cx, main.clone(), loads)?;
    if let (true, Ok(at)) = (walk.shares(), main) {
        let (start, end) = walk.bounds(k);
        let StmtData::For { start: from, end: to, .. } = &mut k.stmts[at] else { unreachable!("a loop is shared") };
        (*from, *to) = (start, end);
        let body = k.body;
        let last = last_waits(k);
        let index =
            k.blocks[body].iter().position(|&s| s == at).unwrap_or_else(|| unreachable!("the loop is in the body"));
        let rest = k.blocks[body].split_off(index + 1);
        let finish = walk.finish(k, rest);
        k.blocks[body].push(finish);
        k.blocks[body].extend(last);
    }
    Ok(Some(walk))
}

/// Removes the final waits for TMA stores of buffers, which are executed once after all tiles; other waits are in front
/// of the next store.
fn last_waits(k: &mut Kernel) -> Vec<Stmt> {
    let body = k.body;
    let mut last = Vec::new();
    while let Some(&s) = k.blocks[body].last()
        && let StmtData::Await { value, .. } = k.stmts[s]
        && matches!(k.values[value].def, ValueDef::Smem(_))
        && !k.grid.is_empty()
    {
        last.extend(k.blocks[body].pop());
    }
    last
}

/// Whether statements that are not in a block yet, or statements inside, copy asynchronously.
fn copies_asynchronously(k: &Kernel, stmts: &[Stmt]) -> bool {
    stmts.iter().any(|&s| {
        matches!(&k.stmts[s], StmtData::Copy { attrs, .. } if attrs.is_asynchronous())
            || k.sub_blocks(s).into_iter().any(|b| copies_asynchronously(k, &k.blocks[b]))
    })
}

/// Whether the kernel stores to a tensor that the producer loads in its epilogue.
fn loads_what_it_stores(k: &Kernel) -> bool {
    let produced = |s: &Stmt| match k.stmts[*s] {
        StmtData::Copy { src, .. } if k.plans[*s].producer => resolve_view(k, src).map(|v| v.base),
        _ => None,
    };
    let stored: Vec<Value> = all_stmts(k, k.body)
        .into_iter()
        .filter_map(|s| match k.stmts[s] {
            StmtData::Copy { dst, .. } => resolve_view(k, dst).map(|v| v.base),
            _ => None,
        })
        .collect();
    all_stmts(k, k.body).iter().filter_map(produced).any(|v| stored.contains(&v))
}

pub(super) fn split(k: &mut Kernel, cx: &mut Cx<'_>, walk: Option<TileScheduler>) -> Result<(), Reported> {
    let span = k.name_span;
    let mut allocs = Vec::new();
    let body = k.body;
    let warps = consumer_warps(k);
    let (few, many) = registers(k, warps, copies_asynchronously(k, &k.blocks[body]));
    hoist_allocs(k, body, &mut allocs);
    let last = if ping_pong(k).is_some() { Vec::new() } else { last_waits(k) };
    let produced = clone_block(k, body, &mut Map::default());
    keep_producer_statements(k, produced);
    drop_unused_names(k, produced);
    drop_produced(k, body);
    drop_unused_names(k, body);
    let (mut produced, mut consumed) = (k.blocks[produced].clone(), k.blocks[body].clone());
    if ping_pong(k).is_some() {
        consumed = ping_pong::taken(k, consumed, span);
    }
    let (produced, mut consumed) = match walk {
        Some(mut tiles) => {
            if uneven(k, &produced) {
                tiles.deal_from_both_ends();
            }
            if let Some(queue) = tiles.draw(k, cx)? {
                allocs.push(queue.declared);
                produced.extend(queue.turn(k, [ChannelOp::Acquire, ChannelOp::Publish]));
                consumed.extend(queue.turn(k, [ChannelOp::Wait, ChannelOp::Release]));
            }
            let both = (tiles.walk(k, &produced), tiles.walk(k, &consumed));
            tiles.launch(k, cx);
            both
        }
        None => (produced, consumed),
    };
    consumed.extend(last);
    let producer = role(k, "producer", (PRODUCER_WARPS, 1), few, produced, span);
    let consumer = role(k, "consumer", (warps, replicas(k)), many, consumed, span);
    if let StmtData::Role { body, .. } = k.stmts[consumer] {
        awaits::insert(k, body);
    }
    allocs.extend([producer, consumer]);
    k.blocks[body] = allocs;
    plain_names(k);
    if let StmtData::Role { body, .. } = k.stmts[producer] {
        multicast(k, cx, body);
    }
    let (few, many) = leave_room(k, cx, [producer, consumer], warps).unwrap_or((few, many));
    let budget = match few.zip(many) {
        Some((few, many)) => format!("{few} and {many} registers a thread (`setmaxnreg`)"),
        None => "no `setmaxnreg`".to_owned(),
    };
    cx.remark(span, format!("{PRODUCER_WARPS} producer warps and {warps} consumer warps; {budget}"));
    Ok(())
}

/// Leaves room on a multiprocessor for a block of the next launch (`overlap-launches`), if shared memory and registers
/// suffice for two. Then the registers of both roles are assigned again. For wgmma this is not possible, because
/// accumulators take more than half of the registers.
fn leave_room(k: &mut Kernel, cx: &mut Cx<'_>, roles: [Stmt; 2], warps: u32) -> Option<(Option<i64>, Option<i64>)> {
    let asked = k.schedule.min_ctas.and_then(|e| k.as_int(e)).is_some_and(|n| n > 1);
    let alone = k.schedule.overlap.and_then(|e| k.as_int(e)) == Some(0);
    let few = least_slots(k).is_none_or(|n| n < LEAST_BESIDE);
    if asked || alone || few || wgmma::multiplies(k) || copies_asynchronously(k, &k.blocks[k.body]) {
        return None;
    }
    let (blocks, before) = (k.schedule.min_ctas, roles.map(|s| registers_of(k, s)));
    k.schedule.min_ctas = Some(k.int(2, k.name_span));
    let shared = |&v: &Value| tile_bytes(k, v).zip(slots(k, v)).map_or(0, |(bytes, slots)| bytes * slots);
    let bytes = k.values.keys().map(|v| shared(&v)).sum::<u64>() + cluster::memory_bytes(k);
    let (few, many) = registers_beside(k, warps);
    let limit = slots_of(cx.options.target, 2);
    for (s, n) in roles.into_iter().zip([few, many]) {
        let n = n.map(|n| k.int(n, k.name_span));
        set_registers(k, s, n);
    }
    let deferred = Deferred::of(k);
    let most =
        |c: &Context| peak_of_role(k, &deferred, c, cx.options.target).is_none_or(|m| m.tiles + m.other <= c.has);
    if bytes <= limit && contexts(k).iter().all(most) {
        let message = "registers and shared memory leave room for a block of the next launch (`min_ctas 2`)";
        cx.remark_note(
            k.name_span,
            message.to_owned(),
            "with `overlap 0` launches do not overlap, and a block may use all registers and shared memory",
        );
        return Some((few, many));
    }
    k.schedule.min_ctas = blocks;
    roles.into_iter().zip(before).for_each(|(s, n)| set_registers(k, s, n));
    None
}

/// The register count that a role declares for its threads.
fn registers_of(k: &Kernel, s: Stmt) -> Option<Expr> {
    let StmtData::Role { registers, .. } = k.stmts[s] else { unreachable!("a role") };
    registers
}

fn set_registers(k: &mut Kernel, s: Stmt, n: Option<Expr>) {
    let StmtData::Role { registers, .. } = &mut k.stmts[s] else { unreachable!("a role") };
    *registers = n;
}

/// Whether the length of the producer's loops depends on the tile of the grid.
fn uneven(k: &Kernel, produced: &[Stmt]) -> bool {
    let placed = |e: Expr| k.grid.iter().any(|axis| depends(k, e, axis.index));
    produced.iter().any(|&top| {
        let inner = k.sub_blocks(top).into_iter().flat_map(|b| all_stmts(k, b));
        std::iter::once(top).chain(inner).any(|s| match k.stmts[s] {
            StmtData::For { start, end, .. } => (placed(start) || placed(end)) && !segment(k, start, end, &placed),
            _ => false,
        })
    })
}

/// Whether a loop is a slice of a reduction: it runs from `start` over a length that is the same for all tiles, or to a
/// smaller end.
fn segment(k: &Kernel, start: Expr, end: Expr, placed: &dyn Fn(Expr) -> bool) -> bool {
    let (start, end) = (named(k, start), named(k, end));
    let further = |e: Expr| match &k.exprs[named(k, e)] {
        ExprData::Op { op: Op::Add, args } => {
            let (own, others): (Vec<Expr>, Vec<Expr>) = args.iter().partition(|&&a| same_expr(k, named(k, a), start));
            own.len() == 1 && !others.iter().any(|&a| placed(a))
        }
        _ => false,
    };
    match &k.exprs[end] {
        ExprData::Op { op: Op::Min, args } => {
            args.iter().any(|&a| further(a)) && args.iter().all(|&a| further(a) || !placed(a))
        }
        _ => further(end),
    }
}

/// The value of a name.
fn named(k: &Kernel, mut e: Expr) -> Expr {
    while let ExprData::Ref(v) = k.exprs[e]
        && let Some(init) = let_init(k, v)
    {
        e = init;
    }
    e
}

/// Moves declarations of shared memory out of a block: buffers belong to the thread block.
fn hoist_allocs(k: &mut Kernel, block: Block, out: &mut Vec<Stmt>) {
    let mut kept = Vec::new();
    for s in k.blocks[block].clone() {
        if matches!(k.stmts[s], StmtData::Alloc { .. }) {
            out.push(s);
            continue;
        }
        kept.push(s);
        for b in k.sub_blocks(s) {
            hoist_allocs(k, b, out);
        }
    }
    k.blocks[block] = kept;
}

/// Keeps the producer's statements, the loops and branches around them, and names.
fn keep_producer_statements(k: &mut Kernel, block: Block) {
    let mut kept = Vec::new();
    for s in k.blocks[block].clone() {
        let inner = k.sub_blocks(s);
        inner.iter().for_each(|&b| keep_producer_statements(k, b));
        let some = inner.iter().any(|&b| k.blocks[b].iter().any(|&s| !matches!(k.stmts[s], StmtData::Let { .. })));
        let name = matches!(k.stmts[s], StmtData::Let { .. });
        if k.plans[s].producer || some || name {
            drop_empty_side(k, s);
            kept.push(s);
        }
    }
    k.blocks[block] = kept;
}

/// Removes the `else` side of a branch if it is empty.
fn drop_empty_side(k: &mut Kernel, s: Stmt) {
    if let StmtData::If { otherwise: Some(b), .. } = k.stmts[s]
        && k.blocks[b].is_empty()
        && let StmtData::If { otherwise, .. } = &mut k.stmts[s]
    {
        *otherwise = None;
    }
}

/// Keeps everything but the producer's statements.
fn drop_produced(k: &mut Kernel, block: Block) {
    let mut kept = Vec::new();
    for s in k.blocks[block].clone() {
        if k.plans[s].producer {
            continue;
        }
        let inner = k.sub_blocks(s);
        inner.iter().for_each(|&b| drop_produced(k, b));
        let empty = !inner.is_empty() && inner.iter().all(|&b| k.blocks[b].is_empty());
        if !empty {
            kept.push(s);
        }
    }
    k.blocks[block] = kept;
}

/// Removes names that nothing under a block uses.
fn drop_unused_names(k: &mut Kernel, block: Block) {
    let mut used: Vec<Value> = Vec::new();
    drop_unused(k, block, &mut used);
}

/// [`drop_unused_names`] from the last statement to the first, because a name is used after its declaration.
fn drop_unused(k: &mut Kernel, block: Block, used: &mut Vec<Value>) {
    let mut kept = Vec::new();
    for s in k.blocks[block].clone().into_iter().rev() {
        if matches!(k.stmts[s], StmtData::Let { value, .. } if !used.contains(&value)) {
            continue;
        }
        for b in k.sub_blocks(s).into_iter().rev() {
            drop_unused(k, b, used);
        }
        for e in stmt_exprs(k, s) {
            for_each_ref(k, e, &mut |v| used.push(v));
        }
        if let StmtData::Assign { dst, .. } = k.stmts[s] {
            used.push(dst);
        }
        kept.push(s);
    }
    kept.reverse();
    k.blocks[block] = kept;
}

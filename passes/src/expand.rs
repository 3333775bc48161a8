//! `expand`: writes prologue, steady state and drain of scheduled loops, and roles of scheduled statements.
//!
//! 1. Loops whose statements have stages are expanded ([`stages`]): statements of stage 1 run at the same time as those of stage 0 for the next iteration.
//! 2. Statements of the producer become a role, with the loops, branches and names that they need; all others become the
//!    consumer's ([`roles`]). Both loop over the tiles of a persistent grid.
//! 3. The consumer waits for a product where a statement needs its sums, its operand registers, or its slot ([`awaits`]). Until then the product is pending.
//!
//! Needs: the channels, stages and cycles of `schedule-loops`, or written ones. Stages and cycles that break a dependence are an error.
//! Leaves: no schedule of a statement. Switched off: `select-mma` marks no copies for the producer, so there is nothing to expand.

mod awaits;
mod body;
mod iterations;
mod names;
mod overrun;
mod roles;
mod stages;
mod tiles;

use crate::Cx;
use crate::analysis::live_ranges::zeroed;
use crate::analysis::wgmma::{is_product, is_scheduled};
use crate::graph::accesses::Accesses;
use crate::schedule_loops::{dependence_check, lag};
use crate::specialize::drop_idle;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Block, Expr, Stmt};
use tilec_ir::kernel::{Kernel, StmtData, StmtPlan};

pub(crate) const NAME: &str = "expand";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut loops: Vec<Stmt> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::For { body, .. } = k.stmts[s]
            && (k.plans[s].ragged || k.blocks[body].iter().any(|&s| k.plans[s].stage.is_some()))
        {
            loops.push(s);
        }
    });
    let roles = is_scheduled(k);
    if !roles {
        check_no_role_options(k, cx)?;
    }
    let walk = if roles { roles::plan_walk(k, cx)? } else { None };
    // Inner loops first, because an outer loop copies them.
    for &s in loops.iter().rev() {
        legal(k, cx, s)?;
        stages::expand(k, s).map_err(|d| cx.report(*d))?;
    }
    if roles || !loops.is_empty() {
        let body = k.body;
        sink_zeros(k, body);
    }
    if roles {
        roles::split(k, cx, walk)?;
    }
    if roles || !loops.is_empty() {
        for s in k.stmts.keys() {
            k.plans[s] = StmtPlan::default();
        }
        drop_idle(k);
    }
    Ok(())
}

/// Checks that a kernel without wgmma products, whose roles are not made yet, does not request options of roles.
fn check_no_role_options(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let roles = k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    // With a pass switched off, simpler decisions are made, for which this request is ignored.
    if roles || cx.options.missing_for_roles().is_some() {
        return Ok(());
    }
    let asked = |e: &Expr| k.as_int(*e) == Some(1);
    let none = "no product is a `wgmma`";
    if let Some(e) = k.schedule.split_k.filter(|_| tilec_ir::cluster::split(k).is_some_and(|n| n > 1)) {
        return Err(crate::tile_scheduler::stream_refused(k, cx, e, "there are no producer warps"));
    }
    if let Some(e) = crate::tile_scheduler::work_queue::scheduled(k) {
        let message = "there are no producer warps: each block computes one tile, and the card begins blocks in the order of the grid";
        cx.remark(k.expr_spans[e], message);
    }
    match (k.schedule.stream_k.filter(asked), k.schedule.pending.filter(asked), crate::roles::ping_pong(k)) {
        (Some(e), _, _) => Err(crate::tile_scheduler::stream_refused(k, cx, e, none)),
        (None, Some(e), _) => Err(lag::refused(k, cx, e, none)),
        (None, None, Some(e)) => {
            Err(crate::tile_scheduler::ping_pong::refused(k, cx, e, "there are no wgmma products"))
        }
        (None, None, None) => Ok(()),
    }
}

/// Moves the zeroing of an accumulator directly in front of the product that adds to it: then the instruction
/// overwrites its accumulator, and no register is set.
fn sink_zeros(k: &mut Kernel, block: Block) {
    let mut list = k.blocks[block].clone();
    for i in (0..list.len()).rev() {
        let Some(acc) = zeroed(k, list[i]) else { continue };
        let Some(j) = (i + 1..list.len()).find(|&j| Accesses::of(k, list[j]).get(acc).is_some()) else { continue };
        match k.stmts[list[j]] {
            // A declaration remains visible after the block.
            StmtData::Ordered { body } if matches!(k.stmts[list[i]], StmtData::Assign { .. }) => {
                let zero = list.remove(i);
                k.blocks[body].insert(0, zero);
            }
            _ if is_product(k, list[j]) => list[i..j].rotate_left(1),
            _ => {}
        }
    }
    for &s in &list {
        for b in k.sub_blocks(s) {
            sink_zeros(k, b);
        }
    }
    k.blocks[block] = list;
}

/// Refuses a schedule that breaks a dependence.
fn legal(k: &Kernel, cx: &mut Cx<'_>, s: Stmt) -> Result<(), Reported> {
    let StmtData::For { body, .. } = k.stmts[s] else { unreachable!("stages are those of a loop's statements") };
    let Some((first, second, value, why)) = dependence_check::broken(k, cx, body) else { return Ok(()) };
    let name = &k.values[value].name;
    let what = match why {
        crate::graph::DepReason::Flow => format!("reads `{name}` before it is written"),
        crate::graph::DepReason::Anti => format!("overwrites `{name}` before it is read"),
        crate::graph::DepReason::Output => format!("writes `{name}` before an earlier value of it is written"),
    };
    let message = format!("by its stage and cycle this statement {what}");
    Err(cx.report(
        Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[second], message)
            .with_place(k.stmt_spans[first], "this one comes first")
            .with_note("give it a later cycle, or a later stage; without stages and cycles they are found"),
    ))
}

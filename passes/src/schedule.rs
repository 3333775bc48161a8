//! `schedule`: orders loads, products and stores inside loop bodies.
//!
//! Copies from global memory into registers move to the head of their loop body, as far as dependences allow. So the
//! products of the iteration cover their latency. Everything else keeps its order. The statement that reads the
//! registers (the store into a channel slot) stays after the loads of the last fragments.
//!
//! It also decides how many blocks should share a multiprocessor (`min_ctas`), which limits the registers of a thread
//! ([`occupancy`]), and which values loops recompute ([`recompute`]). If the tiles of a thread exceed its registers, it
//! warns ([`spills`]). It reports divisions in loops that are 64 bits wide ([`divisions`]).
//!
//! This is a list schedule in one forward walk. A copy may not pass a statement that mentions its destination, declares a value it
//! uses, or writes the tensor it reads, nor a barrier or channel operation.
//!
//! Needs: nothing. Switched off: nothing moves.

mod divisions;
pub(crate) mod occupancy;
mod recompute;
mod spills;

use crate::Cx;
use crate::analysis::uses::{all_stmts, for_each_ref, stmt_exprs};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::typing::resolve_view;

pub(crate) const NAME: &str = "schedule";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled {
        return Ok(());
    }
    for s in all_stmts(k, k.body) {
        if let StmtData::For { unroll: false, body, .. } = k.stmts[s] {
            let moved = hoist_loads(k, body);
            if moved > 0 {
                cx.remark(
                    k.stmt_spans[s],
                    format!("{moved} load(s) from global memory moved to the head of the loop body"),
                );
            }
        }
    }
    // Roles have their register counts already.
    if !k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. })) {
        occupancy::choose(k, cx);
    }
    recompute::decide(k, cx);
    spills::warn(k, cx);
    divisions::remark(k, cx);
    Ok(())
}

/// Moves loads up; returns the number of moved loads.
fn hoist_loads(k: &mut Kernel, body: Block) -> usize {
    let stmts = k.blocks[body].clone();
    let mut out: Vec<Stmt> = Vec::with_capacity(stmts.len());
    let mut moved = 0;
    for s in stmts {
        let mut at = out.len();
        if let Some(load) = Load::of(k, s) {
            // The declaration of its tile moves with it.
            let declares =
                |&s: &Stmt| matches!(k.stmts[s], StmtData::Var { value, init: None } if value == load.register);
            let declared = out.pop_if(|s| declares(s));
            at = out.len();
            while at > 0 && !load.blocked_by(k, out[at - 1]) {
                at -= 1;
            }
            if at < out.len() {
                moved += 1;
            }
            if let Some(declared) = declared {
                out.insert(at, declared);
                at += 1;
            }
        }
        out.insert(at, s);
    }
    k.blocks[body] = out;
    moved
}

/// A copy from global memory to registers.
struct Load {
    tensor: Value,
    register: Value,
    /// The values that it reads in addition to the tensor: in its window and its condition.
    uses: Vec<Value>,
}

impl Load {
    fn of(k: &Kernel, s: Stmt) -> Option<Load> {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return None };
        let register = crate::analysis::views::plain_var(k, dst)?;
        let view = resolve_view(k, src)?;
        k.tensor_ty(view.base)?;
        let mut uses = Vec::new();
        for e in stmt_exprs(k, s).into_iter().filter(|&e| e != dst) {
            for_each_ref(k, e, &mut |v| uses.push(v));
        }
        Some(Load { tensor: view.base, register, uses })
    }

    fn blocked_by(&self, k: &Kernel, s: Stmt) -> bool {
        let mut all = vec![s];
        for block in k.sub_blocks(s) {
            all.extend(all_stmts(k, block));
        }
        all.iter().any(|&s| {
            // The load may have to see stores of other threads in front of these.
            if matches!(
                k.stmts[s],
                StmtData::Barrier
                    | StmtData::Fence
                    | StmtData::Channel { .. }
                    | StmtData::Await { .. }
                    | StmtData::Signal { .. }
                    | StmtData::Ordered { .. }
                    | StmtData::Role { .. }
            ) {
                return true;
            }
            let declares = match &k.stmts[s] {
                StmtData::Let { value, .. } | StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => {
                    Some(*value)
                }
                StmtData::Assign { dst, .. } => Some(*dst),
                _ => None,
            };
            if declares.is_some_and(|v| v == self.register || self.uses.contains(&v)) {
                return true;
            }
            // Another load is passed only if it is at the head already: the order of loads is kept.
            let other_load = Load::of(k, s).is_some();
            let writes = matches!(k.stmts[s], StmtData::Copy { dst, .. }
                if resolve_view(k, dst).is_some_and(|v| v.base == self.tensor || self.uses.contains(&v.base)));
            let mut mentions = false;
            for e in stmt_exprs(k, s) {
                for_each_ref(k, e, &mut |v| mentions |= v == self.register);
            }
            other_load || writes || mentions
        })
    }
}

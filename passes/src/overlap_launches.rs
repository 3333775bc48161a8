//! `overlap-launches`: programmatic dependent launch, so that a launch begins before the previous one has ended.
//!
//! ```text
//! schedule { overlap 1 }
//! ```
//!
//! A grid that executes `griddepcontrol.launch_dependents` allows the next grid to start before its blocks have ended, as multiprocessors become
//! free. `griddepcontrol.wait` waits until all previous grids have ended and their writes are visible
//! (PTX ISA 9.7.13.13). Kernels wait as soon as their barriers are ready, access global memory only after that, and then let the next grid start.
//! So the launch overhead is hidden, and at most two grids have blocks on the card. If the host does not set the launch attribute (`programmatic` in the launch contract),
//! there is no grid to wait for, and the wait ends at once.
//!
//! With `overlap 2` a producer of one lane waits in front of its first load, after computations on sizes. With `overlap 2 + n` it first prefetches the loads of its
//! first n steps into the second-level cache, in loops of at most 4 n steps. This is correct because the previous grids also write through that cache.
//!
//! If the producer loads constant tensors (`W: gmem bf16[K, N] constant`), it fills slots with them before it waits: those of the first n steps. What else these
//! steps load is prefetched.
//!
//! Kernels of scalar products do not overlap: small ones take twice as long with overlap (128³ of f32 takes 4.6 us, and 2.1 us without), and for large
//! ones the launch does not matter.
//!
//! Needs: sm_90. Switched off, or `overlap 0`: launches do not overlap.

use crate::Cx;
use crate::roles::least_slots;
use tilec_ir::codes;
use tilec_ir::constant_loads::ConstantLoads;
use tilec_ir::diag::counted;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::roles::MAX_OVERLAP;

pub(crate) const NAME: &str = "overlap-launches";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let target = cx.options.target;
    if let Some(e) = k.schedule.overlap {
        if k.as_int(e).is_some_and(|n| n > 0) && !target.has_dependent_launches() {
            let message = format!("{} has no programmatic dependent launch", target.name());
            let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
            let d = d.with_note("sm_90 and later have it; leave `overlap` out, or write `overlap 0`");
            return Err(cx.report(d.with_left_out(k.schedule_item("overlap"))));
        }
        return Ok(());
    }
    let scalar = |e: &ExprData| matches!(e, ExprData::Mma(m) if m.atom.is_some_and(|a| !a.row().tensor_core));
    if cx.enabled && target.has_dependent_launches() && !k.expressions().into_iter().map(|e| &k.exprs[e]).any(scalar) {
        let overlap = steps_ahead(k).map_or(1, |steps| 2 + steps);
        k.schedule.overlap = Some(k.int(overlap, k.schedule.span));
        let ahead = match overlap - 2 {
            steps @ 1.. => {
                let steps = counted(steps as usize, "step");
                match loads_constants(k) {
                    true => format!(", with {steps} of constant tensors loaded before the wait"),
                    false => format!(", with {steps} of operands prefetched into L2 before the wait"),
                }
            }
            _ => String::new(),
        };
        let message = format!("programmatic dependent launch is enabled{ahead}: `overlap {overlap}`");
        cx.remark(k.name_span, message);
        let constant = k.params.iter().find(|&&v| k.tensor_ty(v).is_some_and(|t| t.constant));
        if let Some(&v) = constant.filter(|_| !loads_constants(k)) {
            let name = &k.values[v].name;
            cx.remark(
                k.values[v].span,
                format!("`{name}` is constant, and loaded after the wait: only a producer loads ahead of it, by TMA copies that are not multicast, with all slots published in one loop"),
            );
        }
    }
    Ok(())
}

/// Whether a role's lane that issues TMA loads may fill slots with constant tensors before the launch waits.
fn loads_constants(k: &Kernel) -> bool {
    let loads = |&s: &Stmt| match k.stmts[s] {
        StmtData::Role { body, .. } => ConstantLoads::of(k, body).is_some(),
        _ => false,
    };
    k.blocks[k.body].iter().any(loads)
}

/// Steps of constant tensors that are loaded before the launch waits. More of them take memory bandwidth from the blocks
/// of the previous grid that still run. On an H200, 16x14336x4096 of W4A16 takes 13.5 us with one step, 14.4 us with
/// three and 14.6 us with six; without constant tensors 14.6 us.
const CONSTANT_STEPS: i64 = 1;

/// Steps of the producer whose operands are prefetched into the second-level cache before the launch waits; `None`:
/// none.
///
/// Kernels with producer warps and `mma.sync` products do so, because memory is their bottleneck, and until the
/// previous grid has ended, they read nothing else from it. Half as many steps as slots: 16x4096x4096 of W4A16 on an
/// H100 takes 6.9 us with four steps of eight slots, and 7.6 us with none. But 16x8192x8192, with loops of 15 steps
/// instead of 8, takes 20.6 us, and 18.1 us with none.
fn steps_ahead(k: &Kernel) -> Option<i64> {
    if loads_constants(k) {
        return Some(CONSTANT_STEPS);
    }
    let roles = k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    let of_warps = |e: &ExprData| matches!(e, ExprData::Mma(m) if m.atom.is_some_and(|a| !a.row().asynchronous()));
    if !roles || !k.expressions().into_iter().map(|e| &k.exprs[e]).any(of_warps) {
        return None;
    }
    least_slots(k).and_then(|n| i64::try_from(n / 2).ok()).map(|steps| steps.min(MAX_OVERLAP - 2))
}

//! `overlap-launches`: programmatic dependent launch, so that a launch begins before the one in front of it has ended.
//!
//! ```text
//! schedule { overlap 1 }
//! ```
//!
//! A grid that says `griddepcontrol.launch_dependents` may be followed before its blocks have ended, as multiprocessors become
//! free; a grid that says `griddepcontrol.wait` waits there until all in front of it have ended and what they wrote can be seen
//! (PTX ISA 9.7.13.13). Kernels wait as soon as their barriers are ready, touch global memory only behind that, and let the next grid begin when they have
//! waited: what a launch costs is hidden, and no more than two grids have blocks on the card. Whoever launches them without asking for it (`programmatic` in the launch contract) finds
//! them as they were: nothing is in front of them, and the wait is over at once.
//!
//! With `overlap 2` a producer of one lane waits in front of its first load, behind all that it computes of sizes. With `overlap 2 + n` it asks the second-level cache for what its
//! first n steps load before it waits, in loops of at most 4 n steps: the cache is where the grids in front write, so that what it has is right whenever it was asked for.
//!
//! Kernels of scalar products follow one another: small ones were measured to take twice as long (128³ of f32 4.6 us, and 2.1 one after the
//! other), and of long ones the launch is no part.
//!
//! Needs: sm_90. Switched off, or `overlap 0`: launches follow one another.

use crate::Cx;
use crate::roles::least_slots;
use tilec_ir::codes;
use tilec_ir::diag::counted;
use tilec_ir::diag::{Diagnostic, Reported};
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
                format!(", with {} of operands prefetched into L2 before the wait", counted(steps as usize, "step"))
            }
            _ => String::new(),
        };
        let message = format!("programmatic dependent launch is enabled{ahead}: `overlap {overlap}`");
        cx.remark(k.name_span, message);
    }
    Ok(())
}

/// Steps of the producer of which the second-level cache is asked for the operands before the launch waits; `None`: of none.
///
/// Warps that multiply by `mma.sync` what producer warps bring do so where memory binds. Until the grid in front has ended, nothing else is read
/// out of it. Half as many steps as there are slots: 16x4096x4096 of W4A16 on an H100 takes 6.9 us with four steps of eight slots and 7.6 with none, but 16x8192x8192, in loops
/// of 15 steps and not of 8, 20.6 and 18.1.
fn steps_ahead(k: &Kernel) -> Option<i64> {
    let roles = k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    let of_warps = |e: &ExprData| matches!(e, ExprData::Mma(m) if m.atom.is_some_and(|a| !a.row().asynchronous()));
    if !roles || !k.expressions().into_iter().map(|e| &k.exprs[e]).any(of_warps) {
        return None;
    }
    least_slots(k).and_then(|n| i64::try_from(n / 2).ok()).map(|steps| steps.min(MAX_OVERLAP - 2))
}

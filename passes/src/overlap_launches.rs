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
//! Kernels of scalar products follow one another: small ones were measured to take twice as long (128³ of f32 4.6 us, and 2.1 one after the
//! other), and of long ones the launch is no part.
//!
//! Needs: sm_90. Switched off, or `overlap 0`: launches follow one another.

use crate::Cx;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::kernel::{ExprData, Kernel};

pub(crate) const NAME: &str = "overlap-launches";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let target = cx.options.target;
    if let Some(e) = k.schedule.overlap {
        if k.as_int(e) == Some(1) && !target.has_dependent_launches() {
            let message = format!("{} cannot begin a launch before the one in front of it has ended", target.name());
            let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
            return Err(cx.report(d.with_note("sm_90 and later can; leave `overlap` out, or write `overlap 0`")));
        }
        return Ok(());
    }
    let scalar = |e: &ExprData| matches!(e, ExprData::Mma(m) if m.atom.is_some_and(|a| !a.row().tensor_core));
    if cx.enabled && target.has_dependent_launches() && !k.expressions().into_iter().map(|e| &k.exprs[e]).any(scalar) {
        k.schedule.overlap = Some(k.int(1, k.schedule.span));
    }
    Ok(())
}

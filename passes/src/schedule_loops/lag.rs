//! Whether the products of a step stay pending while those of the next are issued, in a loop that only accumulates
//! products.
//!
//! If a warpgroup waits for the products of a step before it issues those of the next, the tensor cores idle in
//! between. Another warpgroup may keep them busy. With pending products, slots are released a step later, after the
//! products of the next step are issued. Promoted sums are also added a step later: one partial sum is added to the
//! accumulator while the other is computed. Tiles that a step uses until its products are complete (a partial sum or an
//! operand in registers) are then doubled (`expand`).

use crate::Cx;
use crate::analysis::access_width::{known_elem, slots_of, tile_shape};
use crate::analysis::reduction::Reduction;
use crate::refusal::Refused;
use crate::registers::overhead::{ACCUMULATORS, ADDRESSES};
use crate::roles::{consumer_registers, consumer_warps, ping_pong};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Block, Expr, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::target::WARP;

/// Most registers of a thread for sums and two tiles of an operand: with 192, the assembler (12.9) serialises the
/// products.
pub(crate) const FRAGMENT_REGISTERS: u64 = 160;

/// Whether products should stay pending: as scheduled, else if additions or the computation of an operand would wait
/// for them, or another warpgroup waits for the tensor cores.
pub(super) fn stay_pending(
    k: &Kernel,
    cx: &mut Cx<'_>,
    body: Block,
    found: &Result<Reduction, String>,
    span: Span,
) -> Result<bool, Reported> {
    let asked = k.schedule.pending;
    if asked.and_then(|e| k.as_int(e)) == Some(0) {
        return Ok(false);
    }
    let slots = slots(k, body);
    let fits = match found {
        Err(_) => Err("a step does more than one product".to_owned()),
        Ok(_) if slots < 2 => Err("the channels have one slot, which it reads".to_owned()),
        Ok(step) if room(k, step) => Ok(step),
        Ok(step) if step.load.is_some() => Err("a thread has no room for the sums and an operand, twice".to_owned()),
        Ok(_) => Err("a thread has no room for the sums and two parts of them (`promote`)".to_owned()),
    };
    match (fits, asked) {
        (Ok(step), asked) => {
            let computed = step.load.as_ref().is_some_and(|load| !load.of.is_empty());
            let gains = asked.is_some() || step.part.is_some() || computed || ping_pong(k).is_some();
            if gains {
                let message = format!(
                    "products of a step are pending while those of the next are issued, on two of the {slots} slots"
                );
                cx.remark_note(span, message, "with `pending 0` in the schedule each step waits for its own products");
            }
            Ok(gains)
        }
        (Err(why), Some(e)) => Err(refused(k, cx, e, &why)),
        (Err(why), None) => {
            if found.as_ref().is_ok_and(|step| step.part.is_some()) {
                let refused = Refused::room(why).or_at(span);
                let loss = (FastPath::Overlap, found.iter().map(|step| step.product).collect());
                refused.report(k, cx, "no product is pending while the next is issued", loss);
            }
            Ok(false)
        }
    }
}

/// The error that `pending 1` is not possible.
pub(crate) fn refused(k: &Kernel, cx: &mut Cx<'_>, e: Expr, why: &str) -> Reported {
    let message = format!("no product can be pending while the next is issued: {why}");
    let note = "`pending` is for one wgmma product a step (sm_90a), from channels with at least 2 slots";
    cx.report(Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message).with_note(note))
}

/// The smallest number of slots among channels that the loop releases.
fn slots(k: &Kernel, body: Block) -> u64 {
    let released = k.blocks[body].iter().flat_map(|&s| match &k.stmts[s] {
        StmtData::Channel { op: ChannelOp::Release, channels, .. } => channels.as_slice(),
        _ => &[],
    });
    released.map(|&c| slots_of(k, c)).min().unwrap_or(1)
}

/// Whether a thread has registers for the sums, for two partial sums if they are promoted, and for two tiles of an
/// operand in registers.
fn room(k: &Kernel, step: &Reduction) -> bool {
    if step.part.is_none() && step.load.is_none() {
        return true;
    }
    let words = |v: Value| known_elem(k, v).bytes_of(tile_shape(k, v).iter().product()) / 4;
    let warps = consumer_warps(k);
    let (sums, fragment) = (words(step.sums), step.load.as_ref().map_or(0, |load| words(load.tile)));
    // The sources of the computed operand are dead when products run.
    let read: u64 = step.load.iter().flat_map(|load| &load.of).map(|&v| words(v)).sum();
    let parts = if step.part.is_some() { 3 } else { 1 };
    // A tile with one number for each row takes few registers.
    let factors = step.part.iter().flat_map(|part| &part.factors).filter(|&&v| k.tile_ty(v).is_some());
    let factors: u64 = factors.map(|&v| words(v)).sum();
    let threads = u64::from(warps.max(1) * WARP);
    let tiles = (parts * sums + 2 * fragment + factors) / threads;
    let own = u64::try_from(consumer_registers(k, warps)).unwrap_or(0);
    let most = if fragment > 0 { FRAGMENT_REGISTERS } else { ACCUMULATORS };
    tiles <= most && tiles + read / threads + ADDRESSES <= own
}

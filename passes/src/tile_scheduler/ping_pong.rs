//! Ping-pong schedule: two warpgroups compute alternate tiles.
//!
//! Warpgroups that share a tile end their main loops together, and the tensor cores idle while both store it. Here one
//! computes a tile while the other stores the previous one:
//!
//! ```text
//! role consumer warps 4 replicas 2 registers 232 {
//!     for tile in cta..tiles step 132 {
//!         var acc = reg f32[128, 128] = 0
//!         ordered { .. wait a, b; acc = mma<m64k16>(a.get, b.get, acc) .. }    // one main loop at a time
//!         await acc, 0; release a, b
//!         ordered { copy acc -> c_tile; copy c_tile -> C[..] tma; await c_tile, 0 }
//!     }
//! }
//! ```
//!
//! The next main loop begins while the last products of this one are pending, so that the tensor cores do not idle. A
//! warpgroup uses them alone, so its products are pending while the next are issued, unless the schedule says
//! otherwise. Both use one buffer for results, alternately: their stores are a main loop apart.

use crate::Cx;
use crate::analysis::uses::all_stmts;
use crate::ordered::ordered;
use crate::roles::ping_pong as asked;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::target::WARPGROUP;

/// The error that ping-pong is not possible.
pub(crate) fn refused(k: &Kernel, cx: &mut Cx<'_>, e: Expr, why: &str) -> Reported {
    let message = format!("no ping-pong of two warpgroups: {why}");
    let note = "`ping_pong` is for wgmma products (sm_90a) in tiles that one of them computes: `warp_tile` is the whole tile, of at most 128 \
                registers a thread, or 64 if sums are promoted, such as 128x128 and 64x256";
    cx.report(Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message).with_note(note))
}

/// Refuses requests that are not possible in a kernel whose loop `warps` warps compute.
pub(crate) fn check(k: &Kernel, cx: &mut Cx<'_>, warps: u32) -> Result<(), Reported> {
    let Some(e) = asked(k) else { return Ok(()) };
    if k.grid.is_empty() {
        return Err(refused(k, cx, e, "there is one tile"));
    }
    if warps != WARPGROUP {
        return Err(refused(k, cx, e, &format!("{warps} warps share a tile")));
    }
    Ok(())
}

/// The statements for a tile of one warpgroup.
pub(crate) fn taken(k: &mut Kernel, list: Vec<Stmt>, span: Span) -> Vec<Stmt> {
    let within = |s: Stmt| {
        let inner = k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
        std::iter::once(s).chain(inner).collect::<Vec<_>>()
    };
    let uses_slots = |&s: &Stmt| within(s).iter().any(|&s| matches!(k.stmts[s], StmtData::Channel { .. }));
    let (Some(first), Some(last)) = (list.iter().position(uses_slots), list.iter().rposition(uses_slots)) else {
        unreachable!("a tile has products on slots")
    };
    let (mut out, steps, rest) = (list[..first].to_vec(), list[first..=last].to_vec(), list[last + 1..].to_vec());
    out.extend(ordered_main_loop(k, steps, &rest, span));
    out.extend(stored_alternately(k, rest, span));
    out
}

/// The main loop as an `ordered` block, without the wait for the last products.
fn ordered_main_loop(k: &mut Kernel, mut steps: Vec<Stmt>, rest: &[Stmt], span: Span) -> Vec<Stmt> {
    let settles = |s: Stmt| match &k.stmts[s] {
        StmtData::Await { .. } => true,
        StmtData::Channel { op, .. } => *op == ChannelOp::Release,
        _ => false,
    };
    let last = steps.iter().rposition(|&s| !settles(s)).map_or(0, |i| i + 1);
    let settled = steps.split_off(last);
    let behind: Vec<Stmt> = settled.iter().chain(rest).copied().collect();
    let mut out = ordered(k, steps, Some(&behind), span);
    out.extend(settled);
    out
}

/// The epilogue: `ordered` from the first use of a buffer on.
fn stored_alternately(k: &mut Kernel, mut rest: Vec<Stmt>, span: Span) -> Vec<Stmt> {
    let uses = |s: Stmt| {
        let inner = k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
        std::iter::once(s).chain(inner).any(|s| match &k.stmts[s] {
            StmtData::Await { value, .. } => matches!(k.values[*value].def, ValueDef::Smem(_)),
            _ => !crate::barriers::buffer_uses(k, s).is_empty(),
        })
    };
    let Some(first) = rest.iter().position(|&s| uses(s)) else { return rest };
    let stored = rest.split_off(first);
    rest.extend(ordered(k, stored, Some(&[]), span));
    rest
}

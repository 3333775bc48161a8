//! Writes the decisions about wgmma into the kernel: the instruction, and the tile of each warpgroup.
//!
//! `warp_tile` in the schedule is the largest tile of a warpgroup; each product uses as much of it as its accumulator has. For other products the layouts of the
//! tiles determine it.

use super::operand_sources::Product;
use super::warpgroup::WgmmaForm;
use crate::Cx;
use crate::analysis::uses::path_to;
use crate::analysis::views::plain_var;
use crate::assign_layouts::warpgroup_layouts;
use crate::select_mma::operands::scheduled_tile;
use tilec_ir::atoms::Atom;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData};
use tilec_ir::target::WARPGROUP;

/// A product with its decisions.
pub(super) struct DecidedProduct {
    pub(super) product: Product,
    pub(super) atom: Atom,
    pub(super) form: WgmmaForm,
    pub(super) shape: (u64, u64),
    /// The tile of a warpgroup.
    pub(super) tile: (u64, u64),
    /// Number of warpgroups that compute the same tile.
    pub(super) repeats: u64,
    /// The memory of its operands, and why it is transposed, as text.
    pub(super) operands: &'static str,
    pub(super) why: String,
}

/// Writes the instructions of products, and the tile of a warpgroup.
pub(super) fn apply(k: &mut Kernel, cx: &mut Cx<'_>, found: Vec<DecidedProduct>) -> Result<(), Reported> {
    if found.is_empty() {
        return Ok(());
    }
    if let Some(e) = k.schedule.k_warps.filter(|&e| k.as_int(e) != Some(1)) {
        let message = "`k_warps` in a kernel whose roles use wgmma: each warpgroup computes the whole reduction";
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
        let d = d.with_note("leave `k_warps` out, or divide the reduction among roles by hand");
        return Err(cx.report(d.with_left_out(k.schedule_item("k_warps"))));
    }
    if k.schedule.warp_tile.is_none() {
        let largest = |of: fn(&DecidedProduct) -> u64| found.iter().map(of).max().unwrap_or(1);
        let (wm, wn) = (largest(|p| p.tile.0), largest(|p| p.tile.1));
        let span = k.name_span;
        k.schedule.warp_tile = Some((k.int(wm as i64, span), k.int(wn as i64, span)));
    }
    let scheduled = scheduled_tile(k).flatten().unwrap_or((1, 1));
    for p in found {
        let Product { s, src, mma, .. } = p.product;
        if let Some((warps, first)) = misplaced(k, s) {
            let message =
                format!("the warps of this role begin with the block's warp {first}, in the middle of a warpgroup");
            let d = Diagnostic::error(codes::BAD_ROLE, k.expr_spans[warps], message);
            return Err(cx.report(d.with_note(
                "a role with wgmma products begins at a multiple of 4 warps: give the roles in front of it a multiple of 4 warps, or put it first",
            )));
        }
        let span = k.stmt_spans[s];
        let decided = Mma { atom: Some(p.atom), swap: p.form.swap, ..mma };
        if (cut(scheduled, p.shape) != p.tile || p.repeats > 1) && !own_layout(k, &p, &decided) {
            let ((m, n), (wm, wn)) = (p.shape, p.tile);
            let message = format!(
                "products of these roles divide their accumulators differently: a warpgroup has {wm}x{wn} of this one of {m}x{n}"
            );
            let d = Diagnostic::error(codes::WARP_TILE, span, message);
            return Err(
                cx.report(d.with_note("one `warp_tile` is for all: compute all of them transposed (`swap`), or none"))
            );
        }
        if mma.atom.is_none() {
            let each = if p.repeats > 1 { ", each computes all" } else { "" };
            let (DecidedProduct { operands, why, .. }, (wm, wn), name) = (&p, p.tile, p.atom.row().name);
            cx.remark(span, format!("`{name}` on {operands}, {wm}x{wn} per warpgroup (128 threads){why}{each}"));
        }
        k.exprs[src] = ExprData::Mma(decided);
    }
    Ok(())
}

/// Gives an accumulator whose warpgroup tile differs from the schedule's a layout with that tile, and also the
/// instruction's A if it is in registers. `false`: these have another layout already.
fn own_layout(k: &mut Kernel, p: &DecidedProduct, decided: &Mma) -> bool {
    let StmtData::Assign { dst, .. } = k.stmts[p.product.s] else { unreachable!("a product is assigned") };
    let Some((sums, fragment)) = warpgroup_layouts(k, dst, decided, p.tile, p.repeats) else { return false };
    if let Some(tile) = k.tile_ty_mut(dst) {
        tile.reg_layout.get_or_insert(sums);
    }
    let a = plain_var(k, if decided.swap { decided.b } else { decided.a });
    match a.and_then(|a| k.tile_ty_mut(a)) {
        Some(tile) => fragment.is_some_and(|own| *tile.reg_layout.get_or_insert_with(|| own.clone()) == own),
        None => true,
    }
}

/// The warps of a statement's role, and the first of them, if it is not the first warp of a warpgroup.
fn misplaced(k: &Kernel, s: Stmt) -> Option<(Expr, i64)> {
    let path = path_to(k, s);
    let warps = |s: Stmt| match k.stmts[s] {
        StmtData::Role { warps, replicas, .. } => Some((warps, replicas)),
        _ => None,
    };
    let all = |s: Stmt| {
        let (warps, replicas) = warps(s)?;
        k.as_int(warps)?.checked_mul(replicas.map_or(Some(1), |e| k.as_int(e))?)
    };
    let (at, (own, _)) = path.iter().find_map(|&(block, i)| Some(((block, i), warps(k.blocks[block][i])?)))?;
    let before = k.blocks[at.0][..at.1].iter().filter_map(|&s| all(s)).sum::<i64>();
    (before % i64::from(WARPGROUP) != 0).then_some((own, before))
}

/// The tile, clamped to the accumulator.
fn cut((wm, wn): (u64, u64), (bm, bn): (u64, u64)) -> (u64, u64) {
    (wm.min(bm), wn.min(bn))
}

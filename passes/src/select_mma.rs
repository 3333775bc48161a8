//! `select-mma`: selects the instruction of every product, and makes fragments of its operands.
//!
//! `acc = mma(a, b, acc)` on shared-memory (or global) operands becomes a loop over slices of the reduction dimension
//! that copies a fragment of each operand into registers and multiplies the fragments:
//!
//! ```text
//! for kk in 0..32 step 8 unroll {
//!     copy a[.., kk..] -> a_frag
//!     copy b[kk.., ..] -> b_frag
//!     acc = mma<m8n8k4>(a_frag, b_frag, acc)
//! }
//! ```
//!
//! A slice is as deep as one 16-byte access if an operand is contiguous along the reduction, else as one atom. The
//! product is computed transposed (`swap`) if the result is stored to a column-major tensor, so that threads always have runs of
//! adjacent elements of the output.
//!
//! With `k_warps` in the schedule the warps of a block share the reduction as well: see [`k_warps`].
//!
//! Needs: literal extents. Breaks: nothing. Switched off: scalar multiply-add, never transposed.

mod apply_wgmma;
pub(crate) mod atoms;
mod converted_operands;
mod from_registers;
mod in_roles;
pub(crate) mod k_slices;
pub(crate) mod k_warps;
mod missed_wgmma;
mod operand_buffers;
mod operand_loads;
mod operand_sources;
pub(crate) mod operands;
mod producer_mma;
mod promotion;
mod row_loop;
mod row_spread;
mod rows_in_memory;
mod scalar;
mod scale_factors;
mod shared_operands;
mod stored_tiles;
pub(crate) mod threads;
pub(crate) mod tiles;
mod vectors_ahead;
pub(crate) mod warpgroup;
mod warps;
pub(crate) mod wgmma;
mod written_mma;

use crate::Cx;
use crate::analysis::uses::{all_stmts, path_to};
use crate::analysis::views::plain_var;
use crate::assign_layouts::accumulator_layout;
use crate::rewrite::inherit_stages;
use crate::select_mma::k_slices::{declare, in_slices};
use crate::select_mma::operand_sources::Product;
use crate::select_mma::operands::{acc_shape, known, operand, operand_name, stored_column_major};
use crate::select_mma::threads::{default_threads, no_roles, written_threads};
use crate::specialize::pad;
pub(crate) use atoms::{accumulator_registers, available, best_atom, divides, slice_depth, transposes};
use atoms::{choose_atom, fits, transposed, transposed_on_cores};
pub(crate) use from_registers::keeps as keeps_in_registers;
use from_registers::{InBuffer, WarpProduct};
use tilec_ir::atoms::{Atom, Inputs, Unit};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::types::Elem;
use tilec_ir::typing::{product_depth, type_of};
use warps::{Share, Shares};

pub(crate) use warps::{Sharing, sharing, usual_tile};

pub(crate) const NAME: &str = "select-mma";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let scheduled = k.schedule.threads.is_some();
    let laid_out = k.values.values().any(|data| matches!(&data.def, ValueDef::Var(t) if t.reg_layout.is_some()));
    if cx.options.target.has_tensor_copies() {
        in_roles::threads(k);
    }
    no_roles(k, cx)?;
    written_threads(k);
    in_roles::select(k, cx)?;
    pad_without_wgmma(k, cx);
    let none = wgmma::select(k, cx)?;
    if none.is_some() || !products(k) {
        pad::extents(k, cx, pad::Windows::Whole, &[]);
    }
    if let Some(refused) = &none {
        missed_wgmma::refuse_odd_extents(k, cx, &refused.why)?;
    }
    let cut = k_warps::cut(k, cx)?;
    let mut given = ProductFacts { cut, shares: Shares::default() };
    if none.is_some() {
        producer_mma::select(k, cx, &mut given.shares)?;
    }
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { dst, src } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        match mma.atom {
            None => select(k, cx, s, (dst, src, mma), &mut given)?,
            // Operands are slots or registers already, so nothing is left to decide.
            Some(atom) if atom.row().asynchronous() && in_roles::in_slots(k, &mma) => {
                // For a scheduled kernel, `expand` makes the roles.
                if !crate::analysis::wgmma::is_scheduled(k) {
                    in_roles::demand_role(k, cx, s, src)?;
                } else {
                    in_roles::check_scheduled(k, cx, (s, src, dst), mma)?;
                }
            }
            Some(atom) if atom.row().asynchronous() && wgmma::is_decided(k, &mma) => {}
            // The instruction is written, but operands may still have to become fragments.
            Some(atom) if is_open(k, s, (dst, &mma, atom)) => select(k, cx, s, (dst, src, mma), &mut given)?,
            Some(atom) => check_written(k, cx, (dst, src, &mma, atom), &mut given.shares)?,
        }
    }
    inherit_stages(k);
    let products = all_stmts(k, k.body).into_iter().any(|s| match k.stmts[s] {
        StmtData::Assign { src, .. } => {
            matches!(k.exprs[src], ExprData::Mma(m) if m.atom.is_some_and(|a| a.row().asynchronous()))
        }
        _ => false,
    });
    default_threads(k, cx, products)?;
    if !products {
        missed_wgmma::refuse_odd_extents(k, cx, "the kernel has no such product")?;
    }
    // Written layouts may be for another thread count or instruction than the chosen one.
    if scheduled && !laid_out { Ok(()) } else { cx.verify(k) }
}

/// Pads extents that only operands of wgmma may have, if no wgmma takes them. The padded product may use wgmma then. A
/// written tile of a warp divides the written extents, so these stay.
fn pad_without_wgmma(k: &mut Kernel, cx: &mut Cx<'_>) {
    let written = k.schedule.warp_tile.is_some() || k.schedule.threads.is_some();
    let may = cx.enabled && cx.options.target.has_tensor_copies() && !written;
    if !may || !products(k) || !pad::has_odd_extents(k) {
        return;
    }
    let (mut trial, mut unheard) = (k.clone(), Sink::default());
    let mut quiet = Cx::new(cx.options, cx.pass, &mut unheard).without_warnings();
    if wgmma::select(&mut trial, &mut quiet).is_ok_and(|refused| refused.is_none()) {
        return;
    }
    pad::extents(k, cx, pad::Windows::Any, &[]);
}

/// Whether an operand of a product with a written instruction is no fragment yet.
fn is_open(k: &Kernel, s: Stmt, (acc, mma, atom): (Value, &Mma, Atom)) -> bool {
    let operands = [(mma.a, !mma.swap), (mma.b, mma.swap)];
    let computed = operands.map(|(e, _)| plain_var(k, e).is_none());
    let laid_out = || k.tile_ty(acc).is_some_and(|tile| tile.reg_layout.is_some());
    let apart = || operands.iter().any(|&operand| shared_operands::is_taken(k, s, mma, operand));
    computed == [true, true] || !atom.row().asynchronous() && !laid_out() && (computed.contains(&true) || apart())
}

/// Whether a kernel has products.
pub(crate) fn products(k: &Kernel) -> bool {
    let product = |s: &StmtData| matches!(s, StmtData::Assign { src, .. } if matches!(k.exprs[*src], ExprData::Mma(_)));
    k.statement_data().any(product)
}

/// Checks a product with a written instruction: if layouts are missing, the warp tile must allow them.
fn check_written(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    (acc, src, mma, atom): (Value, Expr, &Mma, Atom),
    shares: &mut Shares,
) -> Result<(), Reported> {
    let span = k.expr_spans[src];
    // The accumulator's layout then gives the warp tile.
    let laid_out = k.tile_ty(acc).is_some_and(|t| t.reg_layout.is_some());
    written_mma::exists(k, cx, span, (atom, !laid_out))?;
    if laid_out {
        return Ok(());
    }
    let (Some(shape), Some(depth)) = (acc_shape(k, acc), product_depth(k, mma)) else {
        return Err(cx.report(
            Diagnostic::error(codes::MMA_FORM, span, "the operands of this product have no fixed shape")
                .with_note("a product with a named instruction takes register tiles of fixed shape"),
        ));
    };
    let depth = depth / k_warps::groups(k, acc);
    let (wm, wn) = match atom.row().unit {
        Unit::Warpgroup(_) => {
            let elem = known(k.tile_ty(acc).map(|t| t.elem)).unwrap_or(Elem::F32);
            written_mma::warp_tile(k, cx, shape, elem.size(), span)?
        }
        Unit::Warp => {
            let share = shares.of(k, cx, acc, span)?;
            let inputs = [mma.a, mma.b].map(|e| type_of(k, e).ok().and_then(|t| known(t.elem())));
            if let [Some(a), Some(b)] = inputs {
                lay_out(k, acc, (atom, mma.swap), Inputs { a, b }, share);
            }
            share.tile
        }
    };
    let (rows, cols) = if mma.swap { (wn, wm) } else { (wm, wn) };
    let (m, n, kk) = atom.row().log2_shape;
    if rows < 1 << m || cols < 1 << n || depth < 1 << kk {
        return Err(cx.report(
            Diagnostic::error(
                codes::NO_ATOM,
                span,
                format!("`{}` does not fit a {wm}x{wn} warp tile and a reduction of {depth}", atom.row().name),
            )
            .with_note(format!(
                "a warp computes at least {}x{}x{} with it",
                1u64 << m,
                1u64 << n,
                1u64 << kk
            )),
        ));
    }
    Ok(())
}

/// Facts about a kernel's products that are determined before the first one is selected.
struct ProductFacts {
    /// New accumulators with partial sums for each slice (sliced-K), and the original accumulators.
    cut: Vec<(Value, Value)>,
    shares: Shares,
}

fn select(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    s: Stmt,
    (acc, src, mut mma): (Value, Expr, Mma),
    given: &mut ProductFacts,
) -> Result<(), Reported> {
    let span = k.expr_spans[src];
    assert_eq!(k.exprs[mma.c], ExprData::Ref(acc), "bug: a product that does not add to what it is assigned to");
    let (Some(shape), Some(acc_elem)) = (acc_shape(k, acc), known(k.tile_ty(acc).map(|t| t.elem))) else {
        return Err(cx.report(Diagnostic::error(codes::MMA_FORM, span, "the accumulator has no fixed shape")));
    };
    from_registers::name(k, s, &mut mma);
    operand_loads::write_out(k, &mma);
    if cx.enabled && mma.atom.is_none() && k_warps::groups(k, acc) == 1 && path_to(k, s).len() > 1 {
        let product = Product { s, src, acc, mma };
        let share = given.shares.of(k, cx, acc, span)?;
        if let Some((inputs, atom, swap)) = converted_operands::whole(k, cx, &product, share.tile) {
            remark_instruction(cx, span, (inputs, acc_elem), (atom, swap), share.tile);
            lay_out(k, acc, (atom, swap), inputs, share);
            converted_operands::multiply(k, &product, (atom, swap));
            return Ok(());
        }
    }
    let mut a = operand(k, cx, mma.a, 1)?;
    let mut b = operand(k, cx, mma.b, 0)?;
    let k_extent = product_depth(k, &mma);
    let Some(k_extent) = k_extent else {
        return Err(cx.report(
            Diagnostic::error(codes::MMA_FORM, span, "the reduction extent of this product is not fixed")
                .with_note("copy at least one operand into a shared-memory or register tile of fixed shape first"),
        ));
    };
    let (groups, share) = (k_warps::groups(k, acc), given.shares.of(k, cx, acc, span)?);
    let (wm, wn) = share.tile;
    let inputs = Inputs { a: a.elem, b: b.elem };
    let tile = (wm, wn, k_warps::depth(k, cx, span, (inputs, acc_elem), (wm, wn, k_extent), groups)?);
    let cut = given.cut.iter().find(|&&(sums, _)| sums == acc).map(|&(_, whole)| whole);
    let column_major = cx.enabled && stored_column_major(k, cut.unwrap_or(acc));
    let types = (inputs, acc_elem);
    let (atom, swap) = instruction(k, cx, span, (acc, &mma), types, tile, column_major)?;
    let row = atom.row();
    remark_instruction(cx, span, (inputs, acc_elem), (atom, swap), share.tile);
    lay_out(k, acc, (atom, swap), inputs, share);
    let in_registers = [a.space.in_registers(), b.space.in_registers()];
    let extents = if swap { transposed(tile) } else { tile };
    let buffered = WarpProduct { row, types, swap, extents }.in_buffers(in_registers);
    if in_registers == [true; 2] && buffered == [InBuffer::No; 2] {
        let taken = [(mma.a, !swap), (mma.b, swap)]
            .map(|operand| shared_operands::is_taken(k, s, &Mma { swap, ..mma }, operand));
        for (e, operand, taken) in [(&mut mma.a, &a, taken[0]), (&mut mma.b, &b, taken[1])] {
            if taken || plain_var(k, *e).is_none() {
                *e = from_registers::operand(k, cx, s, *e, operand.elem, InBuffer::No);
            }
        }
        k.exprs[src] = ExprData::Mma(Mma { atom: Some(atom), swap, ..mma });
        return Ok(());
    }
    let names = [mma.a, mma.b].map(|e| format!("{}_frag", operand_name(k, e)));
    let operands = [(&mut mma.a, &mut a, 1), (&mut mma.b, &mut b, 0)];
    for ((e, operand, k_dim), buffered) in operands.into_iter().zip(buffered) {
        if operand.space.in_registers() {
            *e = from_registers::operand(k, cx, s, *e, operand.elem, buffered);
            *operand = self::operand(k, cx, *e, k_dim)?;
        }
    }
    if groups > 1 && cut.is_none() {
        return Err(cx.report(
            Diagnostic::error(codes::K_WARPS, span, "a product in slices takes register tiles")
                .with_note("accumulate in a tile of two dimensions, and write `k_warps` into the schedule"),
        ));
    }
    if cx.enabled && !row.sums() {
        for (e, operand, k_dim) in [(mma.a, &mut a, 1), (mma.b, &mut b, 0)] {
            scalar::order_operand(k, cx, e, k_dim);
            *operand = self::operand(k, cx, e, k_dim)?;
        }
    }
    // Each group of warps takes its own part of the slice.
    let along = [&a, &b].map(|o| (o.k_contiguous || transposes(row, o.elem)).then(|| o.elem.size()));
    let depth = slice_depth(row, along, tile.2) * groups;
    let fragments = [
        declare(k, s, &names[0], a.elem, &[shape.0, depth], span),
        declare(k, s, &names[1], b.elem, &[depth, shape.1], span),
    ];
    in_slices(k, s, (acc, Mma { atom: Some(atom), swap, ..mma }), fragments, (k_extent, depth));
    Ok(())
}

/// The instruction of a product with this accumulator for a warp tile, and whether it is transposed.
fn instruction(
    k: &Kernel,
    cx: &mut Cx<'_>,
    span: Span,
    (acc, mma): (Value, &Mma),
    types: (Inputs, Elem),
    tile: (u64, u64, u64),
    column_major: bool,
) -> Result<(Atom, bool), Reported> {
    if let Some(atom) = mma.atom {
        let atom = written_mma::check(k, cx, span, atom, types, if mma.swap { transposed(tile) } else { tile })?;
        return Ok((atom, mma.swap || column_major && fits(atom, transposed(tile))));
    }
    // Tensor cores are worth more than contiguous stores.
    let whole = |tile| best_atom(cx.options.target, cx.enabled, types, tile).is_some_and(|a| a.row().tensor_core);
    let swap = mma.swap
        || column_major && (whole(transposed(tile)) || !whole(tile))
        || cx.enabled && transposed_on_cores(cx.options.target, types, tile);
    let (target, tile) = (cx.options.target, if swap { transposed(tile) } else { tile });
    let explained = |error| pad::small_products::explained(k, target, acc, error);
    Ok((choose_atom(cx, span, types, tile, explained)?, swap))
}

/// Remarks on the instruction of a product.
fn remark_instruction(
    cx: &mut Cx<'_>,
    span: Span,
    (inputs, acc): (Inputs, Elem),
    (atom, swap): (Atom, bool),
    (wm, wn): (u64, u64),
) {
    if !cx.enabled {
        return;
    }
    let direction = match swap {
        true if transposed_on_cores(cx.options.target, (inputs, acc), (wm, wn, u64::MAX)) => {
            ", transposed because the tile has fewer rows than instructions on tensor cores"
        }
        true => ", transposed because the result is stored column-major",
        false => "",
    };
    let (name, acc, target) = (atom.row().name, acc.name(), cx.options.target.name());
    let message =
        format!("`{name}` for {inputs} inputs and {acc} accumulation on {target}, warp tile {wm}x{wn}{direction}");
    cx.remark(span, message);
}

/// Gives an accumulator the layout of its share, if the share differs from the schedule's: the text has no other place
/// for it.
fn lay_out(k: &mut Kernel, acc: Value, (atom, swap): (Atom, bool), inputs: Inputs, share: Share) {
    if share.scheduled {
        return;
    }
    let layout = accumulator_layout(k, acc, (atom, swap), inputs, (share.tile, share.warps));
    if let Some(tile) = k.tile_ty_mut(acc).filter(|t| t.reg_layout.is_none()) {
        tile.reg_layout = layout;
    }
}

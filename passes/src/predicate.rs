//! `predicate`: drops bounds checks that cannot fail.
//!
//! By default a copy checks every dimension of its window. This pass drops the check of a dimension if the window is always inside the extent: block tiles of extents
//! that are known multiples of the tile, and reduction steps that divide the extent. If a window is inside either completely or not at all, one condition replaces
//! the checks of its elements.
//!
//! Needs: expanded loops. Switched off: every access checks everything.

use crate::Cx;
use crate::analysis::access_width::kept_dims;
use crate::analysis::bounds::ends_within;
use crate::analysis::facts::Facts;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{accessed_views, copy_shape};
use crate::rewrite::{add_condition, same_expr};
use crate::specialize::drop_idle;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::index_values::is_of_value;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view, same_product};
use tilec_ir::zero_sizes::zero_sizes;

pub(crate) const NAME: &str = "predicate";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled {
        return Ok(());
    }
    drop_idle(k);
    drop_checks(k, cx);
    Ok(())
}

/// The global side of a copy.
fn global_side(k: &Kernel, src: Expr, dst: Expr) -> Option<(Expr, ResolvedView)> {
    [src, dst].into_iter().find_map(|e| {
        let view = resolve_view(k, e)?;
        k.tensor_ty(view.base).is_some().then_some((e, view))
    })
}

/// Drops checks of dimensions whose windows are inside the extent for every launch that meets the preconditions.
fn drop_checks(k: &mut Kernel, cx: &mut Cx<'_>) {
    let facts = Facts::new(k);
    let deferred = Deferred::of(k);
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { continue };
        // TMA clips its boxes at the end of the tensor.
        if !attrs.is_by_threads() {
            continue;
        }
        let Some((_, view)) = global_side(k, src, dst) else { continue };
        let shape = copy_shape(k, src, dst).expect("a copy has extents");
        let kept = kept_dims(&view);
        // A dropped check is dropped for all windows of the copy.
        let others: Vec<ResolvedView> = [accessed_views(k, &deferred, src), accessed_views(k, &deferred, dst)]
            .concat()
            .into_iter()
            .filter(|v| k.tensor_ty(v.base).is_some())
            .collect();
        if kept.len() != shape.len() || others.iter().any(|v| v.base_dims().len() != shape.len()) {
            continue;
        }
        let checked: Vec<u32> = attrs.check.clone().unwrap_or_else(|| (0..kept.len() as u32).collect());
        let still: Vec<u32> = checked
            .iter()
            .copied()
            .filter(|&w| {
                let w = w as usize;
                !others.iter().all(|v| always_inside(k, &facts, v, v.base_dims()[w], shape[w]))
            })
            .collect();
        // Windows that are inside completely or not at all need one comparison for all threads.
        let fetch = resolve_view(k, src).is_some_and(|v| k.tensor_ty(v.base).is_some());
        let still: Vec<u32> = still
            .into_iter()
            .filter(|&w| {
                let position = if view.transposed { kept.len() - 1 - w as usize } else { w as usize };
                let cond =
                    if fetch { inside_or_outside(k, &facts, &view, kept[position], shape[w as usize]) } else { None };
                if let Some((start, extent)) =
                    cond.filter(|&(start, extent)| !implied(k, &facts, attrs.when, start, extent))
                {
                    let span = k.stmt_spans[s];
                    let copies = [start, extent].map(|e| k.copy_expr(e));
                    let cond = k.binary(Op::Lt, copies[0], copies[1], span);
                    add_condition(k, s, cond);
                }
                cond.is_none()
            })
            .collect();
        let names: Vec<String> = still.iter().map(u32::to_string).collect();
        if attrs.check.as_ref() != Some(&still) {
            let text = if still.is_empty() {
                "no bounds are checked".into()
            } else {
                format!("bounds checked: dimension {}", names.join(", "))
            };
            cx.remark(k.stmt_spans[s], format!("`{}`: {text}", k.values[view.base].name));
        }
        if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
            attrs.keep &= !still.is_empty();
            attrs.check = Some(still);
        }
    }
}

/// Whether a condition implies that `start` is in front of the extent: directly, by a smaller end, or by an index and
/// an end of which both are blocks.
fn implied(k: &Kernel, facts: &Facts, when: Option<Expr>, start: Expr, extent: Expr) -> bool {
    let Some(when) = when else { return false };
    match &k.exprs[when] {
        ExprData::Op { op: Op::And, args } => args.iter().any(|&a| implied(k, facts, Some(a), start, extent)),
        ExprData::Op { op: Op::Lt, args } => {
            let in_front = |start: Expr, extent| same_expr(k, args[0], start) && ends_within(k, args[1], extent);
            in_front(start, extent) || in_blocks(k, facts, (args[0], args[1]), start, extent)
        }
        _ => false,
    }
}

/// Whether `index < end` implies `start < extent` for block numbers: `start` is `index / c` or a smaller literal, and
/// `extent` is `end` divided by `c`, rounded up, or exactly.
fn in_blocks(k: &Kernel, facts: &Facts, (index, end): (Expr, Expr), start: Expr, extent: Expr) -> bool {
    let ExprData::Op { op, args: of } = &k.exprs[extent] else { return false };
    let Some(c) = k.as_int(of[1]).filter(|&c| c > 0) else { return false };
    let counted = match op {
        Op::CeilDiv => true,
        Op::Div => facts.divisor(k, of[0]).is_multiple_of(c.unsigned_abs()),
        _ => false,
    };
    let its_block = match &k.exprs[start] {
        ExprData::Op { op: Op::Div, args } => k.as_int(args[1]) == Some(c) && same_expr(k, args[0], index),
        ExprData::Int(block) => k.as_int(index).is_some_and(|index| index / c >= *block),
        _ => false,
    };
    counted && its_block && !may_be_in_front(k, index) && ends_within(k, end, of[0])
}

/// Start and extent of a window that moves with a loop or starts at a later position, if both are multiples of the
/// tile. Its `tile` elements in dimension `dim` are then inside completely or not at all.
fn inside_or_outside(k: &Kernel, facts: &Facts, view: &ResolvedView, dim: usize, tile: u64) -> Option<(Expr, Expr)> {
    let ViewDim::From { starts, end: None } = &view.dims[dim] else { return None };
    let &extent = k.tensor_ty(view.base)?.shape.get(dim)?;
    let [start] = starts[..] else { return None };
    if may_be_in_front(k, start) {
        return None;
    }
    (facts.divisor(k, extent) >= tile && facts.divisor(k, start) >= tile).then_some((start, extent))
}

/// Whether an index may be negative: by its range, or because it comes from numbers without a range.
fn may_be_in_front(k: &Kernel, start: Expr) -> bool {
    Ranges::new(k).of(start).map_or_else(|| is_of_value(k, start), |range| range.lo < 0)
}

/// Whether an extent is 0 for some sizes.
fn may_be_nothing(k: &Kernel, extent: Expr) -> bool {
    !zero_sizes(k).is_empty() && Ranges::new(k).of(extent).is_none_or(|range| range.lo <= 0)
}

/// Whether the window of `tile` elements in dimension `dim` never exceeds the extent.
fn always_inside(k: &Kernel, facts: &Facts, view: &ResolvedView, dim: usize, tile: u64) -> bool {
    let ViewDim::From { starts, end: None } = &view.dims[dim] else { return false };
    let extent = k.tensor_ty(view.base).expect("a window of a tensor").shape[dim];
    // Zero is a multiple of any tile, too.
    if facts.divisor(k, extent) < tile || may_be_nothing(k, extent) {
        return false;
    }
    let [start] = starts[..] else { return false };
    if k.as_int(start) == Some(0) {
        return true;
    }
    // `i * tile` for a grid index over ceildiv(extent, tile).
    let block = |e: Expr| -> Option<Value> {
        match &k.exprs[e] {
            ExprData::Op { op: Op::Mul, args } => match (&k.exprs[args[0]], k.as_int(args[1])) {
                (ExprData::Ref(v), Some(c)) if c as u64 == tile => Some(*v),
                _ => None,
            },
            _ => None,
        }
    };
    if let Some(index) = block(start)
        && let Some(axis) = k.grid.iter().find(|g| g.index == index)
        && let ExprData::Op { op: Op::CeilDiv, args } = &k.exprs[axis.extent]
    {
        return same_product(k, args[0], extent) && k.as_int(args[1]) == Some(tile as i64);
    }
    // A loop in steps of the tile, from a multiple of the tile to the extent or an earlier end.
    if let ExprData::Ref(v) = k.exprs[start] {
        return all_stmts(k, k.body).into_iter().any(|s| match k.stmts[s] {
            StmtData::For { var, start, end, step, .. } => {
                var == v
                    && !may_be_in_front(k, start)
                    && ends_within(k, end, extent)
                    && k.as_int(step).is_some_and(|x| (x as u64).is_multiple_of(tile))
                    && facts.divisor(k, start) >= tile
            }
            _ => false,
        });
    }
    false
}

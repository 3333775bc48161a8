//! Windows that have the first elements of a dimension, if no window has the rest (W0413): `X[i, 0..+1024]` of N
//! elements.
//!
//! The warning is for sizes of which all windows begin at fixed positions. There is none if the size is known to be at
//! most the extent that they cover (`where N <= 1024`), or a precondition makes it at least that. Nor is there one if a
//! loop, the grid or a condition depends on the size. The same holds if some window of a dimension of that size moves,
//! or if the window's end is written.

use super::pad::{direct, windows_of};
use super::proposed::{Proposed, Relation};
use crate::analysis::inequalities::Inequalities;
use crate::analysis::uses::{all_stmts, stmt_exprs};
use crate::{Cx, Options};
use std::collections::BTreeSet;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef, View};
use tilec_ir::names::Parts;
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::{ResolvedView, ViewDim, elem_name, resolve_view, same_product};

/// A window at a fixed position.
struct FixedWindow {
    window: Expr,
    /// The size of the dimension.
    size: Expr,
    /// The end of its elements.
    reach: i64,
    /// Whether it is read, not stored to.
    read: bool,
}

/// Warns of sizes of which windows only have the first elements.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) {
    let (ranges, known, inequalities) = (Ranges::new(k), known(k), Inequalities::new(k));
    let mut firsts: Vec<FixedWindow> = Vec::new();
    let stmts = all_stmts(k, k.body);
    let stores = stmts.iter().filter_map(|&s| match k.stmts[s] {
        StmtData::Copy { dst, .. } => Some(dst),
        _ => None,
    });
    let stores: BTreeSet<Expr> = stores.collect();
    for (window, shape) in stmts.into_iter().flat_map(|s| windows_of(k, s)) {
        let Some(view) = resolve_view(k, window).filter(|view| is_given(k, view.base)) else { continue };
        for (&d, extent) in view.base_dims().iter().zip(shape) {
            let tensor = k.tensor_ty(view.base).expect("a tensor");
            let size = tensor.shape[d];
            // A broadcast dimension has no size.
            if tensor.repeats.contains(&d) || sizes(k, size).is_empty() {
                continue;
            }
            let (ViewDim::From { starts, end: None }, Ok(extent)) = (&view.dims[d], i64::try_from(extent)) else {
                continue;
            };
            let first: Option<i64> = starts.iter().map(|&e| k.as_int(e)).sum();
            let reach = first.and_then(|first| first.checked_add(extent));
            firsts.extend(reach.map(|reach| FixedWindow { window, size, reach, read: !stores.contains(&window) }));
        }
    }
    let mut said: Vec<Expr> = Vec::new();
    for first in firsts.iter().filter(|first| first.read) {
        let same = |e: Expr| same_product(k, e, first.size);
        let reach = firsts.iter().filter(|other| same(other.size)).map(|other| other.reach).max();
        let reach = reach.expect("it is one of them");
        let fits = fits(k, &ranges, first.size, reach, BOUNDS);
        // A precondition shows that the author expects more elements.
        let more = reach > 1 && inequalities.at_least(first.size, reach);
        let knows = sizes(k, first.size).iter().any(|v| known.contains(v));
        if !fits && !more && !knows && !said.iter().any(|&e| same(e)) && !moves(k, first.size) {
            said.push(first.size);
            cx.warn(warning(k, cx.options, first, reach));
        }
    }
}

/// Most steps through sizes that bound one another.
pub(super) const BOUNDS: usize = 4;

/// Whether a size is at most `reach`: `where K <= N, N <= 1024`.
pub(super) fn fits(k: &Kernel, ranges: &Ranges<'_>, size: Expr, reach: i64, bounds: usize) -> bool {
    let by = |e: &Expr| match &k.exprs[*e] {
        ExprData::Op { op: Op::Le | Op::Lt | Op::Eq, args } if same_product(k, args[0], size) => Some(args[1]),
        ExprData::Op { op: Op::Ge | Op::Gt | Op::Eq, args } if same_product(k, args[1], size) => Some(args[0]),
        _ => None,
    };
    ranges.of(size).is_some_and(|range| range.hi <= i128::from(reach))
        || bounds > 0 && k.requires.iter().filter_map(by).any(|bound| fits(k, ranges, bound, reach, bounds - 1))
}

fn warning(k: &Kernel, options: &Options, first: &FixedWindow, reach: i64) -> Diagnostic {
    let size = print_expr(k, first.size);
    let message = if first.reach == reach {
        format!(
            "this window has only the first {reach} elements along `{size}`, and no window has the rest: it is skipped if `{size}` is more than {reach}"
        )
    } else {
        format!(
            "the windows along `{size}` have only its first {reach} elements, this one up to {}: the rest is skipped if `{size}` is more than {reach}",
            first.reach
        )
    };
    let view = resolve_view(k, first.window).expect("a window");
    let elem = elem_name(k, k.tensor_ty(view.base).expect("a tensor").elem);
    let none = Proposed { size: first.size, relation: Relation::AtMost, n: reach };
    let possible = !none.is_contradicted(k, options);
    let mut d =
        Diagnostic::warning(codes::NOT_COVERED, k.expr_spans[direct(k, first.window).unwrap_or(first.window)], message);
    if possible {
        d = d.with_note(format!("declare it, if there are never more: {}", none.in_words(k)));
    }
    let or = if possible { "or " } else { "" };
    d = d.with_note(if first.reach != reach {
        format!("{or}go over all, by a loop or by the grid")
    } else {
        format!("{or}go over all: by a loop, `for j in 0..{size} step {reach}`, or by the grid, `(j: ceildiv({size}, {reach}))`; where only these are meant, the window of a tile says where it ends: `let x = reg {elem}[{reach}] = copy X[i, ..{reach}]`")
    });
    // Together with another precondition on the size, the proposed one may hold for no launch.
    let own = sizes(k, first.size);
    let of_size = |e: Expr| sizes(k, e).iter().any(|v| own.contains(v));
    let replaced = none.replaced(k);
    let excludes = |e: Expr| replaced != Some(e) && of_size(e) && !holds_for_some(k, e, first.size, reach);
    if possible && !k.requires.iter().any(|&e| excludes(e)) {
        d.fix = none.edit(k);
    }
    d
}

/// Whether a precondition on a size holds for some sizes up to `reach`: `N % 16 == 0` does if `reach` is at least 16.
fn holds_for_some(k: &Kernel, e: Expr, size: Expr, reach: i64) -> bool {
    let ExprData::Op { op: Op::Eq, args } = &k.exprs[e] else { return false };
    let ExprData::Op { op: Op::Rem, args: of } = &k.exprs[args[0]] else { return false };
    let divides = k.as_int(of[1]).is_some_and(|n| (1..=reach).contains(&n));
    k.as_int(args[1]) == Some(0) && divides && same_product(k, of[0], size)
}

/// Whether the launch provides a tensor.
pub(super) fn is_given(k: &Kernel, v: Value) -> bool {
    k.tensor_ty(v).is_some_and(|tensor| tensor.scratch.is_none())
}

/// The sizes in an index.
pub(super) fn sizes(k: &Kernel, e: Expr) -> BTreeSet<Value> {
    let mut found = BTreeSet::new();
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) = k.exprs[e] {
            found.extend(Some(v).filter(|&v| matches!(k.values[v].def, ValueDef::Size)));
            parts.named(v);
        }
        parts.inside(e);
    }
    found
}

/// Sizes on which the grid, a loop or a condition depends.
fn known(k: &Kernel) -> BTreeSet<Value> {
    let mut deciding: Vec<Expr> = k.grid.iter().map(|axis| axis.extent).collect();
    for s in all_stmts(k, k.body) {
        match &k.stmts[s] {
            StmtData::For { start, end, step, cond, .. } => {
                deciding.extend([*start, *end, *step].into_iter().chain(*cond));
            }
            StmtData::If { cond, .. } => deciding.push(*cond),
            StmtData::Copy { attrs, .. } => deciding.extend(attrs.when),
            _ => {}
        }
    }
    deciding.into_iter().flat_map(|e| sizes(k, e)).collect()
}

/// Whether some window of a dimension of this size is at other positions, too, or has a written end.
fn moves(k: &Kernel, size: Expr) -> bool {
    let fixed = |e: &Expr| {
        let tested = if let ExprData::Index(at) = k.exprs[*e] { at } else { *e };
        k.as_int(tested).is_some()
    };
    let elsewhere = |view: &ResolvedView| {
        let Some(tensor) = k.tensor_ty(view.base) else { return false };
        tensor.shape.iter().zip(&view.dims).any(|(&own, dim)| {
            let moves = match dim {
                ViewDim::Fixed(at) => !fixed(at),
                ViewDim::Gather(_) => true,
                ViewDim::From { starts, end } => end.is_some() || !starts.iter().all(fixed),
            };
            moves && same_product(k, own, size)
        })
    };
    let mut rest: Vec<Expr> = all_stmts(k, k.body).into_iter().flat_map(|s| stmt_exprs(k, s)).collect();
    while let Some(e) = rest.pop() {
        if resolve_view(k, e).is_some_and(|view| elsewhere(&view)) {
            return true;
        }
        rest.extend(k.children(e));
    }
    false
}

//! Operands that stay at the beginning of a dimension over which the stored window moves (W0413): in
//! `for j in 0..N step 256`, `copy x * s -> Y[i, j..]` combines every tile with the first 256 elements of `s` of N.
//!
//! And vectors that are read along another dimension than their own (W0417): `copy x * s[4 * i..] -> Y[4 * i.., j..]`
//! combines the columns of `Y` of M times N elements with `s` of M.
//!
//! There is no warning if the size is known to be at most the extent. Nor is there one for windows in products,
//! reductions and tiles of another order, and for a copy of a window by itself.

use super::pad::{direct, windows_of};
use super::uncovered_elements::{BOUNDS, fits, is_given, sizes};
use crate::Cx;
use crate::analysis::uses::all_stmts;
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::names::Parts;
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view, same_product};

/// Warns of such operands.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) {
    let ranges = Ranges::new(k);
    let lets: BTreeMap<Value, Stmt> =
        all_stmts(k, k.body).into_iter().filter_map(|s| Some((let_of(k, s)?.0, s))).collect();
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let Some(to) = resolve_view(k, dst).filter(|to| is_given(k, to.base)) else { continue };
        if resolve_view(k, src).is_some() || !is_elementwise(k, src) {
            continue;
        }
        let windows = sources(k, &lets, s, src).into_iter().flat_map(|s| windows_of(k, s));
        for (window, shape) in windows.filter(|&(window, _)| window != dst) {
            let Some(from) = resolve_view(k, window).filter(|from| is_given(k, from.base)) else { continue };
            if from.base_dims().len() != shape.len() {
                continue;
            }
            if let Some(crossed) = crossed(k, &from, &to) {
                cx.warn(crossed.warning(k, window, &from));
                continue;
            }
            if let Some((size, start, extent)) = stays(k, &ranges, (&from, &shape), &to) {
                let name = &k.values[from.base].name;
                let (size, start) = (print_expr(k, size), print_expr(k, start));
                let message = format!(
                    "this operand begins at the first element of `{size}` wherever the stored window begins: it has the first {extent} elements each time"
                );
                let at = k.expr_spans[direct(k, window).unwrap_or(window)];
                let note = format!(
                    "the stored window begins at `{start}`: write `{name}[{start}..]`; or say that there are never more: `where {size} <= {extent}`"
                );
                cx.warn(Diagnostic::warning(codes::NOT_COVERED, at, message).with_note(note));
            }
        }
    }
}

/// The statement, and the `let`s of elements at the same position that its source names.
fn sources(k: &Kernel, lets: &BTreeMap<Value, Stmt>, s: Stmt, src: Expr) -> Vec<Stmt> {
    let (mut found, mut parts) = (vec![s], Parts::of(k, src));
    while let Some(e) = parts.take() {
        match k.exprs[e] {
            ExprData::Ref(v) => {
                if let Some((&own, (_, init))) = lets.get(&v).and_then(|own| Some((own, let_of(k, *own)?)))
                    && !found.contains(&own)
                    && is_elementwise(k, init)
                {
                    found.push(own);
                    parts.also(init);
                }
            }
            ExprData::View(_) => {}
            _ => parts.inside(e),
        }
    }
    found
}

fn let_of(k: &Kernel, s: Stmt) -> Option<(Value, Expr)> {
    match k.stmts[s] {
        StmtData::Let { value, init } => Some((value, init)),
        _ => None,
    }
}

/// The size of a dimension at whose beginning `from` stays while `to` moves, the position of `to`, and the extent.
fn stays(
    k: &Kernel,
    ranges: &Ranges<'_>,
    (from, shape): (&ResolvedView, &[u64]),
    to: &ResolvedView,
) -> Option<(Expr, Expr, u64)> {
    let (own, stored) = (k.tensor_ty(from.base)?, k.tensor_ty(to.base)?);
    // Dimensions are aligned at the last one.
    let (read, written) = (from.base_dims(), to.base_dims());
    read.iter().zip(shape).rev().zip(written.iter().rev()).find_map(|((&d, &extent), &at)| {
        let (size, other) = (own.shape[d], stored.shape[at]);
        let ViewDim::From { starts, end: None } = &from.dims[d] else { return None };
        let ViewDim::From { starts: moved, .. } = &to.dims[at] else { return None };
        let first = starts.iter().all(|&e| k.as_int(e) == Some(0));
        let moving = moved.iter().copied().find(|&e| counts(k, e));
        let covered = i64::try_from(extent).is_ok_and(|extent| fits(k, ranges, size, extent, BOUNDS));
        let one = own.repeats.contains(&d) || extent == 1 || sizes(k, size).is_empty();
        (first && !one && !covered && same_product(k, size, other)).then_some((size, moving?, extent))
    })
}

/// A vector that begins where the stored window does along one dimension, and is read along another.
struct Crossed {
    /// The size of the vector, and of the dimension along which it is read.
    sizes: [Expr; 2],
    start: Option<Expr>,
    /// How many dimensions of the stored window follow the vector's own; `None`: it has a single element there.
    behind: Option<usize>,
}

impl Crossed {
    fn warning(&self, k: &Kernel, window: Expr, from: &ResolvedView) -> Diagnostic {
        let name = &k.values[from.base].name;
        let [own, other] = self.sizes.map(|size| print_expr(k, size));
        let start = self.start.map_or_else(String::new, |start| print_expr(k, start));
        let right = match self.behind {
            Some(behind) => format!("{name}[{start}..{}]", ", _".repeat(behind)),
            None => format!("{name}[{start}]"),
        };
        let message = format!("`{name}` has one element for each of `{own}`, and is read along `{other}` here");
        let at = k.expr_spans[direct(k, window).unwrap_or(window)];
        let note = format!(
            "operands align at their last dimensions; the stored window begins at the same place along `{own}`: write `{right}`"
        );
        Diagnostic::warning(codes::CROSSED, at, message).with_note(note).with_fix(at, right)
    }
}

/// Whether the vector `from` has the size of another dimension of the stored window than that with which it aligns, and begins
/// where the window does there.
fn crossed(k: &Kernel, from: &ResolvedView, to: &ResolvedView) -> Option<Crossed> {
    let (own, stored) = (k.tensor_ty(from.base)?, k.tensor_ty(to.base)?);
    let (read, written) = (from.base_dims(), to.base_dims());
    let kept: Vec<usize> = read.iter().copied().filter(|d| !own.repeats.contains(d)).collect();
    let (&[d], ViewDim::From { starts, .. }) = (&kept[..], &from.dims[*kept.first()?]) else { return None };
    // Dimensions are aligned at the last one.
    let behind = read.iter().rev().position(|&at| at == d)?;
    let &aligned = written.iter().rev().nth(behind)?;
    let (size, other) = (own.shape[d], stored.shape[aligned]);
    let begins = |at: usize| alike(k, starts, to.dims[at].starts());
    let zero = starts.iter().all(|&e| k.as_int(e) == Some(0));
    if sizes(k, size).is_empty() || is_equal(k, size, other) || begins(aligned) && !zero {
        return None;
    }
    let at =
        (0..stored.shape.len()).find(|&at| at != aligned && same_product(k, size, stored.shape[at]) && begins(at))?;
    let behind = written.iter().rev().position(|&own| own == at);
    Some(Crossed { sizes: [size, other], start: starts.first().copied().filter(|_| !zero || behind.is_none()), behind })
}

/// Whether two windows begin at one place: sums of these.
fn alike(k: &Kernel, a: &[Expr], b: &[Expr]) -> bool {
    let texts = |all: &[Expr]| -> Vec<String> {
        all.iter().filter(|&&e| k.as_int(e) != Some(0)).map(|&e| print_expr(k, e)).collect()
    };
    texts(a) == texts(b)
}

/// Whether two sizes are the same, or a precondition says so.
fn is_equal(k: &Kernel, a: Expr, b: Expr) -> bool {
    let says = |e: &Expr| match &k.exprs[*e] {
        ExprData::Op { op: Op::Eq, args } => {
            [(0, 1), (1, 0)].into_iter().any(|(x, y)| same_product(k, args[x], a) && same_product(k, args[y], b))
        }
        _ => false,
    };
    same_product(k, a, b) || k.requires.iter().any(says)
}

/// Whether an index depends on a loop or the grid.
fn counts(k: &Kernel, e: Expr) -> bool {
    let is_counter = |v: Value| matches!(k.values[v].def, ValueDef::Loop | ValueDef::Grid);
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        if let ExprData::Ref(v) = k.exprs[e] {
            if is_counter(v) {
                return true;
            }
            parts.named(v);
        }
        parts.inside(e);
    }
    false
}

/// Whether each element of an expression is computed of elements at the same position.
fn is_elementwise(k: &Kernel, e: Expr) -> bool {
    let own = matches!(
        k.exprs[e],
        ExprData::Op { .. }
            | ExprData::Ref(_)
            | ExprData::View(_)
            | ExprData::Int(_)
            | ExprData::Float(_)
            | ExprData::Cast { .. }
            | ExprData::Bits { .. }
            | ExprData::Round { .. }
    );
    own && (resolve_view(k, e).is_some() || k.children(e).into_iter().all(|e| is_elementwise(k, e)))
}

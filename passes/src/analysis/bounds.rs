//! Bounds of a loop over a reduction: its start, and the extent that it covers in part.

use crate::analysis::facts::Facts;
use crate::rewrite::same_expr;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::loop_ends::{covers, loop_variable, meaning};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, same_product};

/// An expression that is a run-time extent: a size, or the extent of some dimension of a tensor.
fn extent(k: &Kernel, e: Expr) -> Option<Expr> {
    let e = meaning(k, e);
    let of_tensor = |v: Value| k.tensor_ty(v).is_some_and(|t| t.shape.iter().any(|&x| same_product(k, x, e)));
    let is_one = match k.exprs[e] {
        ExprData::Ref(v) => matches!(k.values[v].def, ValueDef::Size),
        _ => k.as_int(e).is_none() && k.params.iter().any(|&v| of_tensor(v)),
    };
    is_one.then_some(e)
}

/// The end of a loop over a dimension: its extent, or the smaller of that and something else.
pub(crate) struct End {
    pub(crate) extent: Expr,
    pub(crate) or: Option<Expr>,
}

impl End {
    pub(crate) fn of(k: &Kernel, e: Expr) -> Option<End> {
        if let Some(extent) = extent(k, e) {
            return Some(End { extent, or: None });
        }
        let ExprData::Op { op: Op::Min, args } = &k.exprs[meaning(k, e)] else { return None };
        let &[a, b] = args.as_slice() else { return None };
        match (extent(k, a), extent(k, b)) {
            (Some(extent), None) => Some(End { extent, or: Some(b) }),
            (None, Some(extent)) => Some(End { extent, or: Some(a) }),
            _ => None,
        }
    }

    /// Whether a loop from `start` in steps of `step` covers whole steps, except at the extent.
    pub(crate) fn whole_steps(&self, k: &Kernel, facts: &Facts, start: Option<Expr>, step: u64) -> bool {
        let Some(end) = self.or else { return true };
        let Some(start) = start.map(|start| self.start(k, start)) else { return facts.is_multiple(k, end, step) };
        if facts.is_multiple(k, start, step) && facts.is_multiple(k, end, step) {
            return true;
        }
        match &k.exprs[meaning(k, end)] {
            ExprData::Op { op: Op::Add, args } => {
                same_expr(k, meaning(k, args[0]), meaning(k, start)) && facts.is_multiple(k, args[1], step)
            }
            _ => false,
        }
    }

    /// The start of the loop if it has an iteration: then `min(extent, x)` is `x`.
    pub(crate) fn start(&self, k: &Kernel, start: Expr) -> Expr {
        let it = |e: Expr| same_product(k, meaning(k, e), self.extent);
        match &k.exprs[meaning(k, start)] {
            ExprData::Op { op: Op::Min, args } if it(args[0]) => args[1],
            ExprData::Op { op: Op::Min, args } if it(args[1]) => args[0],
            _ => start,
        }
    }
}

/// Whether `end` is at most `extent`: the extent itself, or a minimum with it.
pub(crate) fn ends_within(k: &Kernel, end: Expr, extent: Expr) -> bool {
    let end = meaning(k, end);
    same_product(k, end, meaning(k, extent))
        || matches!(&k.exprs[end], ExprData::Op { op: Op::Min, args } if args.iter().any(|&a| ends_within(k, a, extent)))
}

/// Whether a window of a tensor is outside whenever a loop's variable is at or past `end`: in some dimension it begins
/// at or after the end of the tensor or window. Such a window reads as zero and accesses no memory.
pub(crate) fn outside_past(k: &Kernel, view: &ResolvedView, var: Value, end: Expr) -> bool {
    let extents = &k.tensor_ty(view.base).expect("a window of a tensor").shape;
    view.dims.iter().zip(extents).any(|(dim, &extent)| {
        let ViewDim::From { starts, end: cut } = dim else { return false };
        let begins = starts.iter().any(|&e| at_least(k, e, var)) && starts.iter().all(|&e| not_negative(k, e, var));
        begins && (covers(k, end, extent) || cut.is_some_and(|cut| covers(k, end, cut)))
    })
}

/// Whether an index is at least the variable of a loop: the variable, or its sum with non-negative terms.
fn at_least(k: &Kernel, e: Expr, var: Value) -> bool {
    if loop_variable(k, e) == Some(var) {
        return true;
    }
    match &k.exprs[meaning(k, e)] {
        ExprData::Op { op: Op::Add, args } => {
            args.iter().any(|&a| at_least(k, a, var)) && args.iter().all(|&a| not_negative(k, a, var))
        }
        _ => false,
    }
}

/// Whether all terms of an index are non-negative, including the variable `var`.
fn not_negative(k: &Kernel, e: Expr, var: Value) -> bool {
    match &k.exprs[meaning(k, e)] {
        ExprData::Int(x) => *x >= 0,
        ExprData::Ref(v) => *v == var || matches!(k.values[*v].def, ValueDef::Size | ValueDef::Grid),
        ExprData::Op { op: Op::Add | Op::Mul, args } => args.iter().all(|&a| not_negative(k, a, var)),
        _ => false,
    }
}

/// Whether a window of `tile` elements at the variable of a loop from `start` to `last` by `step` reaches past `end`
/// only if it reaches past `extent`. Each bound of the minimum `end` is at least `extent`, or is a bound of the loop at
/// a multiple of tiles from `start`.
pub(crate) fn whole_tiles(
    k: &Kernel,
    facts: &Facts,
    [start, last, step]: [Expr; 3],
    end: Expr,
    (tile, extent): (u64, Expr),
) -> bool {
    let (Some(step), Ok(n)) = (k.as_int(step), i64::try_from(tile)) else { return false };
    if n < 1 || step < 1 || step % n != 0 {
        return false;
    }
    let whole = |bound: Expr| match (k.as_int(start), k.as_int(meaning(k, bound))) {
        (Some(a), Some(b)) => b.checked_sub(a).is_some_and(|length| length % n == 0),
        _ => End { extent, or: Some(bound) }.whole_steps(k, facts, Some(start), tile),
    };
    let of_loop = bounds(k, last);
    let before = |bound: Expr| of_loop.iter().any(|&b| same_expr(k, meaning(k, b), meaning(k, bound)));
    bounds(k, end).into_iter().all(|bound| covers(k, bound, extent) || before(bound) && whole(bound))
}

/// The operands of a minimum of indices.
fn bounds(k: &Kernel, e: Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    let mut rest = vec![e];
    while let Some(e) = rest.pop() {
        match &k.exprs[meaning(k, e)] {
            // Longer minima are treated as one bound, which has no whole tiles.
            ExprData::Op { op: Op::Min, args } if found.len() < MOST_BOUNDS => rest.extend(args.iter().copied()),
            _ => found.push(e),
        }
    }
    found
}

/// Most bounds that are examined separately.
const MOST_BOUNDS: usize = 8;

//! What the bounds of a loop over a reduction say: where it begins, and of which extent it covers a part.

use crate::analysis::facts::Facts;
use crate::rewrite::same_expr;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::{let_init, same_product};

/// What an expression is, names of index values looked up.
fn meaning(k: &Kernel, e: Expr) -> Expr {
    match k.exprs[e] {
        ExprData::Ref(v) => let_init(k, v).map_or(e, |init| meaning(k, init)),
        _ => e,
    }
}

/// The run-time extent that an expression is: a size, or what is the extent of some dimension of a tensor.
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
pub(super) struct End {
    pub(super) extent: Expr,
    pub(super) or: Option<Expr>,
}

impl End {
    pub(super) fn of(k: &Kernel, e: Expr) -> Option<End> {
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

    /// Whether a loop from `start` in steps of `step` (a power of two) covers whole steps, unless it ends at the extent.
    pub(super) fn whole_steps(&self, k: &Kernel, facts: &Facts, start: Option<Expr>, step: u64) -> bool {
        let Some(end) = self.or else { return true };
        let Some(start) = start.map(|start| self.start(k, start)) else { return facts.divisor(k, end) >= step };
        if facts.divisor(k, start) >= step && facts.divisor(k, end) >= step {
            return true;
        }
        match &k.exprs[meaning(k, end)] {
            ExprData::Op { op: Op::Add, args } => {
                same_expr(k, meaning(k, args[0]), meaning(k, start)) && facts.divisor(k, args[1]) >= step
            }
            _ => false,
        }
    }

    /// Where the loop begins if it runs at all: `min(extent, x)` is `x` then.
    pub(super) fn start(&self, k: &Kernel, start: Expr) -> Expr {
        let it = |e: Expr| same_product(k, meaning(k, e), self.extent);
        match &k.exprs[meaning(k, start)] {
            ExprData::Op { op: Op::Min, args } if it(args[0]) => args[1],
            ExprData::Op { op: Op::Min, args } if it(args[1]) => args[0],
            _ => start,
        }
    }
}

/// Whether `end` is at most `extent`: that itself, or the smaller of it and something else.
pub(super) fn ends_within(k: &Kernel, end: Expr, extent: Expr) -> bool {
    let end = meaning(k, end);
    same_product(k, end, meaning(k, extent))
        || matches!(&k.exprs[end], ExprData::Op { op: Op::Min, args } if args.iter().any(|&a| ends_within(k, a, extent)))
}

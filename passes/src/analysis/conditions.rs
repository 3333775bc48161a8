//! Conditions and indices: which have one value throughout, and which have the same.

use crate::rewrite::same_expr;
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::typing::let_init;

/// Whether a condition has one value throughout a run of a block of threads.
pub(crate) fn is_fixed(k: &Kernel, e: Expr) -> bool {
    let own = match &k.exprs[e] {
        ExprData::Ref(v) => {
            matches!(k.values[*v].def, ValueDef::Size | ValueDef::Stride | ValueDef::Scalar { .. } | ValueDef::Grid)
        }
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Op { .. } => true,
        _ => false,
    };
    own && k.children(e).into_iter().all(|c| is_fixed(k, c))
}

/// The variables of loops with which the value of a condition changes, if it changes with nothing else, and the names in it.
pub(crate) fn changes_with(k: &Kernel, e: Expr) -> Option<BTreeSet<Value>> {
    let mut all = BTreeSet::new();
    if let ExprData::Ref(v) = k.exprs[e] {
        match k.values[v].def {
            ValueDef::Loop => all.extend([v]),
            ValueDef::Let => {
                all.extend(changes_with(k, let_init(k, v)?)?);
                all.extend([v]);
            }
            _ if is_fixed(k, e) => {}
            _ => return None,
        }
        return Some(all);
    }
    if !matches!(k.exprs[e], ExprData::Int(_) | ExprData::Float(_) | ExprData::Op { .. }) {
        return None;
    }
    for child in k.children(e) {
        all.extend(changes_with(k, child)?);
    }
    Some(all)
}

/// Whether two index expressions have the same value: names stand for what they name.
pub(crate) fn alike(k: &Kernel, a: Expr, b: Expr, same: &[(Value, Value)]) -> bool {
    let resolved = |e: Expr| match k.exprs[e] {
        ExprData::Ref(v) => let_init(k, v).unwrap_or(e),
        _ => e,
    };
    let (a, b) = (resolved(a), resolved(b));
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Ref(v), ExprData::Ref(w)) => v == w || same.contains(&(*v, *w)),
        (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
            x == y && p.len() == q.len() && p.iter().zip(q).all(|(&e, &f)| alike(k, e, f, same))
        }
        _ => same_expr(k, a, b),
    }
}

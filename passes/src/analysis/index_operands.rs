//! The values from which indices are computed.

use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::typing::let_init;

/// Whether an index is known at launch: it is computed from sizes and strides.
pub(crate) fn of_sizes(k: &Kernel, e: Expr) -> bool {
    is_made_of(k, e, &|def| matches!(def, ValueDef::Size | ValueDef::Stride | ValueDef::ConstParam(_)))
}

/// Whether an index is computed from sizes only.
pub(crate) fn of_extents(k: &Kernel, e: Expr) -> bool {
    is_made_of(k, e, &|def| matches!(def, ValueDef::Size | ValueDef::ConstParam(_)))
}

/// Whether an index is computed from sizes, strides, grid indices and loop variables, not from memory or registers.
pub(crate) fn of_indices(k: &Kernel, e: Expr) -> bool {
    let is_index = |def: &ValueDef| {
        matches!(def, ValueDef::Size | ValueDef::Stride | ValueDef::ConstParam(_) | ValueDef::Grid | ValueDef::Loop)
    };
    is_made_of(k, e, &is_index)
}

fn is_made_of(k: &Kernel, e: Expr, of: &dyn Fn(&ValueDef) -> bool) -> bool {
    let is_other = |e: Expr| match &k.exprs[e] {
        ExprData::Int(_) | ExprData::Op { .. } => false,
        ExprData::Ref(v) => match k.values[*v].def {
            ValueDef::Let => let_init(k, *v).is_none(),
            ref def => !of(def),
        },
        _ => true,
    };
    !k.has_part(e, is_other)
}

/// Most terms of an index that is written without names: in `let b = a + a`, `let c = b + b`, .. the number doubles
/// with each name.
const TERMS: u64 = 1000;

/// Whether an index can be written without names.
pub(crate) fn can_be_spelled_out(k: &Kernel, e: Expr) -> bool {
    can_be_written(k, e, |_| true)
}

/// Whether an index can be written without these names.
pub(crate) fn can_be_written(k: &Kernel, e: Expr, names: impl Fn(Value) -> bool) -> bool {
    k.unfolded(e, names) <= TERMS
}

/// A copy of an index with all names expanded, for places where these are not in scope: preconditions, and code in
/// front of the names.
pub(crate) fn spelled_out(k: &mut Kernel, e: Expr) -> Expr {
    let e = meaning(k, e);
    let copy = k.copy_expr(e);
    replace_names(k, copy);
    copy
}

fn replace_names(k: &mut Kernel, e: Expr) {
    if let ExprData::Ref(v) = k.exprs[e]
        && let Some(init) = let_init(k, v)
    {
        let whole = spelled_out(k, init);
        k.exprs[e] = k.exprs[whole].clone();
    }
    for child in k.children(e) {
        replace_names(k, child);
    }
}

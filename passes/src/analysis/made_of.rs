//! What indices are computed of.

use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::typing::let_init;

/// Whether a launch knows an index: it is computed of sizes and strides.
pub(crate) fn of_sizes(k: &Kernel, e: Expr) -> bool {
    is_made_of(k, e, &|def| matches!(def, ValueDef::Size | ValueDef::Stride | ValueDef::ConstParam(_)))
}

/// Whether an index is computed of those, and of places in the grid and in loops: of nothing that memory or a register holds.
pub(crate) fn of_indices(k: &Kernel, e: Expr) -> bool {
    let is_index = |def: &ValueDef| {
        matches!(def, ValueDef::Size | ValueDef::Stride | ValueDef::ConstParam(_) | ValueDef::Grid | ValueDef::Loop)
    };
    is_made_of(k, e, &is_index)
}

fn is_made_of(k: &Kernel, e: Expr, of: &dyn Fn(&ValueDef) -> bool) -> bool {
    match &k.exprs[e] {
        ExprData::Int(_) => true,
        ExprData::Ref(v) => match k.values[*v].def {
            ValueDef::Let => let_init(k, *v).is_some_and(|init| is_made_of(k, init, of)),
            ref def => of(def),
        },
        ExprData::Op { args, .. } => args.iter().all(|&a| is_made_of(k, a, of)),
        _ => false,
    }
}

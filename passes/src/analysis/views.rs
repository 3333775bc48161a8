//! Register tiles and windows of memory that expressions and copies name, and their extents.

use crate::analysis::uses::for_each_ref;
use std::collections::BTreeSet;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef, View};
use tilec_ir::names::Parts;
use tilec_ir::typing::ResolvedView;
use tilec_ir::typing::{fixed_shape, resolve_view, scalar_shape};

/// The register variable that is the whole expression.
pub(crate) fn plain_var(k: &Kernel, e: Expr) -> Option<Value> {
    match k.exprs[e] {
        tilec_ir::kernel::ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)) => Some(v),
        _ => None,
    }
}

pub(crate) fn unassigned(k: &Kernel, v: Value) -> bool {
    matches!(&k.values[v].def, ValueDef::Var(t) if t.reg_layout.is_none())
}

/// Whether an expression reads elements of register tiles.
pub(crate) fn has_registers(k: &Kernel, e: Expr) -> bool {
    let is_tile = |v: Value| matches!(&k.values[v].def, ValueDef::Var(t) if !t.shape.is_empty());
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match &k.exprs[e] {
            ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Let) && !names_memory(k, *v) => parts.named(*v),
            ExprData::Ref(v) | ExprData::View(View { base: v, .. }) => {
                if is_tile(*v) {
                    return true;
                }
            }
            _ => parts.inside(e),
        }
    }
    false
}

/// Whether the destination of a copy is a register tile (also of rank 0) or a window of one.
pub(crate) fn goes_to_registers(k: &Kernel, dst: Expr) -> bool {
    resolve_view(k, dst).is_some_and(|view| view.space(k).in_registers())
}

/// The extents of the tile that a copy moves: those of a side with extents of its own; a scalar has none.
pub(crate) fn moved_shape(k: &Kernel, src: Expr, dst: Expr) -> Vec<u64> {
    fixed_shape(k, dst)
        .or_else(|| fixed_shape(k, src))
        .or_else(|| scalar_shape(k, dst))
        .unwrap_or_else(|| panic!("bug: a copy without extents in `{}`", k.name))
}

/// The window of a register tile that `e` is; `None` if it is a whole tile.
pub(crate) fn register_window(k: &Kernel, e: Expr) -> Option<ResolvedView> {
    let has_ranges = |e: Expr| matches!(&k.exprs[e], ExprData::View(view) if !view.ranges.is_empty());
    let is_window = match k.exprs[e] {
        ExprData::Transpose(arg) => has_ranges(arg),
        _ => has_ranges(e),
    };
    resolve_view(k, e).filter(|view| is_window && matches!(k.values[view.base].def, ValueDef::Var(_)))
}

/// The views of global and shared memory in an expression.
pub(crate) fn memory_views(k: &Kernel, e: Expr) -> Vec<ResolvedView> {
    match resolve_view(k, e) {
        Some(view) if matches!(k.values[view.base].def, ValueDef::Var(_)) => Vec::new(),
        Some(view) => vec![view],
        None => k.children(e).into_iter().flat_map(|child| memory_views(k, child)).collect(),
    }
}

/// The views that a copy of an expression accesses: those of [`memory_views`], and those of deferred `let`s that it names.
pub(crate) fn accessed_views(k: &Kernel, deferred: &Deferred, e: Expr) -> Vec<ResolvedView> {
    let mut views = memory_views(k, e);
    let mut seen = BTreeSet::new();
    for_each_tile(k, deferred, e, &mut |v| {
        if let Some(init) = deferred.init(v).filter(|_| seen.insert(v)) {
            views.extend(memory_views(k, init));
        }
    });
    views
}

/// The shape of the tile a copy moves.
pub(crate) fn copy_shape(k: &Kernel, src: Expr, dst: Expr) -> Option<Vec<u64>> {
    // A window of a register tile or buffer has no extents of its own; the other side has.
    let whole = |e: Expr| matches!(k.exprs[e], ExprData::Ref(_)).then(|| fixed_shape(k, e)).flatten();
    whole(dst).or_else(|| fixed_shape(k, src)).or_else(|| fixed_shape(k, dst)).or_else(|| scalar_shape(k, dst))
}

/// Calls `f` for every value that `e` mentions, and for those that deferred `let`s mention.
pub(crate) fn for_each_tile(k: &Kernel, deferred: &Deferred, e: Expr, f: &mut dyn FnMut(Value)) {
    let mut seen = BTreeSet::new();
    let mut rest = vec![e];
    while let Some(e) = rest.pop() {
        let from = rest.len();
        for_each_ref(k, e, &mut |v| {
            f(v);
            rest.extend(deferred.init(v).filter(|_| seen.insert(v)));
        });
        rest[from..].reverse();
    }
}

/// Whether a `let` is another name for a window of global memory; other tiles are values.
pub(crate) fn names_memory(k: &Kernel, v: Value) -> bool {
    let view = tilec_ir::typing::let_init(k, v).and_then(|init| resolve_view(k, init));
    view.is_some_and(|view| k.tensor_ty(view.base).is_some())
}

/// Whether an expression is a view of a tensor.
pub(crate) fn reads_tensor(k: &Kernel, e: Expr) -> bool {
    resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some())
}

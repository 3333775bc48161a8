//! Register tiles whose elements only one of several threads needs to load, so that an output may be the tensor that is
//! loaded: no other thread reads an element after it is written.

use super::access::replica_bits;
use super::state::Lower;
use super::uses::uses;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::names::mentions;
use tilec_ir::print::print_expr;
use tilec_ir::types::TensorTy;
use tilec_ir::typing::{ResolvedView, layout_of, resolve_view};

impl Lower<'_> {
    /// Whether threads that repeat other threads' elements of a register tile need not load them: an output may be the
    /// tensor that is loaded, and the tile is only stored to tensors, element by element in its own layout.
    pub(super) fn is_loaded_once(&self, tile: Value, from: &ResolvedView) -> bool {
        let k = self.k;
        let may_be_output = |&other: &Value| uses(k, other).write && alike(k, from.base, other);
        let Some(layout) = k.tile_ty(tile).and_then(|t| t.reg_layout.as_ref()) else { return false };
        replica_bits(layout) != 0
            && k.params.iter().any(may_be_output)
            && k.statements().into_iter().all(|s| match &k.stmts[s] {
                StmtData::Copy { src, dst, attrs } => {
                    let loads = matches!(k.exprs[*dst], ExprData::Ref(v) if v == tile);
                    let stores = || {
                        let stored = attrs.threads.clone().or_else(|| layout_of(k, *src));
                        let to = resolve_view(k, *dst).is_some_and(|to| to.space(k).has_bounds());
                        to && attrs.old.is_none() && stored.as_ref() == Some(layout) && is_elementwise(k, *src)
                    };
                    let places = attrs.when.into_iter().chain(attrs.old);
                    let named = places.chain([*dst]).any(|e| !(loads && e == *dst) && mentions(k, e, tile));
                    !named && (!mentions(k, *src, tile) || !loads && stores())
                }
                stmt => !stmt.exprs().into_iter().any(|e| mentions(k, e, tile)),
            })
    }
}

/// Whether two tensors have the same elements, so that they may be one.
pub(super) fn alike(k: &Kernel, one: Value, other: Value) -> bool {
    let (Some(a), Some(b)) = (k.tensor_ty(one), k.tensor_ty(other)) else { return false };
    let text = |e: &Expr| print_expr(k, *e);
    let same_shape = a.shape.iter().map(text).eq(b.shape.iter().map(text));
    // All mode extents of the dimension.
    let extents = |t: &TensorTy, d| t.modes(d).map(|modes| modes.iter().map(|m| text(&m.extent)).collect::<Vec<_>>());
    let same_modes = (0..a.shape.len()).all(|d| extents(a, d) == extents(b, d));
    // Padding moves all elements, so padded tensors never alias.
    let unmoved = a.padded.is_empty() && b.padded.is_empty();
    other != one && unmoved && a.elem == b.elem && a.pointers == b.pointers && same_shape && same_modes
}

/// Whether each element of an expression is computed of the elements at its own place.
fn is_elementwise(k: &Kernel, e: Expr) -> bool {
    match &k.exprs[e] {
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Ref(_) => true,
        ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } => {
            k.children(e).into_iter().all(|child| is_elementwise(k, child))
        }
        _ => false,
    }
}

//! What to write where something has fewer dimensions than are wanted.

use super::cx::Cx;
use crate::entities::Expr;
use crate::kernel::ExprData;
use crate::typing::{Type, shape_text};

/// What to write where `e` has fewer dimensions than are wanted, or one element where a scalar is.
pub(super) fn lacking(cx: &Cx<'_, '_>, e: Expr, ty: &Type, wanted: usize) -> Option<String> {
    if let (Type::Tile(t), 0) = (ty, wanted) {
        let extents = shape_text(cx.k, &t.shape);
        let one = t.shape.iter().all(|n| n.known() == Some(1));
        return one.then(|| {
            format!(
                "a reduction keeps its dimension, with extent 1: declare a tile of extents `{extents}`, which repeats beside others as a scalar does"
            )
        });
    }
    if ty.rank() == 0 || ty.rank() >= wanted {
        return None;
    }
    let (name, range) = match &cx.k.exprs[e] {
        ExprData::Ref(v) => (cx.name(*v), ".."),
        ExprData::View(view) => (cx.name(view.base), "i.."),
        _ => ("v", ".."),
    };
    let note = "a vector repeats along a dimension that it lacks, which `_` stands for";
    Some(format!("{note}: `{name}[_, {range}]` in every row, `{name}[{range}, _]` in every column"))
}

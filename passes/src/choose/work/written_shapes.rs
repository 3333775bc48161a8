//! Extents of tiles and operands as the text has them.

use std::collections::BTreeMap;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// The products of a kernel as written: rows, columns and depth, if the text fixes them.
pub(in crate::choose) fn product_shapes(k: &Kernel) -> Vec<[Option<Expr>; 3]> {
    let mut found = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::Assign { dst, src } = k.stmts[s] else { return };
        let ExprData::Mma(mma) = k.exprs[src] else { return };
        let acc = k.tile_ty(dst).map(|t| t.shape.clone()).unwrap_or_default();
        let a = operand_shape(k, mma.a).and_then(|s| *s.get(1)?);
        let b = || operand_shape(k, mma.b).and_then(|s| *s.first()?);
        found.push([acc.first().copied(), acc.get(1).copied(), a.or_else(b)]);
    });
    found
}

/// The extents of an operand, if they are those of a tile.
pub(super) fn operand_shape(k: &Kernel, e: Expr) -> Option<Vec<Option<Expr>>> {
    written_shape(k, k, e)
}

/// Extents as they are written; `None`: unknown.
pub(super) type WrittenShape = Option<Vec<Option<Expr>>>;

/// The extents of an operand of `sketch`, as they are written in `k`.
pub(super) fn written_shape(k: &Kernel, sketch: &Kernel, e: Expr) -> WrittenShape {
    sketch.by_names(e, |e, known| shape_by_names(k, sketch, e, known))
}

/// The same, with those of the names in `e`.
fn shape_by_names(k: &Kernel, sketch: &Kernel, e: Expr, known: &BTreeMap<Value, WrittenShape>) -> WrittenShape {
    let whole = |v: Value| k.tile_ty(v).map(|t| t.shape.iter().map(|&e| Some(e)).collect());
    let of = |e: Expr| shape_by_names(k, sketch, e, known);
    match &sketch.exprs[e] {
        ExprData::Ref(v) => whole(*v).or_else(|| known.get(v).cloned().flatten()),
        ExprData::View(view) if view.ranges.is_empty() => whole(view.base),
        ExprData::Transpose(inner) => of(*inner).map(|s| s.into_iter().rev().collect()),
        ExprData::Cast { arg, .. }
        | ExprData::Bits { arg, .. }
        | ExprData::Round { arg, .. }
        | ExprData::Lookup { index: arg, .. } => of(*arg),
        ExprData::Op { args, .. } => args.iter().filter_map(|&arg| of(arg)).reduce(|x, y| {
            let of_both =
                |(x, y): (Option<Expr>, Option<Expr>)| if x.is_some_and(|e| k.as_int(e) == Some(1)) { y } else { x };
            if x.len() == y.len() { x.into_iter().zip(y).map(of_both).collect() } else { x }
        }),
        _ => None,
    }
}

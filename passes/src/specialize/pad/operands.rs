//! Operands of products that are computed of windows alone, such as `max(w[q.., ..], 1.0)`.
//!
//! They have no extents of their own. If a product sums over an extent that is padded, and they are not zero in the
//! padding, they become register tiles, which can be masked:
//!
//! ```text
//! acc = mma(a, max(w[q.., 0..], 1.0), acc)
//!     ->  var part = reg f16[24, 64]   copy max(w[q.., 0..], 1.0) -> part   acc = mma(a, part, acc)
//! ```

use super::zeros::zero;
use crate::analysis::uses::stmt_exprs;
use crate::specialize::transposed::remove_transpositions;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::types::TileTy;
use tilec_ir::typing::{Type, operand_shape, product_depth, type_of};

/// Has such operands be tiles, where a sum runs over one of the extents `odd`.
pub(super) fn as_tiles(k: &mut Kernel, odd: &[u64]) {
    let mut any = false;
    k.replace_statements(k.body, &mut |k, s, out| {
        let mut found = Vec::new();
        stmt_exprs(k, s).into_iter().for_each(|e| computed(k, odd, e, &mut found));
        any |= !found.is_empty();
        for (e, shape) in found {
            out.extend(tile(k, e, shape));
        }
        out.push(s);
    });
    if any {
        remove_transpositions(k);
    }
}

/// The operands in `e`, with their extents.
fn computed(k: &Kernel, odd: &[u64], e: Expr, found: &mut Vec<(Expr, [u64; 2])>) {
    k.children(e).into_iter().for_each(|child| computed(k, odd, child, found));
    let ExprData::Mma(mma) = &k.exprs[e] else { return };
    if product_depth(k, mma).is_none_or(|depth| !odd.contains(&depth)) {
        return;
    }
    for (e, axis, second) in [(mma.a, 1, false), (mma.b, 0, true)] {
        let Some(shape) = operand_shape(k, mma, second) else { return };
        // Only windows have no extents of their own.
        if matches!(type_of(k, e), Ok(Type::View(_))) && !zero(k, e, Some(axis)) {
            found.push((e, shape));
        }
    }
}

/// Has `e` read a tile of these extents; returns what declares and fills it.
fn tile(k: &mut Kernel, e: Expr, shape: [u64; 2]) -> Vec<Stmt> {
    let span = k.expr_spans[e];
    let Some(elem) = type_of(k, e).ok().and_then(|ty| ty.elem()) else { return Vec::new() };
    let shape = shape.into_iter().map(|n| k.int(n as i64, span)).collect();
    let value = k.value("part", span, ValueDef::Var(TileTy::registers(elem, shape, None)));
    let src = k.expr(k.exprs[e].clone(), span);
    let dst = k.value_ref(value, span);
    k.exprs[e] = ExprData::Ref(value);
    let copy = StmtData::Copy { src, dst, attrs: CopyAttrs::default() };
    [StmtData::Var { value, init: None }, copy].into_iter().map(|data| k.stmt(data, span)).collect()
}

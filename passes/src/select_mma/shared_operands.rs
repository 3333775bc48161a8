//! Register tiles that products use as left and as right operands: `p = mma(a, a, p)`.
//!
//! A tile has one layout, and left and right operands have different layouts. The first product that uses a tile without a layout determines it. A product
//! that uses it on the other side gets a copy. So does one that uses the accumulator of another product.

use crate::analysis::uses::all_stmts;
use crate::analysis::views::{plain_var, unassigned};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData};

/// Whether the operand `e` of the product `s` is a tile with another layout: an accumulator, or a tile that an earlier
/// product, or this one's left operand, uses on the other side. `left`: the side of the instruction for `e`.
pub(super) fn is_taken(k: &Kernel, s: Stmt, mma: &Mma, (e, left): (Expr, bool)) -> bool {
    let Some(v) = plain_var(k, e) else { return false };
    let stmts = all_stmts(k, k.body);
    let sums = |&s: &Stmt| matches!(k.stmts[s], StmtData::Assign { dst, .. } if dst == v) && product(k, s).is_some();
    if stmts.iter().any(sums) {
        return true;
    }
    if !unassigned(k, v) {
        return false;
    }
    let before = stmts.into_iter().take_while(|&other| other != s);
    let first = before.filter_map(|other| product(k, other)).find_map(|of| side(k, of, v));
    first.or_else(|| side(k, *mma, v)).is_some_and(|side| side != left)
}

fn product(k: &Kernel, s: Stmt) -> Option<Mma> {
    match k.stmts[s] {
        StmtData::Assign { src, .. } => match k.exprs[src] {
            ExprData::Mma(mma) => Some(mma),
            _ => None,
        },
        _ => None,
    }
}

/// The side of the instruction on which a tile is; if on both, that of the text's left operand.
fn side(k: &Kernel, mma: Mma, v: Value) -> Option<bool> {
    let is = |e: Expr| plain_var(k, e) == Some(v);
    if is(mma.a) {
        return Some(!mma.swap);
    }
    is(mma.b).then_some(mma.swap)
}

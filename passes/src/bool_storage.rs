//! Conditions as numbers, for tiles and buffers that only store numbers.

use tilec_ir::entities::Expr;
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};

/// The element type of tiles that hold conditions as numbers.
pub(crate) const NUMBERS: ElemRef = ElemRef::Known(Elem::I8);

/// `select(c, 1, 0)`; of literals the number, as the text would be folded.
pub(crate) fn as_number(k: &mut Kernel, condition: Expr) -> Expr {
    let span = k.expr_spans[condition];
    if let Some(truth) = index::truth(&OfKernel::literals(k), condition) {
        return k.int(i64::from(truth), span);
    }
    let (one, zero) = (k.int(1, span), k.int(0, span));
    k.expr(ExprData::Op { op: Op::Select, args: vec![condition, one, zero] }, span)
}

/// `cast<i8>(select(c, 1, 0))`, which a tile of [`NUMBERS`] holds.
pub(crate) fn as_stored(k: &mut Kernel, condition: Expr) -> Expr {
    let arg = as_number(k, condition);
    k.expr(ExprData::Cast { elem: NUMBERS, arg }, k.expr_spans[condition])
}

/// The condition from its number: `!= 0`.
pub(crate) fn as_condition(k: &mut Kernel, number: Expr) -> Expr {
    let span = k.expr_spans[number];
    let none = k.int(0, span);
    k.expr(ExprData::Op { op: Op::Ne, args: vec![number, none] }, span)
}

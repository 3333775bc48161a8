//! Temporary registers and instruction counts of functions (`exp`, `erf`, ..).

use super::views::for_each_tile;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Type, type_of};

/// Registers that the functions in a kernel's expressions need in addition to their operands.
pub(crate) fn function_registers(k: &Kernel) -> u64 {
    k.expressions().into_iter().map(|e| own(k, e)).max().unwrap_or(0)
}

/// Registers for the functions in an expression.
pub(crate) fn registers_of(k: &Kernel, e: Expr) -> u64 {
    k.children(e).into_iter().map(|child| registers_of(k, child)).fold(own(k, e), u64::max)
}

/// Registers for the functions in an expression and in the deferred names that it uses.
pub(crate) fn registers_of_all(k: &Kernel, deferred: &Deferred, e: Expr) -> u64 {
    let mut most = registers_of(k, e);
    for_each_tile(k, deferred, e, &mut |v| {
        most = most.max(deferred.init(v).map_or(0, |init| registers_of(k, init)));
    });
    most
}

/// Functions by polynomials keep their coefficients in registers (ptxas 13: 24 for `erf`; with 4 and 32 elements a
/// thread, `tanh` takes 8 to 15 more than a sum; of f64, exponentials and logarithms 12 to 28, `sin` and `cos` 40 to
/// 46, `erf` 30 to 44, `pow` 28 to 36, others 7 to 19).
fn own(k: &Kernel, e: Expr) -> u64 {
    let is_f64 = matches!(type_of(k, e), Ok(Type::Tile(tile)) if tile.elem == ElemRef::Known(Elem::F64));
    match k.exprs[e] {
        ExprData::Op { op: Op::Exp | Op::Exp2 | Op::Log | Op::Log2, .. } if is_f64 => 28,
        ExprData::Op { op: Op::Rsqrt | Op::Tanh | Op::FastTanh, .. } if is_f64 => 19,
        ExprData::Op { op: Op::Sin | Op::Cos, .. } if is_f64 => 46,
        ExprData::Op { op: Op::Erf, .. } if is_f64 => 44,
        ExprData::Op { op: Op::Pow, .. } if is_f64 => 36,
        ExprData::Op { op: Op::Erf, .. } => 24,
        ExprData::Op { op: Op::Sin | Op::Cos, .. } => 16,
        ExprData::Op { op: Op::Pow | Op::Random, .. } => 12,
        ExprData::Op { op: Op::Tanh, .. } => 16,
        _ => 0,
    }
}

/// Instructions for one element, and how many of them use the special function units (counted in machine code of ptxas
/// 13; for f64 only a rough upper figure).
pub(crate) fn instructions(k: &Kernel, e: Expr) -> (f64, f64) {
    let is_f64 = matches!(type_of(k, e), Ok(Type::Tile(tile)) if tile.elem == ElemRef::Known(Elem::F64));
    match k.exprs[e] {
        ExprData::Op { op, .. } if is_f64 && (op.is_function() || matches!(op, Op::Div | Op::Pow)) => (40.0, 2.0),
        ExprData::Op { op: Op::Tanh, .. } => (17.0, 2.0),
        ExprData::Op { op: Op::Erf, .. } => (21.0, 1.0),
        ExprData::Op { op: Op::Sin | Op::Cos | Op::Pow, .. } => (24.0, 2.0),
        ExprData::Op { op: Op::Exp | Op::Log, .. } => (3.0, 1.0),
        ExprData::Op { op: Op::Div, .. } => (8.0, 1.0),
        ExprData::Op { op, .. } if op.is_function() => (1.0, 1.0),
        ExprData::Op { op: Op::Random, .. } => (40.0, 0.0),
        ExprData::Op { .. } => (1.0, 0.0),
        ExprData::Round { .. } => (8.0, 0.0),
        _ => (0.0, 0.0),
    }
}

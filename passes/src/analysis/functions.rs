//! Registers that functions take while they are computed.

use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;

/// Registers that the functions in a kernel's expressions take beside their operands: those that are computed by polynomials keep the coefficients
/// (ptxas 13: 24 for `erf`, 4 to 8 for `tanh`).
pub(crate) fn function_registers(k: &Kernel) -> u64 {
    let of = |e: Expr| match k.exprs[e] {
        ExprData::Op { op: Op::Erf, .. } => 24,
        ExprData::Op { op: Op::Tanh, .. } => 8,
        _ => 0,
    };
    k.expressions().into_iter().map(of).max().unwrap_or(0)
}

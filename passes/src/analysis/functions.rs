//! Registers that functions take while they are computed.

use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;

/// Registers that the functions in a kernel's expressions take beside their operands.
pub(crate) fn function_registers(k: &Kernel) -> u64 {
    k.expressions().into_iter().map(|e| own(k, e)).max().unwrap_or(0)
}

/// The same of an expression and what is inside it.
pub(crate) fn registers_of(k: &Kernel, e: Expr) -> u64 {
    k.children(e).into_iter().map(|child| registers_of(k, child)).fold(own(k, e), u64::max)
}

/// Those that are computed by polynomials keep the coefficients (ptxas 13: 24 for `erf`, and as many for `tanh`, whose formulas share some).
fn own(k: &Kernel, e: Expr) -> u64 {
    match k.exprs[e] {
        ExprData::Op { op: Op::Erf, .. } => 24,
        ExprData::Op { op: Op::Sin | Op::Cos, .. } => 16,
        ExprData::Op { op: Op::Pow | Op::Random, .. } => 12,
        ExprData::Op { op: Op::Tanh, .. } => 16,
        _ => 0,
    }
}

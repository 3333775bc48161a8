//! `contract`: fuses products and sums into multiply-adds that round once.
//!
//! ```text
//! copy fma(alpha, acc, beta * c) -> c          // was: alpha * acc + beta * c
//! ```
//!
//! Needs: bound compile-time parameters. Decides: the `fma`s of the kernel; which, `tilec_ir::contraction` says. Cannot be switched off: the assembler would do
//! it where it likes.

use crate::Cx;
use tilec_ir::contraction::contracted;
use tilec_ir::diag::Reported;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;

pub(crate) const NAME: &str = "contract";

pub(crate) fn run(k: &mut Kernel, _: &mut Cx<'_>) -> Result<(), Reported> {
    for (e, parts) in contracted(k) {
        k.exprs[e] = ExprData::Op { op: Op::Fma, args: parts.to_vec() };
    }
    Ok(())
}

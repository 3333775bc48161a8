//! `contract`: contracts multiplications and additions to multiply-adds, which round once.
//!
//! ```text
//! copy fma(alpha, acc, beta * c) -> c          // was: alpha * acc + beta * c
//! ```
//!
//! Needs: bound compile-time parameters. Decides: the `fma`s of the kernel, by the rules of `tilec_ir::contraction`. Cannot be switched off, because the assembler would
//! contract in its own way.

use crate::Cx;
use std::collections::BTreeSet;
use tilec_ir::contraction::contracted;
use tilec_ir::diag::Reported;
use tilec_ir::diag::Span;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;

pub(crate) const NAME: &str = "contract";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut said: BTreeSet<Span> = BTreeSet::new();
    for (e, parts) in contracted(k) {
        k.exprs[e] = ExprData::Op { op: Op::Fma, args: parts.to_vec() };
        // Copies of a statement are remarked on once.
        if !k.expr_spans[e].is_none() && said.insert(k.expr_spans[e]) {
            cx.remark(k.expr_spans[e], format!("contracted to `{}`: one rounding", print_expr(k, e)));
        }
    }
    Ok(())
}

//! Conditions on copies, and which of them a copy has.

use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::ops::Op;

/// The copy moves nothing unless `cond` holds.
pub(crate) fn add_condition(k: &mut Kernel, s: Stmt, cond: Expr) {
    let span = k.stmt_spans[s];
    let StmtData::Copy { attrs, .. } = &k.stmts[s] else { unreachable!("a condition is a copy's") };
    let both = match attrs.when {
        Some(other) => k.binary(Op::And, other, cond, span),
        None => cond,
    };
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
        attrs.when = Some(both);
    }
}

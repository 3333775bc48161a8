//! 64-bit divisions in loops. The hardware has none, and the emulation takes about three times as long as a 32-bit
//! division.

use crate::Cx;
use crate::analysis::index_operands::{of_indices, of_sizes};
use crate::analysis::uses::{all_stmts, stmt_exprs};
use tilec_ir::entities::Expr;
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;

/// Remarks on them, with ways to make them narrower.
pub(super) fn remark(k: &Kernel, cx: &mut Cx<'_>) {
    let ranges = Ranges::new(k);
    let mut found: Vec<Expr> = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::For { body, .. } = k.stmts[s] else { continue };
        for s in all_stmts(k, body) {
            stmt_exprs(k, s).into_iter().for_each(|e| divisions(k, &ranges, e, &mut found));
        }
    }
    for e in found {
        let dividend = k.children(e).into_iter().next().map_or_else(String::new, |of| print_expr(k, of));
        let message = format!(
            "`{}` divides in 64 bits, which takes about three times as long: `{dividend}` may be beyond 31 bits; a precondition that bounds it, or the sizes that it is made of, makes it short",
            print_expr(k, e)
        );
        cx.remark(k.expr_spans[e], message);
    }
}

/// Adds the divisions in an expression whose divisor is known only at launch, each text once.
fn divisions(k: &Kernel, ranges: &Ranges<'_>, e: Expr, found: &mut Vec<Expr>) {
    k.children(e).into_iter().for_each(|child| divisions(k, ranges, child, found));
    let ExprData::Op { op: Op::Div | Op::Rem | Op::CeilDiv, args } = &k.exprs[e] else { return };
    let &[dividend, by] = &args[..] else { return };
    // Divisions of sizes are hoisted in front of the loop; a literal divisor becomes a multiplication.
    if k.as_int(by).is_some() || of_sizes(k, e) || !of_indices(k, e) {
        return;
    }
    let long = ranges.of(dividend).is_none_or(|range| range.hi > i128::from(i32::MAX));
    if long && !found.iter().any(|&other| tilec_ir::typing::same_expr(k, other, e)) {
        found.push(e);
    }
}

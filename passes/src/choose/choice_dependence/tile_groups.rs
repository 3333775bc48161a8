//! Groups of positions (`k / G`): each tile is in one group.

use crate::analysis::uses::all_stmts;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::loop_ends::{loop_variable, meaning};
use tilec_ir::ops::Op;
use tilec_ir::typing::same_expr;

/// Whether preconditions say `extent % size == 0`, directly or through others: `K % G == 0, G % BK == 0`.
pub(super) fn divides(k: &Kernel, size: Expr, extent: Expr) -> bool {
    let mut known = vec![extent];
    let mut next = 0;
    while let Some(&whole) = known.get(next) {
        next += 1;
        for &e in &k.requires {
            let ExprData::Op { op: Op::Eq, args } = &k.exprs[e] else { continue };
            let ExprData::Op { op: Op::Rem, args: of } = &k.exprs[args[0]] else { continue };
            let divisor = k.as_int(args[1]) == Some(0) && same_expr(k, of[0], whole);
            if divisor && same_expr(k, of[1], size) {
                return true;
            }
            if divisor && !known.iter().any(|&other| same_expr(k, other, of[1])) {
                known.push(of[1]);
            }
        }
    }
    false
}

/// The variable of a loop that counts from 0, and the divisor of an index `k / G`.
pub(super) fn group_of(k: &Kernel, e: Expr) -> Option<(Value, Expr)> {
    let ExprData::Op { op: Op::Div, args } = &k.exprs[meaning(k, e)] else { return None };
    let v = loop_variable(k, args[0])?;
    let counts =
        |&s: &Stmt| matches!(k.stmts[s], StmtData::For { var, start, .. } if var == v && k.as_int(start) == Some(0));
    all_stmts(k, k.body).iter().any(counts).then_some((v, args[1]))
}

/// The number of a tile, its extent, and the divisor of an index that is its start divided by something: `j * BN / G`.
pub(super) fn group_of_tile(k: &Kernel, e: Expr) -> Option<(Value, Expr, Expr)> {
    let ExprData::Op { op: Op::Div, args } = &k.exprs[meaning(k, e)] else { return None };
    let ExprData::Op { op: Op::Mul, args: of } = &k.exprs[meaning(k, args[0])] else { return None };
    let ExprData::Ref(v) = k.exprs[meaning(k, of[0])] else { return None };
    Some((v, of[1], args[1]))
}

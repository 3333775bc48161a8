//! Loops whose step is not a literal: they count their iterations.
//!
//! ```text
//! for k in a..b step s { .. }             ->  for turn in 0..ceildiv(b - a, s) { let k = a + turn * s  .. }
//! for k in a..inf step s while c { .. }   ->  for turn in 0..inf while c { let k = a + turn * s  .. }
//! ```
//!
//! Lowering requires a positive step, because it is a divisor.

use crate::analysis::uses::all_stmts;
use tilec_ir::kernel::{ENDLESS, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;

/// Rewrites loops whose step is no literal.
pub(super) fn turns(k: &mut Kernel) {
    for s in all_stmts(k, k.body) {
        let StmtData::For { var, start, end, step, body, .. } = k.stmts[s] else { continue };
        if k.as_int(step).is_some() {
            continue;
        }
        let span = k.expr_spans[step];
        let turn = k.value("turn", k.values[var].span, ValueDef::Loop);
        let (first, by, number) = (k.copy_expr(start), k.copy_expr(step), k.value_ref(turn, span));
        let far = k.binary(Op::Mul, number, by, span);
        let at = if k.as_int(start) == Some(0) { far } else { k.binary(Op::Add, first, far, span) };
        let named = k.stmt(StmtData::Let { value: var, init: at }, k.stmt_spans[s]);
        k.values[var].def = ValueDef::Let;
        k.blocks[body].insert(0, named);
        let count = if k.as_int(end) == Some(ENDLESS) {
            end
        } else {
            let length = if k.as_int(start) == Some(0) { end } else { k.binary(Op::Sub, end, start, span) };
            k.binary(Op::CeilDiv, length, step, span)
        };
        let (none, one) = (k.int(0, span), k.int(1, span));
        let StmtData::For { var, start, end, step, .. } = &mut k.stmts[s] else { unreachable!("it is a loop") };
        (*var, *start, *end, *step) = (turn, none, count, one);
    }
}

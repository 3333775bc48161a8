//! Variables whose elements along the tile collect positions: each element those that have its place in their tile.
//!
//! ```text
//! var s = reg f32[P] = 0.0
//! for i in 0..M step P { s = s + X[i..+P, j] }
//! copy sum(s, 0) -> S[j..+1]
//! ```
//!
//! Which positions an element has depends on the size of the tile. What all of them have together does not: so
//! everything after the loop must reduce the variable along that dimension, by the operation that collects.

use super::dependence_kind::Kind;
use super::tiles::Tiles;
use super::under;
use crate::analysis::uses::{all_stmts, stmt_exprs};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::{Op, ReduceOp};

impl Tiles<'_> {
    /// The kind of `v = e`, if `e` is the variable combined with an element for each position.
    pub(super) fn spread(&mut self, v: Value, e: Expr) -> Option<Kind> {
        match self.collected(v, e)? {
            kind @ Kind::Spread { .. } => Some(kind),
            _ => None,
        }
    }

    fn collected(&mut self, v: Value, e: Expr) -> Option<Kind> {
        let k = self.k;
        let (op, sides) = match k.exprs[e] {
            ExprData::Ref(w) if w == v => {
                let kind = self.kinds.get(&v).copied();
                return kind.filter(|kind| matches!(kind, Kind::Old(w) | Kind::Spread { of: w, .. } if *w == v));
            }
            ExprData::Op { op: Op::Add, ref args } => (ReduceOp::Sum, [(args[0], args[1]), (args[1], args[0])]),
            ExprData::Op { op: Op::Sub, ref args } => (ReduceOp::Sum, [(args[0], args[1]); 2]),
            ExprData::Op { op: Op::Max, ref args } => (ReduceOp::Maximum, [(args[0], args[1]), (args[1], args[0])]),
            ExprData::Op { op: Op::Min, ref args } => (ReduceOp::Minimum, [(args[0], args[1]), (args[1], args[0])]),
            _ => return None,
        };
        sides.into_iter().find_map(|(before, more)| {
            let before = self.collected(v, before)?;
            let Kind::Each { axes, pad } = self.of(more) else { return None };
            let kind = Kind::Spread { of: v, op, axis: axes.trailing_zeros() };
            let joins = axes.count_ones() == 1 && (!self.padded || pad.is_neutral(op));
            (joins && (before == Kind::Old(v) || before == kind)).then_some(kind)
        })
    }

    /// Whether nothing after the loop `s` depends on which elements of `v` have which positions: there the variable is
    /// reduced, and what each element begins with does not count more often in more elements.
    pub(super) fn is_reduced(&self, s: Stmt, v: Value, op: ReduceOp, axis: u32) -> bool {
        let k = self.k;
        let begins = self.begins_with.get(&v).is_some_and(|&x| op != ReduceOp::Sum || x == 0.0);
        let own = under(k, s);
        let others = all_stmts(k, k.body).into_iter().filter(|other| !own.contains(other));
        begins && others.flat_map(|other| stmt_exprs(k, other)).all(|e| reads_reduced(k, e, v, op, axis))
    }
}

/// Whether an expression reads a variable in such reductions alone.
fn reads_reduced(k: &Kernel, e: Expr, v: Value, op: ReduceOp, axis: u32) -> bool {
    let is_it = |e: Expr| matches!(k.exprs[e], ExprData::Ref(w) if w == v);
    match &k.exprs[e] {
        ExprData::Reduce { op: own, axis: along, parts: 0, arg } if is_it(*arg) => (*own, *along) == (op, axis),
        ExprData::View(view) if view.base == v => false,
        _ => !is_it(e) && k.children(e).into_iter().all(|child| reads_reduced(k, child, v, op, axis)),
    }
}

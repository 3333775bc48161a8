//! Register tiles of partial sums, which the lanes of a row have not combined yet.
//!
//! ```text
//! var l = reg f32[64, 1] layout ((4,8,4),2):((0,1,16),8) partial sum (0, 1) = 0.0
//! for .. {
//!     l = l * a + sum(p, 1)        // each lane adds up its elements of `p`
//! }
//! var total = reg f32[64, 1] layout ((4,8,4),2):((0,1,16),8)
//! copy l -> total                  // lanes whose numbers differ in bits 0 and 1 combine their parts
//! ```
//!
//! Lanes whose numbers differ only in the given bits hold parts of one element. Its value is the sum of the parts (or
//! their largest or smallest). The interpreter only knows values. So a statement may change such a tile only if it
//! commutes with the combination. [`accumulated`] decides this for the pass that makes such tiles, for the verifier,
//! and for lowering.

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel};
use crate::ops::{Op, ReduceOp};
use crate::types::ElemRef;

/// The reductions of `v = e` of which each lane only needs its own part, if the statement commutes with the combination
/// of the parts of `v`. The rest of `e` does not read `v`.
pub fn accumulated(k: &Kernel, v: Value, op: ReduceOp, e: Expr) -> Option<Vec<Expr>> {
    let mut found = Vec::new();
    (op.has_partials() && accumulates(k, v, op, e, &mut found)).then_some(found)
}

/// Whether `e` is the same function of parts as of values: for a sum a linear one, for an extreme that and anything that every lane has.
fn accumulates(k: &Kernel, v: Value, op: ReduceOp, e: Expr, found: &mut Vec<Expr>) -> bool {
    match &k.exprs[e] {
        ExprData::Ref(w) if *w == v => true,
        ExprData::Reduce { op: own, arg, .. } if *own == op && !reads(k, *arg, v) => {
            found.push(e);
            true
        }
        // Nothing in each part is nothing in all.
        _ if op == ReduceOp::Sum && is_zero(k, e) => true,
        ExprData::Op { op: own, args } => match (op, own, &args[..]) {
            (ReduceOp::Sum, Op::Add | Op::Sub, &[a, b])
            | (ReduceOp::Maximum, Op::Max, &[a, b])
            | (ReduceOp::Minimum, Op::Min, &[a, b]) => {
                accumulates(k, v, op, a, found) && accumulates(k, v, op, b, found)
            }
            (ReduceOp::Sum, Op::Neg, &[a]) => accumulates(k, v, op, a, found),
            (ReduceOp::Sum, Op::Mul, &[a, b]) => product(k, v, (a, b), found),
            (ReduceOp::Sum, Op::Fma, &[a, b, c]) => product(k, v, (a, b), found) && accumulates(k, v, op, c, found),
            (ReduceOp::Sum, Op::Div, &[a, b]) if !reads(k, b, v) && is_float(k, v) => accumulates(k, v, op, a, found),
            _ => op != ReduceOp::Sum && !reads(k, e, v),
        },
        // The largest of equal numbers is that number.
        _ => op != ReduceOp::Sum && !reads(k, e, v),
    }
}

/// Whether a product is linear: one factor is, and the other does not depend on the tile.
fn product(k: &Kernel, v: Value, (a, b): (Expr, Expr), found: &mut Vec<Expr>) -> bool {
    [(a, b), (b, a)].into_iter().any(|(linear, factor)| {
        let before = found.len();
        let fits = !reads(k, factor, v) && accumulates(k, v, ReduceOp::Sum, linear, found);
        if !fits {
            found.truncate(before);
        }
        fits
    })
}

/// Whether an expression is the number zero.
pub fn is_zero(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        ExprData::Int(n) => n == 0,
        ExprData::Float(bits) => f64::from_bits(bits) == 0.0,
        _ => false,
    }
}

/// Whether quotients of parts add up to that of their sum: those of integers are cut off.
fn is_float(k: &Kernel, v: Value) -> bool {
    k.tile_ty(v).is_some_and(|t| matches!(t.elem, ElemRef::Known(elem) if elem.is_float()))
}

/// Whether an expression reads a tile.
pub(crate) fn reads(k: &Kernel, e: Expr, v: Value) -> bool {
    let own = match &k.exprs[e] {
        ExprData::Iota { .. } => return false,
        ExprData::Ref(w) => *w == v,
        ExprData::View(view) => view.base == v,
        _ => false,
    };
    own || k.children(e).into_iter().any(|c| reads(k, c, v))
}

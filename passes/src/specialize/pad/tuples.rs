//! Reductions and sorts of tuples along extents that are not powers of two: there is no known neutral tuple, so tuples beyond the extent are not combined.
//!
//! ```text
//! reduce (x, 1.0) along 1 with (m1, l1), (m2, l2) { give f, g }
//! reduce (x, 1.0, iota(x, 1)) along 1 with (m1, l1, place1: i32), (m2, l2, place2) { give select(place2 < 80, f, m1), select(place2 < 80, g, l1), place1 }
//! ```
//!
//! A component carries the index of the first element of each tuple. If the index of the second tuple is beyond the extent, so are all its elements, and the first tuple
//! is the result. The other tuples are combined in the order of the original extent.
//!
//! ```text
//! sort (x, p) along 1 with (x1, p1), (x2, p2) { give x1 < x2 }
//! sort (x, p, iota(x, 1)) along 1 with (x1, p1, place1: i32), (x2, p2, place2) { give x1 < x2 || place2 >= 48 }
//! ```
//!
//! Every comparison of a sort leaves the first tuple at the lower index. So a tuple beyond the extent never moves, and the others are compared as in a row of the original extent.

use super::extent::Extent;
use tilec_ir::combine::{Combine, How};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{fixed_shape, shape_of_tuples};

/// Whether tuples are reduced over `n` elements, so that padding would count.
pub(super) fn counts(k: &Kernel, n: u64, combine: &Combine) -> bool {
    matches!(combine.operation, How::Reduce { .. } | How::Sort { .. }) && along(k, n, combine)
}

fn along(k: &Kernel, n: u64, combine: &Combine) -> bool {
    shape_of_tuples(k, combine).is_some_and(|shape| shape.get(combine.axis as usize) == Some(&n))
}

/// Makes the reduction or sort `e` combine only the first `n` tuples, if it has `n` of them.
pub(super) fn without(k: &mut Kernel, n: Extent, e: Expr) {
    let ExprData::Combine(combine) = &k.exprs[e] else { panic!("bug: it is made of tuples") };
    if !counts(k, n.own, combine) {
        return;
    }
    let mut combine = combine.clone();
    let (span, axis) = (k.expr_spans[e], combine.axis);
    let has_all = |&&arg: &&Expr| fixed_shape(k, arg).is_some_and(|shape| shape.get(axis as usize) == Some(&n.own));
    let arg = *combine.args.iter().find(has_all).expect("bug: no component has the extent of the tuples");
    let like = tile_like(k, arg).unwrap_or(arg);
    let like = k.copy_expr(like);
    combine.args.push(k.expr(ExprData::Iota { axis, like }, span));
    let place = |k: &mut Kernel, name: &str| k.value(name, span, ValueDef::Element { elem: ElemRef::Known(Elem::I32) });
    let (first, second): (Value, Value) = (place(k, "place1"), place(k, "place2"));
    let sorts = matches!(combine.operation, How::Sort { .. });
    let olds = combine.first.clone();
    for (result, old) in combine.results.iter_mut().zip(olds) {
        let (at, count) = (k.value_ref(second, span), k.int(n.count.cast_signed(), span));
        let (op, args) = if sorts {
            let beyond = k.expr(ExprData::Op { op: Op::Ge, args: vec![at, count] }, span);
            (Op::Or, vec![*result, beyond])
        } else {
            let inside = k.expr(ExprData::Op { op: Op::Lt, args: vec![at, count] }, span);
            (Op::Select, vec![inside, *result, k.value_ref(old, span)])
        };
        *result = k.expr(ExprData::Op { op, args }, span);
    }
    if !sorts {
        combine.results.push(k.value_ref(first, span));
    }
    combine.first.push(first);
    combine.second.push(second);
    k.exprs[e] = ExprData::Combine(combine);
}

/// A register tile with this shape among the operands of `e`, so that `iota` needs no new tile.
pub(super) fn tile_like(k: &Kernel, e: Expr) -> Option<Expr> {
    fn within(k: &Kernel, e: Expr, shape: &[u64]) -> Option<Expr> {
        match &k.exprs[e] {
            ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Var(_)) => {
                Some(e).filter(|&e| fixed_shape(k, e).is_some_and(|own| own[..] == *shape))
            }
            ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } => {
                k.children(e).into_iter().find_map(|child| within(k, child, shape))
            }
            _ => None,
        }
    }
    within(k, e, &fixed_shape(k, e)?)
}

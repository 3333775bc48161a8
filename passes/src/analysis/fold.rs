//! Constant folding of index expressions, in place.
//!
//! Only integers are folded: floating-point arithmetic is left to the device so that its rounding is the device's.

use tilec_ir::entities::Expr;
use tilec_ir::index::{self, Scalar};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::resolve_view;

/// Folds `e` and everything under it.
pub fn fold_tree(k: &mut Kernel, e: Expr) {
    for child in k.children(e) {
        fold_tree(k, child);
    }
    if let ExprData::Cast { arg, .. } = k.exprs[e]
        && is_stored_as(k, e, arg)
    {
        replace(k, e, arg);
        return;
    }
    let ExprData::Op { op, args } = k.exprs[e].clone() else { return };
    let ints: Vec<Option<i64>> = args.iter().map(|&a| k.as_int(a)).collect();
    let folded = match ints.as_slice() {
        [Some(x)] => index::unary(op, *x).ok(),
        [Some(x), Some(y)] => index::binary(op, *x, *y).ok(),
        _ => None,
    };
    if let Some(Scalar::Int(x)) = folded {
        k.exprs[e] = ExprData::Int(x);
        return;
    }
    if let [x, Some(1)] = ints[..]
        && index::is_zero(op, [x, Some(1)])
        && is_index(k, args[0])
        && !divides(k, args[0])
    {
        k.exprs[e] = ExprData::Int(0);
        return;
    }
    if let [x, y] = ints[..]
        && let Some(operand) = index::unchanged(op, [x, y]).map(|i| args[i])
        && is_index(k, operand)
    {
        replace(k, e, operand);
    }
}

/// Whether an index is a division. Its divisor is checked at its place in the source, so it is not folded away.
fn divides(k: &Kernel, e: Expr) -> bool {
    matches!(&k.exprs[e], ExprData::Op { op: Op::Div | Op::Rem | Op::CeilDiv, args } if k.as_int(args[1]).is_none())
        || k.children(e).into_iter().any(|child| divides(k, child))
}

fn replace(k: &mut Kernel, e: Expr, by: Expr) {
    let (data, span) = (k.exprs[by].clone(), k.expr_spans[by]);
    k.exprs[e] = data;
    k.expr_spans[e] = span;
}

/// Whether `cast`, a conversion of `arg`, changes nothing: `arg` is stored or computed in the same type. Narrow types
/// are computed in wider ones, so they need rounding.
fn is_stored_as(k: &Kernel, cast: Expr, arg: Expr) -> bool {
    let elem = |e: Expr| tilec_ir::typing::type_of(k, e).ok().and_then(|t| t.elem());
    let (Some(ElemRef::Known(from)), Some(ElemRef::Known(to))) = (elem(arg), elem(cast)) else { return false };
    let stored = match &k.exprs[arg] {
        ExprData::Ref(v) => !matches!(k.values[*v].def, ValueDef::Let) || resolve_view(k, arg).is_some(),
        ExprData::View(_) => true,
        _ => false,
    };
    let computed = matches!(from, Elem::F32 | Elem::F64 | Elem::I32 | Elem::U32 | Elem::I64);
    from == to && (stored || computed)
}

/// Neutral elements are dropped only if the other operand is an index: `x * 1` on tiles may convert types.
fn is_index(k: &Kernel, e: Expr) -> bool {
    matches!(tilec_ir::typing::type_of(k, e), Ok(tilec_ir::typing::Type::Index))
}

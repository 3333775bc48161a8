//! Results of operators on elements past the end.

use super::pad::Pad;
use crate::rewrite::same_expr;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::loop_ends::meaning;
use tilec_ir::numerics::cast::int_format;
use tilec_ir::numerics::float_format;
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Type, type_of};

/// The result of a comparison of elements past the end, if it is known.
pub(crate) type Compared<'c> = &'c dyn Fn(Op, [Expr; 2]) -> Option<bool>;

/// The result of an operator on elements past the end, where the operands `args` have the values `pads`.
pub(crate) fn operator(k: &Kernel, op: Op, args: &[Expr], pads: &[Pad], compared: Compared<'_>) -> Pad {
    match (op, pads, args) {
        (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, _, &[x, y]) => {
            compared(op, [x, y]).map_or_else(|| function(op, pads), Pad::always)
        }
        (Op::Add, [a, b], _) => a.plus(*b),
        (Op::Sub, [a, b], _) => a.plus(b.negated()),
        (Op::Mul, &[a, b], &[x, y]) => scaling(k, x, a).times(scaling(k, y, b), same_expr(k, x, y)),
        (Op::Div, [a, _], _) if is_rounded(k, args) && !a.is_zero() => Pad::UNKNOWN,
        (Op::Div, &[a, b], &[x, y]) => scaling(k, x, a).divided_by(scaling(k, y, b)),
        (Op::Fma, [_, _, c], _) => operator(k, Op::Mul, &args[..2], &pads[..2], compared).plus(*c),
        (Op::Max, [a, b], _) => a.larger(*b),
        (Op::Min, [a, b], _) => a.smaller(*b),
        (Op::Neg, [a], _) => a.negated(),
        (Op::Select, [c, a, b], _) => match c.select(*a, *b) {
            // No element is smaller than 0 then.
            zero if zero.is_zero() && args[1..].iter().all(|&e| is_never_negative(k, e)) => zero.absolute(),
            chosen => chosen,
        },
        _ => function(op, pads),
    }
}

/// Whether no element of an expression is less than 0.
fn is_never_negative(k: &Kernel, e: Expr) -> bool {
    match &k.exprs[meaning(k, e)] {
        ExprData::Int(x) => *x >= 0,
        ExprData::Float(bits) => f64::from_bits(*bits) >= 0.0,
        ExprData::Op { op: Op::Abs | Op::Exp | Op::Exp2 | Op::Sqrt, .. } => true,
        // Products of integers may wrap.
        ExprData::Op { op: Op::Mul, args } => {
            let is_float =
                matches!(type_of(k, e).ok().and_then(|ty| ty.elem()), Some(ElemRef::Known(elem)) if elem.is_float());
            is_float && same_expr(k, meaning(k, args[0]), meaning(k, args[1]))
        }
        ExprData::Op { op: Op::Max, args } => args.iter().any(|&arg| is_never_negative(k, arg)),
        ExprData::Op { op: Op::Select, args } => args[1..].iter().all(|&arg| is_never_negative(k, arg)),
        _ => false,
    }
}

/// A factor or divisor: an unknown number is taken to be positive.
pub(crate) fn scaling(k: &Kernel, e: Expr, pad: Pad) -> Pad {
    let is_number = !matches!(type_of(k, e), Ok(Type::Tile(_)));
    if pad == Pad::FIXED && is_number { pad.positive() } else { pad }
}

/// The range of an element type; `None`: it has infinities.
pub(crate) fn bounds(elem: Elem) -> Option<(f64, f64)> {
    if let Some(format) = int_format(elem) {
        return Some((format.min() as f64, format.max() as f64));
    }
    let largest = float_format(elem)?.max_finite();
    (elem.bits() <= 8).then_some((-largest, largest))
}

/// Whether a quotient is one of integers, and so rounded.
pub(crate) fn is_rounded(k: &Kernel, args: &[Expr]) -> bool {
    args.iter().any(|&e| is_integer(k, e))
}

/// The result of a function on elements past the end.
fn function(op: Op, pads: &[Pad]) -> Pad {
    match (op, pads) {
        (Op::Abs, [a]) => a.absolute(),
        (Op::Exp, [a]) => a.exponential(f64::exp),
        (Op::Exp2, [a]) => a.exponential(f64::exp2),
        (Op::Log, [a]) => a.of_positive(f64::ln),
        (Op::Log2, [a]) => a.of_positive(f64::log2),
        (Op::Rsqrt, [a]) => a.of_positive(|x| -1.0 / x.sqrt()).negated(),
        (Op::Sqrt, [a]) if a.is_zero() => a.absolute(),
        (Op::Sqrt, [a]) => a.of_positive(f64::sqrt),
        (Op::Tanh | Op::FastTanh, [a]) => a.growing(f64::tanh),
        (Op::Erf, [a]) => a.growing(|x| if x == 0.0 { 0.0 } else { x.signum() }),
        (Op::Floor, [a]) => a.growing(f64::floor),
        (Op::Ceil, [a]) => a.growing(f64::ceil),
        (Op::Round, [a]) => a.growing(f64::round_ties_even),
        (Op::Sin | Op::Cos, [a]) => a.turning(if op == Op::Sin { f64::sin } else { f64::cos }),
        (Op::Lt | Op::Le, [a, b]) => a.less(*b, op == Op::Le),
        (Op::Gt | Op::Ge, [a, b]) => b.less(*a, op == Op::Ge),
        (Op::Eq, [a, b]) => a.equal(*b),
        (Op::Ne, [a, b]) => a.equal(*b).not(),
        (Op::Pow, [a, b]) if a.is_zero() && b.is_positive() => a.absolute(),
        (Op::Popcount, [a]) if a.is_zero() => a.absolute(),
        (Op::CeilDiv | Op::Rem | Op::Shl | Op::Shr, [a, _]) if a.is_zero() => Pad::ZERO,
        (Op::BitAnd, [a, b]) if a.is_zero() || b.is_zero() => Pad::ZERO,
        (Op::And, [a, b]) => a.both(*b),
        (Op::Or, [a, b]) => a.not().both(b.not()).not(),
        (Op::Not, [a]) => a.not(),
        _ if pads.iter().any(|pad| matches!(pad, Pad::Any | Pad::NotANumber)) => Pad::Any,
        _ => Pad::UNKNOWN,
    }
}

fn is_integer(k: &Kernel, e: Expr) -> bool {
    matches!(type_of(k, e).ok().and_then(|t| t.elem()), Some(ElemRef::Known(elem)) if !elem.is_float())
}

//! Operators on tiles, element by element.
//!
//! Floating-point operators round each result: to binary64 for f64, to binary32 for all other types, as the device computes
//! them. (Of the operands of + - * / and the square root, rounding the result in `f64` once more rounds it as if it were done
//! at once.) Integers are exact modulo the width of their registers: 64 bits, or 32 for all narrower types.

use super::bounds;
use super::tile::{Tile, computed, wrap};
use crate::numerics::erf;
use crate::ops::Op;
use crate::types::{Elem, ElemClass};
use std::rc::Rc;

/// `a / b` rounded toward minus infinity; `None` if it does not fit or `b` is zero.
pub(super) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
}

/// The remainder of [`floor_div`].
pub(super) fn floor_rem(a: i64, b: i64) -> Option<i64> {
    if b == -1 {
        return Some(0);
    }
    let r = a.checked_rem(b)?;
    Some(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
}

/// `a / b` rounded toward plus infinity; `None` if it does not fit or `b` is zero.
pub(super) fn ceil_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) == (b < 0) { q + 1 } else { q })
}

/// The element type in which operands are combined: floats before integers, wide before narrow. What is made of literals
/// and indices adapts.
pub(super) fn common_elem(operands: &[Rc<Tile>]) -> Elem {
    let rank = |elem: Elem| (elem.is_float(), elem.bits());
    let widest = |weak: bool| operands.iter().filter(|t| t.weak == weak).map(|t| t.elem).max_by_key(|&e| rank(e));
    match (widest(false), widest(true)) {
        (Some(strong), Some(weak)) if weak.is_float() && strong.class() == ElemClass::Int => Elem::F32,
        (Some(elem), _) | (None, Some(elem)) => elem,
        (None, None) => Elem::F32,
    }
}

/// Applies `op` to operands of the shape of the result. An integer divisor is not zero.
pub(super) fn elementwise(op: Op, elem: Elem, shape: Vec<usize>, args: &[&Tile], bounded: bool) -> Tile {
    let truth = matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::And | Op::Or | Op::Not);
    let exact = match args {
        [a] => unary(op, elem, &a.data),
        [a, b] if elem.class() == ElemClass::Int => int_binary(op, elem, &a.data, &b.data),
        [a, b] => binary(op, &a.data, &b.data),
        [c, a, b] => select(&c.data, &a.data, &b.data),
        _ => Vec::new(),
    };
    let weak = args.iter().all(|t| t.weak);
    let data: Vec<f64> = match weak || truth {
        true => exact.clone(),
        false => exact.iter().map(|&x| computed(elem, x)).collect(),
    };
    let bound = if bounded && !weak {
        let at = |x: &[f64]| unary(op, elem, x).first().copied().unwrap_or(f64::NAN);
        bounds::elementwise(op, elem, args, (&exact, &data), at)
    } else {
        None
    };
    let mut out = Tile::new(if truth { Elem::Bool } else { elem }, shape, data);
    out.exact = truth;
    out.poison = poison(op, args);
    out.bound = bound;
    out
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect()
}

fn compare(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> bool) -> Vec<f64> {
    zip(a, b, |x, y| f64::from(u8::from(f(x, y))))
}

fn unary(op: Op, elem: Elem, a: &[f64]) -> Vec<f64> {
    let map = |f: fn(f64) -> f64| a.iter().map(|&x| f(x)).collect();
    let int = elem.class() == ElemClass::Int;
    match op {
        Op::Neg if int => a.iter().map(|&x| wrap(elem, -(x as i128))).collect(),
        Op::Abs if int => a.iter().map(|&x| wrap(elem, (x as i128).abs())).collect(),
        Op::Neg => map(|x| -x),
        Op::Abs => map(f64::abs),
        Op::Exp2 => map(f64::exp2),
        Op::Exp => map(f64::exp),
        Op::Log2 => map(f64::log2),
        Op::Sqrt => map(f64::sqrt),
        Op::Rsqrt => map(|x| 1.0 / x.sqrt()),
        Op::Tanh | Op::FastTanh => map(f64::tanh),
        Op::Erf => map(erf),
        Op::Not => map(|x| f64::from(u8::from(x == 0.0))),
        // Not unary: the verifier refuses it, and `eval` checks the number of operands.
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::CeilDiv | Op::Min | Op::Max | Op::Eq | Op::Ne => {
            Vec::new()
        }
        Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::And | Op::Or | Op::Select => Vec::new(),
    }
}

fn binary(op: Op, a: &[f64], b: &[f64]) -> Vec<f64> {
    match op {
        Op::Add => zip(a, b, |x, y| x + y),
        Op::Sub => zip(a, b, |x, y| x - y),
        Op::Mul => zip(a, b, |x, y| x * y),
        Op::Div => zip(a, b, |x, y| x / y),
        Op::Rem => zip(a, b, |x, y| x - (x / y).floor() * y),
        Op::CeilDiv => zip(a, b, |x, y| (x / y).ceil()),
        // A NaN operand loses, as `min.f32` and `max.f32` have it.
        Op::Min => zip(a, b, f64::min),
        Op::Max => zip(a, b, f64::max),
        Op::Eq => compare(a, b, |x, y| x == y),
        Op::Ne => compare(a, b, |x, y| x != y),
        Op::Lt => compare(a, b, |x, y| x < y),
        Op::Le => compare(a, b, |x, y| x <= y),
        Op::Gt => compare(a, b, |x, y| x > y),
        Op::Ge => compare(a, b, |x, y| x >= y),
        Op::And => compare(a, b, |x, y| x != 0.0 && y != 0.0),
        Op::Or => compare(a, b, |x, y| x != 0.0 || y != 0.0),
        // Not binary, as above.
        Op::Neg
        | Op::Abs
        | Op::Exp2
        | Op::Exp
        | Op::Log2
        | Op::Sqrt
        | Op::Rsqrt
        | Op::Tanh
        | Op::FastTanh
        | Op::Erf
        | Op::Not => Vec::new(),
        Op::Select => Vec::new(),
    }
}

fn int_binary(op: Op, elem: Elem, a: &[f64], b: &[f64]) -> Vec<f64> {
    let exact = |f: fn(i128, i128) -> i128| zip(a, b, |x, y| wrap(elem, f(x as i128, y as i128)));
    match op {
        Op::Add => exact(|x, y| x + y),
        Op::Sub => exact(|x, y| x - y),
        Op::Mul => exact(|x, y| x * y),
        Op::Div => exact(|x, y| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0)),
        Op::Rem => exact(|x, y| x.rem_euclid(y) + if y < 0 && x.rem_euclid(y) != 0 { y } else { 0 }),
        Op::CeilDiv => exact(|x, y| x.div_euclid(y) + i128::from(y > 0 && x.rem_euclid(y) != 0)),
        _ => binary(op, a, b),
    }
}

fn select(c: &[f64], a: &[f64], b: &[f64]) -> Vec<f64> {
    c.iter().zip(a.iter().zip(b)).map(|(&c, (&x, &y))| if c != 0.0 { x } else { y }).collect()
}

/// Which results depend on elements that were never written.
fn poison(op: Op, args: &[&Tile]) -> Option<Vec<bool>> {
    if args.iter().all(|t| t.poison.is_none()) {
        return None;
    }
    let bad = |t: &Tile, i: usize| t.poison.as_ref().is_some_and(|p| p[i]);
    let n = args.first().map_or(0, |t| t.data.len());
    Some(match (op, args) {
        (Op::Select, [c, a, b]) => (0..n).map(|i| bad(c, i) || bad(if c.data[i] != 0.0 { a } else { b }, i)).collect(),
        _ => (0..n).map(|i| args.iter().any(|t| bad(t, i))).collect(),
    })
}

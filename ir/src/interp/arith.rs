//! Operators on tiles, element by element.
//!
//! Floating-point operators round each result as the device does: to binary64 for f64, to binary32 for all other types.
//! (For + - * / and the square root of binary32 operands, computing in `f64` and rounding gives the correctly rounded
//! result.) Integers are exact modulo the width of their registers: 64 bits, or 32 for all narrower types.

use super::Numbers;
use super::tile::{Tile, computed, wrapped};
use crate::index::{self, Undefined};
use crate::interp::errors;
use crate::numerics::cast::{int_format, register_format};
use crate::numerics::{element, element_unary, erf, larger, permute_bytes, smaller};
use crate::ops::Op;
use crate::types::{Elem, ElemClass};
use std::rc::Rc;

/// The element type in which operands are combined: floats before integers, wide before narrow. Values computed from
/// literals and indices adapt.
pub(super) fn common_elem(operands: &[Rc<Tile>]) -> Elem {
    let rank = |elem: Elem| (elem.is_float(), elem.bits());
    let widest = |weak: bool| operands.iter().filter(|t| t.weak == weak).map(|t| t.elem).max_by_key(|&e| rank(e));
    match (widest(false), widest(true)) {
        (Some(strong), Some(weak)) if weak.is_float() && strong.class() == ElemClass::Int => Elem::F32,
        (Some(elem), _) | (None, Some(elem)) => elem,
        (None, None) => Elem::F32,
    }
}

/// Applies `op` to operands with the shape of the result. All operands are stored as `elem`, except the condition of a
/// selection.
///
/// # Errors
/// If `elem` does not have the operator.
pub(super) fn elementwise(
    op: Op,
    elem: Elem,
    shape: Vec<usize>,
    args: &[&Tile],
    bounded: bool,
) -> Result<Tile, Undefined> {
    let truth = matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::And | Op::Or | Op::Not);
    let weak = args.iter().all(|t| t.weak);
    let exact = results(op, elem, args)?;
    let data = match &exact {
        Numbers::Floats(exact) if !(weak || truth) && elem.is_float() => {
            Numbers::Floats(exact.iter().map(|&x| computed(elem, x)).collect())
        }
        exact => exact.clone(),
    };
    let bound = if bounded && !weak {
        let at = |x: &[f64]| unary(op, x).first().copied().unwrap_or(f64::NAN);
        errors::elementwise(op, elem, args, (&exact.floats(), &data.floats()), at)
    } else {
        None
    };
    let mut out = Tile::new(if truth { Elem::Bool } else { elem }, shape, data);
    out.exact = truth;
    out.poison = poison(op, args);
    out.bound = bound;
    Ok(out)
}

/// The results before they are rounded.
fn results(op: Op, elem: Elem, args: &[&Tile]) -> Result<Numbers, Undefined> {
    let compares = index::compare(op, &0, &0).is_some();
    let int = elem.class() == ElemClass::Int;
    Ok(match args {
        [a, b, c] if op == Op::Fma => {
            let (a, b, c) = (a.data.floats(), b.data.floats(), c.data.floats());
            // Literals by themselves are as exact as they can be.
            let wide = elem == Elem::F64 || args.iter().all(|t| t.weak);
            let fma = |i: usize| match wide {
                true => a[i].mul_add(b[i], c[i]),
                false => f64::from((a[i] as f32).mul_add(b[i] as f32, c[i] as f32)),
            };
            (0..a.len()).map(fma).collect::<Vec<f64>>().into()
        }
        [a, b, s] if op == Op::PermuteBytes => {
            let words = a.integers().zip(b.integers()).zip(s.integers());
            wrapped(elem, words.map(|((a, b), s)| permute_bytes(a as u32, b as u32, s as u32).into()))
        }
        [c, a, b] => match (&a.data, &b.data) {
            (Numbers::Wide(a), Numbers::Wide(b)) => select(&c.data.floats(), a, b).into(),
            (a, b) => select(&c.data.floats(), &a.floats(), &b.floats()).into(),
        },
        [a, b] if compares => match (&a.data, &b.data) {
            (Numbers::Wide(a), Numbers::Wide(b)) => compare(op, a, b).into(),
            (a, b) => compare(op, &a.floats(), &b.floats()).into(),
        },
        [a, b] if int => {
            let exact: Result<Vec<i128>, _> =
                a.integers().zip(b.integers()).map(|(x, y)| element(op, register_format(elem), x, y)).collect();
            wrapped(elem, exact?.into_iter())
        }
        [a, b] => binary(op, &a.data.floats(), &b.data.floats()).into(),
        [a] if int => {
            let own = int_format(elem).ok_or(Undefined::NotIndex(op))?;
            let exact: Result<Vec<i128>, _> = a.integers().map(|x| element_unary(op, own, x)).collect();
            wrapped(elem, exact?.into_iter())
        }
        [a] => unary(op, &a.data.floats()).into(),
        _ => Numbers::default(),
    })
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect()
}

fn compare<T: PartialOrd>(op: Op, a: &[T], b: &[T]) -> Vec<f64> {
    let holds = |(x, y)| f64::from(u8::from(index::compare(op, x, y) == Some(true)));
    a.iter().zip(b).map(holds).collect()
}

/// A function of floats, or of truth values; nothing if `op` is none.
fn unary(op: Op, a: &[f64]) -> Vec<f64> {
    let map = |f: fn(f64) -> f64| a.iter().map(|&x| f(x)).collect();
    match op {
        Op::Neg => map(|x| -x),
        Op::Abs => map(f64::abs),
        Op::Exp2 => map(f64::exp2),
        Op::Exp => map(f64::exp),
        Op::Log2 => map(f64::log2),
        Op::Log => map(f64::ln),
        Op::Sqrt => map(f64::sqrt),
        Op::Rsqrt => map(|x| 1.0 / x.sqrt()),
        Op::Tanh | Op::FastTanh => map(f64::tanh),
        Op::Erf => map(erf),
        Op::Floor => map(f64::floor),
        Op::Ceil => map(f64::ceil),
        Op::Round => map(f64::round_ties_even),
        Op::Sin => map(f64::sin),
        Op::Cos => map(f64::cos),
        Op::Not => map(|x| f64::from(u8::from(x == 0.0))),
        // Not unary: the verifier refuses it, and `eval` checks the number of operands.
        _ => Vec::new(),
    }
}

/// An operation on floats, or on truth values; nothing if `op` is none.
fn binary(op: Op, a: &[f64], b: &[f64]) -> Vec<f64> {
    let truth = |f: fn(bool, bool) -> bool| zip(a, b, |x, y| f64::from(u8::from(f(x != 0.0, y != 0.0))));
    match op {
        Op::Add => zip(a, b, |x, y| x + y),
        Op::Sub => zip(a, b, |x, y| x - y),
        Op::Mul => zip(a, b, |x, y| x * y),
        Op::Div => zip(a, b, |x, y| x / y),
        Op::Pow => zip(a, b, f64::powf),
        Op::Rem => zip(a, b, |x, y| x - (x / y).floor() * y),
        Op::CeilDiv => zip(a, b, |x, y| (x / y).ceil()),
        Op::Min => zip(a, b, smaller),
        Op::Max => zip(a, b, larger),
        Op::And => truth(|x, y| x && y),
        Op::Or => truth(|x, y| x || y),
        // Comparisons are done for all types alike; the others are not binary, as above.
        _ => Vec::new(),
    }
}

fn select<T: Copy>(c: &[f64], a: &[T], b: &[T]) -> Vec<T> {
    c.iter().zip(a.iter().zip(b)).map(|(&c, (&x, &y))| if c != 0.0 { x } else { y }).collect()
}

/// Which results depend on elements that were never written.
pub(super) fn poison(op: Op, args: &[&Tile]) -> Option<Vec<bool>> {
    if args.iter().all(|t| t.poison.is_none()) {
        return None;
    }
    let bad = |t: &Tile, i: usize| t.poison.as_ref().is_some_and(|p| p[i]);
    let n = args.first().map_or(0, |t| t.data.len());
    Some(match (op, args) {
        (Op::Select, [c, a, b]) => {
            let holds = c.data.floats();
            (0..n).map(|i| bad(c, i) || bad(if holds[i] != 0.0 { a } else { b }, i)).collect()
        }
        _ => (0..n).map(|i| args.iter().any(|t| bad(t, i))).collect(),
    })
}

/// An atomic minimum or maximum orders a NaN in memory by its sign, beyond the infinities: the larger one keeps a
/// positive NaN, the smaller one a negative NaN.
pub(super) fn keep_nan(result: &mut Tile, old: &Tile, larger: bool) {
    let stays = |x: f64| x.is_nan() && x.is_sign_positive() == larger;
    let held = old.data.floats();
    if !held.iter().any(|&x| stays(x)) {
        return;
    }
    let kept: Vec<f64> =
        result.data.floats().iter().zip(held.iter()).map(|(&x, &old)| if stays(old) { old } else { x }).collect();
    result.data = Numbers::Floats(kept);
}

//! Propagation of error bounds through expressions and products.

use crate::interp::bounds::{Bound, SumAccuracy, Sums, spread_of};
use crate::interp::tile::{Tile, computed};
use crate::ops::Op;
use crate::types::Elem;
use std::borrow::Cow;

/// Error bound of the device's approximation of `op` at `x`, with the rounded result `r`.
pub(super) fn approximation(op: Op, elem: Elem, x: f64, r: f64) -> f64 {
    if !r.is_finite() {
        return 0.0;
    }
    if elem == Elem::F64 {
        return match op {
            // Two units of the device's, and one of the reference's.
            Op::Exp
            | Op::Exp2
            | Op::Log
            | Op::Log2
            | Op::Rsqrt
            | Op::Tanh
            | Op::FastTanh
            | Op::Sin
            | Op::Cos
            | Op::Erf
            | Op::Pow => 3.0 * (r.abs() * f64::EPSILON + f64::from_bits(1)),
            // Exact, or rounded once.
            _ => 0.0,
        };
    }
    let (bits, least) = (2f64.powi(-23), 2f64.powi(-149));
    match op {
        // Results below the normal numbers are 0.
        Op::Exp2 => r.abs() * 2f64.powi(-22) + 2f64.powi(-126),
        // exp of minus infinity is 0.
        Op::Exp if r == 0.0 => 2f64.powi(-126),
        Op::Exp => (2.0 + 1.5 * x.abs()) * r.abs() * bits + 2f64.powi(-126),
        Op::Log2 if (0.5..=2.0).contains(&x) => 2f64.powi(-22),
        Op::Log2 => r.abs() * 2f64.powi(-22),
        // Computed as the base-2 logarithm times a rounded constant, rounded.
        Op::Log if (0.5..=2.0).contains(&x) => 2f64.powi(-22),
        Op::Log => r.abs() * 1.5 * 2f64.powi(-22),
        Op::Rsqrt => r.abs() * 2f64.powf(-22.9),
        // The instruction, or what `tanh` is where there is none.
        Op::FastTanh => r.abs() * 2f64.powi(-11) + 2f64.powi(-22),
        Op::Pow => 4.0 * (r.abs() * bits + least),
        Op::Erf | Op::Tanh | Op::Sin | Op::Cos => 2.0 * (r.abs() * bits + least),
        _ => 0.0,
    }
}

/// Error bound of a power with errors in both operands. Powers are monotonic in either operand if the base is positive.
fn power_spread([(x, ex), (y, ey)]: [(f64, f64); 2]) -> f64 {
    if ex == 0.0 && ey == 0.0 {
        return 0.0;
    }
    if x - ex <= 0.0 {
        return f64::INFINITY;
    }
    let middle = x.powf(y);
    let ends = [(x - ex, y - ey), (x - ex, y + ey), (x + ex, y - ey), (x + ex, y + ey)];
    ends.into_iter().map(|(x, y)| (x.powf(y) - middle).abs()).fold(0.0, f64::max)
}

/// Error bound of a product of two numbers with errors; an exact factor of an infinite number adds none.
fn of_both(x: f64, ex: f64, y: f64, ey: f64) -> f64 {
    let times = |size: f64, error: f64| if error == 0.0 { 0.0 } else { size * error };
    times(x.abs() + ex, ey) + times(y.abs(), ex)
}

/// The bound of `op(args)`. `exact` are the elements before rounding to the type in which `elem` is computed, `out`
/// after. `f` is the operator on numbers.
pub(super) fn elementwise(
    op: Op,
    elem: Elem,
    args: &[&Tile],
    (exact, out): (&[f64], &[f64]),
    f: impl Fn(&[f64]) -> f64,
) -> Option<Box<Bound>> {
    let errors: Vec<Option<Bound>> = args.iter().map(|t| t.errors()).collect();
    let drowned = errors.iter().flatten().any(|b| b.drowned);
    let float = elem.is_float();
    let fuses = matches!(op, Op::Add | Op::Sub);
    let unrounded: Vec<Option<&Vec<f64>>> = args.iter().map(|t| t.bound.as_ref()?.rounding.as_ref()).collect();
    let given = errors.iter().any(Option::is_some) || (fuses && unrounded.iter().any(Option::is_some));
    // A square root is rounded correctly.
    let exactly = matches!(op, Op::Sqrt | Op::Floor | Op::Ceil | Op::Round);
    let approximate = (op.is_function() || op == Op::Pow) && !exactly && float;
    let rounds = op == Op::Mul && float;
    let passes = op == Op::Neg && unrounded[0].is_some();
    if !(given || approximate || rounds || passes) {
        return None;
    }
    let values: Vec<Cow<'_, [f64]>> = args.iter().map(|t| t.data.floats()).collect();
    let arg = |i: usize, at: usize| values[i][at];
    let error = |i: usize, at: usize| {
        let rounding = if fuses { unrounded[i].map_or(0.0, |r| r[at]) } else { 0.0 };
        errors[i].as_ref().map_or(0.0, |b| b.error[at]) + rounding
    };
    let round = |x: f64| if float { computed(elem, x) } else { x };
    // The error of the result, and its error before rounding.
    let bound = |at: usize| -> (f64, f64) {
        let e = |i: usize| error(i, at);
        let within = match op {
            Op::Add | Op::Sub => e(0) + e(1),
            Op::Fma => of_both(arg(0, at), e(0), arg(1, at), e(1)) + e(2),
            Op::Mul => of_both(arg(0, at), e(0), arg(1, at), e(1)),
            Op::Div if e(0) == 0.0 && e(1) == 0.0 => 0.0,
            Op::Div => (e(0) + exact[at].abs() * e(1)) / (arg(1, at).abs() - e(1)).max(0.0),
            Op::Min | Op::Max => e(0).max(e(1)),
            Op::Neg | Op::Abs => e(0),
            Op::Rem | Op::CeilDiv if e(0) == 0.0 && e(1) == 0.0 => 0.0,
            Op::Rem => arg(1, at).abs() + e(1),
            Op::Pow => {
                approximation(op, elem, arg(0, at), exact[at]) + power_spread([0, 1].map(|i| (arg(i, at), e(i))))
            }
            Op::Shl
            | Op::Shr
            | Op::BitAnd
            | Op::BitOr
            | Op::BitXor
            | Op::BitNot
            | Op::Popcount
            | Op::MulHigh
            | Op::PermuteBytes
            | Op::Random => {
                // Any bit may be another.
                if (0..args.len()).all(|i| e(i) == 0.0) { 0.0 } else { f64::INFINITY }
            }
            Op::CeilDiv => 1.0 + (e(0) + exact[at].abs() * e(1)) / (arg(1, at).abs() - e(1)).max(0.0),
            // The comparison of two numbers that differ by less than their errors is undecided.
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let near = e(0) + e(1);
                f64::from(u8::from(near > 0.0 && (arg(0, at) - arg(1, at)).abs() <= near))
            }
            Op::And | Op::Or => e(0).max(e(1)),
            Op::Not => e(0),
            Op::Select => {
                let chosen = if arg(0, at) != 0.0 { e(1) } else { e(2) };
                if e(0) == 0.0 { chosen } else { (arg(1, at) - arg(2, at)).abs() + e(1).max(e(2)) }
            }
            // They change by no more than what they are of.
            Op::Sin | Op::Cos => approximation(op, elem, arg(0, at), exact[at]) + e(0).min(2.0),
            // Functions of one number.
            _ => {
                let x = arg(0, at);
                let own = approximation(op, elem, x, exact[at]);
                own + if e(0) == 0.0 { 0.0 } else { spread_of(x, e(0), |x| f(&[x])).1 }
            }
        };
        let rounded = match op {
            _ if within == 0.0 => 0.0,
            _ if within.is_nan() => f64::INFINITY,
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => within,
            Op::Fma => fused_spread([0, 1, 2].map(|i| arg(i, at)), out[at], within, round),
            _ => spread_of(exact[at], within, round).1,
        };
        (rounded, within)
    };
    let (error, within): (Vec<f64>, Vec<f64>) = (0..out.len()).map(bound).unzip();
    let rounding = if rounds {
        roundings((exact, out), (&within, &error))
    } else if passes {
        unrounded[0].cloned()
    } else {
        None
    };
    Bound { error, sums: None, rounding, drowned }.nonzero()
}

/// Error bound of a fused multiply-add whose exact result is off by at most `within`. `out` is rounded once, so its
/// distance from a rounding boundary is unknown.
fn fused_spread([a, b, c]: [f64; 3], out: f64, within: f64, round: impl Fn(f64) -> f64) -> f64 {
    let (middle, spread) = spread_of(a.mul_add(b, c), within, round);
    if middle == out { spread } else { spread + (middle - out).abs() }
}

/// Rounding errors of products; `None`: there are none. Each is the final `error` minus the error before rounding,
/// `within`, which then adds up instead.
fn roundings((exact, out): (&[f64], &[f64]), (within, error): (&[f64], &[f64])) -> Option<Vec<f64>> {
    let unrounded = |((x, r), (within, error)): ((&f64, &f64), (&f64, &f64))| {
        let own = if x == r { 0.0 } else { (x - r).abs() };
        if error.is_infinite() { own } else { (own + within - error).max(0.0) }
    };
    let rounding: Vec<f64> = exact.iter().zip(out).zip(within.iter().zip(error)).map(unrounded).collect();
    rounding.iter().any(|&x| x > 0.0).then_some(rounding)
}

/// Adds the error of `a · b` to the bound of the accumulator `c`, whose elements were `before`. `sum(a, b, into)` is
/// the matrix product.
pub(super) fn product(
    accuracy: SumAccuracy,
    (a, b): (&Tile, &Tile),
    c: &mut Tile,
    depth: usize,
    sum: impl Fn(&[f64], &[f64], &mut [f64]),
) {
    let size = |t: &Tile| -> Vec<f64> { t.data.floats().iter().map(|x| x.abs()).collect() };
    let is_whole = |t: &Tile| t.bound.is_none() && t.data.floats().iter().all(|x| x.fract() == 0.0);
    let mut bound = c.bound.take().map_or_else(|| Bound::none(c.data.len()), |b| *b);
    let mut sums = bound.sums.take().unwrap_or_else(|| Sums {
        accuracy: accuracy.of(c.elem),
        magnitude: size(c),
        largest: if accuracy.of(c.elem).parts.is_some() { vec![0.0; c.data.len()] } else { Vec::new() },
        terms: 1.0,
        whole: c.data.floats().iter().all(|x| x.fract() == 0.0),
    });
    sums.whole &= is_whole(a) && is_whole(b);
    sums.terms += depth as f64;
    let (size_a, size_b) = (size(a), size(b));
    if sums.largest.is_empty() {
        sum(&size_a, &size_b, &mut sums.magnitude);
    } else {
        let mut part = vec![0.0; c.data.len()];
        sum(&size_a, &size_b, &mut part);
        for ((whole, largest), x) in sums.magnitude.iter_mut().zip(&mut sums.largest).zip(part) {
            *whole += x;
            *largest = largest.max(x);
        }
    }
    let (ea, eb) = (a.errors(), b.errors());
    bound.drowned |= ea.iter().chain(&eb).any(|b| b.drowned);
    if let Some(eb) = &eb {
        let farthest: Cow<'_, [f64]> = match &ea {
            Some(ea) => size_a.iter().zip(&ea.error).map(|(x, e)| x + e).collect(),
            None => Cow::Borrowed(&size_a),
        };
        sum(&farthest, &eb.error, &mut bound.error);
    }
    if let Some(ea) = &ea {
        sum(&ea.error, &size_b, &mut bound.error);
    }
    bound.sums = Some(sums);
    c.bound = Some(Box::new(bound));
}

/// Widens the bounds of sums of f32 in memory whose terms or results may be subnormal: memory makes zeros of these.
pub(super) fn allow_flushed(sum: &mut Tile, terms: [&Tile; 2]) {
    // Numbers that are not smaller lose no more by it than by rounding.
    let small = |x: f64| x != 0.0 && x.abs() < 2f64.powi(-102);
    let data: Vec<_> = [&*sum, terms[0], terms[1]].map(|t| t.data.floats().into_owned()).into();
    let flushed = |i: usize| if data.iter().any(|x| small(x[i])) { 3.0 * 2f64.powi(-126) } else { 0.0 };
    let more: Vec<f64> = (0..data[0].len()).map(flushed).collect();
    if more.iter().all(|&x| x == 0.0) {
        return;
    }
    let mut bound = sum.bound.take().map_or_else(|| Bound::none(more.len()), |b| *b);
    bound.error.iter_mut().zip(more).for_each(|(error, x)| *error += x);
    sum.bound = bound.nonzero();
}

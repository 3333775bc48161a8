//! How far a device may be from what is computed here.
//!
//! Elementwise operators round as the device does, so elements that are equal on both stay equal. What may differ is a sum of
//! products, whose order and rounding are the device's own, and what approximate instructions compute. The error of both is
//! carried through the expression: a sum of `K` products whose magnitudes add up to `S` is within `c * K * S`, and a
//! conversion can give whatever the numbers between both ends are converted to. So an integer that comes of a number next to a
//! tie has a bound of one step, and one that comes of any other has none.

use super::tile::{Tile, computed};
use crate::ops::Op;
use crate::types::{Elem, ElemClass};
use std::borrow::Cow;

/// How exact the device's sums of products are.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SumAccuracy {
    /// Sums of whole numbers whose magnitudes add up to less are exact.
    pub exact_below: f64,
    /// `c` in the bound `c * K * S`.
    pub per_term: f64,
    /// Where each product of tiles is summed by itself, less exactly, and then added: how.
    pub parts: Option<PartAccuracy>,
}

/// How exact the device's sums are of which it makes others. Their whole numbers and bounds are as those of [`SumAccuracy`].
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct PartAccuracy {
    /// Terms of a part at most.
    pub terms: f64,
    /// Parts of whole numbers whose magnitudes add up to less are exact.
    pub exact_below: f64,
    /// `c` in the bound `c * K * S` of a part.
    pub per_term: f64,
}

impl SumAccuracy {
    /// Sums in one go.
    pub fn new(exact_below: f64, per_term: f64) -> SumAccuracy {
        SumAccuracy { exact_below, per_term, parts: None }
    }

    /// The less exact of two, in every respect.
    #[must_use]
    pub fn or(self, other: SumAccuracy) -> SumAccuracy {
        let parts = match (self.parts, other.parts) {
            (Some(p), Some(q)) => Some(PartAccuracy {
                terms: p.terms.max(q.terms),
                exact_below: p.exact_below.min(q.exact_below),
                per_term: p.per_term.max(q.per_term),
            }),
            (p, q) => p.or(q),
        };
        SumAccuracy {
            exact_below: self.exact_below.min(other.exact_below),
            per_term: self.per_term.max(other.per_term),
            parts,
        }
    }

    /// What a sum of `terms` may be off by, for each unit of their magnitudes.
    pub fn relative(self, terms: f64) -> f64 {
        self.per_term * terms + self.parts.map_or(0.0, |p| p.per_term * terms.min(p.terms))
    }

    /// The same where all terms are whole numbers whose magnitudes add up to `size`, and to at most `part` in a part.
    fn relative_of_whole(self, terms: f64, size: f64, part: f64) -> f64 {
        match self.parts {
            Some(p) if part >= p.exact_below => self.relative(terms),
            _ if size < self.exact_below => 0.0,
            _ => self.per_term * terms,
        }
    }

    /// Of sums in `elem`, where those of f16 and f32 have the accuracy `self`.
    fn of(self, elem: Elem) -> SumAccuracy {
        match elem {
            Elem::F64 => SumAccuracy::new(2f64.powi(53), 2f64.powi(-52)),
            _ if elem.class() == ElemClass::Int => SumAccuracy::new(f64::INFINITY, 0.0),
            _ => self,
        }
    }
}

/// How far a device may be from each element of a tile.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    /// The largest difference of each element, without that of `sums`.
    pub(super) error: Vec<f64>,
    /// Of an accumulator: what it was summed from.
    sums: Option<Sums>,
    /// Of products that were rounded: the rounding errors, which a fused multiply-add does not make.
    rounding: Option<Vec<f64>>,
    /// A bound was wider than one missing product.
    pub(super) drowned: bool,
}

/// What the elements of an accumulator were summed from.
#[derive(Clone, Debug)]
struct Sums {
    accuracy: SumAccuracy,
    /// The sum of the absolute values of the terms of each element.
    magnitude: Vec<f64>,
    /// The largest such sum of a part; empty if there are none.
    largest: Vec<f64>,
    /// Terms of each element.
    terms: f64,
    /// All terms are whole numbers.
    whole: bool,
}

impl Bound {
    /// Of `n` elements that are the device's.
    pub(super) fn none(n: usize) -> Bound {
        Bound::from_parts(vec![0.0; n], false)
    }

    fn from_parts(error: Vec<f64>, drowned: bool) -> Bound {
        Bound { error, sums: None, rounding: None, drowned }
    }

    /// The bound of elements that may be this far off; `None`: that may not.
    pub(super) fn of(error: Vec<f64>, drowned: bool) -> Option<Box<Bound>> {
        Bound::from_parts(error, drowned).kept()
    }

    /// The error of the sums made one of the elements.
    pub(super) fn settled(mut self) -> Bound {
        self.rounding = None;
        let Some(sums) = self.sums.take() else { return self };
        let any = sums.accuracy.relative(sums.terms);
        for (i, (error, &s)) in self.error.iter_mut().zip(&sums.magnitude).enumerate() {
            let part = sums.largest.get(i).copied().unwrap_or(0.0);
            let factor = if sums.whole { sums.accuracy.relative_of_whole(sums.terms, s, part) } else { any };
            if factor > 0.0 {
                *error += factor * s;
                self.drowned |= sums.terms > 1.0 && factor * sums.terms > 1.0 && s > 0.0;
            }
        }
        self
    }

    /// The bound, if it says anything.
    pub(super) fn kept(self) -> Option<Box<Bound>> {
        let says = self.drowned || self.sums.is_some() || self.rounding.is_some();
        (says || self.error.iter().any(|&e| e != 0.0)).then(|| Box::new(self))
    }
}

/// `x` converted by `to`, which keeps the order, and how far a number within `error` of it may then be from it.
pub(super) fn spread_of(x: f64, error: f64, to: impl Fn(f64) -> f64) -> (f64, f64) {
    let at = to(x);
    if error == 0.0 {
        return (at, 0.0);
    }
    // The ends are computed with a rounding of their own.
    let error = error * (1.0 + 2f64.powi(-50)) + x.abs() * 2f64.powi(-53);
    let off = |end: f64| if end == at { 0.0 } else { (end - at).abs() };
    let (low, high) = (off(to(x - error)), off(to(x + error)));
    (at, if low.is_nan() || high.is_nan() { if at.is_nan() { 0.0 } else { f64::INFINITY } } else { low.max(high) })
}

/// How far the device's own function is from the rounded result `r` of `op` at `x`.
fn approximation(op: Op, elem: Elem, x: f64, r: f64) -> f64 {
    if !r.is_finite() {
        return 0.0;
    }
    if elem == Elem::F64 {
        return 0.0;
    }
    let (bits, least) = (2f64.powi(-23), 2f64.powi(-149));
    match op {
        // Results below the normal numbers are 0.
        Op::Exp2 => r.abs() * 2f64.powi(-22) + 2f64.powi(-126),
        Op::Exp => (2.0 + 1.5 * x.abs()) * r.abs() * bits + 2f64.powi(-126),
        Op::Log2 if (0.5..=2.0).contains(&x) => 2f64.powi(-22),
        Op::Log2 => r.abs() * 2f64.powi(-22),
        Op::Rsqrt => r.abs() * 2f64.powf(-22.9),
        Op::Tanh => 2f64.powi(-22),
        // The instruction, or what `tanh` is where there is none.
        Op::FastTanh => r.abs() * 2f64.powi(-11) + 2f64.powi(-22),
        Op::Erf => 2.0 * (r.abs() * bits + least),
        _ => 0.0,
    }
}

/// The bound of `op(args)`, whose elements are `exact` before and `out` after they are rounded to what `elem` is computed in.
/// `f` is the operator on numbers.
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
    let approximate =
        matches!(op, Op::Exp2 | Op::Exp | Op::Log2 | Op::Rsqrt | Op::Tanh | Op::FastTanh | Op::Erf) && float;
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
    let bound = |at: usize| -> f64 {
        let e = |i: usize| error(i, at);
        let within = match op {
            Op::Add | Op::Sub => e(0) + e(1),
            Op::Mul => (arg(0, at).abs() + e(0)) * e(1) + e(0) * arg(1, at).abs(),
            Op::Div if e(0) == 0.0 && e(1) == 0.0 => 0.0,
            Op::Div => (e(0) + exact[at].abs() * e(1)) / (arg(1, at).abs() - e(1)).max(0.0),
            Op::Min | Op::Max => e(0).max(e(1)),
            Op::Neg | Op::Abs => e(0),
            Op::Exp2 | Op::Exp | Op::Log2 | Op::Sqrt | Op::Rsqrt | Op::Tanh | Op::FastTanh | Op::Erf => {
                let x = arg(0, at);
                let own = approximation(op, elem, x, exact[at]);
                own + if e(0) == 0.0 { 0.0 } else { spread_of(x, e(0), |x| f(&[x])).1 }
            }
            Op::Rem | Op::CeilDiv if e(0) == 0.0 && e(1) == 0.0 => 0.0,
            Op::Rem => arg(1, at).abs() + e(1),
            Op::CeilDiv => 1.0 + (e(0) + exact[at].abs() * e(1)) / (arg(1, at).abs() - e(1)).max(0.0),
            // Which is the larger of two that are near is open.
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
        };
        if within == 0.0 {
            0.0
        } else if within.is_nan() {
            f64::INFINITY
        } else if matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge) {
            within
        } else {
            spread_of(exact[at], within, round).1
        }
    };
    let error: Vec<f64> = (0..out.len()).map(bound).collect();
    let rounding = if rounds {
        let rounding: Vec<f64> = exact.iter().zip(out).map(|(x, r)| if x == r { 0.0 } else { (x - r).abs() }).collect();
        rounding.iter().any(|&x| x > 0.0).then_some(rounding)
    } else if passes {
        unrounded[0].cloned()
    } else {
        None
    };
    Bound { error, sums: None, rounding, drowned }.kept()
}

/// What `a · b` adds to the bound of the accumulator `c`, which had the elements `before`. `sum(a, b, into)` is the product
/// of matrices with these elements.
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

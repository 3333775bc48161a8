//! Bounds on the difference between the interpreter's results and a device's.
//!
//! Elementwise operators round as the device does, so equal elements stay equal. Two things may differ: sums of
//! products, whose order and rounding depend on the device, and approximate instructions. Both errors are propagated
//! through expressions. A sum of `K` products whose magnitudes add up to `S` is within `c * K * S`. A conversion may
//! give any result of the interval's numbers. An integer converted from a number next to a tie therefore has a bound of
//! one step, any other a bound of zero.

use crate::types::{Elem, ElemClass};

/// Accuracy of the device's sums of products.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SumAccuracy {
    /// Sums of integers are exact if their magnitudes add up to less than this.
    pub exact_below: f64,
    /// `c` in the bound `c * K * S`.
    pub per_term: f64,
    /// If each product of tiles is first summed by itself, less accurately, and then added: the accuracy of these
    /// partial sums.
    pub parts: Option<PartAccuracy>,
}

/// Accuracy of the device's partial sums. The fields are as in [`SumAccuracy`].
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct PartAccuracy {
    /// Terms of a part at most.
    pub terms: f64,
    /// Partial sums of integers are exact if their magnitudes add up to less than this.
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

    /// Error bound of a sum of `terms` terms, relative to the sum of their magnitudes.
    pub fn relative(self, terms: f64) -> f64 {
        self.per_term * terms + self.parts.map_or(0.0, |p| p.per_term * terms.min(p.terms))
    }

    /// The same if all terms are integers whose magnitudes add up to `size`, and to at most `part` in each partial sum.
    fn relative_of_whole(self, terms: f64, size: f64, part: f64) -> f64 {
        match self.parts {
            Some(p) if part >= p.exact_below => self.relative(terms),
            _ if size < self.exact_below => 0.0,
            _ => self.per_term * terms,
        }
    }

    /// The accuracy of sums in `elem`, given that of f16 and f32 sums as `self`.
    pub(super) fn of(self, elem: Elem) -> SumAccuracy {
        match elem {
            Elem::F64 => SumAccuracy::new(2f64.powi(53), 2f64.powi(-52)),
            _ if elem.class() == ElemClass::Int => SumAccuracy::new(f64::INFINITY, 0.0),
            _ => self,
        }
    }
}

/// Bounds on the device's difference from each element of a tile.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    /// The largest difference of each element, without that of `sums`.
    pub(super) error: Vec<f64>,
    /// For an accumulator: the magnitudes of its terms.
    pub(super) sums: Option<Sums>,
    /// For rounded products: the rounding errors, which a fused multiply-add avoids.
    pub(super) rounding: Option<Vec<f64>>,
    /// A bound was wider than one missing product.
    pub(super) drowned: bool,
}

/// The magnitudes of the terms of an accumulator's elements.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) accuracy: SumAccuracy,
    /// The sum of the absolute values of the terms of each element.
    pub(super) magnitude: Vec<f64>,
    /// The largest partial sum of each element; empty if there are none.
    pub(super) largest: Vec<f64>,
    /// Terms of each element.
    pub(super) terms: f64,
    /// All terms are whole numbers.
    pub(super) whole: bool,
}

impl Bound {
    /// Zero bounds for `n` elements.
    pub(super) fn none(n: usize) -> Bound {
        Bound::from_parts(vec![0.0; n], false)
    }

    fn from_parts(error: Vec<f64>, drowned: bool) -> Bound {
        Bound { error, sums: None, rounding: None, drowned }
    }

    /// The bound of elements with these errors; `None` if all errors are zero.
    pub(super) fn of(error: Vec<f64>, drowned: bool) -> Option<Box<Bound>> {
        Bound::from_parts(error, drowned).nonzero()
    }

    /// The error of the sums made one of the elements.
    pub(super) fn spread_error(mut self) -> Bound {
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

    /// The bound, or `None` if it is zero.
    pub(super) fn nonzero(self) -> Option<Box<Bound>> {
        let says = self.drowned || self.sums.is_some() || self.rounding.is_some();
        (says || self.error.iter().any(|&e| e != 0.0)).then(|| Box::new(self))
    }
}

/// `x` converted by the monotonic function `to`, and the largest difference for a number within `error` of `x`.
pub(super) fn spread_of(x: f64, error: f64, to: impl Fn(f64) -> f64) -> (f64, f64) {
    let at = to(x);
    // An infinite number has no finite neighbours: a finite error does not change it.
    if error == 0.0 || x.is_infinite() && error.is_finite() {
        return (at, 0.0);
    }
    // The ends are computed with a rounding of their own.
    let error = error * (1.0 + 2f64.powi(-50)) + x.abs() * 2f64.powi(-53);
    let off = |end: f64| if end == at { 0.0 } else { (end - at).abs() };
    let (low, high) = (off(to(x - error)), off(to(x + error)));
    (at, if low.is_nan() || high.is_nan() { if at.is_nan() { 0.0 } else { f64::INFINITY } } else { low.max(high) })
}

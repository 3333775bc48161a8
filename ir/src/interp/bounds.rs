//! How far a device may be from what is computed here.
//!
//! Elementwise operators round as the device does, so elements that are equal on both stay equal. What may differ is a sum of
//! products, whose order and rounding are the device's own, and what approximate instructions compute. The error of both is
//! carried through the expression: a sum of `K` products whose magnitudes add up to `S` is within `c * K * S`, and a
//! conversion can give whatever the numbers between both ends are converted to. So an integer that comes of a number next to a
//! tie has a bound of one step, and one that comes of any other has none.

use crate::types::{Elem, ElemClass};

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
    pub(super) fn of(self, elem: Elem) -> SumAccuracy {
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
    pub(super) sums: Option<Sums>,
    /// Of products that were rounded: the rounding errors, which a fused multiply-add does not make.
    pub(super) rounding: Option<Vec<f64>>,
    /// A bound was wider than one missing product.
    pub(super) drowned: bool,
}

/// What the elements of an accumulator were summed from.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) accuracy: SumAccuracy,
    /// The sum of the absolute values of the terms of each element.
    pub(super) magnitude: Vec<f64>,
    /// The largest such sum of a part; empty if there are none.
    pub(super) largest: Vec<f64>,
    /// Terms of each element.
    pub(super) terms: f64,
    /// All terms are whole numbers.
    pub(super) whole: bool,
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
    // An infinite number is as far away with a finite error.
    if error == 0.0 || x.is_infinite() && error.is_finite() {
        return (at, 0.0);
    }
    // The ends are computed with a rounding of their own.
    let error = error * (1.0 + 2f64.powi(-50)) + x.abs() * 2f64.powi(-53);
    let off = |end: f64| if end == at { 0.0 } else { (end - at).abs() };
    let (low, high) = (off(to(x - error)), off(to(x + error)));
    (at, if low.is_nan() || high.is_nan() { if at.is_nan() { 0.0 } else { f64::INFINITY } } else { low.max(high) })
}

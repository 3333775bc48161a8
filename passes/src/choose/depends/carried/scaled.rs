//! Sums of exponentials, which a loop keeps divided by that of the largest exponent so far (online softmax).
//!
//! ```text
//! let m_new = max(m, maximum(s, 1))
//! let p = exp(s - m_new)
//! l = l * exp(m - m_new) + sum(p, 1)
//! m = m_new
//! ```
//!
//! `l * exp(m)` is a sum as others are, and `l` is the same for all tiles as long as what it is divided by is the extreme that the iteration ends with.
//! So exponents are kept as what they are, elements and extremes with what multiplies them; an exponential is what the sum before is multiplied by (`Factor`), or
//! elements of the new sum (`Share`), with the extreme and what multiplies it (`Scale`).

use super::exponent::{Exponent, Term, factors, same_factors};
use super::kind::{Kind, Pad, function, mixed, negated, product, quotient, sum};
use super::tiles::{BEYOND, Tiles, literal};
use crate::rewrite::same_expr;
use tilec_ir::entities::Expr;
use tilec_ir::ops::Op;

impl Tiles<'_> {
    pub(super) fn sum(&mut self, a: Kind, b: Kind) -> Kind {
        let kind = sum(a, b);
        if kind != mixed(&[a, b]) {
            return kind;
        }
        let (Some(mut a), Some(b)) = (self.scales.exponent(a), self.scales.exponent(b)) else { return kind };
        for term in b.terms {
            let same = |t: &Term| {
                (t.extreme, t.last, t.negative) == (term.extreme, term.last, !term.negative)
                    && same_factors(self.k, &t.by, &term.by)
            };
            match a.terms.iter().position(same) {
                Some(at) => drop(a.terms.remove(at)),
                None => a.terms.push(term),
            }
        }
        a.rest = sum(a.rest, b.rest);
        self.scales.kind(a)
    }

    pub(super) fn negated(&mut self, a: Kind) -> Kind {
        match self.scales.exponent(a) {
            Some(mut exponent) => {
                exponent.terms.iter_mut().for_each(|term| term.negative = !term.negative);
                exponent.rest = negated(exponent.rest);
                self.scales.kind(exponent)
            }
            None => negated(a),
        }
    }

    /// A product of two expressions of these kinds.
    pub(super) fn product(&mut self, [a, b]: [Kind; 2], [x, y]: [Expr; 2]) -> Kind {
        let k = self.k;
        let signed = |kind, by| if literal(k, by).is_some_and(|x| x < 0.0) { negated(kind) } else { kind };
        let kind = product(signed(a, y), signed(b, x), same_expr(k, x, y));
        if kind != mixed(&[a, b]) {
            return kind;
        }
        let scaled =
            [(a, b, y), (b, a, x)].into_iter().find_map(|(own, other, by)| self.scaled(own, other, (by, false)));
        scaled.unwrap_or(kind)
    }

    /// A quotient; `by` is the divisor.
    pub(super) fn quotient(&mut self, a: Kind, b: Kind, by: Expr) -> Kind {
        let signed = if literal(self.k, by).is_some_and(|x| x < 0.0) { negated(a) } else { a };
        let kind = quotient(signed, b);
        if kind != mixed(&[a, b]) {
            return kind;
        }
        self.scaled(a, b, (by, true)).unwrap_or(kind)
    }

    /// An exponent, multiplied or divided by a number that does not change.
    fn scaled(&mut self, a: Kind, other: Kind, by: (Expr, bool)) -> Option<Kind> {
        let mut exponent =
            self.scales.exponent(a).filter(|exponent| other == Kind::Fixed && !exponent.terms.is_empty())?;
        let factors = factors(self.k, by);
        exponent.terms.iter_mut().for_each(|term| term.by.extend_from_slice(&factors));
        let negative = literal(self.k, by.0).is_some_and(|x| x < 0.0);
        exponent.rest = product(if negative { negated(exponent.rest) } else { exponent.rest }, other, false);
        Some(self.scales.kind(exponent))
    }

    /// The exponential of a value.
    pub(super) fn exponential(&mut self, op: Op, a: Kind) -> Kind {
        let Kind::Exponent(at) = a else { return function(op, a) };
        let Exponent { terms, rest } = self.scales.exponents[at as usize].clone();
        match (terms.as_slice(), rest) {
            ([x, y], Kind::Zero)
                if x.extreme == y.extreme && x.negative != y.negative && same_factors(self.k, &x.by, &y.by) =>
            {
                match (x.last, y.last) {
                    (None, Some(last)) => Kind::Factor(self.scales.scale(self.k, x, last, (op, x.negative))),
                    (Some(last), None) => Kind::Factor(self.scales.scale(self.k, y, last, (op, y.negative))),
                    _ => mixed(&[a]),
                }
            }
            ([Term { last: Some(last), .. }], Kind::Each { axes, .. }) => {
                let scale = self.scales.scale(self.k, &terms[0], *last, (op, !terms[0].negative));
                Kind::Share { axes, pad: function(op, rest).pad(), scale }
            }
            _ => mixed(&[a]),
        }
    }

    /// Whether a comparison says that an extreme is still the number that it began with.
    pub(super) fn guards(&self, kinds: [Kind; 2], [x, y]: [Expr; 2]) -> bool {
        let far = |e| literal(self.k, e).is_some_and(|x| x.abs() >= BEYOND);
        let extreme = |kind| matches!(kind, Kind::Old(_) | Kind::Grown(..));
        extreme(kinds[0]) && far(y) || extreme(kinds[1]) && far(x)
    }
}

/// What is selected by what is zero behind the end, or by what does not change.
pub(super) fn selected(condition: Kind, a: Kind, b: Kind) -> Option<Kind> {
    let masks = |axes: u32| match condition {
        Kind::Each { axes: own, pad } if own == axes => Some(pad.is_zero()),
        _ => None,
    };
    match (condition, a, b) {
        (Kind::Guard, Kind::Factor(_) | Kind::Grown(..) | Kind::Share { .. }, other) if other.is_fixed() => Some(a),
        (Kind::Guard, other, Kind::Factor(_) | Kind::Grown(..) | Kind::Share { .. }) if other.is_fixed() => Some(b),
        (_, Kind::Share { axes, pad, scale }, Kind::Zero) => {
            let pad = if masks(axes)? { Pad::Zero } else { pad };
            Some(Kind::Share { axes, pad, scale })
        }
        (_, Kind::Zero, Kind::Share { axes, pad, scale }) => {
            masks(axes)?;
            Some(Kind::Share { axes, pad, scale })
        }
        _ => None,
    }
}

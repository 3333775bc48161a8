//! Sums of exponentials that a loop keeps relative to the largest exponent so far (online softmax).
//!
//! ```text
//! let m_new = max(m, maximum(s, 1))
//! let p = exp(s - m_new)
//! l = l * exp(m - m_new) + sum(p, 1)
//! m = m_new
//! ```
//!
//! `l * exp(m)` is an ordinary sum, and `l` is the same for all tiles as long as it is relative to the extreme at the
//! end of the iteration. So exponents are represented as elements and extremes with their factors. An exponential is a
//! factor of the previous sum (`Factor`), or elements of the new sum (`Share`), with the extreme and its factor
//! (`Scale`).

use super::dependence_kind::{Kind, Scale, mixed, negated, product, quotient, sum};
use super::exponent::{Exponent, Term, factors, same_factors};
use super::tiles::{Tiles, literal};
use crate::analysis::past_end::{Pad, scaling};
use tilec_ir::entities::Expr;
use tilec_ir::ops::Op;

impl Tiles<'_> {
    /// The value of elements past the end.
    pub(super) fn pad(&self, kind: Kind, e: Expr) -> Pad {
        match literal(self.k, e) {
            Some(x) if kind.is_fixed() => Pad::literal(x),
            _ => kind.pad(),
        }
    }

    pub(super) fn sum(&mut self, a: Kind, b: Kind, pad: Pad) -> Kind {
        let kind = sum(a, b, pad);
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
        a.rest = sum(a.rest, b.rest, a.rest.pad().plus(b.rest.pad()));
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

    /// The product of two expressions of these kinds, which is `pad` past the end.
    pub(super) fn product(&mut self, [a, b]: [Kind; 2], [x, y]: [Expr; 2], pad: Pad) -> Kind {
        let k = self.k;
        let signed = |kind, by| if literal(k, by).is_some_and(|x| x < 0.0) { negated(kind) } else { kind };
        let kind = product(signed(a, y), signed(b, x), pad);
        if kind != mixed(&[a, b]) {
            return kind;
        }
        let scaled =
            [(a, b, y), (b, a, x)].into_iter().find_map(|(own, other, by)| self.scaled(own, other, (by, false)));
        scaled.unwrap_or(kind)
    }

    /// The quotient of two expressions of these kinds, which is `pad` past the end.
    pub(super) fn quotient(&mut self, [a, b]: [Kind; 2], [_, by]: [Expr; 2], pad: Pad) -> Kind {
        let signed = if literal(self.k, by).is_some_and(|x| x < 0.0) { negated(a) } else { a };
        let kind = quotient(signed, b, pad);
        if kind != mixed(&[a, b]) {
            return kind;
        }
        self.scaled(a, b, (by, true)).unwrap_or(kind)
    }

    /// An exponent, multiplied or divided by an invariant number.
    fn scaled(&mut self, a: Kind, other: Kind, by: (Expr, bool)) -> Option<Kind> {
        let mut exponent =
            self.scales.exponent(a).filter(|exponent| other == Kind::Fixed && !exponent.terms.is_empty())?;
        let factors = factors(self.k, by);
        exponent.terms.iter_mut().for_each(|term| term.by.extend_from_slice(&factors));
        let negative = literal(self.k, by.0).is_some_and(|x| x < 0.0);
        let (rest, pad) = (exponent.rest, scaling(self.k, by.0, self.pad(other, by.0)));
        let pad = if by.1 { rest.pad().divided_by(pad) } else { rest.pad().times(pad, false) };
        exponent.rest = product(if negative { negated(rest) } else { rest }, other, pad);
        Some(self.scales.kind(exponent))
    }

    /// The exponential of an exponent.
    pub(super) fn exponential(&mut self, op: Op, a: Kind) -> Kind {
        let Kind::Exponent(at) = a else { return mixed(&[a]) };
        let Exponent { terms, rest } = self.scales.exponents[at as usize].clone();
        match (terms.as_slice(), rest) {
            ([x, y], Kind::Zero)
                if x.extreme == y.extreme && x.negative != y.negative && same_factors(self.k, &x.by, &y.by) =>
            {
                let (up, down) = if x.negative { (y.last, x.last) } else { (x.last, y.last) };
                Kind::Factor { extreme: x.extreme, up, down, by: self.scales.by(self.k, &x.by, op) }
            }
            ([term], Kind::Each { axes, pad }) if let Some(last) = term.last => {
                let by = self.scales.by(self.k, &term.by, op);
                // Masked elements are below any extreme, so their exponentials are zero.
                let pad = if pad.is_low() { Pad::ZERO } else { Pad::UNKNOWN };
                Kind::Share { axes, pad, scale: Scale { extreme: term.extreme, last, by, negative: !term.negative } }
            }
            _ => mixed(&[a]),
        }
    }
}

//! The error function of f32, for which PTX has no instruction.
//!
//! Below 1, `x + x P(x^2)`; above, `1 - 2^Q(|x|)`, where `Q` approximates the base-two logarithm of the complement, which is
//! below 2^-25 from 4 on. Both polynomials are Chebyshev fits of our own in 40-digit arithmetic. Together with an exact
//! `ex2` the result is within 1.04 units in the last place; the 2 units of `ex2.approx` (PTX ISA 9.7.3.20) add at most half
//! a unit. NaN stays NaN, since no comparison with it holds.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

/// `(erf(x) - x) / x` in powers of `x^2`, highest first.
const P_COEFFICIENTS: [f32; 7] =
    [7.875_875e-5, -0.000_801_686_43, 0.005_189_087, -0.026_854_211, 0.112_835_94, -0.376_126_26, 0.128_379_17];

/// `log2(1 - erf(x))` in powers of `x`, highest first.
const Q_COEFFICIENTS: [f32; 9] = [
    2.361_910_2e-6,
    -6.644_771e-5,
    0.000_861_008_54,
    -0.006_866_646,
    0.038_117_643,
    -0.158_811_99,
    -0.911_532_3,
    -1.630_582_2,
    0.000_461_861_58,
];

impl Lower<'_> {
    /// `erf(x)`.
    pub(super) fn erf(&mut self, x: Reg) -> Reg {
        let class = Class::F32;
        let one = self.literal(1.0, class);
        let square = self.emit.pure(class, P::MulF32, [x.into(), x.into()]);
        let near = self.polynomial(&P_COEFFICIENTS, square);
        let near = self.emit.pure(class, P::FmaRnF32, [near.into(), x.into(), x.into()]);

        let size = self.emit.pure(class, P::AbsF32, [x.into()]);
        let four = self.literal(4.0, class);
        let bounded = self.emit.pure(class, P::MinF32, [size.into(), four.into()]);
        let log = self.polynomial(&Q_COEFFICIENTS, bounded);
        // The argument of `ex2` gives at least 2^-27, so nothing is flushed to zero.
        let rest = self.emit.pure(class, P::Ex2ApproxFtzF32, [log.into()]);
        let far = self.emit.pure(class, P::SubF32, [one.into(), rest.into()]);
        self.odd(x, size, near, (far, 1.0))
    }

    /// An odd function of `x` with `|x| = size`: `near`, or `far` from `limit` on, with the sign of `x`, also for
    /// zeros. NaN takes `near`.
    pub(super) fn odd(&mut self, x: Reg, size: Reg, near: Reg, (far, limit): (Reg, f64)) -> Reg {
        let bits = self.emit.pure(Class::B32, P::MovB32F32, [x.into()]);
        let sign = self.emit.pure(Class::B32, P::AndB32, [bits.into(), Operand::Imm(0x8000_0000)]);
        let limit = self.literal(limit, Class::F32);
        let is_far = self.emit.pure(Class::Pred, P::SetpGeF32, [size.into(), limit.into()]);
        let value = self.emit.pure(Class::F32, P::SelpF32, [far.into(), near.into(), is_far.into()]);
        let bits = self.emit.pure(Class::B32, P::MovB32F32, [value.into()]);
        let bits = self.emit.pure(Class::B32, P::OrB32, [bits.into(), sign.into()]);
        self.emit.pure(Class::F32, P::MovF32B32, [bits.into()])
    }

    /// A polynomial in `x`, with the coefficient of the highest power first.
    pub(super) fn polynomial(&mut self, coefficients: &[f32], x: Reg) -> Reg {
        let mut sum = self.literal(f64::from(coefficients[0]), Class::F32);
        for &c in &coefficients[1..] {
            let c = self.literal(f64::from(c), Class::F32);
            sum = self.emit.pure(Class::F32, P::FmaRnF32, [sum.into(), x.into(), c.into()]);
        }
        sum
    }
}

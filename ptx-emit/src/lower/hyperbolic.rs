//! The hyperbolic tangent of f32 within 2 units in the last place (`tanh.approx` is within 2^-11).
//!
//! Below 1.15, `x + x P(x^2)`, where `P` is a fit of our own with a relative error of 2^-28.5 of the result. Above,
//! `1 - 2 / (2^(2 |x| log2 e) + 1)`, which is insensitive to errors of the power. The error is 1.29 units with exact
//! `ex2` and `rcp`, and 1.81 units with the errors of `ex2.approx` (2 units) and `rcp.approx` (1 unit; PTX ISA
//! 9.7.3.20, 9.7.3.13). Infinities give 1 and -1. NaN stays NaN, because comparisons with it are false.

use super::state::Lower;
use crate::inst::{Class, Reg};
use crate::ops::Op as P;

/// `(tanh(x) - x) / x^3` in powers of `x^2`, highest first.
const COEFFICIENTS: [f32; 8] = [
    8.020_077e-5,
    -0.000_665_956_47,
    0.002_777_161,
    -0.008_326_34,
    0.021_653_209,
    -0.053_918_783,
    0.133_327_78,
    -0.333_333_1,
];

/// From here on the second formula is used.
const FAR: f64 = 1.15;

impl Lower<'_> {
    /// `tanh(x)`.
    pub(super) fn tanh(&mut self, x: Reg) -> Reg {
        let class = Class::F32;
        let square = self.emit.pure(class, P::MulF32, [x.into(), x.into()]);
        let near = self.polynomial(&COEFFICIENTS, square);
        let near = self.emit.pure(class, P::MulF32, [near.into(), square.into()]);
        let near = self.emit.pure(class, P::FmaRnF32, [near.into(), x.into(), x.into()]);

        let size = self.emit.pure(class, P::AbsF32, [x.into()]);
        let far = self.tanh_of_powers(size);
        self.odd(x, size, near, (far, FAR))
    }

    /// `1 - 2 / (2^(2 x log2 e) + 1)`: within 2^-22, and exact at both infinities. If `.ftz` flushes the power or the
    /// reciprocal, the result is 1 or -1.
    pub(super) fn tanh_of_powers(&mut self, x: Reg) -> Reg {
        let class = Class::F32;
        let factor = self.literal(2.0 * std::f64::consts::LOG2_E, class);
        let scaled = self.emit.pure(class, P::MulF32, [x.into(), factor.into()]);
        let power = self.emit.pure(class, P::Ex2ApproxFtzF32, [scaled.into()]);
        let (one, twice) = (self.literal(1.0, class), self.literal(-2.0, class));
        let below = self.emit.pure(class, P::AddF32, [power.into(), one.into()]);
        let part = self.emit.pure(class, P::RcpApproxFtzF32, [below.into()]);
        self.emit.pure(class, P::FmaRnF32, [part.into(), twice.into(), one.into()])
    }
}

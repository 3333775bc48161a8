//! Functions of f64 that have no instruction, within 2 units in the last place.
//!
//! `exp` and `exp2` split off a power of two. It is multiplied back in two factors, so that only the last
//! multiplication rounds. A series covers the rest, which is at most `ln 2 / 2` in size. The logarithm splits its
//! argument into an exponent and a fraction `m` between `sqrt(1/2)` and `sqrt(2)`. With `f = m - 1` and `s = f / (2 +
//! f)`, the logarithm of `m` is `f - f^2/2 + s (f^2/2 + 2/3 s^2 + 2/5 s^4 + ..)`, kept as the sum of two numbers until
//! the exponent is added. `tanh(x)` is `e / (e + 2)`, `e = exp(2 |x|) - 1`.
//!
//! Additions and multiplications have a rounding modifier, so that ptxas does not fuse them: rounding errors are
//! computed from their results.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::f64::consts::{LN_2, LOG2_E, SQRT_2};
use tilec_ir::ops::Op;

/// `ln 2` in two parts. The first has 21 bits, so its product with an exponent is exact.
pub(super) const LN2_PARTS: [f64; 2] = [f64::from_bits(0x3fe6_2e42_0000_0000), f64::from_bits(0x3e9f_df47_3de6_af28)];
/// The rounding error of `1 / ln 2`.
const LOG2_E_REST: f64 = f64::from_bits(0x3c77_77d0_ffda_0d24);
/// Terms of the series of `(exp(r) - 1 - r) / r^2`: the next term is below 2^-58 for `r = ln 2 / 2`.
pub(super) const EXP_TERMS: u32 = 13;
/// Terms of the series of `log`: the next term is below 2^-60.
const LOG_TERMS: u32 = 11;
/// Beyond plus or minus this, `exp2` and `exp` are infinite or zero.
const FAR: [f64; 2] = [1100.0, 760.0];
/// From here on `tanh` is 1.
const FLAT: f64 = 20.0;
/// The exponent bias of f64.
const BIAS: i64 = 1023;
/// Fraction bits of f64.
const FRACTION: i64 = 52;
/// The power of two that scales subnormal numbers to normal ones.
const RAISED: i32 = 54;

/// `n!`, exact up to 22.
pub(super) fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}

impl Lower<'_> {
    pub(super) fn d(&mut self, op: P, xs: &[Reg]) -> Reg {
        let xs: Vec<Operand> = xs.iter().map(|&x| x.into()).collect();
        self.emit.pure(Class::F64, op, xs)
    }

    pub(super) fn long(&mut self, op: P, x: Reg, by: i64) -> Reg {
        self.emit.pure(Class::B64, op, [x.into(), Operand::Imm(by)])
    }

    pub(super) fn test(&mut self, op: P, x: Reg, y: f64) -> Reg {
        self.emit.pure(Class::Pred, op, [x.into(), Operand::F64(y)])
    }

    pub(super) fn double(&mut self, x: f64) -> Reg {
        self.literal(x, Class::F64)
    }

    /// A function of f64 without an instruction; `None`: it is not implemented.
    pub(super) fn function_of_f64(&mut self, op: Op, x: Reg) -> Option<Reg> {
        Some(match op {
            Op::Exp2 => self.exp_f64(x, true),
            Op::Exp => self.exp_f64(x, false),
            Op::Log2 => self.log_f64(x, true),
            Op::Log => self.log_f64(x, false),
            Op::Tanh | Op::FastTanh => self.tanh_f64(x),
            Op::Rsqrt => {
                let (root, one) = (self.d(P::SqrtRnF64, &[x]), self.double(1.0));
                self.d(P::DivRnF64, &[one, root])
            }
            _ => return None,
        })
    }

    /// `c0 + c1 x + ..`, with the coefficient of the highest power first.
    pub(super) fn series(&mut self, coefficients: &[f64], x: Reg) -> Reg {
        let mut sum = self.double(coefficients[0]);
        for &c in &coefficients[1..] {
            let c = self.double(c);
            sum = self.d(P::FmaRnF64, &[sum, x, c]);
        }
        sum
    }

    /// `exp(r) - 1` for `|r| <= ln 2 / 2`.
    fn exp_less_one(&mut self, r: Reg) -> Reg {
        let coefficients: Vec<f64> = (2..2 + EXP_TERMS).rev().map(|n| 1.0 / factorial(n)).collect();
        let tail = self.series(&coefficients, r);
        let square = self.d(P::MulRnF64, &[r, r]);
        self.d(P::FmaRnF64, &[square, tail, r])
    }

    /// The integer nearest to `x / ln 2`, and the rest of `x`.
    fn without_powers(&mut self, x: Reg) -> (Reg, Reg) {
        let per = self.double(LOG2_E);
        let count = self.d(P::MulRnF64, &[x, per]);
        let count = self.d(P::CvtRniF64F64, &[count]);
        let rest = LN2_PARTS.into_iter().fold(x, |rest, part| {
            let part = self.double(-part);
            self.d(P::FmaRnF64, &[count, part, rest])
        });
        (count, rest)
    }

    /// `2^n` for a 64-bit integer `n` from -1022 to 1023.
    fn power_of_two(&mut self, n: Reg) -> Reg {
        let biased = self.long(P::AddS64, n, BIAS);
        let bits = self.long(P::ShlB64, biased, FRACTION);
        self.d(P::MovF64B64, &[bits])
    }

    /// `exp2(x)`, or `exp(x)`.
    pub(super) fn exp_f64(&mut self, x: Reg, of_two: bool) -> Reg {
        let far = if of_two { FAR[0] } else { FAR[1] };
        let (least, most) = (self.double(-far), self.double(far));
        let near = self.d(P::MaxF64, &[x, least]);
        let near = self.d(P::MinF64, &[near, most]);
        let (count, rest) = if of_two {
            let count = self.d(P::CvtRniF64F64, &[near]);
            let rest = self.d(P::SubRnF64, &[near, count]);
            let ln = self.double(LN_2);
            (count, self.d(P::MulRnF64, &[rest, ln]))
        } else {
            self.without_powers(near)
        };
        let (less, one) = (self.exp_less_one(rest), self.double(1.0));
        let power = self.d(P::AddRnF64, &[less, one]);
        let power = self.times_power_of_two(power, count);
        self.nan_if_nan(x, power)
    }

    /// `x 2^n` for an integer `n` from -2044 to 2046, in two factors, so that only the last multiplication rounds.
    pub(super) fn times_power_of_two(&mut self, x: Reg, n: Reg) -> Reg {
        let n = self.emit.pure(Class::B64, P::CvtRniS64F64, [n.into()]);
        let first = self.long(P::ShrS64, n, 1);
        let second = self.emit.pure(Class::B64, P::SubS64, [n.into(), first.into()]);
        [first, second].into_iter().fold(x, |x, n| {
            let factor = self.power_of_two(n);
            self.d(P::MulRnF64, &[x, factor])
        })
    }

    /// The sum of two numbers and its rounding error; the first is zero or the larger one (Dekker, 1971).
    pub(super) fn sum_in_two_f64(&mut self, a: Reg, b: Reg) -> [Reg; 2] {
        let sum = self.d(P::AddRnF64, &[a, b]);
        let added = self.d(P::SubRnF64, &[sum, a]);
        [sum, self.d(P::SubRnF64, &[b, added])]
    }

    /// A non-negative number with the sign of `x`.
    pub(super) fn with_sign_f64(&mut self, size: Reg, x: Reg) -> Reg {
        let sign = self.emit.pure(Class::B64, P::MovB64F64, [x.into()]);
        let sign = self.long(P::ShrU64, sign, 63);
        let sign = self.long(P::ShlB64, sign, 63);
        let bits = self.emit.pure(Class::B64, P::MovB64F64, [size.into()]);
        let bits = self.emit.pure(Class::B64, P::OrB64, [bits.into(), sign.into()]);
        self.d(P::MovF64B64, &[bits])
    }

    /// `y`, or NaN if `x` is NaN.
    pub(super) fn nan_if_nan(&mut self, x: Reg, y: Reg) -> Reg {
        let number = self.emit.pure(Class::Pred, P::SetpEqF64, [x.into(), x.into()]);
        let none = self.d(P::AddRnF64, &[x, x]);
        self.choose(number, y, none)
    }

    /// `tanh(x)`.
    fn tanh_f64(&mut self, x: Reg) -> Reg {
        let (size, flat) = (self.d(P::AbsF64, &[x]), self.double(FLAT));
        let size = self.d(P::MinF64, &[size, flat]);
        let twice = self.d(P::AddRnF64, &[size, size]);
        let (count, rest) = self.without_powers(twice);
        let less = self.exp_less_one(rest);
        let n = self.emit.pure(Class::B64, P::CvtRniS64F64, [count.into()]);
        let (factor, minus) = (self.power_of_two(n), self.double(-1.0));
        let above = self.d(P::AddRnF64, &[factor, minus]);
        let e = self.d(P::FmaRnF64, &[less, factor, above]);
        let two = self.double(2.0);
        let below = self.d(P::AddRnF64, &[e, two]);
        let value = self.d(P::DivRnF64, &[e, below]);
        let value = self.with_sign_f64(value, x);
        self.nan_if_nan(x, value)
    }

    /// `x = 2^e (1 + f)`: the exponent, and `f` between `sqrt(1/2) - 1` and `sqrt(2) - 1`.
    pub(super) fn exponent_and_fraction(&mut self, x: Reg) -> (Reg, Reg) {
        let small = self.test(P::SetpLtF64, x, f64::MIN_POSITIVE);
        let factor = self.double(2f64.powi(RAISED));
        let scaled = self.d(P::MulRnF64, &[x, factor]);
        let scaled = self.choose(small, scaled, x);
        let bits = self.emit.pure(Class::B64, P::MovB64F64, [scaled.into()]);
        let half_root = (SQRT_2 / 2.0).to_bits() as i64;
        let above = self.long(P::SubS64, bits, half_root);
        let exponent = self.long(P::ShrS64, above, FRACTION);
        let field = self.long(P::ShlB64, exponent, FRACTION);
        let bits = self.emit.pure(Class::B64, P::SubS64, [bits.into(), field.into()]);
        let (fraction, minus) = (self.d(P::MovF64B64, &[bits]), self.double(-1.0));
        let fraction = self.d(P::AddRnF64, &[fraction, minus]);
        let exponent = self.d(P::CvtRnF64S64, &[exponent]);
        let raised = self.double(f64::from(-RAISED));
        let less = self.d(P::AddRnF64, &[exponent, raised]);
        (self.choose(small, less, exponent), fraction)
    }

    /// `log(1 + f)` as the sum of two numbers.
    fn log_of_fraction(&mut self, f: Reg) -> [Reg; 2] {
        let (two, half) = (self.double(2.0), self.double(0.5));
        let below = self.d(P::AddRnF64, &[f, two]);
        let s = self.d(P::DivRnF64, &[f, below]);
        let square = self.d(P::MulRnF64, &[s, s]);
        let coefficients: Vec<f64> = (1..=LOG_TERMS).rev().map(|k| 2.0 / f64::from(2 * k + 1)).collect();
        let series = self.series(&coefficients, square);
        let halved = self.d(P::MulRnF64, &[f, half]);
        let halved = self.d(P::MulRnF64, &[halved, f]);
        let inner = self.d(P::FmaRnF64, &[series, square, halved]);
        let high = self.d(P::SubRnF64, &[f, halved]);
        let lost = self.d(P::SubRnF64, &[f, high]);
        let lost = self.d(P::SubRnF64, &[lost, halved]);
        [high, self.d(P::FmaRnF64, &[s, inner, lost])]
    }

    /// `log2(x)`, or `log(x)`.
    fn log_f64(&mut self, x: Reg, of_two: bool) -> Reg {
        let (exponent, f) = self.exponent_and_fraction(x);
        let [high, low] = self.log_of_fraction(f);
        let (whole, part, rest) = if of_two {
            let [factor, factor_rest] = [LOG2_E, LOG2_E_REST].map(|c| self.double(c));
            let part = self.d(P::MulRnF64, &[high, factor]);
            let rest = self.d(P::NegF64, &[part]);
            let rest = self.d(P::FmaRnF64, &[high, factor, rest]);
            let rest = self.d(P::FmaRnF64, &[high, factor_rest, rest]);
            (exponent, part, self.d(P::FmaRnF64, &[low, factor, rest]))
        } else {
            let [factor, factor_rest] = LN2_PARTS.map(|c| self.double(c));
            let whole = self.d(P::MulRnF64, &[exponent, factor]);
            (whole, high, self.d(P::FmaRnF64, &[exponent, factor_rest, low]))
        };
        // The exponent's part is zero, or larger than that of the fraction.
        let [sum, lost] = self.sum_in_two_f64(whole, part);
        let rest = self.d(P::AddRnF64, &[lost, rest]);
        let log = self.d(P::AddRnF64, &[sum, rest]);

        let [infinite, nothing] = [f64::INFINITY, f64::NEG_INFINITY].map(|c| self.double(c));
        let (none, all) = (self.double(f64::NAN), self.test(P::SetpEqF64, x, f64::INFINITY));
        let log = self.choose(all, infinite, log);
        let zero = self.test(P::SetpEqF64, x, 0.0);
        let log = self.choose(zero, nothing, log);
        let negative = self.test(P::SetpLtF64, x, 0.0);
        let log = self.choose(negative, none, log);
        self.nan_if_nan(x, log)
    }
}

//! `pow(x, y)` of f64: within 0.8 units in the last place.
//!
//! The power is `exp(y log |x|)`; an odd power of a negative number is negative. An absolute error of the exponent,
//! which may be 745, becomes a relative error of the result, so the logarithm is a sum of two f64. With
//! `|x| = 2^e (1 + f)`, `f` between `sqrt(1/2) - 1` and `sqrt(2) - 1`, and `s = f / (2 + f)`, it is
//! `e ln 2 + s (2 + 2/3 s^2 + 2/5 s^4 + ..)`. The factor `2 + s^2 (2/3 + ..)` is kept in two parts, too. The relative
//! error of the logarithm is at most 2^-65.

use super::functions_f64::{EXP_TERMS, LN2_PARTS, factorial};
use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::f64::consts::LOG2_E;

/// The rounding error of 2/3.
const TWO_THIRDS_REST: f64 = f64::from_bits(0x3c85_5555_5555_5555);
/// The last term of the series is that of `s^(2 n)`; the next is below 2^-70 of the first.
const TERMS: u32 = 13;
/// Beyond plus or minus this, results are infinite or zero.
const FAR: f64 = 760.0;

impl Lower<'_> {
    /// `pow(x, y)` with the special cases of IEEE 754 for zero, infinite and NaN operands.
    pub(super) fn power_f64(&mut self, x: Reg, y: Reg) -> Reg {
        let size = self.d(P::AbsF64, &[x]);
        let [high, low] = self.log_in_two_f64(size);
        let exponent = self.d(P::MulRnF64, &[y, high]);
        let back = self.d(P::NegF64, &[exponent]);
        let rest = self.d(P::FmaRnF64, &[y, high, back]);
        let rest = self.d(P::FmaRnF64, &[y, low, rest]);
        // Where the exponent is out of range, the low part is dropped: it may come from infinities.
        let [zero, one, half, least, most] = [0.0, 1.0, 0.5, -FAR, FAR].map(|c| self.double(c));
        let reach = self.d(P::AbsF64, &[exponent]);
        let near = self.test(P::SetpLtF64, reach, FAR);
        let rest = self.choose(near, rest, zero);
        let exponent = self.d(P::MaxF64, &[exponent, least]);
        let exponent = self.d(P::MinF64, &[exponent, most]);
        let power = self.exp_of_two_f64(exponent, rest);
        // 1 to any power is 1, but infinity times its logarithm is NaN.
        let unit = self.test(P::SetpEqF64, size, 1.0);
        let power = self.choose(unit, one, power);

        // The sign: whether `y` is an integer, and odd.
        let floor = self.d(P::CvtRmiF64F64, &[y]);
        let whole = self.emit.pure(Class::Pred, P::SetpEqF64, [floor.into(), y.into()]);
        let halved = self.d(P::MulRnF64, &[y, half]);
        let floor = self.d(P::CvtRmiF64F64, &[halved]);
        let odd = self.emit.pure(Class::Pred, P::SetpNeuF64, [floor.into(), halved.into()]);
        let odd = self.emit.pure(Class::Pred, P::AndPred, [odd.into(), whole.into()]);
        let bits = self.emit.pure(Class::B64, P::MovB64F64, [x.into()]);
        let signed = self.emit.pure(Class::Pred, P::SetpLtS64, [bits.into(), Operand::Imm(0)]);
        let turned = self.emit.pure(Class::Pred, P::AndPred, [odd.into(), signed.into()]);
        let negative = self.d(P::NegF64, &[power]);
        let power = self.choose(turned, negative, power);

        // NaN: fractional powers of finite negative numbers, and NaN operands.
        let below = self.test(P::SetpLtF64, x, 0.0);
        let finite = self.test(P::SetpNeuF64, size, f64::INFINITY);
        let broken = self.emit.pure(Class::Pred, P::NotPred, [whole.into()]);
        let none = self.emit.pure(Class::Pred, P::AndPred, [below.into(), finite.into()]);
        let none = self.emit.pure(Class::Pred, P::AndPred, [none.into(), broken.into()]);
        let nan = self.double(f64::NAN);
        let power = self.choose(none, nan, power);
        let power = self.nan_if_nan(x, power);
        let power = self.nan_if_nan(y, power);
        let plain = self.test(P::SetpEqF64, y, 0.0);
        let is_one = self.test(P::SetpEqF64, x, 1.0);
        let plain = self.emit.pure(Class::Pred, P::OrPred, [plain.into(), is_one.into()]);
        self.choose(plain, one, power)
    }

    /// The product of two numbers and its rounding error.
    fn product_in_two_f64(&mut self, a: Reg, b: Reg) -> [Reg; 2] {
        let product = self.d(P::MulRnF64, &[a, b]);
        let back = self.d(P::NegF64, &[product]);
        [product, self.d(P::FmaRnF64, &[a, b, back])]
    }

    /// The logarithm of a non-negative number as the sum of two; infinite for zero and infinity.
    fn log_in_two_f64(&mut self, x: Reg) -> [Reg; 2] {
        let (exponent, f) = self.exponent_and_fraction(x);
        let two = self.double(2.0);
        let sum = self.d(P::AddRnF64, &[f, two]);
        let back = self.d(P::SubRnF64, &[sum, two]);
        let sum_rest = self.d(P::SubRnF64, &[f, back]);
        let s = self.d(P::DivRnF64, &[f, sum]);
        let back = self.d(P::NegF64, &[s]);
        let rest = self.d(P::FmaRnF64, &[back, sum, f]);
        let rest = self.d(P::FmaRnF64, &[back, sum_rest, rest]);
        let s_rest = self.d(P::DivRnF64, &[rest, sum]);

        let [square, square_rest] = self.product_in_two_f64(s, s);
        let twice = self.d(P::AddRnF64, &[s, s]);
        let square_rest = self.d(P::FmaRnF64, &[twice, s_rest, square_rest]);
        // 2/3 + 2/5 s^2 + ..
        let coefficients: Vec<f64> = (2..=TERMS).rev().map(|k| 2.0 / f64::from(2 * k + 1)).collect();
        let others = self.series(&coefficients, square);
        let others = self.d(P::MulRnF64, &[others, square]);
        let [first, first_rest] = [2.0 / 3.0, TWO_THIRDS_REST].map(|c| self.double(c));
        let [inner, lost] = self.sum_in_two_f64(first, others);
        let inner_rest = self.d(P::AddRnF64, &[lost, first_rest]);
        // 2 + s^2 times that
        let [part, part_rest] = self.product_in_two_f64(square, inner);
        let beside = self.d(P::FmaRnF64, &[square_rest, inner, part_rest]);
        let part_rest = self.d(P::FmaRnF64, &[square, inner_rest, beside]);
        let [factor, lost] = self.sum_in_two_f64(two, part);
        let factor_rest = self.d(P::AddRnF64, &[lost, part_rest]);
        let [log, log_rest] = self.product_in_two_f64(s, factor);
        let beside = self.d(P::FmaRnF64, &[s_rest, factor, log_rest]);
        let log_rest = self.d(P::FmaRnF64, &[s, factor_rest, beside]);

        // The exponent's part is zero, or larger than the fraction's; the first part of `ln 2` times an exponent is exact.
        let [ln, ln_rest] = LN2_PARTS.map(|c| self.double(c));
        let whole = self.d(P::MulRnF64, &[exponent, ln]);
        let [high, lost] = self.sum_in_two_f64(whole, log);
        let low = self.d(P::AddRnF64, &[lost, log_rest]);
        let [small, small_rest] = self.product_in_two_f64(exponent, ln_rest);
        let [high, lost] = self.sum_in_two_f64(high, small);
        let lost = self.d(P::AddRnF64, &[lost, small_rest]);
        let low = self.d(P::AddRnF64, &[low, lost]);

        let [infinite, nothing] = [f64::INFINITY, f64::NEG_INFINITY].map(|c| self.double(c));
        let all = self.test(P::SetpEqF64, x, f64::INFINITY);
        let high = self.choose(all, infinite, high);
        let zero = self.test(P::SetpEqF64, x, 0.0);
        [self.choose(zero, nothing, high), low]
    }

    /// `exp(t + rest)` for `t` between -760 and 760.
    fn exp_of_two_f64(&mut self, t: Reg, rest: Reg) -> Reg {
        let [per, ln, ln_rest, one] = [LOG2_E, -LN2_PARTS[0], LN2_PARTS[1], 1.0].map(|c| self.double(c));
        let count = self.d(P::MulRnF64, &[t, per]);
        let count = self.d(P::CvtRniF64F64, &[count]);
        // The first step is exact.
        let left = self.d(P::FmaRnF64, &[count, ln, t]);
        let [part, part_rest] = self.product_in_two_f64(count, ln_rest);
        let high = self.d(P::SubRnF64, &[left, part]);
        let lost = self.d(P::SubRnF64, &[left, high]);
        let lost = self.d(P::SubRnF64, &[lost, part]);
        let lost = self.d(P::SubRnF64, &[lost, part_rest]);
        let low = self.d(P::AddRnF64, &[lost, rest]);
        let [high, low] = self.sum_in_two_f64(high, low);

        // 1 + r + r^2 (1/2 + ..), and `rest` times the derivative.
        let coefficients: Vec<f64> = (2..2 + EXP_TERMS).rev().map(|n| 1.0 / factorial(n)).collect();
        let tail = self.series(&coefficients, high);
        let square = self.d(P::MulRnF64, &[high, high]);
        let [sum, lost] = self.sum_in_two_f64(one, high);
        let beside = self.d(P::FmaRnF64, &[low, high, low]);
        let lost = self.d(P::FmaRnF64, &[square, tail, lost]);
        let beside = self.d(P::AddRnF64, &[lost, beside]);
        let power = self.d(P::AddRnF64, &[sum, beside]);
        self.times_power_of_two(power, count)
    }
}

//! `pow(x, y)` of f32.
//!
//! The power is `2^(y log2 |x|)`; an odd power of a negative number is negative. An absolute error of the exponent,
//! which may be 128, becomes a relative error of the result, so the logarithm is a sum of two f32. With `|x| = 2^e m`,
//! `m` between `sqrt(1/2)` and `sqrt(2)`, and `s = (m - 1) / (m + 1)`, it is `e + 2/ln 2 (s + s^3/3 + s^5/5 + ..)`. The
//! first term is kept in two parts and the others in one, because they are at most a hundredth of it. The exponent is
//! clamped to 160, where results are infinite or zero. `2^t` is the product of `2^n`, in two factors, and a polynomial.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

/// `2/ln 2`, in two parts.
const FIRST: [f32; 2] = [f32::from_bits(0x4038_aa3b), f32::from_bits(0x3325_7060)];
/// `2/ln 2` divided by 11, 9, 7, 5 and 3.
const OTHERS: [f32; 5] = [0.262_308_19, 0.320_598_9, 0.412_198_58, 0.577_078_04, 0.961_796_7];
/// `ln(2)^n / n!`, from 7 to 0.
const POWERS: [f32; 8] = [
    0.000_015_252_734,
    0.000_154_035_3,
    0.001_333_355_8,
    0.009_618_129,
    0.055_504_11,
    0.240_226_5,
    std::f32::consts::LN_2,
    1.0,
];
/// Exponents beyond which results are infinite, or zero.
const FAR: f64 = 160.0;
/// The exponent bias of f32.
const BIAS: i64 = 127;
/// `sqrt(1/2)`.
const HALF_ROOT: i64 = 0x3f35_04f3;

impl Lower<'_> {
    fn f(&mut self, op: P, xs: &[Reg]) -> Reg {
        let xs: Vec<Operand> = xs.iter().map(|&x| x.into()).collect();
        self.emit.pure(Class::F32, op, xs)
    }

    fn bits_of(&mut self, op: P, x: Reg, by: i64) -> Reg {
        self.emit.pure(Class::B32, op, [x.into(), Operand::Imm(by)])
    }

    fn holds(&mut self, op: P, x: Reg, y: Reg) -> Reg {
        self.emit.pure(Class::Pred, op, [x.into(), y.into()])
    }

    fn constant(&mut self, x: f64) -> Reg {
        self.literal(x, Class::F32)
    }

    /// `pow(x, y)` with the special cases of IEEE 754 for zero, infinite and NaN operands.
    pub(super) fn power(&mut self, x: Reg, y: Reg) -> Reg {
        let [zero, one, half] = [0.0, 1.0, 0.5].map(|c| self.constant(c));
        let size = self.f(P::AbsF32, &[x]);
        let [high, low] = self.log2_in_two(size);
        let exponent = self.f(P::MulRnF32, &[y, high]);
        let rest = self.f(P::NegF32, &[exponent]);
        let rest = self.f(P::FmaRnF32, &[y, high, rest]);
        let rest = self.f(P::FmaRnF32, &[y, low, rest]);
        // Where the exponent is out of range, the low part is dropped: it may come from infinities.
        let far = self.constant(FAR);
        let reach = self.f(P::AbsF32, &[exponent]);
        let near = self.holds(P::SetpLtF32, reach, far);
        let rest = self.choose(near, rest, zero);
        let least = self.constant(-FAR);
        let exponent = self.f(P::MaxF32, &[exponent, least]);
        let exponent = self.f(P::MinF32, &[exponent, far]);
        let power = self.exp2_of_two(exponent, rest);
        // 1 to any power is 1, but infinity times its logarithm is NaN.
        let unit = self.holds(P::SetpEqF32, size, one);
        let power = self.choose(unit, one, power);

        // The sign: whether `y` is an integer, and odd.
        let floor = self.f(P::CvtRmiF32F32, &[y]);
        let whole = self.holds(P::SetpEqF32, floor, y);
        let halved = self.f(P::MulRnF32, &[y, half]);
        let floor = self.f(P::CvtRmiF32F32, &[halved]);
        let even = self.holds(P::SetpEqF32, floor, halved);
        let odd = self.emit.pure(Class::Pred, P::NotPred, [even.into()]);
        let odd = self.emit.pure(Class::Pred, P::AndPred, [odd.into(), whole.into()]);
        let bits = self.emit.pure(Class::B32, P::MovB32F32, [x.into()]);
        let signed = self.emit.pure(Class::Pred, P::SetpLtS32, [bits.into(), Operand::Imm(0)]);
        let turned = self.emit.pure(Class::Pred, P::AndPred, [odd.into(), signed.into()]);
        let negative = self.f(P::NegF32, &[power]);
        let power = self.choose(turned, negative, power);

        // NaN: fractional powers of finite negative numbers, and NaN operands.
        let below = self.holds(P::SetpLtF32, x, zero);
        let infinity = self.constant(f64::INFINITY);
        let finite = self.holds(P::SetpNeuF32, size, infinity);
        let broken = self.emit.pure(Class::Pred, P::NotPred, [whole.into()]);
        let none = self.emit.pure(Class::Pred, P::AndPred, [below.into(), finite.into()]);
        let none = self.emit.pure(Class::Pred, P::AndPred, [none.into(), broken.into()]);
        let nan = self.constant(f64::NAN);
        let power = self.choose(none, nan, power);
        let sum = self.f(P::AddRnF32, &[x, y]);
        let numbers = self.holds(P::SetpEqF32, x, x);
        let power = self.choose(numbers, power, sum);
        let numbers = self.holds(P::SetpEqF32, y, y);
        let power = self.choose(numbers, power, sum);
        let plain = self.holds(P::SetpEqF32, y, zero);
        let is_one = self.holds(P::SetpEqF32, x, one);
        let plain = self.emit.pure(Class::Pred, P::OrPred, [plain.into(), is_one.into()]);
        self.choose(plain, one, power)
    }

    /// The sum of two numbers and its rounding error; the first is zero or the larger one (Dekker, 1971).
    fn sum_in_two(&mut self, a: Reg, b: Reg) -> [Reg; 2] {
        let sum = self.f(P::AddRnF32, &[a, b]);
        let added = self.f(P::SubRnF32, &[sum, a]);
        [sum, self.f(P::SubRnF32, &[b, added])]
    }

    /// The base-two logarithm of a non-negative number as the sum of two; infinite for zero and infinity.
    fn log2_in_two(&mut self, x: Reg) -> [Reg; 2] {
        let [zero, one, infinity] = [0.0, 1.0, f64::INFINITY].map(|c| self.constant(c));
        // Scales subnormal numbers to normal ones.
        let normal = self.constant(f64::from(f32::MIN_POSITIVE));
        let factor = self.constant(f64::from(1u32 << 24));
        let small = self.holds(P::SetpLtF32, x, normal);
        let scaled = self.f(P::MulRnF32, &[x, factor]);
        let scaled = self.choose(small, scaled, x);
        let bits = self.emit.pure(Class::B32, P::MovB32F32, [scaled.into()]);
        // The exponent that leaves a fraction between sqrt(1/2) and sqrt(2).
        let above = self.bits_of(P::SubS32, bits, HALF_ROOT);
        let exponent = self.bits_of(P::ShrS32, above, 23);
        let field = self.bits_of(P::ShlB32, exponent, 23);
        let bits = self.emit.pure(Class::B32, P::SubS32, [bits.into(), field.into()]);
        let fraction = self.emit.pure(Class::F32, P::MovF32B32, [bits.into()]);
        let exponent = self.emit.pure(Class::F32, P::CvtRnF32S32, [exponent.into()]);
        let minus = self.constant(-24.0);
        let less = self.f(P::AddRnF32, &[exponent, minus]);
        let exponent = self.choose(small, less, exponent);

        // s = (m - 1) / (m + 1), in two parts. The difference is exact.
        let minus_one = self.constant(-1.0);
        let difference = self.f(P::AddRnF32, &[fraction, minus_one]);
        let sum = self.f(P::AddRnF32, &[fraction, one]);
        let back = self.f(P::AddRnF32, &[sum, minus_one]);
        let sum_rest = self.f(P::SubRnF32, &[fraction, back]);
        let reciprocal = self.f(P::RcpApproxFtzF32, &[sum]);
        let s = self.f(P::MulRnF32, &[difference, reciprocal]);
        let negative = self.f(P::NegF32, &[s]);
        let rest = self.f(P::FmaRnF32, &[negative, sum, difference]);
        let rest = self.f(P::FmaRnF32, &[negative, sum_rest, rest]);
        let s_rest = self.f(P::MulRnF32, &[rest, reciprocal]);

        // The series: the first coefficient in two parts, and the others added to it.
        let square = self.f(P::MulRnF32, &[s, s]);
        let series = self.polynomial(&OTHERS, square);
        let others = self.f(P::MulRnF32, &[series, square]);
        let [first, first_rest] = FIRST.map(|c| self.constant(c.into()));
        let [factor, lost] = self.sum_in_two(first, others);
        let factor_rest = self.f(P::AddRnF32, &[lost, first_rest]);
        let log = self.f(P::MulRnF32, &[s, factor]);
        let negative = self.f(P::NegF32, &[log]);
        let log_rest = self.f(P::FmaRnF32, &[s, factor, negative]);
        let log_rest = self.f(P::FmaRnF32, &[s, factor_rest, log_rest]);
        let log_rest = self.f(P::FmaRnF32, &[s_rest, factor, log_rest]);

        let [high, lost] = self.sum_in_two(exponent, log);
        let low = self.f(P::AddRnF32, &[lost, log_rest]);
        let minus_infinity = self.constant(f64::NEG_INFINITY);
        let nothing = self.holds(P::SetpEqF32, x, zero);
        let high = self.choose(nothing, minus_infinity, high);
        let all = self.holds(P::SetpEqF32, x, infinity);
        let high = self.choose(all, infinity, high);
        [high, low]
    }

    /// `2^(t + rest)` for `t` between -160 and 160.
    fn exp2_of_two(&mut self, t: Reg, rest: Reg) -> Reg {
        let whole = self.f(P::CvtRniF32F32, &[t]);
        let part = self.f(P::SubRnF32, &[t, whole]);
        let part = self.f(P::AddRnF32, &[part, rest]);
        let power = self.polynomial(&POWERS, part);
        // In two normal factors, so that only the last multiplication rounds.
        let n = self.emit.pure(Class::B32, P::CvtRniS32F32, [whole.into()]);
        let first = self.bits_of(P::ShrS32, n, 1);
        let second = self.emit.pure(Class::B32, P::SubS32, [n.into(), first.into()]);
        [first, second].into_iter().fold(power, |power, n| {
            let biased = self.bits_of(P::AddS32, n, BIAS);
            let bits = self.bits_of(P::ShlB32, biased, 23);
            let factor = self.emit.pure(Class::F32, P::MovF32B32, [bits.into()]);
            self.f(P::MulRnF32, &[power, factor])
        })
    }
}

//! Division of non-negative 32-bit indices, and of elements.
//!
//! The assembler (ptxas 13.0) emits some 25 dependent instructions for `div.u32`, also with a literal divisor. A
//! persistent grid divides in front of its first TMA load, where nothing hides this latency.

use super::ranged_ints::Int;
use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

/// The quotient rounded toward minus infinity, and the remainder.
pub(super) struct Floored {
    pub(super) quotient: Reg,
    pub(super) remainder: Reg,
}

impl Lower<'_> {
    /// Divides an i32 by a positive literal that is not a power of two. For a negative number, the complement, which is
    /// not negative, is divided.
    pub(super) fn floored_by_literal(&mut self, n: Reg, d: i64) -> Floored {
        let sign = self.emit.pure(Class::B32, P::ShrS32, [n.into(), Operand::Imm(31)]);
        let size = self.emit.pure(Class::B32, P::XorB32, [n.into(), sign.into()]);
        let (q, _) = self.divide_by_literal(size, d);
        let quotient = self.emit.pure(Class::B32, P::XorB32, [q.into(), sign.into()]);
        Floored { quotient, remainder: self.rest(n, quotient, Operand::Imm(d)) }
    }

    /// Divides u32 elements by a divisor that may be zero if `maybe_zero`. The machine's result for zero is undefined
    /// and is replaced.
    pub(super) fn unsigned_division(&mut self, n: Reg, d: Reg, maybe_zero: bool) -> Floored {
        let class = self.emit.func.regs[n];
        let pick = |narrow: P, wide: P| if class == Class::B32 { narrow } else { wide };
        let mut quotient = self.emit.pure(class, pick(P::DivU32, P::DivU64), [n.into(), d.into()]);
        if maybe_zero {
            let divides = self.emit.pure(Class::Pred, pick(P::SetpNeS32, P::SetpNeS64), [d.into(), Operand::Imm(0)]);
            let select = pick(P::SelpB32, P::SelpB64);
            quotient = self.emit.pure(class, select, [quotient.into(), Operand::Imm(0), divides.into()]);
        }
        if class == Class::B32 {
            return Floored { quotient, remainder: self.rest(n, quotient, d.into()) };
        }
        let product = self.emit.pure(class, P::MulLoS64, [quotient.into(), d.into()]);
        Floored { quotient, remainder: self.emit.pure(class, P::SubS64, [n.into(), product.into()]) }
    }

    /// Divides signed elements by a divisor that may be zero if `maybe_zero`. The machine truncates: if remainder and
    /// divisor have different signs, the quotient is one less.
    pub(super) fn floored_division(&mut self, n: Reg, d: Reg, maybe_zero: bool) -> Floored {
        let class = self.emit.func.regs[n];
        let pick = |narrow: P, wide: P| if class == Class::B32 { narrow } else { wide };
        let mut q = self.emit.pure(class, pick(P::DivS32, P::DivS64), [n.into(), d.into()]);
        let zero = self.int_literal(0, class);
        if maybe_zero {
            let divides = self.emit.pure(Class::Pred, pick(P::SetpNeS32, P::SetpNeS64), [d.into(), Operand::Imm(0)]);
            q = self.choose(divides, q, zero);
        }
        let product = self.emit.pure(class, pick(P::MulLoS32, P::MulLoS64), [q.into(), d.into()]);
        let rest = self.emit.pure(class, pick(P::SubS32, P::SubS64), [n.into(), product.into()]);
        // For a zero divisor, the remainder is the number itself.
        let signs = self.emit.pure(class, pick(P::XorB32, P::XorB64), [rest.into(), d.into()]);
        let apart = self.emit.pure(Class::Pred, pick(P::SetpLtS32, P::SetpLtS64), [signs.into(), Operand::Imm(0)]);
        let left = self.emit.pure(Class::Pred, pick(P::SetpNeS32, P::SetpNeS64), [rest.into(), Operand::Imm(0)]);
        let mut short = self.emit.pure(Class::Pred, P::AndPred, [apart.into(), left.into()]);
        if maybe_zero {
            let divides = self.emit.pure(Class::Pred, pick(P::SetpNeS32, P::SetpNeS64), [d.into(), Operand::Imm(0)]);
            short = self.emit.pure(Class::Pred, P::AndPred, [short.into(), divides.into()]);
        }
        let less = self.emit.pure(class, pick(P::SubS32, P::SubS64), [q.into(), Operand::Imm(1)]);
        let back = self.emit.pure(class, pick(P::AddS32, P::AddS64), [rest.into(), d.into()]);
        Floored { quotient: self.choose(short, less, q), remainder: self.choose(short, back, rest) }
    }

    /// Quotient and remainder of a number below 2^31 by a positive divisor that is not a power of two.
    pub(super) fn divide32(&mut self, n: Int, d: Int) -> (Reg, Reg) {
        let x = self.in32(n);
        if let Some(d) = d.as_const() {
            return self.divide_by_literal(x, d);
        }
        let divisor = self.in32(d);
        // The reciprocal is hoisted in front of a loop that changes only the number.
        if self.emit.depth_of(divisor) < self.emit.depth_of(x) {
            return self.divide_by_reciprocal(x, d);
        }
        let q = self.emit.pure(Class::B32, P::DivU32, [x.into(), divisor.into()]);
        (q, self.rest(x, q, divisor.into()))
    }

    /// The same with a literal divisor.
    fn divide_by_literal(&mut self, n: Reg, d: i64) -> (Reg, Reg) {
        let (factor, shift) = factor(d);
        let high = self.emit.pure(Class::B32, P::MulHiU32, [n.into(), Operand::Imm(factor)]);
        let q = self.emit.pure(Class::B32, P::ShrU32, [high.into(), Operand::Imm(shift)]);
        (q, self.rest(n, q, Operand::Imm(d)))
    }

    /// `n / d` and `n % d` for `n` below 2^31. With `m = floor((2^32 - 1) / d)`, `floor(n * m / 2^32)` is the quotient or one
    /// less: `n / d - n * m / 2^32 <= n / 2^32 * (1 + 1 / d) < 1`.
    fn divide_by_reciprocal(&mut self, n: Reg, d: Int) -> (Reg, Reg) {
        let ones = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(-1)]);
        let divisor: Operand = self.in32(d).into();
        let reciprocal = self.emit.pure(Class::B32, P::DivU32, [ones.into(), divisor.clone()]);
        let q = self.emit.pure(Class::B32, P::MulHiU32, [n.into(), reciprocal.into()]);
        let r = self.rest(n, q, divisor.clone());
        let short = self.emit.pure(Class::Pred, P::SetpGeU32, [r.into(), divisor.clone()]);
        let more = self.emit.pure(Class::B32, P::AddS32, [q.into(), Operand::Imm(1)]);
        let less = self.emit.pure(Class::B32, P::SubS32, [r.into(), divisor]);
        let pick =
            |cx: &mut Self, a: Reg, b: Reg| cx.emit.pure(Class::B32, P::SelpB32, [a.into(), b.into(), short.into()]);
        (pick(self, more, q), pick(self, less, r))
    }

    /// `n - q * d`.
    fn rest(&mut self, n: Reg, q: Reg, d: Operand) -> Reg {
        let product = self.emit.pure(Class::B32, P::MulLoS32, [q.into(), d]);
        self.emit.pure(Class::B32, P::SubS32, [n.into(), product.into()])
    }
}

/// The 32-bit factor `m` and the shift `s - 1` with which `(n * m >> 32) >> (s - 1)` is `n / d`, for `n` and `d` below
/// 2^31, where `d` is not a power of two. With `2^(s - 1) < d < 2^s` and `m = floor(2^(31 + s) / d) + 1`, `m * d =
/// 2^(31 + s) + e` where `0 < e <= d`. So `n * m / 2^(31 + s) = n / d + n * e / (d * 2^(31 + s))`, and the second term
/// is less than `1 / d`.
fn factor(d: i64) -> (i64, i64) {
    assert!(d > 2 && d.count_ones() > 1 && d <= i64::from(i32::MAX), "bug: {d} is divided by in another way");
    let bits = i64::from(64 - d.leading_zeros());
    let factor = (1i128 << (31 + bits)) / i128::from(d) + 1;
    (i64::try_from(factor).expect("it has 32 bits"), bits - 1)
}

#[cfg(test)]
mod tests {
    use super::factor;

    #[test]
    fn multiplying_divides() {
        let most = i64::from(i32::MAX);
        let near = |p: i64| [p - 1, p + 1, p + p / 2];
        let divisors = (3..600).chain((9..31).flat_map(|bits| near(1 << bits))).chain([most, most - 1]);
        for d in divisors.filter(|d| d.count_ones() > 1) {
            let (factor, shift) = factor(d);
            assert!(factor < 1 << 32, "{d}");
            let last = most / d;
            let around = |q: i64| [q * d - 1, q * d, q * d + 1];
            let numbers = [1, 2, last / 2, last].into_iter().flat_map(around).chain([0, d - 1, most]);
            for n in numbers.filter(|n| (0..=most).contains(n)) {
                assert_eq!(((n as u128 * factor as u128) >> 32 >> shift) as i64, n / d, "{n} / {d}");
            }
        }
    }
}

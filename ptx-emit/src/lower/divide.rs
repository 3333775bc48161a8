//! Division of 32-bit numbers that are not negative.
//!
//! The assembler (ptxas 13.0) makes some 25 dependent instructions of `div.u32`, of a literal divisor too. A walk over tiles divides in front of its
//! first TMA load, and nothing hides that.

use super::ints::Int;
use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

impl Lower<'_> {
    /// Quotient and remainder of a number below 2^31 by a positive one that is no power of two.
    pub(super) fn divide32(&mut self, n: Int, d: Int) -> (Reg, Reg) {
        let x = self.in32(n);
        if let Some(d) = d.as_const() {
            return self.divide_by_literal(x, d);
        }
        let divisor = self.in32(d);
        // The reciprocal is computed in front of what changes the number, if it can be.
        if self.emit.depth_of(divisor) < self.emit.depth_of(x) {
            return self.divide_by_reciprocal(x, d);
        }
        let q = self.emit.pure(Class::B32, P::DivU32, [x.into(), divisor.into()]);
        (q, self.rest(x, q, divisor.into()))
    }

    /// The same by a literal.
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

/// The factor `m` of 32 bits and the shift `s - 1` with which `(n * m >> 32) >> (s - 1)` is `n / d`, for `n` below 2^31 and a `d` below 2^31 that is no power of two. With
/// `2^(s - 1) < d < 2^s` and `m = floor(2^(31 + s) / d) + 1`, `m * d = 2^(31 + s) + e` where `0 < e <= d`. So `n * m / 2^(31 + s) = n / d + n * e / (d * 2^(31 + s))`,
/// and what is added is less than `1 / d`.
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

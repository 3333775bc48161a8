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

    /// The same by a literal that is no power of two. With `2^(s - 1) < d < 2^s` and `m = floor(2^(31 + s) / d) + 1`, which has 32 bits, `m * d = 2^(31 + s) + e`
    /// where `0 < e <= d`. So `n * m / 2^(31 + s) = n / d + n * e / (d * 2^(31 + s))`, and what is added is less than `1 / d`.
    pub(super) fn divide_by_literal(&mut self, n: Reg, d: i64) -> (Reg, Reg) {
        debug_assert!(d > 2 && d.count_ones() > 1 && d <= i64::from(i32::MAX), "{d}");
        let bits = i64::from(64 - d.leading_zeros());
        let factor = (1i128 << (31 + bits)) / i128::from(d) + 1;
        let high = self.emit.pure(Class::B32, P::MulHiU32, [n.into(), Operand::Imm(factor as i64)]);
        let q = self.emit.pure(Class::B32, P::ShrU32, [high.into(), Operand::Imm(bits - 1)]);
        (q, self.rest(n, q, Operand::Imm(d)))
    }

    /// `n / d` and `n % d` for `n` below 2^31. With `m = floor((2^32 - 1) / d)`, `floor(n * m / 2^32)` is the quotient or one
    /// less: `n / d - n * m / 2^32 <= n / 2^32 * (1 + 1 / d) < 1`.
    pub(super) fn divide_by_reciprocal(&mut self, n: Reg, d: Int) -> (Reg, Reg) {
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

//! `round_random`: rounds an f32 to one of the two adjacent numbers of a smaller type, selected by a random word
//! (`FloatFormat::round_at_random`).
//!
//! A type with the exponents of f32 has its upper bits: the word is added to the lower bits and carries into them.
//! Other types have fewer exponents. For these, the 24-bit significand is shifted right as a 64-bit fixed-point number,
//! by more for subnormal results, until 32 bits are after the point. There the word is added.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::numerics::FloatFormat;

/// Fraction bits and exponent bits of an f32, the exponent bias, and the sign bit.
const FRACTION: i64 = 23;
const EXPONENT_BITS: u32 = 8;
const BIAS: i64 = 127;
const SIGN: i64 = 0x8000_0000;
/// The largest shift of a 64-bit register.
const FARTHEST: i64 = 63;

impl Lower<'_> {
    /// The rounded f32; the later conversion handles overflow and NaN.
    pub(super) fn round_at_random(&mut self, x: Reg, word: Reg, format: &FloatFormat) -> Reg {
        let rounded = match format.exponent_bits {
            EXPONENT_BITS => self.round_by_carry(x, word, FRACTION - i64::from(format.mantissa_bits)),
            _ => self.moved_down(x, word, format),
        };
        let size = self.emit.pure(Class::F32, P::AbsF32, [x.into()]);
        let finite = self.emit.pure(Class::Pred, P::SetpLtF32, [size.into(), Operand::F32(f32::INFINITY)]);
        self.choose(finite, rounded, x)
    }

    /// Rounds a finite number by adding the upper bits of the word to its lower `dropped` bits.
    fn round_by_carry(&mut self, x: Reg, word: Reg, dropped: i64) -> Reg {
        let word32 = Class::B32;
        let bits = self.emit.pure(word32, P::MovB32F32, [x.into()]);
        let added = self.emit.pure(word32, P::ShrU32, [word.into(), Operand::Imm(32 - dropped)]);
        let sum = self.emit.pure(word32, P::AddS32, [bits.into(), added.into()]);
        let kept = self.emit.pure(word32, P::AndB32, [sum.into(), Operand::Imm((1 << 32) - (1 << dropped))]);
        self.emit.pure(Class::F32, P::MovF32B32, [kept.into()])
    }

    /// Rounds a finite number in fixed point.
    fn moved_down(&mut self, x: Reg, word: Reg, format: &FloatFormat) -> Reg {
        let (word32, wide) = (Class::B32, Class::B64);
        let bits = self.emit.pure(word32, P::MovB32F32, [x.into()]);
        let exponent = self.emit.pure(word32, P::BfeU32, [bits.into(), Operand::Imm(FRACTION), Operand::Imm(8)]);
        let digits = self.emit.pure(word32, P::AndB32, [bits.into(), Operand::Imm((1 << FRACTION) - 1)]);
        let digits = self.emit.pure(word32, P::OrB32, [digits.into(), Operand::Imm(1 << FRACTION)]);
        // The number of dropped bits: those that the type lacks, or those below its smallest number.
        let lacking = FRACTION - i64::from(format.mantissa_bits);
        let first = BIAS + FRACTION + 1 - i64::from(format.bias) - i64::from(format.mantissa_bits);
        let minus = self.emit.pure(word32, P::MovB32, [Operand::Imm(first)]);
        let below = self.emit.pure(word32, P::SubS32, [minus.into(), exponent.into()]);
        let cut = self.emit.pure(word32, P::MaxS32, [below.into(), Operand::Imm(lacking)]);
        let by = self.emit.pure(word32, P::MinS32, [cut.into(), Operand::Imm(FARTHEST)]);

        let digits = self.emit.pure(wide, P::CvtU64U32, [digits.into()]);
        let digits = self.emit.pure(wide, P::ShlB64, [digits.into(), Operand::Imm(32)]);
        let moved = self.emit.pure(wide, P::ShrU64, [digits.into(), by.into()]);
        let word = self.emit.pure(wide, P::CvtU64U32, [word.into()]);
        let sum = self.emit.pure(wide, P::AddS64, [moved.into(), word.into()]);
        let whole = self.emit.pure(wide, P::ShrU64, [sum.into(), Operand::Imm(32)]);
        let whole = self.emit.pure(word32, P::CvtU32U64, [whole.into()]);
        let places = self.emit.pure(Class::F32, P::CvtRnF32U32, [whole.into()]);
        // The weight of the last bit.
        let unit = self.emit.pure(word32, P::AddS32, [exponent.into(), cut.into()]);
        let unit = self.emit.pure(word32, P::AddS32, [unit.into(), Operand::Imm(-FRACTION)]);
        let unit = self.emit.pure(word32, P::ShlB32, [unit.into(), Operand::Imm(FRACTION)]);
        let unit = self.emit.pure(Class::F32, P::MovF32B32, [unit.into()]);
        let size = self.emit.pure(Class::F32, P::MulRnF32, [places.into(), unit.into()]);
        let size = self.emit.pure(word32, P::MovB32F32, [size.into()]);
        let sign = self.emit.pure(word32, P::AndB32, [bits.into(), Operand::Imm(SIGN)]);
        let signed = self.emit.pure(word32, P::OrB32, [size.into(), sign.into()]);
        self.emit.pure(Class::F32, P::MovF32B32, [signed.into()])
    }
}

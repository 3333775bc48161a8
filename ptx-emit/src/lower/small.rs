//! Floats of four bits and scales that are exponents alone, which no instruction below sm_100 converts.
//!
//! The exponent and the fraction of an e2m1, put where those of a wider type end, are the number times a power of two, subnormals included; a multiplication takes that
//! away. Back, an addition to a power of two that leaves as many bits of a fraction as there are rounds to nearest even.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

/// The largest e2m1.
const LARGEST: f64 = 6.0;
/// The exponent of an f32, and its bias.
const EXPONENT: i64 = 0x7f80_0000;
const BIAS: i64 = 127;
/// The field of all ones, by itself.
const NO_NUMBER: i64 = 255;

impl Lower<'_> {
    /// The e2m1 in the lowest four bits of a register, above which its sign is repeated, as an f32.
    pub(super) fn of_e2m1(&mut self, signed: Reg) -> Reg {
        let placed = self.emit.def(Class::B32, P::ShlB32, [signed.into(), Operand::Imm(22)]);
        let bits = self.emit.def(Class::B32, P::AndB32, [placed.into(), Operand::Imm(0x81c0_0000)]);
        let small = self.emit.def(Class::F32, P::MovF32B32, [bits.into()]);
        let scale = self.literal(2f64.powi(126), Class::F32);
        self.emit.def(Class::F32, P::MulF32, [small.into(), scale.into()])
    }

    /// The e2m1 nearest to an f32, ties to even, in the lowest four bits of a register. A NaN becomes the largest number, as `cvt.rn.satfinite.e2m1x2` has it.
    pub(super) fn round_e2m1(&mut self, x: Reg) -> Reg {
        let [most, least] = [LARGEST, -LARGEST].map(|x| self.literal(x, Class::F32));
        let below = self.emit.def(Class::F32, P::MinF32, [x.into(), most.into()]);
        let within = self.emit.def(Class::F32, P::MaxF32, [below.into(), least.into()]);
        let bits = self.emit.def(Class::B32, P::MovB32F32, [within.into()]);
        // The power of two below it, at least 1: the last place of numbers up to 2 is that of 1.
        let power = self.emit.def(Class::B32, P::AndB32, [bits.into(), Operand::Imm(EXPONENT)]);
        let power = self.emit.def(Class::B32, P::MaxS32, [power.into(), Operand::Imm(BIAS << 23)]);
        // 1.5 * 2^22 times that, whose last place is half of it.
        let large = self.emit.def(Class::B32, P::AddS32, [power.into(), Operand::Imm(22 << 23 | 1 << 22)]);
        let shift = self.emit.def(Class::F32, P::MovF32B32, [large.into()]);
        let size = self.emit.def(Class::F32, P::AbsF32, [within.into()]);
        let rounded = self.emit.def(Class::F32, P::AddF32, [size.into(), shift.into()]);
        let rounded = self.emit.def(Class::B32, P::MovB32F32, [rounded.into()]);
        let places = self.emit.def(Class::B32, P::SubS32, [rounded.into(), large.into()]);
        // Two places for each doubling.
        let doubled = self.emit.def(Class::B32, P::ShrU32, [power.into(), Operand::Imm(22)]);
        let places = self.emit.def(Class::B32, P::AddS32, [places.into(), doubled.into()]);
        let magnitude = self.emit.def(Class::B32, P::AddS32, [places.into(), Operand::Imm(-2 * BIAS)]);
        let sign = self.emit.def(Class::B32, P::ShrU32, [bits.into(), Operand::Imm(28)]);
        let sign = self.emit.def(Class::B32, P::AndB32, [sign.into(), Operand::Imm(8)]);
        self.emit.def(Class::B32, P::OrB32, [magnitude.into(), sign.into()])
    }

    /// The power of two whose exponent is in the low byte of a register, as an f32.
    pub(super) fn of_exponent(&mut self, raw: Reg) -> Reg {
        let byte = self.emit.def(Class::B32, P::CvtU32U8, [raw.into()]);
        let bits = self.emit.def(Class::B32, P::ShlB32, [byte.into(), Operand::Imm(23)]);
        // 2^-127 has no exponent.
        let bits = self.emit.def(Class::B32, P::MaxS32, [bits.into(), Operand::Imm(1 << 22)]);
        let power = self.emit.def(Class::F32, P::MovF32B32, [bits.into()]);
        // What is no number came out as an infinity, and an infinity times zero is none.
        let zero = self.literal(0.0, Class::F32);
        self.emit.def(Class::F32, P::FmaRnF32, [power.into(), zero.into(), power.into()])
    }

    /// The exponent of the greatest power of two that is not above an f32; of what is below all of them, that of the least.
    pub(super) fn exponent_below(&mut self, x: Reg) -> Reg {
        let bits = self.emit.def(Class::B32, P::MovB32F32, [x.into()]);
        let positive = self.emit.def(Class::B32, P::MaxS32, [bits.into(), Operand::Imm(0)]);
        let exponent = self.emit.def(Class::B32, P::ShrU32, [positive.into(), Operand::Imm(23)]);
        let finite = self.emit.def(Class::B32, P::MinS32, [exponent.into(), Operand::Imm(NO_NUMBER - 1)]);
        let nan = self.emit.def(Class::Pred, P::SetpNeuF32, [x.into(), x.into()]);
        self.emit.def(Class::B32, P::SelpB32, [Operand::Imm(NO_NUMBER), finite.into(), nan.into()])
    }
}

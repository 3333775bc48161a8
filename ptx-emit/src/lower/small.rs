//! Floats of four bits and scales that are exponents alone, which no instruction below sm_100 converts, and those of 8 bits below sm_89.
//!
//! The exponent and the fraction of a small float, put where those of a wider type end, are the number times a power of two, subnormals included; a multiplication takes
//! that away. Back, an addition to a power of two that leaves as many bits of a fraction as there are rounds to nearest even.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::numerics::FloatFormat;

/// The exponent of an f32, its bias, and the bits of the fraction.
const EXPONENT: i64 = 0x7f80_0000;
const BIAS: i64 = 127;
const FRACTION: i64 = 23;
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

    /// The e4m3 in the low byte of a register as an f16: with the exponent of an f16 it is 256 times smaller.
    pub(super) fn half_of_e4m3(&mut self, raw: Reg) -> Reg {
        let signed = self.emit.def(Class::B32, P::CvtS32S8, [raw.into()]);
        let placed = self.emit.def(Class::B32, P::ShlB32, [signed.into(), Operand::Imm(7)]);
        let bits = self.emit.def(Class::B32, P::AndB32, [placed.into(), Operand::Imm(0xbf80)]);
        let size = self.emit.def(Class::B32, P::AndB32, [bits.into(), Operand::Imm(0x3f80)]);
        let none = self.emit.def(Class::Pred, P::SetpEqS32, [size.into(), Operand::Imm(0x3f80)]);
        let bits = self.emit.def(Class::B32, P::SelpB32, [Operand::Imm(0x7fff), bits.into(), none.into()]);
        let half = self.emit.def(Class::B16, P::CvtU16U32, [bits.into()]);
        let scale = self.emit.pure(Class::B16, P::MovB16, [Operand::Imm(0x5c00)]);
        self.emit.def(Class::B16, P::MulRnF16, [half.into(), scale.into()])
    }

    /// The e5m2 in the low byte of a register as an f16, whose upper byte it is.
    pub(super) fn half_of_e5m2(&mut self, raw: Reg) -> Reg {
        let placed = self.emit.def(Class::B32, P::ShlB32, [raw.into(), Operand::Imm(8)]);
        self.emit.def(Class::B16, P::CvtU16U32, [placed.into()])
    }

    /// The number of a format of up to 8 bits nearest to an f32, ties to even, saturated, in the lowest bits of a register. A NaN stays one, or becomes the largest
    /// number in a format without: as `cvt.rn.satfinite` has it.
    pub(super) fn round_small(&mut self, x: Reg, format: &FloatFormat) -> Reg {
        let digits = i64::from(format.mantissa_bits);
        let [most, least] = [1.0, -1.0].map(|sign| self.literal(sign * format.max_finite(), Class::F32));
        let below = self.emit.def(Class::F32, P::MinF32, [x.into(), most.into()]);
        let within = self.emit.def(Class::F32, P::MaxF32, [below.into(), least.into()]);
        let bits = self.emit.def(Class::B32, P::MovB32F32, [within.into()]);
        // The power of two below it, at least that of the least normal number: the last place of what is smaller is the same.
        let first = BIAS + 1 - i64::from(format.bias);
        let power = self.emit.def(Class::B32, P::AndB32, [bits.into(), Operand::Imm(EXPONENT)]);
        let power = self.emit.def(Class::B32, P::MaxS32, [power.into(), Operand::Imm(first << FRACTION)]);
        // 1.5 times that and another power of two, whose last place is that of the result.
        let up = (FRACTION - digits) << FRACTION | 1 << (FRACTION - 1);
        let large = self.emit.def(Class::B32, P::AddS32, [power.into(), Operand::Imm(up)]);
        let shift = self.emit.def(Class::F32, P::MovF32B32, [large.into()]);
        let size = self.emit.def(Class::F32, P::AbsF32, [within.into()]);
        let rounded = self.emit.def(Class::F32, P::AddRnF32, [size.into(), shift.into()]);
        let rounded = self.emit.def(Class::B32, P::MovB32F32, [rounded.into()]);
        let places = self.emit.def(Class::B32, P::SubS32, [rounded.into(), large.into()]);
        // As many places more for each doubling as there are fractions.
        let doubled = self.emit.def(Class::B32, P::ShrU32, [power.into(), Operand::Imm(FRACTION - digits)]);
        let places = self.emit.def(Class::B32, P::AddS32, [places.into(), doubled.into()]);
        let magnitude = self.emit.def(Class::B32, P::AddS32, [places.into(), Operand::Imm(-(first << digits))]);
        let width = i64::from(format.storage_bits());
        let sign = self.emit.def(Class::B32, P::ShrU32, [bits.into(), Operand::Imm(32 - width)]);
        let sign = self.emit.def(Class::B32, P::AndB32, [sign.into(), Operand::Imm(1 << (width - 1))]);
        let number = self.emit.def(Class::B32, P::OrB32, [magnitude.into(), sign.into()]);
        if !format.has_nan() {
            return number;
        }
        let none = self.emit.def(Class::Pred, P::SetpNeuF32, [x.into(), x.into()]);
        let nan = Operand::Imm(format.canonical_nan() as i64);
        self.emit.def(Class::B32, P::SelpB32, [nan, number.into(), none.into()])
    }

    /// The power of two whose exponent is in the low byte of a register, as an f32.
    pub(super) fn of_exponent(&mut self, raw: Reg) -> Reg {
        let byte = self.emit.def(Class::B32, P::CvtU32U8, [raw.into()]);
        let bits = self.emit.def(Class::B32, P::ShlB32, [byte.into(), Operand::Imm(23)]);
        // 2^-127 has no exponent.
        let bits = self.emit.def(Class::B32, P::MaxS32, [bits.into(), Operand::Imm(1 << 22)]);
        let power = self.emit.def(Class::F32, P::MovF32B32, [bits.into()]);
        // What is not a number came out as an infinity, and an infinity times zero is none.
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

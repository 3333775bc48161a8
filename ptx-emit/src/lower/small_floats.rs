//! 4-bit floats and exponent-only scales, which no instruction below sm_100 converts, and 8-bit floats below sm_89.
//!
//! The exponent and fraction of a small float are placed in the low ends of those fields of a wider type. The result is
//! the number times a power of two, also for subnormals. A multiplication removes this power. For the reverse
//! conversion, adding a power of two that leaves as many fraction bits as the small type has rounds to nearest even.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::numerics::FloatFormat;

/// The exponent field of an f32, its bias, and its fraction bits.
const EXPONENT: i64 = 0x7f80_0000;
const BIAS: i64 = 127;
const FRACTION: i64 = 23;
/// The exponent field of infinities and NaN.
const NO_NUMBER: i64 = 255;

impl Lower<'_> {
    /// Converts the e2m1 in the lowest four bits of a register, whose sign is repeated above, to f32.
    pub(super) fn of_e2m1(&mut self, signed: Reg) -> Reg {
        let placed = self.emit.def(Class::B32, P::ShlB32, [signed.into(), Operand::Imm(22)]);
        let bits = self.emit.def(Class::B32, P::AndB32, [placed.into(), Operand::Imm(0x81c0_0000)]);
        let small = self.emit.def(Class::F32, P::MovF32B32, [bits.into()]);
        let scale = self.literal(2f64.powi(126), Class::F32);
        self.emit.def(Class::F32, P::MulF32, [small.into(), scale.into()])
    }

    /// Converts the e4m3 in the low byte of a register to f16: as the bits of an f16 it is 256 times too small.
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

    /// Converts the e5m2 in the low byte of a register to f16: it is the upper byte of the f16.
    pub(super) fn half_of_e5m2(&mut self, raw: Reg) -> Reg {
        let placed = self.emit.def(Class::B32, P::ShlB32, [raw.into(), Operand::Imm(8)]);
        self.emit.def(Class::B16, P::CvtU16U32, [placed.into()])
    }

    /// Rounds an f32 to a format of up to 8 bits, to nearest even and saturated, in the lowest bits of a register. A
    /// NaN stays NaN, or becomes the largest number if the format has no NaN, as with `cvt.rn.satfinite`.
    pub(super) fn round_small(&mut self, x: Reg, format: &FloatFormat) -> Reg {
        let digits = i64::from(format.mantissa_bits);
        let [most, least] = [1.0, -1.0].map(|sign| self.literal(sign * format.max_finite(), Class::F32));
        let below = self.emit.def(Class::F32, P::MinF32, [x.into(), most.into()]);
        let within = self.emit.def(Class::F32, P::MaxF32, [below.into(), least.into()]);
        let bits = self.emit.def(Class::B32, P::MovB32F32, [within.into()]);
        // The power of two at or below it, but at least that of the smallest normal number, because smaller numbers
        // have the same last bit.
        let first = BIAS + 1 - i64::from(format.bias);
        let power = self.emit.def(Class::B32, P::AndB32, [bits.into(), Operand::Imm(EXPONENT)]);
        let power = self.emit.def(Class::B32, P::MaxS32, [power.into(), Operand::Imm(first << FRACTION)]);
        // 1.5 times another power of two, chosen so that its last bit has the weight of the result's.
        let up = (FRACTION - digits) << FRACTION | 1 << (FRACTION - 1);
        let large = self.emit.def(Class::B32, P::AddS32, [power.into(), Operand::Imm(up)]);
        let shift = self.emit.def(Class::F32, P::MovF32B32, [large.into()]);
        let size = self.emit.def(Class::F32, P::AbsF32, [within.into()]);
        let rounded = self.emit.def(Class::F32, P::AddRnF32, [size.into(), shift.into()]);
        let rounded = self.emit.def(Class::B32, P::MovB32F32, [rounded.into()]);
        let places = self.emit.def(Class::B32, P::SubS32, [rounded.into(), large.into()]);
        // Each doubling adds as many values as there are fractions.
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

    /// The power of two whose biased exponent is in the low byte of a register, as an f32.
    pub(super) fn of_exponent(&mut self, raw: Reg) -> Reg {
        let byte = self.emit.def(Class::B32, P::CvtU32U8, [raw.into()]);
        let bits = self.emit.def(Class::B32, P::ShlB32, [byte.into(), Operand::Imm(23)]);
        // 2^-127 is subnormal.
        let bits = self.emit.def(Class::B32, P::MaxS32, [bits.into(), Operand::Imm(1 << 22)]);
        let power = self.emit.def(Class::F32, P::MovF32B32, [bits.into()]);
        // NaN was converted to infinity above; infinity * 0 makes it NaN again.
        let zero = self.literal(0.0, Class::F32);
        self.emit.def(Class::F32, P::FmaRnF32, [power.into(), zero.into(), power.into()])
    }

    /// The exponent of the largest power of two that is not above an f32; at least the format's lowest exponent.
    pub(super) fn exponent_below(&mut self, x: Reg) -> Reg {
        let bits = self.emit.def(Class::B32, P::MovB32F32, [x.into()]);
        let positive = self.emit.def(Class::B32, P::MaxS32, [bits.into(), Operand::Imm(0)]);
        let exponent = self.emit.def(Class::B32, P::ShrU32, [positive.into(), Operand::Imm(23)]);
        let finite = self.emit.def(Class::B32, P::MinS32, [exponent.into(), Operand::Imm(NO_NUMBER - 1)]);
        let nan = self.emit.def(Class::Pred, P::SetpNeuF32, [x.into(), x.into()]);
        self.emit.def(Class::B32, P::SelpB32, [Operand::Imm(NO_NUMBER), finite.into(), nan.into()])
    }
}

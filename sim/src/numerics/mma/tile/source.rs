//! Element types as tiles see them: the bits of a register, their value and what a table knows of them.

use super::super::dense_forms::Elem;
use crate::numerics::half::Half;

/// An element type as tiles see it. The bits of 8-bit floats are those of the same number in f16.
pub(in super::super) trait Source {
    /// How an element is decoded exactly.
    const ELEM: Elem;
    /// Elements in a register.
    const PER: usize;
    /// Position of the exponent field.
    const FIELD_SHIFT: u32;
    /// The exponent field of infinities and NaN.
    const SPECIAL: u32;
    /// Bias of the exponent field.
    const BIAS: i16;
    /// The smallest exponent, where it is not that of the field 1.
    const SMALLEST: i16 = i16::MIN;

    /// The bits of element `e` of a register.
    fn bits(register: u32, e: usize) -> u32;
    /// The number, if it is one.
    fn value(bits: u32) -> f32;
}

/// `.f16`, and 8-bit floats widened to it by an instruction.
pub(in super::super) struct F16;
/// `.bf16`
pub(in super::super) struct Bf16;
/// `.tf32`
pub(in super::super) struct Tf32;
/// `.e4m3` multiplied as such.
pub(in super::super) struct E4m3;
/// `.e5m2` multiplied as such.
pub(in super::super) struct E5m2;
/// `.e4m3` widened to f16 by an instruction: its subnormals are normal numbers.
pub(in super::super) struct WideE4m3;

impl Source for F16 {
    const ELEM: Elem = Elem::F16;
    const PER: usize = 2;
    const FIELD_SHIFT: u32 = 10;
    const SPECIAL: u32 = 31;
    const BIAS: i16 = 15;

    #[inline(always)]
    fn bits(register: u32, e: usize) -> u32 {
        (register >> (16 * e)) & 0xffff
    }

    #[inline(always)]
    fn value(bits: u32) -> f32 {
        Half::F16.widen(bits as u16)
    }
}

impl Source for Bf16 {
    const ELEM: Elem = Elem::Bf16;
    const PER: usize = 2;
    const FIELD_SHIFT: u32 = 7;
    const SPECIAL: u32 = 255;
    const BIAS: i16 = 127;

    #[inline(always)]
    fn bits(register: u32, e: usize) -> u32 {
        F16::bits(register, e)
    }

    #[inline(always)]
    fn value(bits: u32) -> f32 {
        f32::from_bits(bits << 16)
    }
}

impl Source for Tf32 {
    const ELEM: Elem = Elem::Tf32;
    const PER: usize = 1;
    const FIELD_SHIFT: u32 = 23;
    const SPECIAL: u32 = 255;
    const BIAS: i16 = 127;

    #[inline(always)]
    fn bits(register: u32, _: usize) -> u32 {
        register & !0x1fff
    }

    #[inline(always)]
    fn value(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
}

/// `.s8`; only its bits are of use.
pub(in super::super) struct Signed;
/// `.u8`; only its bits are of use.
pub(in super::super) struct Unsigned;

/// An integer, sign- or zero-extended.
macro_rules! integer_source {
    ($name:ident, $elem:expr, $ty:ty) => {
        impl Source for $name {
            const ELEM: Elem = $elem;
            const PER: usize = 4;
            const FIELD_SHIFT: u32 = 0;
            const SPECIAL: u32 = 0;
            const BIAS: i16 = 0;

            #[inline(always)]
            fn bits(register: u32, e: usize) -> u32 {
                (register >> (8 * e)) as $ty as u32
            }

            #[inline(always)]
            fn value(bits: u32) -> f32 {
                bits as i32 as f32
            }
        }
    };
}

integer_source!(Signed, Elem::S8, i8);
integer_source!(Unsigned, Elem::U8, u8);

/// An 8-bit source whose bits come from a table.
macro_rules! fp8_source {
    ($name:ident, $elem:expr, $table:expr, $smallest:expr) => {
        impl Source for $name {
            const ELEM: Elem = $elem;
            const PER: usize = 4;
            const FIELD_SHIFT: u32 = F16::FIELD_SHIFT;
            const SPECIAL: u32 = F16::SPECIAL;
            const BIAS: i16 = F16::BIAS;
            const SMALLEST: i16 = $smallest;

            #[inline(always)]
            fn bits(register: u32, e: usize) -> u32 {
                u32::from($table[usize::from((register >> (8 * e)) as u8)])
            }

            #[inline(always)]
            fn value(bits: u32) -> f32 {
                F16::value(bits)
            }
        }
    };
}

fp8_source!(E4m3, Elem::E4m3, WIDE_E4M3, E4M3_SMALLEST as i16);
fp8_source!(WideE4m3, Elem::F16, WIDE_E4M3, i16::MIN);
fp8_source!(E5m2, Elem::E5m2, WIDE_E5M2, i16::MIN);

/// Exponent of the smallest normal e4m3, and of its subnormals.
pub(in super::super) const E4M3_SMALLEST: i32 = -6;

/// Every e4m3 in f16.
static WIDE_E4M3: [u16; 256] = {
    let mut table = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        let (sign, field, fraction) = ((bits as u16 & 0x80) << 8, (bits as u16 >> 3) & 15, bits as u16 & 7);
        table[bits] = sign
            | match (field, fraction) {
                (15, 7) => 0x7fff,
                (0, 0) => 0,
                (0, 1) => 0x1800,
                (0, 2 | 3) => 0x1c00 | (fraction & 1) << 9,
                (0, _) => 0x2000 | (fraction & 3) << 8,
                _ => (field + 8) << 10 | fraction << 7,
            };
        bits += 1;
    }
    table
};

/// Every e5m2 in f16.
static WIDE_E5M2: [u16; 256] = {
    let mut table = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        table[bits] = (bits as u16) << 8;
        bits += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::convert::Fp8;

    #[test]
    fn tables_widen() {
        for bits in 0..=255u8 {
            let nan = bits & 0x7f == 0x7f;
            assert!(nan || WIDE_E4M3[usize::from(bits)] == Fp8::E4m3.widen(bits), "{bits:#x}");
            assert_eq!(Half::F16.is_nan(WIDE_E4M3[usize::from(bits)]), nan);
            let wide = WIDE_E5M2[usize::from(bits)];
            assert!(wide == Fp8::E5m2.widen(bits) || Half::F16.is_nan(wide) && Half::F16.is_nan(Fp8::E5m2.widen(bits)));
        }
    }
}

//! Conversions to the narrow formats and back: halves and pairs of them, tf32, 8-bit floats.

use super::*;

/// `cvt.frnd2{.relu}{.satfinite}.{f16,bf16}.f32`, also for each half of the packed forms.
#[inline(always)]
#[must_use]
pub fn f32_to_half(ty: Half, round: Round, clamp: Clamp, a: u32) -> u16 {
    let d = match round {
        Round::Nearest => ty.narrow(f32::from_bits(a)),
        Round::NearestAway | Round::Zero | Round::Down | Round::Up => half::encode(ty, round, F32.decode(u64::from(a))),
    };
    let format = ty.format();
    let infinite = u64::from(d & 0x7fff) == format.overflow;
    let d = if clamp.satfinite && infinite { format.max_finite as u16 | d & 0x8000 } else { d };
    if clamp.relu { half::relu(ty, d) } else { d }
}

/// `cvt.frnd2.{f16x2,bf16x2}.f32 d, a, b`: `a` goes to the upper half.
#[inline(always)]
#[must_use]
pub fn f32_to_half2(ty: Half, round: Round, clamp: Clamp, a: u32, b: u32) -> u32 {
    u32::from(f32_to_half(ty, round, clamp, b)) | u32::from(f32_to_half(ty, round, clamp, a)) << 16
}

/// `cvt.{rna,rn,rz}{.relu}{.satfinite}.tf32.f32`: 10 fraction bits, and the low 13 bits of the register are zero.
///
/// With `.rn` and `.rz` a NaN becomes 0x7fffe000. `.rna` is integer arithmetic: it truncates a NaN, to an infinity if
/// the payload is in the low bits, and clamps any non-finite number by subtracting a unit (ptxas 12.9; measured on
/// Hopper).
#[inline(always)]
#[must_use]
pub fn f32_to_tf32(round: Round, clamp: Clamp, a: u32) -> u32 {
    if single::is_nan(a) {
        return match round {
            Round::NearestAway => (a & !0x1fff) - if clamp.satfinite { 0x2000 } else { 0 },
            Round::Nearest | Round::Zero | Round::Down | Round::Up => NAN_F32 & !0x1fff,
        };
    }
    let carry = match round {
        Round::NearestAway => 0x1000,
        Round::Nearest => 0xfff + ((a >> 13) & 1),
        Round::Zero | Round::Down | Round::Up => 0,
    };
    let sign = a & 0x8000_0000;
    let mut magnitude = ((a & 0x7fff_ffff) + carry) & !0x1fff;
    if clamp.satfinite {
        magnitude = magnitude.min(0x7f7f_e000);
    }
    if clamp.relu && sign != 0 { 0 } else { sign | magnitude }
}

/// The two 8-bit formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fp8 {
    /// `.e4m3`: largest number 448, no infinity.
    E4m3,
    /// `.e5m2`: largest number 57344.
    E5m2,
}

impl Fp8 {
    /// The format as data.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Fp8::E4m3 => E4M3,
            Fp8::E5m2 => E5M2,
        }
    }

    /// The same number in f16, which has all of them; NaN becomes 0x7fff.
    #[inline(always)]
    #[must_use]
    pub fn widen(self, a: u8) -> u16 {
        match self {
            Fp8::E5m2 if a & 0x7f > 0x7c => NAN_HALF,
            Fp8::E5m2 => u16::from(a) << 8,
            Fp8::E4m3 if a & 0x7f == 0x7f => NAN_HALF,
            Fp8::E4m3 => {
                // The fields, shifted into place, are the number times 2^-8; scaling it is exact.
                let scaled = Half::F16.widen(u16::from(a & 0x7f) << 7) * 256.0;
                Half::F16.narrow(scaled) | u16::from(a & 0x80) << 8
            }
        }
    }
}

/// `cvt.rn.satfinite{.relu}` of one f32 to 8 bits; NaN becomes 0x7f.
#[must_use]
pub fn f32_to_fp8(ty: Fp8, relu: bool, a: u32) -> u8 {
    let format = ty.format();
    let value = F32.decode(u64::from(a));
    if value == Value::Nan {
        return format.nan as u8;
    }
    if relu && a >> 31 != 0 {
        return 0;
    }
    let d = format.encode(Round::Nearest, value);
    (d & 0x80 | (d & 0x7f).min(format.max_finite)) as u8
}

/// `cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f32 d, a, b`: `a` goes to the upper byte.
#[must_use]
pub fn f32_to_fp8x2(ty: Fp8, relu: bool, a: u32, b: u32) -> u16 {
    u16::from(f32_to_fp8(ty, relu, b)) | u16::from(f32_to_fp8(ty, relu, a)) << 8
}

/// `cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.{f16x2,bf16x2}`.
#[must_use]
pub fn half2_to_fp8x2(ty: Fp8, from: Half, relu: bool, a: u32) -> u16 {
    let wide = |h: u16| from.widen(h).to_bits();
    f32_to_fp8x2(ty, relu, wide((a >> 16) as u16), wide(a as u16))
}

/// `cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}`.
#[must_use]
pub fn fp8x2_to_half2(ty: Fp8, relu: bool, a: u16) -> u32 {
    let d = u32::from(ty.widen(a as u8)) | u32::from(ty.widen((a >> 8) as u8)) << 16;
    if relu { packed1(d, |h| half::relu(Half::F16, h)) } else { d }
}

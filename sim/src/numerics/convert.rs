//! `cvt`: conversions between every pair of scalar types (PTX ISA 9.7.9.21).
//!
//! Registers are passed as the low bits of a `u64`. Results are extended to 64 bits as the manual says: signed integers
//! by sign, everything else by zeros. The manual leaves NaN open. As measured on an H200, a NaN that is converted via
//! f64 keeps its sign and the upper bits of its payload, made quiet; copies (f32 to f32, f64 to f64, bf16 to f32) keep
//! all bits; any other NaN becomes the canonical one of the destination. Other generations use the same machine
//! instructions, and are assumed to have the same rule. `.ftz` on the way to f16 is accepted and does nothing (ptxas
//! 12.9 and 13 drop it): subnormal f32 are numbers.

use super::exact::{self, E4M3, E5M2, Exact, F32, F64, Format, Value};
use super::half::{self, Half};
use super::{Mode, NAN_F32, NAN_HALF, Round, double, packed1, single};

mod clamp;
mod narrow;

pub use clamp::Clamp;
pub use narrow::{
    Fp8, f32_to_fp8, f32_to_fp8x2, f32_to_half, f32_to_half2, f32_to_tf32, fp8x2_to_half2, half2_to_fp8x2,
};

/// The scalar floating-point types of `cvt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
}

/// An integer type: `.u8` to `.s64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Int {
    /// Whether it is one of the signed types.
    pub signed: bool,
    /// 8, 16, 32 or 64.
    pub bits: u32,
}

impl Int {
    /// Smallest and largest value.
    fn range(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The number in the low bits of a register.
    #[inline(always)]
    fn value(self, bits: u64) -> i128 {
        let unused = 64 - self.bits;
        match self.signed {
            true => i128::from((bits << unused) as i64 >> unused),
            false => i128::from(bits << unused >> unused),
        }
    }

    /// The low bits of a number, extended to 64.
    #[inline(always)]
    fn extend(self, value: i128) -> u64 {
        self.value(value as u64) as u64
    }
}

impl Float {
    const fn format(self) -> Format {
        match self {
            Float::F16 => exact::F16,
            Float::Bf16 => exact::BF16,
            Float::F32 => F32,
            Float::F64 => F64,
        }
    }

    /// The number in f64, exactly; any NaN gives a NaN.
    #[inline(always)]
    fn widen(self, ftz: bool, a: u64) -> f64 {
        match self {
            Float::F16 => f64::from(Half::F16.widen(a as u16)),
            Float::Bf16 => f64::from(Half::Bf16.widen(a as u16)),
            Float::F32 => f64::from(f32::from_bits(if ftz { single::flush(a as u32) } else { a as u32 })),
            Float::F64 => f64::from_bits(a),
        }
    }

    /// An f64 rounded to this type.
    #[inline(always)]
    fn narrow(self, round: Round, x: f64) -> u64 {
        if x.is_nan() {
            return u64::from(self.canonical_nan());
        }
        match (self, round) {
            (Float::F64, _) => x.to_bits(),
            (Float::F32, _) => u64::from(single::narrow(round, x).to_bits()),
            (Float::F16, Round::Nearest) => u64::from(Half::F16.narrow(half::f32_to_odd(x))),
            (Float::Bf16, Round::Nearest) => u64::from(Half::Bf16.narrow(half::f32_to_odd(x))),
            (Float::F16 | Float::Bf16, _) => self.format().encode(round, F64.decode(x.to_bits())),
        }
    }

    /// The NaN that arithmetic in this type gives; f64 has none and keeps payloads.
    const fn canonical_nan(self) -> u32 {
        match self {
            Float::F16 | Float::Bf16 => NAN_HALF as u32,
            Float::F32 | Float::F64 => NAN_F32,
        }
    }

    /// Whether these bits are a NaN.
    #[inline(always)]
    fn is_nan(self, a: u64) -> bool {
        match self {
            Float::F16 => Half::F16.is_nan(a as u16),
            Float::Bf16 => Half::Bf16.is_nan(a as u16),
            Float::F32 => single::is_nan(a as u32),
            Float::F64 => double::is_nan(a),
        }
    }

    /// The result of converting a NaN.
    fn nan_to(self, to: Float, a: u64) -> u64 {
        if self != Float::F64 && to != Float::F64 {
            return u64::from(to.canonical_nan());
        }
        let (from, format) = (self.format(), to.format());
        let fraction =
            (a & ((1 << from.fraction_bits) - 1)) << (52 - from.fraction_bits) >> (52 - format.fraction_bits);
        let quiet = 1 << (format.fraction_bits - 1);
        let sign = if a & from.sign_bit() == 0 { 0 } else { format.sign_bit() };
        sign | ((1 << format.exponent_bits) - 1) << format.fraction_bits | fraction | quiet
    }

    /// Applies `.sat` and `.ftz` to a result.
    #[inline(always)]
    fn finish(self, mode: Mode, d: u64) -> u64 {
        let d = if mode.ftz && self == Float::F32 { u64::from(single::flush(d as u32)) } else { d };
        if !mode.sat {
            return d;
        }
        let x = self.widen(false, d);
        if x > 0.0 { self.narrow(Round::Zero, x.min(1.0)) } else { 0 }
    }
}

/// `cvt` between floats with floating-point rounding; a widening ignores the rounding. `.ftz` concerns f32 only.
#[inline(always)]
#[must_use]
pub fn float_to_float(from: Float, to: Float, mode: Mode, a: u64) -> u64 {
    let copies = matches!((from, to), (Float::F32, Float::F32) | (Float::F64, Float::F64) | (Float::Bf16, Float::F32));
    if copies && !mode.sat && !mode.ftz {
        return if from == Float::Bf16 { (a & 0xffff) << 16 } else { a };
    }
    if from.is_nan(a) {
        // A flushed f32 NaN is canonical before it is converted (measured on an H200).
        let a = if mode.ftz && (from, to) == (Float::F32, Float::F64) { u64::from(NAN_F32) } else { a };
        return if mode.sat { 0 } else { from.nan_to(to, a) };
    }
    let x = from.widen(mode.ftz && to != Float::F16, a);
    if mode.ftz && to == Float::F32 && single::tiny(mode.round, x) {
        return to.finish(mode, u64::from(0f32.copysign(x as f32).to_bits()));
    }
    to.finish(mode, to.narrow(mode.round, x))
}

/// `cvt.f32.f16`: [`float_to_float`] of every half of a register, fast.
#[inline(always)]
#[must_use]
pub fn f16_to_f32(a: u16) -> u32 {
    if Half::F16.is_nan(a) { NAN_F32 } else { Half::F16.widen(a).to_bits() }
}

/// `cvt` of a float to an integral value of the same type (`.rni`, `.rzi`, `.rmi`, `.rpi` are the rounding modes).
#[inline(always)]
#[must_use]
pub fn float_to_integral(ty: Float, mode: Mode, a: u64) -> u64 {
    if ty.is_nan(a) {
        return if mode.sat { 0 } else { ty.nan_to(ty, a) };
    }
    ty.finish(mode, ty.narrow(Round::Nearest, integral(mode.round, ty.widen(mode.ftz, a))))
}

/// An f64 rounded to an integer, with the sign of the operand, without a library call.
#[inline(always)]
fn integral(round: Round, x: f64) -> f64 {
    if x.is_nan() || x.abs() >= 4_503_599_627_370_496.0 {
        return x;
    }
    let whole = x as i64;
    let rest = x - whole as f64;
    let step = match round {
        Round::Nearest => rest.abs() > 0.5 || (rest.abs() == 0.5 && whole & 1 != 0),
        Round::NearestAway => rest.abs() >= 0.5,
        Round::Zero => false,
        Round::Down => rest < 0.0,
        Round::Up => rest > 0.0,
    };
    let away = if x < 0.0 { -1 } else { 1 };
    ((whole + if step { away } else { 0 }) as f64).copysign(x)
}

/// `cvt` of a float to an integer, clamped to its range. NaN gives 0, or only the sign bit if either type has 64 bits.
#[inline(always)]
#[must_use]
pub fn float_to_int(from: Float, to: Int, round: Round, ftz: bool, a: u64) -> u64 {
    let x = from.widen(ftz, a);
    if x.is_nan() {
        let wide = from == Float::F64 || to.bits == 64;
        return if wide { to.extend(1 << (to.bits - 1)) } else { 0 };
    }
    let x = integral(round, x);
    match to.signed {
        true => (x as i64).clamp(i64::MIN >> (64 - to.bits), i64::MAX >> (64 - to.bits)) as u64,
        false => (x as u64).min(u64::MAX >> (64 - to.bits)),
    }
}

/// `cvt` of an integer to a float.
#[inline(always)]
#[must_use]
pub fn int_to_float(from: Int, to: Float, mode: Mode, a: u64) -> u64 {
    let value = from.value(a);
    let d = match (to, mode.round) {
        (Float::F32, Round::Nearest) if from.signed => u64::from((value as i64 as f32).to_bits()),
        (Float::F32, Round::Nearest) => u64::from((value as u64 as f32).to_bits()),
        (Float::F16 | Float::Bf16 | Float::F32 | Float::F64, round) => to.format().round(round, Exact::integer(value)),
    };
    to.finish(mode, d)
}

/// `cvt` between integers: the low bits, or with `.sat` the nearest number of the destination type.
#[inline(always)]
#[must_use]
pub fn int_to_int(from: Int, to: Int, sat: bool, a: u64) -> u64 {
    let value = from.value(a);
    let (low, high) = to.range();
    to.extend(if sat { value.clamp(low, high) } else { value })
}

#[cfg(test)]
mod tests;

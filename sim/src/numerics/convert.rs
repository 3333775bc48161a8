//! `cvt`: conversions between every pair of scalar types (PTX ISA 9.7.9.21).
//!
//! Registers come and go as the low bits of a `u64`; results are extended to 64 bits as the manual says: signed integers by
//! sign, everything else by zeros. The manual leaves NaN open. As measured on an H200, one that goes through f64 keeps its sign
//! and the upper bits of its payload, made quiet; copies (f32 to f32, f64 to f64, bf16 to f32) keep all bits; any other becomes
//! the canonical one of the destination. These are the same machine instructions on every generation, whose rule is assumed
//! to be. `.ftz` on the way to f16 is accepted and does nothing (ptxas 12.9 and 13 drop it): subnormal f32 are numbers.

use super::exact::{self, E4M3, E5M2, Exact, F32, F64, Format, Value};
use super::half::{self, Half};
use super::{Mode, NAN_F32, NAN_HALF, Round, double, packed1, single};

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

/// The other modifiers of a conversion to a narrow float (`cvt.frnd2{.relu}{.satfinite}`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clamp {
    /// `.relu`: negative results and -0 become +0.
    pub relu: bool,
    /// `.satfinite`: beyond the largest finite number, infinity included, comes that number.
    pub satfinite: bool,
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

    /// The NaN of arithmetic in this type; f64 has none and keeps payloads.
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

    /// What becomes of a NaN.
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

    /// `.sat` and `.ftz` of a result.
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
        // Flushed first, a NaN of f32 is the canonical one when it is converted (measured on an H200).
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

/// `cvt` of a float to an integral value of the same type (`.rni`, `.rzi`, `.rmi`, `.rpi` are the rounding).
#[inline(always)]
#[must_use]
pub fn float_to_integral(ty: Float, mode: Mode, a: u64) -> u64 {
    if ty.is_nan(a) {
        return if mode.sat { 0 } else { ty.nan_to(ty, a) };
    }
    ty.finish(mode, ty.narrow(Round::Nearest, integral(mode.round, ty.widen(mode.ftz, a))))
}

/// An f64 rounded to an integer, with the sign of the operand; no library call.
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

/// `cvt` of a float to an integer, clamped to its range. NaN gives 0, or the sign bit alone when either type has 64 bits.
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

/// `cvt` between integers: the low bits, or with `.sat` the nearest number of the destination.
#[inline(always)]
#[must_use]
pub fn int_to_int(from: Int, to: Int, sat: bool, a: u64) -> u64 {
    let value = from.value(a);
    let (low, high) = to.range();
    to.extend(if sat { value.clamp(low, high) } else { value })
}

/// `cvt.frnd2{.relu}{.satfinite}.{f16,bf16}.f32`, also each half of the packed forms.
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

/// `cvt.{rna,rn,rz}{.relu}{.satfinite}.tf32.f32`: 10 fraction bits kept, the low 13 bits of the register zero.
///
/// A NaN is 0x7fffe000 of `.rn` and `.rz`. `.rna` is integer arithmetic, which cuts a NaN off, one whose payload is in the low
/// bits to an infinity, and clamps by subtracting the unit from whatever is not finite (ptxas 12.9; measured on Hopper).
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

    /// The same number in f16, which holds them all; NaN becomes 0x7fff.
    #[inline(always)]
    #[must_use]
    pub fn widen(self, a: u8) -> u16 {
        match self {
            Fp8::E5m2 if a & 0x7f > 0x7c => NAN_HALF,
            Fp8::E5m2 => u16::from(a) << 8,
            Fp8::E4m3 if a & 0x7f == 0x7f => NAN_HALF,
            Fp8::E4m3 => {
                // The fields shifted into place are the number times 2^-8; scaling it is exact.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::single::tests::{EDGES, Rng};

    const FLOATS: [Float; 4] = [Float::F16, Float::Bf16, Float::F32, Float::F64];
    const ROUNDS: [Round; 4] = [Round::Nearest, Round::Zero, Round::Down, Round::Up];
    const INTS: [Int; 8] = [
        Int { signed: false, bits: 8 },
        Int { signed: true, bits: 8 },
        Int { signed: false, bits: 16 },
        Int { signed: true, bits: 16 },
        Int { signed: false, bits: 32 },
        Int { signed: true, bits: 32 },
        Int { signed: false, bits: 64 },
        Int { signed: true, bits: 64 },
    ];

    /// Operands of a type: edges and random bits, or every encoding of a 16-bit type.
    fn samples(ty: Float) -> Vec<u64> {
        let mut rng = Rng(11);
        match ty {
            Float::F16 | Float::Bf16 => (0..=0xffff).collect(),
            Float::F32 => EDGES
                .iter()
                .map(|&e| u64::from(e))
                .chain((0..4000).map(|i| {
                    let x = rng.next() as u32;
                    // Half of them of a magnitude that an f16 or an integer can hold, with short fractions.
                    u64::from(if i % 2 == 0 {
                        x
                    } else {
                        (x & 0x800f_f000) + 0x3000_0000 + (x >> 4) % 0x2400 * 0x1_0000
                    })
                }))
                .flat_map(|e| [e, e ^ 1 << 31])
                .collect(),
            Float::F64 => EDGES
                .iter()
                .map(|&e| f64::from(f32::from_bits(e)).to_bits())
                .chain((0..4000).map(|_| rng.next()))
                .chain((0..4000u64).map(|i| f64::from(f32::from_bits((i * 0x10_7f3d) as u32)).to_bits() ^ (i % 3)))
                .flat_map(|e| [e, e ^ 1 << 63])
                .collect(),
        }
    }

    #[test]
    fn floats_round_once() {
        for from in FLOATS {
            for a in samples(from) {
                let value = from.format().decode(a);
                for to in FLOATS {
                    for round in ROUNDS {
                        // The rules for NaN are those of `measured`.
                        if value == Value::Nan {
                            continue;
                        }
                        let want = to.format().encode(round, value);
                        let got = float_to_float(from, to, Mode::of(round), a);
                        assert_eq!(got, want, "{from:?} {to:?} {round:?} {a:#x}");
                    }
                }
            }
        }
    }

    /// The definition, on exact values: round to an integer, then clamp.
    #[test]
    fn floats_become_integers() {
        for from in FLOATS {
            for a in samples(from).into_iter().step_by(7) {
                let exact = match from.format().decode(a) {
                    Value::Finite(e) => Some(e),
                    Value::Nan | Value::Infinite(_) => None,
                };
                for round in ROUNDS {
                    let Some(e) = exact else { continue };
                    let whole = rounded_integer(round, e);
                    for to in INTS {
                        let (low, high) = to.range();
                        let want = to.extend(whole.clamp(low, high));
                        assert_eq!(float_to_int(from, to, round, false, a), want, "{from:?} {to:?} {round:?} {a:#x}");
                    }
                }
            }
        }
    }

    /// Rounded by comparing twice the remainder with the unit; saturates far outside of every integer type.
    fn rounded_integer(round: Round, e: Exact) -> i128 {
        let sign = if e.negative { -1 } else { 1 };
        if e.significand == 0 {
            return 0;
        }
        if e.exponent >= 0 {
            return if e.exponent > 66 { sign << 100 } else { sign * ((e.significand as i128) << e.exponent) };
        }
        let (whole, twice) = match -e.exponent {
            s @ 1..=100 => (e.significand >> s, (e.significand & ((1 << s) - 1)).cmp(&(1 << (s - 1)))),
            _ => (0, std::cmp::Ordering::Less),
        };
        let inexact = -e.exponent > 100 || whole << -e.exponent != e.significand;
        let up = inexact
            && match round {
                Round::Nearest => twice.is_gt() || twice.is_eq() && whole & 1 == 1,
                Round::NearestAway => twice.is_ge(),
                Round::Zero => false,
                Round::Down => e.negative,
                Round::Up => !e.negative,
            };
        sign * (whole as i128 + i128::from(up))
    }

    #[test]
    fn specials_become_integers() {
        let (s32, u64_) = (Int { signed: true, bits: 32 }, Int { signed: false, bits: 64 });
        let nan = u64::from(NAN_F32);
        assert_eq!(float_to_int(Float::F32, s32, Round::Zero, false, nan), 0);
        assert_eq!(float_to_int(Float::F32, u64_, Round::Zero, false, nan), 1 << 63);
        assert_eq!(float_to_int(Float::F64, s32, Round::Zero, false, super::super::NAN_F64), 0xffff_ffff_8000_0000);
        assert_eq!(float_to_int(Float::F32, s32, Round::Zero, false, 0xff80_0000), 0xffff_ffff_8000_0000);
        assert_eq!(float_to_int(Float::F16, u64_, Round::Zero, false, 0x7c00), u64::MAX);
        assert_eq!(float_to_int(Float::F32, s32, Round::Up, false, 1), 1);
        assert_eq!(float_to_int(Float::F32, s32, Round::Up, true, 1), 0);
    }

    #[test]
    fn integers_become_floats() {
        let mut rng = Rng(13);
        for i in 0..4000 {
            let a = rng.next() >> (i % 64);
            for from in INTS {
                for to in FLOATS {
                    for round in ROUNDS {
                        let want = to.format().round(round, Exact::integer(from.value(a)));
                        assert_eq!(
                            int_to_float(from, to, Mode::of(round), a),
                            want,
                            "{from:?} {to:?} {round:?} {a:#x}"
                        );
                    }
                }
            }
        }
        let s32 = Int { signed: true, bits: 32 };
        assert_eq!(int_to_float(s32, Float::F32, Mode::RN, 0xffff_ffff), u64::from((-1f32).to_bits()));
        assert_eq!(int_to_float(s32, Float::F16, Mode::RN, 70000), 0x7c00);
        assert_eq!(int_to_float(s32, Float::F16, Mode::of(Round::Zero), 70000), 0x7bff);
    }

    #[test]
    fn integers_narrow() {
        let (s8, u8_, s32) = (INTS[1], INTS[0], INTS[5]);
        assert_eq!(int_to_int(s32, s8, true, 300), 127);
        assert_eq!(int_to_int(s32, s8, false, 300), 44);
        assert_eq!(int_to_int(s32, s8, false, 200), 0xffff_ffff_ffff_ffc8);
        assert_eq!(int_to_int(s32, u8_, true, -5i64 as u64), 0);
        assert_eq!(int_to_int(INTS[6], INTS[7], true, u64::MAX), i64::MAX as u64);
        assert_eq!(int_to_int(s8, INTS[6], false, 0xff), u64::MAX);
    }

    #[test]
    fn integral_values_keep_their_sign() {
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(float_to_integral(Float::F32, Mode::RN, f(-0.25)), f(-0.0));
        assert_eq!(float_to_integral(Float::F32, Mode::RN, f(2.5)), f(2.0));
        assert_eq!(float_to_integral(Float::F32, Mode::RN, f(3.5)), f(4.0));
        assert_eq!(float_to_integral(Float::F32, Mode::of(Round::Down), f(-2.5)), f(-3.0));
        assert_eq!(float_to_integral(Float::F32, Mode::of(Round::Up), f(1e-40)), f(1.0));
        let ftz = Mode { ftz: true, ..Mode::of(Round::Up) };
        assert_eq!(float_to_integral(Float::F32, ftz, f(1e-40)), 0);
        assert_eq!(float_to_float(Float::F32, Float::F32, Mode { sat: true, ..Mode::RN }, f(-3.0)), 0);
        assert_eq!(float_to_float(Float::F64, Float::F32, Mode { sat: true, ..Mode::RN }, 2f64.to_bits()), f(1.0));
    }

    /// Against a search for the nearest of all finite encodings, for every f16 input.
    #[test]
    fn fp8_is_nearest_even() {
        for ty in [Fp8::E4m3, Fp8::E5m2] {
            let finite: Vec<f32> = (0..=ty.format().max_finite as u8).map(|b| Half::F16.widen(ty.widen(b))).collect();
            assert!(finite.windows(2).all(|w| w[0] < w[1]));
            for h in 0..0x7c00u16 {
                let x = Half::F16.widen(h);
                // The first encoding at or above the midpoint to its successor, by bisection.
                let above = finite.partition_point(|&v| v < x).min(finite.len() - 1);
                let below = above.saturating_sub(1);
                let best = match (x - finite[below]).partial_cmp(&(finite[above] - x)).expect("numbers") {
                    std::cmp::Ordering::Less => below,
                    std::cmp::Ordering::Greater => above,
                    std::cmp::Ordering::Equal => [below, above][usize::from(below % 2 == 1)],
                } as u8;
                assert_eq!(f32_to_fp8(ty, false, x.to_bits()), best, "{ty:?} {x}");
                assert_eq!(f32_to_fp8(ty, false, (-x).to_bits()), best | 0x80, "{ty:?} -{x}");
                assert_eq!(f32_to_fp8(ty, true, (-x).to_bits()), 0);
            }
            for b in 0..=255u8 {
                match ty.format().decode(u64::from(b)) {
                    Value::Nan => assert_eq!(ty.widen(b), NAN_HALF),
                    v => assert_eq!(u64::from(ty.widen(b)), exact::F16.encode(Round::Nearest, v), "{ty:?} {b:#x}"),
                }
            }
            assert_eq!(f32_to_fp8(ty, false, 0x7f80_0000), ty.format().max_finite as u8);
            assert_eq!(f32_to_fp8(ty, false, 0xff80_0000), ty.format().max_finite as u8 | 0x80);
            assert_eq!(f32_to_fp8(ty, true, 0xffc0_0000), 0x7f);
        }
        assert_eq!(f32_to_fp8x2(Fp8::E4m3, false, 1f32.to_bits(), 2f32.to_bits()), 0x3840);
        assert_eq!(half2_to_fp8x2(Fp8::E5m2, Half::Bf16, false, 0x3f80_4000), 0x3c40);
        assert_eq!(fp8x2_to_half2(Fp8::E4m3, false, 0x38c0), 0x3c00_c000);
        assert_eq!(fp8x2_to_half2(Fp8::E4m3, true, 0x38c0), 0x3c00_0000);
    }

    #[test]
    fn tf32_keeps_ten_bits() {
        let plain = Clamp::default();
        assert_eq!(f32_to_tf32(Round::NearestAway, plain, 0x3f80_1000), 0x3f80_2000);
        assert_eq!(f32_to_tf32(Round::Nearest, plain, 0x3f80_1000), 0x3f80_0000);
        assert_eq!(f32_to_tf32(Round::Nearest, plain, 0x3f80_3000), 0x3f80_4000);
        assert_eq!(f32_to_tf32(Round::Zero, plain, 0xbf80_1fff), 0xbf80_0000);
        assert_eq!(f32_to_tf32(Round::NearestAway, plain, 0x7f7f_ffff), 0x7f80_0000);
        assert_eq!(f32_to_tf32(Round::NearestAway, Clamp { satfinite: true, relu: false }, 0x7f80_0000), 0x7f7f_e000);
        assert_eq!(f32_to_tf32(Round::Zero, Clamp { satfinite: false, relu: true }, 0xbf80_0000), 0);
        assert_eq!(f32_to_tf32(Round::Zero, plain, 0xffc0_0001), 0x7fff_e000);
    }

    #[test]
    fn halves_clamp() {
        let sat = Clamp { satfinite: true, relu: false };
        let relu = Clamp { satfinite: false, relu: true };
        assert_eq!(f32_to_half(Half::F16, Round::Nearest, sat, 1e6f32.to_bits()), 0x7bff);
        assert_eq!(f32_to_half(Half::Bf16, Round::Nearest, sat, 0xff80_0000), 0xff7f);
        assert_eq!(f32_to_half(Half::F16, Round::Nearest, sat, 0xffc0_0000), NAN_HALF);
        assert_eq!(f32_to_half(Half::F16, Round::Zero, Clamp::default(), 1e6f32.to_bits()), 0x7bff);
        assert_eq!(f32_to_half2(Half::F16, Round::Nearest, relu, 1f32.to_bits(), (-1f32).to_bits()), 0x3c00_0000);
    }
}

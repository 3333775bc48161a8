//! f16 and bf16 arithmetic on register bits (PTX ISA 9.7.4); packed forms are [`super::packed2`] and [`super::packed3`] of these.
//!
//! Every operation is formed exactly or rounded to odd in a wider type and rounded once. A product of two f16 is exact in f32;
//! one of two bf16 is too, but may leave its range, so bf16 goes through f64. All rounding is to nearest even, the only one
//! that PTX offers here.

use super::exact::{BF16, F16, Format, Value};
use super::single::{self, Extremum};
use super::{Mode, NAN_HALF, Round};

/// The two 16-bit formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
}

const SIGN: u16 = 1 << 15;

impl Half {
    /// Bits of the fraction field.
    #[inline(always)]
    const fn fraction_bits(self) -> u32 {
        match self {
            Half::F16 => 10,
            Half::Bf16 => 7,
        }
    }

    /// The infinity.
    #[inline(always)]
    const fn infinity(self) -> u16 {
        SIGN - (1 << self.fraction_bits())
    }

    /// The format as data.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Half::F16 => F16,
            Half::Bf16 => BF16,
        }
    }

    /// Whether these bits are a NaN.
    #[inline(always)]
    #[must_use]
    pub fn is_nan(self, a: u16) -> bool {
        a & !SIGN > self.infinity()
    }

    /// A subnormal becomes a zero of the same sign.
    #[inline(always)]
    #[must_use]
    pub fn flush(self, a: u16) -> u16 {
        if a & self.infinity() == 0 { a & SIGN } else { a }
    }

    /// The same number as f32; a NaN stays one, with its payload.
    #[inline(always)]
    #[must_use]
    pub fn widen(self, a: u16) -> f32 {
        match self {
            Half::F16 => widen_f16(a),
            Half::Bf16 => f32::from_bits(u32::from(a) << 16),
        }
    }

    /// The nearest number to an f32 (ties to even); NaN becomes 0x7fff.
    #[inline(always)]
    #[must_use]
    pub fn narrow(self, x: f32) -> u16 {
        match self {
            Half::F16 => narrow_f16(x),
            Half::Bf16 => narrow_bf16(x),
        }
    }

    /// The nearest number to an f64 (ties to even); NaN becomes 0x7fff.
    #[inline(always)]
    fn narrow64(self, x: f64) -> u16 {
        self.narrow(f32_to_odd(x))
    }

    #[inline(always)]
    fn input(self, mode: Mode, a: u16) -> f32 {
        self.widen(if mode.ftz { self.flush(a) } else { a })
    }

    #[inline(always)]
    fn output(self, mode: Mode, d: u16) -> u16 {
        let d = if mode.ftz { self.flush(d) } else { d };
        if !mode.sat {
            return d;
        }
        let one = self.infinity() >> 1 & !((1 << self.fraction_bits()) - 1);
        if d & SIGN != 0 || self.is_nan(d) { 0 } else { d.min(one) }
    }
}

/// f16 to f32: the fields shift into place; a multiplication by 2^112 repairs the bias, and subnormals with it.
#[inline(always)]
fn widen_f16(a: u16) -> f32 {
    let shifted = f32::from_bits(u32::from(a & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    // Infinity and NaN arrive with exponent 2^16, which no finite f16 has.
    let special = if a & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(shifted.to_bits() | special | u32::from(a & SIGN) << 16)
}

/// f32 to f16 to nearest even, without a branch: the subnormal range by an addition whose unit in the last place is 2^-24.
#[inline(always)]
fn narrow_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    // 65520 is halfway between the largest number and the power of two that overflows.
    let large = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    let number = large | ((bits >> 16) & 0x8000);
    (if magnitude > 0x7f80_0000 { u32::from(NAN_HALF) } else { number }) as u16
}

#[inline(always)]
fn narrow_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let number = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { u32::from(NAN_HALF) } else { number }) as u16
}

/// f64 to f32 rounded to odd: safe for one more rounding to at most 22 bits.
#[inline(always)]
pub(crate) fn f32_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    // One step back if rounding went away from zero; then odd if anything is lost. An f32 infinity of a finite number steps
    // back to the largest f32, which is odd and overflows every narrower format.
    let away = u32::from(back.abs() > x.abs());
    let inexact = u32::from(back < x) | u32::from(back > x);
    f32::from_bits(near.to_bits().wrapping_sub(away) | inexact)
}

/// `add.f16`, `add.bf16`.
#[inline(always)]
#[must_use]
pub fn add(ty: Half, mode: Mode, a: u16, b: u16) -> u16 {
    let (a, b) = (ty.input(mode, a), ty.input(mode, b));
    // A second rounding from 24 bits to 11 or 8 is harmless for a sum, and both formats' subnormal sums are exact.
    ty.output(mode, ty.narrow(a + b))
}

/// `sub.f16`, `sub.bf16`.
#[inline(always)]
#[must_use]
pub fn sub(ty: Half, mode: Mode, a: u16, b: u16) -> u16 {
    add(ty, mode, a, if ty.is_nan(b) { b } else { b ^ SIGN })
}

/// `mul.f16`, `mul.bf16`.
#[inline(always)]
#[must_use]
pub fn mul(ty: Half, mode: Mode, a: u16, b: u16) -> u16 {
    let (a, b) = (ty.input(mode, a), ty.input(mode, b));
    ty.output(
        mode,
        match ty {
            Half::F16 => ty.narrow(flush_tiny(mode, a * b)),
            Half::Bf16 => ty.narrow64(f64::from(a) * f64::from(b)),
        },
    )
}

/// `fma.f16`, `fma.bf16`: one rounding.
#[inline(always)]
#[must_use]
pub fn fma(ty: Half, mode: Mode, a: u16, b: u16, c: u16) -> u16 {
    let (a, b, c) = (ty.input(mode, a), ty.input(mode, b), ty.input(mode, c));
    ty.output(
        mode,
        match ty {
            Half::F16 => ty.narrow(flush_tiny(mode, sum_to_odd(a * b, c))),
            Half::Bf16 => ty.narrow64(single::sum_to_odd(f64::from(a) * f64::from(b), f64::from(c))),
        },
    )
}

/// The NaN that TMA copies write where a tensor has no element, if the map requests it: the same bits for f16 and bf16.
/// `fma.oob` recognises these bits, with either sign, as was measured on an H200.
pub const OUTSIDE: u16 = 0x7FF7;

/// Whether `fma.oob` takes a factor for an element outside a tensor.
#[inline(always)]
#[must_use]
pub const fn is_outside(x: u16) -> bool {
    x & 0x7FFF == OUTSIDE
}

/// `.ftz` of an f16 result that is to be rounded, by the rule of [`super::single`]: below the middle between 2^-14 and the number
/// of 11 bits before it is zero. bf16 has no `.ftz`.
#[inline(always)]
fn flush_tiny(mode: Mode, exact: f32) -> f32 {
    const MIDDLE: f32 = 4095.0 / 4096.0 / 16384.0;
    if mode.ftz && exact.abs() < MIDDLE { 0f32.copysign(exact) } else { exact }
}

/// A sum in f32 rounded to odd (see [`single::sum_to_odd`]).
#[inline(always)]
fn sum_to_odd(p: f32, c: f32) -> f32 {
    let s = p + c;
    let c_part = s - p;
    let error = (p - (s - c_part)) + (c - c_part);
    let bits = s.to_bits();
    // One step away from zero or toward it, if inexact and even.
    let step = if (error > 0.0) == (s > 0.0) { 1 } else { u32::MAX };
    let inexact = u32::from(error.abs() > 0.0);
    f32::from_bits(bits.wrapping_add(step & (inexact & !bits & 1).wrapping_neg()))
}

/// `.relu` of a result: negative numbers and -0 become +0, a NaN the canonical one.
#[inline(always)]
#[must_use]
pub fn relu(ty: Half, d: u16) -> u16 {
    match (ty.is_nan(d), d & SIGN != 0) {
        (true, _) => NAN_HALF,
        (false, true) => 0,
        (false, false) => d,
    }
}

/// `neg.f16`, `neg.bf16`: the sign turns; a NaN becomes the canonical one, since the device adds zero (measured on Hopper).
#[inline(always)]
#[must_use]
pub fn neg(ty: Half, ftz: bool, a: u16) -> u16 {
    if ty.is_nan(a) { NAN_HALF } else { (if ftz { ty.flush(a) } else { a }) ^ SIGN }
}

/// `abs.f16`, `abs.bf16`: the sign is cleared; a NaN becomes the canonical one, as in [`neg`].
#[inline(always)]
#[must_use]
pub fn abs(ty: Half, ftz: bool, a: u16) -> u16 {
    if ty.is_nan(a) { NAN_HALF } else { (if ftz { ty.flush(a) } else { a }) & !SIGN }
}

#[inline(always)]
fn extremum(ty: Half, how: Extremum, a: u16, b: u16, first: impl Fn(i16, i16) -> bool) -> u16 {
    let (a, b) = if how.ftz { (ty.flush(a), ty.flush(b)) } else { (a, b) };
    let sign = (a ^ b) & SIGN;
    let (a, b) = if how.xorsign_abs { (a & !SIGN, b & !SIGN) } else { (a, b) };
    let key = |x: u16| (x ^ (((x as i16) >> 15) as u16 >> 1)) as i16;
    let d = match (ty.is_nan(a), ty.is_nan(b)) {
        (true, true) => return NAN_HALF,
        (true, false) | (false, true) if how.nan => return NAN_HALF,
        (true, false) => b,
        (false, true) => a,
        (false, false) if first(key(a), key(b)) => a,
        (false, false) => b,
    };
    if how.xorsign_abs { d | sign } else { d }
}

/// `min.f16`, `min.bf16`; -0 is less than +0.
#[inline(always)]
#[must_use]
pub fn min(ty: Half, how: Extremum, a: u16, b: u16) -> u16 {
    extremum(ty, how, a, b, |x, y| x < y)
}

/// `max.f16`, `max.bf16`; +0 is more than -0.
#[inline(always)]
#[must_use]
pub fn max(ty: Half, how: Extremum, a: u16, b: u16) -> u16 {
    extremum(ty, how, a, b, |x, y| x > y)
}

/// Any rounding of an exact value to a 16-bit format; NaN becomes 0x7fff.
#[must_use]
pub fn encode(ty: Half, round: Round, value: Value) -> u16 {
    ty.format().encode(round, value) as u16
}

/// The exact value of 16 bits.
#[must_use]
pub fn decode(ty: Half, a: u16) -> Value {
    ty.format().decode(u64::from(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::exact;
    use crate::numerics::single::tests::Rng;

    const TYPES: [Half; 2] = [Half::F16, Half::Bf16];

    /// `fma` by exact arithmetic: the reference of the fast one.
    fn exact_fma(ty: Half, a: u16, b: u16, c: u16) -> u16 {
        encode(ty, Round::Nearest, exact::add(Round::Nearest, exact::mul(decode(ty, a), decode(ty, b)), decode(ty, c)))
    }

    #[test]
    fn widening_is_exact_and_narrowing_its_inverse() {
        for ty in TYPES {
            for a in 0..=u16::MAX {
                let wide = ty.widen(a);
                if ty.is_nan(a) {
                    assert!(wide.is_nan());
                    assert_eq!(ty.narrow(wide), NAN_HALF);
                } else {
                    assert_eq!(exact::F32.encode(Round::Nearest, decode(ty, a)), u64::from(wide.to_bits()));
                    assert_eq!(ty.narrow(wide), a);
                }
            }
        }
    }

    /// At, just below and just above every midpoint of neighbours, the only places where rounding can err.
    #[test]
    fn narrowing_rounds_to_nearest_even() {
        for ty in TYPES {
            let check = |x: f32| {
                let want = encode(ty, Round::Nearest, exact::F32.decode(u64::from(x.to_bits())));
                assert_eq!(ty.narrow(x), want, "{ty:?} {:#x}", x.to_bits());
                assert_eq!(ty.narrow(-x), want ^ SIGN, "{ty:?} -{:#x}", x.to_bits());
            };
            for a in 0..ty.infinity() {
                let next = if a + 1 == ty.infinity() { 2.0 * ty.widen(a) } else { ty.widen(a + 1) };
                let middle = ty.widen(a) + (next - ty.widen(a)) / 2.0;
                for x in [middle, middle.next_down(), middle.next_up()] {
                    check(x);
                }
            }
            check(f32::MAX);
            check(f32::from_bits(1));
            check(f32::INFINITY);
        }
    }

    #[test]
    fn arithmetic_agrees_with_exact_arithmetic() {
        let mut rng = Rng(5);
        let one = |ty: Half| ty.narrow(1.0);
        for i in 0..300_000u32 {
            let x = rng.next();
            let (mut a, mut b, mut c) = (x as u16, (x >> 16) as u16, (x >> 32) as u16);
            for ty in TYPES {
                if i % 2 == 0 {
                    // Products near c, and sums that cancel.
                    let p = ty.narrow64(f64::from(ty.widen(a)) * f64::from(ty.widen(b)));
                    c = p ^ SIGN ^ (x >> 48) as u16 & 3;
                } else if i % 4 == 1 {
                    (a, b) = (a & 0x8fff, b | 0x3000);
                }
                assert_eq!(fma(ty, Mode::RN, a, b, c), exact_fma(ty, a, b, c), "fma {ty:?} {a:#x} {b:#x} {c:#x}");
                assert_eq!(add(ty, Mode::RN, a, c), exact_fma(ty, a, one(ty), c), "add {ty:?} {a:#x} {c:#x}");
                let product = encode(ty, Round::Nearest, exact::mul(decode(ty, a), decode(ty, b)));
                assert_eq!(mul(ty, Mode::RN, a, b), product, "mul {ty:?} {a:#x} {b:#x}");
            }
        }
    }

    #[test]
    fn modifiers() {
        let sat = Mode { sat: true, ..Mode::RN };
        let ftz = Mode { ftz: true, ..Mode::RN };
        assert_eq!(add(Half::F16, sat, 0x3c00, 0x3c00), 0x3c00);
        assert_eq!(add(Half::F16, sat, 0x7e00, 0x3c00), 0);
        assert_eq!(add(Half::F16, sat, 0xbc00, 0), 0);
        assert_eq!(mul(Half::F16, ftz, 0x03ff, 0x3c00), 0);
        assert_eq!(mul(Half::F16, ftz, 0x8400, 0x3800), 0x8000);
        assert_eq!(relu(Half::Bf16, 0xbf80), 0);
        assert_eq!(relu(Half::Bf16, 0xffc0), NAN_HALF);
        assert_eq!(
            crate::numerics::packed2(0x3c00_4000, 0x3c00_3c00, |a, b| add(Half::F16, Mode::RN, a, b)),
            0x4000_4200
        );
        assert_eq!(min(Half::F16, Extremum::default(), 0, SIGN), SIGN);
        assert_eq!(max(Half::Bf16, Extremum::default(), 0x7fc0, 0xbf80), 0xbf80);
        assert_eq!(max(Half::Bf16, Extremum { nan: true, ..Extremum::default() }, 0x7fc0, 0xbf80), NAN_HALF);
        assert_eq!((neg(Half::F16, false, 1), abs(Half::F16, true, 0x8001)), (SIGN | 1, 0));
    }
}

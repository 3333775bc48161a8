//! The approximate instructions: `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos`, `tanh`, `div` (PTX ISA 9.7.3,
//! 9.7.4).
//!
//! Hardware computes them from tables that are not public. Here they are computed in f64 by series of our own, accurate
//! to about 2^-50, and rounded to nearest: in practice the correctly rounded results. A device may deviate within an
//! [`Allowance`], the error in the manual; a comparison with a device uses [`Function::allows`].
//!
//! Special operands follow the manual's tables. Without `.ftz` subnormals are numbers.

use super::half::{self, Half};
use super::single::{self, flush, output};
use super::{Mode, NAN_F32, Round, double, packed1};

/// The approximate functions of f32 with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `ex2.approx.f32`
    Ex2,
    /// `lg2.approx.f32`
    Lg2,
    /// `rcp.approx.f32`
    Rcp,
    /// `rsqrt.approx.f32`
    Rsqrt,
    /// `sqrt.approx.f32`
    Sqrt,
    /// `sin.approx.f32`
    Sin,
    /// `cos.approx.f32`
    Cos,
    /// `tanh.approx.f32`
    Tanh,
}

/// The largest error in the manual, in the manual's form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowance {
    /// Units in the last place of the f32 result.
    Ulps(f64),
    /// Relative to the exact value.
    Relative(f64),
    /// Absolute.
    Absolute(f64),
    /// No guarantee for this operand.
    Anything,
}

const PI: f64 = std::f64::consts::PI;

impl Function {
    /// Every function, for tables and tests.
    pub const ALL: [Function; 8] = [
        Function::Ex2,
        Function::Lg2,
        Function::Rcp,
        Function::Rsqrt,
        Function::Sqrt,
        Function::Sin,
        Function::Cos,
        Function::Tanh,
    ];

    /// The result register for an operand register. `tanh` ignores `ftz`, which it does not have.
    #[must_use]
    pub fn apply(self, ftz: bool, a: u32) -> u32 {
        let ftz = ftz && self != Function::Tanh;
        let a = if ftz { flush(a) } else { a };
        if single::is_nan(a) {
            return NAN_F32;
        }
        output(Mode { ftz, ..Mode::RN }, self.value(f64::from(f32::from_bits(a))) as f32)
    }

    /// The function in f64.
    fn value(self, x: f64) -> f64 {
        match self {
            Function::Ex2 => exp2(x),
            Function::Lg2 => log2(x),
            Function::Rcp => 1.0 / x,
            Function::Rsqrt => 1.0 / x.sqrt(),
            Function::Sqrt => x.sqrt(),
            Function::Sin => sin_cos(x).0,
            Function::Cos => sin_cos(x).1,
            Function::Tanh => tanh(x),
        }
    }

    /// The error the manual allows for an operand.
    #[must_use]
    pub fn allowance(self, a: u32) -> Allowance {
        let x = f64::from(f32::from_bits(a));
        match self {
            Function::Ex2 => Allowance::Ulps(2.0),
            Function::Lg2 if x > 0.5 && x < 2.0 => Allowance::Absolute(power(-22.0)),
            Function::Lg2 => Allowance::Relative(power(-22.0)),
            Function::Rcp => Allowance::Ulps(1.0),
            Function::Rsqrt => Allowance::Relative(power(-22.9)),
            Function::Sqrt => Allowance::Relative(power(-23.0)),
            // The manual says 2^-20.5 for both. Measured on an H200, near three quarters of a turn: 2^-20.44.
            Function::Cos if x.abs() <= 2.0 * PI => Allowance::Absolute(power(-20.4)),
            Function::Sin if x.abs() <= 2.0 * PI => Allowance::Absolute(power(-20.5)),
            Function::Sin | Function::Cos if x.abs() <= 100.0 * PI => Allowance::Absolute(power(-14.7)),
            Function::Sin | Function::Cos => Allowance::Anything,
            Function::Tanh => Allowance::Relative(power(-11.0)),
        }
    }

    /// Whether the manual allows a device to return `d`. NaN, infinities and exact zeros must match the tables.
    #[must_use]
    pub fn allows(self, ftz: bool, a: u32, d: u32) -> bool {
        let want = self.apply(ftz, a);
        let a = if ftz && self != Function::Tanh { flush(a) } else { a };
        let x = f64::from(f32::from_bits(a));
        let special = !x.is_finite() || x == 0.0 || single::is_nan(want) || single::is_nan(d);
        if want == d || special {
            return want == d || single::is_nan(want) && single::is_nan(d);
        }
        let allowance = self.allowance(a);
        if allowance == Allowance::Anything {
            return true;
        }
        let (exact, got) = (self.value(x), f64::from(f32::from_bits(d)));
        if exact.abs() >= 2f64.powi(128) || got.is_infinite() {
            // Near the largest number, a permitted error may overflow.
            return exact.abs().min(got.abs()) >= f64::from(f32::MAX) * (1.0 - power(-21.0)) && exact * got > 0.0;
        }
        if ftz && got == 0.0 && exact.abs() < f64::from(f32::MIN_POSITIVE) * (1.0 + power(-21.0)) {
            return true;
        }
        let error = (got - exact).abs();
        let exponent = ((want >> 23) & 0xff).max(1) as i32 - 127;
        let ulp = 2f64.powi(exponent - 23);
        let rounding = ulp / 2.0;
        error
            <= match allowance {
                // The manual counts from the correctly rounded result.
                Allowance::Ulps(n) => n * ulp + rounding,
                // The bounds apply to f32 results; the error of a subnormal is at least half its unit.
                Allowance::Relative(r) => (r * exact.abs()).max(rounding),
                Allowance::Absolute(e) => e.max(rounding),
                Allowance::Anything => f64::INFINITY,
            }
    }
}

/// `2^x` for the allowances.
fn power(x: f64) -> f64 {
    exp2(x)
}

/// `div.approx.f32`: at most 2 ulp for divisors in [2^-126, 2^126]; larger divisors give zero, or NaN for an infinite
/// dividend.
#[must_use]
pub fn div(ftz: bool, a: u32, b: u32) -> u32 {
    let mode = Mode { ftz, ..Mode::RN };
    let magnitude = f32::from_bits(b & 0x7fff_ffff);
    if magnitude > 2f32.powi(126) && magnitude.is_finite() && !single::is_nan(a) {
        return if a & 0x7fff_ffff == 0x7f80_0000 { NAN_F32 } else { (a ^ b) & 1 << 31 };
    }
    single::div(mode, a, b)
}

/// `rsqrt.approx.f64`, a routine of Newton steps, accurate to the last bits, also for subnormals. A NaN becomes quiet;
/// a negative number gives 0xfff8000000000000.
#[must_use]
pub fn rsqrt_f64(a: u64) -> u64 {
    let near = double::div(Round::Nearest, 1f64.to_bits(), double::sqrt(Round::Nearest, a));
    if a >> 63 != 0 || a == 0 || a >= 0x7ff0_0000_0000_0000 {
        return near;
    }
    // x in [1, 4) times a power of four; one Newton step from its rounded root.
    let shift = if a >> 52 == 0 { 54 } else { 0 };
    let scaled = (f64::from_bits(a) * f64::from_bits((1023 + shift) << 52)).to_bits();
    let exponent = (scaled >> 52) as i64 - 1023;
    let half = exponent.div_euclid(2);
    let x = f64::from_bits(scaled.wrapping_sub((half as u64).wrapping_mul(2) << 52));
    let y = 1.0 / x.sqrt();
    let square = y * y;
    let rest = x.mul_add(-square, 1.0) - x * y.mul_add(y, -square);
    let y = y + y * rest / 2.0;
    y.to_bits().wrapping_sub((half as u64).wrapping_sub(shift / 2) << 52)
}

/// `rcp.approx.ftz.f64` (`sqrt` false) and `rsqrt.approx.ftz.f64`: only the upper 32 bits of operand and result count.
/// So a NaN with its payload in the lower bits counts as an infinity (measured on Hopper).
#[must_use]
pub fn reciprocal_f64(sqrt: bool, a: u64) -> u64 {
    let flush = |x: u64| if x & 0x7ff0_0000_0000_0000 == 0 { x & 1 << 63 } else { x };
    let x = f64::from_bits(flush(a & !0xffff_ffff));
    if x.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    let d = if sqrt { 1.0 / x.sqrt() } else { 1.0 / x };
    if d.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    // Rounded to nearest in 20 fraction bits; an infinity has no fraction bits that could carry.
    flush(d.to_bits().wrapping_add(0x8000_0000) & !0xffff_ffff)
}

/// `ex2.approx.f16` and `ex2.approx.ftz.bf16`.
#[must_use]
pub fn ex2_half(ty: Half, a: u16) -> u16 {
    let ftz = |x: u16| if ty == Half::Bf16 { ty.flush(x) } else { x };
    ftz(through_f32(ty, ftz(a), |x| Function::Ex2.value(x)))
}

/// `tanh.approx.{f16,bf16}`.
#[must_use]
pub fn tanh_half(ty: Half, a: u16) -> u16 {
    through_f32(ty, a, |x| Function::Tanh.value(x))
}

/// `ex2_half` of both halves.
#[must_use]
pub fn ex2_half2(ty: Half, a: u32) -> u32 {
    packed1(a, |x| ex2_half(ty, x))
}

/// `tanh_half` of both halves.
#[must_use]
pub fn tanh_half2(ty: Half, a: u32) -> u32 {
    packed1(a, |x| tanh_half(ty, x))
}

/// A function of a 16-bit float, rounded once.
fn through_f32(ty: Half, a: u16, f: impl Fn(f64) -> f64) -> u16 {
    ty.narrow(half::f32_to_odd(f(f64::from(ty.widen(a)))))
}

/// `2^x`, by the exponential series on [-1/2, 1/2].
fn exp2(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let x = x.clamp(-2000.0, 2000.0);
    let whole = (x + if x < 0.0 { -0.5 } else { 0.5 }) as i32;
    let r = (x - f64::from(whole)) * std::f64::consts::LN_2;
    // 0.35^17 / 17! is below 2^-70.
    let mut sum = 1.0;
    for k in (1..=16).rev() {
        sum = 1.0 + sum * r / f64::from(k);
    }
    // In two factors, because results may be subnormal f64.
    let factor = |e: i32| f64::from_bits(((1023 + e.clamp(-1022, 1023)) as u64) << 52);
    sum * factor(whole / 2) * factor(whole - whole / 2)
}

/// The binary logarithm: the exponent, plus the series of the area tangent around 1.
fn log2(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 || x.is_infinite() {
        return if x == 0.0 { f64::NEG_INFINITY } else { x };
    }
    // Every f32 is a normal f64. The fraction is scaled to [sqrt(1/2), sqrt(2)).
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    // 0.1716^25 / 25 is below 2^-67.
    let mut sum = 0.0;
    for k in (0..=12).rev() {
        sum = sum * square + 1.0 / f64::from(2 * k + 1);
    }
    f64::from(exponent) + 2.0 * s * sum * std::f64::consts::LOG2_E
}

/// Sine and cosine: reduced by multiples of pi/2 in two parts, then their series.
fn sin_cos(x: f64) -> (f64, f64) {
    if !x.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    // Far outside of the manual's range, the remainder by the f64 nearest to 2 pi suffices.
    let x = if x.abs() > 1e6 { x % (2.0 * PI) } else { x };
    let turns = x * std::f64::consts::FRAC_2_PI;
    let quadrant = (turns + if turns < 0.0 { -0.5 } else { 0.5 }) as i64;
    // pi/2 as a part of 32 bits, whose multiples are exact, and the rest.
    let upper = 1.570_796_326_734_125_6;
    let lower = 6.077_100_506_506_192e-11;
    let r = (x - quadrant as f64 * upper) - quadrant as f64 * lower;
    let square = r * r;
    let (mut sin, mut cos) = (1.0, 1.0);
    // 0.79^20 / 20! is below 2^-67.
    for k in (1..=10).rev() {
        let k = f64::from(2 * k);
        sin = 1.0 - sin * square / (k * (k + 1.0));
        cos = 1.0 - cos * square / (k * (k - 1.0));
    }
    let sin = sin * r;
    match quadrant & 3 {
        0 => (if x == 0.0 { x } else { sin }, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// The hyperbolic tangent: a quotient of series near zero, exponentials elsewhere.
fn tanh(x: f64) -> f64 {
    if x.abs() < 0.5 {
        let square = x * x;
        let (mut sinh, mut cosh) = (1.0, 1.0);
        for k in (1..=9).rev() {
            let k = f64::from(2 * k);
            sinh = 1.0 + sinh * square / (k * (k + 1.0));
            cosh = 1.0 + cosh * square / (k * (k - 1.0));
        }
        return x * sinh / cosh;
    }
    let e = exp2(2.0 * x.abs() * std::f64::consts::LOG2_E);
    if x.is_nan() { x } else { (1.0 - 2.0 / (e + 1.0)).copysign(x) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::single::tests::{EDGES, Rng};

    fn close(what: &str, x: f64, got: f64, want: f64, scale: f64) {
        let error = (got - want).abs();
        assert!(got == want || error <= 2f64.powi(-46) * scale, "{what} {x:e}: {got:e} {want:e}");
    }

    /// Compares with the host's library, whose errors are below an ulp of f64.
    #[test]
    fn series_agree_with_the_host() {
        let mut rng = Rng(51);
        for i in 0..60_000u32 {
            let bits = rng.next() as u32;
            // Half of them have a moderate exponent.
            let moderate = (bits & 0x807f_ffff) + 0x3b00_0000 + ((bits >> 4) & 0x7f) * 0x0010_0000;
            let bits = if i % 2 == 0 { bits } else { moderate };
            let x = f64::from(f32::from_bits(bits));
            if !x.is_finite() {
                continue;
            }
            if x.abs() < 1000.0 {
                close("ex2", x, exp2(x), x.exp2(), x.exp2());
            }
            if x > 0.0 {
                close("lg2", x, log2(x), x.log2(), x.log2().abs());
            }
            close("tanh", x, tanh(x), x.tanh(), x.tanh().abs());
            if x.abs() < 1e5 {
                let (s, c) = sin_cos(x);
                close("sin", x, s, x.sin(), 1.0);
                close("cos", x, c, x.cos(), 1.0);
            }
        }
    }

    #[test]
    fn tables_of_the_manual() {
        let f = f32::to_bits;
        let (inf, minus_inf, minus_zero) = (f(f32::INFINITY), f(f32::NEG_INFINITY), 1 << 31);
        let rows = [
            (Function::Ex2, [0, f(1.0), f(1.0), inf]),
            (Function::Lg2, [NAN_F32, minus_inf, minus_inf, inf]),
            (Function::Rcp, [minus_zero, minus_inf, inf, 0]),
            (Function::Rsqrt, [NAN_F32, minus_inf, inf, 0]),
            (Function::Sqrt, [NAN_F32, minus_zero, 0, inf]),
            (Function::Sin, [NAN_F32, minus_zero, 0, NAN_F32]),
            (Function::Cos, [NAN_F32, f(1.0), f(1.0), NAN_F32]),
            (Function::Tanh, [f(-1.0), minus_zero, 0, f(1.0)]),
        ];
        for (function, want) in rows {
            for (a, want) in [minus_inf, minus_zero, 0, inf].into_iter().zip(want) {
                assert_eq!(function.apply(false, a), want, "{function:?} {a:#x}");
                assert_eq!(function.apply(true, a), want, "{function:?}.ftz {a:#x}");
            }
            assert_eq!(function.apply(false, 0xffc0_0001), NAN_F32);
        }
        assert_eq!(Function::Lg2.apply(false, f(-1.0)), NAN_F32);
        assert_eq!(Function::Rsqrt.apply(false, f(-1e-40)), NAN_F32);
        assert_eq!(Function::Rsqrt.apply(true, f(-1e-40)), minus_inf);
    }

    #[test]
    fn exact_cases_and_flushing() {
        let f = f32::to_bits;
        for e in -149..128 {
            let x = f(e as f32);
            let want = f32::from_bits(if e < -126 { 1 << (e + 149) } else { ((e + 127) as u32) << 23 });
            assert_eq!(Function::Ex2.apply(false, x), f(want));
            assert_eq!(Function::Lg2.apply(false, f(want)), x);
        }
        assert_eq!(Function::Ex2.apply(true, f(-127.0)), 0);
        assert_eq!(Function::Ex2.apply(false, f(-200.0)), 0);
        assert_eq!(Function::Ex2.apply(false, f(128.0)), f(f32::INFINITY));
        assert_eq!(Function::Rcp.apply(true, f(8e37)), f(1.0 / 8e37));
        assert_eq!(Function::Rcp.apply(true, f(3e38)), 0);
        assert_eq!(Function::Tanh.apply(true, 5), 5);
        assert_eq!(div(false, f(1.0), f(3.0)), f(1.0 / 3.0));
        assert_eq!(div(false, f(-1e38), f(1.5e38)), 1 << 31);
        assert_eq!(div(true, f(f32::INFINITY), f(1.5e38)), NAN_F32);
        assert_eq!(div(true, 1, f(1.0)), 0);
        assert_eq!(reciprocal_f64(false, 3f64.to_bits()), 0x3fd5_5555_0000_0000);
        assert_eq!(reciprocal_f64(true, 4f64.to_bits()), 0.5f64.to_bits());
        assert_eq!(reciprocal_f64(false, 1 | 1 << 63), 0xfff0_0000_0000_0000);
        assert_eq!(reciprocal_f64(true, (-1f64).to_bits()), 0x7fff_ffff_0000_0000);
        assert_eq!(ex2_half(Half::F16, 0x3c00), 0x4000);
        assert_eq!(tanh_half2(Half::F16, 0x7c00_8000), 0x3c00_8000);
        assert_eq!(ex2_half2(Half::Bf16, 0x3f80_ff80), 0x4000_0000);
    }

    /// Deviations are allowed exactly up to the manual's limits.
    #[test]
    fn allowances() {
        let mut rng = Rng(53);
        for function in Function::ALL {
            let random: Vec<u32> = (0..3000).map(|_| rng.next() as u32).collect();
            for a in EDGES.into_iter().chain(random) {
                for ftz in [false, true] {
                    let d = function.apply(ftz, a);
                    assert!(function.allows(ftz, a, d), "{function:?} {a:#x} {d:#x}");
                }
            }
        }
        let one = 1f32.to_bits();
        assert!(Function::Ex2.allows(false, 0x3f00_0000, Function::Ex2.apply(false, 0x3f00_0000) + 2));
        assert!(!Function::Ex2.allows(false, 0x3f00_0000, Function::Ex2.apply(false, 0x3f00_0000) + 3));
        assert!(Function::Rcp.allows(false, 0x4040_0000, Function::Rcp.apply(false, 0x4040_0000) - 1));
        assert!(!Function::Rcp.allows(false, 0x4040_0000, Function::Rcp.apply(false, 0x4040_0000) - 2));
        assert!(Function::Sin.allows(false, one, Function::Sin.apply(false, one) + 10));
        assert!(!Function::Sin.allows(false, one, Function::Sin.apply(false, one) + 20));
        assert!(!Function::Tanh.allows(false, one, one));
        assert!(Function::Sin.allows(false, 0x7f00_0000, 0));
        assert!(!Function::Rcp.allows(false, 0, 0));
    }
}

//! f32 arithmetic on register bits (PTX ISA 9.7.3).
//!
//! Round to nearest uses the host's own f32 operations, which are IEEE. Every other rounding, and the fused multiply-add, goes
//! through f64. A product of two f32 is exact there. A sum is rounded *to odd* (Boldo and Melquiond): an inexact result whose
//! last bit is even moves to its odd neighbour on the side of the exact value. Then one more rounding to f32 is correct in any
//! direction, subnormals included. The error of the sum comes from Knuth's two-sum. No operation calls `fma`.
//!
//! An arithmetic NaN is 0x7fffffff and a `.sat` result of -0 is +0. `.ftz` flushes products, fused sums and quotients that are
//! subnormal when rounded with an unlimited exponent. So the number just below the smallest normal one becomes zero, although
//! among subnormals it would round up. (Sums are exact there.) All of this was measured on an H200, and is assumed for others.

use super::exact::{self, F32};
use super::{Mode, NAN_F32, Round};

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;

/// Whether these bits are a NaN.
#[inline(always)]
#[must_use]
pub fn is_nan(a: u32) -> bool {
    a & !SIGN > INFINITY
}

/// A subnormal becomes a zero of the same sign.
#[inline(always)]
#[must_use]
pub fn flush(a: u32) -> u32 {
    if a & INFINITY == 0 { a & SIGN } else { a }
}

#[inline(always)]
fn input(mode: Mode, a: u32) -> f32 {
    f32::from_bits(if mode.ftz { flush(a) } else { a })
}

/// Canonical NaN, `.ftz` and `.sat` of a result.
#[inline(always)]
pub(crate) fn output(mode: Mode, d: f32) -> u32 {
    if mode.sat {
        let d = if d > 0.0 { d.min(1.0) } else { 0.0 };
        return if mode.ftz { flush(d.to_bits()) } else { d.to_bits() };
    }
    let bits = if d.is_nan() { NAN_F32 } else { d.to_bits() };
    if mode.ftz { flush(bits) } else { bits }
}

/// Whether `.ftz` makes a zero of a number that is to be rounded to f32: rounded to 24 bits it is below the smallest normal one.
#[inline(always)]
pub(crate) fn tiny(round: Round, exact: f64) -> bool {
    let least = f64::from(f32::MIN_POSITIVE);
    // The largest number of 24 bits below it, and the middle between the two.
    let (below, middle) = (least - least / 16_777_216.0, least - least / 33_554_432.0);
    match round {
        Round::Nearest | Round::NearestAway => exact.abs() < middle,
        Round::Down if exact < 0.0 => exact >= -below,
        Round::Up if exact > 0.0 => exact <= below,
        Round::Zero | Round::Down | Round::Up => exact.abs() < least,
    }
}

/// A sum in f64, rounded to odd: exact enough for one more rounding to at most 50 bits.
#[inline(always)]
pub(crate) fn sum_to_odd(p: f64, c: f64) -> f64 {
    let s = p + c;
    let c_part = s - p;
    let error = (p - (s - c_part)) + (c - c_part);
    let bits = s.to_bits();
    // One step away from zero or toward it, if inexact and even. The error of an infinite or NaN sum is NaN: no step.
    let step = if (error > 0.0) == (s > 0.0) { 1 } else { u64::MAX };
    let inexact = u64::from(error.abs() > 0.0);
    f64::from_bits(bits.wrapping_add(step & (inexact & !bits & 1).wrapping_neg()))
}

/// One rounding from f64 to f32 in any direction.
#[inline(always)]
#[must_use]
pub fn narrow(round: Round, x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    match round {
        Round::Nearest => near,
        Round::Zero if back.abs() > x.abs() => f32::from_bits(near.to_bits() - 1),
        Round::Down if back > x => near.next_down(),
        Round::Up if back < x => near.next_up(),
        Round::NearestAway => f32::from_bits(match x.is_nan() {
            true => NAN_F32,
            false => F32.encode(round, exact::F64.decode(x.to_bits())) as u32,
        }),
        Round::Zero | Round::Down | Round::Up => near,
    }
}

/// The sum of an exact f64 and another under a directed rounding, with IEEE's sign of an exact zero.
#[inline(always)]
fn sum(round: Round, p: f64, c: f64) -> f32 {
    let s = sum_to_odd(p, c);
    if s == 0.0 && round == Round::Down && p.is_sign_negative() != c.is_sign_negative() {
        return -0.0;
    }
    narrow(round, s)
}

/// `add.f32`.
#[inline(always)]
#[must_use]
pub fn add(mode: Mode, a: u32, b: u32) -> u32 {
    let (a, b) = (input(mode, a), input(mode, b));
    let d = if mode.round == Round::Nearest { a + b } else { sum(mode.round, f64::from(a), f64::from(b)) };
    output(mode, d)
}

/// `sub.f32`.
#[inline(always)]
#[must_use]
pub fn sub(mode: Mode, a: u32, b: u32) -> u32 {
    add(mode, a, if is_nan(b) { b } else { b ^ SIGN })
}

/// `mul.f32`.
#[inline(always)]
#[must_use]
pub fn mul(mode: Mode, a: u32, b: u32) -> u32 {
    let (a, b) = (input(mode, a), input(mode, b));
    let exact = f64::from(a) * f64::from(b);
    let d = if mode.ftz && tiny(mode.round, exact) {
        0f32.copysign(exact as f32)
    } else if mode.round == Round::Nearest {
        a * b
    } else {
        narrow(mode.round, exact)
    };
    output(mode, d)
}

/// `fma.f32`: one rounding.
#[inline(always)]
#[must_use]
pub fn fma(mode: Mode, a: u32, b: u32, c: u32) -> u32 {
    let (a, b, c) = (input(mode, a), input(mode, b), input(mode, c));
    let (p, c) = (f64::from(a) * f64::from(b), f64::from(c));
    if mode.ftz {
        let exact = sum_to_odd(p, c);
        if exact != 0.0 && tiny(mode.round, exact) {
            return output(mode, 0f32.copysign(exact as f32));
        }
    }
    let d = if mode.round == Round::Nearest { sum_to_odd(p, c) as f32 } else { sum(mode.round, p, c) };
    output(mode, d)
}

/// `div.rnd.f32`. `div.full` is this with `.rn`; `div.approx` is [`super::approx::div`].
#[must_use]
pub fn div(mode: Mode, a: u32, b: u32) -> u32 {
    let (a, b) = (input(mode, a), input(mode, b));
    // The f64 quotient of two f32 is on the same side of the bound as the exact one.
    let near = f64::from(a) / f64::from(b);
    if mode.ftz && tiny(mode.round, near) {
        return output(mode, 0f32.copysign(near as f32));
    }
    if mode.round == Round::Nearest {
        return output(mode, a / b);
    }
    let quotient = exact::div(F32.decode(u64::from(a.to_bits())), F32.decode(u64::from(b.to_bits())));
    output(mode, f32::from_bits(F32.encode(mode.round, quotient) as u32))
}

/// `rcp.rnd.f32`.
#[must_use]
pub fn rcp(mode: Mode, a: u32) -> u32 {
    div(mode, 1f32.to_bits(), a)
}

/// `sqrt.rnd.f32`.
#[must_use]
pub fn sqrt(mode: Mode, a: u32) -> u32 {
    let a = input(mode, a);
    if mode.round == Round::Nearest {
        return output(mode, a.sqrt());
    }
    let root = exact::sqrt(F32.decode(u64::from(a.to_bits())));
    output(mode, f32::from_bits(F32.encode(mode.round, root) as u32))
}

/// `neg.f32`: the sign turns; a NaN becomes the canonical one, since the device adds zero (measured on Hopper; the manual leaves
/// it open).
#[inline(always)]
#[must_use]
pub fn neg(ftz: bool, a: u32) -> u32 {
    if is_nan(a) { NAN_F32 } else { (if ftz { flush(a) } else { a }) ^ SIGN }
}

/// `abs.f32`: the sign is cleared; a NaN becomes the canonical one, as in [`neg`].
#[inline(always)]
#[must_use]
pub fn abs(ftz: bool, a: u32) -> u32 {
    if is_nan(a) { NAN_F32 } else { (if ftz { flush(a) } else { a }) & !SIGN }
}

/// The modifiers of `min` and `max` (all types).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extremum {
    /// `.ftz`.
    pub ftz: bool,
    /// `.NaN`: a NaN operand makes the result NaN; otherwise the other operand is the result.
    pub nan: bool,
    /// `.xorsign.abs`: magnitudes are compared and the result has the exclusive or of the signs.
    pub xorsign_abs: bool,
}

/// Order key of a non-NaN: integers compare as the numbers do, with -0 below +0.
#[inline(always)]
fn key(a: u32) -> i32 {
    (a ^ (((a as i32) >> 31) as u32 >> 1)) as i32
}

#[inline(always)]
fn extremum(how: Extremum, a: u32, b: u32, first: impl Fn(i32, i32) -> bool) -> u32 {
    let (a, b) = if how.ftz { (flush(a), flush(b)) } else { (a, b) };
    let sign = (a ^ b) & SIGN;
    let (a, b) = if how.xorsign_abs { (a & !SIGN, b & !SIGN) } else { (a, b) };
    let d = match (is_nan(a), is_nan(b)) {
        (true, true) => return NAN_F32,
        (true, false) | (false, true) if how.nan => return NAN_F32,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if first(key(a), key(b)) {
                a
            } else {
                b
            }
        }
    };
    if how.xorsign_abs { d | sign } else { d }
}

/// `min.f32`; -0 is less than +0.
#[inline(always)]
#[must_use]
pub fn min(how: Extremum, a: u32, b: u32) -> u32 {
    extremum(how, a, b, |x, y| x < y)
}

/// `max.f32`; +0 is more than -0.
#[inline(always)]
#[must_use]
pub fn max(how: Extremum, a: u32, b: u32) -> u32 {
    extremum(how, a, b, |x, y| x > y)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small generator (splitmix64), so that a test is the same on every machine.
    pub(crate) struct Rng(pub(crate) u64);

    impl Rng {
        pub(crate) fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    pub(crate) const EDGES: [u32; 24] = [
        0,
        1,
        2,
        0x0000_0100,
        0x007f_ffff,
        0x0080_0000,
        0x0080_0001,
        0x00ff_ffff,
        0x3380_0000,
        0x3f00_0000,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x3fff_ffff,
        0x4b00_0000,
        0x4b7f_ffff,
        0x4b80_0001,
        0x5f00_0000,
        0x7e80_0000,
        0x7f00_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
    ];

    const ROUNDS: [Round; 4] = [Round::Nearest, Round::Zero, Round::Down, Round::Up];

    fn exact_fma(round: Round, a: u32, b: u32, c: u32) -> u32 {
        let v = |x: u32| F32.decode(u64::from(x));
        F32.encode(round, exact::add(round, exact::mul(v(a), v(b)), v(c))) as u32
    }

    fn signed_edges() -> Vec<u32> {
        EDGES.iter().flat_map(|&e| [e, e | SIGN]).collect()
    }

    #[test]
    fn operations_agree_with_exact_arithmetic_on_edges() {
        let edges = signed_edges();
        for round in ROUNDS {
            let mode = Mode::of(round);
            for &a in &edges {
                let v = |x: u32| F32.decode(u64::from(x));
                assert_eq!(sqrt(mode, a), F32.encode(round, exact::sqrt(v(a))) as u32);
                for &b in &edges {
                    let what = format!("{round:?} {a:#x} {b:#x}");
                    assert_eq!(add(mode, a, b), F32.encode(round, exact::add(round, v(a), v(b))) as u32, "add {what}");
                    assert_eq!(mul(mode, a, b), F32.encode(round, exact::mul(v(a), v(b))) as u32, "mul {what}");
                    assert_eq!(div(mode, a, b), F32.encode(round, exact::div(v(a), v(b))) as u32, "div {what}");
                    for &c in &edges {
                        assert_eq!(fma(mode, a, b, c), exact_fma(round, a, b, c), "fma {what} {c:#x}");
                    }
                }
            }
        }
    }

    /// Random bits, and triples built so that the sum nearly cancels or nearly ties.
    #[test]
    fn fma_is_fused() {
        let mut rng = Rng(1);
        for i in 0..400_000u32 {
            let (x, y) = (rng.next(), rng.next());
            let (mut a, mut b, mut c) = (x as u32, (x >> 32) as u32, y as u32);
            if i & 1 == 0 {
                // c is the rounded product, negated or nearly so, sometimes a few binades off.
                a = (a & 0x807f_ffff) | (0x3f80_0000 - (i >> 4) % 60 * 0x0080_0000);
                b = (b & 0x807f_ffff) | 0x3f80_0000;
                let p = f32::from_bits(a) * f32::from_bits(b);
                let nudge = ((y >> 32) % 5) as u32;
                let binades = ((y >> 40) % 50) as u32 * 0x0080_0000;
                c = (p.to_bits() ^ SIGN).wrapping_add(nudge).wrapping_add(binades);
                // Few significant bits make ties likely.
                if y & 2 != 0 {
                    (a, b, c) = (a & 0xffff_f000, b & 0xfffc_0000, c & 0xffff_f800);
                }
            }
            let host = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
            let want = if host.is_nan() { NAN_F32 } else { host.to_bits() };
            assert_eq!(fma(Mode::RN, a, b, c), want, "{a:#x} {b:#x} {c:#x}");
            let round = ROUNDS[i as usize % 4];
            if i % 8 < 4 {
                assert_eq!(fma(Mode::of(round), a, b, c), exact_fma(round, a, b, c), "{round:?} {a:#x} {b:#x} {c:#x}");
            }
        }
    }

    #[test]
    fn modifiers() {
        let (tiny, one, nan) = (0x8000_0001u32, 1f32.to_bits(), 0xffc0_1234);
        let ftz = Mode { ftz: true, ..Mode::RN };
        let sat = Mode { sat: true, ..Mode::RN };
        assert_eq!(mul(ftz, tiny, one), SIGN);
        assert_eq!(mul(ftz, 0x0080_0000, 0.5f32.to_bits()), 0);
        assert_eq!(fma(ftz, one, one, tiny), one);
        assert_eq!(add(sat, one, one), one);
        assert_eq!(add(sat, nan, one), 0);
        assert_eq!(mul(sat, SIGN, one), 0);
        assert_eq!(add(Mode::RN, nan, one), NAN_F32);
        assert_eq!(sub(Mode::RN, one, one), 0);
        assert_eq!(sub(Mode::of(Round::Down), one, one), SIGN);
        assert_eq!((neg(true, tiny), abs(false, tiny)), (0, 1));
    }

    #[test]
    fn extrema() {
        let plain = Extremum::default();
        let nan = Extremum { nan: true, ..plain };
        let xor = Extremum { xorsign_abs: true, ..plain };
        let f = |x: f32| x.to_bits();
        assert_eq!(min(plain, 0, SIGN), SIGN);
        assert_eq!(max(plain, SIGN, 0), 0);
        assert_eq!(min(plain, f(-2.0), f(-3.0)), f(-3.0));
        assert_eq!(max(plain, 0x7fc0_0000, f(-1.0)), f(-1.0));
        assert_eq!(max(nan, 0xffc0_0000, f(-1.0)), NAN_F32);
        assert_eq!(min(plain, 0xffc0_0000, 0x7f80_0001), NAN_F32);
        assert_eq!(min(xor, f(-2.0), f(3.0)), f(-2.0));
        assert_eq!(max(xor, f(-2.0), f(-3.0)), f(3.0));
        assert_eq!(max(Extremum { ftz: true, ..plain }, 1, SIGN), 0);
        let edges = signed_edges();
        for &a in &edges {
            for &b in &edges {
                if !is_nan(a) && !is_nan(b) && f32::from_bits(a) < f32::from_bits(b) {
                    assert_eq!((min(plain, a, b), max(plain, a, b)), (a, b));
                    assert_eq!((min(plain, b, a), max(plain, b, a)), (a, b));
                }
            }
        }
    }
}

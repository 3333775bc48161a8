//! f64 arithmetic on register bits (PTX ISA 9.7.3).
//!
//! To nearest it is the host's, the fused multiply-add included (the standard library promises one rounding); the directed
//! roundings are exact arithmetic rounded once. The manual says that f64 keeps NaN payloads without saying whose. As measured
//! on an H200, a NaN operand comes out made quiet, with its sign: of several the second factor or addend, of a fused
//! multiply-add the second factor, else the addend, else the first factor; of a quotient the dividend. A NaN made from numbers
//! is 0xfff8000000000000. The machine instructions are the same on every generation, whose rule is assumed to be.

use super::exact::{self, F64, Value};
use super::single::Extremum;
use super::{NAN_F64, Round};

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
/// The bit that makes a NaN quiet.
const QUIET: u64 = 1 << 51;

/// Whether these bits are a NaN.
#[inline(always)]
#[must_use]
pub fn is_nan(a: u64) -> bool {
    a & !SIGN > INFINITY
}

/// The result, or the first NaN among the operands.
#[inline(always)]
fn output(d: f64, operands: [u64; 3]) -> u64 {
    if !d.is_nan() {
        return d.to_bits();
    }
    operands.into_iter().find(|&x| is_nan(x)).map_or(NAN_F64, |x| x | QUIET)
}

#[inline(always)]
fn value(a: u64) -> Value {
    F64.decode(a)
}

fn rounded(round: Round, v: Value) -> f64 {
    f64::from_bits(F64.encode(round, v))
}

/// `add.f64`.
#[inline(always)]
#[must_use]
pub fn add(round: Round, a: u64, b: u64) -> u64 {
    let d = match round {
        Round::Nearest => f64::from_bits(a) + f64::from_bits(b),
        Round::NearestAway | Round::Zero | Round::Down | Round::Up => {
            rounded(round, exact::add(round, value(a), value(b)))
        }
    };
    output(d, [b, a, 0])
}

/// `sub.f64`.
#[inline(always)]
#[must_use]
pub fn sub(round: Round, a: u64, b: u64) -> u64 {
    add(round, a, if is_nan(b) { b } else { b ^ SIGN })
}

/// `mul.f64`.
#[inline(always)]
#[must_use]
pub fn mul(round: Round, a: u64, b: u64) -> u64 {
    let d = match round {
        Round::Nearest => f64::from_bits(a) * f64::from_bits(b),
        Round::NearestAway | Round::Zero | Round::Down | Round::Up => rounded(round, exact::mul(value(a), value(b))),
    };
    output(d, [b, a, 0])
}

/// `fma.f64`: one rounding.
#[inline(always)]
#[must_use]
pub fn fma(round: Round, a: u64, b: u64, c: u64) -> u64 {
    let d = match round {
        Round::Nearest => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)),
        Round::NearestAway | Round::Zero | Round::Down | Round::Up => {
            rounded(round, exact::add(round, exact::mul(value(a), value(b)), value(c)))
        }
    };
    output(d, [b, c, a])
}

/// `div.f64`.
#[must_use]
pub fn div(round: Round, a: u64, b: u64) -> u64 {
    let d = match round {
        Round::Nearest => f64::from_bits(a) / f64::from_bits(b),
        Round::NearestAway | Round::Zero | Round::Down | Round::Up => rounded(round, exact::div(value(a), value(b))),
    };
    output(d, [a, b, 0])
}

/// `rcp.f64`.
#[must_use]
pub fn rcp(round: Round, a: u64) -> u64 {
    div(round, 1f64.to_bits(), a)
}

/// `sqrt.f64`.
#[must_use]
pub fn sqrt(round: Round, a: u64) -> u64 {
    let d = match round {
        Round::Nearest => f64::from_bits(a).sqrt(),
        Round::NearestAway | Round::Zero | Round::Down | Round::Up => rounded(round, exact::sqrt(value(a))),
    };
    output(d, [a, 0, 0])
}

/// `neg.f64`: the sign turns; a NaN keeps its sign and is made quiet, since the device adds zero.
#[inline(always)]
#[must_use]
pub fn neg(a: u64) -> u64 {
    if is_nan(a) { a | QUIET } else { a ^ SIGN }
}

/// `abs.f64`: the sign is cleared, but a NaN keeps its sign and is made quiet.
#[inline(always)]
#[must_use]
pub fn abs(a: u64) -> u64 {
    if is_nan(a) { a | QUIET } else { a & !SIGN }
}

#[inline(always)]
fn extremum(how: Extremum, a: u64, b: u64, first: impl Fn(i64, i64) -> bool) -> u64 {
    let key = |x: u64| (x ^ (((x as i64) >> 63) as u64 >> 1)) as i64;
    match (is_nan(a), is_nan(b)) {
        (true, true) => b | QUIET,
        (true, false) | (false, true) if how.nan => output(f64::NAN, [b, a, 0]),
        (true, false) => b,
        (false, true) => a,
        (false, false) if first(key(a), key(b)) => a,
        (false, false) => b,
    }
}

/// `min.f64`; of the modifiers only `.NaN` can be meant, since PTX has no others for f64.
#[inline(always)]
#[must_use]
pub fn min(how: Extremum, a: u64, b: u64) -> u64 {
    extremum(how, a, b, |x, y| x < y)
}

/// `max.f64`; of the modifiers only `.NaN` can be meant, since PTX has no others for f64.
#[inline(always)]
#[must_use]
pub fn max(how: Extremum, a: u64, b: u64) -> u64 {
    extremum(how, a, b, |x, y| x > y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::single::tests::Rng;

    #[test]
    fn fma_agrees_with_exact_arithmetic() {
        let mut rng = Rng(3);
        for i in 0..100_000u32 {
            let (mut a, mut b, mut c) = (rng.next(), rng.next(), rng.next());
            if i % 2 == 0 {
                a = (a & 0x800f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000;
                b = (b & 0x800f_ffff_ffff_ffff) | 0x3fe0_0000_0000_0000;
                let p = f64::from_bits(a) * f64::from_bits(b);
                c = (p.to_bits() ^ SIGN).wrapping_add(c % 7).wrapping_add(((c >> 8) % 120) << 52);
            }
            for round in [Round::Nearest, Round::Down] {
                let sum = exact::add(round, exact::mul(value(a), value(b)), value(c));
                let want = F64.encode(round, sum);
                let got = fma(round, a, b, c);
                assert!(got == want || (is_nan(got) && is_nan(want)), "{round:?} {a:#x} {b:#x} {c:#x}");
            }
        }
    }

    #[test]
    fn nan_payloads_and_zeros() {
        let (one, payload) = (1f64.to_bits(), 0x7ff0_0000_0000_1234);
        assert_eq!(add(Round::Nearest, one, payload), payload | 1 << 51);
        assert_eq!(mul(Round::Zero, 0, INFINITY), NAN_F64);
        assert_eq!(sub(Round::Down, one, one), SIGN);
        assert_eq!(sqrt(Round::Nearest, one | SIGN), NAN_F64);
        assert_eq!(div(Round::Up, one, 0x4008_0000_0000_0000), 0x3fd5_5555_5555_5556);
        assert_eq!(min(Extremum::default(), 0, SIGN), SIGN);
        assert_eq!(max(Extremum::default(), payload, one), one);
        assert!(is_nan(max(Extremum { nan: true, ..Extremum::default() }, one, payload)));
    }
}

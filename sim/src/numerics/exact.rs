//! Binary formats and exact values: decoding, rounding, and arithmetic with one rounding.
//!
//! A finite number is `±significand · 2^exponent` with a 128-bit significand, and a sticky flag for a non-zero remainder below
//! it. [`Format::round`] turns that into the bits of any format under any rounding. Sums, products, quotients and roots are
//! formed exactly (or with a correct sticky flag) and rounded once. This is the slow and plain path: the fast ones in the
//! neighbouring files are tested against it, and it serves the directed roundings and the rare formats.

use super::Round;

/// The layout of a binary floating-point format: sign, exponent, fraction, with subnormals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the fraction field.
    pub fraction_bits: u32,
    /// Encoding of the largest finite magnitude.
    pub max_finite: u64,
    /// Encoding an overflow gives: infinity, or NaN in formats without one.
    pub overflow: u64,
    /// Encoding of the NaN that conversions make.
    pub nan: u64,
}

/// IEEE binary64.
pub const F64: Format = Format::ieee(11, 52, super::NAN_F64);
/// IEEE binary32.
pub const F32: Format = Format::ieee(8, 23, super::NAN_F32 as u64);
/// IEEE binary16.
pub const F16: Format = Format::ieee(5, 10, super::NAN_HALF as u64);
/// bfloat16: the upper half of an f32.
pub const BF16: Format = Format::ieee(8, 7, super::NAN_HALF as u64);
/// e5m2: an IEEE-like byte with infinities.
pub const E5M2: Format = Format::ieee(5, 2, 0x7f);
/// e4m3: a byte without infinities; only 0x7f and 0xff are NaN.
pub const E4M3: Format = Format { exponent_bits: 4, fraction_bits: 3, max_finite: 0x7e, overflow: 0x7f, nan: 0x7f };

/// A decoded number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// Infinity; true is the negative one.
    Infinite(bool),
    /// A finite number, zeros included.
    Finite(Exact),
}

/// `±significand · 2^exponent`, plus a positive remainder below one unit of `significand` when `sticky`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The sign, also of zero.
    pub negative: bool,
    /// Magnitude in units of `2^exponent`.
    pub significand: u128,
    /// Power of two of one unit.
    pub exponent: i32,
    /// Whether the magnitude is more than the significand says, by less than one unit.
    pub sticky: bool,
}

impl Exact {
    /// An integer.
    #[must_use]
    pub fn integer(value: i128) -> Exact {
        Exact { negative: value < 0, significand: value.unsigned_abs(), exponent: 0, sticky: false }
    }

    /// Whether the value is a zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.significand == 0 && !self.sticky
    }

    /// The same value with the most significant bit at bit `top`; bits that fall out become sticky. Zero stays.
    fn normalized(mut self, top: u32) -> Exact {
        if self.significand == 0 {
            return self;
        }
        let at = 127 - self.significand.leading_zeros();
        if at <= top {
            self.significand <<= top - at;
        } else {
            let shift = at - top;
            self.sticky |= self.significand & ((1 << shift) - 1) != 0;
            self.significand >>= shift;
        }
        self.exponent += at as i32 - top as i32;
        self
    }
}

impl Format {
    /// A format whose largest exponent field means infinity and NaN.
    const fn ieee(exponent_bits: u32, fraction_bits: u32, nan: u64) -> Format {
        let infinity = ((1 << exponent_bits) - 1) << fraction_bits;
        Format { exponent_bits, fraction_bits, max_finite: infinity - 1, overflow: infinity, nan }
    }

    /// Bit of the sign.
    #[must_use]
    pub const fn sign_bit(&self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// Exponent of the smallest normal number.
    #[must_use]
    pub const fn min_exponent(&self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// The number that these bits mean. Bits above the format are ignored.
    #[must_use]
    pub fn decode(&self, bits: u64) -> Value {
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (self.sign_bit() - 1);
        if magnitude > self.max_finite {
            let infinite = magnitude == self.overflow && self.overflow != self.nan;
            return if infinite { Value::Infinite(negative) } else { Value::Nan };
        }
        let field = magnitude >> self.fraction_bits;
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let hidden = if field == 0 { 0 } else { 1 << self.fraction_bits };
        let exponent = self.min_exponent() + (field.max(1) as i32 - 1) - self.fraction_bits as i32;
        Value::Finite(Exact { negative, significand: u128::from(fraction | hidden), exponent, sticky: false })
    }

    /// The bits of a finite value after rounding to this format; overflow follows IEEE 754 section 7.4.
    #[must_use]
    pub fn round(&self, round: Round, value: Exact) -> u64 {
        let sign = if value.negative { self.sign_bit() } else { 0 };
        if value.is_zero() {
            return sign;
        }
        let fraction_bits = self.fraction_bits as i32;
        let length = 128 - value.significand.leading_zeros() as i32;
        let lsb = (value.exponent + length - 1).max(self.min_exponent()) - fraction_bits;
        let shift = lsb - value.exponent;
        let (mut kept, half, rest) = if shift <= 0 {
            ((value.significand << -shift) as u64, false, value.sticky)
        } else if shift > 128 {
            (0, false, true)
        } else {
            let kept = if shift == 128 { 0 } else { (value.significand >> shift) as u64 };
            let half = (value.significand >> (shift - 1)) & 1 != 0;
            let rest = value.significand & ((1 << (shift - 1)) - 1) != 0 || value.sticky;
            (kept, half, rest)
        };
        let up = match round {
            Round::Nearest => half && (rest || kept & 1 != 0),
            Round::NearestAway => half,
            Round::Zero => false,
            Round::Down => value.negative && (half || rest),
            Round::Up => !value.negative && (half || rest),
        };
        kept += u64::from(up);
        // The hidden bit adds one to the exponent field, and so does a carry out of the fraction.
        let field = (lsb + fraction_bits - self.min_exponent()) as u64;
        let magnitude = (field << self.fraction_bits) + kept;
        if magnitude > self.max_finite {
            return sign | self.overflowed(round, value.negative);
        }
        sign | magnitude
    }

    /// The magnitude an overflow gives.
    fn overflowed(&self, round: Round, negative: bool) -> u64 {
        match (round, negative) {
            (Round::Nearest | Round::NearestAway, _) | (Round::Down, true) | (Round::Up, false) => self.overflow,
            (Round::Zero, _) | (Round::Down, false) | (Round::Up, true) => self.max_finite,
        }
    }

    /// The bits of any value, rounded; NaN is the format's own.
    #[must_use]
    pub fn encode(&self, round: Round, value: Value) -> u64 {
        match value {
            Value::Nan => self.nan,
            Value::Infinite(negative) => self.overflow | if negative { self.sign_bit() } else { 0 },
            Value::Finite(exact) => self.round(round, exact),
        }
    }
}

/// `a + b` exactly, as far as any rounding to 64 bits or fewer can tell. `round` decides the sign of an exact zero.
#[must_use]
pub fn add(round: Round, a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite(s), Value::Infinite(t)) if s != t => Value::Nan,
        (Value::Infinite(s), _) | (_, Value::Infinite(s)) => Value::Infinite(s),
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(add_finite(round, a, b)),
    }
}

fn add_finite(round: Round, a: Exact, b: Exact) -> Exact {
    if a.is_zero() && b.is_zero() {
        let negative = if a.negative == b.negative { a.negative } else { round == Round::Down };
        return Exact { negative, significand: 0, exponent: 0, sticky: false };
    }
    if a.is_zero() || b.is_zero() {
        return if a.is_zero() { b } else { a };
    }
    // Two bits of headroom; the significands have at most 106 bits, so nothing is lost where cancellation could bite.
    let (a, b) = (a.normalized(125), b.normalized(125));
    let (big, small) = if (a.exponent, a.significand) >= (b.exponent, b.significand) { (a, b) } else { (b, a) };
    let shift = (big.exponent - small.exponent) as u32;
    let (part, lost) = match shift {
        0 => (small.significand, false),
        1..=127 => (small.significand >> shift, small.significand & ((1 << shift) - 1) != 0),
        _ => (0, true),
    };
    let sticky = lost || small.sticky || big.sticky;
    if big.negative == small.negative {
        return Exact { significand: big.significand + part, sticky, ..big };
    }
    let significand = big.significand - part - u128::from(lost || small.sticky);
    let negative = if significand == 0 && !sticky { round == Round::Down } else { big.negative };
    Exact { negative, significand, sticky, ..big }
}

/// `a · b` exactly; significands of at most 64 bits.
#[must_use]
pub fn mul(a: Value, b: Value) -> Value {
    let sign = |v: &Value| match v {
        Value::Nan => false,
        Value::Infinite(s) => *s,
        Value::Finite(e) => e.negative,
    };
    let negative = sign(&a) != sign(&b);
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite(_), Value::Finite(e)) | (Value::Finite(e), Value::Infinite(_)) if e.is_zero() => Value::Nan,
        (Value::Infinite(_), _) | (_, Value::Infinite(_)) => Value::Infinite(negative),
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(Exact {
            negative,
            significand: a.significand * b.significand,
            exponent: a.exponent + b.exponent,
            sticky: false,
        }),
    }
}

/// `a / b` with 64 quotient bits or more and a sticky flag.
#[must_use]
pub fn div(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Infinite(_), Value::Infinite(_)) => Value::Nan,
        (Value::Infinite(s), Value::Finite(b)) => Value::Infinite(s != b.negative),
        (Value::Finite(a), Value::Infinite(s)) => {
            Value::Finite(Exact { negative: a.negative != s, significand: 0, exponent: 0, sticky: false })
        }
        (Value::Finite(a), Value::Finite(b)) => {
            let negative = a.negative != b.negative;
            if b.is_zero() {
                return if a.is_zero() { Value::Nan } else { Value::Infinite(negative) };
            }
            let (n, d) = (a.normalized(126), b.normalized(62));
            if n.significand == 0 {
                return Value::Finite(Exact { negative, ..a });
            }
            Value::Finite(Exact {
                negative,
                significand: n.significand / d.significand,
                exponent: n.exponent - d.exponent,
                sticky: n.significand % d.significand != 0,
            })
        }
    }
}

/// The square root, with 60 bits or more and a sticky flag. Of a negative number other than -0 it is NaN.
#[must_use]
pub fn sqrt(a: Value) -> Value {
    match a {
        Value::Nan | Value::Infinite(true) => Value::Nan,
        Value::Infinite(false) => a,
        Value::Finite(e) if e.is_zero() => a,
        Value::Finite(e) if e.negative => Value::Nan,
        Value::Finite(e) => {
            let mut e = e.normalized(124);
            if e.exponent % 2 != 0 {
                e.significand <<= 1;
                e.exponent -= 1;
            }
            let root = e.significand.isqrt();
            Value::Finite(Exact {
                negative: false,
                significand: root,
                exponent: e.exponent / 2,
                sticky: root * root != e.significand,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every encoding of the small formats decodes and rounds back to itself, in every direction.
    #[test]
    fn small_formats_round_trip() {
        for format in [F16, BF16, E5M2, E4M3] {
            for bits in 0..format.sign_bit() * 2 {
                let value = format.decode(bits);
                if value == Value::Nan {
                    continue;
                }
                for round in [Round::Nearest, Round::NearestAway, Round::Zero, Round::Down, Round::Up] {
                    assert_eq!(format.encode(round, value), bits, "{format:?} {bits:#x}");
                }
            }
        }
    }

    /// IEEE operations of the host, which rounds to nearest, agree on random bits and on the edges.
    #[test]
    fn nearest_agrees_with_the_host() {
        let edges = [0u64, 1, 0x3ff, 0x0010_0000_0000_0000, 0x000f_ffff_ffff_ffff, 0x3ff0_0000_0000_0000];
        let edges = edges.iter().chain(&[0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000, 0x4340_0000_0000_0001]);
        let mut all: Vec<u64> = edges.flat_map(|&e| [e, e | 1 << 63]).collect();
        let mut rng = crate::numerics::single::tests::Rng(7);
        for _ in 0..300 {
            let x = rng.next();
            all.push(x);
            // Near one, so that sums cancel and products stay finite.
            all.push((x & 0x800f_ffff_ffff_ffff) | (0x3fe + x % 5) << 52);
        }
        let check = |what: &str, exact: Value, host: f64, a: u64, b: u64| {
            let bits = F64.encode(Round::Nearest, exact);
            if host.is_nan() {
                assert_eq!(bits, F64.nan, "{what} {a:#x} {b:#x}");
            } else {
                assert_eq!(bits, host.to_bits(), "{what} {a:#x} {b:#x}");
            }
        };
        for &a in &all {
            let (x, fa) = (F64.decode(a), f64::from_bits(a));
            check("sqrt", sqrt(x), fa.sqrt(), a, 0);
            for &b in &all {
                let (y, fb) = (F64.decode(b), f64::from_bits(b));
                check("add", add(Round::Nearest, x, y), fa + fb, a, b);
                check("mul", mul(x, y), fa * fb, a, b);
                check("div", div(x, y), fa / fb, a, b);
            }
        }
    }
}

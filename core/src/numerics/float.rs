//! Binary floating-point formats up to 64 bits: rounding from `f64`, encoding, decoding.
//!
//! A finite value is `r * 2^q`, where `q` is the exponent of its quantum (unit in the last place).
//! The quantum never falls below that of the subnormals, `q_min = 1 - bias - mantissa_bits`, and
//! with it the encoding of a magnitude is simply
//!
//! ```text
//! bits = ((q - q_min) << mantissa_bits) + r        0 <= r <= 2^(mantissa_bits + 1)
//! ```
//!
//! for subnormals and normals alike: the leading one of `r` carries into the exponent field, and
//! so does a round-up to the next power of two. Magnitudes are therefore ordered as their bits
//! are, and overflow is one comparison with the bits of the largest finite value.

use crate::elem::Elem;

/// How a format spends the encodings whose exponent field is all ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// IEEE 754: mantissa zero is an infinity, anything else a NaN.
    Ieee,
    /// The "fn" formats of OCP FP8: no infinity, and only the mantissa of all ones is a NaN.
    NanOnly,
    /// OCP MX element formats of few bits: a number like any other.
    Finite,
    /// OCP MX scales, which are exponents alone: no sign, no zero, and all ones is NaN. What is converted is cut down to the power of two below it; what is less
    /// than the least one, zero and numbers below included, becomes that.
    Powers,
}

/// What a magnitude beyond the largest finite value becomes.
///
/// The threshold is applied after rounding: a value that rounds to the largest finite one does
/// not overflow. NaN stays NaN in both modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// Infinity with the sign of the value, or NaN in a format without infinities.
    Infinity,
    /// The largest finite value with the sign of the value, infinities included: `.satfinite` of
    /// PTX `cvt`, the only mode that conversion to `e4m3` and `e5m2` has there.
    Saturate,
}

/// A binary floating-point format, as a row of constants.
///
/// Bits of a value, from the top: one sign bit, `exponent_bits`, `mantissa_bits`, then
/// `ignored_bits` that carry nothing. Encodings are returned and taken in the low
/// [`FloatFormat::storage_bits`] bits of a `u64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatFormat {
    /// The name in the tile language and in PTX.
    pub name: &'static str,
    /// Width of the exponent field in bits.
    pub exponent_bits: u32,
    /// Width of the stored mantissa in bits, the hidden bit not counted.
    pub mantissa_bits: u32,
    /// Exponent bias: the field holds the exponent plus this.
    pub bias: i32,
    /// Meaning of the all-ones exponent field.
    pub specials: Specials,
    /// Low bits of the storage that are written as zero and ignored on reading (`tf32`).
    pub ignored_bits: u32,
}

const fn ieee(name: &'static str, exponent_bits: u32, mantissa_bits: u32) -> FloatFormat {
    FloatFormat {
        name,
        exponent_bits,
        mantissa_bits,
        bias: (1 << (exponent_bits - 1)) - 1,
        specials: Specials::Ieee,
        ignored_bits: 0,
    }
}

impl FloatFormat {
    /// IEEE 754 half precision.
    pub const F16: Self = ieee("f16", 5, 10);
    /// `bfloat16`: the upper half of a single.
    pub const BF16: Self = ieee("bf16", 8, 7);
    /// TensorFloat-32: a single whose low 13 mantissa bits the tensor core ignores. Held in 32 bits.
    pub const TF32: Self = Self { ignored_bits: 13, ..ieee("tf32", 8, 10) };
    /// IEEE 754 single precision.
    pub const F32: Self = ieee("f32", 8, 23);
    /// IEEE 754 double precision.
    pub const F64: Self = ieee("f64", 11, 52);
    /// OCP FP8 E4M3: no infinities, one NaN per sign, largest finite value 448.
    pub const E4M3: Self = Self { specials: Specials::NanOnly, ..ieee("e4m3", 4, 3) };
    /// OCP FP8 E5M2: an IEEE-style format, largest finite value 57344.
    pub const E5M2: Self = ieee("e5m2", 5, 2);

    /// OCP MX E2M1: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, of both signs.
    pub const E2M1: Self = Self { specials: Specials::Finite, ..ieee("e2m1", 2, 1) };
    /// OCP MX E8M0: powers of two.
    pub const UE8M0: Self = Self { specials: Specials::Powers, ..ieee("ue8m0", 8, 0) };

    /// Every format above that has a sign and a NaN, narrowest first.
    pub const ALL: [Self; 7] = [Self::E5M2, Self::E4M3, Self::BF16, Self::F16, Self::TF32, Self::F32, Self::F64];

    /// Width of a stored value in bits.
    pub const fn storage_bits(&self) -> u32 {
        self.sign_shift() + self.has_sign() as u32 + self.ignored_bits
    }

    /// Exponent of the smallest quantum: the least positive value is `2^q_min`.
    pub const fn q_min(&self) -> i32 {
        1 - self.bias - self.mantissa_bits as i32
    }

    /// Whether there are numbers below zero.
    const fn has_sign(&self) -> bool {
        !matches!(self.specials, Specials::Powers)
    }

    /// Whether there is an encoding that is not a number.
    pub const fn has_nan(&self) -> bool {
        !matches!(self.specials, Specials::Finite)
    }

    /// Sign bit position, `ignored_bits` not counted.
    const fn sign_shift(&self) -> u32 {
        self.exponent_bits + self.mantissa_bits
    }

    /// Magnitude with the exponent field and the mantissa all ones: a NaN in every format that has one.
    const fn nan_magnitude(&self) -> u64 {
        (1 << self.sign_shift()) - 1
    }

    /// Magnitude of infinity, in formats that have it.
    const fn inf_magnitude(&self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// Magnitude of the largest finite value.
    const fn max_magnitude(&self) -> u64 {
        match self.specials {
            Specials::Ieee => self.inf_magnitude() - 1,
            Specials::NanOnly | Specials::Powers => self.nan_magnitude() - 1,
            Specials::Finite => self.nan_magnitude(),
        }
    }

    /// Distance from 1 to the next larger value, `2^-mantissa_bits`.
    pub fn epsilon(&self) -> f64 {
        exp2(-(self.mantissa_bits as i32))
    }

    /// Bound on the relative error of one rounding of a normal value, `2^-(mantissa_bits + 1)`.
    pub fn unit_roundoff(&self) -> f64 {
        exp2(-(self.mantissa_bits as i32) - 1)
    }

    /// The least positive value, a subnormal. Half of it bounds the absolute error of rounding a
    /// subnormal.
    pub fn min_subnormal(&self) -> f64 {
        exp2(self.q_min())
    }

    /// The least positive normal value.
    pub fn min_normal(&self) -> f64 {
        exp2(1 - self.bias)
    }

    /// The largest finite value.
    pub fn max_finite(&self) -> f64 {
        self.decode(self.max_magnitude() << self.ignored_bits)
    }

    /// The encoding that every NaN becomes: sign clear, exponent and mantissa all ones (`0x7fff`
    /// for `f16` and `bf16`, `0x7f` for the 8-bit formats, as PTX `cvt` gives). A format without NaN has its largest number there.
    pub const fn canonical_nan(&self) -> u64 {
        self.nan_magnitude() << self.ignored_bits
    }

    /// The value of this format nearest to `x`, ties to even, overflow to infinity.
    ///
    /// One rounding; subnormals are kept; the sign of zero is kept; NaN gives `f64::NAN`.
    pub fn round_f64(&self, x: f64) -> f64 {
        self.round_with(x, Overflow::Infinity)
    }

    /// [`FloatFormat::round_f64`] with the treatment of overflow chosen.
    pub fn round_with(&self, x: f64, overflow: Overflow) -> f64 {
        self.decode(self.encode_with(x, overflow))
    }

    /// The encoding of the value nearest to `x`, ties to even, overflow to infinity.
    pub fn encode(&self, x: f64) -> u64 {
        self.encode_with(x, Overflow::Infinity)
    }

    /// [`FloatFormat::encode`] with the treatment of overflow chosen.
    pub fn encode_with(&self, x: f64, overflow: Overflow) -> u64 {
        if x.is_nan() {
            return self.canonical_nan();
        }
        if self.specials == Specials::Powers {
            return self.power_below(x);
        }
        let beyond = match (overflow, self.specials) {
            (Overflow::Saturate, _) | (_, Specials::Finite | Specials::Powers) => self.max_magnitude(),
            (Overflow::Infinity, Specials::Ieee) => self.inf_magnitude(),
            (Overflow::Infinity, Specials::NanOnly) => self.nan_magnitude(),
        };
        if self.has_nan() && beyond == self.nan_magnitude() && self.finite_magnitude(x).is_none() {
            return self.canonical_nan();
        }
        let magnitude = self.finite_magnitude(x).unwrap_or(beyond);
        let sign = u64::from(x.is_sign_negative()) << self.sign_shift();
        (sign | magnitude) << self.ignored_bits
    }

    /// `x` as one of the two numbers of the format next to it, if it is none: the farther from zero where what `x` is beyond the nearer, in units of 2^-32 of
    /// their distance, rounded down, and `word` add up to 2^32 or more. The format is taken to go on beyond its largest number, and what is beyond stays as it is.
    pub fn round_at_random(&self, x: f64, word: u32) -> f64 {
        if x == 0.0 || !x.is_finite() {
            return x;
        }
        let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
        let unit = exp2((exponent - self.mantissa_bits as i32).max(self.q_min()));
        let places = x.abs() / unit;
        let whole = places.floor();
        let part = ((places - whole) * exp2(32)).floor() as u64 + u64::from(word);
        (unit * (whole + (part >> 32) as f64)).copysign(x)
    }

    /// The exponent of the greatest power of two that is not above `x`, biased; of what is below all of them that of the least.
    fn power_below(&self, x: f64) -> u64 {
        let exponent = x.max(0.0).to_bits() >> 52;
        (exponent as i32 - 1023 + self.bias).clamp(0, self.max_magnitude() as i32) as u64
    }

    /// The rounded magnitude of a number, or `None` where it is beyond the largest finite value.
    fn finite_magnitude(&self, x: f64) -> Option<u64> {
        const FIELD: u64 = (1 << 11) - 1;
        const FRACTION: u64 = (1 << 52) - 1;
        let field = x.to_bits() >> 52 & FIELD;
        let fraction = x.to_bits() & FRACTION;
        if field == FIELD {
            return None;
        }
        // |x| = significand * 2^exponent, exactly.
        let (significand, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field as i32 - 1075) };
        if significand == 0 {
            return Some(0);
        }
        let floor_log2 = exponent + significand.ilog2() as i32;
        let q = (floor_log2 - self.mantissa_bits as i32).max(self.q_min());
        // Never negative: no format has more mantissa bits or a finer quantum than f64.
        let shift = (q - exponent) as u32;
        let r = shift_right_rne(significand, shift);
        let magnitude = (((q - self.q_min()) as u64) << self.mantissa_bits) + r;
        (magnitude <= self.max_magnitude()).then_some(magnitude)
    }

    /// The value of an encoding, exactly. Bits above [`FloatFormat::storage_bits`] are ignored, and
    /// so are the low bits that the format ignores. Every NaN gives `f64::NAN`.
    pub fn decode(&self, bits: u64) -> f64 {
        let bits = bits >> self.ignored_bits;
        let magnitude = bits & self.nan_magnitude();
        let negative = self.has_sign() && bits >> self.sign_shift() & 1 != 0;
        if self.specials == Specials::Powers && magnitude == 0 {
            return exp2(-self.bias);
        }
        let value = if magnitude <= self.max_magnitude() {
            let field = magnitude >> self.mantissa_bits;
            let fraction = magnitude & ((1 << self.mantissa_bits) - 1);
            match field {
                // Splitting the scale keeps both factors normal where q_min is that of f64.
                0 => fraction as f64 * exp2(self.q_min()),
                _ => {
                    let significand = (fraction | 1 << self.mantissa_bits) as f64;
                    significand * self.epsilon() * exp2(field as i32 - self.bias)
                }
            }
        } else if self.specials == Specials::Ieee && magnitude == self.inf_magnitude() {
            f64::INFINITY
        } else {
            return f64::NAN;
        };
        if negative { -value } else { value }
    }
}

/// The smaller of two numbers, as `min` of the device has it: a NaN loses, and of zeros the negative one is smaller.
pub fn smaller(x: f64, y: f64) -> f64 {
    if x == 0.0 && y == 0.0 && (x.is_sign_negative() || y.is_sign_negative()) { -0.0 } else { x.min(y) }
}

/// The larger of two numbers, as `max` of the device has it: a NaN loses, and of zeros the positive one is larger.
pub fn larger(x: f64, y: f64) -> f64 {
    -smaller(-x, -y)
}

/// `n / 2^shift`, to nearest, ties to even.
fn shift_right_rne(n: u64, shift: u32) -> u64 {
    if shift == 0 {
        return n;
    }
    if shift > u64::BITS - 1 {
        // n < 2^53 is below half of 2^64.
        return 0;
    }
    let kept = n >> shift;
    let rest = n & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
}

/// `2^k` for every exponent a `f64` has, subnormal ones included; `k` in `-1074..=1023`.
fn exp2(k: i32) -> f64 {
    if k >= -1022 { f64::from_bits(((k + 1023) as u64) << 52) } else { f64::from_bits(1 << (k + 1074)) }
}

/// The format of a float type; `None` for integers and truth values.
pub fn float_format(elem: Elem) -> Option<FloatFormat> {
    match elem {
        Elem::F16 => Some(FloatFormat::F16),
        Elem::BF16 => Some(FloatFormat::BF16),
        Elem::TF32 => Some(FloatFormat::TF32),
        Elem::F32 => Some(FloatFormat::F32),
        Elem::F64 => Some(FloatFormat::F64),
        Elem::E4M3 => Some(FloatFormat::E4M3),
        Elem::E5M2 => Some(FloatFormat::E5M2),
        Elem::E2M1 => Some(FloatFormat::E2M1),
        Elem::UE8M0 => Some(FloatFormat::UE8M0),
        Elem::I8
        | Elem::U8
        | Elem::I4
        | Elem::U4
        | Elem::I16
        | Elem::U16
        | Elem::I32
        | Elem::U32
        | Elem::I64
        | Elem::U64
        | Elem::Bool => None,
    }
}

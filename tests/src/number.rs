//! Number formats, as far as exact data needs them: bits to values and back, and what is exact.
//!
//! Written apart from the compiler's own `numerics`, which these tests judge.

/// An element type of test data.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Format {
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Format {
    /// The format called `name`.
    pub fn from_name(name: &str) -> Option<Format> {
        match name {
            "f16" => Some(Format::F16),
            "bf16" => Some(Format::BF16),
            "f32" => Some(Format::F32),
            "f64" => Some(Format::F64),
            _ => None,
        }
    }

    /// The name of the language.
    pub fn name(self) -> &'static str {
        match self {
            Format::F16 => "f16",
            Format::BF16 => "bf16",
            Format::F32 => "f32",
            Format::F64 => "f64",
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Format::F16 | Format::BF16 => 2,
            Format::F32 => 4,
            Format::F64 => 8,
        }
    }

    /// Bits of the significand, the hidden one included.
    pub fn precision(self) -> u32 {
        match self {
            Format::F16 => 11,
            Format::BF16 => 8,
            Format::F32 => 24,
            Format::F64 => 53,
        }
    }

    /// Whether `x` is exact in this format. Subnormals and zeros of either sign count as what they are; `x` is finite.
    pub fn holds(self, x: f64) -> bool {
        x == 0.0 || (x.is_finite() && self.decode(&self.encode(x)) == x)
    }

    /// The bytes of `x`, little-endian, truncated where it is not exact.
    pub fn encode(self, x: f64) -> Vec<u8> {
        match self {
            // Truncation does not matter: callers ask `holds` or pass small numbers.
            Format::F32 => (x as f32).to_le_bytes().to_vec(),
            Format::F16 => f16_bits(x).to_le_bytes().to_vec(),
            Format::BF16 => ((x as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
            Format::F64 => x.to_le_bytes().to_vec(),
        }
    }

    /// The value of the first bytes.
    pub fn decode(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Format::F32, &[a, b, c, d, ..]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Format::F16, &[a, b, ..]) => f16_value(u16::from_le_bytes([a, b])),
            (Format::BF16, &[a, b, ..]) => f64::from(f32::from_le_bytes([0, 0, a, b])),
            (Format::F64, &[a, b, c, d, e, f, g, h, ..]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => f64::NAN,
        }
    }
}

/// The bits of a number in binary16's normal range, truncated; what is smaller becomes zero.
fn f16_bits(x: f64) -> u16 {
    let bits = x.to_bits();
    let sign = ((bits >> 48) & 0x8000) as u16;
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let fraction = ((bits >> 42) & 0x3ff) as u16;
    if x.is_nan() {
        return 0x7e00;
    }
    match exponent {
        16.. => sign | 0x7c00,
        -14..=15 => sign | (((exponent + 15) as u16) << 10) | fraction,
        _ => sign,
    }
}

/// The value of binary16 bits.
fn f16_value(bits: u16) -> f64 {
    let magnitude = match (i32::from(bits >> 10) & 31, f64::from(bits & 0x3ff)) {
        (0, fraction) => fraction * 2f64.powi(-24),
        (31, 0.0) => f64::INFINITY,
        (31, _) => f64::NAN,
        (exponent, fraction) => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_survive_both_ways() {
        for bits in 0..=u16::MAX {
            let x = f16_value(bits);
            let subnormal = bits & 0x7c00 == 0 && bits & 0x3ff != 0;
            if !x.is_nan() && !subnormal {
                assert_eq!(f16_bits(x), bits, "{x}");
            }
        }
        assert!(Format::F16.holds(2048.0) && !Format::F16.holds(2049.0) && Format::F16.holds(-1023.5));
        assert!(Format::F32.holds(16_777_216.0) && !Format::F32.holds(16_777_217.0));
    }
}

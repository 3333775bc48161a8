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
    /// IEEE 754 binary32 of which the low 13 bits do not count: data has noise there.
    TF32,
    /// IEEE 754 binary32.
    F32,
    /// 8-bit float of 4 exponent and 3 fraction bits, bias 7 (OCP FP8), as far as whole numbers need it.
    E4M3,
    /// 8-bit float of 5 exponent and 2 fraction bits, bias 15.
    E5M2,
    /// 4-bit float, two to a byte: here in a byte of its own.
    E2M1,
    /// A power of two: the exponent of a binary32.
    UE8M0,
    /// IEEE 754 binary64.
    F64,
    /// 4-bit integer, two to a byte: here in a byte of its own.
    Nibble {
        /// Two's complement.
        signed: bool,
    },
    /// An integer of this many bytes.
    Int {
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// Two's complement.
        signed: bool,
    },
}

impl Format {
    /// The format called `name`.
    pub fn from_name(name: &str) -> Option<Format> {
        match name {
            "f16" => Some(Format::F16),
            "bf16" => Some(Format::BF16),
            "tf32" => Some(Format::TF32),
            "e4m3" => Some(Format::E4M3),
            "e5m2" => Some(Format::E5M2),
            "e2m1" => Some(Format::E2M1),
            "ue8m0" => Some(Format::UE8M0),
            "f32" => Some(Format::F32),
            "f64" => Some(Format::F64),
            "i4" => Some(Format::Nibble { signed: true }),
            "u4" => Some(Format::Nibble { signed: false }),
            _ => {
                let (signed, bits) = match (name.strip_prefix('i'), name.strip_prefix('u')) {
                    (Some(bits), _) => (true, bits),
                    (_, Some(bits)) => (false, bits),
                    _ => return None,
                };
                let bits: u8 = bits.parse().ok().filter(|b| matches!(b, 8 | 16 | 32 | 64))?;
                Some(Format::Int { bytes: bits / 8, signed })
            }
        }
    }

    /// The name of the language.
    pub fn name(self) -> &'static str {
        match self {
            Format::F16 => "f16",
            Format::BF16 => "bf16",
            Format::TF32 => "tf32",
            Format::E4M3 => "e4m3",
            Format::E5M2 => "e5m2",
            Format::E2M1 => "e2m1",
            Format::UE8M0 => "ue8m0",
            Format::F32 => "f32",
            Format::F64 => "f64",
            Format::Nibble { signed: true } => "i4",
            Format::Nibble { signed: false } => "u4",
            Format::Int { bytes: 1, signed: true } => "i8",
            Format::Int { bytes: 1, signed: false } => "u8",
            Format::Int { bytes: 2, signed: true } => "i16",
            Format::Int { bytes: 2, signed: false } => "u16",
            Format::Int { bytes: 4, signed: true } => "i32",
            Format::Int { bytes: 4, signed: false } => "u32",
            Format::Int { signed: true, .. } => "i64",
            Format::Int { signed: false, .. } => "u64",
        }
    }

    /// Bytes of an element, by itself.
    pub fn bytes(self) -> usize {
        match self {
            Format::F16 | Format::BF16 => 2,
            Format::E4M3 | Format::E5M2 | Format::E2M1 | Format::UE8M0 | Format::Nibble { .. } => 1,
            Format::F32 | Format::TF32 => 4,
            Format::F64 => 8,
            Format::Int { bytes, .. } => usize::from(bytes),
        }
    }

    /// Elements that share a byte.
    pub fn to_a_byte(self) -> usize {
        if matches!(self, Format::Nibble { .. } | Format::E2M1) { 2 } else { 1 }
    }

    /// Bits of the significand, the hidden one included; of an integer, all bits but the sign.
    pub fn precision(self) -> u32 {
        match self {
            Format::F16 | Format::TF32 => 11,
            Format::E4M3 => 4,
            Format::E5M2 => 3,
            Format::E2M1 => 2,
            Format::UE8M0 => 1,
            Format::BF16 => 8,
            Format::F32 => 24,
            Format::F64 => 53,
            Format::Nibble { signed } => 4 - u32::from(signed),
            Format::Int { bytes, signed } => 8 * u32::from(bytes) - u32::from(signed),
        }
    }

    /// Whether `x` is exact in this format. Subnormals and zeros of either sign count as what they are.
    pub fn holds(self, x: f64) -> bool {
        (x == 0.0 && self != Format::UE8M0) || (!x.is_nan() && self.decode(&self.encode(x)) == x)
    }

    /// Whether `x` is beyond the integers of this format, such as -1 of those without a sign.
    pub fn is_exceeded_by(self, x: f64) -> bool {
        let integer = matches!(self, Format::Nibble { .. } | Format::Int { .. });
        integer && x.is_finite() && (self.stored(x) - x).abs() >= 1.0
    }

    /// The stored value of `x`: rounded to nearest even; integers and 8-bit floats saturate. Subnormal results are out
    /// of scope.
    pub fn stored(self, x: f64) -> f64 {
        let clamp = |x: f64, limit: f64| x.clamp(-limit, limit);
        let integer = match self {
            Format::Nibble { signed } => Some((4, signed)),
            Format::Int { bytes, signed } => Some((8 * i32::from(bytes), signed)),
            _ => None,
        };
        if let Some((bits, signed)) = integer {
            let (low, high) =
                if signed { (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)) } else { (0.0, 2f64.powi(bits)) };
            return x.round_ties_even().clamp(low, high - 1.0);
        }
        match self {
            Format::E2M1 => return e2m1_value(e2m1_bits(x)),
            Format::UE8M0 => return exponent_value(exponent_bits(x)),
            _ => {}
        }
        if x == 0.0 || !x.is_finite() {
            return x;
        }
        let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let unit = 2f64.powi(exponent + 1 - self.precision() as i32);
        let rounded = (x / unit).round_ties_even() * unit;
        match self {
            Format::E4M3 => clamp(rounded, 448.0),
            Format::E5M2 => clamp(rounded, 57344.0),
            Format::F16 if rounded.abs() > 65504.0 => f64::INFINITY.copysign(x),
            _ => rounded,
        }
    }

    /// The bytes of `x`, little-endian, truncated where it is not exact.
    pub fn encode(self, x: f64) -> Vec<u8> {
        match self {
            // Truncation does not matter: callers check `holds` or pass small numbers.
            Format::F32 => (x as f32).to_le_bytes().to_vec(),
            Format::F16 => f16_bits(x).to_le_bytes().to_vec(),
            Format::TF32 => (((x as f32).to_bits() & !0x1fff) | 0x0aaa).to_le_bytes().to_vec(),
            Format::E4M3 => vec![small_bits(x, 3, 7, 0x7e)],
            // Binary16 without its lower byte.
            Format::E2M1 => vec![e2m1_bits(x)],
            Format::UE8M0 => vec![exponent_bits(x)],
            Format::E5M2 => vec![(f16_bits(x) >> 8) as u8],
            Format::BF16 => ((x as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
            Format::F64 => x.to_le_bytes().to_vec(),
            // Values that do not fit are truncated; `holds` detects that.
            Format::Nibble { .. } => vec![(x as i128 & 15) as u8],
            Format::Int { bytes, .. } => (x as i128).to_le_bytes()[..usize::from(bytes)].to_vec(),
        }
    }

    /// The value of the first bytes.
    pub fn decode(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Format::F32, &[a, b, c, d, ..]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Format::TF32, &[_, b, c, d, ..]) => f64::from(f32::from_le_bytes([0, b & 0xe0, c, d])),
            (Format::E4M3, &[a, ..]) => small_value(a, 3, 7),
            (Format::E2M1, &[a, ..]) => e2m1_value(a),
            (Format::UE8M0, &[a, ..]) => exponent_value(a),
            (Format::E5M2, &[a, ..]) => f16_value(u16::from(a) << 8),
            (Format::F16, &[a, b, ..]) => f16_value(u16::from_le_bytes([a, b])),
            (Format::BF16, &[a, b, ..]) => f64::from(f32::from_le_bytes([0, 0, a, b])),
            (Format::F64, &[a, b, c, d, e, f, g, h, ..]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            (Format::Nibble { signed }, &[a, ..]) => {
                let x = f64::from(a & 15);
                if signed && x >= 8.0 { x - 16.0 } else { x }
            }
            (Format::Int { bytes: n, signed }, _) => {
                let Some(bytes) = bytes.get(..usize::from(n)) else { return f64::NAN };
                let sign = if signed && bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
                let mut wide = [sign; 16];
                wide[..bytes.len()].copy_from_slice(bytes);
                i128::from_le_bytes(wide) as f64
            }
            _ => f64::NAN,
        }
    }
}

/// The sizes of 4-bit floats.
const E2M1: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The 4-bit float nearest to a number, ties to even; for a NaN the largest.
pub(crate) fn e2m1_bits(x: f64) -> u8 {
    if x.is_nan() {
        return 7;
    }
    let half_way = |i: usize| (E2M1[i] + E2M1[i + 1]) / 2.0;
    let above = (0..7).take_while(|&i| x.abs() > half_way(i) || (x.abs() == half_way(i) && i % 2 == 1)).count();
    above as u8 | if x.is_sign_negative() { 8 } else { 0 }
}

/// The value of the bits of a 4-bit float.
pub(crate) fn e2m1_value(bits: u8) -> f64 {
    let size = E2M1[usize::from(bits & 7)];
    if bits & 8 == 0 { size } else { -size }
}

/// The exponent of the power of two that is not above a number, or of the least; 255 of a NaN.
pub(crate) fn exponent_bits(x: f64) -> u8 {
    match x {
        x if x.is_nan() => 255,
        x if x < 2f64.powi(-127) => 0,
        _ => (0u8..=254).rev().find(|&e| exponent_value(e) <= x).unwrap_or(0),
    }
}

/// The power of two of an exponent.
pub(crate) fn exponent_value(bits: u8) -> f64 {
    if bits == 255 { f64::NAN } else { 2f64.powi(i32::from(bits) - 127) }
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

/// The bits of a number in the normal range of an 8-bit float, truncated; at most `largest`, and zero below.
fn small_bits(x: f64, fraction_bits: u32, bias: i32, largest: u8) -> u8 {
    let bits = x.to_bits();
    let sign = ((bits >> 56) & 0x80) as u8;
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023 + bias;
    if x.is_nan() {
        return 0x7f;
    }
    if exponent < 1 {
        return sign;
    }
    let fraction = (bits >> (52 - fraction_bits)) as i32 & ((1 << fraction_bits) - 1);
    sign | ((exponent << fraction_bits) | fraction).min(i32::from(largest)) as u8
}

/// The value of the bits of an 8-bit float without infinities.
fn small_value(bits: u8, fraction_bits: u32, bias: i32) -> f64 {
    let magnitude = match (i32::from(bits & 0x7f) >> fraction_bits, f64::from(bits & ((1 << fraction_bits) - 1))) {
        _ if bits & 0x7f == 0x7f => f64::NAN,
        (0, fraction) => fraction * 2f64.powi(1 - bias - fraction_bits as i32),
        (exponent, fraction) => (1.0 + fraction * 2f64.powi(-(fraction_bits as i32))) * 2f64.powi(exponent - bias),
    };
    if bits & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_round_and_saturate() {
        let byte = Format::Int { bytes: 1, signed: true };
        for (x, y) in [(0.5, 0.0), (1.5, 2.0), (-2.5, -2.0), (127.5, 127.0), (-1e9, -128.0), (3.0, 3.0)] {
            assert_eq!(byte.stored(x), y, "{x}");
        }
        assert_eq!((Format::BF16.stored(257.0), Format::BF16.stored(259.0)), (256.0, 260.0));
        assert_eq!((Format::F16.stored(2049.0), Format::F16.stored(65520.0)), (2048.0, f64::INFINITY));
        assert_eq!((Format::E4M3.stored(17.0), Format::E4M3.stored(-9000.0)), (16.0, -448.0));
        assert_eq!(Format::F32.stored(16_777_217.0), 16_777_216.0);
    }

    #[test]
    fn elements_and_scales_of_blocks_survive_both_ways() {
        for bits in 0..16 {
            assert_eq!(Format::E2M1.encode(Format::E2M1.decode(&[bits])), [bits]);
        }
        for bits in 0..=255 {
            assert_eq!(Format::UE8M0.encode(Format::UE8M0.decode(&[bits])), [bits]);
        }
        assert!(Format::E2M1.holds(-6.0) && Format::E2M1.holds(0.5) && !Format::E2M1.holds(2.5));
        assert_eq!([0.25, 0.75, 2.5, 5.0, 7.0, -1e9].map(|x| Format::E2M1.stored(x)), [0.0, 1.0, 2.0, 4.0, 6.0, -6.0]);
        assert!(Format::UE8M0.holds(0.25) && !Format::UE8M0.holds(0.0) && !Format::UE8M0.holds(3.0));
        assert_eq!([3.9, 0.0, -1.0, 1e39].map(|x| Format::UE8M0.stored(x).log2()), [1.0, -127.0, -127.0, 127.0]);
    }

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
        let byte = Format::Int { bytes: 1, signed: true };
        assert!(byte.holds(-128.0) && !byte.holds(128.0) && !byte.holds(0.5) && byte.name() == "i8");
        let word = Format::Int { bytes: 4, signed: false };
        assert!(word.holds(4_294_967_295.0) && !word.holds(-1.0) && word.decode(&word.encode(7.0)) == 7.0);
        assert!(Format::E4M3.holds(448.0) && !Format::E4M3.holds(480.0) && !Format::E4M3.holds(17.0));
        assert!(Format::E4M3.encode(-1.5) == [0xbc] && Format::E5M2.encode(1.5) == [0x3e]);
        assert!(Format::E5M2.holds(-57344.0) && !Format::E5M2.holds(9.0) && Format::E5M2.holds(7.0));
        assert!(Format::TF32.holds(2047.0) && !Format::TF32.holds(2049.0) && Format::TF32.holds(-1.5));
        assert!(Format::F32.holds(16_777_216.0) && !Format::F32.holds(16_777_217.0));
    }
}

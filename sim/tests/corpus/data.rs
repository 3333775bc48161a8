//! Data of the corpus: seeded values, small formats, bytes.

/// Seeded values (xorshift64*).
pub struct Random(u64);

impl Random {
    /// A different sequence for every seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// 32 bits.
    pub fn word(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// From `low` to `high`, both included.
    pub fn int(&mut self, low: i32, high: i32) -> i32 {
        low + (self.word() % (high - low + 1).unsigned_abs()) as i32
    }

    /// From -1 to 1, in steps of 2^-23.
    pub fn unit(&mut self) -> f32 {
        (self.word() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    /// `n` integers.
    pub fn ints(&mut self, n: usize, low: i32, high: i32) -> Vec<i32> {
        (0..n).map(|_| self.int(low, high)).collect()
    }

    /// `n` values of [`Random::unit`].
    pub fn units(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit()).collect()
    }
}

/// The little-endian bytes of values.
pub fn bytes<const N: usize, T: Copy>(values: &[T], f: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|v| f(*v)).collect()
}

/// Little-endian f32.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// The nearest value with `fraction` stored bits and no exponent below `low`, ties to even: 10 and -14 for f16, 7 and -126 for
/// bf16. The range is not limited upwards.
pub fn rounded(x: f64, fraction: i32, low: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (((x.to_bits() >> 52) & 0x7FF) as i32 - 1023).max(low);
    let unit = 2f64.powi(exponent - fraction);
    (x / unit).round_ties_even() * unit
}

/// The bits of a value that f16 holds.
pub fn f16(x: f64) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let x = x.abs();
    if x < 2f64.powi(-14) {
        return sign | (x * 2f64.powi(24)) as u16;
    }
    let exponent = ((x.to_bits() >> 52) & 0x7FF) as i32 - 1023;
    let fraction = ((x.to_bits() >> 42) & 0x3FF) as u16;
    sign | ((exponent + 15) as u16) << 10 | fraction
}

/// The bits of a value that bf16 holds.
pub fn bf16(x: f64) -> u16 {
    ((x as f32).to_bits() >> 16) as u16
}

/// Where two equally long buffers differ, as words of four bytes; `None` if they are equal.
pub fn difference(want: &[u8], got: &[u8]) -> Option<String> {
    let different = |i: &usize| want[i * 4..want.len().min(i * 4 + 4)] != got[i * 4..got.len().min(i * 4 + 4)];
    if want.len() != got.len() {
        return Some(format!("{} bytes, expected {}", got.len(), want.len()));
    }
    let words = want.len().div_ceil(4);
    let first = (0..words).find(different)?;
    let count = (0..words).filter(different).count();
    let word = |b: &[u8]| {
        let mut word = [0; 4];
        word.iter_mut().zip(&b[first * 4..]).for_each(|(w, b)| *w = *b);
        u32::from_le_bytes(word)
    };
    let (w, g) = (word(want), word(got));
    let (wf, gf) = (f32::from_bits(w), f32::from_bits(g));
    Some(format!("word {first} is {g:#010x} ({gf}), expected {w:#010x} ({wf}); {count} of {words} words"))
}

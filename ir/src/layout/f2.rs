//! Linear maps over F2, the two-element field, between bit vectors of at most 63 bits.
//!
//! A map is the list of its columns: input bit `i` contributes `cols[i]`, and the image of `x` is the
//! xor of the columns of its set bits. One Gaussian elimination (`Echelon`) answers rank, kernel,
//! solution and inverse questions, so every proof about a layout is exact and costs a few dozen
//! word operations.
//!
//! Invariant: at most 63 columns, and no column has a bit at or above `out_bits <= 63`.

use std::ops::Range;

/// Most input or output bits of a map: every value and every size then fits an `i64`.
pub const MAX_BITS: u32 = 63;

/// A linear map over F2: bit `i` of the input contributes column `cols[i]` (xor over the set bits).
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct F2Map {
    cols: Vec<u64>,
    out_bits: u32,
}

impl F2Map {
    /// The map with these columns; `None` if a column does not fit `out_bits`, or more than 63 bits.
    pub fn new(cols: Vec<u64>, out_bits: u32) -> Option<F2Map> {
        let fits = out_bits <= MAX_BITS && cols.len() <= MAX_BITS as usize && cols.iter().all(|c| c >> out_bits == 0);
        fits.then_some(F2Map { cols, out_bits })
    }

    /// The map with these columns and the fewest output bits that hold them.
    pub fn from_cols(cols: Vec<u64>) -> Option<F2Map> {
        let all = cols.iter().fold(0, |a, c| a | c);
        F2Map::new(cols, bit_len(all))
    }

    /// The identity on `bits` bits (clamped to 63).
    pub fn identity(bits: u32) -> F2Map {
        let bits = bits.min(MAX_BITS);
        F2Map { cols: (0..bits).map(|i| 1 << i).collect(), out_bits: bits }
    }

    /// The map that sends everything to zero (bit counts clamped to 63).
    pub fn zero(in_bits: u32, out_bits: u32) -> F2Map {
        F2Map { cols: vec![0; in_bits.min(MAX_BITS) as usize], out_bits: out_bits.min(MAX_BITS) }
    }

    /// Number of input bits.
    pub fn in_bits(&self) -> u32 {
        self.cols.len() as u32
    }

    /// Number of output bits.
    pub fn out_bits(&self) -> u32 {
        self.out_bits
    }

    /// The columns, input bit 0 first.
    pub fn cols(&self) -> &[u64] {
        &self.cols
    }

    /// The column of input bit `i`; zero past the last.
    pub fn col(&self, i: u32) -> u64 {
        self.cols.get(i as usize).copied().unwrap_or(0)
    }

    /// The image of `x`; bits of `x` past the last input bit are ignored.
    pub fn apply(&self, x: u64) -> u64 {
        self.cols.iter().enumerate().fold(0, |acc, (i, &c)| if x >> i & 1 == 1 { acc ^ c } else { acc })
    }

    /// `self` after `inner`; `None` unless `inner` yields exactly the bits `self` takes.
    pub fn compose(&self, inner: &F2Map) -> Option<F2Map> {
        (inner.out_bits == self.in_bits())
            .then(|| F2Map { cols: inner.cols.iter().map(|&c| self.apply(c)).collect(), out_bits: self.out_bits })
    }

    /// The two-sided inverse of a bijective map.
    pub fn inverse(&self) -> Option<F2Map> {
        if self.in_bits() != self.out_bits {
            return None;
        }
        self.right_inverse()
    }

    /// A map `r` with `self` after `r` the identity; exists exactly for surjective maps.
    pub fn right_inverse(&self) -> Option<F2Map> {
        let e = Echelon::of(&self.cols);
        let cols: Option<Vec<u64>> = (0..self.out_bits).map(|i| e.solve(1 << i)).collect();
        Some(F2Map { cols: cols?, out_bits: self.in_bits() })
    }

    /// Block-diagonal sum: `self` on the low bits, `hi` on the high bits.
    ///
    /// # Panics
    /// If the sum has more than 63 input or output bits; see [`F2Map::checked_product`].
    pub fn product(&self, hi: &F2Map) -> F2Map {
        self.checked_product(hi).expect("a product of layouts has at most 63 bits")
    }

    /// [`F2Map::product`], or `None` past 63 bits.
    pub fn checked_product(&self, hi: &F2Map) -> Option<F2Map> {
        let out_bits = self.out_bits + hi.out_bits;
        if out_bits > MAX_BITS || self.in_bits() + hi.in_bits() > MAX_BITS {
            return None;
        }
        let high = hi.cols.iter().map(|c| c << self.out_bits);
        Some(F2Map { cols: self.cols.iter().copied().chain(high).collect(), out_bits })
    }

    /// The `q` with `tile.product(&q) == *self`, if there is one.
    pub fn divide(&self, tile: &F2Map) -> Option<F2Map> {
        let out_bits = self.out_bits.checked_sub(tile.out_bits)?;
        let low = self.cols.get(..tile.cols.len())?;
        let high = &self.cols[tile.cols.len()..];
        let clean = high.iter().all(|c| c & mask(tile.out_bits) == 0);
        (low == tile.cols && clean).then(|| F2Map { cols: high.iter().map(|c| c >> tile.out_bits).collect(), out_bits })
    }

    /// Inputs side by side: `self`'s bits low, `hi`'s above; both must have the same output bits.
    pub fn concat_inputs(&self, hi: &F2Map) -> Option<F2Map> {
        if self.out_bits != hi.out_bits {
            return None;
        }
        F2Map::new([self.cols.as_slice(), &hi.cols].concat(), self.out_bits)
    }

    /// The map restricted to the input bits of `range` (clamped to those there are).
    pub fn select_inputs(&self, range: Range<u32>) -> F2Map {
        let end = range.end.min(self.in_bits());
        let start = range.start.min(end);
        F2Map { cols: self.cols[start as usize..end as usize].to_vec(), out_bits: self.out_bits }
    }

    /// Only the output bits of `range` (clamped), shifted down to bit 0.
    pub fn select_outputs(&self, range: Range<u32>) -> F2Map {
        let end = range.end.min(self.out_bits);
        let start = range.start.min(end);
        let bits = end - start;
        F2Map { cols: self.cols.iter().map(|c| c >> start & mask(bits)).collect(), out_bits: bits }
    }

    /// Dimension of the image.
    pub fn rank(&self) -> u32 {
        rank(&self.cols)
    }

    /// A basis of the inputs that map to zero, in order of the highest input bit involved.
    pub fn kernel(&self) -> Vec<u64> {
        Echelon::of(&self.cols).kernel
    }

    /// Whether different inputs have different images.
    pub fn is_injective(&self) -> bool {
        self.rank() == self.in_bits()
    }

    /// Whether every output is hit.
    pub fn is_surjective(&self) -> bool {
        self.rank() == self.out_bits
    }

    /// Whether the map is a permutation of its bit vectors.
    pub fn is_bijective(&self) -> bool {
        self.in_bits() == self.out_bits && self.is_injective()
    }

    /// Some `x` with `apply(x) == y`.
    pub fn solve(&self, y: u64) -> Option<u64> {
        Echelon::of(&self.cols).solve(y)
    }
}

/// Dimension of the span of `vectors`.
pub fn rank(vectors: &[u64]) -> u32 {
    let mut basis = [0u64; 64];
    let mut n = 0;
    for &v in vectors {
        let mut v = v;
        while v != 0 {
            let lead = 63 - v.leading_zeros();
            let b = &mut basis[lead as usize];
            if *b == 0 {
                *b = v;
                n += 1;
                break;
            }
            v ^= *b;
        }
    }
    n
}

/// All ones in the low `bits` bits.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Bits needed to write `x`: zero for zero.
pub(crate) fn bit_len(x: u64) -> u32 {
    64 - x.leading_zeros()
}

/// The columns of a map in echelon form, each basis vector with the inputs whose xor it is.
struct Echelon {
    /// `(image, input)` with `image`'s leading bit as the index; `image == 0` where there is none.
    basis: [(u64, u64); 64],
    /// Inputs that map to zero.
    kernel: Vec<u64>,
}

impl Echelon {
    fn of(cols: &[u64]) -> Echelon {
        let mut e = Echelon { basis: [(0, 0); 64], kernel: Vec::new() };
        for (i, &c) in cols.iter().enumerate() {
            let (rest, x) = e.reduce(c, 1 << i);
            if rest == 0 {
                e.kernel.push(x);
            } else {
                e.basis[(bit_len(rest) - 1) as usize] = (rest, x);
            }
        }
        e
    }

    /// Xors basis vectors into `y` until its leading bit has none; `x` collects their inputs.
    fn reduce(&self, mut y: u64, mut x: u64) -> (u64, u64) {
        while y != 0 {
            let (image, input) = self.basis[(bit_len(y) - 1) as usize];
            if image == 0 {
                break;
            }
            y ^= image;
            x ^= input;
        }
        (y, x)
    }

    fn solve(&self, y: u64) -> Option<u64> {
        let (rest, x) = self.reduce(y, 0);
        (rest == 0).then_some(x)
    }
}

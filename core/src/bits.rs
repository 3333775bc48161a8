//! Sizes of elements in bits, since several elements may share a byte. Code that needs bytes or registers for a number
//! of elements uses this module.

use std::fmt;

/// The bits that one element takes in memory and in registers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bits(u32);

impl Bits {
    /// So many.
    pub const fn new(bits: u32) -> Bits {
        Bits(bits)
    }

    /// Their number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Its logarithm: addresses that count bits are those that count elements, shifted by it. Elements have powers of two of bits.
    pub const fn log2(self) -> u32 {
        self.0.ilog2()
    }

    /// Bytes of a run of `count` elements; the last byte may be filled in part. Saturates at the maximum.
    pub const fn bytes_of(self, count: u64) -> u64 {
        let bits = self.0 as u64;
        (count / 8).saturating_mul(bits).saturating_add((count % 8 * bits).div_ceil(8))
    }

    /// Registers of 32 bits that `count` elements take, side by side.
    pub const fn words(self, count: u64) -> u64 {
        self.bytes_of(count).div_ceil(4)
    }

    /// Elements that an access of `bytes` moves; one that is larger than that takes several accesses.
    pub const fn per(self, bytes: u32) -> u32 {
        let elements = bytes * 8 / self.0;
        if elements == 0 { 1 } else { elements }
    }

    /// Whether `count` elements take a multiple of `bytes`.
    pub const fn makes_up(self, count: u64, bytes: u64) -> bool {
        (count as u128 * self.0 as u128).is_multiple_of(bytes as u128 * 8)
    }

    /// Whether several share a register of 32 bits.
    pub const fn shares_registers(self) -> bool {
        self.0 < 32
    }

    /// Bytes of an estimated number of elements.
    pub fn traffic(self, elements: f64) -> f64 {
        elements * (f64::from(self.0) / 8.0)
    }

    /// The first byte of element `index` of a run. Elements that begin inside a byte have no address: asking for it is
    /// a bug.
    pub const fn byte_at(self, index: u64) -> u64 {
        assert!(self.makes_up(index % 8, 1), "bug: the address of an element that begins inside a byte");
        self.bytes_of(index)
    }

    /// The byte in which element `index` of a run begins.
    pub const fn byte_with(self, index: u64) -> u64 {
        index / 8 * self.0 as u64 + index % 8 * self.0 as u64 / 8
    }

    /// Bytes of an element that begins and ends with one; `None` of those that share bytes.
    pub const fn whole_bytes(self) -> Option<u32> {
        if self.0.is_multiple_of(8) { Some(self.0 / 8) } else { None }
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole_bytes() {
            Some(bytes) => write!(f, "{bytes} bytes"),
            None => write!(f, "{} bits", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIBBLE: Bits = Bits::new(4);
    const HALF: Bits = Bits::new(16);

    #[test]
    fn runs_are_rounded_up_to_bytes_and_registers() {
        let bytes = [0, 1, 2, 3, 8, 9].map(|n| (NIBBLE.bytes_of(n), HALF.bytes_of(n)));
        assert_eq!(bytes, [(0, 0), (1, 2), (1, 4), (2, 6), (4, 16), (5, 18)]);
        let words = [0, 1, 7, 8, 9].map(|n| (NIBBLE.words(n), HALF.words(n)));
        assert_eq!(words, [(0, 0), (1, 1), (1, 4), (1, 4), (2, 5)]);
        assert_eq!((Bits::new(6).bytes_of(3), Bits::new(6).bytes_of(4)), (3, 3));
    }

    #[test]
    fn accesses_count_elements() {
        assert_eq!([1, 4, 16].map(|bytes| NIBBLE.per(bytes)), [2, 8, 32]);
        assert_eq!([1, 4, 16].map(|bytes| Bits::new(64).per(bytes)), [1, 1, 2]);
        assert_eq!((NIBBLE.makes_up(32, 16), NIBBLE.makes_up(24, 16), HALF.makes_up(24, 16)), (true, false, true));
        assert_eq!((NIBBLE.traffic(3.0), HALF.traffic(3.0)), (1.5, 6.0));
    }

    #[test]
    fn only_whole_bytes_have_addresses() {
        assert_eq!((NIBBLE.whole_bytes(), HALF.whole_bytes()), (None, Some(2)));
        assert_eq!((NIBBLE.byte_at(6), HALF.byte_at(5)), (3, 10));
        assert_eq!((NIBBLE.byte_with(6), NIBBLE.byte_with(7), HALF.byte_with(5)), (3, 3, 10));
        assert!(std::panic::catch_unwind(|| NIBBLE.byte_at(5)).is_err());
    }

    #[test]
    fn large_runs_saturate_where_a_number_ends() {
        assert_eq!(Bits::new(8).bytes_of(u64::MAX), u64::MAX);
        assert_eq!((HALF.bytes_of(u64::MAX / 2), HALF.bytes_of(u64::MAX)), (u64::MAX - 1, u64::MAX));
        assert_eq!(NIBBLE.bytes_of(u64::MAX), 1 << 63);
    }
}

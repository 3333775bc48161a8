//! The CuTe `Swizzle<B,M,S>`: xor `B` address bits into others, as a function, a map and text.
//!
//! For `S > 0` the bits `[M+S, M+S+B)` are xored into `[M, M+B)`; for `S < 0` the other way. Source
//! and target do not overlap (`|S| >= B`), so a swizzle is its own inverse.

use std::fmt;

use super::cute::LayoutParseError;
use super::cute_text::Cursor;
use super::f2::{F2Map, MAX_BITS, mask};

/// `Swizzle<B,M,S>`: `b` bits, starting at bit `m`, xored with the bits `s` above (below if negative).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Swizzle {
    b: u32,
    m: u32,
    s: i32,
}

impl Swizzle {
    /// A valid swizzle: `|s| >= b` and no bit past 62; `None` otherwise.
    pub fn new(b: u32, m: u32, s: i32) -> Option<Swizzle> {
        let top = b.checked_add(m)?.checked_add(s.unsigned_abs())?;
        (s.unsigned_abs() >= b && top <= MAX_BITS).then_some(Swizzle { b, m, s })
    }

    /// Number of bits xored.
    pub fn b(self) -> u32 {
        self.b
    }

    /// Lowest bit touched: `2^m` consecutive elements stay together.
    pub fn m(self) -> u32 {
        self.m
    }

    /// Distance from target to source bit.
    pub fn s(self) -> i32 {
        self.s
    }

    /// The swizzled offset; its own inverse.
    pub fn apply(self, x: u64) -> u64 {
        let low = x >> self.m & mask(self.b);
        let high = x >> (self.m + self.s.unsigned_abs()) & mask(self.b);
        if self.s >= 0 { x ^ high << self.m } else { x ^ low << (self.m + self.s.unsigned_abs()) }
    }

    /// The swizzle as a bijection of `bits` address bits; bits outside do not exist (read as zero,
    /// are not written).
    pub fn to_f2(self, bits: u32) -> F2Map {
        let bits = bits.min(MAX_BITS);
        let cols = (0..bits).map(|i| self.apply(1 << i) & mask(bits)).collect();
        F2Map::new(cols, bits).expect("masked columns fit")
    }

    /// Whether it changes nothing (`b == 0`).
    pub fn is_identity(self) -> bool {
        self.b == 0
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "swizzle<{},{},{}>", self.b, self.m, self.s)
    }
}

/// Parses `swizzle<B,M,S>`, the whole of `text`.
///
/// # Errors
/// Bad syntax or an invalid swizzle, with the byte offset.
pub fn parse_swizzle(text: &str) -> Result<Swizzle, LayoutParseError> {
    let mut c = Cursor::new(text);
    let s = swizzle(&mut c)?;
    c.expect_end()?;
    Ok(s)
}

/// Parses a swizzle at the start of `text`; also returns the bytes consumed.
///
/// # Errors
/// Bad syntax or an invalid swizzle, with the byte offset.
pub fn parse_swizzle_prefix(text: &str) -> Result<(Swizzle, usize), LayoutParseError> {
    let mut c = Cursor::new(text);
    let s = swizzle(&mut c)?;
    Ok((s, c.offset()))
}

pub(crate) fn swizzle(c: &mut Cursor<'_>) -> Result<Swizzle, LayoutParseError> {
    c.skip_space();
    let start = c.offset();
    if !c.eat_word("swizzle") {
        return Err(c.error("expected `swizzle<B,M,S>`"));
    }
    c.expect('<')?;
    let b = c.small("swizzle bits")?;
    c.expect(',')?;
    let m = c.small("swizzle base")?;
    c.expect(',')?;
    c.skip_space();
    let negative = c.eat('-');
    let s = c.small("swizzle shift")? as i32;
    c.expect('>')?;
    let invalid =
        || format!("invalid swizzle: the shift must be at least the {b} bits it moves, within {MAX_BITS} address bits");
    Swizzle::new(b, m, if negative { -s } else { s }).ok_or_else(|| LayoutParseError::new(start, invalid()))
}

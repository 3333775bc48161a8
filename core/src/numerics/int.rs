//! Integer formats: saturation, wrapping and conversion from `f64`.
//!
//! Values travel as `i128`, which holds every value and every sum the interpreter forms of them.

/// A two's-complement or unsigned integer format of at most 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntFormat {
    /// The name in PTX.
    pub name: &'static str,
    /// Width in bits, 1 to 64.
    pub bits: u32,
    /// Whether the format is two's complement.
    pub signed: bool,
}

impl IntFormat {
    /// 4-bit two's complement.
    pub const S4: Self = Self { name: "s4", bits: 4, signed: true };
    /// 4-bit unsigned.
    pub const U4: Self = Self { name: "u4", bits: 4, signed: false };
    /// 8-bit two's complement.
    pub const S8: Self = Self { name: "s8", bits: 8, signed: true };
    /// 8-bit unsigned.
    pub const U8: Self = Self { name: "u8", bits: 8, signed: false };
    /// 16-bit two's complement.
    pub const S16: Self = Self { name: "s16", bits: 16, signed: true };
    /// 16-bit unsigned.
    pub const U16: Self = Self { name: "u16", bits: 16, signed: false };
    /// 32-bit two's complement, the accumulator of the integer tensor-core instructions.
    pub const S32: Self = Self { name: "s32", bits: 32, signed: true };
    /// 32-bit unsigned.
    pub const U32: Self = Self { name: "u32", bits: 32, signed: false };
    /// 64-bit two's complement.
    pub const S64: Self = Self { name: "s64", bits: 64, signed: true };
    /// 64-bit unsigned.
    pub const U64: Self = Self { name: "u64", bits: 64, signed: false };

    /// The least value.
    pub const fn min(&self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    /// The greatest value.
    pub const fn max(&self) -> i128 {
        (1 << (self.bits - self.signed as u32)) - 1
    }

    /// The value of the format nearest to `x`: `.satfinite` of the integer `mma`, `.sat` of `cvt`.
    pub fn saturate(&self, x: i128) -> i128 {
        x.clamp(self.min(), self.max())
    }

    /// The value of the format congruent to `x` modulo `2^bits`: arithmetic without `.satfinite`.
    pub const fn wrap(&self, x: i128) -> i128 {
        let unused = i128::BITS - self.bits;
        if self.signed { x << unused >> unused } else { x & self.max() }
    }

    /// `x` rounded to an integer, ties to even, then saturated; NaN gives 0: `cvt.rni.sat` of PTX.
    pub fn from_f64(&self, x: f64) -> i128 {
        // `as` saturates to i128 and maps NaN to 0; i128 contains every format.
        self.saturate(x.round_ties_even() as i128)
    }
}

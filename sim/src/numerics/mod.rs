//! The arithmetic of PTX, as pure functions on bit patterns.
//!
//! Every function takes register contents and gives register contents; there is no state and no error. Results follow the PTX
//! manual (ISA 9.1, sections 9.7.1 to 9.7.9) and, for matrix products, the published measurements of tensor cores; each file
//! names its sources and says what is a choice of ours where the manual is silent. Nothing here calls a mathematical library
//! for more than IEEE operations, so a result never depends on the host.
//!
//! * [`exact`]: any binary format, decoded to and rounded from exact values; the slow path of everything else
//! * [`mod@convert`]: the instruction `cvt`
//! * [`single`], [`double`], [`half`]: arithmetic of f32, f64, and f16/bf16 alone and packed
//! * [`approx`]: `ex2`, `lg2`, `sin` and other approximations, with the errors the manual allows
//! * [`bits`], [`video`]: searches and packing of integers, and the video instructions
//! * [`mma`]: matrix products, bit for bit by executing generation; fragment layouts; `ldmatrix`, `stmatrix` and others

pub mod approx;
pub mod bits;
pub mod convert;
pub mod double;
pub mod exact;
pub mod half;
#[cfg(test)]
mod measured;
pub mod mma;
pub mod single;
pub mod video;

/// A rounding direction of a floating-point result (PTX ISA 6.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: toward negative infinity.
    Down,
    /// `.rp`: toward positive infinity.
    Up,
}

/// The modifiers of a floating-point instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// Rounding of the result.
    pub round: Round,
    /// `.ftz`: subnormal inputs and results become zeros of the same sign.
    pub ftz: bool,
    /// `.sat`: the result is clamped to [0, 1], NaN to +0.
    pub sat: bool,
}

impl Mode {
    /// `.rn` without `.ftz` and `.sat`: the default of every arithmetic instruction.
    pub const RN: Mode = Mode { round: Round::Nearest, ftz: false, sat: false };

    /// The mode of this rounding, without `.ftz` and `.sat`.
    #[must_use]
    pub const fn of(round: Round) -> Mode {
        Mode { round, ftz: false, sat: false }
    }
}

/// The NaN every f32 instruction makes.
pub const NAN_F32: u32 = 0x7fff_ffff;
/// The NaN every f16 and bf16 instruction makes.
pub const NAN_HALF: u16 = 0x7fff;
/// The NaN an f64 instruction makes when no operand is one.
pub const NAN_F64: u64 = 0xfff8_0000_0000_0000;

/// Applies an operation to both halves of packed registers: bits 15..0 with bits 15..0, bits 31..16 with bits 31..16.
#[inline(always)]
pub fn packed1(a: u32, op: impl Fn(u16) -> u16) -> u32 {
    u32::from(op(a as u16)) | (u32::from(op((a >> 16) as u16)) << 16)
}

/// [`packed1`] of two operands.
#[inline(always)]
pub fn packed2(a: u32, b: u32, op: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(op(a as u16, b as u16)) | (u32::from(op((a >> 16) as u16, (b >> 16) as u16)) << 16)
}

/// [`packed1`] of three operands.
#[inline(always)]
pub fn packed3(a: u32, b: u32, c: u32, op: impl Fn(u16, u16, u16) -> u16) -> u32 {
    u32::from(op(a as u16, b as u16, c as u16))
        | (u32::from(op((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16)) << 16)
}

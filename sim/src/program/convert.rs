//! Conversions and other operations too rare to deserve a function over whole slots: one description, applied lane by lane.

use crate::numerics::convert::{self, Clamp, Float, Fp8, Int};
use crate::numerics::half::Half;
use crate::numerics::{Mode, Round};
use crate::program::types::Ty;

/// An operation on one or two bit patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    IntToInt {
        from: Int,
        to: Int,
        reg_bits: u32,
    },
    FloatToInt {
        from: Float,
        to: Int,
        round: Round,
        ftz: bool,
        reg_bits: u32,
    },
    IntToFloat {
        from: Int,
        to: Float,
        mode: Mode,
    },
    FloatToFloat {
        from: Float,
        to: Float,
        mode: Mode,
    },
    /// Same type, rounded to an integer.
    Integral {
        ty: Float,
        mode: Mode,
    },
    Narrow {
        to: Half,
        round: Round,
        clamp: Clamp,
    },
    Narrow2 {
        to: Half,
        round: Round,
        clamp: Clamp,
    },
    /// Two f32 to a pair of 8-bit floats.
    Fp8FromF32 {
        to: Fp8,
        relu: bool,
    },
    Fp8FromHalf {
        to: Fp8,
        relu: bool,
    },
    HalfFromFp8 {
        from: Fp8,
        relu: bool,
    },
    Tf32 {
        round: Round,
        clamp: Clamp,
    },
}

impl Map {
    /// The result for one lane.
    pub(crate) fn apply(self, a: u64, b: u64) -> u64 {
        let fit = |value: u64, bits: u32| if bits == 32 { value & 0xFFFF_FFFF } else { value };
        match self {
            Map::IntToInt { from, to, reg_bits } => fit(convert::int_to_int(from, to, true, a), reg_bits),
            Map::FloatToInt { from, to, round, ftz, reg_bits } => {
                fit(convert::float_to_int(from, to, round, ftz, a), reg_bits)
            }
            Map::IntToFloat { from, to, mode } => convert::int_to_float(from, to, mode, a),
            Map::FloatToFloat { from, to, mode } => convert::float_to_float(from, to, mode, a),
            Map::Integral { ty, mode } => convert::float_to_integral(ty, mode, a),
            Map::Narrow { to, round, clamp } => u64::from(convert::f32_to_half(to, round, clamp, a as u32)),
            Map::Narrow2 { to, round, clamp } => u64::from(convert::f32_to_half2(to, round, clamp, a as u32, b as u32)),
            Map::Fp8FromF32 { to, relu } => u64::from(convert::f32_to_fp8x2(to, relu, a as u32, b as u32)),
            Map::Fp8FromHalf { to, relu } => u64::from(convert::half2_to_fp8x2(to, Half::F16, relu, a as u32)),
            Map::HalfFromFp8 { from, relu } => u64::from(convert::fp8x2_to_half2(from, relu, a as u16)),
            Map::Tf32 { round, clamp } => u64::from(convert::f32_to_tf32(round, clamp, a as u32)),
        }
    }
}

/// The integer type of `numerics` for a PTX one.
pub(crate) fn int(ty: Ty) -> Int {
    Int { signed: ty.signed(), bits: ty.bytes() * 8 }
}

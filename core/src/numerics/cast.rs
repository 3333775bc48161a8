//! Conversions between element types: `cast`, and what a store or a copy to another type does.
//!
//! | from | to | result |
//! |---|---|---|
//! | any | a float | the nearest, ties to even; floats of 8 and 4 bits saturate |
//! | any | ue8m0 | the power of two below it; what is below all of them, the least |
//! | a float | an integer | the nearest, ties to even, saturated; of a NaN [`of_nan`] |
//! | an integer of up to 32 bits | i32, u32 | the same 32 bits: the value modulo 2^32 |
//! | an integer | u64; of u64, i64 | the same 64 bits: the value modulo 2^64 |
//! | any other integer | an integer | the nearest: i64 holds all, narrower ones saturate |
//!
//! Integers of up to 32 bits are computed in registers of 32, so the third row changes nothing there.

use super::{FloatFormat, IntFormat, Overflow};
use crate::elem::{Elem, ElemClass};

/// The format of an integer type; that of bytes for truth values, `None` for floats.
pub fn int_format(elem: Elem) -> Option<IntFormat> {
    match elem {
        Elem::I8 => Some(IntFormat::S8),
        Elem::U8 | Elem::Bool => Some(IntFormat::U8),
        Elem::I4 => Some(IntFormat::S4),
        Elem::U4 => Some(IntFormat::U4),
        Elem::I16 => Some(IntFormat::S16),
        Elem::U16 => Some(IntFormat::U16),
        Elem::I32 => Some(IntFormat::S32),
        Elem::U32 => Some(IntFormat::U32),
        Elem::I64 => Some(IntFormat::S64),
        Elem::U64 => Some(IntFormat::U64),
        Elem::F16
        | Elem::BF16
        | Elem::TF32
        | Elem::F32
        | Elem::F64
        | Elem::E4M3
        | Elem::E5M2
        | Elem::E2M1
        | Elem::UE8M0 => None,
    }
}

/// Whether a type has numbers below zero.
pub fn has_negatives(elem: Elem) -> bool {
    elem != Elem::UE8M0 && int_format(elem).is_none_or(|format| format.signed)
}

/// The format of the register in which an integer type is computed: 64 bits, or 32 for all narrower types.
pub fn register_format(elem: Elem) -> IntFormat {
    match elem {
        Elem::I64 => IntFormat::S64,
        Elem::U64 => IntFormat::U64,
        Elem::U32 => IntFormat::U32,
        _ => IntFormat::S32,
    }
}

/// The value of the float type `to` nearest to `x`; of an integer type, the value itself.
pub fn to_float(to: Elem, x: f64) -> f64 {
    match to {
        Elem::F16 => FloatFormat::F16.round_f64(x),
        Elem::BF16 => FloatFormat::BF16.round_f64(x),
        Elem::TF32 => FloatFormat::TF32.round_f64(x),
        Elem::F32 => f64::from(x as f32),
        Elem::E4M3 => FloatFormat::E4M3.round_with(x, Overflow::Saturate),
        Elem::E5M2 => FloatFormat::E5M2.round_with(x, Overflow::Saturate),
        Elem::E2M1 => FloatFormat::E2M1.round_f64(x),
        Elem::UE8M0 => FloatFormat::UE8M0.round_f64(x),
        Elem::F64
        | Elem::I8
        | Elem::U8
        | Elem::I4
        | Elem::U4
        | Elem::I16
        | Elem::U16
        | Elem::I32
        | Elem::U32
        | Elem::I64
        | Elem::U64
        | Elem::Bool => x,
    }
}

/// The value of the float type `to` nearest to an integer, rounded once.
pub fn int_to_float(to: Elem, x: i128) -> f64 {
    match to {
        // `as` rounds to nearest, ties to even.
        Elem::F64 => x as f64,
        Elem::F32 => f64::from(x as f32),
        _ => to_float(to, odd(x)),
    }
}

/// An integer cut to 53 bits with the last one set if anything was cut off: rounding that to fewer rounds the integer.
fn odd(x: i128) -> f64 {
    let size = x.unsigned_abs();
    let drop = (u128::BITS - size.leading_zeros()).saturating_sub(53);
    let cut = size >> drop;
    let sticky = u128::from(cut << drop != size);
    let kept = (cut | sticky) << drop;
    if x < 0 { -(kept as f64) } else { kept as f64 }
}

/// What a NaN becomes: 0; where either type has 64 bits, the sign bit of the register alone, which 8-bit types saturate.
pub fn of_nan(from: Elem, to: IntFormat) -> i128 {
    if from != Elem::F64 && to.bits != 64 {
        return 0;
    }
    match to.bits {
        64 => to.wrap(1 << 63),
        32 => to.wrap(1 << 31),
        _ => to.saturate(IntFormat::S32.min()),
    }
}

/// The value of an integer type nearest to a float.
pub fn float_to_int(from: Elem, to: IntFormat, x: f64) -> i128 {
    if x.is_nan() { of_nan(from, to) } else { to.from_f64(x) }
}

/// Whether a conversion between integers keeps the bits of a register of 32 or 64 bits, and the value only modulo that power of two.
pub fn keeps_bits(from: Elem, to: Elem) -> bool {
    let widens = from.bits() <= 32 && matches!(to, Elem::I32 | Elem::U32);
    is_int(from) && from != to && (widens || to == Elem::U64 || (from, to) == (Elem::U64, Elem::I64))
}

/// An integer of type `from` as one of the integer type `to`.
pub fn int_to_int(from: Elem, to: Elem, x: i128) -> i128 {
    match int_format(to) {
        Some(format) if keeps_bits(from, to) => format.wrap(x),
        Some(_) if to == Elem::Bool => i128::from(x != 0),
        Some(format) => format.saturate(x),
        None => x,
    }
}

/// Whether elements of a type are integers.
pub fn is_int(elem: Elem) -> bool {
    elem.class() == ElemClass::Int
}

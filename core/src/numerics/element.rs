//! Operators on integer elements.

use super::IntFormat;
use crate::index::{self, Undefined};
use crate::ops::Op;

/// `a op b` of integer elements that are computed in registers of a format, before the result is wrapped. What has no value as an index has one
/// here: a quotient by zero is 0, and the remainder is what was divided, so that `a == a / b * b + a % b` always holds. A shift by a negative number, or
/// by as many bits as the register has, leaves nothing of the number but, to the right, its sign.
///
/// # Errors
/// `op` gives no integer.
pub fn element(op: Op, register: IntFormat, a: i128, b: i128) -> Result<i128, Undefined> {
    let beyond = b < 0 || b >= i128::from(register.bits);
    match op {
        Op::Div | Op::CeilDiv if b == 0 => Ok(0),
        Op::Rem if b == 0 => Ok(a),
        // The register keeps what is congruent.
        Op::Mul => Ok(a.wrapping_mul(b)),
        // Of two numbers of 64 bits without a sign the product has 128.
        Op::MulHigh if !register.signed => {
            let product = (register.wrap(a) as u128) * (register.wrap(b) as u128);
            Ok((product >> register.bits) as i128)
        }
        Op::MulHigh => Ok((a * b) >> register.bits),
        Op::Shl if beyond => Ok(0),
        Op::Shr if beyond => Ok(if a < 0 { -1 } else { 0 }),
        _ => index::exact(op, a, b),
    }
}

/// `permute_bytes(a, b, s)` of words, as `prmt` of PTX has it.
pub fn permute_bytes(a: u32, b: u32, s: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |word, i| {
        let digit = s >> (4 * i) & 0xf;
        let byte = (bytes >> (8 * (digit & 7))) as u8;
        let byte = if digit & 8 == 0 { byte } else { (byte.cast_signed() >> 7) as u8 };
        word | u32::from(byte) << (8 * i)
    })
}

/// `op a` of an integer element of `own` format. The bits of an element are those of its own format, not of the register.
///
/// # Errors
/// As those of [`element`].
pub fn element_unary(op: Op, own: IntFormat, a: i128) -> Result<i128, Undefined> {
    let bits = IntFormat { signed: false, ..own };
    match op {
        Op::Popcount => Ok(i128::from(bits.wrap(a).count_ones())),
        Op::BitNot if !own.signed => Ok(a ^ own.max()),
        _ => index::exact_unary(op, a),
    }
}

//! One fused step of a tensor core, exactly: the plain form of the models.
//!
//! Operands keep their *unnormalised* exponent (the smallest normal one for subnormals), and so do products: 1.5 · 1.5 counts
//! as exponent 0. Zero operands and a zero accumulator take no part in the choice of the largest exponent. Cutting off is
//! toward zero, term by term. A result of zero is +0, also when a negative sum rounds to it: the sign belongs to the rounded
//! number (measured on Hopper in every form; assumed of the others).

use super::dense_forms::Elem;
use super::model::{Model, Output};
use crate::numerics::exact::{BF16, E4M3, E5M2, Exact, F16, F32, Format, Value};
use crate::numerics::{NAN_F32, NAN_HALF, Round};

/// Fraction bits of every significand in [`Operand`].
const FRACTION_BITS: i32 = 10;

/// An element of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Not a number.
    Nan,
    /// Infinity; true is the negative one.
    Infinite(bool),
    /// `significand · 2^(exponent - 10)`, with `|significand| < 2^11`.
    Finite {
        /// Signed significand.
        significand: i32,
        /// Unnormalised exponent.
        exponent: i32,
    },
}

impl Operand {
    /// The element in the low bits; integer types have none and give zero.
    #[must_use]
    pub fn decode(ty: Elem, bits: u32) -> Operand {
        let (format, bits): (Format, u32) = match ty {
            Elem::F16 => (F16, bits),
            Elem::Bf16 => (BF16, bits),
            Elem::Tf32 => (F32, bits & !0x1fff),
            Elem::E4m3 => (E4M3, bits),
            Elem::E5m2 => (E5M2, bits),
            Elem::S8 | Elem::U8 => return Operand::Finite { significand: 0, exponent: 0 },
        };
        match format.decode(u64::from(bits)) {
            Value::Nan => Operand::Nan,
            Value::Infinite(negative) => Operand::Infinite(negative),
            Value::Finite(e) => {
                let fraction_bits = format.fraction_bits as i32;
                let magnitude = match FRACTION_BITS - fraction_bits {
                    up @ 0.. => (e.significand as i32) << up,
                    down => (e.significand >> -down) as i32,
                };
                Operand::Finite {
                    significand: if e.negative { -magnitude } else { magnitude },
                    exponent: e.exponent + fraction_bits,
                }
            }
        }
    }
}

/// A term before alignment: `magnitude · 2^(exponent - fraction_bits)`.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    magnitude: u64,
    exponent: i32,
    fraction_bits: i32,
}

/// The accumulator of a model as an exact value.
fn accumulator(output: Output, c: u32) -> Value {
    match output {
        Output::F32 | Output::F32Short => F32.decode(u64::from(c)),
        // Subnormals keep the smallest normal exponent, as operands do (measured on Hopper, assumed of the others).
        Output::F16 => F16.decode(u64::from(c as u16)),
    }
}

/// One step: `c + Σ a[i]·b[i]`, over as many pairs as there are. `c` and the result are f32 or f16 bits, as the model says.
#[must_use]
pub fn dot_accumulate(a: &[Operand], b: &[Operand], c: u32, model: &Model) -> u32 {
    let nan = match model.output {
        Output::F32 | Output::F32Short => NAN_F32,
        Output::F16 => u32::from(NAN_HALF),
    };
    let mut infinities = [false; 2];
    let mut terms = [Term { negative: false, magnitude: 0, exponent: 0, fraction_bits: 0 }; 33];
    let mut n = 0;
    match accumulator(model.output, c) {
        Value::Nan => return nan,
        Value::Infinite(negative) => infinities[usize::from(negative)] = true,
        Value::Finite(e) if e.significand == 0 => {}
        Value::Finite(e) => {
            // As wide as it is stored.
            let fraction_bits = if model.output == Output::F16 { 10 } else { 23 };
            let magnitude = e.significand as u64;
            terms[n] = Term { negative: e.negative, magnitude, exponent: e.exponent + fraction_bits, fraction_bits };
            n += 1;
        }
    }
    for (&a, &b) in a.iter().zip(b).take(32) {
        match product(a, b) {
            Product::Nan => return nan,
            Product::Infinite(negative) => infinities[usize::from(negative)] = true,
            Product::Zero => {}
            Product::Term(term) => {
                terms[n] = term;
                n += 1;
            }
        }
    }
    match infinities {
        [true, true] => nan,
        [true, false] => infinity(model.output, false),
        [false, true] => infinity(model.output, true),
        [false, false] => finite_sum(&terms[..n], model),
    }
}

enum Product {
    Nan,
    Infinite(bool),
    Zero,
    Term(Term),
}

fn product(a: Operand, b: Operand) -> Product {
    use Operand::{Finite, Infinite, Nan};
    match (a, b) {
        (Nan, _) | (_, Nan) => Product::Nan,
        (Infinite(s), Infinite(t)) => Product::Infinite(s != t),
        (Infinite(s), Finite { significand, .. }) | (Finite { significand, .. }, Infinite(s)) => {
            if significand == 0 {
                Product::Nan
            } else {
                Product::Infinite(s != (significand < 0))
            }
        }
        (Finite { significand: s, exponent: e }, Finite { significand: t, exponent: f }) => {
            let p = s * t;
            if p == 0 {
                return Product::Zero;
            }
            let magnitude = u64::from(p.unsigned_abs());
            Product::Term(Term { negative: p < 0, magnitude, exponent: e + f, fraction_bits: 2 * FRACTION_BITS })
        }
    }
}

/// The aligned sum of non-zero terms, rounded.
fn finite_sum(terms: &[Term], model: &Model) -> u32 {
    let Some(largest) = terms.iter().map(|t| t.exponent).max() else { return 0 };
    let largest = largest.max(model.min_exponent);
    let mut sum = 0i64;
    for term in terms {
        let aligned = match model.fraction_bits - term.fraction_bits - (largest - term.exponent) {
            up @ 0.. => (term.magnitude << up) as i64,
            down @ -63..0 => (term.magnitude >> -down) as i64,
            _ => 0,
        };
        sum += if term.negative { -aligned } else { aligned };
    }
    let value = Exact {
        negative: sum < 0,
        significand: u128::from(sum.unsigned_abs()),
        exponent: largest - model.fraction_bits,
        sticky: false,
    };
    match model.output {
        Output::F16 => without_minus_zero(F16.round(Round::Nearest, value) as u32, 0x7fff),
        Output::F32 | Output::F32Short => {
            // Cutting off never rounds up to an infinity, but a sum of 2^128 or more is one.
            let length = 64 - sum.unsigned_abs().leading_zeros() as i32;
            if sum != 0 && value.exponent + length > 128 {
                return infinity(model.output, value.negative);
            }
            let bits = F32.round(Round::Zero, value) as u32;
            let bits = if model.output == Output::F32Short { bits & !0x3ff } else { bits };
            without_minus_zero(bits, 0x7fff_ffff)
        }
    }
}

/// The bits of a result, whose magnitude is in `magnitude`; a zero is positive.
fn without_minus_zero(bits: u32, magnitude: u32) -> u32 {
    if bits & magnitude == 0 { 0 } else { bits }
}

fn infinity(output: Output, negative: bool) -> u32 {
    match output {
        Output::F32 | Output::F32Short => 0x7f80_0000 | u32::from(negative) << 31,
        Output::F16 => 0x7c00 | u32::from(negative) << 15,
    }
}

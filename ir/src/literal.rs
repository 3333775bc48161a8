//! Numbers of the text that become elements: fill values of copies (`fill -inf`), and entries of tables.

use crate::numerics::{IntFormat, float_format};
use crate::types::Elem;
use tilec_core::numbers::Number;

/// A number that is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Literal {
    /// A whole number.
    Int(i128),
    /// A fraction, an infinity or NaN, as the bits of an f64.
    Float(u64),
}

/// A number without a fraction, given as the bits of an f64, as a whole number is written.
pub fn whole_text(bits: u64) -> Option<String> {
    let x = f64::from_bits(bits);
    (x.fract() == 0.0).then(|| x.to_string())
}

impl Literal {
    /// Whether it is the zero that elements outside the bounds read as anyway.
    pub fn is_zero(self) -> bool {
        matches!(self, Literal::Int(0)) || self == Literal::Float(0)
    }

    /// It as a number of an element type, rounded to nearest; `None`: the type has no such number.
    pub fn value(self, elem: Elem) -> Option<f64> {
        let x = match self {
            Literal::Int(x) => x as f64,
            Literal::Float(bits) => f64::from_bits(bits),
        };
        if let Some(format) = int_format(elem) {
            let whole = match self {
                Literal::Int(x) => x,
                Literal::Float(_) => return None,
            };
            return (format.min()..=format.max()).contains(&whole).then_some(x);
        }
        let rounded = match elem {
            Elem::F64 => x,
            Elem::F32 => f64::from(x as f32),
            _ => float_format(elem)?.round_f64(x),
        };
        // Neither becomes a finite number infinite or NaN, nor an infinity something else.
        (x.is_nan() == rounded.is_nan() && x.is_infinite() == rounded.is_infinite()).then_some(rounded)
    }

    /// It as an element of that type, exact if that is an integer; `None`: the type has no such number.
    pub fn number(self, elem: Elem) -> Option<Number> {
        let x = self.value(elem)?;
        Some(match self {
            Literal::Int(whole) if elem.is_wide() => Number::Wide(whole),
            Literal::Int(_) | Literal::Float(_) => Number::Float(x),
        })
    }

    /// The bits of an element of that type; `None`: the type has no such number.
    pub fn bits(self, elem: Elem) -> Option<u64> {
        let x = self.value(elem)?;
        Some(match (self, elem) {
            (Literal::Int(x), elem) if int_format(elem).is_some() => x as u64 & u64::MAX >> (64 - elem.bits()),
            (_, Elem::F64) => x.to_bits(),
            (_, Elem::F32 | Elem::TF32) => u64::from((x as f32).to_bits()),
            (_, elem) => float_format(elem)?.encode(x),
        })
    }
}

fn int_format(elem: Elem) -> Option<IntFormat> {
    Some(match elem {
        Elem::I8 => IntFormat::S8,
        Elem::U8 => IntFormat::U8,
        Elem::I4 => IntFormat::S4,
        Elem::U4 => IntFormat::U4,
        Elem::I16 => IntFormat::S16,
        Elem::U16 => IntFormat::U16,
        Elem::I32 => IntFormat::S32,
        Elem::U32 => IntFormat::U32,
        Elem::I64 => IntFormat::S64,
        Elem::U64 => IntFormat::U64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_element_type() {
        let float = |x: f64| Literal::Float(x.to_bits());
        let minus_infinity = float(f64::NEG_INFINITY);
        assert_eq!(minus_infinity.bits(Elem::F16), Some(0xfc00));
        assert_eq!(minus_infinity.bits(Elem::BF16), Some(0xff80));
        assert_eq!(minus_infinity.bits(Elem::F32), Some(0xff80_0000));
        assert_eq!(minus_infinity.bits(Elem::E4M3), None);
        assert_eq!(minus_infinity.bits(Elem::I32), None);
        assert_eq!(Literal::Int(-1).bits(Elem::I8), Some(0xff));
        assert_eq!(Literal::Int(-1).bits(Elem::I64), Some(u64::MAX));
        assert_eq!((Literal::Int(-1).bits(Elem::U8), Literal::Int(128).bits(Elem::I8)), (None, None));
        assert_eq!(Literal::Int(1).bits(Elem::F16), Some(0x3c00));
        assert_eq!(Literal::Int(i128::from(u64::MAX)).bits(Elem::U64), Some(u64::MAX));
        for x in [i128::from(u64::MAX), (1 << 53) + 1, 5] {
            assert_eq!(Literal::Int(x).number(Elem::U64), Some(Number::Wide(x)));
        }
        assert_eq!(Literal::Int(5).number(Elem::F32), Some(Number::Float(5.0)));
        assert_eq!((float(1e6).bits(Elem::F16), float(0.1).value(Elem::F32)), (None, Some(f64::from(0.1f32))));
        assert!(float(0.0).is_zero() && !float(-0.0).is_zero() && Literal::Int(0).is_zero());
        assert!(float(f64::NAN).bits(Elem::F32).is_some_and(|b| f32::from_bits(b as u32).is_nan()));
    }
}

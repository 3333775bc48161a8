//! Numbers and arguments of launches.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tilec_core::elem::Elem;
use tilec_core::numerics::{IntFormat, cast};

/// A value for a parameter.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub enum Number {
    /// Whole.
    Int(i64),
    /// Whole, beyond 63 bits.
    Large(u64),
    /// Any.
    Float(f64),
}

/// A number in JSON, which has no infinities: `"inf"`, `"-inf"` and `"nan"` are strings.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Int(i64),
    Large(u64),
    Float(f64),
    Word(String),
}

impl From<Number> for Written {
    fn from(n: Number) -> Written {
        match n {
            Number::Int(i) => Written::Int(i),
            Number::Large(i) => Written::Large(i),
            Number::Float(x) if x.is_finite() => Written::Float(x),
            Number::Float(x) => Written::Word(if x.is_nan() { "nan".to_owned() } else { x.to_string() }),
        }
    }
}

impl TryFrom<Written> for Number {
    type Error = String;

    fn try_from(w: Written) -> Result<Number, String> {
        match w {
            Written::Int(i) => Ok(Number::Int(i)),
            Written::Large(i) => Ok(Number::Large(i)),
            Written::Float(x) => Ok(Number::Float(x)),
            Written::Word(word) => match word.as_str() {
                "inf" => Ok(Number::Float(f64::INFINITY)),
                "-inf" => Ok(Number::Float(f64::NEG_INFINITY)),
                "nan" => Ok(Number::Float(f64::NAN)),
                _ => Err(format!("`{word}` is no number; words are `inf`, `-inf` and `nan`")),
            },
        }
    }
}

impl Number {
    /// A whole number without a sign.
    pub fn unsigned(i: u64) -> Number {
        i64::try_from(i).map_or(Number::Large(i), Number::Int)
    }

    /// As a floating-point number; whole numbers beyond 2^53 are rounded.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Large(i) => i as f64,
            Number::Float(x) => x,
        }
    }

    /// Whether two are the same number, zeros of one sign and NaN of the same bits.
    pub fn same(self, other: Number) -> bool {
        match (self, other) {
            (Number::Int(x), Number::Int(y)) => x == y,
            (Number::Large(x), Number::Large(y)) => x == y,
            (Number::Int(_), Number::Large(_)) | (Number::Large(_), Number::Int(_)) => false,
            _ => self.to_f64().to_bits() == other.to_f64().to_bits(),
        }
    }

    /// As a whole number, if it is one.
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Number::Int(i) => Some(i),
            Number::Large(_) => None,
            // 2^63 is the first double past the range of i64, and -2^63 the last in it.
            Number::Float(x) if x.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&x) => Some(x as i64),
            Number::Float(_) => None,
        }
    }

    /// As a whole number, if it is one of 64 bits, with a sign or without.
    pub fn to_i128(self) -> Option<i128> {
        match self {
            Number::Large(i) => Some(i.into()),
            Number::Int(_) | Number::Float(_) => self.to_i64().map(i128::from),
        }
    }
}

impl From<i64> for Number {
    fn from(i: i64) -> Number {
        Number::Int(i)
    }
}

impl From<f64> for Number {
    fn from(x: f64) -> Number {
        Number::Float(x)
    }
}

impl std::str::FromStr for Number {
    type Err = ();

    fn from_str(text: &str) -> Result<Number, ()> {
        if let Ok(i) = text.parse() {
            return Ok(Number::Int(i));
        }
        if let Ok(i) = text.parse() {
            return Ok(Number::Large(i));
        }
        text.parse().map(Number::Float).map_err(|_| ())
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Int(i) => i.fmt(f),
            Number::Large(i) => i.fmt(f),
            Number::Float(x) => x.fmt(f),
        }
    }
}

/// Values by parameter name.
pub type Args = BTreeMap<String, Number>;

/// The integer format that holds an element type; 64 bits for floating-point types.
pub fn int_format(elem: Elem) -> IntFormat {
    cast::int_format(elem).unwrap_or(IntFormat::S64)
}

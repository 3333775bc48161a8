//! Elements as numbers of which each value of their type is one.
//!
//! An `f64` holds every value of every element type but i64 and u64, whose elements are integers here. So nothing that the
//! interpreter keeps is rounded by how it keeps it.

use crate::elem::Elem;
use crate::numerics::{cast, float_format};
use std::borrow::Cow;
use std::fmt;

/// The elements of a tensor or tile.
#[derive(Clone, PartialEq, Debug)]
pub enum Numbers {
    /// Of every type but i64 and u64.
    Floats(Vec<f64>),
    /// Of i64 and u64.
    Wide(Vec<i128>),
}

/// An element.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Number {
    /// Of a type other than i64 and u64.
    Float(f64),
    /// Of i64 or u64.
    Wide(i128),
}

impl Number {
    /// As a floating-point number, rounded to nearest beyond 2^53.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Float(x) => x,
            Number::Wide(x) => x as f64,
        }
    }

    /// As an integer; a fraction is cut off, and what is not in its range becomes the nearest that is.
    pub fn to_i128(self) -> i128 {
        match self {
            Number::Float(x) => x as i128,
            Number::Wide(x) => x,
        }
    }
}

impl Number {
    /// The encoding of a value of an element type.
    pub fn bits(self, elem: Elem) -> u64 {
        match float_format(elem) {
            Some(format) => format.encode(self.to_f64()),
            // Two's complement: the low bits are the encoding.
            None => self.to_i128() as u64 & u64::MAX >> (64 - elem.bits()),
        }
    }

    /// The value that an encoding is of.
    pub fn of_bits(elem: Elem, bits: u64) -> Number {
        match (float_format(elem), cast::int_format(elem)) {
            (Some(format), _) => Number::Float(format.decode(bits)),
            (None, Some(format)) if elem.is_wide() => Number::Wide(format.wrap(bits.into())),
            (None, Some(format)) => Number::Float(format.wrap(bits.into()) as f64),
            (None, None) => unreachable!("bug: {} is neither a float nor an integer", elem.name()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Float(x) => x.fmt(f),
            Number::Wide(x) => x.fmt(f),
        }
    }
}

impl From<f64> for Number {
    fn from(x: f64) -> Number {
        Number::Float(x)
    }
}

impl From<i64> for Number {
    fn from(x: i64) -> Number {
        Number::Wide(x.into())
    }
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers::Floats(Vec::new())
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(data: Vec<f64>) -> Numbers {
        Numbers::Floats(data)
    }
}

impl From<Vec<i64>> for Numbers {
    fn from(data: Vec<i64>) -> Numbers {
        Numbers::Wide(data.into_iter().map(i128::from).collect())
    }
}

impl From<Vec<i128>> for Numbers {
    fn from(data: Vec<i128>) -> Numbers {
        Numbers::Wide(data)
    }
}

impl Numbers {
    /// `n` zeros of an element type.
    pub fn zeros(elem: Elem, n: usize) -> Numbers {
        match elem {
            _ if elem.is_wide() => Numbers::Wide(vec![0; n]),
            _ => Numbers::Floats(vec![0.0; n]),
        }
    }

    /// An element of a type.
    pub fn one(elem: Elem, x: Number) -> Numbers {
        match x {
            Number::Float(x) => Numbers::Floats(vec![x]),
            Number::Wide(x) => Numbers::Wide(vec![x]),
        }
        .to_representation(elem)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Numbers::Floats(data) => data.len(),
            Numbers::Wide(data) => data.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i`, if there is one.
    pub fn get(&self, i: usize) -> Option<Number> {
        match self {
            Numbers::Floats(data) => data.get(i).copied().map(Number::Float),
            Numbers::Wide(data) => data.get(i).copied().map(Number::Wide),
        }
    }

    /// As floating-point numbers, those of 64 bits rounded to nearest: for bounds, and where there are none.
    pub fn floats(&self) -> Cow<'_, [f64]> {
        match self {
            Numbers::Floats(data) => Cow::Borrowed(data),
            Numbers::Wide(data) => Cow::Owned(data.iter().map(|&x| x as f64).collect()),
        }
    }

    /// As integers: see [`Number::to_i128`].
    pub fn integers(&self) -> impl Iterator<Item = i128> {
        (0..self.len()).filter_map(|i| self.get(i)).map(Number::to_i128)
    }

    /// Several after one another, of an element type.
    pub fn joined<'a>(elem: Elem, parts: impl Iterator<Item = &'a Numbers>) -> Numbers {
        match elem {
            _ if elem.is_wide() => Numbers::Wide(parts.flat_map(Numbers::integers).collect()),
            _ => Numbers::Floats(parts.flat_map(|part| part.floats().into_owned()).collect()),
        }
    }

    /// In the representation of an element type, of which they are values: integers stay what they are.
    #[must_use]
    pub fn to_representation(self, elem: Elem) -> Numbers {
        match (self, elem.is_wide()) {
            (Numbers::Floats(data), true) => Numbers::Wide(data.into_iter().map(|x| x as i128).collect()),
            (Numbers::Wide(data), false) => Numbers::Floats(data.into_iter().map(|x| x as f64).collect()),
            (numbers, _) => numbers,
        }
    }
}

//! Tile values: what a register tile, a shared-memory buffer or an intermediate result holds.
//!
//! Elements are in row-major order, whatever layout the tile has on the device. Beside the values a tile may carry
//! which elements were never written (`poison`), and how far the device may be from them ([`Bound`]). Both are absent in the
//! common case, so that they cost nothing.

use super::bounds::{Bound, spread_of};
use super::numbers::moved;
use super::window::unlike;
use super::{Number, Numbers};
use crate::numerics::{cast, float_format};
use crate::rounding::computed_in;
use crate::types::{Elem, ElemClass};
use std::borrow::Cow;

/// A tile and what is known about its elements.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// Element type.
    pub(super) elem: Elem,
    /// Extents; empty for a scalar.
    pub(super) shape: Vec<usize>,
    /// Elements, last dimension fastest.
    pub(super) data: Numbers,
    /// Elements that were never written; `None`: all were.
    pub(super) poison: Option<Vec<bool>>,
    /// How far the device may be from the elements; `None`: nothing.
    pub(super) bound: Option<Box<Bound>>,
    /// Every element is a value of `elem`. Registers may hold more precise ones.
    pub(super) exact: bool,
    /// Made of literals and indices only: takes the element type of what it meets.
    pub(super) weak: bool,
}

impl Tile {
    /// A tile of computed elements.
    pub(super) fn new(elem: Elem, shape: Vec<usize>, data: Numbers) -> Tile {
        Tile { elem, shape, data: data.to_representation(elem), poison: None, bound: None, exact: false, weak: false }
    }

    /// A scalar that was written as a literal or comes from index arithmetic.
    pub(super) fn weak(elem: Elem, x: impl Into<Number>) -> Tile {
        Tile { weak: true, ..Tile::new(elem, Vec::new(), Numbers::one(elem, x.into())) }
    }

    /// A truth value.
    pub(super) fn truth(x: bool) -> Tile {
        Tile { exact: true, ..Tile::new(Elem::Bool, Vec::new(), vec![f64::from(u8::from(x))].into()) }
    }

    /// A tile of `n` elements none of which was written.
    pub(super) fn unwritten(elem: Elem, shape: Vec<usize>, n: usize) -> Tile {
        Tile { poison: Some(vec![true; n]), exact: true, ..Tile::new(elem, shape, Numbers::zeros(elem, n)) }
    }

    /// The tile broadcast to `shape`, which its own shape fits.
    pub(super) fn broadcast(&self, shape: &[usize]) -> Tile {
        Tile {
            elem: self.elem,
            shape: shape.to_vec(),
            data: moved!(&self.data, data => spread(data, &self.shape, shape).into_owned()),
            poison: self.poison.as_ref().map(|p| spread(p, &self.shape, shape).into_owned()),
            bound: self.moved_bound(|e| spread(e, &self.shape, shape).into_owned()),
            exact: self.exact,
            weak: self.weak,
        }
    }

    /// The elements at these places, as a tile of extents `shape`.
    pub(super) fn selected(&self, places: &[usize], shape: Vec<usize>) -> Tile {
        fn of<T: Copy>(from: &[T], places: &[usize]) -> Vec<T> {
            places.iter().map(|&place| from[place]).collect()
        }
        Tile {
            elem: self.elem,
            shape,
            data: moved!(&self.data, data => of(data, places)),
            poison: self.poison.as_ref().map(|p| of(p, places)),
            bound: self.moved_bound(|e| of(e, places)),
            exact: self.exact,
            weak: self.weak,
        }
    }

    /// Takes over elements of `from`, which has the same type: those at the first place of each pair, to the second.
    pub(super) fn take_over(&mut self, from: &Tile, places: &[(usize, usize)]) {
        match (&from.data, &mut self.data) {
            (Numbers::Floats(from), Numbers::Floats(to)) => places.iter().for_each(|&(i, place)| to[place] = from[i]),
            (Numbers::Wide(from), Numbers::Wide(to)) => places.iter().for_each(|&(i, place)| to[place] = from[i]),
            _ => unlike(self.elem),
        }
        let len = self.data.len();
        if let Some(from) = from.errors() {
            let mut to = self.errors().unwrap_or_else(|| Bound::none(len));
            to.drowned |= from.drowned;
            places.iter().for_each(|&(i, place)| to.error[place] = from.error[i]);
            self.bound = to.nonzero();
        }
        if let Some(from) = &from.poison {
            let to = self.poison.get_or_insert_with(|| vec![false; len]);
            places.iter().for_each(|&(i, place)| to[place] = from[i]);
        }
        self.exact &= from.exact;
    }

    /// Converts the elements to `elem` as a store or a `cast` does.
    pub(super) fn convert(&mut self, elem: Elem) {
        if !(self.exact && self.elem == elem) {
            let from = self.elem;
            let data = std::mem::take(&mut self.data);
            match self.bound.take().map(|b| b.spread_error()) {
                // Whatever the device has is between the ends, and conversions keep the order.
                Some(mut bound) if !cast::keeps_bits(from, elem) => {
                    let to = |x: f64| convert_number(from, elem, Number::Float(x)).to_f64();
                    for (x, e) in data.floats().iter().zip(&mut bound.error) {
                        *e = spread_of(*x, *e, to).1;
                    }
                    self.data = convert_all(from, elem, data);
                    self.bound = bound.nonzero();
                }
                bound => {
                    self.data = convert_all(from, elem, data);
                    self.bound = bound.and_then(Bound::nonzero);
                }
            }
        }
        (self.elem, self.exact, self.weak) = (elem, true, false);
    }

    /// Says that the device rounded its own numbers to this type: half a unit of the last place on either side.
    pub(super) fn rounded_apart(&mut self) {
        let Some(format) = float_format(self.elem) else { return };
        let least = 2f64.powi(format.q_min());
        let unit = |x: &f64| (x.abs() * 2f64.powi(-(format.mantissa_bits.cast_signed()))).max(least);
        let units: Vec<f64> = self.data.floats().iter().map(unit).collect();
        let mut bound = self.bound.take().map_or_else(|| Bound::none(self.data.len()), |b| b.spread_error());
        bound.error.iter_mut().zip(units).for_each(|(error, unit)| *error += unit);
        self.bound = bound.nonzero();
    }

    /// The same bits as elements of another type of equal size. The bits of a NaN are unspecified, so any result is
    /// possible.
    pub(super) fn read_as(&mut self, elem: Elem) {
        let from = self.elem;
        let numbers: Vec<Number> = (0..self.data.len()).filter_map(|i| self.data.get(i)).collect();
        let open = |x: &Number, error: f64| error != 0.0 || x.to_f64().is_nan();
        if let Some(bound) = self.bound.take().map(|b| b.spread_error()) {
            let error = numbers.iter().zip(&bound.error).map(|(x, &e)| if open(x, e) { f64::INFINITY } else { 0.0 });
            self.bound = Bound::of(error.collect(), bound.drowned);
        } else if numbers.iter().any(|x| open(x, 0.0)) {
            let error = numbers.iter().map(|x| if open(x, 0.0) { f64::INFINITY } else { 0.0 });
            self.bound = Bound::of(error.collect(), false);
        }
        let read = numbers.into_iter().map(|x| Number::of_bits(elem, x.bits(from)));
        self.data = match elem.is_wide() {
            true => Numbers::Wide(read.map(Number::to_i128).collect()),
            false => Numbers::Floats(read.map(Number::to_f64).collect()),
        };
        (self.elem, self.exact, self.weak) = (elem, true, false);
    }

    /// Makes literals and indices elements of type `elem`, as exact as these are computed.
    pub(super) fn adopt(&mut self, elem: Elem) {
        let numbers = (0..self.data.len()).filter_map(|i| self.data.get(i)).map(|x| literal(elem, x));
        self.data = match elem {
            _ if elem.is_wide() => Numbers::Wide(numbers.map(Number::to_i128).collect()),
            _ => Numbers::Floats(numbers.map(Number::to_f64).collect()),
        };
        self.elem = elem;
    }

    /// The elements as integers, of an integer type.
    pub(super) fn integers(&self) -> impl Iterator<Item = i128> {
        self.data.integers()
    }

    /// The bound of elements in another order, or repeated.
    pub(super) fn moved_bound(&self, to: impl Fn(&[f64]) -> Vec<f64>) -> Option<Box<Bound>> {
        let bound = self.bound.as_ref()?.as_ref().clone().spread_error();
        Bound::of(to(&bound.error), bound.drowned)
    }

    /// How far the device may be from each element; `None`: from none.
    pub(super) fn errors(&self) -> Option<Bound> {
        self.bound.as_ref().map(|b| b.as_ref().clone().spread_error())
    }

    /// Drops the poison plane if nothing in it is set.
    pub(super) fn drop_empty_poison(&mut self) {
        if self.poison.as_ref().is_some_and(|p| !p.contains(&true)) {
            self.poison = None;
        }
    }
}

/// The shape that tiles of shapes `a` and `b` broadcast to: a dimension of extent 1 adapts, and so does a scalar.
pub(super) fn join_shapes(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    if a.is_empty() || b.is_empty() {
        return Some(if a.is_empty() { b.to_vec() } else { a.to_vec() });
    }
    if a.len() != b.len() {
        return None;
    }
    let join = |(&x, &y): (&usize, &usize)| match (x, y) {
        _ if x == y => Some(x),
        (1, n) | (n, 1) => Some(n),
        _ => None,
    };
    a.iter().zip(b).map(join).collect()
}

/// The elements of a tile of shape `from`, repeated to fill `to`; the caller has checked that the shapes fit.
pub(super) fn spread<'a, T: Copy>(data: &'a [T], from: &[usize], to: &[usize]) -> Cow<'a, [T]> {
    if from == to {
        return Cow::Borrowed(data);
    }
    let n = to.iter().product();
    if let [x] = data {
        return Cow::Owned(vec![*x; n]);
    }
    // From the innermost dimension out: repeat runs of the block below until every extent is that of `to`.
    let mut out = data.to_vec();
    let mut inner = 1;
    for (&have, &want) in from.iter().zip(to).rev() {
        if have != want {
            out = out.chunks(inner).flat_map(|run| std::iter::repeat_n(run, want).flatten().copied()).collect();
        }
        inner *= want;
    }
    Cow::Owned(out)
}

/// `x`, of type `from`, as a value of `elem` ([`cast`]).
fn convert_number(from: Elem, elem: Elem, x: Number) -> Number {
    let int = |x: i128| match elem {
        _ if elem.is_wide() => Number::Wide(x),
        _ => Number::Float(x as f64),
    };
    match (x, cast::int_format(elem)) {
        (Number::Float(x), _) if elem == Elem::Bool => Number::Float(f64::from(u8::from(x != 0.0))),
        (Number::Float(x), Some(format)) if !cast::is_int(from) => int(cast::float_to_int(from, format, x)),
        (x, Some(_)) => int(cast::int_to_int(from, elem, x.to_i128())),
        (Number::Wide(x), None) => Number::Float(cast::int_to_float(elem, x)),
        (Number::Float(x), None) => Number::Float(cast::to_float(elem, x)),
    }
}

fn convert_all(from: Elem, elem: Elem, data: Numbers) -> Numbers {
    match data {
        Numbers::Floats(mut data) if elem == Elem::F32 => {
            data.iter_mut().for_each(|x| *x = f64::from(*x as f32));
            Numbers::Floats(data)
        }
        Numbers::Floats(data) if elem == Elem::F64 => Numbers::Floats(data),
        Numbers::Floats(mut data) if !elem.is_wide() => {
            data.iter_mut().for_each(|x| *x = convert_number(from, elem, Number::Float(*x)).to_f64());
            Numbers::Floats(data)
        }
        Numbers::Floats(data) => {
            let wide = |x| match convert_number(from, elem, Number::Float(x)) {
                Number::Wide(x) => x,
                Number::Float(x) => x as i128,
            };
            Numbers::Wide(data.into_iter().map(wide).collect())
        }
        Numbers::Wide(data) if elem == from => Numbers::Wide(data),
        Numbers::Wide(data) if elem.is_wide() => {
            Numbers::Wide(data.into_iter().map(|x| convert_number(from, elem, Number::Wide(x)).to_i128()).collect())
        }
        Numbers::Wide(data) => {
            Numbers::Floats(data.into_iter().map(|x| convert_number(from, elem, Number::Wide(x)).to_f64()).collect())
        }
    }
}

/// `x` as the result of an operation on elements of type `elem`: floats of up to 32 bits are computed in binary32.
pub(super) fn computed(elem: Elem, x: f64) -> f64 {
    if elem.is_float() && elem != Elem::F64 { f64::from(x as f32) } else { x }
}

/// A literal or an index next to elements of type `elem`: as exact as their arithmetic.
fn literal(elem: Elem, x: Number) -> Number {
    // A register holds the low bits of a whole number next to integers.
    if let (Number::Wide(x), true) = (x, cast::is_int(elem)) {
        let x = cast::register_format(elem).wrap(x);
        return if elem.is_wide() { Number::Wide(x) } else { Number::Float(x as f64) };
    }
    convert_number(if matches!(x, Number::Wide(_)) { Elem::I64 } else { Elem::F64 }, computed_in(elem), x)
}

/// Integers in the register of type `elem`, which has 64 bits or, for all others, 32.
pub(super) fn wrapped(elem: Elem, data: impl Iterator<Item = i128>) -> Numbers {
    let format = cast::register_format(elem);
    match elem {
        _ if elem.is_wide() => Numbers::Wide(data.map(|x| format.wrap(x)).collect()),
        _ => Numbers::Floats(data.map(|x| format.wrap(x) as f64).collect()),
    }
}

/// Whether registers of this type hold only values of the type after a `copy`: everything below binary32.
pub(super) fn rounds_in_registers(elem: Elem) -> bool {
    elem == Elem::TF32 || elem.bits() < 32 || elem.class() != ElemClass::Float
}

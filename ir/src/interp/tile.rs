//! Tile values: what a register tile, a shared-memory buffer or an intermediate result holds.
//!
//! Elements are `f64` in row-major order, whatever layout the tile has on the device. Beside the values a tile may carry
//! which elements were never written (`poison`), and how far the device may be from them ([`Bound`]). Both are absent in the
//! common case, so that they cost nothing.

use super::bounds::{Bound, spread_of};
use crate::numerics::{FloatFormat, IntFormat, Overflow};
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
    pub(super) data: Vec<f64>,
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
    pub(super) fn new(elem: Elem, shape: Vec<usize>, data: Vec<f64>) -> Tile {
        Tile { elem, shape, data, poison: None, bound: None, exact: false, weak: false }
    }

    /// A scalar that was written as a literal or comes from index arithmetic.
    pub(super) fn weak(elem: Elem, x: f64) -> Tile {
        Tile { weak: true, ..Tile::new(elem, Vec::new(), vec![x]) }
    }

    /// A truth value.
    pub(super) fn truth(x: bool) -> Tile {
        Tile { exact: true, ..Tile::new(Elem::Bool, Vec::new(), vec![f64::from(u8::from(x))]) }
    }

    /// A tile of `n` elements none of which was written.
    pub(super) fn unwritten(elem: Elem, shape: Vec<usize>, n: usize) -> Tile {
        Tile { poison: Some(vec![true; n]), exact: true, ..Tile::new(elem, shape, vec![0.0; n]) }
    }

    /// The tile broadcast to `shape`, which its own shape fits.
    pub(super) fn broadcast(&self, shape: &[usize]) -> Tile {
        Tile {
            elem: self.elem,
            shape: shape.to_vec(),
            data: spread(&self.data, &self.shape, shape).into_owned(),
            poison: self.poison.as_ref().map(|p| spread(p, &self.shape, shape).into_owned()),
            bound: self.moved_bound(|e| spread(e, &self.shape, shape).into_owned()),
            exact: self.exact,
            weak: self.weak,
        }
    }

    /// Converts the elements to `elem` as a store or a `cast` does.
    pub(super) fn convert(&mut self, elem: Elem) {
        if !(self.exact && self.elem == elem) {
            let from = self.elem;
            match self.bound.take().map(|b| b.settled()) {
                // Whatever the device has lies between the ends, and conversions keep the order.
                Some(mut bound) if !reinterprets(from, elem) => {
                    for (x, e) in self.data.iter_mut().zip(&mut bound.error) {
                        (*x, *e) = spread_of(*x, *e, |x| convert_from(from, elem, x));
                    }
                    self.bound = bound.kept();
                }
                bound => {
                    convert_all(from, elem, &mut self.data);
                    self.bound = bound.and_then(Bound::kept);
                }
            }
        }
        (self.elem, self.exact, self.weak) = (elem, true, false);
    }

    /// The bound of elements in another order, or repeated.
    pub(super) fn moved_bound(&self, to: impl Fn(&[f64]) -> Vec<f64>) -> Option<Box<Bound>> {
        let bound = self.bound.as_ref()?.as_ref().clone().settled();
        Bound::of(to(&bound.error), bound.drowned)
    }

    /// How far the device may be from each element; `None`: from none.
    pub(super) fn errors(&self) -> Option<Bound> {
        self.bound.as_ref().map(|b| b.as_ref().clone().settled())
    }

    /// Drops the poison plane if nothing in it is set.
    pub(super) fn settle(&mut self) {
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

/// `x` as a value of `elem`: rounded to nearest even; 8-bit floats and integers saturate, as `cvt` does.
pub(super) fn convert(elem: Elem, x: f64) -> f64 {
    let int = |format: IntFormat| format.from_f64(x) as f64;
    match elem {
        Elem::F16 => FloatFormat::F16.round_f64(x),
        Elem::BF16 => FloatFormat::BF16.round_f64(x),
        Elem::TF32 => FloatFormat::TF32.round_f64(x),
        Elem::F32 => f64::from(x as f32),
        Elem::F64 => x,
        Elem::E4M3 => FloatFormat::E4M3.round_with(x, Overflow::Saturate),
        Elem::E5M2 => FloatFormat::E5M2.round_with(x, Overflow::Saturate),
        Elem::I8 => int(IntFormat::S8),
        Elem::U8 => int(IntFormat::U8),
        Elem::I32 => int(IntFormat::S32),
        Elem::U32 => int(IntFormat::U32),
        Elem::I64 => int(IntFormat::S64),
        Elem::Bool => f64::from(u8::from(x != 0.0)),
    }
}

/// Whether a conversion keeps the bits of a 32-bit integer and not its value.
fn reinterprets(from: Elem, to: Elem) -> bool {
    matches!((from, to), (Elem::I32, Elem::U32) | (Elem::U32, Elem::I32))
}

/// `x`, of type `from`, as a value of `elem`.
fn convert_from(from: Elem, elem: Elem, x: f64) -> f64 {
    // Where either type has 64 bits, `cvt` gives the sign bit alone; 8 bits come by way of 32.
    if x.is_nan() && (from == Elem::F64 || elem == Elem::I64) && elem.class() == ElemClass::Int {
        return match elem {
            Elem::U32 => 2f64.powi(31),
            Elem::I64 => -2f64.powi(63),
            _ => convert(elem, -2f64.powi(31)),
        };
    }
    if reinterprets(from, elem) { wrap(elem, x as i128) } else { convert(elem, x) }
}

fn convert_all(from: Elem, elem: Elem, data: &mut [f64]) {
    match elem {
        Elem::F32 => data.iter_mut().for_each(|x| *x = f64::from(*x as f32)),
        Elem::F64 => {}
        _ => data.iter_mut().for_each(|x| *x = convert_from(from, elem, *x)),
    }
}

/// `x` as the result of an operation on elements of type `elem`: floats of up to 32 bits are computed in binary32.
pub(super) fn computed(elem: Elem, x: f64) -> f64 {
    if elem.is_float() && elem != Elem::F64 { f64::from(x as f32) } else { x }
}

/// An integer result in a register of type `elem`, which has 64 bits or, for all others, 32.
pub(super) fn wrap(elem: Elem, x: i128) -> f64 {
    let format = match elem {
        Elem::I64 => IntFormat::S64,
        Elem::U32 => IntFormat::U32,
        _ => IntFormat::S32,
    };
    format.wrap(x) as f64
}

/// Whether registers of this type hold only values of the type after a `copy`: everything below binary32.
pub(super) fn rounds_in_registers(elem: Elem) -> bool {
    elem == Elem::TF32 || elem.bits() < 32 || elem.class() != ElemClass::Float
}

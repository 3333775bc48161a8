//! Reductions of tiles along a dimension, and error bounds of their results.

use super::Numbers;
use super::bounds::Bound;
use super::numbers::moved;
use super::tile::{Tile, computed, wrapped};
use crate::codes;
use crate::diag::Span;
use crate::interp::machine::{Fail, Machine, fail};
use crate::numerics::{larger, smaller};
use crate::ops::ReduceOp;
use crate::types::{Elem, ElemClass};

/// The rows that are reduced: `n` elements each, of a tile with `inner` elements in the dimensions after.
#[derive(Copy, Clone)]
pub(super) struct Rows {
    pub(super) n: usize,
    pub(super) inner: usize,
}

impl Machine<'_> {
    pub(super) fn reduce(&self, op: ReduceOp, (axis, parts): (usize, u32), t: &Tile, span: Span) -> Result<Tile, Fail> {
        let Some(&n) = t.shape.get(axis) else {
            return Err(fail(codes::ILL_FORMED, span, format!("there is no axis {axis} to reduce")));
        };
        let inner: usize = t.shape[axis + 1..].iter().product();
        let mut shape = t.shape.clone();
        shape[axis] = 1 << parts.count_ones();
        let order = if parts == 0 { None } else { Some(self.in_parts(n, parts, span)?) };
        let in_parts = order.as_ref().map(|order| reordered(t, order, inner));
        let (t, rows) = (in_parts.as_ref().unwrap_or(t), Rows { n: n / shape[axis], inner });
        let mut data = reduced(op, t, rows);
        if let (Some(order), true) = (&order, op.is_place()) {
            // The index within the part gives the index of the element along the dimension.
            let of_part = |(i, x): (usize, &f64)| order[i / inner % shape[axis] * rows.n + *x as usize] as f64;
            data = Numbers::Floats(data.floats().iter().enumerate().map(of_part).collect());
        }
        let elem = if op.is_place() { Elem::I32 } else { t.elem };
        let mut out = Tile::new(elem, shape, data);
        out.exact = op.is_place() || t.exact && (op.is_extreme() || op.is_of_truths());
        out.poison = t.poison.as_ref().map(|p| fold(p, rows, false, |x, y| x || y));
        if self.opts.accuracy.is_some() {
            out.bound = bound(op, t, rows);
        }
        Ok(out)
    }

    /// The indices of a dimension of `n` elements, part after part.
    fn in_parts(&self, n: usize, parts: u32, span: Span) -> Result<Vec<usize>, Fail> {
        if !n.is_power_of_two() || parts as usize >= n {
            return Err(fail(codes::ILL_FORMED, span, format!("{n} elements have no parts told by bits {parts:#b}")));
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| i & parts as usize);
        Ok(order)
    }
}

/// A tile with its elements along a dimension in another order.
fn reordered(t: &Tile, order: &[usize], inner: usize) -> Tile {
    Tile {
        poison: t.poison.as_ref().map(|p| ordered(p, order, inner)),
        bound: t.moved_bound(|e| ordered(e, order, inner)),
        exact: t.exact,
        ..Tile::new(t.elem, t.shape.clone(), moved!(&t.data, data => ordered(data, order, inner)))
    }
}

/// The reduction of each row, rounded to what it is computed in.
fn reduced(op: ReduceOp, t: &Tile, rows: Rows) -> Numbers {
    if t.elem.class() == ElemClass::Int {
        let data: Vec<i128> = t.integers().collect();
        let (start, combine): (i128, fn(i128, i128) -> i128) = match op {
            ReduceOp::Sum => (0, |x, y| x + y),
            ReduceOp::Product => (1, i128::wrapping_mul),
            ReduceOp::Maximum => (i128::MIN, Ord::max),
            ReduceOp::Minimum => (i128::MAX, Ord::min),
            ReduceOp::ArgMax => return places(&data, rows, |x, best| x > best),
            ReduceOp::ArgMin => return places(&data, rows, |x, best| x < best),
            ReduceOp::Any | ReduceOp::All => unreachable!("bug: a reduction of conditions has integers"),
        };
        return wrapped(t.elem, fold(&data, rows, start, combine).into_iter());
    }
    let (start, combine): (f64, fn(f64, f64) -> f64) = match op {
        ReduceOp::Sum => (0.0, |x, y| x + y),
        ReduceOp::Product => (1.0, |x, y| x * y),
        ReduceOp::Maximum => (f64::NAN, larger),
        ReduceOp::Minimum => (f64::NAN, smaller),
        ReduceOp::Any => (0.0, f64::max),
        ReduceOp::All => (1.0, f64::min),
        ReduceOp::ArgMax => return places(&t.data.floats(), rows, |x, best| x > best || is_first_nan(x, best)),
        ReduceOp::ArgMin => return places(&t.data.floats(), rows, |x, best| x < best || is_first_nan(x, best)),
    };
    let mut data = fold(&t.data.floats(), rows, start, combine);
    data.iter_mut().for_each(|x| *x = computed(t.elem, *x));
    data.into()
}

/// A NaN is in front of all numbers.
fn is_first_nan(x: f64, best: f64) -> bool {
    x.is_nan() && !best.is_nan()
}

/// The index of each row's best element; among equal ones, the first.
fn places<T: Copy>(data: &[T], rows: Rows, better: impl Fn(T, T) -> bool) -> Numbers {
    let place = |row: Vec<T>| {
        let best = (1..row.len()).fold(0, |best, i| if better(row[i], row[best]) { i } else { best });
        best as f64
    };
    Numbers::Floats(each_row(data, rows).map(place).collect())
}

/// Error bound of the reduction of each row.
fn bound(op: ReduceOp, t: &Tile, rows: Rows) -> Option<Box<Bound>> {
    let given = t.errors();
    let rounds = t.elem.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Product);
    if given.is_none() && !rounds {
        return None;
    }
    let drowned = given.as_ref().is_some_and(|b| b.drowned);
    let is_exact = given.is_none();
    let data = t.data.floats();
    let errors = given.map_or_else(|| vec![0.0; data.len()], |b| b.error);
    let both = || each_row(&data, rows).zip(each_row(&errors, rows));
    let error = match op {
        ReduceOp::Sum => {
            let mut error = fold(&errors, rows, 0.0, |x, y| x + y);
            if rounds {
                let whole = is_exact && data.iter().all(|x| x.fract() == 0.0);
                let sizes: Vec<f64> = data.iter().map(|x| x.abs()).collect();
                let sizes = fold(&sizes, rows, 0.0, |x, y| x + y);
                // For any order in which the terms are added. Sums of whole numbers are exact while they fit.
                for (e, s) in error.iter_mut().zip(sizes) {
                    if !whole || s >= 1.0 / unit(t.elem) {
                        *e += 2.0 * rows.n as f64 * unit(t.elem) * s;
                    }
                }
            }
            error
        }
        ReduceOp::Maximum | ReduceOp::Minimum => fold(&errors, rows, 0.0, f64::max),
        ReduceOp::Product => both().map(|(x, e)| of_product(t.elem, &x, &e)).collect(),
        ReduceOp::Any | ReduceOp::All => both().map(|(x, e)| of_truths(op, &x, &e)).collect(),
        ReduceOp::ArgMax => both().map(|(x, e)| of_place(&x, &e)).collect(),
        ReduceOp::ArgMin => both().map(|(x, e)| of_place(&x.iter().map(|x| -x).collect::<Vec<_>>(), &e)).collect(),
    };
    Bound::of(error, drowned)
}

/// Half a unit in the last place, for numbers around 1, of the type in which such elements are computed.
pub(super) fn unit(elem: Elem) -> f64 {
    if elem == Elem::F64 { 2f64.powi(-53) } else { 2f64.powi(-24) }
}

/// Error bound of a product of numbers with errors, in any order of multiplication.
pub(super) fn of_product(elem: Elem, row: &[f64], errors: &[f64]) -> f64 {
    if row.iter().any(|x| x.is_nan()) {
        return 0.0;
    }
    let sizes = || row.iter().zip(errors).map(|(x, e)| (x.abs(), *e));
    let (size, most): (f64, f64) = sizes().fold((1.0, 1.0), |(a, b), (x, e)| (a * x, b * (x + e)));
    let moved = if errors.iter().all(|&e| e == 0.0) { 0.0 } else { most - size };
    if !elem.is_float() {
        return moved;
    }
    let (largest, smallest, least) = match elem {
        Elem::F64 => (f64::MAX, f64::MIN_POSITIVE, 5e-324),
        _ => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), 2f64.powi(-149)),
    };
    let n = row.len() as f64;
    let relative = 4.0 * n * unit(elem);
    // What the large ones, and the small ones, come to by themselves.
    let finite = || sizes().filter(|(x, _)| x.is_finite());
    let high = finite().fold(1.0, |all: f64, (x, e)| all * (x + e).max(1.0)) * (1.0 + relative);
    let low = finite().filter(|&(x, _)| x != 0.0).fold(1.0, |all: f64, (x, e)| all * (x - e).clamp(0.0, 1.0));
    let (overflows, underflows) = (high >= largest, low < smallest * (1.0 + relative));
    let has = |what: f64| row.iter().any(|x| x.abs() == what);
    if has(f64::INFINITY) || has(0.0) {
        let open = has(f64::INFINITY) && underflows || has(0.0) && overflows;
        return if open { f64::INFINITY } else { moved };
    }
    if overflows {
        let certain = low == 1.0 && size > largest * (1.0 + relative);
        return if certain { 0.0 } else { f64::INFINITY };
    }
    let whole = row.iter().all(|x| x.fract() == 0.0) && most < 1.0 / unit(elem) && moved == 0.0;
    if whole {
        return 0.0;
    }
    moved + relative * most + if underflows { n * least * high } else { 0.0 }
}

/// Error bound of a reduction of conditions, some of which may be either value.
fn of_truths(op: ReduceOp, row: &[f64], errors: &[f64]) -> f64 {
    let ends = |low: bool| row.iter().zip(errors).map(move |(&x, &e)| if e == 0.0 { x != 0.0 } else { !low });
    let whole = |mut all: Box<dyn Iterator<Item = bool> + '_>| match op {
        ReduceOp::Any => all.any(|x| x),
        _ => all.all(|x| x),
    };
    f64::from(u8::from(whole(Box::new(ends(true))) != whole(Box::new(ends(false)))))
}

/// Error bound of the index of the maximum: the distance to the indices of all elements that may be the maximum.
fn of_place(row: &[f64], errors: &[f64]) -> f64 {
    let best = (1..row.len()).fold(0, |best, i| {
        let better = row[i] > row[best] || is_first_nan(row[i], row[best]);
        if better { i } else { best }
    });
    let least = row.iter().zip(errors).map(|(x, e)| x - e).fold(f64::NAN, f64::max);
    let may_be = |i: &usize| match row[best].is_nan() {
        true => *i == best || errors[*i] == f64::INFINITY,
        false => *i == best || (errors[*i] != 0.0 || errors[best] != 0.0) && row[*i] + errors[*i] >= least,
    };
    (0..row.len()).filter(may_be).map(|i| i.abs_diff(best) as f64).fold(0.0, f64::max)
}

/// The elements along an axis in another order; `inner` is the number of elements of the dimensions after it.
fn ordered<T: Copy>(data: &[T], order: &[usize], inner: usize) -> Vec<T> {
    let rows = data.chunks(order.len() * inner);
    rows.flat_map(|row| order.iter().flat_map(move |&i| row[i * inner..(i + 1) * inner].iter().copied())).collect()
}

/// The elements of each row, in the order of the results.
pub(super) fn each_row<T: Copy>(data: &[T], Rows { n, inner }: Rows) -> impl Iterator<Item = Vec<T>> {
    let rows = data.chunks(n * inner);
    rows.flat_map(move |all| (0..inner).map(move |i| (0..n).map(|j| all[j * inner + i]).collect()))
}

/// Combines the elements of each row.
fn fold<T: Copy>(data: &[T], Rows { n, inner }: Rows, start: T, combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut out = Vec::with_capacity(data.len() / n);
    for lanes in data.chunks(n * inner) {
        let at = out.len();
        out.resize(at + inner, start);
        for row in lanes.chunks(inner) {
            out[at..].iter_mut().zip(row).for_each(|(x, &y)| *x = combine(*x, y));
        }
    }
    out
}

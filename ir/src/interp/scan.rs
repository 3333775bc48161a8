//! Scans: at each place along a dimension what a reduction makes of the elements up to there.
//!
//! The order is the same in every layout, so the result has one value: elements are put together in blocks of 2, 4, 8, .. that begin at multiples of their size.
//! The sum of a block is that of its lower half and that of its upper half, added; what the upper half has at a place is added to the sum of the lower one. So
//! place 6 (of 0 to 7) has `s(0..4) + (s(4..6) + x6)`.

use super::Numbers;
use super::bounds::Bound;
use super::reduce::{Rows, each_row, of_product, unit};
use super::tile::{Tile, computed, wrapped};
use crate::codes;
use crate::diag::Span;
use crate::interp::machine::{Fail, Machine, fail};
use crate::numerics::{cast, larger, smaller};
use crate::ops::ReduceOp;
use crate::types::ElemClass;

impl Machine<'_> {
    pub(super) fn scan(
        &self,
        op: ReduceOp,
        (axis, exclusive): (usize, bool),
        t: &Tile,
        span: Span,
    ) -> Result<Tile, Fail> {
        let Some(&n) = t.shape.get(axis) else {
            return Err(fail(codes::ILL_FORMED, span, format!("there is no axis {axis} to scan")));
        };
        let rows = Rows { n, inner: t.shape[axis + 1..].iter().product() };
        let mut out = Tile::new(t.elem, t.shape.clone(), scanned(op, exclusive, t, rows));
        out.exact = t.exact && op.is_extreme() && !exclusive;
        let any = |row: Vec<bool>| scan(&row, exclusive, false, |x, y| x || y);
        out.poison = t.poison.as_ref().map(|p| of_rows(each_row(p, rows).map(any), rows));
        if self.opts.accuracy.is_some() {
            out.bound = bound(op, exclusive, t, rows);
        }
        Ok(out)
    }
}

fn scanned(op: ReduceOp, exclusive: bool, t: &Tile, rows: Rows) -> Numbers {
    if t.elem.class() == ElemClass::Int {
        let format = cast::int_format(t.elem).unwrap_or_else(|| unreachable!("bug: integers have a format"));
        let data: Vec<i128> = t.integers().collect();
        let (first, combine): (i128, fn(i128, i128) -> i128) = match op {
            ReduceOp::Sum => (0, |x, y| x + y),
            ReduceOp::Product => (1, i128::wrapping_mul),
            ReduceOp::Maximum => (format.min(), Ord::max),
            ReduceOp::Minimum => (format.max(), Ord::min),
            _ => unreachable!("bug: `{}` has no scan", op.token()),
        };
        let found = each_row(&data, rows).map(|row| scan(&row, exclusive, first, combine));
        return wrapped(t.elem, of_rows(found, rows).into_iter());
    }
    let (first, combine): (f64, fn(f64, f64) -> f64) = match op {
        ReduceOp::Sum => (0.0, |x, y| x + y),
        ReduceOp::Product => (1.0, |x, y| x * y),
        ReduceOp::Maximum => (f64::NEG_INFINITY, larger),
        ReduceOp::Minimum => (f64::INFINITY, smaller),
        _ => unreachable!("bug: `{}` has no scan", op.token()),
    };
    let data = t.data.floats();
    let rounded = |x, y| computed(t.elem, combine(x, y));
    of_rows(each_row(&data, rows).map(|row| scan(&row, exclusive, first, rounded)), rows).into()
}

/// A row scanned; `first`: what is in front of its first element.
fn scan<T: Copy>(row: &[T], exclusive: bool, first: T, combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut found: Vec<Option<T>> = row.iter().map(|&x| (!exclusive).then_some(x)).collect();
    // Of the block that begins there.
    let mut whole = row.to_vec();
    let mut half = 1;
    while half < row.len() {
        for start in (0..row.len()).step_by(2 * half).filter(|start| start + half < row.len()) {
            let lower = whole[start];
            for x in found.iter_mut().skip(start + half).take(half) {
                *x = Some(x.map_or(lower, |x| combine(lower, x)));
            }
            whole[start] = combine(lower, whole[start + half]);
        }
        half *= 2;
    }
    found.into_iter().map(|x| x.unwrap_or(first)).collect()
}

/// Rows, in the order of [`each_row`], as the elements of a tile.
fn of_rows<T: Copy>(found: impl Iterator<Item = Vec<T>>, Rows { n, inner }: Rows) -> Vec<T> {
    let found: Vec<Vec<T>> = found.collect();
    let blocks = found.chunks(inner);
    blocks.flat_map(|block| (0..n).flat_map(move |i| block.iter().map(move |row| row[i]))).collect()
}

/// How far a device may be: by nothing where it is not from the operand, for the order is the same.
fn bound(op: ReduceOp, exclusive: bool, t: &Tile, rows: Rows) -> Option<Box<Bound>> {
    let given = t.errors()?;
    let data = t.data.floats();
    let both = each_row(&data, rows).zip(each_row(&given.error, rows));
    let found = both.map(|(x, e)| {
        let up_to = |i: usize| match op {
            ReduceOp::Product => of_product(t.elem, &x[..=i], &e[..=i]),
            ReduceOp::Sum => {
                let size: f64 = x[..=i].iter().map(|x| x.abs()).sum();
                let rounding = if t.elem.is_float() { 2.0 * (i + 1) as f64 * unit(t.elem) * size } else { 0.0 };
                e[..=i].iter().sum::<f64>() + rounding
            }
            _ => e[..=i].iter().copied().fold(0.0, f64::max),
        };
        let of = |i: usize| match (exclusive, i) {
            (true, 0) => 0.0,
            (true, _) => up_to(i - 1),
            (false, _) => up_to(i),
        };
        (0..x.len()).map(of).collect()
    });
    Bound::of(of_rows(found, rows), given.drowned)
}

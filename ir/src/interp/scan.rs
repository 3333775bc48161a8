//! Scans: for each index along a dimension, the reduction of the elements up to it.
//!
//! The order is the same in every layout, so the result is unique. Elements are combined in blocks of 2, 4, 8, .. that
//! begin at multiples of their size. The sum of a block is that of its lower half plus that of its upper half. The scan
//! within the upper half is added to the sum of the lower one. Index 6 (of 0 to 7) has `s(0..4) + (s(4..6) + x6)`. If
//! totals of segments are given, these are the sums of the blocks.

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
        totals: Option<&Tile>,
        span: Span,
    ) -> Result<Tile, Fail> {
        let Some(&n) = t.shape.get(axis) else {
            return Err(fail(codes::ILL_FORMED, span, format!("there is no axis {axis} to scan")));
        };
        let inner = t.shape[axis + 1..].iter().product();
        let rows = Rows { n, inner };
        let of_totals = totals.and_then(|totals| Some((totals, Rows { n: *totals.shape.get(axis)?, inner })));
        if of_totals.is_some_and(|(totals, of)| of.n == 0 || totals.data.len() * n != t.data.len() * of.n) {
            return Err(fail(codes::ILL_FORMED, span, "the totals of a scan are of other rows"));
        }
        let mut out = Tile::new(t.elem, t.shape.clone(), scanned(op, exclusive, (t, rows), of_totals));
        out.exact = t.exact && op.is_extreme() && !exclusive;
        if t.poison.is_some() || totals.is_some_and(|t| t.poison.is_some()) {
            let poison = |t: &Tile| t.poison.clone().unwrap_or_else(|| vec![false; t.data.len()]);
            let known = of_totals.map(|(totals, of)| each_row(&poison(totals), of).collect::<Vec<_>>());
            let any = |(i, row): (usize, Vec<bool>)| {
                scan(&row, known.as_ref().map(|known| &known[i][..]), exclusive, false, |x, y| x || y)
            };
            out.poison = Some(of_rows(each_row(&poison(t), rows).enumerate().map(any), rows));
        }
        if self.opts.accuracy.is_some() {
            out.bound = bound(op, exclusive, (t, rows), of_totals);
        }
        Ok(out)
    }
}

/// A tile whose rows are scanned, or one with the totals of their segments.
type OfRows<'a> = (&'a Tile, Rows);

fn scanned(op: ReduceOp, exclusive: bool, (t, rows): OfRows<'_>, totals: Option<OfRows<'_>>) -> Numbers {
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
        let known = totals.map(|(t, of)| each_row(&t.integers().collect::<Vec<i128>>(), of).collect::<Vec<_>>());
        let found = each_row(&data, rows).enumerate().map(|(i, row)| {
            let known = known.as_ref().map(|known| &known[i][..]);
            scan(&row, known, exclusive, first, combine)
        });
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
    let known = totals.map(|(t, of)| each_row(&t.data.floats(), of).collect::<Vec<_>>());
    let found = each_row(&data, rows).enumerate().map(|(i, row)| {
        let known = known.as_ref().map(|known| &known[i][..]);
        scan(&row, known, exclusive, first, rounded)
    });
    of_rows(found, rows).into()
}

/// Scans a row; `totals`: the totals of its segments; `first`: the initial value.
fn scan<T: Copy>(row: &[T], totals: Option<&[T]>, exclusive: bool, first: T, combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut found: Vec<Option<T>> = row.iter().map(|&x| (!exclusive).then_some(x)).collect();
    // The sum of the block that begins at each index.
    let mut whole = row.to_vec();
    let mut half = 1;
    while half < row.len() {
        if let Some(totals) = totals.filter(|totals| totals.len() * half == row.len()) {
            totals.iter().enumerate().for_each(|(i, &total)| whole[i * half] = total);
        }
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

/// Error bound of a scan: zero where the operand is exact, because the order is the same.
fn bound(op: ReduceOp, exclusive: bool, (t, rows): OfRows<'_>, totals: Option<OfRows<'_>>) -> Option<Box<Bound>> {
    let rows_of = |t: &Tile, of: Rows| {
        let error = t.errors().map_or_else(|| vec![0.0; t.data.len()], |b| b.error);
        each_row(&t.data.floats(), of).zip(each_row(&error, of)).collect::<Vec<(Vec<f64>, Vec<f64>)>>()
    };
    if t.errors().is_none() && totals.is_none_or(|(t, _)| t.errors().is_none()) {
        return None;
    }
    let known = totals.map(|(t, of)| rows_of(t, of));
    let drowned =
        [Some(t), totals.map(|(t, _)| t)].into_iter().flatten().any(|t| t.errors().is_some_and(|b| b.drowned));
    let found = rows_of(t, rows).into_iter().enumerate().map(|(row, (x, e))| {
        let up_to = |i: usize| {
            // Stretches in front of the element's, and what is in front of it in its own.
            let known = known.as_ref().map(|known| &known[row]);
            let (fronts, start) = known.map_or((0, 0), |(all, _)| {
                let segment = (x.len() / all.len()).max(1);
                (i / segment, i / segment * segment)
            });
            let with = |of: Option<&Vec<f64>>, own: &[f64]| {
                let fronts = of.map_or(&[][..], |all| &all[..fronts]);
                fronts.iter().chain(&own[start..=i]).copied().collect::<Vec<f64>>()
            };
            let (x, e) = (with(known.map(|k| &k.0), &x), with(known.map(|k| &k.1), &e));
            match op {
                ReduceOp::Product => of_product(t.elem, &x, &e),
                ReduceOp::Sum => {
                    let size: f64 = x.iter().map(|x| x.abs()).sum();
                    let rounding = if t.elem.is_float() { 2.0 * x.len() as f64 * unit(t.elem) * size } else { 0.0 };
                    e.iter().sum::<f64>() + rounding
                }
                _ => e.iter().copied().fold(0.0, f64::max),
            }
        };
        let of = |i: usize| match (exclusive, i) {
            (true, 0) => 0.0,
            (true, _) => up_to(i - 1),
            (false, _) => up_to(i),
        };
        (0..x.len()).map(of).collect()
    });
    Bound::of(of_rows(found, rows), drowned)
}

//! Matrix products.
//!
//! Rows of the accumulator are updated by rows of `b`, four at a time, in loops over contiguous elements that the compiler
//! vectorises. Trailing columns of `a` that meet zero rows of `b` and are zero themselves (the padding of a ragged K) are
//! left out; a zero that meets something else is not, since it may meet an infinity.

use super::Numbers;
use super::bounds::Bound;
use super::numbers::moved;
use super::tile::{Tile, wrapped};
use crate::codes;
use crate::diag::Span;
use crate::interp::errors;
use crate::interp::machine::{Fail, Machine, fail};
use crate::kernel::Mma;
use crate::types::ElemClass;
use std::rc::Rc;

/// The extents of the operands of a product, where known.
pub(super) struct MmaShapes {
    pub(super) a: Option<Vec<usize>>,
    pub(super) b: Option<Vec<usize>>,
    pub(super) c: Option<Vec<usize>>,
}

impl Machine<'_> {
    /// The extents of the operands; unknown ones are inferred from the others.
    pub(super) fn mma_shapes(&mut self, m: &Mma, want: Option<&[usize]>) -> Result<MmaShapes, Fail> {
        let pair = |shape: &Option<Vec<usize>>| match shape.as_deref() {
            Some(&[x, y] | &[_, x, y]) => (Some(x), Some(y)),
            _ => (None, None),
        };
        let (a, b, c) = (self.known_shape(m.a)?, self.known_shape(m.b)?, self.known_shape(m.c)?);
        let want = want.map(<[usize]>::to_vec);
        let slices = [&c, &want].into_iter().flatten().find(|s| s.len() == 3).map(|s| s[0]);
        let want = pair(&want);
        let ((am, ak), (bk, bn), (cm, cn)) = (pair(&a), pair(&b), pair(&c));
        let both = |x: Option<usize>, y: Option<usize>| Some(vec![x?, y?]);
        let rows = am.or(cm).or(want.0);
        let columns = bn.or(cn).or(want.1);
        let depth = ak.or(bk);
        let c = both(rows, columns).map(|c| slices.into_iter().chain(c).collect());
        Ok(MmaShapes { a: both(rows, depth), b: both(depth, columns), c })
    }

    /// `a · b + c`; in the memory of `c` if nothing else holds it.
    pub(super) fn mma(&mut self, a: &Tile, b: &Tile, mut c: Rc<Tile>, span: Span) -> Result<Rc<Tile>, Fail> {
        let (&[m, depth], &[rows, n]) = (&a.shape[..], &b.shape[..]) else {
            return Err(fail(codes::ILL_FORMED, span, "a matrix product needs tiles of two dimensions"));
        };
        if depth != rows {
            let message = format!("the operands of this product are {:?} and {:?}", a.shape, b.shape);
            return Err(fail(codes::ILL_FORMED, span, message));
        }
        if let &[slices, _, _] = &c.shape[..] {
            return self.mma_slices(a, b, c, slices, span);
        }
        let shape = self.join(&[m, n], &c.shape, span)?;
        if shape != [m, n] {
            return Err(fail(
                codes::ILL_FORMED,
                span,
                format!("the accumulator is {:?}, the product [{m}, {n}]", c.shape),
            ));
        }
        let work = m.checked_mul(n).and_then(|x| x.checked_mul(depth)).unwrap_or(usize::MAX / 2);
        self.work(if self.opts.accuracy.is_some() { work.saturating_mul(2) } else { work }, span)?;
        if c.shape != shape {
            self.count(&shape, span)?;
            c = Rc::new(c.broadcast(&shape));
        }
        let out = Rc::make_mut(&mut c);
        let elem = out.elem;
        if let Some(accuracy) = self.opts.accuracy {
            let used = used_depth(&a.data.floats(), &b.data.floats(), depth, n);
            errors::product(accuracy, (a, b), out, used, |a, b, into| accumulate(a, b, into, depth, n));
        }
        // The sums of more than 2^22 products of 16-bit numbers are exact in f64; wider integers are not.
        let wide = elem.class() == ElemClass::Int && a.elem.bits().max(b.elem.bits()) > 8;
        let mut sums = std::mem::take(&mut out.data);
        out.data = match (&a.data, &b.data, &mut sums) {
            (Numbers::Floats(x), Numbers::Floats(y), Numbers::Floats(sums)) if !wide => {
                accumulate(x, y, sums, depth, n);
                match elem.class() {
                    ElemClass::Int => wrapped(elem, sums.iter().map(|&x| x as i128)),
                    _ => std::mem::take(sums).into(),
                }
            }
            (.., sums) => {
                let [x, y, c]: [Vec<i128>; 3] = [&a.data, &b.data, sums].map(|t| t.integers().collect());
                let sum = |i: usize, j: usize| {
                    (0..depth)
                        .fold(c[i * n + j], |sum, k| sum.wrapping_add(x[i * depth + k].wrapping_mul(y[k * n + j])))
                };
                wrapped(elem, (0..m * n).map(|at| sum(at / n, at % n)))
            }
        };
        if a.poison.is_some() || b.poison.is_some() {
            let none = Vec::new();
            let row = |i: usize| a.poison.as_ref().unwrap_or(&none).iter().skip(i * depth).take(depth).any(|&x| x);
            let column = |j: usize| b.poison.as_ref().unwrap_or(&none).iter().skip(j).step_by(n).any(|&x| x);
            let bad_columns: Vec<bool> = (0..n).map(column).collect();
            let mut poison = out.poison.take().unwrap_or_else(|| vec![false; m * n]);
            for (i, line) in poison.chunks_mut(n).enumerate() {
                let bad = row(i);
                line.iter_mut().zip(&bad_columns).for_each(|(x, &y)| *x |= bad || y);
            }
            out.poison = Some(poison);
        }
        (out.exact, out.weak) = (false, false);
        Ok(c)
    }

    /// The product in slices of the reduction: slice `s` of `a` and `b` is summed into `c[s]`.
    fn mma_slices(&mut self, a: &Tile, b: &Tile, c: Rc<Tile>, slices: usize, span: Span) -> Result<Rc<Tile>, Fail> {
        let (m, depth, n) = (a.shape[0], a.shape[1], b.shape[1]);
        if slices == 0 || depth % slices != 0 || c.shape[1..] != [m, n] {
            let message = format!("a product of {:?} and {:?} does not fit {:?}", a.shape, b.shape, c.shape);
            return Err(fail(codes::ILL_FORMED, span, message));
        }
        let deep = depth / slices;
        // Seen as a matrix, a slice of the accumulator is a run of rows.
        let rows = Tile { shape: vec![slices * m, n], ..Tile::clone(&c) };
        let mut sums = Vec::with_capacity(slices);
        for s in 0..slices {
            let (a, b) = (part(a, 1, s * deep, deep), part(b, 0, s * deep, deep));
            sums.push(self.mma(&a, &b, Rc::new(part(&rows, 0, s * m, m)), span)?);
        }
        let poisoned = sums.iter().any(|t| t.poison.is_some());
        Ok(Rc::new(Tile {
            data: Numbers::joined(c.elem, sums.iter().map(|t| &t.data)),
            poison: poisoned.then(|| {
                let plane = |t: &Rc<Tile>| t.poison.clone().unwrap_or_else(|| vec![false; m * n]);
                sums.iter().flat_map(plane).collect()
            }),
            bound: self.opts.accuracy.and_then(|_| {
                let bounds: Vec<Option<Bound>> = sums.iter().map(|t| t.errors()).collect();
                let drowned = bounds.iter().flatten().any(|b| b.drowned);
                let error = |b: &Option<Bound>| b.as_ref().map_or_else(|| vec![0.0; m * n], |b| b.error.clone());
                Bound::of(bounds.iter().flat_map(error).collect(), drowned)
            }),
            ..Tile::new(c.elem, c.shape.clone(), Numbers::default())
        }))
    }
}

/// Columns (`dim` 1) or rows (`dim` 0) `from .. from + len` of a matrix.
fn part(t: &Tile, dim: usize, from: usize, len: usize) -> Tile {
    fn cut<T: Copy>(data: &[T], width: usize, dim: usize, from: usize, len: usize) -> Vec<T> {
        match dim {
            0 => data[from * width..(from + len) * width].to_vec(),
            _ => data.chunks_exact(width).flat_map(|row| &row[from..from + len]).copied().collect(),
        }
    }
    let width = t.shape[1];
    let mut shape = t.shape.clone();
    shape[dim] = len;
    Tile {
        shape,
        data: moved!(&t.data, data => cut(data, width, dim, from, len)),
        poison: t.poison.as_ref().map(|p| cut(p, width, dim, from, len)),
        bound: t.moved_bound(|e| cut(e, width, dim, from, len)),
        ..Tile::new(t.elem, Vec::new(), Numbers::default())
    }
}

/// The depth without the padding at its end.
fn used_depth(a: &[f64], b: &[f64], depth: usize, n: usize) -> usize {
    let padded = |k: usize| {
        b[k * n..(k + 1) * n].iter().all(|&x| x == 0.0) && a.iter().skip(k).step_by(depth).all(|&x| x == 0.0)
    };
    (0..depth).rev().find(|&k| !padded(k)).map_or(0, |k| k + 1)
}

/// `c += a · b` for row-major `m x depth` and `depth x n`.
fn accumulate(a: &[f64], b: &[f64], c: &mut [f64], depth: usize, n: usize) {
    let used = used_depth(a, b, depth, n);
    let b = &b[..used * n];
    for (c, a) in c.chunks_exact_mut(n).zip(a.chunks_exact(depth)) {
        let a = &a[..used];
        let (quads, rest) = a.split_at(used / 4 * 4);
        let (b_quads, b_rest) = b.split_at(quads.len() * n);
        for (a, b) in quads.chunks_exact(4).zip(b_quads.chunks_exact(4 * n)) {
            let (b0, b) = b.split_at(n);
            let (b1, b) = b.split_at(n);
            let (b2, b3) = b.split_at(n);
            let (a0, a1, a2, a3) = (a[0], a[1], a[2], a[3]);
            // All rows have the same length, so indices need no checks. Zipping five iterators costs more than the
            // short rows of a narrow tile.
            let (c, b3) = (&mut c[..n], &b3[..n]);
            for j in 0..n {
                c[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
            }
        }
        for (&a, b) in rest.iter().zip(b_rest.chunks_exact(n)) {
            c.iter_mut().zip(b).for_each(|(c, x)| *c += a * x);
        }
    }
}

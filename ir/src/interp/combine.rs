//! Reductions, scans and sorts of tuples along a dimension with a combination from the program.
//!
//! The order follows from the indices of the elements ([`crate::combine`]), so the result is unique. All pairs of a
//! level of the tree, in all rows, are combined at once: names of components are bound to tiles with one element per
//! pair.

use super::Numbers;
use super::arith;
use super::bounds::Bound;
use super::numbers::moved;
use super::tile::{Tile, rounds_in_registers};
use crate::codes;
use crate::combine::{Combine, How, component, exchanges_of, local, row_bits};
use crate::diag::Span;
use crate::interp::machine::{Binding, Fail, Machine, fail};
use crate::ops::Op;
use crate::reshape::Numbered;
use crate::types::Elem;
use std::rc::Rc;

/// Tuples, one after another: a tile of one dimension for each component.
type Tuples = Vec<Tile>;

impl Machine<'_> {
    /// The reduction of tuples: one tile per component.
    pub(super) fn combine(&mut self, c: &Combine, span: Span) -> Result<Vec<Rc<Tile>>, Fail> {
        let (tuples, mut shape) = self.tuples(c, span)?;
        let axis = c.axis as usize;
        let Some(&n) = shape.get(axis) else {
            return Err(fail(codes::ILL_FORMED, span, format!("there is no axis {axis} to combine tuples along")));
        };
        let parts = c.operation.parts() as usize;
        if parts != 0 && (!n.is_power_of_two() || parts >= n) {
            return Err(fail(codes::ILL_FORMED, span, format!("{n} elements are not combined like this")));
        }
        let segments = matches!(c.operation, How::Scan { .. }) && parts != 0;
        let rows = rows(&shape, axis, if segments { 0 } else { parts });
        let all = match c.operation {
            How::Reduce { .. } => {
                shape[axis] = 1 << parts.count_ones();
                self.reduced(c, tuples, rows, span)?
            }
            How::Scan { .. } => {
                let totals = if segments { Some(self.totals(c, &shape, span)?) } else { None };
                let all = self.scanned(c, tuples, &rows, totals, span)?;
                if c.front.is_empty() { all } else { self.shifted_tuples(c, &all, &rows, span)? }
            }
            How::Sort { steps } => self.sorted(c, tuples, (&rows, steps), span)?,
        };
        Ok(all.into_iter().map(|t| Rc::new(Tile { shape: shape.clone(), ..t })).collect())
    }

    /// The tuples of all elements, and their extents.
    fn tuples(&mut self, c: &Combine, span: Span) -> Result<(Tuples, Vec<usize>), Fail> {
        let mut shape = Vec::new();
        for &arg in &c.args {
            if let Some(own) = self.known_shape(arg)? {
                shape = self.join(&shape, &own, span)?;
            }
        }
        let n = self.count(&shape, span)?;
        let mut tuples = Vec::new();
        for (&arg, &v) in c.args.iter().zip(&c.first) {
            let t = self.tile(arg, Some(&shape))?;
            self.work(n, span)?;
            let elem = self.elem(component(self.k, v), span)?;
            let whole = in_registers((*t).clone(), elem).broadcast(&shape);
            tuples.push(Tile { shape: vec![n], ..whole });
        }
        Ok((tuples, shape))
    }

    /// Each tuple of `a` combined with that of `b` after it.
    fn combine_pairs(&mut self, c: &Combine, a: Tuples, b: Tuples, span: Span) -> Result<Tuples, Fail> {
        let n = a[0].data.len();
        self.name_components(c, a, b)?;
        let mut out = Vec::new();
        for (&result, &v) in c.results.iter().zip(&c.first) {
            let t = self.tile(result, Some(&[n]))?;
            let elem = self.elem(component(self.k, v), span)?;
            out.push(in_registers((*t).clone(), elem).broadcast(&[n]));
        }
        Ok(out)
    }

    /// Numbers the names of components and of values computed from them.
    fn name_components(&mut self, c: &Combine, a: Tuples, b: Tuples) -> Result<(), Fail> {
        for (&v, t) in c.first.iter().chain(&c.second).zip(a.into_iter().chain(b)) {
            self.set(v, Binding::Tile(Rc::new(t)));
        }
        for &v in &c.locals {
            let mut t = (*self.tile(local(self.k, v), None)?).clone();
            if !t.weak && !t.exact && rounds_in_registers(t.elem) {
                let elem = t.elem;
                self.round(&mut t, elem);
            }
            self.set(v, Binding::Tile(Rc::new(t)));
        }
        Ok(())
    }

    /// Reduces each row of the tuples that are numbered.
    fn reduced(&mut self, c: &Combine, mut all: Tuples, mut rows: Vec<Vec<usize>>, span: Span) -> Result<Tuples, Fail> {
        while rows.iter().any(|row| row.len() > 1) {
            let (mut lower, mut upper, mut alone) = (Vec::new(), Vec::new(), Vec::new());
            let pairs: usize = rows.iter().map(|row| row.len() / 2).sum();
            for row in &mut rows {
                let mut next = Vec::new();
                for pair in row.chunks(2) {
                    if let &[a, b] = pair {
                        next.push(lower.len());
                        lower.push(a);
                        upper.push(b);
                    } else {
                        next.push(pairs + alone.len());
                        alone.push(pair[0]);
                    }
                }
                *row = next;
            }
            let both = self.combine_pairs(c, picked(&all, &lower), picked(&all, &upper), span)?;
            all = both.iter().zip(picked(&all, &alone)).map(|(x, y)| behind(x, &y)).collect();
        }
        let order: Vec<usize> = rows.iter().map(|row| row[0]).collect();
        Ok(picked(&all, &order))
    }

    /// The totals of segments of the rows of such a tile, and the indices of each row's segments.
    fn totals(&mut self, c: &Combine, shape: &[usize], span: Span) -> Result<(Tuples, Vec<Vec<usize>>), Fail> {
        let axis = c.axis as usize;
        let mut of = shape.to_vec();
        of[axis] = 1 << c.operation.parts().count_ones();
        let n = self.count(&of, span)?;
        let mut tuples = Vec::new();
        for (&totals, &v) in c.totals.iter().zip(&c.first) {
            let t = self.tile(totals, Some(&of))?;
            let elem = self.elem(component(self.k, v), span)?;
            tuples.push(Tile { shape: vec![n], ..in_registers((*t).clone(), elem).broadcast(&of) });
        }
        Ok((tuples, rows(&of, axis, 0)))
    }

    /// The inclusive scan of the tuples of each row; `totals`: the totals of segments.
    fn scanned(
        &mut self,
        c: &Combine,
        all: Tuples,
        rows: &[Vec<usize>],
        totals: Option<(Tuples, Vec<Vec<usize>>)>,
        span: Span,
    ) -> Result<Tuples, Fail> {
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        let (mut found, mut whole) = (all.clone(), all);
        let mut half = 1;
        while half < longest {
            if let Some((totals, of)) = &totals
                && of.first().is_some_and(|of| of.len() * half == longest)
            {
                let starts: Vec<usize> = rows.iter().flat_map(|row| row.iter().step_by(half).copied()).collect();
                let order: Vec<usize> = of.iter().flatten().copied().collect();
                whole = put(&whole, &starts, &picked(totals, &order));
            }
            // Blocks of this size whose upper half begins within the row.
            let (mut lower, mut upper, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
            for row in rows {
                for start in (0..row.len()).step_by(2 * half).filter(|start| start + half < row.len()) {
                    blocks.push((row[start], row[start + half]));
                    for &at in row.iter().skip(start + half).take(half) {
                        lower.push(row[start]);
                        upper.push(at);
                    }
                }
            }
            let new = self.combine_pairs(c, picked(&whole, &lower), picked(&found, &upper), span)?;
            found = put(&found, &upper, &new);
            let (starts, halves): (Vec<usize>, Vec<usize>) = blocks.into_iter().unzip();
            let new = self.combine_pairs(c, picked(&whole, &starts), picked(&whole, &halves), span)?;
            whole = put(&whole, &starts, &new);
            half *= 2;
        }
        Ok(found)
    }

    /// The tuples of each row shifted by one, with the initial value first (exclusive scan).
    fn shifted_tuples(&mut self, c: &Combine, all: &[Tile], rows: &[Vec<usize>], span: Span) -> Result<Tuples, Fail> {
        let n = all[0].data.len();
        let mut from = vec![n; n];
        for pair in rows.iter().flat_map(|row| row.windows(2)) {
            from[pair[1]] = pair[0];
        }
        let mut out = Vec::new();
        for ((&front, &v), t) in c.front.iter().zip(&c.first).zip(all) {
            let first = self.tile(front, Some(&[1]))?;
            let elem = self.elem(component(self.k, v), span)?;
            let first = in_registers((*first).clone(), elem).broadcast(&[1]);
            out.push(pick(&behind(t, &first), &from));
        }
        Ok(out)
    }

    /// Sorts each row, or runs only the given `steps` of the sorting network.
    fn sorted(
        &mut self,
        c: &Combine,
        mut all: Tuples,
        (rows, steps): (&[Vec<usize>], Option<(u32, u32)>),
        span: Span,
    ) -> Result<Tuples, Fail> {
        let n = rows.first().map_or(0, Vec::len);
        for mask in exchanges_of(row_bits(n as u64), steps) {
            let pairs = (0..n).filter(|&i| i < i ^ mask as usize && i ^ (mask as usize) < n);
            let (mut front, mut back) = (Vec::new(), Vec::new());
            for i in pairs {
                for row in rows {
                    front.push(row[i]);
                    back.push(row[i ^ mask as usize]);
                }
            }
            let (a, b) = (picked(&all, &front), picked(&all, &back));
            self.name_components(c, a.clone(), b.clone())?;
            let stays = self.tile(c.results[0], Some(&[front.len()]))?.broadcast(&[front.len()]);
            let choose = |x: &Tile, y: &Tile| {
                arith::elementwise(Op::Select, x.elem, x.shape.clone(), &[&stays, x, y], self.opts.accuracy.is_some())
                    .map_err(|why| fail(codes::INDEX_ARITHMETIC, span, why.to_string()))
            };
            let both: Vec<(Tile, Tile)> =
                a.iter().zip(&b).map(|(x, y)| Ok((choose(x, y)?, choose(y, x)?))).collect::<Result<_, Fail>>()?;
            let (new_front, new_back): (Tuples, Tuples) = both.into_iter().unzip();
            all = put(&put(&all, &front, &new_front), &back, &new_back);
        }
        Ok(all)
    }
}

/// The indices of the elements of each row, part after part.
fn rows(shape: &[usize], axis: usize, parts: usize) -> Vec<Vec<usize>> {
    let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let outer: usize = shape[..axis].iter().product();
    let bits: Vec<usize> = (0..usize::BITS as usize).filter(|i| parts >> i & 1 == 1).collect();
    let mut rows = Vec::new();
    for o in 0..outer {
        for part in 0..1usize << bits.len() {
            let own = bits.iter().enumerate().fold(0, |all, (i, bit)| all | (part >> i & 1) << bit);
            for j in 0..inner {
                rows.push((0..n).filter(|i| i & parts == own).map(|i| (o * n + i) * inner + j).collect());
            }
        }
    }
    rows
}

/// A tile as numbers of the type that its elements are computed in.
fn in_registers(mut t: Tile, elem: Elem) -> Tile {
    if t.weak {
        t.adopt(elem);
        t.weak = false;
    } else if t.elem != elem {
        t.data = std::mem::take(&mut t.data).to_representation(elem);
        t.elem = elem;
    }
    t
}

/// Some of the elements, in this order.
fn pick(t: &Tile, at: &[usize]) -> Tile {
    Tile {
        poison: t.poison.as_ref().map(|p| at.iter().map(|&i| p[i]).collect()),
        bound: t.moved_bound(|e| at.iter().map(|&i| e[i]).collect()),
        exact: t.exact,
        ..Tile::new(t.elem, vec![at.len()], moved!(&t.data, data => at.iter().map(|&i| data[i]).collect()))
    }
}

/// Elements of a tile by their numbers, in another shape; the others are zero.
pub(super) fn numbered(t: &Tile, shape: Vec<usize>, of: &Numbered) -> Tile {
    let (n, own) = (t.data.len(), t.shape.clone());
    let flat = Tile { shape: vec![n], ..t.clone() };
    let zero = Tile::new(t.elem, vec![1], Numbers::zeros(t.elem, 1));
    let count: usize = shape.iter().product();
    let place = |mut i: usize| {
        let mut coords = vec![0u64; shape.len()];
        for (c, &extent) in coords.iter_mut().zip(&shape).rev() {
            (*c, i) = ((i % extent) as u64, i / extent);
        }
        let source = of.source(&coords)?;
        Some(source.iter().zip(&own).fold(0, |all, (&c, &extent)| all * extent + c as usize))
    };
    let from: Vec<usize> = (0..count).map(|i| place(i).unwrap_or(n)).collect();
    Tile { shape, ..pick(&behind(&flat, &zero), &from) }
}

/// The tile with its dimensions in another order.
pub(super) fn permuted(t: &Tile, order: &[u32]) -> Tile {
    let shape: Vec<usize> = order.iter().map(|&axis| t.shape[axis as usize]).collect();
    let mut pitch = vec![1usize; t.shape.len()];
    for d in (1..t.shape.len()).rev() {
        pitch[d - 1] = pitch[d] * t.shape[d];
    }
    let place = |mut i: usize| {
        let mut at = 0;
        for (&axis, &extent) in order.iter().zip(&shape).rev() {
            at += i % extent * pitch[axis as usize];
            i /= extent;
        }
        at
    };
    let from: Vec<usize> = (0..t.data.len()).map(place).collect();
    Tile { shape, ..pick(t, &from) }
}

fn picked(tuples: &[Tile], at: &[usize]) -> Tuples {
    tuples.iter().map(|t| pick(t, at)).collect()
}

/// The elements of `a` followed by those of `b`.
fn behind(a: &Tile, b: &Tile) -> Tile {
    let (n, m) = (a.data.len(), b.data.len());
    let poison = |t: &Tile, n: usize| t.poison.clone().unwrap_or_else(|| vec![false; n]);
    let errors = |t: &Tile, n: usize| t.errors().map_or_else(|| (vec![0.0; n], false), |b| (b.error, b.drowned));
    let bound = if a.bound.is_none() && b.bound.is_none() {
        None
    } else {
        let ((mut first, x), (second, y)) = (errors(a, n), errors(b, m));
        first.extend(second);
        Bound::of(first, x || y)
    };
    let some = a.poison.is_some() || b.poison.is_some();
    Tile {
        poison: some.then(|| [poison(a, n), poison(b, m)].concat()),
        bound,
        exact: a.exact && b.exact,
        ..Tile::new(a.elem, vec![n + m], Numbers::joined(a.elem, [&a.data, &b.data].into_iter()))
    }
}

/// The tuples with those at the indices `at` replaced by `new`.
fn put(all: &[Tile], at: &[usize], new: &[Tile]) -> Tuples {
    let n = all[0].data.len();
    let mut from: Vec<usize> = (0..n).collect();
    for (i, &place) in at.iter().enumerate() {
        from[place] = n + i;
    }
    all.iter().zip(new).map(|(x, y)| pick(&behind(x, y), &from)).collect()
}

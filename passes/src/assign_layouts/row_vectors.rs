//! Layouts of tiles with one number per row (or column), derived from the tiles with which they are combined.
//!
//! In `m = max(m, maximum(s, 1))` and `s - m` a thread has the numbers of the rows of which it has elements, so no data
//! moves between threads. The layout of such a tile is that of the larger one without its column bits
//! ([`RegLayout::repeated`]), which is also the layout of a reduction's result ([`RegLayout::reduction`]). This file also finds which tiles are reduced along which
//! dimensions: elements along these are in one warp, whose lanes exchange them by shuffles.

use super::broadcast::only_loaded;
use super::graph::Graph;
use super::log2_shape;
use crate::analysis::views::plain_var;
use std::collections::BTreeSet;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::typing::{fixed_shape, layout_of, resolve_view};

fn operands(k: &Kernel, deferred: &Deferred, e: Expr, out: &mut Vec<Expr>) {
    operands_in(k, deferred, e, &mut BTreeSet::new(), out);
}

/// The operands in `e` and in deferred names; names in `seen` were visited before.
fn operands_in(k: &Kernel, deferred: &Deferred, e: Expr, seen: &mut BTreeSet<Value>, out: &mut Vec<Expr>) {
    match k.exprs[e] {
        ExprData::Reduce { .. } | ExprData::Scan { .. } | ExprData::Part { .. } => out.push(e),
        ExprData::Ref(v) => match deferred.init(v) {
            Some(init) if seen.insert(v) => operands_in(k, deferred, init, seen, out),
            Some(_) => {}
            None if matches!(k.values[v].def, ValueDef::Var(_) | ValueDef::Let) => out.push(e),
            None => {}
        },
        ExprData::View(_) => {}
        _ => k.children(e).into_iter().for_each(|child| operands_in(k, deferred, child, seen, out)),
    }
}

/// Whether a tile of extents `small` is broadcast when it is combined with one of extents `large`.
fn repeats(small: &[u64], large: &[u64]) -> bool {
    let each = || small.iter().zip(large);
    small.len() == large.len() && small != large && each().all(|(a, b)| a == b || *a == 1)
}

/// The dimensions along which a kernel reduces any tiles.
pub(crate) fn reduced_axes(k: &Kernel) -> Vec<usize> {
    let axis = |e: &ExprData| match e {
        ExprData::Reduce { axis, .. } | ExprData::Scan { axis, .. } => Some(*axis as usize),
        ExprData::Combine(combine) => Some(combine.axis as usize),
        _ => None,
    };
    k.expressions().into_iter().map(|e| &k.exprs[e]).filter_map(axis).collect()
}

/// Shapes of tiles that are reduced, scanned or sorted, the dimension, and whether they are sorted.
pub(crate) struct Reduced(Vec<(Vec<u64>, usize, bool)>);

impl Reduced {
    pub(crate) fn of(k: &Kernel) -> Reduced {
        if reduced_axes(k).is_empty() {
            return Reduced(Vec::new());
        }
        let found = Graph::of(k)
            .nodes
            .into_iter()
            .filter_map(|node| Some((node.shape, node.axis?, node.sorted.is_some())))
            .collect();
        Reduced(found)
    }

    /// The largest number of rows (independently reduced parts) of a tile.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.0.iter().filter_map(|(shape, axis, _)| rows(shape, *axis)).max()
    }

    /// The largest number of rows of a tile that is sorted: each row is in one warp.
    pub(crate) fn sorted_rows(&self) -> Option<u64> {
        self.0.iter().filter(|(.., sorted)| *sorted).filter_map(|(shape, axis, _)| rows(shape, *axis)).max()
    }

    /// Elements of the largest tile that is reduced.
    pub(crate) fn elements(&self) -> Option<u64> {
        self.0.iter().map(|(shape, ..)| shape.iter().product::<u64>()).max()
    }

    /// Elements of the longest row among tiles with this number of elements.
    pub(crate) fn longest_of(&self, elements: u64) -> Option<u64> {
        let as_large = self.0.iter().filter(|(shape, ..)| shape.iter().product::<u64>() == elements);
        as_large.filter_map(|(shape, axis, _)| shape.get(*axis).copied()).max()
    }

    /// The dimensions along which tiles of this shape are reduced.
    pub(crate) fn along(&self, shape: &[u64]) -> Vec<usize> {
        self.0.iter().filter(|(s, ..)| s == shape).map(|&(_, axis, _)| axis).collect()
    }
}

fn rows(shape: &[u64], axis: usize) -> Option<u64> {
    shape.iter().product::<u64>().checked_div(*shape.get(axis)?)
}

/// Whether smaller operands in the copy of `src` still match if the layout of extents `shape` becomes `to`.
pub(super) fn still_match(k: &Kernel, deferred: &Deferred, src: Expr, shape: &[u64], to: &RegLayout) -> bool {
    let mut leaves = Vec::new();
    operands(k, deferred, src, &mut leaves);
    leaves.into_iter().all(|e| {
        let Some(small) = fixed_shape(k, e).filter(|small| repeats(small, shape)) else { return true };
        if plain_var(k, e).is_some_and(|v| only_loaded(k, v))
            || resolve_view(k, e).is_some_and(|v| k.tensor_ty(v.base).is_some())
        {
            return true;
        }
        let (Some(own), Some(repeated)) = (layout_of(k, e), to.repeated(&log2_shape(shape), &log2_shape(&small)))
        else {
            return false;
        };
        own.thread() == repeated.thread()
    })
}

//! Tiles of one number per row (or column) beside those that they are combined with.
//!
//! `m = max(m, maximum(s, 1))` and `s - m`: a thread has the numbers of the rows that it has elements of, so that nothing is
//! moved between threads. The layout of such a tile is that of the larger one without the bits of its columns
//! ([`RegLayout::repeated`]), which is what a reduction leaves ([`RegLayout::reduction`]). Here are the rules by
//! which tiles without a layout find it, and those by which a tile that is reduced gets one that allows it: elements
//! along a dimension that is reduced are those of one warp, which lanes exchange by shuffles.

use super::broadcast::only_loaded;
use super::{log2_shape, plain_var, unassigned};
use crate::analysis::uses::all_stmts;
use crate::vectorize::register_layout;
use tilec_ir::deferred::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::typing::{fixed_shape, resolve_view};

/// An elementwise expression: its operands, and the register tile that it is assigned to.
pub(super) struct Context {
    pub(super) e: Expr,
    dst: Option<Value>,
    /// References to tiles, and reductions, which have contexts of their own.
    pub(super) leaves: Vec<Expr>,
}

/// The elementwise expressions of a statement.
pub(super) fn contexts(k: &Kernel, deferred: &Deferred, s: Stmt) -> Vec<Context> {
    let (e, dst) = match k.stmts[s] {
        StmtData::Let { init, .. } => (init, None),
        StmtData::Var { value, init: Some(init) } => (init, Some(value)),
        StmtData::Assign { dst, src } => (src, Some(dst)),
        StmtData::Copy { src, dst, .. } => (src, plain_var(k, dst)),
        _ => return Vec::new(),
    };
    let mut all = Vec::new();
    if !matches!(k.exprs[e], ExprData::Mma(_)) {
        context(k, deferred, e, dst, &mut all);
    }
    all
}

fn context(k: &Kernel, deferred: &Deferred, e: Expr, dst: Option<Value>, all: &mut Vec<Context>) {
    let mut leaves = Vec::new();
    operands(k, deferred, e, &mut leaves);
    for &leaf in &leaves {
        if let ExprData::Reduce { arg, .. } = k.exprs[leaf] {
            context(k, deferred, arg, None, all);
        }
    }
    all.push(Context { e, dst, leaves });
}

fn operands(k: &Kernel, deferred: &Deferred, e: Expr, out: &mut Vec<Expr>) {
    match k.exprs[e] {
        ExprData::Reduce { .. } => out.push(e),
        ExprData::Ref(v) => match deferred.init(v) {
            Some(init) => operands(k, deferred, init, out),
            None if matches!(k.values[v].def, ValueDef::Var(_) | ValueDef::Let) => out.push(e),
            None => {}
        },
        ExprData::View(_) => {}
        _ => k.children(e).into_iter().for_each(|child| operands(k, deferred, child, out)),
    }
}

/// The tiles without layouts that a context names or assigns, with their extents.
fn open(k: &Kernel, context: &Context) -> Vec<(Value, Vec<u64>)> {
    let named = context.leaves.iter().filter_map(|&e| plain_var(k, e));
    let mut found: Vec<(Value, Vec<u64>)> = Vec::new();
    for v in named.chain(context.dst).filter(|&v| unassigned(k, v)) {
        let shape = k.tile_ty(v).and_then(|t| k.const_shape(&t.shape)).filter(|s| !s.is_empty());
        found.extend(shape.filter(|_| found.iter().all(|(w, _)| *w != v)).map(|shape| (v, shape)));
    }
    found
}

/// Whether a tile of extents `small` is repeated beside one of extents `large`.
fn repeats(small: &[u64], large: &[u64]) -> bool {
    let each = || small.iter().zip(large);
    small.len() == large.len() && small != large && each().all(|(a, b)| a == b || *a == 1)
}

/// Whether a tile may be repeated beside others.
fn is_row(shape: &[u64]) -> bool {
    shape.contains(&1)
}

/// Tiles whose layout follows from others that they meet: from a reduction of their extents, or a larger tile, unless copies from
/// global memory alone fill them.
pub(super) fn followers(k: &Kernel) -> Vec<Value> {
    let deferred = Deferred::of(k);
    let mut found = Vec::new();
    for s in all_stmts(k, k.body) {
        for context in contexts(k, &deferred, s) {
            let whole = fixed_shape(k, context.e);
            for (v, shape) in open(k, &context) {
                let reduced = |&e: &Expr| {
                    matches!(k.exprs[e], ExprData::Reduce { .. }) && fixed_shape(k, e).as_ref() == Some(&shape)
                };
                let larger = whole.as_ref().is_some_and(|whole| repeats(&shape, whole));
                if !found.contains(&v) && (context.leaves.iter().any(reduced) || larger && !only_loaded(k, v)) {
                    found.push(v);
                }
            }
        }
    }
    found
}

/// Gives `followers` their layouts, as far as what they meet in a statement has one; whether one got it.
pub(super) fn follow(k: &mut Kernel, deferred: &Deferred, followers: &[Value], s: Stmt) -> bool {
    let mut changed = false;
    for context in contexts(k, deferred, s) {
        let mut laid_out: Vec<(RegLayout, Vec<u64>)> = Vec::new();
        for e in context.leaves.iter().copied() {
            // What is only loaded takes the layout of what it is combined with in the end.
            let loaded = plain_var(k, e).is_some_and(|v| !followers.contains(&v) && only_loaded(k, v));
            laid_out.extend(register_layout(k, e).zip(fixed_shape(k, e)).filter(|(_, s)| !loaded || !is_row(s)));
        }
        let of_dst = context.dst.and_then(|v| k.tile_ty(v));
        laid_out.extend(of_dst.and_then(|t| t.reg_layout.clone().zip(k.const_shape(&t.shape))));
        for (v, shape) in open(k, &context).into_iter().filter(|(v, _)| followers.contains(v)) {
            let same = laid_out.iter().find(|(_, s)| *s == shape).map(|(l, _)| l.clone());
            let of_larger = || {
                let (layout, large) = laid_out.iter().find(|(_, large)| repeats(&shape, large))?;
                layout.repeated(&log2_shape(large), &log2_shape(&shape))
            };
            let found = same.or_else(of_larger).filter(|l| l.is_even(&shape));
            if let (Some(layout), Some(tile)) = (found, k.tile_ty_mut(v)) {
                tile.reg_layout = Some(layout);
                changed = true;
            }
        }
    }
    changed
}

/// The dimensions along which a kernel reduces whatever tiles.
pub(crate) fn reduced_axes(k: &Kernel) -> Vec<usize> {
    let axis = |e: &ExprData| match e {
        ExprData::Reduce { axis, .. } => Some(*axis as usize),
        _ => None,
    };
    k.exprs.values().filter_map(axis).collect()
}

/// The dimensions along which tiles of these extents are reduced.
pub(crate) struct Reduced(Vec<(Vec<u64>, usize)>);

impl Reduced {
    pub(crate) fn of(k: &Kernel) -> Reduced {
        let deferred = Deferred::of(k);
        let mut found = Vec::new();
        for s in all_stmts(k, k.body) {
            for e in contexts(k, &deferred, s).into_iter().flat_map(|c| c.leaves) {
                let ExprData::Reduce { axis, arg, .. } = k.exprs[e] else { continue };
                found.extend(fixed_shape(k, arg).map(|shape| (shape, axis as usize)));
            }
        }
        Reduced(found)
    }

    /// Rows, or what else is reduced by itself, of the tile with most of them.
    pub(crate) fn rows(&self) -> Option<u64> {
        let rows = |(shape, axis): &(Vec<u64>, usize)| shape.iter().product::<u64>().checked_div(*shape.get(*axis)?);
        self.0.iter().filter_map(rows).max()
    }

    /// Those of tiles of these extents.
    pub(crate) fn along(&self, shape: &[u64]) -> Vec<usize> {
        self.0.iter().filter(|(s, _)| s == shape).map(|&(_, axis)| axis).collect()
    }
}

/// Whether tiles that do not follow when `from` becomes `to`, of extents `shape`, still go with it in the copy of `src`.
pub(super) fn still_beside(k: &Kernel, deferred: &Deferred, src: Expr, shape: &[u64], to: &RegLayout) -> bool {
    let mut leaves = Vec::new();
    operands(k, deferred, src, &mut leaves);
    leaves.into_iter().all(|e| {
        let Some(small) = fixed_shape(k, e).filter(|small| repeats(small, shape)) else { return true };
        if plain_var(k, e).is_some_and(|v| only_loaded(k, v))
            || resolve_view(k, e).is_some_and(|v| k.tensor_ty(v.base).is_some())
        {
            return true;
        }
        let (Some(own), Some(repeated)) = (register_layout(k, e), to.repeated(&log2_shape(shape), &log2_shape(&small)))
        else {
            return false;
        };
        own.thread() == repeated.thread()
    })
}

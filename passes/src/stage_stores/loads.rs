//! Matrices that a staged store reads: loaded by TMA too, through the slots of an operand.
//!
//! ```text
//! var c_in = reg f16[128, 256]
//! copy C[bm * 128.., bn * 256..] -> a          // what follows the last slice of the reduction in the slots of `a`
//! copy a -> c_in[0.., 0..]
//! copy C[bm * 128.., bn * 256 + 64..] -> a
//! copy a -> c_in[0.., 64..]
//! ..
//! ```
//!
//! The producer issues the loads, which run during the last products and need no memory except
//! the slots. A thread then has the elements in the layout of its accumulator.

use crate::Cx;
use crate::analysis::access_width::{elem_of, known_elem, window_contiguous_dim};
use crate::analysis::facts::{Facts, contiguous_dim};
use crate::analysis::functions::registers_of_all;
use crate::analysis::reduction;
use crate::analysis::views::for_each_tile;
use crate::assign_layouts::threads::Threads;
use crate::registers::overhead::{ADDRESSES, combining};
use crate::roles::{consumer_registers, ping_pong};
use crate::tile_scheduler;
use std::collections::BTreeSet;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::facts::repeats;
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, Range, StmtData, ValueDef, View};
use tilec_ir::ops::Op;
use tilec_ir::target::{MAX_THREADS, WARP};
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, resolve_view};

/// A matrix that is loaded through the slots of an operand.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Load {
    from: ResolvedView,
    buffer: Value,
    /// Columns of a slot.
    width: u64,
}

/// The matrix that a store reads, if any; `Err`: why TMA cannot load it.
///
/// `at`: the loop with the products.
pub(super) fn of(
    k: &Kernel,
    cx: &Cx<'_>,
    facts: &Facts,
    deferred: &Deferred,
    at: Stmt,
    (store, src, to): (Stmt, Expr, &ResolvedView),
) -> Result<Option<Load>, String> {
    let mut direct: Vec<ResolvedView> = crate::analysis::views::memory_views(k, src);
    direct.retain(|view| is_matrix(k, view));
    let mut all = crate::analysis::views::accessed_views(k, deferred, src);
    all.retain(|view| is_matrix(k, view));
    let Some(from) = direct.first().cloned() else {
        return match all.first() {
            None => Ok(None),
            Some(view) => {
                Err(format!("the epilogue also reads `{}`, by a name (`let`), so threads load it", name(k, view)))
            }
        };
    };
    let why = |reason: &str| Err(format!("the epilogue also reads `{}`, which threads load: {reason}", name(k, &from)));
    if crate::analysis::wgmma::is_scheduled(k) && reduction::of_kernel(k).is_err() {
        return why("the loop does more than accumulate products");
    }
    if all.iter().any(|view| *view != from) {
        return why("an epilogue has one matrix that TMA loads");
    }
    let (Some(mma), Some(shape)) = (product(k, at), fixed_shape(k, src)) else { return why("it has no extents") };
    let buffer = match k.exprs[mma.a] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Smem(_)) => v,
        _ => return why("operands are no buffers"),
    };
    let slot = k.tile_ty(buffer).and_then(|t| k.const_shape(&t.shape));
    let (&[rows, cols], Some(&[height, width])) = (&shape[..], slot.as_deref()) else {
        return why("it has no extents");
    };
    let own = k.schedule.warp_tile.and_then(|(_, n)| k.as_int(n));
    if own.is_none_or(|n| n.unsigned_abs() < cols) {
        return why("warpgroups compute some of the columns each");
    }
    let row_major = |view: &ResolvedView| {
        contiguous_dim(k, view.base).is_some_and(|d| !view.transposed && view.base_dims().last() == Some(&d))
    };
    let operand = filled_from(k, at, buffer);
    if mma.swap || height != rows || !cols.is_multiple_of(width) || elem_of(k, buffer) != elem_of(k, from.base) {
        return why("its tile does not fit the slots of operand A");
    }
    if !row_major(&from) || !operand.is_some_and(|view| row_major(&view)) {
        return why("it is not row-major, or operand A is not");
    }
    // The producer loads it after the tiles of the main loop, on the same sides of branches.
    let looped = |&(b, i): &(_, usize)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. });
    if crate::analysis::uses::path_to(k, store).iter().any(looped) {
        return why("it is stored in a loop");
    }
    if crate::thread_fills::any(k, cx.options) {
        return why("threads fill slots of the main loop");
    }
    let attrs = CopyAttrs::default();
    if let Err(reason) = crate::tensor_copies::fits(k, facts, cx.options.target, &from, buffer, &attrs) {
        return why(&reason.why);
    }
    // A block must not load what another block stores, nor another tile of the stored tensor.
    let same = from.base == to.base;
    if same && (from != *to || k.grid.len() != 2) {
        return why("the same window must be stored, and tiles have two indices");
    }
    if !same && is_written(k, from.base) {
        return why("the kernel writes it");
    }
    let mut stmts = Vec::new();
    k.walk(k.body, &mut |_, block, s| stmts.push((block, s)));
    if crate::producer_fills::stored_before(k, from.base, store, &stmts).is_some() {
        return why("the kernel stores to it in front of this");
    }
    if ping_pong(k).is_some() {
        return why("warpgroups run ping-pong (`ping_pong`)");
    }
    if same && tile_scheduler::shares_tiles(k, cx, at) {
        return why("blocks share tiles along the reduction (`stream_k`)");
    }
    if !fits_registers(k, deferred, src, &from, rows * cols) {
        return why("accumulators leave no registers for it");
    }
    Ok(Some(Load { from, buffer, width }))
}

/// The matrix that a store reads with the same window as the store: the same elements, contiguous along the same
/// dimension. Then the buffer for the results can hold it before.
pub(super) fn like(k: &Kernel, deferred: &Deferred, src: Expr, to: &ResolvedView) -> Option<ResolvedView> {
    let (mut direct, mut all) =
        (crate::analysis::views::memory_views(k, src), crate::analysis::views::accessed_views(k, deferred, src));
    direct.retain(|view| is_matrix(k, view));
    all.retain(|view| is_matrix(k, view));
    let from = direct.first()?.clone();
    let contiguous = |view: &ResolvedView| window_contiguous_dim(k, view);
    let same = elem_of(k, from.base) == elem_of(k, to.base) && contiguous(&from) == contiguous(to);
    let ends = from.dims.iter().any(|d| matches!(d, ViewDim::From { end: Some(_), .. }));
    let plain = !ends && !from.transposed && !from.is_gathered();
    // A block must not load what another block stores.
    let own = from == *to || !is_written(k, from.base);
    (same && plain && own && all.iter().all(|view| *view == from)).then_some(from)
}

/// Whether a view is a matrix in memory, without broadcast dimensions.
fn is_matrix(k: &Kernel, view: &ResolvedView) -> bool {
    let kept = view.base_dims();
    k.tensor_ty(view.base).is_some() && kept.len() > 1 && !kept.iter().any(|&d| repeats(k, view.base, d))
}

fn name<'a>(k: &'a Kernel, view: &ResolvedView) -> &'a str {
    &k.values[view.base].name
}

fn product(k: &Kernel, at: Stmt) -> Option<Mma> {
    let StmtData::For { body, .. } = k.stmts[at] else { unreachable!("products are in a loop") };
    k.blocks[body].iter().find_map(|&s| match k.stmts[s] {
        StmtData::Assign { src, .. } => match k.exprs[src] {
            ExprData::Mma(mma) => Some(mma),
            _ => None,
        },
        _ => None,
    })
}

/// The window from which the loop fills a buffer.
fn filled_from(k: &Kernel, at: Stmt, buffer: Value) -> Option<ResolvedView> {
    let StmtData::For { body, .. } = k.stmts[at] else { unreachable!("products are in a loop") };
    k.blocks[body].iter().find_map(|&s| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } if matches!(k.exprs[dst], ExprData::Ref(v) if v == buffer) => {
            resolve_view(k, src)
        }
        _ => None,
    })
}

fn is_written(k: &Kernel, tensor: Value) -> bool {
    k.statement_data().any(|s| match s {
        StmtData::Copy { dst, .. } => resolve_view(k, *dst).is_some_and(|view| view.base == tensor),
        _ => false,
    })
}

/// Whether a thread has registers for its part of the matrix next to its accumulator.
fn fits_registers(k: &Kernel, deferred: &Deferred, src: Expr, from: &ResolvedView, elems: u64) -> bool {
    let threads = Threads::of(k).count();
    let words = |elem: Elem| elem.bytes_of(elems / threads) / 4;
    let mut sums = 0;
    for_each_tile(k, deferred, src, &mut |v| {
        if matches!(&k.values[v].def, ValueDef::Var(t) if !t.shape.is_empty()) {
            sums = sums.max(words(known_elem(k, v)));
        }
    });
    let warps = u32::try_from(threads / u64::from(WARP)).unwrap_or(1).min(MAX_THREADS / WARP);
    let own = words(known_elem(k, from.base));
    let functions = combining(registers_of_all(k, deferred, src), repeated(k, deferred, src));
    u64::try_from(consumer_registers(k, warps)).is_ok_and(|room| sums + own + ADDRESSES + functions <= room)
}

/// The number of tensors in an expression that are not matrices with its extents.
fn repeated(k: &Kernel, deferred: &Deferred, e: Expr) -> u64 {
    let views = crate::analysis::views::accessed_views(k, deferred, e);
    views.iter().filter(|view| !is_matrix(k, view)).map(|view| view.base).collect::<BTreeSet<Value>>().len() as u64
}

/// The statements that load a matrix in front of the store of `src`, which then reads a register tile.
pub(super) fn load(k: &mut Kernel, s: Stmt, src: Expr, load: &Load) -> Vec<Stmt> {
    let span = k.stmt_spans[s];
    let shape = fixed_shape(k, src).expect("what is staged has extents");
    let (elem, cols) = (known_elem(k, load.from.base), shape[shape.len() - 1]);
    let extents = shape.iter().map(|&n| k.int(n as i64, span)).collect();
    let elem = ElemRef::Known(elem);
    let tile = TileTy { elem, shape: extents, order: None, reg_layout: None, partial: None, smem_layout: None };
    let title = format!("{}_in", k.values[load.from.base].name.to_lowercase());
    let tile = k.value(&title, span, ValueDef::Var(tile));
    let mut out = vec![k.stmt(StmtData::Var { value: tile, init: None }, span)];
    let last = load.from.base_dims().last().copied();
    let scheduled = crate::analysis::wgmma::is_scheduled(k);
    for first in (0..cols).step_by(load.width.max(1) as usize) {
        let mut ranges = Vec::new();
        for (d, dim) in load.from.dims.iter().enumerate() {
            let more = (Some(d) == last && first > 0).then(|| k.int(first as i64, span));
            ranges.push(range(k, dim, more, span));
        }
        let window = k.expr(ExprData::View(View { base: load.from.base, slot: None, ranges }), span);
        let place = k.value_ref(load.buffer, span);
        let fill = k.stmt(StmtData::Copy { src: window, dst: place, attrs: CopyAttrs::default() }, span);
        k.plans[fill].producer = scheduled;
        out.push(fill);
        let ranges = [0, first].map(|n| Range::From { start: k.int(n as i64, span), end: None }).to_vec();
        let part = k.expr(ExprData::View(View { base: tile, slot: None, ranges }), span);
        let slot = k.value_ref(load.buffer, span);
        out.push(k.stmt(StmtData::Copy { src: slot, dst: part, attrs: CopyAttrs::default() }, span));
    }
    replace(k, src, &load.from, tile);
    out
}

/// A dimension of a window, moved by `more` elements.
pub(super) fn range(k: &mut Kernel, dim: &ViewDim, more: Option<Expr>, span: tilec_ir::diag::Span) -> Range {
    let starts = match dim {
        ViewDim::Fixed(e) => return Range::At(k.copy_expr(*e)),
        ViewDim::From { starts, .. } => starts.clone(),
        ViewDim::Gather(_) => panic!("bug: what is gathered or scattered is staged in a buffer"),
    };
    let mut sum = None;
    for e in starts {
        let e = k.copy_expr(e);
        sum = Some(sum.map_or(e, |sum| k.binary(Op::Add, sum, e, span)));
    }
    let start = match (sum, more) {
        (None, None) => k.int(0, span),
        (Some(e), None) | (None, Some(e)) => e,
        (Some(sum), Some(more)) => k.binary(Op::Add, sum, more, span),
    };
    Range::From { start, end: None }
}

/// Replaces a window by the tile in an expression.
pub(super) fn replace(k: &mut Kernel, e: Expr, from: &ResolvedView, tile: Value) {
    if resolve_view(k, e).as_ref() == Some(from) {
        k.exprs[e] = ExprData::Ref(tile);
        return;
    }
    for child in k.children(e) {
        replace(k, child, from, tile);
    }
}

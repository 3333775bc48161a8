//! Windows of one tensor that overlap in a block of statements, as in a stencil.
//!
//! A thread that holds neighbours along each dimension in which the windows differ loads most elements once: `reuse-loads`
//! takes the others from its registers. So windows in expressions become tiles, which copies fill in front, and the cost
//! of a layout counts the elements that a thread does not hold yet.

use super::coalesced::coalesced_along;
use super::loaded_windows::{Found, load};
use super::threads::Threads;
use crate::analysis::access_width::elem_of;
use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::copy_shape;
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::held_elements::{PlainLoad, is_only_read, offset_between};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData};
use tilec_ir::layout::RegLayout;
use tilec_ir::typing::{ResolvedView, fixed_shape, resolve_view};

/// Most registers of a thread for the windows of a tensor that become tiles in a block of statements: half of what it has.
const MOST: u64 = 128;

/// Distances from the window of a copy to windows that earlier copies of its block load into tiles of the same extents.
pub(super) type Offsets = BTreeMap<Stmt, Vec<Vec<i64>>>;

/// Those of all copies that load overlapping windows.
pub(super) fn offsets(k: &Kernel) -> Offsets {
    let mut all = Offsets::new();
    let mut loads: Vec<(Block, PlainLoad)> = Vec::new();
    k.walk(k.body, &mut |k, block, s| {
        let Some(load) = PlainLoad::of(k, s) else { return };
        let shape = |load: &PlainLoad| k.tile_ty(load.tile).and_then(|t| k.const_shape(&t.shape));
        let Some(own) = shape(&load) else { return };
        for (_, earlier) in loads.iter().filter(|(of, earlier)| *of == block && shape(earlier).as_ref() == Some(&own)) {
            all.entry(s).or_default().extend(load.offset_in(k, earlier).filter(|offset| overlaps(offset, &own)));
        }
        loads.push((block, load));
    });
    all.retain(|&s, offsets| !offsets.is_empty() && PlainLoad::of(k, s).is_some_and(|l| is_only_read(k, l.view.base)));
    all
}

/// Whether windows of these extents at this distance are two that have elements in common.
fn overlaps(offset: &[i64], shape: &[u64]) -> bool {
    let near = |(by, n): (&i64, &u64)| by.unsigned_abs() < *n;
    offset.iter().any(|&by| by != 0) && offset.iter().zip(shape).all(near)
}

/// Loads windows in expressions into tiles if they overlap other windows of the block.
pub(super) fn into_tiles(k: &mut Kernel, threads: Threads) {
    let mut windows: Vec<(Block, Found, ResolvedView)> = Vec::new();
    let mut blocks = BTreeMap::new();
    k.walk(k.body, &mut |_, block, s| {
        blocks.insert(s, block);
    });
    for at in all_stmts(k, k.body) {
        let (Some(&block), Some(shape)) = (blocks.get(&at), shape_of(k, at)) else { continue };
        for window in in_expression(k, at) {
            let found = resolve_view(k, window).filter(|view| {
                let whole = view.base_dims().len() == shape.len() && !view.is_gathered();
                whole && k.tensor_ty(view.base).is_some_and(|t| t.repeats.is_empty())
            });
            windows.extend(found.map(|view| (block, Found { at, window, shape: shape.clone() }, view)));
        }
    }
    let overlapping = |(block, found, view): &(Block, Found, ResolvedView)| {
        let with = |(of, other, seen): &(Block, Found, ResolvedView)| {
            let offset = || offset_between(k, view, seen);
            of == block && other.shape == found.shape && offset().is_some_and(|by| overlaps(&by, &found.shape))
        };
        is_only_read(k, view.base) && windows.iter().any(with)
    };
    let loaded = windows.iter().filter(|of| overlapping(of) && !is_load(k, &of.1, &of.2));
    // Where the tiles would crowd out all else, windows are loaded one after the other, where they are used.
    let words = |found: &Found, view: &ResolvedView| {
        let elements: u64 = found.shape.iter().product();
        elem_of(k, view.base).map_or(0, |elem| elem.size().words(elements.div_ceil(threads.count())))
    };
    let mut taken: BTreeMap<(Block, Value), u64> = BTreeMap::new();
    for (block, found, view) in loaded.clone() {
        *taken.entry((*block, view.base)).or_default() += words(found, view);
    }
    let new: Vec<Found> = loaded
        .filter(|(block, _, view)| taken[&(*block, view.base)] <= MOST)
        .map(|(_, found, _)| found.clone())
        .collect();
    let mut named: BTreeMap<Value, Value> = BTreeMap::new();
    for Found { at, window, shape } in new {
        let name = name_of_window(k, window);
        let tile = match name.and_then(|(v, _)| named.get(&v).copied()) {
            Some(tile) => {
                k.exprs[window] = ExprData::Ref(tile);
                tile
            }
            // A name is loaded where it stands.
            None => load(k, name.map_or(at, |(_, let_of)| let_of), window, &shape),
        };
        named.extend(name.map(|(v, _)| (v, tile)));
    }
}

/// Whether a window is all that a copy to a tile reads, and the copy stays: buffers are filled ahead, attributes belong to
/// the window, and a register tile of its type already has its elements.
fn is_load(k: &Kernel, Found { at, window, .. }: &Found, of: &ResolvedView) -> bool {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[*at] else { return false };
    let elem = k.tensor_ty(of.base).map(|t| t.elem);
    let stays = |to: &ResolvedView| {
        let same = || k.tile_ty(to.base).map(|t| t.elem) == elem;
        !to.space(k).has_bounds() && (to.space(k).is_memory() || *attrs != CopyAttrs::default() || same())
    };
    src == window && resolve_view(k, *dst).is_some_and(|to| stays(&to))
}

/// The name of a window, and the statement after its `let`.
fn name_of_window(k: &Kernel, window: Expr) -> Option<(Value, Stmt)> {
    let ExprData::Ref(v) = k.exprs[window] else { return None };
    let of = |s: Stmt| matches!(k.stmts[s], StmtData::Let { value, .. } if value == v);
    let statement = all_stmts(k, k.body).into_iter().find(|&s| of(s))?;
    let (block, at) = place_of(k, statement);
    Some((v, *k.blocks[block].get(at + 1)?))
}

/// The extents of what a statement computes element by element.
fn shape_of(k: &Kernel, at: Stmt) -> Option<Vec<u64>> {
    match &k.stmts[at] {
        StmtData::Copy { src, dst, attrs } if attrs.is_by_threads() && attrs.reduce.is_none() => {
            copy_shape(k, *src, *dst)
        }
        StmtData::Let { init: e, .. } | StmtData::Assign { src: e, .. } | StmtData::Var { init: Some(e), .. } => {
            fixed_shape(k, *e)
        }
        _ => None,
    }
}

/// The windows of tensors that a statement itself combines element by element.
fn in_expression(k: &Kernel, at: Stmt) -> Vec<Expr> {
    let mut rest = match &k.stmts[at] {
        StmtData::Copy { src: e, .. }
        | StmtData::Let { init: e, .. }
        | StmtData::Assign { src: e, .. }
        | StmtData::Var { init: Some(e), .. } => vec![*e],
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    while let Some(e) = rest.pop() {
        if resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some()) {
            found.push(e);
        } else if let ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } =
            k.exprs[e]
        {
            let first = rest.len();
            rest.extend(k.children(e));
            rest[first..].reverse();
        }
    }
    found
}

/// The accesses of a thread that holds elements of windows at these distances, in runs of `run` elements.
pub(super) fn accesses(beside: &[Vec<i64>], layout: &RegLayout, shape: &[u64], run: u32) -> u64 {
    let held: Vec<Vec<Option<usize>>> = beside.iter().map(|offset| layout.held(shape, offset)).collect();
    let loaded = (0..1usize << layout.value_bits()).filter(|&v| held.iter().all(|held| held[v].is_none())).count();
    (loaded as u64).div_ceil(u64::from(run)).max(u64::from(loaded > 0))
}

/// A layout in which a thread has `2^chunk` neighbours along the contiguous dimension, and others along the dimensions in
/// which windows differ.
pub(super) fn in_blocks(
    beside: &[Vec<i64>],
    shape: &[u64],
    (contiguous, chunk): (usize, u32),
    threads: Threads,
) -> Option<RegLayout> {
    let differ = |&d: &usize| d != contiguous && beside.iter().any(|offset| offset[d] != 0);
    let along: Vec<usize> = (0..shape.len()).rev().filter(differ).collect();
    if along.is_empty() {
        return None;
    }
    let make =
        |part: &[u64], threads: u32| coalesced_along(&super::log2_shape(part), (contiguous, chunk), threads, &along);
    threads.distribute(shape, &make).filter(|layout| layout.is_even(shape))
}

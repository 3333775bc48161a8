//! Broadcast operands: each element is loaded once.
//!
//! A tensor with a stride of 0, such as a bias with one value per column, may be read like a matrix. A thread then
//! loads the same element for every row that it stores. Here the window becomes a register tile whose extent is 1 in
//! the broadcast dimensions, `copy bias[..] -> bias_tile`. A thread then holds each element that it needs once. Tiles
//! that the source declares in this way (`reg f32[1, BN]`) get the same layout.
//!
//! Rows past the end of the tensor would read as zero; with the tile they read as the other rows. So the destination must have the same
//! extent and start in the broadcast dimensions: then those rows are not stored. Dimensions that a vector lacks (`bias[_, j..]`) have no end,
//! so their tiles are loaded once for every statement that computes with them, whatever its destination.

use super::threads::Threads;
use super::{infer, log2_shape};
use crate::Cx;
use crate::analysis::access_width::known_elem;
use crate::analysis::distribution::copy_layout;
use crate::analysis::facts::repeats;
use crate::analysis::live_ranges::{self, Tile};
use crate::analysis::uses::{all_stmts, mentions, place_of};
use crate::analysis::views::{accessed_views, copy_shape, for_each_tile, plain_var};
use crate::rewrite::same_expr;
use crate::roles;
use std::collections::BTreeSet;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::types::{ElemRef, TileTy};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, resolve_view, same_product};

/// Registers that a repeated window takes anyway: predicates and addresses of repeated loads take as many (ptxas 13,
/// `scale` of `gemm_fused.tile`: two rows in a thread).
const FEW: u64 = 8;

/// A statement that computes elements in registers with the layout `layout`.
struct Reader {
    stmt: Stmt,
    /// The window of a tensor to which it stores, directly or through a buffer.
    to: Option<ResolvedView>,
    layout: RegLayout,
    shape: Vec<u64>,
    src: Expr,
    /// Operands of its source, each with the `let` that contains it.
    leaves: Vec<(Expr, Option<Value>)>,
}

fn readers(k: &Kernel) -> Vec<Reader> {
    let deferred = Deferred::of(k);
    let mut found = Vec::new();
    for stmt in all_stmts(k, k.body) {
        let Some((src, to, layout, shape)) = computed(k, stmt) else { continue };
        let mut reader = Reader { stmt, to, layout, shape, src, leaves: Vec::new() };
        leaves(k, &deferred, src, None, &mut BTreeSet::new(), &mut reader.leaves);
        found.push(reader);
    }
    found
}

/// The expression that a statement computes, its destination, its layout and its shape.
fn computed(k: &Kernel, stmt: Stmt) -> Option<(Expr, Option<ResolvedView>, RegLayout, Vec<u64>)> {
    let (value, src) = match k.stmts[stmt] {
        StmtData::Copy { src, dst, ref attrs } => {
            if attrs.threads.is_some() || resolve_view(k, src).is_some() {
                return None;
            }
            let to = resolve_view(k, dst).and_then(|v| destination(k, stmt, v));
            return Some((src, to, copy_layout(k, src, dst, attrs)?, copy_shape(k, src, dst)?));
        }
        StmtData::Assign { dst, src } => (dst, src),
        StmtData::Var { value, init } => (value, init?),
        _ => return None,
    };
    let tile = k.tile_ty(value)?;
    Some((src, None, tile.reg_layout.clone()?, k.const_shape(&tile.shape)?))
}

/// The window of a tensor to which a copy stores: directly, or through the buffer that the next statement stores.
fn destination(k: &Kernel, s: Stmt, to: ResolvedView) -> Option<ResolvedView> {
    if k.tensor_ty(to.base).is_some() {
        return Some(to);
    }
    let (block, index) = place_of(k, s);
    let next = *k.blocks[block].get(index + 1)?;
    tensor_store(k, next).filter(|&(buffer, _)| buffer == to.base)?;
    let StmtData::Copy { dst, .. } = k.stmts[next] else { unreachable!("a TMA store is a copy") };
    resolve_view(k, dst)
}

fn leaves(
    k: &Kernel,
    deferred: &Deferred,
    e: Expr,
    at: Option<Value>,
    seen: &mut BTreeSet<Value>,
    out: &mut Vec<(Expr, Option<Value>)>,
) {
    if resolve_view(k, e).is_some() {
        if out.iter().all(|&(seen, _)| seen != e) {
            out.push((e, at));
        }
        return;
    }
    if let ExprData::Ref(v) = k.exprs[e]
        && let Some(init) = deferred.init(v)
        && seen.insert(v)
    {
        leaves(k, deferred, init, Some(v), seen, out);
    }
    if matches!(k.exprs[e], ExprData::Reduce { .. } | ExprData::Scan { .. } | ExprData::Part { .. }) {
        return;
    }
    for child in k.children(e) {
        leaves(k, deferred, child, at, seen, out);
    }
}

/// Infers the layouts of broadcast tiles again, if they are only loaded and have no written layout (`open`): the tiles
/// with which they are combined may have been exchanged.
pub(super) fn infer_again(k: &mut Kernel, threads: Threads, open: &[Value]) {
    for &v in open {
        let repeats = |t: &TileTy| k.const_shape(&t.shape).is_some_and(|s| s.contains(&1));
        if k.tile_ty(v).is_some_and(repeats)
            && only_loaded(k, v)
            && let Some(tile) = k.tile_ty_mut(v)
        {
            tile.reg_layout = None;
        }
    }
    infer::assign(k, threads, true);
}

/// Whether a tile is filled only by copies from global memory, and no use needs a particular layout.
pub(super) fn only_loaded(k: &Kernel, v: Value) -> bool {
    all_stmts(k, k.body).into_iter().all(|s| match k.stmts[s] {
        StmtData::Var { value, init } if value == v => init.is_none(),
        StmtData::Assign { dst, .. } if dst == v => false,
        StmtData::Assign { src, .. } => !matches!(k.exprs[src], ExprData::Mma(_)) || !mentions(k, src, v),
        StmtData::Copy { src, dst, .. } if resolve_view(k, dst).is_some_and(|view| view.base == v) => {
            resolve_view(k, src).is_some_and(|view| k.tensor_ty(view.base).is_some())
        }
        StmtData::Copy { src, .. } => resolve_view(k, src).is_none_or(|view| view.base != v),
        _ => true,
    })
}

/// The statements whose operands are loaded once.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// Statements that store to a tensor.
    Stores,
    /// All other statements, after the layouts of their tiles are known.
    Tiles,
}

/// Loads windows that repeat into register tiles, in front of the statements that use them.
pub(super) fn load_once(k: &mut Kernel, cx: &mut Cx<'_>, by: By) {
    let readers = readers(k);
    let mut done: Vec<Expr> = Vec::new();
    for (i, reader) in readers.iter().enumerate().filter(|(_, reader)| reader.to.is_some() == (by == By::Stores)) {
        for &(e, at) in &reader.leaves {
            // A `let` that is used in two layouts is read as a matrix.
            let alike = readers[i + 1..]
                .iter()
                .all(|other| other.layout == reader.layout || other.leaves.iter().all(|&(leaf, _)| leaf != e));
            if done.contains(&e) || !alike {
                continue;
            }
            let Some(small) = repeated_shape(k, reader, e) else { continue };
            let mut all = readers.iter().filter(|r| r.leaves.iter().any(|&(leaf, _)| leaf == e));
            // A named window has the bounds of each statement that reads it.
            if at.is_some() && all.clone().any(|r| says_bounds(k, r.stmt)) {
                continue;
            }
            done.push(e);
            match all.find_map(|reader| why_no_registers(k, reader, e, &small)) {
                None => replace(k, cx, reader, e, at, &small),
                Some(why) => cx.remark(k.expr_spans[e], why),
            }
        }
    }
}

/// The shape of the non-repeated part of a window; `None` if nothing repeats.
fn repeated_shape(k: &Kernel, reader: &Reader, e: Expr) -> Option<Vec<u64>> {
    // Elements that have indices of their own do not repeat.
    let view = resolve_view(k, e).filter(|view| !view.gathers_by_element(k))?;
    let kept = view.base_dims();
    let tensor = k.tensor_ty(view.base)?;
    // The extents come from the other tiles in the expression, not from the windows.
    let extents = fixed_shape(k, reader.src);
    if kept.len() != reader.shape.len() || (reader.to.is_none() && extents.as_ref() != Some(&reader.shape)) {
        return None;
    }
    let mut small = reader.shape.clone();
    for (w, &d) in kept.iter().enumerate() {
        if !repeats(k, view.base, d) || reader.shape[w] == 1 {
            continue;
        }
        // A vector without this dimension has no end along it.
        if !tensor.repeats.contains(&d) && !ends_with(k, (&view, d), reader.to.as_ref(), w)? {
            return None;
        }
        small[w] = 1;
    }
    if small == reader.shape {
        return None;
    }
    // Nothing is read twice if each element of a thread needs another element of the window.
    let again = || {
        live_ranges::elements_per_thread(&small_layout(reader, &small), &small)
            < live_ranges::elements_per_thread(&reader.layout, &reader.shape)
    };
    (reader.to.is_some() || again()).then_some(small)
}

/// Whether dimension `d` of a window has the start and end of dimension `w` of the destination; `None`: unknown.
fn ends_with(k: &Kernel, (view, d): (&ResolvedView, usize), to: Option<&ResolvedView>, w: usize) -> Option<bool> {
    let to = to?;
    let t = *to.base_dims().get(w)?;
    let (ViewDim::From { starts: a, end: None }, ViewDim::From { starts: b, .. }) = (&view.dims[d], &to.dims[t]) else {
        return None;
    };
    let same_start = a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same_expr(k, a, b));
    let extent = |tensor: Value, dim: usize| k.tensor_ty(tensor).and_then(|t| t.shape.get(dim)).copied();
    Some(same_start && same_product(k, extent(view.base, d)?, extent(to.base, t)?))
}

/// Why a thread has no registers for the non-repeated part of a window in addition to the statement's tiles.
fn why_no_registers(k: &Kernel, reader: &Reader, e: Expr, small: &[u64]) -> Option<String> {
    let threads = Threads::of(k).count();
    let mut tiles = Vec::new();
    for_each_tile(k, &Deferred::of(k), reader.src, &mut |v| {
        if matches!(&k.values[v].def, ValueDef::Var(t) if !t.shape.is_empty()) && !tiles.contains(&v) {
            tiles.push(v);
        }
    });
    tiles.extend(filled(k, reader.stmt).filter(|v| !tiles.contains(v)));
    let held = |&v: &Value| {
        let tile = Tile { shape: k.const_shape(&k.tile_ty(v)?.shape)?, elem: known_elem(k, v).size() };
        Some(live_ranges::registers(k, v, &tile, threads))
    };
    let sums: u64 = tiles.iter().filter_map(held).sum();
    let base = resolve_view(k, e).expect("what repeats is a window").base;
    let own = known_elem(k, base).words(live_ranges::elements_per_thread(&small_layout(reader, small), small));
    let has = roles::epilogue_registers(k, threads);
    (own > FEW && sums + own > has).then(|| {
        format!(
            "`{}` is broadcast, and is loaded again for each row: its {own} elements and {sums} registers of tiles exceed the {has} registers that a thread has for them",
            k.values[base].name
        )
    })
}

/// The register tile that a statement fills.
fn filled(k: &Kernel, s: Stmt) -> Option<Value> {
    match k.stmts[s] {
        StmtData::Copy { dst, .. } => plain_var(k, dst),
        StmtData::Assign { dst: value, .. } | StmtData::Var { value, .. } => Some(value),
        _ => None,
    }
}

/// The layout of the non-repeated part of a window.
fn small_layout(reader: &Reader, small: &[u64]) -> RegLayout {
    let layout = reader.layout.repeated(&log2_shape(&reader.shape), &log2_shape(small));
    layout.expect("extents of 1 repeat in every layout")
}

/// Whether the statement says something of the bounds of its windows.
fn says_bounds(k: &Kernel, s: Stmt) -> bool {
    matches!(&k.stmts[s], StmtData::Copy { attrs, .. } if attrs.check.is_some() || attrs.when.is_some())
}

/// What the statement says of the bounds of its windows; it holds for a window that leaves it, too.
fn bounds_of(k: &mut Kernel, s: Stmt) -> CopyAttrs {
    let StmtData::Copy { attrs, .. } = &k.stmts[s] else { return CopyAttrs::default() };
    let (check, when) = (attrs.check.clone(), attrs.when);
    CopyAttrs { check, when: when.map(|cond| k.copy_expr(cond)), ..CopyAttrs::default() }
}

/// A copy whose last window of a tensor has left it has no bounds.
fn drop_bounds(k: &mut Kernel, s: Stmt) {
    let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return };
    let deferred = Deferred::of(k);
    let is_bounded =
        [src, dst].into_iter().flat_map(|e| accessed_views(k, &deferred, e)).any(|v| v.space(k).has_bounds());
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s]
        && !is_bounded
    {
        (attrs.check, attrs.when) = (None, None);
    }
}

fn replace(k: &mut Kernel, cx: &mut Cx<'_>, reader: &Reader, e: Expr, at: Option<Value>, small: &[u64]) {
    let span = k.expr_spans[e];
    let before = match at {
        None => reader.stmt,
        Some(v) => {
            let names = |&s: &Stmt| matches!(k.stmts[s], StmtData::Let { value, .. } if value == v);
            all_stmts(k, k.body).into_iter().find(names).expect("a name stands in the program")
        }
    };
    let (block, index) = place_of(k, before);
    let base = resolve_view(k, e).expect("what repeats is a window").base;
    let layout = small_layout(reader, small);
    let elem = known_elem(k, base);
    let shape = small.iter().map(|&n| k.int(n as i64, span)).collect();
    let name = k.values[base].name.clone();
    let tile = TileTy::registers(ElemRef::Known(elem), shape, Some(layout));
    let var = k.value(&format!("{name}_tile"), span, ValueDef::Var(tile));
    let window = k.exprs[e].clone();
    let window = k.expr(window, span);
    k.exprs[e] = ExprData::Ref(var);
    let to = k.value_ref(var, span);
    let decl = k.stmt(StmtData::Var { value: var, init: None }, span);
    let attrs = bounds_of(k, reader.stmt);
    let copy = k.stmt(StmtData::Copy { src: window, dst: to, attrs }, span);
    k.blocks[block].splice(index..index, [decl, copy]);
    drop_bounds(k, reader.stmt);
    cx.remark(span, format!("`{name}` is broadcast: a thread loads each element once"));
}

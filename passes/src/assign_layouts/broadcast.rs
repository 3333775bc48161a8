//! Broadcast operands: each element is loaded once.
//!
//! A tensor with a stride of 0, such as a bias with one value per column, repeats itself: read like a matrix, a thread would
//! load the same element for every row that it stores. Here the window becomes a register tile whose extent is 1 in the
//! repeated dimensions, `copy bias[..] -> bias_tile`, in which a thread holds just what it needs, each element once. Tiles
//! that were written this way (`reg f32[1, BN]`) get the same layout.
//!
//! The rows past the end of the tensor, which read as zero, read as the others then. So the destination must have the same
//! extent and start in the repeated dimensions: those rows are not stored. Dimensions that a vector lacks (`bias[_, j..]`) end nowhere.

use super::threads::Threads;
use super::{infer, log2_shape};
use crate::Cx;
use crate::analysis::distribution::copy_layout;
use crate::analysis::facts::repeats;
use crate::analysis::live::{self, Tile};
use crate::analysis::uses::{all_stmts, mentions, place_of};
use crate::analysis::views::{copy_shape, for_each_tile};
use crate::analysis::width::known_elem;
use crate::rewrite::same_expr;
use crate::roles;
use tilec_ir::deferred::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::types::{ElemRef, TileTy};
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view, same_product};

/// Registers of what repeats that are held in any case: predicates and addresses of what is read again take as many (ptxas 13, `scale` of `gemm_fused.tile`: two rows of
/// a thread).
const FEW: u64 = 8;

/// A store of register tiles to global memory, or to the buffer that the accelerator stores there.
struct Store {
    stmt: Stmt,
    to: ResolvedView,
    layout: RegLayout,
    shape: Vec<u64>,
    /// What its source is made of, with the `let` that it stands in.
    leaves: Vec<(Expr, Option<Value>)>,
}

fn stores(k: &Kernel) -> Vec<Store> {
    let deferred = Deferred::of(k);
    let mut found = Vec::new();
    for stmt in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[stmt] else { continue };
        let Some(to) = resolve_view(k, *dst).and_then(|v| destination(k, stmt, v)) else { continue };
        if attrs.threads.is_some() || resolve_view(k, *src).is_some() {
            continue;
        }
        let (Some(layout), Some(shape)) = (copy_layout(k, *src, *dst, attrs), copy_shape(k, *src, *dst)) else {
            continue;
        };
        let mut store = Store { stmt, to, layout, shape, leaves: Vec::new() };
        leaves(k, &deferred, *src, None, &mut store.leaves);
        found.push(store);
    }
    found
}

/// The window of a tensor that a copy stores to: by itself, or by way of the buffer that the next statement stores.
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

fn leaves(k: &Kernel, deferred: &Deferred, e: Expr, at: Option<Value>, out: &mut Vec<(Expr, Option<Value>)>) {
    if resolve_view(k, e).is_some() {
        if out.iter().all(|&(seen, _)| seen != e) {
            out.push((e, at));
        }
        return;
    }
    if let ExprData::Ref(v) = k.exprs[e]
        && let Some(init) = deferred.init(v)
    {
        leaves(k, deferred, init, Some(v), out);
    }
    if matches!(k.exprs[e], ExprData::Reduce { .. } | ExprData::Scan { .. } | ExprData::Part { .. }) {
        return;
    }
    for child in k.children(e) {
        leaves(k, deferred, child, at, out);
    }
}

/// Tiles that repeat beside others, that are only loaded and whose layout nobody wrote (`open`), get it anew: what they are combined with
/// may have been exchanged.
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

/// Whether nothing fills a tile but copies from global memory, and nothing needs it in a layout of its own.
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

/// Loads windows that repeat into register tiles, in front of the stores that use them.
pub(super) fn load_once(k: &mut Kernel, cx: &mut Cx<'_>) {
    let stores = stores(k);
    let mut done: Vec<Expr> = Vec::new();
    for (i, store) in stores.iter().enumerate() {
        for &(e, at) in &store.leaves {
            // A `let` stored in two layouts is read as a matrix.
            let alike = stores[i + 1..]
                .iter()
                .all(|other| other.layout == store.layout || other.leaves.iter().all(|&(leaf, _)| leaf != e));
            if done.contains(&e) || !alike {
                continue;
            }
            let Some(small) = repeated_shape(k, store, e) else { continue };
            done.push(e);
            let readers = stores.iter().filter(|s| s.leaves.iter().any(|&(leaf, _)| leaf == e));
            match readers.filter_map(|reader| crowded(k, reader, e, &small)).next() {
                None => replace(k, cx, store, e, at, &small),
                Some(why) => cx.remark(k.expr_spans[e], why),
            }
        }
    }
}

/// The extents of the part of a window that does not repeat; `None` if nothing does.
fn repeated_shape(k: &Kernel, store: &Store, e: Expr) -> Option<Vec<u64>> {
    let view = resolve_view(k, e)?;
    let (kept, to) = (view.kept(), store.to.kept());
    let extent = |tensor: Value, dim: usize| k.tensor_ty(tensor).and_then(|t| t.shape.get(dim)).copied();
    extent(view.base, 0)?;
    if kept.len() != store.shape.len() || to.len() != kept.len() {
        return None;
    }
    let mut small = store.shape.clone();
    for (w, (&d, &t)) in kept.iter().zip(&to).enumerate() {
        if !repeats(k, view.base, d) || store.shape[w] == 1 {
            continue;
        }
        // It ends nowhere.
        if k.tensor_ty(view.base).is_some_and(|t| t.repeats.contains(&d)) {
            small[w] = 1;
            continue;
        }
        let (ViewDim::From { starts: a, end: None }, ViewDim::From { starts: b, .. }) =
            (&view.dims[d], &store.to.dims[t])
        else {
            return None;
        };
        let same_start = a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same_expr(k, a, b));
        if !same_start || !same_product(k, extent(view.base, d)?, extent(store.to.base, t)?) {
            return None;
        }
        small[w] = 1;
    }
    (small != store.shape).then_some(small)
}

/// Why a thread has no registers for what does not repeat of a window, beside the tiles that the store reads.
fn crowded(k: &Kernel, store: &Store, e: Expr, small: &[u64]) -> Option<String> {
    let StmtData::Copy { src, .. } = k.stmts[store.stmt] else { unreachable!("a store is a copy") };
    let threads = Threads::of(k).count();
    let mut tiles = Vec::new();
    for_each_tile(k, &Deferred::of(k), src, &mut |v| {
        if matches!(&k.values[v].def, ValueDef::Var(t) if !t.shape.is_empty()) && !tiles.contains(&v) {
            tiles.push(v);
        }
    });
    let held = |&v: &Value| {
        let tile = Tile { shape: k.const_shape(&k.tile_ty(v)?.shape)?, elem: known_elem(k, v).size() };
        Some(live::registers(k, v, &tile, threads))
    };
    let sums: u64 = tiles.iter().filter_map(held).sum();
    let base = resolve_view(k, e).expect("what repeats is a window").base;
    let layout = store.layout.repeated(&log2_shape(&store.shape), &log2_shape(small))?;
    let own = known_elem(k, base).words(live::held(&layout, small));
    let has = roles::epilogue_registers(k, threads);
    (own > FEW && sums + own > has).then(|| {
        format!(
            "`{}` repeats, and is read again for each row: its {own} elements, and {sums} registers of tiles, exceed the {has} that a thread has for them",
            k.values[base].name
        )
    })
}

fn replace(k: &mut Kernel, cx: &mut Cx<'_>, store: &Store, e: Expr, at: Option<Value>, small: &[u64]) {
    let span = k.expr_spans[e];
    let before = match at {
        None => store.stmt,
        Some(v) => {
            let names = |&s: &Stmt| matches!(k.stmts[s], StmtData::Let { value, .. } if value == v);
            all_stmts(k, k.body).into_iter().find(names).expect("a name stands in the program")
        }
    };
    let (block, index) = place_of(k, before);
    let base = resolve_view(k, e).expect("what repeats is a window").base;
    let layout = store.layout.repeated(&log2_shape(&store.shape), &log2_shape(small));
    let layout = layout.expect("extents of 1 repeat in every layout");
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
    let copy = k.stmt(StmtData::Copy { src: window, dst: to, attrs: CopyAttrs::default() }, span);
    k.blocks[block].splice(index..index, [decl, copy]);
    cx.remark(span, format!("`{name}` repeats: a thread loads each element once"));
}

//! `assign-layouts`: decides which thread holds and moves which element.
//!
//! * Fragments and accumulators of products follow from the atom's row ([`fragments`]): warps tile the output, the atom
//!   is repeated inside the warp tile, and tile coordinate bits are assigned in the order of the row's `interleave`.
//! * Copies between global and shared memory get a *coalesced* layout: a thread has one run of an access's width,
//!   neighbouring threads have neighbouring runs. If the two memories of a copy are contiguous along different
//!   dimensions, a thread has a block that is such a run in both.
//! * The layouts of all other register tiles are inferred over the whole kernel. A graph has the constraints of
//!   expressions, reductions and copies ([`graph`]), and a search finds the cheapest layouts ([`infer`], [`cost`]).
//! * If a register tile's fragment layout would be stored by narrower accesses than memory allows, the tile is first
//!   copied to another layout by shuffles (`copy acc -> acc_out`, [`epilogue`]). Operands of the store that broadcast
//!   along a dimension are loaded once ([`broadcast`]).
//! * If operands still have different layouts, one is exchanged: a copy in the text ([`exchange`]). If elements cross
//!   warps, it reuses the memory of dead buffers ([`dead_buffers`]).
//! * Windows of tensors in values that are computed in registers are loaded by copies ([`loaded_windows`]), and so are
//!   windows that overlap others ([`overlaps`]).
//! * Tiles that are loaded and converted keep the order of memory within registers ([`packed_elements`]).
//! * A reduced tile has the elements along the reduced dimension in one warp. Tiles of one number per row follow the
//!   tiles with which they are combined ([`row_vectors`]).
//! * Shared-memory tiles have the order of the tensor from which they are filled.
//!
//! Needs: atoms selected, literal extents, a thread count. Switched off: fragments repeat in natural order, threads
//! have single elements, and stores keep the fragment layout. Exchanges are still made.

mod axis_order;
mod broadcast;
mod coalesced;
mod cost;
mod dead_buffers;
pub(crate) mod epilogue;
mod exchange;
mod fragments;
mod graph;
mod infer;
pub(crate) mod loaded_windows;
mod materialise;
mod overlaps;
mod packed_elements;
mod row_vectors;
mod sliced_operands;
mod sorts;
mod storage_types;
mod thread_counts;
pub(crate) mod threads;
mod transposing_copies;
mod window_starts;
mod windows;

use crate::analysis::access_width::{
    elem_of, global_width, known_elem, shared_width, tile_shape, window_contiguous_dim,
};
use crate::analysis::contiguous_dim::{filled_from_registers, smem_window_dim, source_order, stored_dim};
use crate::analysis::facts::Facts;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{goes_to_registers, has_registers, memory_views, moved_shape, plain_var, unassigned};
use crate::analysis::wgmma::read_by_warpgroups;
use crate::rewrite::inherit_stages;
use crate::{Cx, producer_fills, thread_fills};
use broadcast::By;
pub(crate) use coalesced::coalesced;
use coalesced::{blocked_evenly, coalesced_of};
pub(crate) use fragments::{accumulator_layout, warpgroup_layouts};
pub(crate) use row_vectors::{Reduced, reduced_axes};
pub(crate) use storage_types::in_memory;
use storage_types::is_truth;
pub(crate) use threads::Threads;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
pub(crate) use tilec_ir::layout::shape_bits as log2_shape;
use tilec_ir::names::Parts;
use tilec_ir::target::{REGISTERS_PER_THREAD, WARP};
use tilec_ir::types::{Elem, ElemRef, Order};
use tilec_ir::typing::{ResolvedView, fixed_shape, resolve_view};

pub(crate) const NAME: &str = "assign-layouts";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    thread_counts::run(k, cx, assign)
}

fn assign(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let threads = Threads::of(k);
    if cx.enabled {
        sorts::distribute_sorts(k, cx, threads);
    }
    windows::of_their_own(k, cx);
    if !is_decided(k) {
        loaded_windows::into_tiles(k, threads, cx.enabled);
    }
    if cx.enabled && !is_decided(k) {
        overlaps::into_tiles(k, threads);
    }
    orders(k, cx);
    fragments::assign(k, cx)?;
    let open: Vec<Value> = k.values.keys().filter(|&v| unassigned(k, v)).collect();
    // The layout of a gathering copy decides the layout of its indices.
    memory_copies(k, cx, threads, &|k, s| gathers(k, s));
    numbers_of_producer(k);
    infer::assign(k, threads, cx.enabled);
    memory_copies(k, cx, threads, &|k, s| !gathers(k, s));
    if cx.enabled {
        epilogue::relayout(k, cx, &open);
        broadcast::infer_again(k, threads, &open);
        broadcast::load_once(k, cx, By::Stores);
    }
    exchange::insert(k, cx, threads)?;
    if cx.enabled {
        broadcast::load_once(k, cx, By::Tiles);
        packed_elements::in_order(k, &open);
    }
    if windows::through_memory(k, cx) {
        // Copies from buffers to windows of buffers.
        memory_copies(k, cx, threads, &|_, _| true);
    }
    inherit_stages(k);
    everything_has_a_layout(k, cx)?;
    remark_repeated(k, cx, &open);
    all_is_shared_out(k, cx)?;
    everything_fits(k, cx)
}

/// Whether all tiles and copies between memories have layouts, as in a program that this pass has printed: then windows
/// that are read without a tile are to be read so.
fn is_decided(k: &Kernel) -> bool {
    let layouts = all_stmts(k, k.body).into_iter().filter_map(|s| match &k.stmts[s] {
        StmtData::Copy { src, dst, attrs } => is_between_memories(k, *src, *dst, attrs).then_some(&attrs.threads),
        &StmtData::Var { value, .. } => k.tile_ty(value).map(|tile| &tile.reg_layout),
        _ => None,
    });
    let mut some = false;
    for layout in layouts {
        if layout.is_none() {
            return false;
        }
        some = true;
    }
    some
}

/// Whether threads of a layout of its own run a copy.
fn is_between_memories(k: &Kernel, src: Expr, dst: Expr, attrs: &CopyAttrs) -> bool {
    attrs.is_by_threads() && !has_registers(k, src) && !needs_tile(k, src) && !goes_to_registers(k, dst)
}

/// Shared-memory tiles without an order take that of their source. 8-bit operands of tensor-core products take the
/// order in which fragments are whole words.
fn orders(k: &mut Kernel, cx: &mut Cx<'_>) {
    let buffers: Vec<Value> = k.values.iter().filter(|(_, d)| d.def.space().is_of_block()).map(|(v, _)| v).collect();
    for v in buffers {
        let rank = k.tile_ty(v).map_or(0, |t| t.shape.len());
        let stored = stored_dim(k, v);
        let along = |d: usize| [Order::Row, Order::Col].into_iter().find(|o| o.contiguous_dim(rank) == d);
        let known = stored.and_then(along).or_else(|| source_order(k, v));
        // The contiguous dimension is neither rows nor columns; the swizzle handles it.
        if stored.is_some_and(|d| along(d).is_none()) {
            continue;
        }
        // `row` and `col` cannot name inner dimensions of more than two; the swizzle finds the contiguous one.
        if known.is_none() && k.tile_ty(v).is_some_and(|t| t.shape.len() > 2) && filled_from_registers(k, v) {
            continue;
        }
        let source = known.unwrap_or(Order::Row);
        let needed = if cx.enabled { word_order(k, v) } else { None };
        let order = needed.unwrap_or(source);
        if let Some(tile) = k.tile_ty_mut(v)
            && tile.order.is_none()
            && tile.smem_layout.is_none()
        {
            tile.order = Some(order);
            if order != source {
                let message = format!(
                    "the copy of `{0}` into shared memory transposes: products of 8-bit elements read words along the reduction (K-major); store its tensor in the other order to avoid this",
                    k.values[v].name
                );
                cx.remark(k.values[v].span, message);
            }
        }
    }
}

/// The order in which the elements of a fragment's 32-bit word are contiguous, for a buffer of 8-bit elements that a
/// product reads: transposing loads (`ldmatrix.trans`) move 16-bit units.
fn word_order(k: &Kernel, buffer: Value) -> Option<Order> {
    if elem_of(k, buffer)?.bits() != 8 {
        return None;
    }
    let stmts = all_stmts(k, k.body);
    for &s in &stmts {
        let StmtData::Assign { src, .. } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        if !mma.atom.is_some_and(|a| a.row().sums()) {
            continue;
        }
        for (operand, k_dim) in [(mma.a, 1), (mma.b, 0)] {
            let Some(fragment) = plain_var(k, operand) else { continue };
            for &s in &stmts {
                let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
                let Some(view) = resolve_view(k, src).filter(|v| v.base == buffer) else { continue };
                let kept = view.base_dims();
                if plain_var(k, dst) == Some(fragment) && kept.len() == 2 {
                    let dim = kept[k_dim];
                    let rank = k.tile_ty(buffer)?.shape.len();
                    return [Order::Row, Order::Col].into_iter().find(|o| o.contiguous_dim(rank) == dim);
                }
            }
        }
    }
    None
}

/// Remarks on tiles that several warps each hold, load and compute completely, because the elements of a reduced row
/// must be in one warp.
fn remark_repeated(k: &Kernel, cx: &mut Cx<'_>, open: &[Value]) {
    let reduced = Reduced::of(k);
    for &v in open {
        let tile = k.tile_ty(v).expect("a register tile");
        let (layout, shape) = (tile.reg_layout.as_ref().expect("everything has a layout"), tile_shape(k, v));
        let (lanes, threads) = (WARP.ilog2() as usize, 1u64 << layout.thread_bits());
        let repeated = layout.thread().cols().iter().skip(lanes).filter(|&&c| c == 0).count();
        let axes = reduced.along(&shape);
        if repeated == 0 || axes.is_empty() || shape.iter().product::<u64>() < threads {
            continue;
        }
        let rows: u64 = (0..shape.len()).filter(|d| !axes.contains(d)).map(|d| shape[d]).product();
        let (times, warps) = (1u64 << repeated, threads / u64::from(WARP));
        let message = format!(
            "{times} warps load, hold and compute each element of `{}`: one warp reduces a row, and there are {rows} rows for {warps} warps",
            k.values[v].name
        );
        let note = format!("use `threads {}`, or a tile with more rows", (threads >> repeated).max(u64::from(WARP)));
        cx.remark_note(k.values[v].span, message, note);
    }
}

/// Refuses copies in which some threads would have more elements than others, because extents are no powers of two.
fn all_is_shared_out(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { continue };
        let Some(layout) = &attrs.threads else { continue };
        let shape = moved_shape(k, src, dst);
        // TMA copies the operands of wgmma, whatever the layout.
        if !layout.is_even(&shape) && !fills_operand(k, dst) {
            let message = format!(
                "this copy of {shape:?} elements cannot be divided evenly among the threads: an extent is not a power of two"
            );
            let note = "accumulators and operands of wgmma may have other numbers of columns; use the next power of two elsewhere: elements \
                        outside the tensor read as zero and are not written";
            result = Err(cx.report(Diagnostic::error(codes::TILE_EXTENT, k.stmt_spans[s], message).with_note(note)));
        }
    }
    result
}

/// Whether wgmma reads what a copy fills.
fn fills_operand(k: &Kernel, dst: Expr) -> bool {
    resolve_view(k, dst).is_some_and(|view| read_by_warpgroups(k, view.base))
}

/// Whether a copy gathers or scatters.
fn gathers(k: &Kernel, s: Stmt) -> bool {
    let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return false };
    [src, dst].into_iter().flat_map(|e| memory_views(k, e)).any(|view| view.is_gathered())
}

/// The layouts of tiles whose numbers index the producer's gathering copies, and which have no other use.
fn numbers_of_producer(k: &mut Kernel) {
    for s in all_stmts(k, k.body).into_iter().filter(|&s| k.plans[s].producer && gathers(k, s)).collect::<Vec<_>>() {
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { unreachable!("it is a copy") };
        let (view, shape) = (resolve_view(k, src).expect("the producer copies windows"), moved_shape(k, src, dst));
        let threads = attrs.threads.clone();
        let gathered = view.gathered_dims().into_iter().zip(producer_fills::index_tiles(k, src));
        for ((dim, _), rows) in gathered.collect::<Vec<_>>() {
            let layout = threads.as_ref().and_then(|layout| layout.alone(&log2_shape(&shape), dim));
            if let Some(tile) = k.tile_ty_mut(rows).filter(|tile| tile.reg_layout.is_none()) {
                tile.reg_layout = layout;
            }
        }
    }
}

/// Whether a subexpression gets a register tile whatever it reads: the operand of a reduction or scan, or a name that
/// is not a window.
fn needs_tile(k: &Kernel, e: Expr) -> bool {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match k.exprs[e] {
            ExprData::Reduce { .. } | ExprData::Scan { .. } => return true,
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Let) => {
                let is_tile = |e: Expr| fixed_shape(k, e).is_some_and(|shape| !shape.is_empty()) && !is_truth(k, e);
                if let Some(init) = k.let_init(v).filter(|&init| resolve_view(k, init).is_none()) {
                    if is_tile(init) {
                        return true;
                    }
                    parts.named(v);
                }
            }
            _ => parts.inside(e),
        }
    }
    false
}

/// Thread layouts of copies between two memories, for those that `which` selects.
fn memory_copies(k: &mut Kernel, cx: &mut Cx<'_>, threads: Threads, which: &dyn Fn(&Kernel, Stmt) -> bool) {
    let which: Vec<Stmt> = all_stmts(k, k.body).into_iter().filter(|&s| which(k, s)).collect();
    if which.is_empty() {
        return;
    }
    let facts = Facts::new(k);
    let unaligned = unaligned_copies(k, cx, &facts, threads, &which);
    for s in which {
        let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { continue };
        if attrs.threads.is_some() || !is_between_memories(k, src, dst, &attrs) {
            continue;
        }
        let shape = moved_shape(k, src, dst);
        // If the destination is in global memory, it decides what is coalesced.
        let views = [memory_views(k, dst), memory_views(k, src)].concat();
        let global = views.iter().find(|v| k.tensor_ty(v.base).is_some());
        let shared = views.iter().find(|v| k.tensor_ty(v.base).is_none());
        let contiguous = match (global, shared) {
            (Some(g), _) => window_contiguous_dim(k, g),
            (None, Some(v)) => smem_window_dim(k, v),
            (None, None) => None,
        }
        .unwrap_or(shape.len().saturating_sub(1));
        // A run of neighbours in both memories is moved as a whole. If the memories are contiguous along different
        // dimensions, a thread owns a block, accesses both memories in wide pieces, and transposes it in registers.
        let in_shared = views.iter().filter(|v| k.tensor_ty(v.base).is_none());
        let across = in_shared.filter_map(|v| smem_window_dim(k, v)).find(|&d| d != contiguous);
        // Elements that share a byte are stored as whole bytes.
        let least = memory_views(k, dst).iter().map(|v| known_elem(k, v.base).per(1)).max().unwrap_or(1);
        let between = || if across.is_some() { least } else { width_between(k, &facts, &views, &shape).max(least) };
        let width = global.map_or_else(between, |g| global_width(k, &facts, g, &shape).elems);
        let chunk = if cx.enabled { width.ilog2() } else { least.min(width).ilog2() };
        let shifted = unaligned.iter().find(|(at, _)| *at == s).map(|(_, layout)| layout.clone());
        let elem = shared.map_or(Elem::F32, |v| known_elem(k, v.base)).size();
        let scattered = across.is_some() && transposing_copies::applies(k, cx, s);
        let filling = Threads::that_fill(k, cx, &facts, s);
        let scalar = if shape.is_empty() { threads.scalar() } else { None };
        let found = scalar.or_else(|| {
            filling.unwrap_or(threads).distribute(&shape, &|part, threads| {
                let bits = log2_shape(part);
                match across {
                    None if filling.is_some() => thread_fills::layout(part, contiguous, chunk, threads),
                    Some(across) if scattered => transposing_copies::layout(k, s, &bits, contiguous, across, threads),
                    Some(across) => {
                        let least = least.min(width).ilog2();
                        blocked_evenly(part, (contiguous, across), (least, chunk), threads, elem)
                    }
                    // If threads would have different numbers of elements, fewer threads are placed along the extent.
                    // Copies of the producer are distributed later.
                    None => coalesced_of(least.min(width).ilog2(), &bits, contiguous, chunk, threads)
                        .filter(|found| found.is_even(part) || k.plans[s].producer && fills_operand(k, dst))
                        .or_else(|| thread_fills::layout(part, contiguous, chunk, threads)),
                }
            })
        });
        let layout = if shifted.is_some() { shifted } else { found };
        if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
            attrs.threads = layout;
        }
    }
}

/// The access width of a copy between windows of shared memory that are contiguous along one dimension. No thread is
/// idle for it.
fn width_between(k: &Kernel, facts: &Facts, views: &[ResolvedView], shape: &[u64]) -> u32 {
    let of = |view: &ResolvedView| {
        shared_width(k, facts, view, known_elem(k, view.base), shape, smem_window_dim(k, view)).elems
    };
    let width = views.iter().map(of).min().unwrap_or(1);
    let each = shape.iter().product::<u64>() / Threads::of(k).count();
    let most = u32::try_from(each.max(1)).unwrap_or(u32::MAX);
    1 << width.min(most).ilog2()
}

/// Copies that load aligned words and shift them, with their layouts. All possible copies do so if registers suffice
/// for all of their words, because loads of single elements take more registers.
fn unaligned_copies(
    k: &Kernel,
    cx: &mut Cx<'_>,
    facts: &Facts,
    threads: Threads,
    which: &[Stmt],
) -> Vec<(Stmt, RegLayout)> {
    let mut found = Vec::new();
    if !cx.enabled {
        return found;
    }
    let mut words = 0;
    for &s in which {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { continue };
        let shape = moved_shape(k, *src, *dst);
        let of = crate::unaligned::applies(k, facts, s, *src, *dst, attrs, &shape);
        let through_registers = !thread_fills::is_one(k, cx.options, facts, s);
        let Some(of) = of.filter(|_| attrs.vec.is_none() && attrs.threads.is_none() && through_registers) else {
            continue;
        };
        let make = |part: &[u64], threads: u32| crate::unaligned::layout(part, &of, threads);
        let filling = Threads::that_fill(k, cx, facts, s);
        if let Some(layout) = filling.unwrap_or(threads).distribute(&shape, &make) {
            words += of.registers(&layout);
            found.push((s, layout));
        }
    }
    let room = crate::unaligned::room(k, found.len() as u64);
    if words > room {
        for (s, _) in found.drain(..) {
            let message = format!(
                "rows that may be unaligned are loaded by narrow accesses: the aligned words that cover them would take {words} registers of each thread, and {room} are left"
            );
            cx.remark_note(k.stmt_spans[s], message, "use more threads or smaller tiles");
        }
    }
    found
}

/// Most words of registers that a tile may take in one thread. Beyond 255 the assembler spills; several times as many
/// are no useful kernel, and take the assembler minutes.
const MAX_WORDS: u64 = 4 * REGISTERS_PER_THREAD as u64;

/// Refuses tiles that no thread can hold.
fn everything_fits(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    for data in k.values.values() {
        let ValueDef::Var(tile) = &data.def else { continue };
        let (Some(layout), ElemRef::Known(elem)) = (&tile.reg_layout, tile.elem) else { continue };
        let words = elem.words(1 << layout.value_bits().min(40));
        if words > MAX_WORDS {
            result = Err(cx.report(
                Diagnostic::error(
                    codes::TOO_MANY_REGISTERS,
                    data.span,
                    format!(
                        "{} takes {words} registers of every thread, which has {REGISTERS_PER_THREAD}",
                        if data.declared { format!("`{}`", data.name) } else { "a tile for this statement".to_owned() }
                    ),
                )
                .with_note(match k.schedule_item("threads") {
                    Some(_) => "use a smaller tile, or more threads",
                    None => "use a smaller tile",
                }),
            ));
        }
    }
    result
}

/// Refuses a tile that has no layout after all rules, with its name.
fn everything_has_a_layout(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    for (v, data) in k.values.iter() {
        if unassigned(k, v) {
            result = Err(cx.report(
                Diagnostic::error(
                    codes::NO_LAYOUT,
                    data.span,
                    format!("no layout found for register tile `{}`", data.name),
                )
                .with_note("write one: `layout ((threads),(values)):((strides),(strides))`"),
            ));
        }
    }
    result
}

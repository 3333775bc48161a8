//! `stage-stores`: stores results of wgmma by TMA, from a buffer in shared memory.
//!
//! ```text
//! await c_tile, 0                              // the store of the tile before has read it
//! copy cast<f16>(alpha * acc) -> c_tile
//! copy c_tile -> C[bm * 128.., bn * 256..] tma
//! ..
//! await c_tile, 0                              // at the end
//! ```
//!
//! Threads write the buffer in the layout of the accumulator, which has no bank conflicts for rows of 128 bytes. Direct stores to global
//! memory would need an exchange between lanes. TMA stores the buffer while the products of the next tile run.
//!
//! A buffer takes the memory of slots: a tile is staged if [`LEAST_SLOTS`] remain, or as many as the schedule requests. A matrix that the
//! store reads is loaded by TMA too, through the slots of an operand ([`loads`]). Stores that read other matrices stay with threads, and so
//! do tensors that are loaded, or stored in another way, on the same path.
//!
//! If different branches store different tiles (a full tile, and one that contains rows of another owner), each store is decided separately. Tiles that begin at numbers from memory, whose windows do not show that
//! they are disjoint, are marked `apart` ([`mod@disjoint_tiles`]).
//!
//! If sizes are given and every block computes one tile, threads store, because there is nothing that TMA stores could overlap with.
//!
//! TMA cannot store tensors whose rows are not multiples of 16 bytes, padded tensors, and dimensions of several modes. Threads store their tiles from the buffer, in an order in
//! which the lanes of a warp have adjacent elements ([`thread_stores`]).
//!
//! Needs: wgmma products of `select-mma`. Switched off, or `stage_stores 0`: threads store.

mod disjoint_tiles;
mod loads;
mod thread_stores;

use crate::Cx;
use crate::analysis::access_width::{elem_of, known_elem};
use crate::analysis::conditions::{guarded, is_fixed};
use crate::analysis::facts::{Facts, contiguous_dim};
use crate::analysis::uses::{all_stmts, path_to, place_of};
use crate::analysis::views::{for_each_tile, memory_views};
use crate::assign_layouts::threads::Threads;
use crate::refusal::Refused;
use crate::roles::slots_room;
use crate::tensor_copies::{no_descriptor, slot_bytes};
use crate::tile_scheduler::tiles_and_blocks;
use loads::Load;
use thread_stores::{Destination, Pieces};
use tilec_ir::atomics::combination;
use tilec_ir::bits::Bits;
use tilec_ir::codes;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::diag::{Diagnostic, Reported, declare_where};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::hardware::{Exchange, panels, rows};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::placement;
use tilec_ir::target::MAX_TENSOR_RANK;
use tilec_ir::types::{ElemRef, Order, TileTy};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, resolve_view};

/// Fewest slots that must remain for the operands.
const LEAST_SLOTS: u64 = 3;
/// Buffers begin at multiples of this number of bytes.
pub(crate) const ALIGNED: u64 = 1024;

pub(crate) const NAME: &str = "stage-stores";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let asked = k.schedule.stage_stores.filter(|&e| k.as_int(e) == Some(1));
    if staged(k, cx, asked.is_some()) || !cx.enabled {
        return Ok(());
    }
    let Some(e) = asked else { return Ok(()) };
    let message = "no results are stored through a shared-memory buffer here".to_owned();
    let d = Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message);
    let note = "results of wgmma are (sm_90a), if shared memory has room for the buffer; `--remarks` without `stage_stores` says what is missing";
    Err(cx.report(d.with_note(note)))
}

/// Stages stores if possible; `asked`: even if it is not faster. The result says whether any store was staged.
fn staged(k: &mut Kernel, cx: &mut Cx<'_>, asked: bool) -> bool {
    let outer = guarded(k);
    let loops: Vec<usize> = (0..k.blocks[outer].len()).filter(|&i| multiplies(k, k.blocks[outer][i])).collect();
    if !cx.enabled || k.schedule.stage_stores.and_then(|e| k.as_int(e)) == Some(0) {
        return false;
    }
    let [at] = loops[..] else {
        if let Some(&second) = loops.get(1) {
            let span = k.stmt_spans[k.blocks[outer][second]];
            cx.remark(span, "results are stored directly from registers: products are accumulated in several loops");
        }
        return false;
    };
    let mut stores = Vec::new();
    for &s in &k.blocks[outer][at + 1..] {
        stores.push(s);
        for b in k.sub_blocks(s) {
            k.walk(b, &mut |_, _, s| stores.push(s));
        }
    }
    let facts = Facts::new(k);
    let deferred = Deferred::of(k);
    let at = k.blocks[outer][at];
    let swapped = swapped(k, at);
    let mut staged: Vec<Staged> = Vec::new();
    for &store in &stores {
        let StmtData::Copy { src, dst, .. } = k.stmts[store] else { continue };
        let Some(to) = resolve_view(k, dst).filter(|v| k.tensor_ty(v.base).is_some()) else { continue };
        let by = fits(k, &facts, &deferred, (store, &to), swapped).and_then(|pieces| match pieces {
            Some(pieces) => Ok(StoreKind::Threads { pieces, load: loads::like(k, &deferred, src, &to) }),
            None => {
                loads::of(k, cx, &facts, &deferred, at, (store, src, &to)).map(|load| StoreKind::Accelerator { load })
            }
        });
        match by {
            Ok(by) => staged.push(Staged { store, tensor: to.base, by }),
            Err(why) => remark(k, cx, store, to.base, why),
        }
    }
    let Some(&Staged { store: first, tensor, ref by }) = staged.first() else { return false };
    let accelerated = matches!(by, StoreKind::Accelerator { .. });
    if let Some(other) = staged.iter().find(|s| s.tensor != tensor) {
        remark(k, cx, other.store, other.tensor, "only one tensor is stored through a buffer, and that is another");
        staged.retain(|s| s.tensor == tensor);
    }
    // In a persistent grid, statements in front of the loop follow the stores of the previous tile.
    if let Some(other) =
        all_stmts(k, k.body).into_iter().find(|&s| accesses_tensor_otherwise(k, &deferred, s, (tensor, &staged)))
    {
        remark(k, cx, other, tensor, "the kernel loads it or stores to it elsewhere");
        return false;
    }
    let by_tma: Vec<Stmt> = staged.iter().map(|s| s.store).collect();
    let known = match accelerated {
        true => disjoint_tiles::of(k, &by_tma, &disjoint_tiles::others(k, tensor, &by_tma)),
        false => Ok(false),
    };
    let apart = match known {
        Ok(apart) => apart,
        Err(who) => {
            remark(k, cx, first, tensor, format!("{who}, and two TMA stores are not ordered"));
            return false;
        }
    };
    let slots = match room(k, cx, at, (first, tensor), accelerated) {
        Ok(slots) => slots,
        Err(why) => {
            remark(k, cx, first, tensor, Refused::room(why));
            return false;
        }
    };
    if !asked && accelerated && tiles_and_blocks(k, cx).is_some_and(|(tiles, blocks)| tiles <= blocks) {
        let why = "every block computes one tile, and would wait for the TMA store at its end";
        // Staging would not be faster.
        remark(k, cx, first, tensor, Refused::by_request(why));
        // The decision depends on sizes, so it is written to the text.
        k.schedule.stage_stores = Some(k.int(0, k.schedule.span));
        return false;
    }
    stage(k, first, tensor, &staged);
    if apart {
        disjoint_tiles::note(k, tensor);
    }
    let name = &k.values[tensor].name;
    let message =
        |who: &str| format!("`{name}`: {who} from a shared-memory buffer; {slots} slots of operands still fit");
    match no_boxes(k, &facts, tensor) {
        None => cx.remark(k.stmt_spans[first], message("TMA store")),
        Some((why, missing)) => {
            let refused = Refused::at(k.stmt_spans[first], format!("TMA cannot store it, {why}")).missing(&missing);
            refused.report(k, cx, &message("stores by threads"), (FastPath::Wide, vec![first]));
        }
    }
    true
}

/// Whether a loop ends with a wgmma product with operands in buffers, or one in a buffer and one in registers.
fn multiplies(k: &Kernel, s: Stmt) -> bool {
    let StmtData::For { body, unroll: false, .. } = k.stmts[s] else { return false };
    k.blocks[body].iter().any(|&s| product(k, s).is_some_and(|(a, b)| [a, b].into_iter().any(|v| is_buffer(k, v))))
}

fn is_buffer(k: &Kernel, v: Value) -> bool {
    matches!(k.values[v].def, ValueDef::Smem(_))
}

/// The operands of a wgmma product.
fn product(k: &Kernel, s: Stmt) -> Option<(Value, Value)> {
    let StmtData::Assign { src, .. } = k.stmts[s] else { return None };
    let ExprData::Mma(mma) = k.exprs[src] else { return None };
    let place = |e: Expr| resolve_view(k, e).map(|view| view.base);
    mma.atom.filter(|a| a.row().asynchronous())?;
    place(mma.a).zip(place(mma.b))
}

/// How a tile moves from the buffer to global memory, and the matrix that the store reads, if it is loaded in the same
/// way.
enum StoreKind {
    Accelerator { load: Option<Load> },
    Threads { pieces: Pieces, load: Option<ResolvedView> },
}

/// A staged store.
struct Staged {
    store: Stmt,
    tensor: Value,
    by: StoreKind,
}

/// Whether a thread has no two neighbours along the dimension `dim` of an accumulator tile, so that elements smaller
/// than a register would be written one by one. Neighbours are along columns, or along rows if the operands of products
/// are swapped.
pub(crate) fn has_no_neighbours(elem: Bits, dim: usize, swapped: bool) -> bool {
    elem.shares_registers() && dim != usize::from(!swapped)
}

/// Whether the products of a loop have swapped operands.
fn swapped(k: &Kernel, at: Stmt) -> bool {
    let StmtData::For { body, .. } = k.stmts[at] else { return false };
    k.blocks[body].iter().any(|&s| match k.stmts[s] {
        StmtData::Assign { src, .. } => matches!(&k.exprs[src], ExprData::Mma(mma) if mma.swap),
        _ => false,
    })
}

fn remark(k: &Kernel, cx: &mut Cx<'_>, s: Stmt, tensor: Value, why: impl Into<Refused>) {
    let what = format!("`{}` is stored by threads", k.values[tensor].name);
    why.into().report(k, cx, &what, (FastPath::StagedStores, vec![s]));
}

/// Whether TMA can store an accumulator tile, or threads must move it in pieces; `Err`: why it is not staged.
fn fits(
    k: &Kernel,
    facts: &Facts,
    deferred: &Deferred,
    (s, to): (Stmt, &ResolvedView),
    swapped: bool,
) -> Result<Option<Pieces>, String> {
    let StmtData::Copy { src, ref attrs, .. } = k.stmts[s] else { unreachable!("a store is a copy") };
    if *attrs != (CopyAttrs { reduce: attrs.reduce, ..CopyAttrs::default() }) {
        return Err("how they do is written".to_owned());
    }
    if let Some((op, elem)) = attrs.reduce.zip(elem_of(k, to.base))
        && !combination(op, elem).is_some_and(|c| c.tma)
    {
        return Err(format!("TMA has no such reduction for elements of {}", elem.name()));
    }
    let mut sums = Vec::new();
    for_each_tile(k, deferred, src, &mut |v| {
        if matches!(&k.values[v].def, ValueDef::Var(t) if !t.shape.is_empty()) {
            sums.push(v);
        }
    });
    let Some(shape) = fixed_shape(k, src) else { return Err("it has no extents".to_owned()) };
    if !sums.iter().any(|&v| k.tile_ty(v).and_then(|t| k.const_shape(&t.shape)).as_ref() == Some(&shape)) {
        return Err("it is no tile of registers".to_owned());
    }
    let Some(tensor) = k.tensor_ty(to.base) else { return Err("it is not a tensor".to_owned()) };
    if tensor.pointers || tensor.shape.len() > MAX_TENSOR_RANK {
        return Err(format!("it has several addresses, or more than {MAX_TENSOR_RANK} dimensions"));
    }
    if to.transposed || to.dims.iter().any(|d| matches!(d, ViewDim::From { end: Some(_), .. })) {
        return Err("the window is transposed, or has an end of its own".to_owned());
    }
    if to.is_gathered() {
        return Err("its rows are scattered (gathered rows)".to_owned());
    }
    // TMA stores allow no coordinates below 0 (PTX ISA 5.5.3).
    let ranges = Ranges::new(k);
    let least = |d: &ViewDim| d.starts().iter().map(|&e| Some(ranges.of(e)?.lo)).sum::<Option<i128>>();
    if to.dims.iter().any(|d| least(d).is_some_and(|least| least < 0)) {
        return Err("the window may begin in front of the tensor, as far as ranges tell".to_owned());
    }
    let window = contiguous_dim(k, to.base).and_then(|dim| to.base_dims().iter().position(|&d| d == dim));
    let (Some(dim), Some(elem)) = (window, elem_of(k, to.base)) else {
        return Err("the window has one element along its contiguous dimension".to_owned());
    };
    if panels(&shape, dim, elem.size(), true).is_none() {
        return Err(
            "rows of the tile are no multiples of 32 bytes, or neither the panels of it nor their rows are a power of two"
                .to_owned(),
        );
    }
    if elem.per(1) > 1 {
        return Err("its elements share bytes".to_owned());
    }
    if has_no_neighbours(elem.size(), dim, swapped) {
        return Err("a thread has no neighbours along its contiguous dimension".to_owned());
    }
    let Some((why, missing)) = no_boxes(k, facts, to.base) else {
        return match narrow(shape[dim], elem.size()) {
            true => Err("its panels would have rows of 32 bytes, which take longer than stores by threads".to_owned()),
            false => Ok(None),
        };
    };
    if attrs.reduce.is_some() {
        return Err(format!("it is a reduction into global memory, which TMA cannot do here: {why}"));
    }
    match thread_stores::of(&shape, dim, Threads::of(k).count()) {
        Some(pieces) => Ok(Some(pieces)),
        None if missing.is_empty() => Err(why),
        None => Err(format!("{why}; {}", declare_where(&missing))),
    }
}

/// Why TMA cannot store boxes to a tensor, and the precondition that would help, if any.
fn no_boxes(k: &Kernel, facts: &Facts, tensor: Value) -> Option<(String, String)> {
    let ty = k.tensor_ty(tensor)?;
    let why = match () {
        () if !ty.padded.is_empty() => "is padded",
        () if (0..ty.shape.len()).any(|d| ty.modes(d).is_some()) => "has a dimension of several modes",
        () => return no_descriptor(k, facts, tensor),
    };
    Some((format!("`{}` {why}", k.values[tensor].name), String::new()))
}

/// Whether TMA can store a tile from a buffer, with rows of such elements along `dim`: neither panels nor their rows
/// have gaps, and they are not [`narrow`]. Equivalent to [`panels`], without building the layout.
pub(crate) fn in_panels(shape: &[u64], dim: usize, elem: Bits) -> bool {
    let columns = shape[dim];
    let Some(exchange) = rows(columns, elem, true).filter(|_| !narrow(columns, elem)) else { return false };
    let others = shape.iter().enumerate().filter(|&(d, _)| d != dim);
    (elem.bytes_of(columns) / exchange.row_bytes()).is_power_of_two()
        || others.map(|(_, n)| n).all(|n| n.is_power_of_two())
}

/// Whether panels for rows of `count` elements are so narrow that TMA takes longer than threads: 8192x8192x8192 with
/// 256x176 tiles of 16-bit elements takes 5 % longer on an H200 than with stores by threads. Short rows are excluded.
fn narrow(count: u64, elem: Bits) -> bool {
    elem.bytes_of(count) > 2 * Exchange::Bytes128.row_bytes() && rows(count, elem, true) == Some(Exchange::Bytes32)
}

/// Whether a statement accesses the tensor in another way, on a path on which a store is staged.
fn accesses_tensor_otherwise(k: &Kernel, deferred: &Deferred, s: Stmt, (tensor, staged): (Value, &[Staged])) -> bool {
    let touches = |s: Stmt| {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return false };
        [src, dst].into_iter().any(|e| {
            let mut found = memory_views(k, e).iter().any(|v| v.base == tensor);
            for_each_tile(k, deferred, e, &mut |v| {
                found |= v == tensor
                    || tilec_ir::typing::let_init(k, v)
                        .and_then(|e| resolve_view(k, e))
                        .is_some_and(|v| v.base == tensor);
            });
            found
        })
    };
    staged.iter().all(|t| t.store != s) && touches(s) && !staged.iter().all(|t| exclusive(k, s, t.store))
}

/// Whether a block executes at most one of two statements: they are on different sides of a condition with one value.
fn exclusive(k: &Kernel, s: Stmt, t: Stmt) -> bool {
    let (a, b) = (path_to(k, s), path_to(k, t));
    let Some(fork) = a.iter().zip(&b).position(|(x, y)| x != y) else { return false };
    let Some(&(block, index)) = fork.checked_sub(1).and_then(|i| a.get(i)) else { return false };
    let different = a[fork].0 != b[fork].0;
    different && matches!(k.stmts[k.blocks[block][index]], StmtData::If { cond, .. } if is_fixed(k, cond))
}

/// Bytes of the buffer of a tile. Panels have exactly the tile's columns; buffers that only threads use have extents of
/// powers of two.
pub(crate) fn buffer_bytes(shape: impl IntoIterator<Item = u64>, elem: Bits, accelerated: bool) -> u64 {
    let extent = |n: u64| if accelerated { n } else { n.next_power_of_two() };
    elem.bytes_of(shape.into_iter().map(extent).fold(1, u64::saturating_mul))
}

/// The number of slots that remain next to the buffer, or why they are too few.
fn room(k: &Kernel, cx: &Cx<'_>, at: Stmt, (store, tensor): (Stmt, Value), accelerated: bool) -> Result<u64, String> {
    let StmtData::Copy { src, .. } = k.stmts[store] else { unreachable!("a store is a copy") };
    let shape = fixed_shape(k, src).expect("what is staged has extents");
    let tile = buffer_bytes(shape, known_elem(k, tensor).size(), accelerated);
    let StmtData::For { body, .. } = k.stmts[at] else { unreachable!("products are in a loop") };
    let mut operands: Vec<Value> = Vec::new();
    for s in all_stmts(k, body) {
        if let StmtData::Copy { dst, .. } = k.stmts[s]
            && let ExprData::Ref(v) = k.exprs[dst]
            && matches!(k.values[v].def, ValueDef::Smem(_))
            && !operands.contains(&v)
        {
            operands.push(v);
        }
    }
    let align = placement::alignment(k);
    let slot: u64 = operands.iter().map(|&v| slot_bytes(k, v).next_multiple_of(align)).sum();
    let limit = slots_room(k, cx.options.target);
    let left = limit.saturating_sub(tile.next_multiple_of(ALIGNED)) / slot.max(1);
    let asked = k.schedule.stages.and_then(|e| k.as_int(e)).and_then(|n| u64::try_from(n).ok());
    let wanted = asked.unwrap_or(LEAST_SLOTS);
    if left < wanted {
        return Err(format!("a buffer of {tile} bytes leaves {left} slot(s) for operands, and {wanted} are needed"));
    }
    Ok(asked.unwrap_or(left))
}

/// Declares the buffer, and stores through it.
fn stage(k: &mut Kernel, first: Stmt, tensor: Value, staged: &[Staged]) {
    let span = k.stmt_spans[first];
    let StmtData::Copy { src, dst, .. } = k.stmts[first] else { unreachable!("a store is a copy") };
    let (shape, elem) = (fixed_shape(k, src).expect("what is staged has extents"), known_elem(k, tensor));
    let to = resolve_view(k, dst).expect("a store is to a window");
    let shape = shape.iter().map(|&n| k.int(n as i64, span)).collect();
    // TMA does not transpose.
    let last = contiguous_dim(k, tensor).is_some_and(|d| to.base_dims().last() == Some(&d));
    let order = Some(if last { Order::Row } else { Order::Col });
    let tile = TileTy { elem: ElemRef::Known(elem), shape, order, reg_layout: None, partial: None, smem_layout: None };
    let name = format!("{}_tile", k.values[tensor].name.to_lowercase());
    let buffer = k.value(&name, span, ValueDef::Smem(tile));
    let top = path_to(k, first).first().map_or(0, |&(_, index)| index);
    for Staged { store: s, by, .. } in staged {
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[*s] else { unreachable!("a store is a copy") };
        let reduce = attrs.reduce;
        let (block, index) = place_of(k, *s);
        let span = k.stmt_spans[*s];
        let window = resolve_view(k, dst);
        let mut stmts = Vec::new();
        match by {
            StoreKind::Accelerator { load } => {
                stmts.extend(load.iter().flat_map(|load| loads::load(k, *s, src, load)));
                stmts.push(k.stmt(StmtData::Await { value: buffer, pending: 0, after: Vec::new() }, span));
            }
            StoreKind::Threads { pieces, load } => {
                if let Some(from) = load {
                    stmts.extend(pieces.copy(k, Destination::Load, (buffer, elem), from, span));
                    loads::replace(k, src, from, buffer);
                }
            }
        }
        let place = k.value_ref(buffer, span);
        stmts.push(k.stmt(StmtData::Copy { src, dst: place, attrs: CopyAttrs::default() }, span));
        match (by, window) {
            (StoreKind::Threads { pieces, .. }, Some(to)) => {
                stmts.extend(pieces.copy(k, Destination::Store, (buffer, elem), &to, span));
            }
            _ => {
                let src = k.value_ref(buffer, span);
                let attrs = CopyAttrs { reduce, ..CopyAttrs::tensor() };
                stmts.push(k.stmt(StmtData::Copy { src, dst, attrs }, span));
            }
        }
        k.blocks[block].splice(index..=index, stmts);
    }
    let alloc = k.stmt(StmtData::Alloc { value: buffer, over: Vec::new() }, span);
    let body = k.body;
    // After the other declarations, like its address, but in front of its first use.
    let others = k.blocks[body][..top].iter().rposition(|&s| matches!(k.stmts[s], StmtData::Alloc { .. }));
    k.blocks[body].insert(others.map_or(0, |i| i + 1), alloc);
    if staged.iter().any(|s| matches!(s.by, StoreKind::Accelerator { .. })) {
        let wait = k.stmt(StmtData::Await { value: buffer, pending: 0, after: Vec::new() }, span);
        k.blocks[body].push(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_where_a_layout_of_them_is() {
        for elem in [4, 16, 32].map(Bits::new) {
            for rows in [16, 32, 48, 64, 96, 128, 192, 256] {
                for cols in (16..=256).step_by(8) {
                    let found = panels(&[rows, cols], 1, elem, true).is_some() && !narrow(cols, elem);
                    assert_eq!(in_panels(&[rows, cols], 1, elem), found, "{rows}x{cols} of {elem}");
                }
            }
        }
    }
}

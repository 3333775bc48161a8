//! Copies by the threads of the producer warps, in loops with wgmma: those that TMA cannot do, but `cp.async` can, 16
//! bytes at a time. Examples are windows of convolutions, and matrices at addresses of their own.
//!
//! The threads of the producer divide such a tile as a block's threads would, and write it in the swizzled layout that
//! the products read ([`tilec_ir::layout::hardware`]).
//!
//! Narrower copies do not keep up with the products: an instruction of 32 lanes takes some 7 clocks of a
//! multiprocessor, with 4 or with 16 bytes a lane (1111x2222x3336 with 4 bytes: 47 us on an H200, 40 us with a copy of
//! B to aligned rows in front of the product).

use crate::Options;
use crate::analysis::access_width::{elem_of, window_contiguous_dim};
use crate::analysis::facts::Facts;
use crate::analysis::wgmma::read_by_warpgroups;
use crate::refusal::Refused;
use crate::tensor_copies;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::layout::hardware::panels;
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::target::Target;
use tilec_ir::typing::{ResolvedView, resolve_view};

/// Checks that threads can fill `buffer` from a window. The error says why not.
pub(crate) fn fits(
    k: &Kernel,
    facts: &Facts,
    target: Target,
    from: &ResolvedView,
    buffer: Value,
    attrs: &CopyAttrs,
) -> Result<(), Refused> {
    let name = &k.values[from.base].name;
    if !target.has_asynchronous_copies() || *attrs != CopyAttrs::default() {
        return Err(Refused::by_request(format!("how `{name}` is copied is written")));
    }
    let (Some(own), Some(elem)) = (elem_of(k, from.base), elem_of(k, buffer)) else {
        return Err("its types are not known".into());
    };
    if own != elem {
        return Err(format!("the copy of `{name}` converts").into());
    }
    let shape = k.tile_ty(buffer).and_then(|t| k.const_shape(&t.shape));
    let Some(shape) = shape else { return Err("its extents are not known".into()) };
    tensor_copies::wide(k, facts, from, &shape)?;
    tensor_copies::in_order(k, from, buffer, &shape)?;
    let along = window_contiguous_dim(k, from);
    match along.and_then(|d| panels(&shape, d, elem.size(), false)) {
        Some(_) => Ok(()),
        None => Err(tensor_copies::short_rows(k, from, buffer, (&shape, along))
            .unwrap_or_else(|| format!("the layout of `{name}`'s tile would have gaps").into())),
    }
}

/// Whether a copy fills a buffer that wgmma products read and TMA cannot fill: some copy to it is not possible by TMA,
/// and all its slots are filled in one way.
pub(crate) fn is_one(k: &Kernel, options: &Options, facts: &Facts, s: Stmt) -> bool {
    let StmtData::Copy { ref attrs, .. } = k.stmts[s] else { return false };
    let Some((from, buffer)) = fills_buffer(k, s) else { return false };
    let of_buffer = matches!(k.values[buffer].def, ValueDef::Smem(_)) && read_by_warpgroups(k, buffer);
    let by_tma = |from: &ResolvedView| {
        tensor_copies::fits(k, facts, options.target, from, buffer, &CopyAttrs::default()).is_ok()
    };
    let every = || k.statements().into_iter().filter_map(|s| fills_buffer(k, s)).filter(|(_, to)| *to == buffer);
    of_buffer && attrs.is_by_threads() && elem_of(k, from.base).is_some() && !every().all(|(from, _)| by_tma(&from))
}

/// The window of a tensor that a copy loads to a whole buffer, and the buffer.
fn fills_buffer(k: &Kernel, s: Stmt) -> Option<(ResolvedView, Value)> {
    let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return None };
    let ExprData::Ref(buffer) = k.exprs[dst] else { return None };
    let from = resolve_view(k, src).filter(|v| k.tensor_ty(v.base).is_some())?;
    Some((from, buffer))
}

/// Whether the producer of a kernel has such copies, or will have.
pub(crate) fn any(k: &Kernel, options: &Options) -> bool {
    let facts = Facts::new(k);
    k.statements().into_iter().any(|s| fills_slot(k, s) || is_one(k, options, &facts, s))
}

/// Whether a copy fills a slot of a channel from a tensor, by the threads of its role.
pub(crate) fn fills_slot(k: &Kernel, s: Stmt) -> bool {
    let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return false };
    let slot = matches!(&k.exprs[dst], ExprData::View(v) if v.slot == Some(Slot::Put));
    slot && attrs.is_by_threads() && resolve_view(k, src).is_some_and(|v| k.tensor_ty(v.base).is_some())
}

/// The layout of such a copy. A thread has `2^chunk` neighbours along `contiguous`. Neighbouring threads have
/// neighbouring chunks, up to the largest power of two that divides the row, and then further rows, likewise. So all
/// threads have the same number of elements; the remaining threads are replicas.
pub(crate) fn layout(shape: &[u64], contiguous: usize, chunk: u32, threads: u32) -> Option<RegLayout> {
    let bits = shape_bits(shape);
    // The columns of a dimension: within its largest power of two, and above it.
    let columns = |dim: usize| {
        let base: u32 = bits[..dim].iter().sum();
        let all: Vec<u64> = (base..base + bits[dim]).map(|b| 1u64 << b).collect();
        let whole = shape[dim].trailing_zeros().min(bits[dim]) as usize;
        let (near, far) = all.split_at_checked(whole)?;
        Some((near.to_vec(), far.to_vec()))
    };
    let (near, mut far) = columns(contiguous)?;
    let (mut value, mut order) =
        near.split_at_checked((chunk as usize).min(near.len())).map(|(v, o)| (v.to_vec(), o.to_vec()))?;
    for dim in (0..bits.len()).rev().filter(|&d| d != contiguous) {
        let (rows, groups) = columns(dim)?;
        order.extend(rows);
        far.extend(groups);
    }
    let owned = (threads as usize).min(order.len());
    let mut thread: Vec<u64> = order.drain(..owned).collect();
    thread.resize(threads as usize, 0);
    value.extend(order);
    value.extend(far);
    RegLayout::new(value, thread, bits.iter().sum())
}

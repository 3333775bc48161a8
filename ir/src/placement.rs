//! Where buffers and channels are in a block's shared memory: `let a = smem f16[64, 64] at 1024`.
//!
//! Channels that are operated together form a *ring*: slot `n` of each is in stage `n`, so one position tells where all of them stand. Their places
//! are those of the first slots, their strides the bytes of a stage.

use crate::entities::Value;
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::layout::hardware;
use crate::types::{Elem, ElemRef, TileTy};

/// One row of the 32 banks. Nothing begins elsewhere than at multiples of it, so the lower bits of an address are those within the tile.
pub const ROW_ALIGN: u64 = 128;

/// The distance at which rows of 128 bytes exchange their pieces in the same way again: TMA copies and wgmma products tell them by their addresses.
pub const EXCHANGE_ALIGN: u64 = 1024;

/// Bytes of an mbarrier.
pub const BARRIER_BYTES: u64 = 8;

/// The shared memory of a block at most, on any target.
pub const MAX_BYTES: u64 = 1 << 20;

/// Alignment of the buffers and slots of a kernel.
pub fn alignment(k: &Kernel) -> u64 {
    let tensor = k.statement_data().any(|s| matches!(s, StmtData::Copy { attrs, .. } if attrs.is_tensor()));
    if tensor || multiplies_by_warpgroups(k) { EXCHANGE_ALIGN } else { ROW_ALIGN }
}

/// Whether products of a kernel read slots through the asynchronous proxy.
pub fn multiplies_by_warpgroups(k: &Kernel) -> bool {
    let product = |e: &ExprData| match e {
        ExprData::Mma(mma) => mma.atom.is_some_and(|a| a.row().asynchronous()),
        _ => false,
    };
    // Most kernels have none, not even one that was taken out.
    k.exprs.values().any(product) && k.expressions().into_iter().any(|e| product(&k.exprs[e]))
}

/// Whether a value is a buffer or a channel.
pub fn is_shared(k: &Kernel, v: Value) -> bool {
    k.values[v].def.space().is_of_block()
}

/// Slots of a channel; 1 for a buffer. `None` where they are not known, or it is neither.
pub fn slots(k: &Kernel, v: Value) -> Option<u64> {
    match k.values[v].def {
        ValueDef::Smem(_) => Some(1),
        ValueDef::Channel { slots, .. } => k.as_int(slots).and_then(|n| u64::try_from(n).ok()),
        _ => None,
    }
}

/// Bytes of a buffer, or of one slot; `None` where its type or its extents are not known.
pub fn tile_bytes(k: &Kernel, v: Value) -> Option<u64> {
    let tile: &TileTy = k.tile_ty(v).filter(|_| is_shared(k, v))?;
    let ElemRef::Known(elem) = tile.elem else { return None };
    if elem == Elem::Bool {
        return None;
    }
    let shape = k.const_shape(&tile.shape)?;
    Some(hardware::tile_bytes(tile.smem_layout.as_ref(), &shape, elem.size()))
}

/// The bytes of a placed buffer or of each slot of a placed channel, as half-open ranges in ascending order.
pub fn ranges(k: &Kernel, v: Value) -> Vec<(u64, u64)> {
    let (Some(place), Some(bytes), Some(slots)) = (k.shared_places[v], tile_bytes(k, v), slots(k, v)) else {
        return Vec::new();
    };
    let stride = place.stride.unwrap_or(0);
    let start = |n: u64| place.offset.saturating_add(n.saturating_mul(stride));
    (0..slots.min(1024)).map(|n| (start(n), start(n).saturating_add(bytes))).collect()
}

/// Whether two lists of ranges in ascending order have a byte in common.
pub fn overlap(a: &[(u64, u64)], b: &[(u64, u64)]) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.0 < y.1 && y.0 < x.1 {
            return true;
        }
        if x.1 <= y.1 { i += 1 } else { j += 1 }
    }
    false
}

/// Where everything that is placed ends.
pub fn end(k: &Kernel) -> u64 {
    let align = alignment(k);
    k.values.keys().filter_map(|v| Some(ranges(k, v).last()?.1.next_multiple_of(align))).max().unwrap_or(0)
}

/// The bytes of the mbarriers of a channel's slots.
pub fn barrier_range(k: &Kernel, v: Value) -> Option<(u64, u64)> {
    let start = k.shared_places[v]?.barriers?;
    Some((start, start.saturating_add(2 * BARRIER_BYTES * slots(k, v)?)))
}

/// Where the slots and the mbarriers of all channels, and all buffers, end.
pub fn end_with_barriers(k: &Kernel) -> u64 {
    k.values.keys().filter_map(|v| Some(barrier_range(k, v)?.1)).fold(end(k), u64::max)
}

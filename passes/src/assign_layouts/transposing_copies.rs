//! Transposing copies to shared memory by `cp.async`, without registers.
//!
//! Asynchronous copies move at least 4 bytes, so elements of 4 or 8 bytes can be copied one by one to their places. The
//! lanes of a warp own a sector (32 bytes) of global memory along the tensor's contiguous dimension, times a run of 16
//! bytes along the buffer's. So reads cover whole sectors. The writes of one instruction can be free of bank conflicts
//! while runs of 16 bytes stay together for the readers of the buffer (the swizzle search finds how).

use crate::Cx;
use crate::analysis::access_width::{elem_of, known_elem};
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::layout::RegLayout;
use tilec_ir::target::is_asynchronous_access;
use tilec_ir::typing::resolve_view;

/// Bytes of the longest access.
pub(super) const WIDE: u32 = 16;
/// Bank bits above a run of 16 bytes: 128 bytes of banks.
pub(super) const UNITS: u32 = 3;

/// Whether the copy will be asynchronous, with elements of a size that such copies can move.
pub(super) fn applies(k: &Kernel, cx: &Cx<'_>, s: Stmt) -> bool {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { unreachable!("it is a copy") };
    let (Some(from), Some(to)) = (resolve_view(k, *src), resolve_view(k, *dst)) else { return false };
    let (elem, stored) = (known_elem(k, from.base), known_elem(k, to.base));
    cx.enabled
        && cx.options.target.has_asynchronous_copies()
        && k.tensor_ty(from.base).is_some()
        && elem == stored
        && attrs.reduce.is_none()
        && attrs.vec.is_none_or(|vec| vec == 1)
        && is_asynchronous_access(elem.size(), 1)
        && (attrs.is_asynchronous() || crate::pipeline::asynchronous(k, cx.options, s))
}

/// Single elements: lanes along `first` (contiguous in global memory), then along `second` (contiguous in the buffer);
/// further threads along `second`. Each thread has the rest, along `first` before `second`.
pub(super) fn layout(
    k: &Kernel,
    s: Stmt,
    dim_bits: &[u32],
    first: usize,
    second: usize,
    threads: u32,
) -> Option<RegLayout> {
    let StmtData::Copy { src, .. } = k.stmts[s] else { unreachable!("it is a copy") };
    let run = elem_of(k, resolve_view(k, src)?.base)?.per(WIDE).ilog2();
    let columns = |dim: usize, from: u32| {
        let base: u32 = dim_bits[..dim].iter().sum();
        let from = from.min(dim_bits[dim]);
        (base + from..base + dim_bits[dim]).map(|b| 1u64 << b).collect::<Vec<u64>>()
    };
    let sector = columns(first, 0).into_iter().take(UNITS as usize);
    let piece = columns(second, 0).into_iter().take(run as usize);
    let others = (0..dim_bits.len()).rev().filter(|&d| d != first && d != second).flat_map(|d| columns(d, 0));
    let mut order: Vec<u64> = sector.chain(piece).chain(columns(second, run)).chain(others).collect();
    let total: u32 = dim_bits.iter().sum();
    let mut rest = columns(first, UNITS);
    // Threads that remain after all of `second` is distributed go along `first`.
    let missing = (threads as usize).saturating_sub(order.len()).min(rest.len());
    order.extend(rest.drain(..missing));
    let owned = (threads as usize).min(order.len());
    let mut thread: Vec<u64> = order.drain(..owned).collect();
    thread.resize(threads as usize, 0);
    RegLayout::new([rest, order].concat(), thread, total)
}

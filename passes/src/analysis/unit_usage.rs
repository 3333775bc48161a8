//! Use of hardware units that schedules do not count, because other warps or asynchronous hardware use them: copies
//! from tensors.

use crate::analysis::uses::all_stmts;
use crate::choose::Card;
use tilec_ir::entities::{Block, Value};
use tilec_ir::iteration_time::UNCACHED;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{copy_shape, fixed_shape, resolve_view};

/// Bytes that shared memory moves per clock.
const SHARED: u64 = 128;
/// Most bytes per clock that a multiprocessor loads from the second-level cache.
const PORT: f64 = 64.0;

/// Bytes that an iteration moves.
#[derive(Default)]
struct Bytes {
    /// Between tensors and the multiprocessor.
    moved: u64,
    /// Part of `moved` that TMA copies.
    tensor: u64,
    /// Written to shared memory.
    filled: u64,
    /// Read from shared memory by wgmma.
    multiplied: u64,
}

/// Clocks of tensor copies, the second-level cache and memory, and of shared memory if `wgmma` reads it.
pub(crate) fn unmodelled_clocks(k: &Kernel, card: &Card, body: Block) -> Vec<(&'static str, u64)> {
    let mut bytes = Bytes::default();
    for s in all_stmts(k, body) {
        match k.stmts[s] {
            StmtData::Copy { src, dst, ref attrs } => {
                let tensor = |e| resolve_view(k, e).map(|v| v.base).filter(|&v| k.tensor_ty(v).is_some());
                let Some(v) = tensor(src).or_else(|| tensor(dst)) else { continue };
                let of = copy_shape(k, src, dst).map_or(0, |shape| of_elements(k, v, shape.iter().product()));
                bytes.moved += of;
                bytes.tensor += if attrs.is_tensor() { of } else { 0 };
                let shared = resolve_view(k, dst).is_some_and(|v| v.space(k).is_of_block());
                bytes.filled += if shared { of } else { 0 };
            }
            StmtData::Assign { src, .. } => {
                let ExprData::Mma(mma) = &k.exprs[src] else { continue };
                if !mma.atom.is_some_and(|a| a.row().asynchronous()) {
                    continue;
                }
                let shared = |e| resolve_view(k, e).filter(|v| v.space(k).is_of_block());
                let extents = |e| fixed_shape(k, e);
                // Warpgroups divide the rows of A, and each reads all of B.
                let rows = extents(mma.a).map_or(1, |shape| shape[0].div_ceil(64));
                for (e, times) in [(mma.a, 1), (mma.b, rows)] {
                    let (Some(view), Some(shape)) = (shared(e), extents(e)) else { continue };
                    bytes.multiplied += times * of_elements(k, view.base, shape.iter().product());
                }
            }
            _ => {}
        }
    }
    let clocks = |bytes: u64, rate: f64| (bytes as f64 / rate) as u64;
    let sms = f64::from(card.sms);
    let shared = if bytes.multiplied > 0 { (bytes.filled + bytes.multiplied) / SHARED } else { 0 };
    let all = [
        ("shared memory", shared),
        ("tensor copies", clocks(bytes.tensor, PORT)),
        ("second-level cache", clocks(bytes.moved, card.l2 / sms)),
        (UNCACHED, clocks(bytes.moved, card.dram / card.clock / sms)),
    ];
    all.into_iter().filter(|&(_, n)| n > 0).collect()
}

/// Bytes of so many elements of a tensor, buffer or tile.
pub(crate) fn of_elements(k: &Kernel, v: Value, n: u64) -> u64 {
    match k.values[v].def.elem() {
        Some(ElemRef::Known(elem)) => elem.bytes_of(n),
        _ => 0,
    }
}

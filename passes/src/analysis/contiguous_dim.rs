//! The contiguous dimension of a shared-memory tile, before its layout is decided.

use super::facts::contiguous_dim;
use super::uses::all_stmts;
use crate::analysis::views::plain_var;
use crate::assign_layouts::log2_shape;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::types::Order;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};

/// The contiguous dimension of a shared-memory tile. The first of these that exists:
///
/// 1. as written;
/// 2. that of the tensor to which a TMA store moves the tile;
/// 3. that of the tensor from which it is filled;
/// 4. the dimension along which a thread owns adjacent elements of the register tile from which it is filled.
pub(crate) fn smem_contiguous(k: &Kernel, buffer: Value) -> Option<usize> {
    let tile = k.tile_ty(buffer)?;
    if let Some(layout) = &tile.smem_layout {
        return (0..tile.shape.len()).find(|&d| layout.dim_cols(d).first() == Some(&1));
    }
    if let Some(order) = tile.order {
        return Some(order.contiguous_dim(tile.shape.len()));
    }
    stored_dim(k, buffer)
        .or_else(|| source_order(k, buffer).map(|o| o.contiguous_dim(tile.shape.len())))
        .or_else(|| register_run(k, buffer))
}

/// The dimension that is contiguous in the tensor to which a TMA store moves a buffer: TMA does not transpose.
pub(crate) fn stored_dim(k: &Kernel, buffer: Value) -> Option<usize> {
    all_stmts(k, k.body).into_iter().find_map(|s| {
        let (_, tensor) = tensor_store(k, s).filter(|&(b, _)| b == buffer)?;
        let StmtData::Copy { dst, .. } = k.stmts[s] else { unreachable!("a TMA store is a copy") };
        let dim = contiguous_dim(k, tensor)?;
        resolve_view(k, dst)?.base_dims().iter().position(|&d| d == dim)
    })
}

/// The dimension along which threads own neighbours in most of the register tiles that a buffer is copied from and to;
/// the first in the text of equals.
fn register_run(k: &Kernel, buffer: Value) -> Option<usize> {
    let rank = k.tile_ty(buffer)?.shape.len();
    let mut dims: Vec<usize> = (0..rank).collect();
    let mut met = false;
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        for (memory, register) in [(dst, src), (src, dst)] {
            let Some(view) = resolve_view(k, memory).filter(|v| v.base == buffer) else { continue };
            let Some(runs) = plain_var(k, register).and_then(|v| owned_runs(k, v)) else { continue };
            let kept = view.base_dims();
            let common: Vec<usize> =
                dims.iter().copied().filter(|d| runs.iter().any(|&r| kept.get(r) == Some(d))).collect();
            met = true;
            if !common.is_empty() {
                dims = common;
            }
        }
    }
    dims.last().copied().filter(|_| met)
}

/// The dimensions along which a thread owns neighbours in a register tile.
fn owned_runs(k: &Kernel, v: Value) -> Option<Vec<usize>> {
    let tile = k.tile_ty(v)?;
    let layout = tile.reg_layout.as_ref()?;
    let mut base = 0;
    let mut runs = Vec::new();
    for (d, bits) in log2_shape(&k.const_shape(&tile.shape)?).into_iter().enumerate() {
        if bits > 0 && (0..layout.value_bits()).any(|i| layout.value_col(i) == 1 << base) {
            runs.push(d);
        }
        base += bits;
    }
    Some(runs)
}

/// Whether a buffer is filled from a register tile as a whole.
pub(crate) fn filled_from_registers(k: &Kernel, buffer: Value) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return false };
        matches!(k.exprs[dst], ExprData::Ref(v) if v == buffer) && plain_var(k, src).is_some()
    })
}

/// The dimension of a window of a buffer along which its elements are contiguous.
pub(crate) fn smem_window_dim(k: &Kernel, view: &ResolvedView) -> Option<usize> {
    let dim = smem_contiguous(k, view.base)?;
    view.base_dims().iter().position(|&d| d == dim)
}

/// The order of the tensor from which a buffer of rank 2 is filled.
pub(crate) fn source_order(k: &Kernel, buffer: Value) -> Option<Order> {
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let (Some(from), Some(to)) = (resolve_view(k, src), resolve_view(k, dst)) else { continue };
        if to.base != buffer || k.tensor_ty(from.base).is_none() {
            continue;
        }
        // The window may have dropped dimensions, so the position among the remaining ones counts.
        let dim = contiguous_dim(k, from.base)?;
        let mut kept = Vec::new();
        for (d, range) in from.dims.iter().enumerate() {
            if !matches!(range, ViewDim::Fixed(_)) {
                kept.push(d);
            }
        }
        let position = kept.iter().position(|&d| d == dim)?;
        let last = position + 1 == kept.len();
        let order = if last { Order::Row } else { Order::Col };
        return Some(if from.transposed != to.transposed { order.flipped() } else { order });
    }
    None
}

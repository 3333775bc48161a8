//! Shared-memory operands of scalar products.
//!
//! A thread multiplies every row of its fragment of A with every column of its fragment of B, one reduction index after
//! the other. Tiles are stored with the rows of A (the columns of B) contiguous. So the rows of a thread for one index
//! are read 16 bytes at a time, and the fragments are one index deep. A tensor that is contiguous along the reduction
//! is transposed on its way to shared memory.

use super::Cx;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::types::Order;
use tilec_ir::typing::resolve_view;

/// Gives the buffer of operand `e` that order, unless the text has an order. `k_dim`: the operand's reduction
/// dimension.
pub(super) fn order_operand(k: &mut Kernel, cx: &mut Cx<'_>, e: Expr, k_dim: usize) {
    let Some(view) = resolve_view(k, e) else { return };
    let (ValueDef::Smem(tile) | ValueDef::Channel { tile, .. }) = &k.values[view.base].def else { return };
    let (&[d0, d1], rank) = (&view.base_dims()[..], tile.shape.len()) else { return };
    if tile.order.is_some() || tile.smem_layout.is_some() {
        return;
    }
    let outer = if k_dim == 0 { d1 } else { d0 };
    let Some(order) = [Order::Row, Order::Col].into_iter().find(|o| o.contiguous_dim(rank) == outer) else { return };
    let transposed = crate::analysis::contiguous_dim::source_order(k, view.base).is_some_and(|source| source != order);
    if let Some(tile) = k.tile_ty_mut(view.base) {
        tile.order = Some(order);
    }
    if transposed {
        let message = format!(
            "the copy transposes `{0}` into shared memory: scalar products read neighbouring rows or columns of one \
             reduction index",
            k.values[view.base].name
        );
        cx.remark(k.values[view.base].span, message);
    }
}

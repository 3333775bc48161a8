//! Grid axes with a fixed number of blocks: `grid (i: ceildiv(rows[0], 64) over 132)`.
//!
//! The host does not know the contents of tensors, so it cannot compute such an extent. The grid has as many blocks as
//! `over` says, and each takes every 132nd index. `write_out` replaces the axis by `grid (i_block: 132)`, and adds `for
//! i in i_block..ceildiv(rows[0], 64) step 132 { .. }` around the body.

use crate::diag::Span;
use crate::entities::{Expr, Value};
use crate::kernel::{GridAxis, Kernel, StmtData, ValueDef};

/// An axis that blocks walk along.
pub(super) struct PersistentAxis {
    /// The index, a loop's variable.
    pub(super) index: Value,
    /// How far it goes.
    pub(super) end: Expr,
    /// How many blocks there are.
    pub(super) blocks: Expr,
}

/// Has the grid count the blocks of these axes, and loops around the body the indices; the first axis is the outermost.
pub(super) fn write_out(k: &mut Kernel, walks: Vec<(usize, PersistentAxis)>) {
    for (at, PersistentAxis { index, end, blocks }) in walks.into_iter().rev() {
        let span: Span = k.values[index].span;
        let name = format!("{}_block", k.values[index].name);
        let block = k.value(&name, span, ValueDef::Grid);
        let (start, step) = (k.value_ref(block, span), k.copy_expr(blocks));
        let stmts = std::mem::take(&mut k.blocks[k.body]);
        let body = k.block(stmts);
        let walk = StmtData::For { var: index, start, end, step, cond: None, next: None, unroll: false, body };
        let walk = k.stmt(walk, k.expr_spans[end]);
        k.blocks[k.body] = vec![walk];
        k.grid.insert(at.min(k.grid.len()), GridAxis { index: block, extent: blocks });
    }
}

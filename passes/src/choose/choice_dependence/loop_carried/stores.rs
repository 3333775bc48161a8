//! Stores inside a loop over tiles that are independent of the tile size.

use super::super::uniform::is_uniform;
use super::dependence_kind::Kind;
use super::tiles::Tiles;
use tilec_ir::atomics::Combining;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::ops::ReduceOp;
use tilec_ir::typing::resolve_view;

/// The reduction that corresponds to a combining copy.
pub(super) fn reduction(op: Combining) -> Option<ReduceOp> {
    match op {
        Combining::Add => Some(ReduceOp::Sum),
        Combining::Max => Some(ReduceOp::Maximum),
        Combining::Min => Some(ReduceOp::Minimum),
        Combining::Exchange => None,
    }
}

impl Tiles<'_> {
    /// Records a store to a tensor whose result depends on the tiles.
    pub(super) fn store(&mut self, s: Stmt, kind: Kind, [src, dst]: [Expr; 2], attrs: &CopyAttrs) {
        let Some(view) = resolve_view(self.k, dst) else { return };
        self.shape = self.shape_of(src);
        let axes = self.moves(dst, &view);
        self.shape = None;
        let combines = attrs.reduce.map(reduction);
        // The old value depends on the tiles before.
        let fine = attrs.old.is_none()
            && axes.is_some_and(|axes| match (combines, kind) {
                (None | Some(Some(_)), Kind::Each { axes: own, .. }) => own == axes,
                (None | Some(Some(ReduceOp::Sum)), Kind::Zero) => true,
                // Each tile would add it to the same element; for extremes, repetitions do not matter.
                (Some(Some(ReduceOp::Sum)), Kind::Fixed) if axes == 0 => false,
                (None | Some(Some(_)), Kind::Zero | Kind::Fixed) => {
                    (0..32).filter(|d| axes >> d & 1 == 1).all(|d| is_uniform(self.k, src, d))
                }
                (Some(Some(op)), Kind::Part(own)) => axes == 0 && own == op,
                _ => false,
            });
        if fine {
            self.stores.remove(&s);
        } else {
            self.stores.insert(s, kind.is_carried());
        }
    }
}

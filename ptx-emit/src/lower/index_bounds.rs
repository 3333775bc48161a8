//! Indices that are provably inside the extents of a tensor, and clamping of others.

use super::ranged_ints::{Int, fits32};
use super::state::Lower;
use crate::inst::{Class, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::index_values::is_of_value;
use tilec_ir::kernel::{ExprData, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim};

impl Lower<'_> {
    /// Whether index `e` is always inside the extent of dimension `d` of the window's tensor: it is the index of a grid
    /// axis, or of a loop from 0, of that extent.
    pub(super) fn inside_extent(&self, view: &ResolvedView, d: usize, e: Expr) -> bool {
        let k = self.k;
        let (ExprData::Ref(v), Some(t)) = (&k.exprs[e], k.tensor_ty(view.base)) else { return false };
        let same = |other: Expr| tilec_ir::print::print_expr(k, other) == tilec_ir::print::print_expr(k, t.shape[d]);
        let axis = k.grid.iter().any(|axis| axis.index == *v && same(axis.extent));
        axis || k.statement_data().any(|s| match s {
            StmtData::For { var, start, end, .. } => var == v && k.as_int(*start).is_some_and(|s| s >= 0) && same(*end),
            _ => false,
        })
    }

    /// The predicate that single indices of a window that are computed from numbers are in range; `None`: always.
    pub(super) fn named_inside(&mut self, view: &ResolvedView) -> Result<Option<Reg>, Reported> {
        let mut all = None;
        for (d, dim) in view.dims.iter().enumerate() {
            let &ViewDim::Fixed(e) = dim else { continue };
            if !is_of_value(self.k, e) || self.inside_extent(view, d, e) {
                continue;
            }
            let extent = self.k.tensor_ty(view.base).expect("a window of a tensor").shape[d];
            let (index, extent) = (self.index(e)?, self.index(extent)?);
            let inside = self.unsigned_less(index, extent);
            all = self.emit.and(all, inside);
        }
        Ok(all)
    }

    /// `0 <= a < b`; `None` if that always holds.
    pub(super) fn unsigned_less(&mut self, a: Int, b: Int) -> Option<Reg> {
        if a.lo >= 0 && a.hi < b.lo {
            return None;
        }
        // As an unsigned number, a negative bound would exceed every index.
        let b = if b.lo < 0 { self.int_op(Op::Max, b, Int::constant(0)).expect("a maximum fits") } else { b };
        if fits32(a.lo, a.hi) && fits32(b.lo, b.hi) {
            let (a, b) = (self.in32(a), self.as32(b));
            return Some(self.emit.pure(Class::Pred, P::SetpLtU32, [a.into(), b]));
        }
        let (a, b) = (self.in64(a), self.as64(b));
        Some(self.emit.pure(Class::Pred, P::SetpLtU64, [a.into(), b]))
    }

    /// The index, clamped to `0..extent`.
    pub(super) fn cut_off(&mut self, index: Int, extent: Int) -> Int {
        let one = Int::constant(1);
        let last = self.int_op(Op::Sub, extent, one).expect("an extent fits 64 bits");
        let most = self.int_op(Op::Min, index, last).expect("a minimum fits");
        self.int_op(Op::Max, most, Int::constant(0)).expect("a maximum fits")
    }
}

//! Ends of windows of shared memory.
//!
//! `s[k.., 0..n]` has the elements of the buffer in front of `n`: elements past the end read as zero and are not
//! written. A buffer has no bounds check, so elements in front of the end must be inside the buffer
//! ([`Lower::check_inside`]). If the window begins past the end, its address is not used.

use super::dims::Dims;
use super::ranged_ints::Int;
use super::state::Lower;
use super::windows::{Coordinate, SharedWindow};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::index::Interval;
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::Op as IrOp;
use tilec_ir::tile_bounds::Reach;
use tilec_ir::typing::{ResolvedView, ViewDim};

/// The end of a window along a dimension.
pub(super) fn end_of(dim: &ViewDim) -> Option<Expr> {
    match dim {
        ViewDim::From { end, .. } => *end,
        ViewDim::Fixed(_) | ViewDim::Gather(_) => None,
    }
}

impl Lower<'_> {
    /// The predicates of the groups (by their first register index): their elements are in front of the ends of a
    /// window of shared memory, and their indices name elements of the buffer. `None`: always.
    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn shared_bounds(
        &mut self,
        view: &ResolvedView,
        layout: &RegLayout,
        (dim_bits, w): (&Dims, &SharedWindow),
        firsts: &[usize],
    ) -> Result<Vec<Option<Reg>>, Reported> {
        let mut all = vec![None; firsts.len()];
        let extents = self.k.tile_ty(view.base).and_then(|t| self.k.const_shape(&t.shape)).expect("specialised");
        for added in &w.carried {
            let Coordinate::Indices(rows) = &added.coordinate else { continue };
            let limit = Int::constant(extents[view.base_dims()[added.dim]].cast_signed());
            for (all, &v) in all.iter_mut().zip(firsts) {
                let inside = self.unsigned_less(rows.of(added.own(v)), limit);
                *all = self.emit.and(*all, inside);
            }
        }
        let mut shift = 0;
        for (&d, &bits) in view.base_dims().iter().zip(dim_bits.iter()) {
            let mask = (1u64 << bits) - 1;
            let at = shift;
            shift += bits;
            let Some(end) = end_of(&view.dims[d]) else { continue };
            let tid = self.tid();
            let columns: Vec<u64> = (0..layout.thread_bits()).map(|i| layout.thread_col(i) >> at & mask).collect();
            let reach = columns.iter().fold(0, |all, c| all | c);
            let thread = self.linear_map(tid, &columns);
            let limit = self.index(end)?;
            let mut start = Int::constant(0);
            for &e in view.dims[d].starts() {
                let x = self.index(e)?;
                start = self.int_op(IrOp::Add, start, x).ok_or_else(|| self.too_far_out(e))?;
            }
            for (all, &v) in all.iter_mut().zip(firsts) {
                let own = layout.at(0, v as u64) >> at & mask;
                let within = match thread.as_const() {
                    Some(thread) => Int::constant(thread ^ own as i64),
                    None => {
                        let thread = self.in32(thread);
                        let x = self.emit.pure(Class::B32, P::XorB32, [thread.into(), Operand::Imm(own as i64)]);
                        Int::r32(x, 0, i128::from(reach | own))
                    }
                };
                let coordinate = self.sum(view, start, within)?;
                let inside = self.unsigned_less(coordinate, limit);
                *all = self.emit.and(*all, inside);
            }
        }
        Ok(match all.iter().any(Option::is_some) {
            true => self.pack(all, None),
            false => all,
        })
    }

    /// The start of a window in dimension `d`. All elements in front of the window's end are inside the buffer, or the
    /// start is past the end.
    ///
    /// # Errors
    /// An element may be outside of the buffer.
    pub(super) fn check_inside(
        &mut self,
        view: &ResolvedView,
        d: usize,
        (start, at, aligned): (Int, Expr, bool),
        extent: u64,
        tile: i128,
    ) -> Result<Int, Reported> {
        // The first and the last possible start; aligned starts are multiples of the extent.
        let Interval { lo: first, hi: last } = match aligned {
            true => start.interval().multiples_of(extent),
            false => start.interval(),
        };
        let end = match end_of(&view.dims[d]) {
            Some(end) => Some(self.index(end)?.interval().hi),
            None => None,
        };
        let reach = Reach { start: Interval { lo: first, hi: last }, extent, end };
        if let Some(error) = reach.error(self.k, (view.base, d), tile, self.k.expr_spans[at]) {
            return Err(self.sink.report(error));
        }
        let clamped = if last < tile { None } else { self.int_op(IrOp::Min, start, Int::constant(tile as i64 - 1)) };
        Ok(clamped.unwrap_or(start))
    }
}

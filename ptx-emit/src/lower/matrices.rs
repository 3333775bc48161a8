//! 8x8 matrices of 16-bit elements between shared memory and fragments: `ldmatrix`, and the parts that `stmatrix`
//! shares.
//!
//! Each lane gives the address of a row of 16 bytes. Each register of a fragment is a lane's part of one matrix
//! ([`matrix_load`]). Both instructions visit the matrices of a fragment in the same order.

use super::dims::Dims;
use super::state::Lower;
use super::tile::{Held, Tile};
use super::window_ends::end_of;
use super::windows::{Access, Window};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::layout::matrix::{MatrixLoad, matrix_load};
use tilec_ir::layout::{RegLayout, UsedRegisters};
use tilec_ir::space::Space;
use tilec_ir::types::Elem;
use tilec_ir::typing::ResolvedView;

impl Lower<'_> {
    /// Loads a fragment by `ldmatrix`: each lane gives the address of a row of 16 bytes, and each register is a lane's
    /// part of an 8x8 matrix.
    pub(super) fn load_matrices(
        &mut self,
        s: Stmt,
        src: Expr,
        from: &ResolvedView,
        tile: &Tile,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        if !self.target.has_matrix_loads() {
            let message = format!("{} does not load matrices: `ldmatrix` needs sm_75", self.target.name());
            let d = Diagnostic::error(codes::BAD_COPY, self.k.stmt_spans[s], message);
            return Err(self.sink.report(d.with_note("without `matrix` each thread loads its own elements")));
        }
        let load = self.contiguous(from).and_then(|dim| {
            let base: u32 = tile.dim_bits.get(..dim)?.iter().sum();
            matrix_load(&tile.layout, 1 << base, tile.elem.bits())
        });
        let words = tile.regs.iter().all(|&r| self.emit.func.regs[r] == Class::B32);
        let Some(load) = load.filter(|_| words && from.space(self.k).is_of_block()) else {
            return Err(self.unfit(src, "`matrix` on a fragment that `ldmatrix` does not load"));
        };
        let op = match (load.matrix_bits.len(), load.trans) {
            (0, false) => P::LdmatrixX1,
            (0, true) => P::LdmatrixX1Trans,
            (1, false) => P::LdmatrixX2,
            (1, true) => P::LdmatrixX2Trans,
            (_, false) => P::LdmatrixX4,
            (_, true) => P::LdmatrixX4Trans,
        };
        let Some(elem) = self.elem(from.base).filter(|&e| e == tile.elem) else {
            return Err(self.unfit(src, "`matrix` on a copy that converts elements"));
        };
        let mut access = self.matrix_access(from, &load, &tile.dim_bits, elem)?;
        self.report_copy(s, src, from, &access, elem, attrs, false);
        for outer in self.outer_matrices(src, &load, &tile.layout, &tile.dim_bits)? {
            let address = self.address(&mut access, outer)?;
            let regs: Vec<Reg> = load.words(outer).map(|v| tile.regs[v / tile.per_register]).collect();
            self.emit.push(op, [Operand::Vec(regs), address]);
        }
        Ok(())
    }

    /// The instructions whose matrices are inside the tile.
    pub(super) fn outer_matrices(
        &mut self,
        e: Expr,
        matrices: &MatrixLoad,
        layout: &RegLayout,
        dim_bits: &Dims,
    ) -> Result<Vec<usize>, Reported> {
        let held = UsedRegisters::of(layout, dim_bits.extents());
        let mut inside = Vec::new();
        for outer in 0..1usize << matrices.outer_bits.len() {
            let mut words = matrices.words(outer).map(|v| held.as_ref().map(|held| held.has(v)));
            match words.next() {
                Some(Some(has)) if words.all(|other| other == Some(has)) => inside.extend(has.then_some(outer)),
                _ => return Err(self.unfit(e, "`matrix` on several matrices, some past the end of the tile")),
            }
        }
        Ok(inside)
    }

    /// The access to the rows whose addresses the lanes give.
    pub(super) fn matrix_access(
        &mut self,
        view: &ResolvedView,
        matrices: &MatrixLoad,
        dim_bits: &Dims,
        elem: Elem,
    ) -> Result<Access, Reported> {
        if let Some(end) = view.dims.iter().find_map(end_of) {
            return Err(self.unfit(end, "`matrix` on a window that has an end, which matrices do not stop at"));
        }
        let window = self.shared_window(view, &matrices.rows, dim_bits, elem)?;
        Ok(Access {
            window: Window::Shared(window),
            space: Space::Smem,
            layout: matrices.rows.clone(),
            groups: (0..1usize << matrices.outer_bits.len()).map(|o| vec![o]).collect(),
            preds: Vec::new(),
            held: Held::new(),
            fill: None,
            dim_bits: dim_bits.clone(),
        })
    }
}

//! 8x8 matrices of 16-bit elements between shared memory and fragments: `ldmatrix` and `stmatrix`.
//!
//! The lanes name rows of 16 bytes, each register of a fragment is a lane's share of a matrix ([`matrix_load`]). Both walk over the
//! matrices of a fragment in the same order.

use super::Lower;
use super::copy::{Access, Source, Window};
use super::dims::Dims;
use super::elementwise::Scope;
use super::tiles::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::layout::matrix::{MatrixLoad, matrix_load};
use tilec_ir::layout::{Held, RegLayout};
use tilec_ir::space::Space;
use tilec_ir::types::Elem;
use tilec_ir::typing::ResolvedView;

impl Lower<'_> {
    /// `ldmatrix`: the lanes name rows of 16 bytes, each register of the fragment is a share of an 8x8 matrix.
    pub(super) fn load_matrices(
        &mut self,
        s: Stmt,
        src: Expr,
        from: &ResolvedView,
        tile: &Tile,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        if !self.target.has_matrix_loads() {
            let message = format!("{} does not load matrices: `ldmatrix` came with sm_75", self.target.name());
            let d = Diagnostic::error(codes::BAD_COPY, self.k.stmt_spans[s], message);
            return Err(self.sink.report(d.with_note("without `matrix` each thread loads its own elements")));
        }
        let load = self.contiguous(from).and_then(|dim| {
            let base: u32 = tile.dim_bits.get(..dim)?.iter().sum();
            matrix_load(&tile.layout, 1 << base, tile.elem.bits())
        });
        let words = tile.regs.iter().all(|&r| self.emit.func.regs[r] == Class::B32);
        let Some(load) = load.filter(|_| words && from.space(self.k).is_of_block()) else {
            return Err(self.unsupported(src, "`matrix` on a fragment that `ldmatrix` does not load"));
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
            return Err(self.unsupported(src, "a converting load of matrices"));
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

    /// `stmatrix`: the same way back.
    pub(super) fn store_matrices(
        &mut self,
        s: Stmt,
        dst: Expr,
        to: &ResolvedView,
        source: &Source<'_>,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        if !self.target.has_matrix_stores() {
            let message = format!("{} does not store matrices: `stmatrix` came with sm_90", self.target.name());
            let d = Diagnostic::error(codes::BAD_COPY, self.k.stmt_spans[s], message);
            return Err(self.sink.report(d.with_note("without `matrix` each thread stores its own elements")));
        }
        let scope = match source {
            Source::Tile(t) => Scope { layout: t.layout.clone(), dim_bits: t.dim_bits.clone() },
            Source::Elementwise(_, scope) => (*scope).clone(),
        };
        let elem = self.elem(to.base).filter(|e| e.bits() == 16);
        let store = self.contiguous(to).and_then(|dim| {
            let base: u32 = scope.dim_bits.get(..dim)?.iter().sum();
            matrix_load(&scope.layout, 1 << base, 16)
        });
        let (Some(elem), Some(store)) = (elem, store.filter(|_| to.space(self.k).is_of_block())) else {
            return Err(self.unsupported(dst, "`matrix` on what `stmatrix` does not store"));
        };
        let mut operands = match source {
            Source::Elementwise(e, scope) => Some(self.operands(*e, scope, &CopyAttrs::default(), None)?),
            Source::Tile(_) => None,
        };
        if operands.as_mut().is_some_and(|o| !o.take_unlike(&[]).is_empty()) {
            return Err(self.unsupported(dst, "`matrix` on a store of what is read from memory"));
        }
        let op = match (store.matrix_bits.len(), store.trans) {
            (0, false) => P::StmatrixX1,
            (0, true) => P::StmatrixX1Trans,
            (1, false) => P::StmatrixX2,
            (1, true) => P::StmatrixX2Trans,
            (_, false) => P::StmatrixX4,
            (_, true) => P::StmatrixX4Trans,
        };
        let mut access = self.matrix_access(to, &store, &scope.dim_bits, elem)?;
        self.report_copy(s, dst, to, &access, elem, attrs, true);
        for outer in self.outer_matrices(dst, &store, &scope.layout, &scope.dim_bits)? {
            let group: Vec<usize> = store.words(outer).flat_map(|v| [v, v + 1]).collect();
            let words = match (source, &mut operands) {
                (Source::Elementwise(e, _), Some(operands)) => match self.tile_of(*e).filter(|t| t.elem == elem) {
                    Some(tile) => self.registers_of(&tile, &group).unwrap_or_default(),
                    None => {
                        let computed = self.compute_group(*e, operands, outer, &group)?;
                        let from = self.elem_of_expr(*e);
                        let raw = self.narrow_words(dst, computed, (from, elem))?;
                        self.packed(raw)
                    }
                },
                (Source::Tile(t), _) => self.registers_of(t, &group).unwrap_or_default(),
                (Source::Elementwise(..), None) => Vec::new(),
            };
            if words.len() != 1 << store.matrix_bits.len() {
                return Err(self.unsupported(dst, "`matrix` on registers that hold no pairs"));
            }
            let address = self.address(&mut access, outer)?;
            self.emit.push(op, [address, Operand::Vec(words)]);
        }
        Ok(())
    }

    /// The instructions whose matrices are in the tile.
    fn outer_matrices(
        &mut self,
        e: Expr,
        matrices: &MatrixLoad,
        layout: &RegLayout,
        dim_bits: &Dims,
    ) -> Result<Vec<usize>, Reported> {
        let held = Held::of(layout, dim_bits.extents());
        let mut inside = Vec::new();
        for outer in 0..1usize << matrices.outer_bits.len() {
            let mut words = matrices.words(outer).map(|v| held.as_ref().map(|held| held.has(v)));
            match words.next() {
                Some(Some(has)) if words.all(|other| other == Some(has)) => inside.extend(has.then_some(outer)),
                _ => return Err(self.unsupported(e, "`matrix` on several matrices of which some are beyond the tile")),
            }
        }
        Ok(inside)
    }

    /// The rows that the lanes name.
    fn matrix_access(
        &mut self,
        view: &ResolvedView,
        matrices: &MatrixLoad,
        dim_bits: &Dims,
        elem: Elem,
    ) -> Result<Access, Reported> {
        let window = self.shared_window(view, &matrices.rows, dim_bits, elem)?;
        Ok(Access {
            window: Window::Shared(window),
            space: Space::Smem,
            layout: matrices.rows.clone(),
            groups: (0..1usize << matrices.outer_bits.len()).map(|o| vec![o]).collect(),
            preds: Vec::new(),
            fill: None,
            dim_bits: dim_bits.clone(),
        })
    }
}

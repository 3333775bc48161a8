//! Stores of register tiles and expressions to windows of memory, by `stmatrix` where fragments consist of matrices.

use super::accesses::{store_op, vector};
use super::operands::Operands;
use super::packing::Pairs;
use super::scope::Scope;
use super::state::Lower;
use super::tile::{Tile, class_of};
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, ExprData};
use tilec_ir::layout::matrix::matrix_load;
use tilec_ir::space::Space;
use tilec_ir::types::Elem;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};

/// The values to store.
pub(super) enum Source<'a> {
    Tile(&'a Tile),
    Elementwise(Expr, &'a Scope),
}

impl Source<'_> {
    /// The layout of the values.
    fn scope(&self) -> Scope {
        match self {
            Source::Tile(t) => Scope { layout: t.layout.clone(), dim_bits: t.dim_bits.clone() },
            Source::Elementwise(_, scope) => (*scope).clone(),
        }
    }
}

/// The values, prepared for computation group by group.
enum Values<'a> {
    Held(&'a Tile),
    Computed(Expr, Box<Operands>, Option<Elem>),
}

impl Lower<'_> {
    /// Stores values into a window, group by group.
    pub(super) fn store(
        &mut self,
        s: Stmt,
        dst: Expr,
        to: &ResolvedView,
        source: &Source<'_>,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        let Some(elem) = self.elem(to.base) else { return Err(self.unsupported(dst, "this element type")) };
        if class_of(elem).is_none() {
            return Err(self.unsupported(dst, "elements of this type in registers"));
        }
        if attrs.is_matrix() {
            return self.store_matrices(s, dst, to, source, attrs);
        }
        self.passed = self.passed_barrier(to)?;
        let combine = attrs.reduce.map(|op| self.combining(dst, op, (elem, to.space(self.k)))).transpose()?;
        let Scope { layout, dim_bits } = source.scope();
        let mut access = self.access(dst, to, &layout, &dim_bits, attrs, None)?;
        self.report_copy(s, dst, to, &access, elem, attrs, true);
        let replicas = self.storing_threads(&layout, access.space, attrs);
        // An operand may alias the destination: a thread that does not write an element must not read it while another
        // one writes it.
        let only = if access.space.has_bounds() { replicas } else { None };
        let mut old = attrs.old.map(|old| self.old_values(old, &layout, &dim_bits, replicas)).transpose()?;
        let mut values = match source {
            Source::Tile(tile) => Values::Held(tile),
            Source::Elementwise(e, scope) => {
                let operands = self.stored_operands(s, *e, scope, attrs, only, &access.groups)?;
                Values::Computed(*e, Box::new(operands), self.elem_of_expr(*e))
            }
        };
        let same = match source {
            Source::Tile(tile) => Some((*tile).clone()),
            Source::Elementwise(e, _) => self.tile_of(*e),
        }
        // A single number is stored to each element.
        .filter(|tile| tile.elem == elem && tile.layout == layout);
        let mut pairs = Pairs::default();
        let groups = std::mem::take(&mut access.groups);
        let preds = access.preds.clone();
        for (g, (group, pred)) in groups.iter().zip(preds).enumerate() {
            self.load_before_stores(&mut values, access.space, (g, &groups))?;
            if elem.bits() == 4 {
                let nibbles: Vec<(Reg, usize)> = match &same {
                    Some(tile) => group.iter().map(|&v| tile.nibble_of(v)).collect(),
                    None => {
                        let (found, from) = self.values_of_group(&mut values, (g, group), elem)?;
                        self.narrow_all(dst, found, (from, elem))?.into_iter().map(|r| (r, 0)).collect()
                    }
                };
                let address = self.address(&mut access, group[0])?;
                let pred = self.emit.and(pred, replicas);
                self.store_nibbles(dst, access.space, address, &nibbles, pred)?;
                continue;
            }
            if elem.bits() == 8 {
                let bytes: Vec<(Reg, usize)> = match &same {
                    Some(tile) => group.iter().map(|&v| tile.byte_of(v)).collect(),
                    None => {
                        let (found, from) = self.values_of_group(&mut values, (g, group), elem)?;
                        self.narrow_all(dst, found, (from, elem))?.into_iter().map(|r| (r, 0)).collect()
                    }
                };
                let address = self.address(&mut access, group[0])?;
                let pred = self.emit.and(pred, replicas);
                self.store_bytes(dst, access.space, address, &bytes, pred, &mut pairs)?;
                continue;
            }
            let regs = match same.as_ref().and_then(|tile| self.registers_of(tile, group)) {
                Some(regs) => regs,
                None => {
                    let raw = match &same {
                        Some(tile) if group.len() == 1 => vec![self.half_to_store(tile, group[0])],
                        Some(tile) => group.iter().map(|&v| self.raw(tile, v)).collect(),
                        None => {
                            let (found, from) = self.values_of_group(&mut values, (g, group), elem)?;
                            self.narrow_words(dst, found, (from, elem))?
                        }
                    };
                    if raw.len() > 1 { self.packed(raw) } else { raw }
                }
            };
            let class = self.emit.func.regs[regs[0]];
            let op = match &combine {
                Some(combine) => combine.op(group.len()),
                None => store_op(access.space, class, regs.len()),
            };
            let Some(op) = op else { return Err(self.unsupported(dst, "an access of this width")) };
            let address = self.address(&mut access, group[0])?;
            let pred = self.emit.and(pred, replicas);
            match &combine {
                Some(combine) => self.combine(combine, old.as_mut(), (group[0], op), (address, regs), pred)?,
                None => self.store_or_pass(pred, op, address, vector(regs))?,
            }
        }
        Ok(())
    }

    /// Loads what the next groups read, in front of the stores of the group `g` to memory of the grid. Beside
    /// accumulators there are no registers for it.
    fn load_before_stores(
        &mut self,
        values: &mut Values<'_>,
        to: Space,
        (g, groups): (usize, &[Vec<usize>]),
    ) -> Result<(), Reported> {
        match values {
            Values::Computed(_, operands, _) if to.has_bounds() && !self.multiplies() => {
                self.load_early(operands, groups, g)
            }
            _ => Ok(()),
        }
    }

    fn multiplies(&self) -> bool {
        self.k.exprs.values().any(|e| matches!(e, ExprData::Mma(_)))
    }

    /// The mbarrier that counts the bytes that the statement stores to the last block of the cluster.
    fn passed_barrier(&mut self, to: &ResolvedView) -> Result<Option<Reg>, Reported> {
        match (self.cluster_place(to.base), to.dims.first()) {
            (Some(place), Some(&ViewDim::Fixed(index))) => self.entry_barrier((to.base, place), index).map(Some),
            _ => Ok(None),
        }
    }

    /// The operands of an expression that is stored. Windows whose accesses cover other elements than those of the
    /// destination are loaded as a whole.
    fn stored_operands(
        &mut self,
        s: Stmt,
        e: Expr,
        scope: &Scope,
        attrs: &CopyAttrs,
        only: Option<Reg>,
        groups: &[Vec<usize>],
    ) -> Result<Operands, Reported> {
        let mut operands = self.operands(e, scope, attrs, only)?;
        for (e, elem) in operands.take_differing_windows(groups) {
            let Some(view) = resolve_view(self.k, e) else { return Err(self.unsupported(e, "this window")) };
            let Some(tile) = self.new_tile(elem, scope.layout.clone(), scope.dim_bits.clone(), true) else {
                return Err(self.unsupported(e, "elements of this type in registers"));
            };
            self.load(s, e, &view, &tile, &CopyAttrs { keep: false, ..attrs.clone() }, only)?;
            operands.provide(e, tile);
        }
        Ok(operands)
    }

    /// The elements of a group, to be converted to type `to`, and the type in which they are computed.
    fn values_of_group(
        &mut self,
        values: &mut Values<'_>,
        (g, group): (usize, &[usize]),
        to: Elem,
    ) -> Result<(Vec<Reg>, Option<Elem>), Reported> {
        match values {
            Values::Held(tile) => Ok((group.iter().map(|&v| self.get(tile, v)).collect(), Some(tile.elem))),
            Values::Computed(e, operands, elem) => Ok((self.compute_group_for(to, *e, operands, (g, group))?, *elem)),
        }
    }

    /// An element of a packed register for a 16-bit store, which takes the low half of a register: an upper half is
    /// shifted down. (With unpacked halves, ptxas keeps more registers live.)
    fn half_to_store(&mut self, tile: &Tile, v: usize) -> Reg {
        if v.is_multiple_of(2) || !tile.packed() {
            return self.raw(tile, v);
        }
        let low = self.emit.def(Class::B32, P::ShrU32, [tile.regs[v / 2].into(), Operand::Imm(16)]);
        let (half, rest) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![half, rest]), low.into()]);
        half
    }

    /// Stores a fragment by `stmatrix`.
    fn store_matrices(
        &mut self,
        s: Stmt,
        dst: Expr,
        to: &ResolvedView,
        source: &Source<'_>,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        if !self.target.has_matrix_stores() {
            let message = format!("{} does not store matrices: `stmatrix` needs sm_90", self.target.name());
            let d = Diagnostic::error(codes::BAD_COPY, self.k.stmt_spans[s], message);
            return Err(self.sink.report(d.with_note("without `matrix` each thread stores its own elements")));
        }
        if self.ctas() > 1 {
            return Err(self.unfit(dst, "`matrix` on a store to the memory of several blocks (`ctas`)"));
        }
        let scope = source.scope();
        let elem = self.elem(to.base).filter(|e| e.bits() == 16);
        let store = self.contiguous(to).and_then(|dim| {
            let base: u32 = scope.dim_bits.get(..dim)?.iter().sum();
            matrix_load(&scope.layout, 1 << base, 16)
        });
        let (Some(elem), Some(store)) = (elem, store.filter(|_| to.space(self.k).is_of_block())) else {
            return Err(self.unfit(dst, "`matrix` on what `stmatrix` does not store"));
        };
        let mut operands = match source {
            Source::Elementwise(e, scope) => Some(self.operands(*e, scope, &CopyAttrs::default(), None)?),
            Source::Tile(_) => None,
        };
        if operands.as_mut().is_some_and(|o| !o.take_differing_windows(&[]).is_empty()) {
            return Err(self.unfit(dst, "`matrix` on a store of what is read from memory"));
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
        // Warps whose fragment another warp stores do nothing. Lanes of a warp have different rows, so the predicate is
        // uniform.
        let only = self.replica_predicate(&scope.layout).map(|reg| Guard { reg, negated: false });
        for outer in self.outer_matrices(dst, &store, &scope.layout, &scope.dim_bits)? {
            let group: Vec<usize> = store.words(outer).flat_map(|v| [v, v + 1]).collect();
            let words = match (source, &mut operands) {
                (Source::Elementwise(e, _), Some(operands)) => match self.tile_of(*e).filter(|t| t.elem == elem) {
                    Some(tile) => self.registers_of(&tile, &group).unwrap_or_default(),
                    None => {
                        let computed = self.compute_group_for(elem, *e, operands, (outer, &group))?;
                        let from = self.elem_of_expr(*e);
                        let raw = self.narrow_words(dst, computed, (from, elem))?;
                        self.packed(raw)
                    }
                },
                (Source::Tile(t), _) => self.registers_of(t, &group).unwrap_or_default(),
                (Source::Elementwise(..), None) => Vec::new(),
            };
            if words.len() != 1 << store.matrix_bits.len() {
                return Err(self.unfit(dst, "`matrix` on registers that hold no pairs"));
            }
            let address = self.address(&mut access, outer)?;
            self.emit.push_if(only, op, [address, Operand::Vec(words)]);
        }
        Ok(())
    }
}

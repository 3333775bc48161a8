//! Loads: windows of memory into register tiles.

use super::accesses::{guard, load_op, vector};
use super::state::Lower;
use super::tile::{Held, Tile, class_of, groups};
use super::windows::Access;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::types::Elem;
use tilec_ir::typing::ResolvedView;

impl Lower<'_> {
    /// Loads a window into a tile, converting if the element types differ; `only`: see [`Lower::access`].
    pub(super) fn load(
        &mut self,
        s: Stmt,
        src: Expr,
        from: &ResolvedView,
        tile: &Tile,
        attrs: &CopyAttrs,
        only: Option<Reg>,
    ) -> Result<(), Reported> {
        let Some(elem) = self.elem(from.base) else { return Err(self.unsupported(src, "this element type")) };
        if class_of(elem).is_none() {
            return Err(self.unsupported(src, "elements of this type in registers"));
        }
        if attrs.is_matrix() {
            return self.load_matrices(s, src, from, tile, attrs);
        }
        let mut access = self.access(src, from, &tile.layout, &tile.dim_bits, attrs, only)?;
        self.report_copy(s, src, from, &access, elem, attrs, false);
        if elem == tile.elem {
            let groups = std::mem::take(&mut access.groups);
            let preds = access.preds.clone();
            let held = std::mem::take(&mut access.held);
            if elem.bits() == 4 {
                return self.load_nibbles(src, &mut access, &groups, &preds, tile, attrs.keep);
            }
            if elem.bits() == 8 {
                return self.load_bytes(src, &mut access, &groups, &preds, tile, attrs.keep);
            }
            if tile.packed() && attrs.vec.unwrap_or(1) == 1 {
                return self.load_halves(&mut access, (&groups, &held), &preds, tile, attrs.keep);
            }
            if !held.is_empty() {
                let loaded = |v: &usize| groups.iter().any(|group| group.contains(v));
                let taken: Vec<usize> = tile.elements().into_iter().filter(|v| !loaded(v)).collect();
                self.take(tile, &taken, &held);
            }
            if !groups.iter().all(|g| self.registers_of(tile, g).is_some()) {
                return self.load_across(src, &mut access, &groups, &preds, tile, attrs.keep);
            }
            for (group, pred) in groups.iter().zip(preds) {
                let regs = self.registers_of(tile, group).expect("asked above");
                let class = self.emit.func.regs[regs[0]];
                let Some(op) = load_op(access.space, class, regs.len()) else {
                    return Err(self.unsupported(src, "an access of this width"));
                };
                let address = self.address(&mut access, group[0])?;
                if pred.is_some() && !attrs.keep {
                    for &r in &regs {
                        self.fill_reg(r, access.fill);
                    }
                }
                self.emit.push_if(guard(pred), op, [vector(regs), address]);
            }
            return Ok(());
        }
        // Load as stored, then convert.
        let raw = self.new_tile(elem, tile.layout.clone(), tile.dim_bits.clone(), true);
        let Some(raw) = raw else { return Err(self.unsupported(src, "elements of this type in registers")) };
        // Masked elements are replaced below.
        self.load(s, src, from, &raw, &CopyAttrs { keep: false, ..attrs.clone() }, only)?;
        if !attrs.keep && self.unpacked(&raw, tile) {
            return Ok(());
        }
        let mut values = Vec::new();
        for v in tile.elements() {
            let x = self.get(&raw, v);
            let x = self.wide_enough(x, Some(elem), tile.elem);
            let Some(r) = self.narrow(x, tile.elem) else { return Err(self.unsupported(src, "this conversion")) };
            let masked = access.groups.iter().zip(&access.preds).find(|(group, _)| group.contains(&v));
            let r = match masked.and_then(|(_, pred)| *pred).filter(|_| attrs.keep) {
                None => r,
                Some(inside) => {
                    let new = self.widen(r, tile.elem);
                    let old = self.get(tile, v);
                    let kept = self.choose(inside, new, old);
                    // It is already a number of the type, so this rounding is exact.
                    let Some(r) = self.narrow(kept, tile.elem) else {
                        return Err(self.unsupported(src, "this conversion"));
                    };
                    r
                }
            };
            values.push((v, r));
        }
        self.set_raw(tile, &values);
        Ok(())
    }

    /// 16-bit loads into a packed tile: both halves, then the pair.
    fn load_halves(
        &mut self,
        access: &mut Access,
        (groups, held): (&[Vec<usize>], &Held),
        preds: &[Option<Reg>],
        tile: &Tile,
        keep: bool,
    ) -> Result<(), Reported> {
        let op = if access.space.has_bounds() { P::LdGlobalB16 } else { P::LdSharedB16 };
        for pair in tile.registers() {
            // If extents are no powers of two, a register may hold only one element.
            let halves: Vec<usize> = [2 * pair, 2 * pair + 1].into_iter().filter(|&v| tile.used.has(v)).collect();
            let mut regs: Vec<Reg> = [0, 1].map(|_| self.emit.mutable(Class::B16)).to_vec();
            if keep {
                self.emit.push(P::UnpackB32B16, [Operand::Vec(regs.clone()), tile.regs[pair].into()]);
            }
            for &v in &halves {
                if let Some(&Some(from)) = held.get(v) {
                    regs[v % 2] = self.held_half(from);
                    continue;
                }
                let r = regs[v % 2];
                let at = groups.iter().position(|g| g[0] == v).expect("groups of one element cover the tile");
                let address = self.address(access, v)?;
                if preds[at].is_some() && !keep {
                    self.fill_reg(r, access.fill);
                }
                self.emit.push_if(guard(preds[at]), op, [r.into(), address]);
            }
            if let [alone] = halves[..] {
                regs[1 - alone % 2] = regs[alone % 2];
            }
            self.emit.push(P::PackB32B16, [tile.regs[pair].into(), Operand::Vec(regs)]);
        }
        Ok(())
    }

    /// Loads elements whose neighbours in memory are in different registers of the packed tile: whole accesses go to
    /// temporary registers, then the halves are paired as in the tile.
    fn load_across(
        &mut self,
        src: Expr,
        access: &mut Access,
        groups: &[Vec<usize>],
        preds: &[Option<Reg>],
        tile: &Tile,
        keep: bool,
    ) -> Result<(), Reported> {
        let mut values = Vec::new();
        for (group, &pred) in groups.iter().zip(preds) {
            let regs: Vec<Reg> = (0..group.len() / 2).map(|_| self.emit.mutable(Class::B32)).collect();
            let Some(op) = load_op(access.space, Class::B32, regs.len()) else {
                return Err(self.unsupported(src, "an access of this width"));
            };
            for (&r, pair) in regs.iter().zip(group.chunks(2)).filter(|_| pred.is_some()) {
                if keep {
                    let halves = pair.iter().map(|&v| self.raw(tile, v)).collect();
                    self.emit.push(P::PackB32B16, [r.into(), Operand::Vec(halves)]);
                } else {
                    self.fill_reg(r, access.fill);
                }
            }
            let address = self.address(access, group[0])?;
            self.emit.push_if(guard(pred), op, [vector(regs.clone()), address]);
            for (&r, pair) in regs.iter().zip(group.chunks(2)) {
                let halves = vec![self.emit.reg(Class::B16), self.emit.reg(Class::B16)];
                self.emit.push(P::UnpackB32B16, [Operand::Vec(halves.clone()), r.into()]);
                values.extend(pair.iter().copied().zip(halves));
            }
        }
        self.set_raw(tile, &values);
        Ok(())
    }

    /// Loads one group of a window into fresh registers of the computed class.
    pub(super) fn load_group(
        &mut self,
        e: Expr,
        access: &mut Access,
        elem: Elem,
        group: &[usize],
        pred: Option<Reg>,
    ) -> Result<Vec<Reg>, Reported> {
        if elem.bits() == 4 {
            return self.load_nibble_group(e, access, elem, group, pred);
        }
        if elem.bits() == 8 {
            return self.load_byte_group(e, access, elem, group, pred);
        }
        let Some(class) = class_of(elem) else { return Err(self.unsupported(e, "elements of this type in registers")) };
        let packed = class == Class::B16 && group.len() > 1;
        let (class, n) = if packed { (Class::B32, group.len() / 2) } else { (class, group.len()) };
        let regs: Vec<Reg> = (0..n).map(|_| self.emit.mutable(class)).collect();
        let Some(op) = load_op(access.space, class, n) else {
            return Err(self.unsupported(e, "an access of this width"));
        };
        if pred.is_some() {
            for &r in &regs {
                self.fill_reg(r, access.fill);
            }
        }
        let address = self.address(access, group[0])?;
        self.emit.push_if(guard(pred), op, [vector(regs.clone()), address]);
        let mut out = Vec::with_capacity(group.len());
        for i in 0..group.len() {
            let raw = if packed {
                let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
                self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), regs[i / 2].into()]);
                if i % 2 == 0 { lo } else { hi }
            } else {
                regs[i]
            };
            out.push(self.widen(raw, elem));
        }
        Ok(out)
    }

    /// Prefetches the lines at which the contiguous runs of a thread begin into the second-level cache.
    pub(super) fn prefetch(
        &mut self,
        src: Expr,
        from: &ResolvedView,
        tile: &Tile,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        let layout = attrs.threads.as_ref().unwrap_or(&tile.layout);
        let Some(dim) = self.contiguous(from) else {
            return Err(self.unfit(src, "a prefetch without a contiguous dimension"));
        };
        let owned = (0..=tile.dim_bits[dim]).rev().find_map(|log2| groups(layout, &tile.dim_bits, dim, log2));
        let runs = owned.expect("an element is a run");
        let mut w = self.global_window(from, layout, &tile.dim_bits, attrs.check.as_deref())?;
        let firsts: Vec<usize> = runs.iter().map(|g| g[0]).collect();
        let when = attrs.when.map(|cond| self.condition(cond)).transpose()?;
        let replicas = self.replica_predicate(layout);
        let when = self.emit.and(when, replicas);
        let preds = self.bounds(from, &w, layout, &firsts, when)?;
        for (&v, pred) in firsts.iter().zip(preds) {
            let address = self.global_address(&mut w, layout, v)?;
            self.emit.push_if(guard(pred), P::PrefetchGlobalL2, [address]);
        }
        Ok(())
    }
}

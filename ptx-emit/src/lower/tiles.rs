//! Elements of register tiles: read, written, filled.

use super::dims::Dims;
use super::state::Lower;
use super::tile::{Filled, Tile, class_of};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::ExprData;
use tilec_ir::layout::{RegLayout, UsedRegisters};
use tilec_ir::types::Elem;

impl Lower<'_> {
    /// Fresh registers for a tile. `None` if the element type has no register form yet.
    pub(super) fn new_tile(&mut self, elem: Elem, layout: RegLayout, dim_bits: Dims, mutable: bool) -> Option<Tile> {
        let n = 1usize << layout.value_bits();
        let per_register = if n > 1 { (32 / elem.bits() as usize).max(1) } else { 1 };
        self.new_tile_in(elem, layout, dim_bits, (mutable, per_register))
    }

    /// Registers for a tile of 4-bit elements, one for each byte.
    pub(super) fn new_tile_of_bytes(&mut self, elem: Elem, layout: RegLayout, dim_bits: Dims) -> Option<Tile> {
        self.new_tile_in(elem, layout, dim_bits, (true, 2))
    }

    fn new_tile_in(
        &mut self,
        elem: Elem,
        layout: RegLayout,
        dim_bits: Dims,
        (mutable, per_register): (bool, usize),
    ) -> Option<Tile> {
        let class = class_of(elem)?;
        let held = UsedRegisters::of(&layout, dim_bits.extents())?;
        let n = 1usize << layout.value_bits();
        let class = if per_register > 1 { Class::B32 } else { class };
        let count = n.div_ceil(per_register);
        let regs = (0..count).map(|_| if mutable { self.emit.mutable(class) } else { self.emit.reg(class) }).collect();
        Some(Tile { elem, layout, dim_bits, regs, used: held, per_register })
    }

    /// Sets every element to zero.
    pub(super) fn zero(&mut self, tile: &Tile) {
        for i in tile.registers() {
            self.zero_reg(tile.regs[i]);
        }
    }

    /// Sets a register to the fill value: a number of `bits` bits in each part of the register.
    pub(super) fn fill_reg(&mut self, r: Reg, fill: Option<Filled>) {
        let Some(Filled { pattern, bits }) = fill else { return self.zero_reg(r) };
        let part = u64::MAX >> (64 - bits) & pattern;
        let all = (0..64 / bits).fold(0, |all: u64, i| all | part << (i * bits));
        let (op, value) = match self.emit.func.regs[r] {
            Class::B16 => (P::MovB16, Operand::Imm(i64::from(all as u16))),
            Class::B32 => (P::MovB32, Operand::Imm(i64::from(all as u32))),
            Class::B64 => (P::MovB64, Operand::Imm(all.cast_signed())),
            Class::F32 => (P::MovF32, Operand::F32(f32::from_bits(all as u32))),
            Class::F64 => (P::MovF64, Operand::F64(f64::from_bits(all))),
            Class::Pred => unreachable!("elements are numbers"),
        };
        self.emit.push(op, [r.into(), value]);
    }

    pub(super) fn zero_reg(&mut self, r: Reg) {
        let (op, zero) = match self.emit.func.regs[r] {
            Class::B16 => (P::MovB16, Operand::Imm(0)),
            Class::B32 => (P::MovB32, Operand::Imm(0)),
            Class::B64 => (P::MovB64, Operand::Imm(0)),
            Class::F32 => (P::MovF32, Operand::F32(0.0)),
            Class::F64 => (P::MovF64, Operand::F64(0.0)),
            Class::Pred => return,
        };
        self.emit.push(op, [r.into(), zero]);
    }

    /// The element `v`, as stored (16-bit elements in a 16-bit register, narrower ones in the low bits of a 32-bit one).
    pub(super) fn raw(&mut self, tile: &Tile, v: usize) -> Reg {
        if !tile.packed() {
            return tile.regs[v];
        }
        if tile.elem.bits() == 4 {
            return self.bits_of_nibble(tile.nibble_of(v), tile.elem);
        }
        if tile.elem.bits() == 8 {
            let (reg, byte) = tile.byte_of(v);
            return self.byte(reg, byte);
        }
        let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), tile.regs[v / 2].into()]);
        if v.is_multiple_of(2) { lo } else { hi }
    }

    /// Element `v` in the class in which it is computed.
    pub(super) fn get(&mut self, tile: &Tile, v: usize) -> Reg {
        if tile.elem.bits() == 4 {
            return self.nibble(tile.nibble_of(v), tile.elem);
        }
        if let Some(wide) = self.widened_by_form(tile, v) {
            return wide;
        }
        let raw = self.raw(tile, v);
        self.widen(raw, tile.elem)
    }

    /// Element `v` as an f16; its type is f16 or an 8-bit float, all of whose numbers f16 has.
    pub(super) fn get_half(&mut self, tile: &Tile, v: usize) -> Reg {
        let raw = self.raw(tile, v);
        if matches!(tile.elem, Elem::E4M3 | Elem::E5M2) { self.half_of_fp8(raw, tile.elem) } else { raw }
    }

    /// Elements in the class in which they are computed; the halves of a register are unpacked at once.
    pub(super) fn get_all(&mut self, tile: &Tile, elements: &[usize]) -> Vec<Reg> {
        let mut out = Vec::with_capacity(elements.len());
        let mut rest = elements;
        while let [v, tail @ ..] = rest {
            let pair = tile.per_register == 2 && v.is_multiple_of(2) && tail.first() == Some(&(v + 1));
            if let Some(wide) = self.widened_by_form(tile, *v) {
                out.push(wide);
                rest = tail;
            } else if pair && tile.elem.bits() == 16 {
                let (low, high) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
                self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![low, high]), tile.regs[v / 2].into()]);
                out.extend([self.widen(low, tile.elem), self.widen(high, tile.elem)]);
                rest = &tail[1..];
            } else {
                out.push(self.get(tile, *v));
                rest = tail;
            }
        }
        out
    }

    /// Sets elements to numbers of the computed form, rounded; two elements of a register in one instruction where
    /// there is one.
    pub(super) fn set_computed(&mut self, at: Expr, tile: &Tile, values: &[(usize, Reg)]) -> Result<(), Reported> {
        if self.set_pairs_of_bytes(tile, values) {
            return Ok(());
        }
        let mut raw = Vec::new();
        for &(v, x) in values {
            let other = values.iter().find(|(w, _)| *w == v ^ 1).map(|(_, r)| *r);
            if let Some(other) = other.filter(|_| tile.packed() && tile.elem.bits() == 16) {
                let (low, high) = if v.is_multiple_of(2) { (x, other) } else { (other, x) };
                if let Some(word) = self.paired(low, high, tile.elem, v) {
                    word.into_iter().for_each(|word| self.mov(tile.regs[v / 2], word));
                    continue;
                }
            }
            match self.narrow(x, tile.elem) {
                Some(r) => raw.push((v, r)),
                None => return Err(self.unsupported(at, "this conversion")),
            }
        }
        self.set_raw(tile, &raw);
        Ok(())
    }

    /// Sets 8-bit floats of a tile to f32 numbers, rounded two at a time. The result is false if some element has no
    /// neighbour.
    fn set_pairs_of_bytes(&mut self, tile: &Tile, values: &[(usize, Reg)]) -> bool {
        let op = match tile.elem {
            Elem::E4M3 if self.target.has_fp8_conversions() => P::CvtRnSatfiniteE4m3x2F32,
            Elem::E5M2 if self.target.has_fp8_conversions() => P::CvtRnSatfiniteE5m2x2F32,
            _ => return false,
        };
        // Numbers that already have their stored form are not converted.
        if tile.elem == Elem::E5M2 && values.iter().all(|&(_, x)| self.as_stored([x], tile.elem).is_some()) {
            return false;
        }
        let given: BTreeMap<usize, Reg> = values.iter().copied().collect();
        let floats = values.iter().all(|&(v, x)| given.contains_key(&(v ^ 1)) && self.emit.func.regs[x] == Class::F32);
        if !floats || !tile.packed() {
            return false;
        }
        let mut pairs = BTreeMap::new();
        for (&v, &low) in given.iter().filter(|(v, _)| v.is_multiple_of(2)) {
            pairs.insert(v, self.emit.def(Class::B16, op, [given[&(v + 1)].into(), low.into()]));
        }
        let mut bytes = Vec::new();
        for (&v, &pair) in &pairs {
            match (pairs.get(&(v ^ 2)), v & 2) {
                // Both pairs of a whole register.
                (Some(&high), 0) => {
                    let halves = Operand::Vec(vec![pair, high]);
                    self.emit.push(P::PackB32B16, [tile.regs[v / tile.per_register].into(), halves]);
                }
                (Some(_), _) => {}
                (None, _) => {
                    let word = self.emit.def(Class::B32, P::CvtU32U16, [pair.into()]);
                    bytes.extend([(v, (word, 0)), (v + 1, (word, 1))]);
                }
            }
        }
        self.set_bytes(tile, &bytes);
        true
    }

    /// [`narrow_pair`](Lower::narrow_pair) for the lower element `v` of a pair; `Some(None)` for the upper one, which
    /// is done already. `None`: there is no such instruction.
    fn paired(&mut self, low: Reg, high: Reg, to: Elem, v: usize) -> Option<Option<Reg>> {
        if v.is_multiple_of(2) {
            return self.narrow_pair(low, high, to).map(Some);
        }
        let floats = [low, high].iter().all(|&r| self.emit.func.regs[r] == Class::F32);
        let pairs = matches!(to, Elem::F16 | Elem::BF16) && self.target.has_pair_conversions();
        (floats && pairs).then_some(None)
    }

    /// Writes elements in the stored form to a tile, packing pairs.
    pub(super) fn set_raw(&mut self, tile: &Tile, values: &[(usize, Reg)]) {
        if !tile.packed() {
            for &(v, r) in values {
                self.mov(tile.regs[v], r);
            }
            return;
        }
        if tile.elem.bits() == 4 {
            let nibbles: Vec<_> = values.iter().map(|&(v, r)| (v, (r, 0))).collect();
            return self.set_nibbles(tile, &nibbles);
        }
        if tile.elem.bits() == 8 {
            let bytes: Vec<_> = values.iter().map(|&(v, r)| (v, (r, 0))).collect();
            return self.set_bytes(tile, &bytes);
        }
        for &(v, r) in values {
            let given = values.iter().find(|(w, _)| *w == v ^ 1).map(|(_, r)| *r);
            // If the neighbour does not exist, its half may have any value.
            let pair = given.or((!tile.used.has(v ^ 1)).then_some(r));
            match pair {
                Some(other) if v.is_multiple_of(2) => {
                    self.emit.push(P::PackB32B16, [tile.regs[v / 2].into(), Operand::Vec(vec![r, other])]);
                }
                Some(other) if given.is_none() => {
                    self.emit.push(P::PackB32B16, [tile.regs[v / 2].into(), Operand::Vec(vec![other, r])]);
                }
                Some(_) => {}
                None => {
                    let keep = self.raw(tile, v ^ 1);
                    let halves = if v.is_multiple_of(2) { vec![r, keep] } else { vec![keep, r] };
                    self.emit.push(P::PackB32B16, [tile.regs[v / 2].into(), Operand::Vec(halves)]);
                }
            }
        }
    }

    /// The whole register tile that `e` names.
    pub(super) fn tile_of(&self, e: Expr) -> Option<Tile> {
        match self.k.exprs[e] {
            ExprData::Ref(v) => self.tiles[v].clone(),
            _ => None,
        }
    }

    /// The registers of a group, in address order; `None` if the group does not fill whole registers in that order.
    pub(super) fn registers_of(&self, tile: &Tile, group: &[usize]) -> Option<Vec<Reg>> {
        if !tile.packed() {
            return Some(group.iter().map(|&v| tile.regs[v]).collect());
        }
        let per = tile.per_register;
        let whole = |part: &[usize]| {
            part.len() == per && part[0].is_multiple_of(per) && part.iter().enumerate().all(|(i, &v)| v == part[0] + i)
        };
        group.chunks(per).map(|part| whole(part).then(|| tile.regs[part[0] / per])).collect()
    }
}

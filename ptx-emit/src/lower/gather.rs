//! Moving elements between any two register layouts inside a warp.
//!
//! The source thread and register of an element of the new layout are linear functions of the thread's number and the
//! new register's number ([`Gather`]). Each lane reads the register of the source lane (`shfl.sync.idx`, or `bfly` if
//! lanes differ by a constant). If lanes need different registers, all of these are shuffled, and each lane selects one
//! by bits of its number. A register with several elements is shuffled once for all of them, and as a whole if its
//! elements stay in one register. If lanes need the same bytes of different registers, whole registers are selected,
//! too, and new registers are assembled from their bytes.

use super::shuffles::shuffled;
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::layout::{F2Map, Gather};

/// Fills `to` with the elements of `from`. Both have one element type.
pub(super) fn gather(cx: &mut Lower<'_>, dst: Expr, from: &Tile, to: &Tile, gather: &Gather) -> Result<(), Reported> {
    let Some(selection) = Selection::of(cx, gather) else {
        return Err(cx.unsupported(dst, "this exchange between lanes"));
    };
    let whole_registers = from_one_register(from, to, gather);
    let mut moves =
        Moves { from, gather, whole_registers, lane: None, moved: BTreeMap::new(), selected: BTreeMap::new() };
    let mut values = Vec::new();
    if whole_registers {
        let shift = from.per_register.ilog2();
        for i in to.registers() {
            let x = moves.element(cx, &selection, i << shift);
            values.push((to.regs[i], x));
        }
        // All are read before the first is written.
        for (r, x) in values {
            cx.mov(r, x);
        }
        return Ok(());
    }
    if to.elem.bits() == 8 && from.packed() && selection.keeps_bytes(from) {
        let bytes: Vec<_> = to.elements().into_iter().map(|v| (v, moves.byte(cx, &selection, v))).collect();
        cx.set_bytes(to, &bytes);
        return Ok(());
    }
    let mut raw = Vec::new();
    for v in to.elements() {
        let x = moves.element(cx, &selection, v);
        raw.push((v, stored(cx, x, to)));
    }
    cx.set_raw(to, &raw);
    Ok(())
}

/// A selected element in the form that a tile stores: 16-bit elements in a register of their own.
fn stored(cx: &mut Lower<'_>, x: Reg, to: &Tile) -> Reg {
    if to.elem.bits() != 16 {
        return x;
    }
    let (low, high) = (cx.emit.reg(Class::B16), cx.emit.reg(Class::B16));
    cx.emit.push(P::UnpackB32B16, [Operand::Vec(vec![low, high]), x.into()]);
    low
}

/// Whether the elements of each new register come from one old register, in the same order.
fn from_one_register(from: &Tile, to: &Tile, gather: &Gather) -> bool {
    let low = from.per_register.ilog2() as usize;
    let mask = from.per_register as u64 - 1;
    let within = |i: usize, c: u64| if i < low { c == 1 << i } else { c & mask == 0 };
    let values = || gather.reg_of_value.iter().zip(&gather.lane_of_value).enumerate();
    from.per_register == to.per_register
        && (from.packed() || from.elem.bits() >= 32)
        && from.regs.len() << low == from.len()
        && values().all(|(i, (&reg, &lane))| within(i, reg) && (i >= low || lane == 0))
        && gather.reg_of_thread.iter().all(|c| c & mask == 0)
}

/// The set of registers among which threads select.
struct Selection {
    /// The set is the linear span of these differences of register numbers.
    basis: Vec<u64>,
    /// One predicate for each difference: the thread's register includes it.
    wanted: Vec<Reg>,
}

impl Selection {
    fn of(cx: &mut Lower<'_>, gather: &Gather) -> Option<Selection> {
        let mut basis: Vec<u64> = Vec::new();
        for &c in &gather.reg_of_thread {
            if F2Map::from_cols(basis.clone())?.solve(c).is_none() {
                basis.push(c);
            }
        }
        let coordinates = F2Map::from_cols(basis.clone())?;
        let parts: Vec<u64> = gather.reg_of_thread.iter().map(|&c| coordinates.solve(c)).collect::<Option<_>>()?;
        let tid = cx.tid();
        let mut wanted = Vec::new();
        for j in 0..basis.len() {
            let cols: Vec<u64> = parts.iter().map(|x| x >> j & 1).collect();
            let bit = cx.linear_map(tid, &cols);
            let bit = cx.in32(bit);
            wanted.push(cx.emit.pure(Class::Pred, P::SetpNeS32, [bit.into(), Operand::Imm(0)]));
        }
        Some(Selection { basis, wanted })
    }

    /// Whether threads select among registers, not among the elements of one register.
    fn keeps_bytes(&self, from: &Tile) -> bool {
        self.basis.iter().all(|c| c.is_multiple_of(from.per_register as u64))
    }
}

/// Registers that were read from other lanes.
struct Moves<'a> {
    from: &'a Tile,
    gather: &'a Gather,
    /// Whether registers are moved as a whole.
    whole_registers: bool,
    /// The lane from which a thread reads, without the part that depends on the register.
    lane: Option<Reg>,
    /// Shuffled registers, by register and the number that is XORed to the lane.
    moved: BTreeMap<(usize, u64), Reg>,
    /// Selected registers, by the first register of the selection and the number that is XORed to the lane.
    selected: BTreeMap<(u64, u64), Reg>,
}

impl Moves<'_> {
    /// Element `v` of the new layout, in the low bits of its register.
    fn element(&mut self, cx: &mut Lower<'_>, selection: &Selection, v: usize) -> Reg {
        let (first, lane) = self.source(v);
        self.selected(cx, selection, first, lane)
    }

    /// The old register from which thread 0 takes element `v`, and the number that is XORed to the lane.
    fn source(&self, v: usize) -> (u64, u64) {
        let apply = |cols: &[u64]| cols.iter().enumerate().fold(0, |a, (i, c)| if v >> i & 1 == 1 { a ^ c } else { a });
        (apply(&self.gather.reg_of_value), apply(&self.gather.lane_of_value))
    }

    /// Element `v` of the new layout, as a register and its byte in it.
    fn byte(&mut self, cx: &mut Lower<'_>, selection: &Selection, v: usize) -> (Reg, usize) {
        let (first, lane) = self.source(v);
        let part = first as usize % self.from.per_register;
        let word = first - part as u64;
        let known = self.selected.get(&(word, lane)).copied();
        let reg = known.unwrap_or_else(|| {
            let whole_registers = std::mem::replace(&mut self.whole_registers, true);
            let reg = self.selected(cx, selection, word, lane);
            self.whole_registers = whole_registers;
            self.selected.insert((word, lane), reg);
            reg
        });
        (reg, part)
    }

    fn selected(&mut self, cx: &mut Lower<'_>, selection: &Selection, first: u64, lane: u64) -> Reg {
        let mut xs: Vec<Reg> = (0..1usize << selection.basis.len())
            .map(|x| {
                let chosen = selection.basis.iter().enumerate().filter(|&(j, _)| x >> j & 1 == 1);
                let register = chosen.fold(first, |a, (_, &c)| a ^ c);
                self.read(cx, register as usize, lane)
            })
            .collect();
        for &wanted in &selection.wanted {
            xs = xs
                .chunks(2)
                .map(|pair| if pair[0] == pair[1] { pair[0] } else { cx.choose(wanted, pair[1], pair[0]) })
                .collect();
        }
        xs[0]
    }

    /// Element `v` of the old layout as the source lane has it. `lane` is XORed to the number of that lane.
    fn read(&mut self, cx: &mut Lower<'_>, v: usize, lane: u64) -> Reg {
        let index = v / self.from.per_register;
        let known = self.moved.get(&(index, lane)).copied();
        let word = match known {
            Some(word) => word,
            None => {
                let word = self.word(cx, index, lane);
                self.moved.insert((index, lane), word);
                word
            }
        };
        if self.whole_registers || !self.from.packed() {
            return word;
        }
        let part = v % self.from.per_register;
        match (self.from.elem.bits(), part) {
            (4, _) => cx.bits_of_nibble((word, part), self.from.elem),
            (8, _) => cx.byte(word, part),
            (_, 0) => word,
            _ => cx.emit.def(Class::B32, P::ShrU32, [word.into(), Operand::Imm(16)]),
        }
    }

    /// A register of the source lane.
    fn word(&mut self, cx: &mut Lower<'_>, index: usize, lane: u64) -> Reg {
        let mut x = self.from.regs[index];
        let mut class = cx.emit.func.regs[x];
        if class == Class::B16 {
            (x, class) = (cx.emit.def(Class::B32, P::CvtU32U16, [x.into()]), Class::B32);
        }
        let plain = self.gather.lane_of_thread.iter().enumerate().all(|(i, &c)| c == if i < 5 { 1 << i } else { 0 });
        if plain {
            if lane == 0 {
                // The tile's register may be overwritten before this copy is read.
                return x;
            }
            return shuffled(cx, x, class, (P::ShflSyncBflyB32, Operand::Imm(lane as i64)));
        }
        let base = match self.lane {
            Some(base) => base,
            None => {
                let tid = cx.tid();
                let base = cx.linear_map(tid, &self.gather.lane_of_thread);
                let base = cx.in32(base);
                self.lane = Some(base);
                base
            }
        };
        let from = match lane {
            0 => base,
            _ => cx.emit.pure(Class::B32, P::XorB32, [base.into(), Operand::Imm(lane as i64)]),
        };
        shuffled(cx, x, class, (P::ShflSyncIdxB32, from.into()))
    }
}

//! Register tiles: which PTX registers hold which elements of a thread.

use super::Lower;
use super::copy::Filled;
use super::dims::Dims;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::layout::{Held, RegLayout};
use tilec_ir::types::Elem;

/// A register tile: `2^value_bits` elements per thread, but for those beyond its extents.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) elem: Elem,
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
    /// Registers of all of them: nobody touches those of elements that are not there.
    pub(super) regs: Vec<Reg>,
    pub(super) held: Held,
    /// Elements per register: two of 16 bits, or four of 8 bits, which value bit 0 (and 1) tell apart, lowest first. 1 if
    /// elements are wider, or a thread owns one. A thread that owns two of 8 bits has half a register of them.
    pub(super) per_register: usize,
}

impl Tile {
    /// Number of elements of a thread, with those that are not there.
    pub(super) fn len(&self) -> usize {
        1 << self.layout.value_bits()
    }

    /// The elements of a thread.
    pub(super) fn elements(&self) -> Vec<usize> {
        (0..self.len()).filter(|&v| self.held.has(v)).collect()
    }

    /// Whether there are elements in a register: in all of its parts, or in some.
    pub(super) fn has_register(&self, i: usize) -> bool {
        (0..self.per_register).any(|part| self.held.has(i * self.per_register + part))
    }

    /// The numbers of the registers that have elements.
    pub(super) fn registers(&self) -> impl Iterator<Item = usize> {
        (0..self.regs.len()).filter(|&i| self.has_register(i))
    }

    /// Whether registers hold several elements.
    pub(super) fn packed(&self) -> bool {
        self.per_register > 1
    }

    /// Where 8-bit element `v` is: a register, and a byte of it.
    pub(super) fn byte_of(&self, v: usize) -> (Reg, usize) {
        (self.regs[v / self.per_register], v % self.per_register)
    }

    /// The window of extents `shape` that begins at `starts`: some of the registers. `None` if threads have no whole part of it, or words are
    /// taken apart.
    pub(super) fn window(&self, starts: &[u64], shape: &[u64]) -> Option<Tile> {
        let dim_bits = Dims::of(shape);
        let (layout, registers) = self.layout.window(&self.dim_bits, starts, &dim_bits)?;
        let per = self.per_register;
        let whole = registers.chunks(per).all(|word| {
            word.len() == per && word[0].is_multiple_of(per) && word.iter().enumerate().all(|(i, &v)| v == word[0] + i)
        });
        let held = Held::of(&layout, dim_bits.extents())?;
        let regs = registers.chunks(per).map(|word| self.regs[word[0] / per]).collect();
        whole.then_some(Tile { elem: self.elem, layout, dim_bits, held, regs, per_register: per })
    }

    /// The same registers as a tile of two dimensions seen transposed.
    pub(super) fn transposed(self) -> Option<Tile> {
        let &[rows, columns] = self.dim_bits.extents() else { return None };
        let layout = self.layout.transposed(self.dim_bits[0])?;
        let dim_bits = Dims::of(&[columns, rows]);
        let held = Held::of(&layout, dim_bits.extents())?;
        Some(Tile { layout, dim_bits, held, ..self })
    }

    /// Whether another tile holds its elements in the same places.
    pub(super) fn same_shape(&self, other: &Tile) -> bool {
        self.elem == other.elem && self.layout == other.layout
    }
}

/// The register class of a single element; one of 8 bits is the low byte of a 32-bit register.
pub(super) fn class_of(elem: Elem) -> Option<Class> {
    match elem {
        Elem::F16 | Elem::BF16 => Some(Class::B16),
        Elem::F32 => Some(Class::F32),
        Elem::F64 => Some(Class::F64),
        Elem::I32 | Elem::U32 | Elem::TF32 => Some(Class::B32),
        Elem::E4M3 | Elem::E5M2 | Elem::I8 | Elem::U8 => Some(Class::B32),
        Elem::I64 => Some(Class::B64),
        Elem::Bool => None,
    }
}

/// The class in which elements of a type are computed with.
pub(super) fn compute_class(elem: Elem) -> Class {
    match elem {
        Elem::F64 => Class::F64,
        Elem::I32 | Elem::U32 | Elem::I8 | Elem::U8 => Class::B32,
        Elem::I64 => Class::B64,
        _ => Class::F32,
    }
}

impl Lower<'_> {
    /// Fresh registers for a tile. `None` if the element type has no register form yet.
    pub(super) fn new_tile(&mut self, elem: Elem, layout: RegLayout, dim_bits: Dims, mutable: bool) -> Option<Tile> {
        let class = class_of(elem)?;
        let held = Held::of(&layout, dim_bits.extents())?;
        let n = 1usize << layout.value_bits();
        let per_register = if n > 1 { (32 / elem.bits() as usize).max(1) } else { 1 };
        let class = if per_register > 1 { Class::B32 } else { class };
        let count = n.div_ceil(per_register);
        let regs = (0..count).map(|_| if mutable { self.emit.mutable(class) } else { self.emit.reg(class) }).collect();
        Some(Tile { elem, layout, dim_bits, regs, held, per_register })
    }

    /// Sets every element to zero.
    pub(super) fn zero(&mut self, tile: &Tile) {
        for i in tile.registers() {
            self.zero_reg(tile.regs[i]);
        }
    }

    /// What elements outside the bounds read as: a number of `bits` bits in all parts of a register.
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

    /// The element `v`, as stored (16-bit elements in a 16-bit register, 8-bit elements in the low byte of a 32-bit one).
    pub(super) fn raw(&mut self, tile: &Tile, v: usize) -> Reg {
        if !tile.packed() {
            return tile.regs[v];
        }
        if tile.elem.bits() == 8 {
            let (reg, byte) = tile.byte_of(v);
            return self.byte(reg, byte);
        }
        let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), tile.regs[v / 2].into()]);
        if v.is_multiple_of(2) { lo } else { hi }
    }

    /// The element `v` in the class it is computed with.
    pub(super) fn get(&mut self, tile: &Tile, v: usize) -> Reg {
        let raw = self.raw(tile, v);
        self.widen(raw, tile.elem)
    }

    /// The element `v` of f16, or of 8 bits, which are all numbers of f16, as an f16.
    pub(super) fn get_half(&mut self, tile: &Tile, v: usize) -> Reg {
        let raw = self.raw(tile, v);
        if matches!(tile.elem, Elem::E4M3 | Elem::E5M2) { self.half_of_fp8(raw, tile.elem) } else { raw }
    }

    /// From an 8-bit float in the low byte of a register to f16.
    fn half_of_fp8(&mut self, raw: Reg, elem: Elem) -> Reg {
        self.need_fp8_conversions(elem);
        let op = if elem == Elem::E4M3 { P::CvtRnF16x2E4m3x2 } else { P::CvtRnF16x2E5m2x2 };
        let pair = self.emit.def(Class::B16, P::CvtU16U32, [raw.into()]);
        let pair = self.emit.def(Class::B32, op, [pair.into()]);
        let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), pair.into()]);
        lo
    }

    /// Elements in the class they are computed with; both halves of a register are taken apart at once.
    pub(super) fn get_all(&mut self, tile: &Tile, elements: &[usize]) -> Vec<Reg> {
        let mut out = Vec::with_capacity(elements.len());
        let mut rest = elements;
        while let [v, tail @ ..] = rest {
            let pair = tile.per_register == 2 && v.is_multiple_of(2) && tail.first() == Some(&(v + 1));
            if pair && tile.elem.bits() == 16 {
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

    /// From the stored form to the computed form.
    pub(super) fn widen(&mut self, raw: Reg, elem: Elem) -> Reg {
        match elem {
            Elem::F16 => self.emit.def(Class::F32, P::CvtF32F16, [raw.into()]),
            Elem::BF16 => {
                // A bf16 is the upper half of an f32.
                let zero = self.emit.pure(Class::B16, P::MovB16, [Operand::Imm(0)]);
                self.emit.def(Class::F32, P::PackF32B16, [Operand::Vec(vec![zero, raw])])
            }
            Elem::TF32 => {
                // The low 13 bits of a tf32 are not part of its value.
                let bits = self.emit.def(Class::B32, P::AndB32, [raw.into(), Operand::Imm(0xffff_e000)]);
                self.emit.def(Class::F32, P::MovF32B32, [bits.into()])
            }
            Elem::I8 => self.emit.def(Class::B32, P::CvtS32S8, [raw.into()]),
            Elem::U8 => self.emit.def(Class::B32, P::CvtU32U8, [raw.into()]),
            Elem::E4M3 | Elem::E5M2 => {
                let half = self.half_of_fp8(raw, elem);
                self.emit.def(Class::F32, P::CvtF32F16, [half.into()])
            }
            _ => raw,
        }
    }

    /// A number of a type in the computed form in which it is converted to another: of u32, which are computed in registers as i32 are, one that
    /// holds them all.
    pub(super) fn wide_enough(&mut self, x: Reg, from: Option<Elem>, to: Elem) -> Reg {
        if from != Some(Elem::U32) || matches!(to, Elem::I32 | Elem::U32) || self.emit.func.regs[x] != Class::B32 {
            return x;
        }
        let wide = self.emit.def(Class::B64, P::CvtU64U32, [x.into()]);
        match to {
            // Exact, so that one rounding is left.
            Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 => {
                self.emit.def(Class::F64, P::CvtRnF64S64, [wide.into()])
            }
            _ => wide,
        }
    }

    /// From the computed form `x` of type `from` to the stored form of `to`, rounded to nearest even.
    pub(super) fn narrow(&mut self, x: Reg, to: Elem) -> Option<Reg> {
        let class = self.emit.func.regs[x];
        Some(match (class, to) {
            (Class::F32, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16F32, [x.into()]),
            (Class::F64, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16F64, [x.into()]),
            (Class::F32, Elem::BF16) => self.round_bf16(x),
            // By way of an f32 rounded to odd the second rounding is the only one that counts.
            (Class::F64, Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2) => {
                let odd = self.round_to_odd(x);
                return self.narrow(odd, to);
            }
            (Class::B32, Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2) => {
                let exact = self.emit.def(Class::F64, P::CvtRnF64S32, [x.into()]);
                return self.narrow(exact, to);
            }
            (Class::F32, Elem::TF32) => self.round_upper(x, 13),
            (Class::F32, Elem::E4M3 | Elem::E5M2) => {
                self.need_fp8_conversions(to);
                let op = if to == Elem::E4M3 { P::CvtRnSatfiniteE4m3x2F32 } else { P::CvtRnSatfiniteE5m2x2F32 };
                let zero = self.literal(0.0, Class::F32);
                let pair = self.emit.def(Class::B16, op, [zero.into(), x.into()]);
                self.emit.def(Class::B32, P::CvtU32U16, [pair.into()])
            }
            (Class::B32, Elem::I8) => self.emit.def(Class::B32, P::CvtSatS8S32, [x.into()]),
            (Class::B32, Elem::U8) => self.emit.def(Class::B32, P::CvtSatU8S32, [x.into()]),
            (Class::F32 | Class::F64, Elem::I8 | Elem::U8) => {
                let round = if class == Class::F32 { P::CvtRniS32F32 } else { P::CvtRniS32F64 };
                let whole = self.emit.def(Class::B32, round, [x.into()]);
                let op = if to == Elem::I8 { P::CvtSatS8S32 } else { P::CvtSatU8S32 };
                self.emit.def(Class::B32, op, [whole.into()])
            }
            (Class::F32, Elem::F32) | (Class::F64, Elem::F64) => x,
            (Class::F64, Elem::F32) => self.emit.def(Class::F32, P::CvtRnF32F64, [x.into()]),
            (Class::F32, Elem::F64) => self.emit.def(Class::F64, P::CvtF64F32, [x.into()]),
            (Class::B32, Elem::I32 | Elem::U32) | (Class::B64, Elem::I64) => x,
            (Class::B32, Elem::F32) => self.emit.def(Class::F32, P::CvtRnF32S32, [x.into()]),
            (Class::B32, Elem::F64) => self.emit.def(Class::F64, P::CvtRnF64S32, [x.into()]),
            (Class::B32, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16S32, [x.into()]),
            (Class::F32, Elem::I32) => self.emit.def(Class::B32, P::CvtRniS32F32, [x.into()]),
            (Class::F64, Elem::I32) => self.emit.def(Class::B32, P::CvtRniS32F64, [x.into()]),
            (Class::F32, Elem::U32) => self.emit.def(Class::B32, P::CvtRniU32F32, [x.into()]),
            (Class::F64, Elem::U32) => self.emit.def(Class::B32, P::CvtRniU32F64, [x.into()]),
            (Class::F32, Elem::I64) => self.emit.def(Class::B64, P::CvtRniS64F32, [x.into()]),
            (Class::F64, Elem::I64) => self.emit.def(Class::B64, P::CvtRniS64F64, [x.into()]),
            (Class::B32, Elem::I64) => self.emit.def(Class::B64, P::CvtS64S32, [x.into()]),
            (Class::B64, Elem::I8 | Elem::U8 | Elem::I32 | Elem::U32) => {
                let (low, high) = match to {
                    Elem::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
                    Elem::U8 => (0, i64::from(u8::MAX)),
                    Elem::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    _ => (0, i64::from(u32::MAX)),
                };
                let above = self.emit.def(Class::B64, P::MaxS64, [x.into(), Operand::Imm(low)]);
                let clamped = self.emit.def(Class::B64, P::MinS64, [above.into(), Operand::Imm(high)]);
                self.emit.def(Class::B32, P::CvtS32S64, [clamped.into()])
            }
            (Class::B64, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16S64, [x.into()]),
            (Class::B64, Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2) => {
                let odd = self.round_to_odd(x);
                return self.narrow(odd, to);
            }
            (Class::B64, Elem::F32) => self.emit.def(Class::F32, P::CvtRnF32S64, [x.into()]),
            (Class::B64, Elem::F64) => self.emit.def(Class::F64, P::CvtRnF64S64, [x.into()]),
            _ => return None,
        })
    }

    /// Two numbers of the computed form as a pair of 16-bit floats, `low` in the low half; `None`: in two conversions.
    pub(super) fn narrow_pair(&mut self, low: Reg, high: Reg, to: Elem) -> Option<Reg> {
        let floats = [low, high].iter().all(|&r| self.emit.func.regs[r] == Class::F32);
        let op = match to {
            Elem::F16 => P::CvtRnF16x2F32,
            Elem::BF16 => P::CvtRnBf16x2F32,
            _ => return None,
        };
        (floats && self.target.has_pair_conversions()).then(|| self.emit.def(Class::B32, op, [high.into(), low.into()]))
    }

    /// Numbers of type `from` in the stored form of `to`.
    pub(super) fn narrow_all(
        &mut self,
        at: Expr,
        computed: Vec<Reg>,
        (from, to): (Option<Elem>, Elem),
    ) -> Result<Vec<Reg>, Reported> {
        let mut raw = Vec::new();
        for x in computed {
            let x = self.wide_enough(x, from, to);
            match self.narrow(x, to) {
                Some(r) => raw.push(r),
                None => return Err(self.unsupported(at, "this conversion")),
            }
        }
        Ok(raw)
    }

    /// [`narrow_all`](Lower::narrow_all), pairs of 16 bits in an instruction where there is one: these come packed.
    pub(super) fn narrow_words(
        &mut self,
        at: Expr,
        computed: Vec<Reg>,
        (from, to): (Option<Elem>, Elem),
    ) -> Result<Vec<Reg>, Reported> {
        let pairs = computed.chunks(2).map(|pair| match *pair {
            [low, high] => self.narrow_pair(low, high, to),
            _ => None,
        });
        match pairs.collect() {
            Some(words) => Ok(words),
            None => self.narrow_all(at, computed, (from, to)),
        }
    }

    /// Registers of 16 bits, two by two; others as they are.
    pub(super) fn packed(&mut self, raw: Vec<Reg>) -> Vec<Reg> {
        if raw.iter().any(|&r| self.emit.func.regs[r] != Class::B16) {
            return raw;
        }
        let pack = |p: &[Reg]| self.emit.def(Class::B32, P::PackB32B16, [Operand::Vec(p.to_vec())]);
        raw.chunks(2).map(pack).collect()
    }

    /// An f64 or i64 as the f32 next to it toward zero, with the last bit set if anything was cut off: rounding it to a type with
    /// two fraction bits less rounds the number itself (Boldo and Melquiond, "When double rounding is odd", 2005).
    fn round_to_odd(&mut self, x: Reg) -> Reg {
        let wide = self.emit.func.regs[x];
        let (cut, back, differs) = match wide {
            Class::B64 => (P::CvtRzF32S64, P::CvtRziS64F32, P::SetpNeS64),
            _ => (P::CvtRzF32F64, P::CvtF64F32, P::SetpNeuF64),
        };
        let cut = self.emit.def(Class::F32, cut, [x.into()]);
        let back = self.emit.def(wide, back, [cut.into()]);
        let inexact = self.emit.def(Class::Pred, differs, [back.into(), x.into()]);
        let bits = self.emit.def(Class::B32, P::MovB32F32, [cut.into()]);
        let sticky = self.emit.def(Class::B32, P::OrB32, [bits.into(), Operand::Imm(1)]);
        let bits = self.emit.def(Class::B32, P::SelpB32, [sticky.into(), bits.into(), inexact.into()]);
        self.emit.def(Class::F32, P::MovF32B32, [bits.into()])
    }

    /// Notes a conversion of 8-bit floats for a target without the instruction; the statement is refused once it is lowered.
    fn need_fp8_conversions(&mut self, elem: Elem) {
        if !self.target.has_fp8_conversions() {
            self.unconverted = Some(elem);
        }
    }

    /// f32 to bf16, to nearest even; with integer instructions where the target has no conversion.
    fn round_bf16(&mut self, x: Reg) -> Reg {
        if self.target.has_bf16_conversions() {
            return self.emit.def(Class::B16, P::CvtRnBf16F32, [x.into()]);
        }
        let rounded = self.round_upper(x, 16);
        let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), rounded.into()]);
        hi
    }

    /// The bits of an f32 rounded to nearest even at bit `drop`; what is below is of no meaning.
    fn round_upper(&mut self, x: Reg, drop: i64) -> Reg {
        let bits = self.emit.def(Class::B32, P::MovB32F32, [x.into()]);
        let shifted = self.emit.def(Class::B32, P::ShrU32, [bits.into(), Operand::Imm(drop)]);
        let odd = self.emit.def(Class::B32, P::AndB32, [shifted.into(), Operand::Imm(1)]);
        let biased = self.emit.def(Class::B32, P::AddS32, [bits.into(), Operand::Imm((1 << (drop - 1)) - 1)]);
        let rounded = self.emit.def(Class::B32, P::AddS32, [biased.into(), odd.into()]);
        // A NaN must stay a NaN: the addition may carry into the exponent.
        let nan = self.emit.def(Class::Pred, P::SetpNeuF32, [x.into(), x.into()]);
        let quiet = self.emit.def(Class::B32, P::OrB32, [bits.into(), Operand::Imm(0x0040_0000)]);
        self.emit.def(Class::B32, P::SelpB32, [quiet.into(), rounded.into(), nan.into()])
    }

    /// Copies `src` into `dst`, registers of one class.
    pub(super) fn mov(&mut self, dst: Reg, src: Reg) {
        let op = match self.emit.func.regs[dst] {
            Class::B16 => P::MovB16,
            Class::B32 => P::MovB32,
            Class::B64 => P::MovB64,
            Class::F32 => P::MovF32,
            Class::F64 => P::MovF64,
            Class::Pred => P::MovPred,
        };
        self.emit.push(op, [dst.into(), src.into()]);
    }

    /// Sets elements to numbers of the computed form, rounded; two that share a register in one instruction where there is one.
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

    /// Sets 8-bit floats of a tile to numbers of f32, rounded two by two; whether all of them have their neighbour.
    fn set_pairs_of_bytes(&mut self, tile: &Tile, values: &[(usize, Reg)]) -> bool {
        let op = match tile.elem {
            Elem::E4M3 => P::CvtRnSatfiniteE4m3x2F32,
            Elem::E5M2 => P::CvtRnSatfiniteE5m2x2F32,
            _ => return false,
        };
        let given: BTreeMap<usize, Reg> = values.iter().copied().collect();
        let floats = values.iter().all(|&(v, x)| given.contains_key(&(v ^ 1)) && self.emit.func.regs[x] == Class::F32);
        if !floats || !tile.packed() {
            return false;
        }
        self.need_fp8_conversions(tile.elem);
        let mut pairs = BTreeMap::new();
        for (&v, &low) in given.iter().filter(|(v, _)| v.is_multiple_of(2)) {
            pairs.insert(v, self.emit.def(Class::B16, op, [given[&(v + 1)].into(), low.into()]));
        }
        let mut bytes = Vec::new();
        for (&v, &pair) in &pairs {
            match (pairs.get(&(v ^ 2)), v & 2) {
                // A whole register: both of its pairs.
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

    /// [`narrow_pair`](Lower::narrow_pair) for the lower element `v` of a pair; inside, nothing for the upper one, which came with it. `None`: there is no
    /// such instruction.
    fn paired(&mut self, low: Reg, high: Reg, to: Elem, v: usize) -> Option<Option<Reg>> {
        if v.is_multiple_of(2) {
            return self.narrow_pair(low, high, to).map(Some);
        }
        let floats = [low, high].iter().all(|&r| self.emit.func.regs[r] == Class::F32);
        let pairs = matches!(to, Elem::F16 | Elem::BF16) && self.target.has_pair_conversions();
        (floats && pairs).then_some(None)
    }

    /// Puts stored-form elements into a tile, packing pairs.
    pub(super) fn set_raw(&mut self, tile: &Tile, values: &[(usize, Reg)]) {
        if !tile.packed() {
            for &(v, r) in values {
                self.mov(tile.regs[v], r);
            }
            return;
        }
        if tile.elem.bits() == 8 {
            let bytes: Vec<_> = values.iter().map(|&(v, r)| (v, (r, 0))).collect();
            return self.set_bytes(tile, &bytes);
        }
        for &(v, r) in values {
            let given = values.iter().find(|(w, _)| *w == v ^ 1).map(|(_, r)| *r);
            // Beside an element without a neighbour stands anything.
            let pair = given.or((!tile.held.has(v ^ 1)).then_some(r));
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
}

/// The value-index groups that one access of `2^log2` neighbours along `dim` covers: element order inside each group is
/// address order. `None` if there are none, or some of them would reach beyond the tile.
pub(super) fn groups(layout: &RegLayout, dim_bits: &Dims, dim: usize, log2: u32) -> Option<Vec<Vec<usize>>> {
    let base: u32 = dim_bits[..dim].iter().sum();
    let mut inner = Vec::new();
    for b in 0..log2 {
        inner.push((0..layout.value_bits()).find(|&i| layout.value_col(i) == 1u64 << (base + b))?);
    }
    let outer: Vec<u32> = (0..layout.value_bits()).filter(|i| !inner.contains(i)).collect();
    let spread = |x: usize, bits: &[u32]| bits.iter().enumerate().fold(0usize, |a, (j, &b)| a | ((x >> j & 1) << b));
    let all = (0..1usize << outer.len())
        .map(|o| (0..1usize << inner.len()).map(|i| spread(o, &outer) | spread(i, &inner)).collect())
        .collect();
    Held::of(layout, dim_bits.extents())?.groups(all)
}

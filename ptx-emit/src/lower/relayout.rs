//! Moving elements between register layouts inside a warp.
//!
//! If layouts differ by transpositions of lane bits and register bits (`RegLayout::swaps`), each thread handles pairs of registers that
//! differ in register bit `v`. It keeps the one that corresponds to its value of lane bit `l` and exchanges the other with the lane
//! that differs in `l`: one `shfl.sync.bfly` and three selections per pair. Two 16-bit elements share a register; the bit that
//! selects one is first swapped with a register bit, by two byte permutations per pair. All other layouts use `gather.rs`.
//! Elements that cross warps are copied through shared memory in the text (`assign-layouts`).

use super::packing::Nibble;
use super::shuffles::shuffle;
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Expr;

/// Fills `to` with the elements of `from`. Both have one element type.
pub(super) fn exchange(cx: &mut Lower<'_>, dst: Expr, from: &Tile, to: &Tile) -> Result<(), Reported> {
    if swapped(cx, from, to) {
        return Ok(());
    }
    match from.layout.gather(&to.layout) {
        Some(gather) => super::gather::gather(cx, dst, from, to, &gather),
        None => Err(across_warps(cx, dst)),
    }
}

/// Refuses a copy whose elements move between warps.
fn across_warps(cx: &mut Lower<'_>, dst: Expr) -> Reported {
    let message = "a copy between register tiles with layouts whose elements cross warps";
    let d = Diagnostic::error(codes::UNFIT, cx.k.expr_spans[dst], message);
    cx.sink.report(d.with_note("copy the tile to shared memory, and that to the other: `let s = smem ..`"))
}

/// Fills `to` by exchanges of register bits with lane bits, if these suffice.
fn swapped(cx: &mut Lower<'_>, from: &Tile, to: &Tile) -> bool {
    let Some(swaps) = from.layout.swaps(&to.layout) else { return false };
    // The elements of a register move as one, unless there are two.
    let first = from.per_register.ilog2().min(from.layout.value_bits()) as usize;
    let pairs = first == 1 && from.regs.len() > 1;
    let mut value = from.layout.value().cols().to_vec();
    let wanted = to.layout.value().cols();
    if !pairs && (value[..first] != wanted[..first] || swaps.iter().any(|&(v, _)| v < first)) {
        return false;
    }
    if !swaps.is_empty() && from.regs.iter().any(|&r| cx.emit.func.regs[r].bytes() < 4) {
        return false;
    }
    let mut regs: Vec<Reg> = from.regs.clone();
    // Exchanged bits must be below the bits that select existing elements, or lanes would not agree which elements
    // exist.
    let has = |i: usize| from.has_register(i);
    for (_, l) in swaps {
        let want = to.layout.thread_col(l);
        let mut v = value.iter().position(|&c| c == want).expect("the wanted bit is in a register");
        if v < first {
            regs = transpose(cx, &regs, 0, &has);
            value.swap(v, first);
            v = first;
        }
        regs = swap(cx, &regs, v - first, l, &has);
        value[v] = from.layout.thread_col(l);
    }
    let place = |value: &[u64], c: u64| value.iter().position(|&x| x == c).expect("a bit that a register tells apart");
    if pairs && value[0] != wanted[0] {
        let v = place(&value, wanted[0]);
        regs = transpose(cx, &regs, v - first, &has);
        value.swap(0, v);
    }
    // The rest is a renaming of registers.
    let order: Vec<usize> = wanted[first..].iter().map(|&c| place(&value[first..], c)).collect();
    for v in to.registers() {
        let source = order.iter().enumerate().fold(0usize, |a, (i, &b)| a | ((v >> i & 1) << b));
        cx.mov(to.regs[v], regs[source]);
    }
    true
}

/// Exchanges register bit `v` with the bit that selects one of the two elements of a register.
fn transpose(cx: &mut Lower<'_>, regs: &[Reg], v: usize, has: &dyn Fn(usize) -> bool) -> Vec<Reg> {
    let mut out = regs.to_vec();
    for lo in (0..regs.len()).filter(|&i| i >> v & 1 == 0 && has(i)) {
        let hi = lo | 1 << v;
        let mut select =
            |bytes: i64| cx.emit.def(Class::B32, P::PrmtB32, [regs[lo].into(), regs[hi].into(), Operand::Imm(bytes)]);
        (out[lo], out[hi]) = (select(0x5410), select(0x7632));
    }
    out
}

/// Exchanges register bit `v` with lane bit `l`.
fn swap(cx: &mut Lower<'_>, regs: &[Reg], v: usize, l: u32, has: &dyn Fn(usize) -> bool) -> Vec<Reg> {
    let tid = cx.tid();
    let bit = cx.emit.pure(Class::B32, P::AndB32, [tid.into(), Operand::Imm(1 << l)]);
    let high = cx.emit.pure(Class::Pred, P::SetpNeS32, [bit.into(), Operand::Imm(0)]);
    let mut out = regs.to_vec();
    for lo in (0..regs.len()).filter(|&i| i >> v & 1 == 0 && has(i)) {
        let hi = lo | 1 << v;
        let class = cx.emit.func.regs[regs[lo]];
        let select = match class {
            Class::F32 => P::SelpF32,
            Class::F64 => P::SelpF64,
            Class::B64 => P::SelpB64,
            _ => P::SelpB32,
        };
        // Each lane sends the element that belongs to the other: lanes with the bit set send the low one.
        let send = cx.emit.def(class, select, [regs[lo].into(), regs[hi].into(), high.into()]);
        let received = shuffle(cx, send, class, l);
        out[lo] = cx.emit.def(class, select, [received.into(), regs[lo].into(), high.into()]);
        out[hi] = cx.emit.def(class, select, [regs[hi].into(), received.into(), high.into()]);
    }
    out
}

impl Lower<'_> {
    /// A tile of 4-bit elements with a register for each byte, repacked to as many elements in a register as other
    /// tiles have; `None`: another kind of tile.
    fn in_words(&mut self, tile: &Tile) -> Option<Tile> {
        if tile.elem.bits() != 4 || tile.per_register != 2 {
            return None;
        }
        let whole = self.new_tile(tile.elem, tile.layout.clone(), tile.dim_bits.clone(), true)?;
        let nibbles: Vec<(usize, Nibble)> = tile.elements().into_iter().map(|v| (v, tile.nibble_of(v))).collect();
        self.set_nibbles(&whole, &nibbles);
        Some(whole)
    }

    /// Copies a register tile to another one, if the elements stay in their warp.
    pub(super) fn relayout(&mut self, dst: Expr, from: &Tile, to: &Tile) -> Result<(), Reported> {
        if let Some(whole) = self.in_words(from) {
            return self.relayout(dst, &whole, to);
        }
        if from.same_shape(to) {
            for i in to.registers() {
                self.mov(to.regs[i], from.regs[i]);
            }
            return Ok(());
        }
        if from.elem == to.elem {
            return super::relayout::exchange(self, dst, from, to);
        }
        if from.layout == to.layout {
            return self.converted(dst, from, to);
        }
        // Elements move in the narrower of the two types.
        let first = from.elem.bits() <= to.elem.bits();
        let (elem, layout) = if first { (from.elem, &to.layout) } else { (to.elem, &from.layout) };
        let Some(between) = self.new_tile(elem, layout.clone(), to.dim_bits.clone(), true) else {
            return Err(self.unsupported(dst, "elements of this type in registers"));
        };
        if first {
            super::relayout::exchange(self, dst, from, &between)?;
            return self.converted(dst, &between, to);
        }
        self.converted(dst, from, &between)?;
        super::relayout::exchange(self, dst, &between, to)
    }

    /// Fills `to` with the elements of `from`, which has the same layout, converted.
    fn converted(&mut self, dst: Expr, from: &Tile, to: &Tile) -> Result<(), Reported> {
        if self.unpacked(from, to) {
            return Ok(());
        }
        let mut values = Vec::new();
        for v in to.elements() {
            let x = self.get(from, v);
            values.push((v, self.wide_enough(x, Some(from.elem), to.elem)));
        }
        self.set_computed(dst, to, &values)
    }
}

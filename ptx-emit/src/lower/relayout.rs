//! Moving elements between register layouts that differ by transpositions of lane bits and register bits.
//!
//! Exchanging lane bit `l` with register bit `v`: of each pair of registers that differ in `v`, a thread keeps the one
//! that belongs to its own value of `l` and trades the other with the lane that differs in `l`: one `shfl.sync.bfly` and
//! three selections a pair. Two elements of 16 bits share a register; the bit that tells them apart trades places with a register bit
//! first, two permutations of bytes a pair.

use super::Lower;
use super::tiles::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;

/// Fills `to` with the elements of `from`.
pub(super) fn exchange(cx: &mut Lower<'_>, dst: Expr, from: &Tile, to: &Tile) -> Result<(), Reported> {
    let unsupported = |cx: &mut Lower<'_>| {
        Err(cx.unsupported(dst, "a re-layout other than exchanges of lane bits and register bits"))
    };
    if from.elem != to.elem || from.layout.value_bits() != to.layout.value_bits() {
        return unsupported(cx);
    }
    // The elements of a register move together, unless they are two.
    let first = from.per_register.ilog2().min(from.layout.value_bits());
    let pairs = first == 1 && from.regs.len() > 1;
    if !pairs && (0..first).any(|i| from.layout.value_col(i) != to.layout.value_col(i)) {
        return unsupported(cx);
    }
    let n_thread = from.layout.thread_bits();
    let mut value: Vec<u64> = (0..from.layout.value_bits()).map(|i| from.layout.value_col(i)).collect();
    let first = first as usize;
    let mut regs: Vec<Reg> = from.regs.clone();
    // What trades places is below what tells elements that are there from others, or else threads would not agree about them.
    let has = |i: usize| from.has_register(i);
    for l in 0..n_thread {
        let (have, want) = (from.layout.thread_col(l), to.layout.thread_col(l));
        if have == want {
            continue;
        }
        // The wanted bit must be in a register now, and the lane's bit must be wanted in one.
        let Some(mut v) = value.iter().position(|&c| c == want).filter(|_| l < 5) else { return unsupported(cx) };
        if v < first {
            if !pairs {
                return unsupported(cx);
            }
            regs = transpose(cx, &regs, 0, &has);
            value.swap(v, first);
            v = first;
        }
        regs = swap(cx, &regs, v - first, l, &has)?;
        value[v] = have;
    }
    if pairs && value[0] != to.layout.value_col(0) {
        let Some(v) = value.iter().position(|&c| c == to.layout.value_col(0)) else { return unsupported(cx) };
        regs = transpose(cx, &regs, v - first, &has);
        value.swap(0, v);
    }
    // What is left is a renaming of registers.
    let registers = &value[first..];
    let Some(order) = (first as u32..to.layout.value_bits())
        .map(|i| registers.iter().position(|&c| c == to.layout.value_col(i)))
        .collect::<Option<Vec<usize>>>()
    else {
        return unsupported(cx);
    };
    for v in to.registers() {
        let source = order.iter().enumerate().fold(0usize, |a, (i, &b)| a | ((v >> i & 1) << b));
        cx.mov(to.regs[v], regs[source]);
    }
    Ok(())
}

/// Exchanges register bit `v` with the bit that tells the two elements of a register apart.
fn transpose(cx: &mut Lower<'_>, regs: &[Reg], v: usize, has: &dyn Fn(usize) -> bool) -> Vec<Reg> {
    let mut out = regs.to_vec();
    for lo in (0..regs.len()).filter(|&i| i >> v & 1 == 0 && has(i)) {
        let hi = lo | 1 << v;
        let mut select = |bytes: i64| {
            cx.emit.def(Class::B32, P::PrmtB32, vec![regs[lo].into(), regs[hi].into(), Operand::Imm(bytes)])
        };
        (out[lo], out[hi]) = (select(0x5410), select(0x7632));
    }
    out
}

/// Exchanges register bit `v` with lane bit `l`.
fn swap(cx: &mut Lower<'_>, regs: &[Reg], v: usize, l: u32, has: &dyn Fn(usize) -> bool) -> Result<Vec<Reg>, Reported> {
    let tid = cx.tid();
    let bit = cx.emit.pure(Class::B32, P::AndB32, vec![tid.into(), Operand::Imm(1 << l)]);
    let high = cx.emit.pure(Class::Pred, P::SetpNeS32, vec![bit.into(), Operand::Imm(0)]);
    let mut out = regs.to_vec();
    for lo in (0..regs.len()).filter(|&i| i >> v & 1 == 0 && has(i)) {
        let hi = lo | 1 << v;
        let class = cx.emit.func.regs[regs[lo]];
        let words = class.bytes() / 4;
        if words == 0 || words > 2 {
            continue;
        }
        let select = match class {
            Class::F32 => P::SelpF32,
            Class::F64 => P::SelpF64,
            Class::B64 => P::SelpB64,
            _ => P::SelpB32,
        };
        // The element that belongs to the other lane: the low one for lanes with the bit set.
        let send = cx.emit.def(class, select, vec![regs[lo].into(), regs[hi].into(), high.into()]);
        let received = shuffle(cx, send, class, l);
        out[lo] = cx.emit.def(class, select, vec![received.into(), regs[lo].into(), high.into()]);
        out[hi] = cx.emit.def(class, select, vec![regs[hi].into(), received.into(), high.into()]);
    }
    Ok(out)
}

/// What the lane that differs in bit `l` of its number has in `x`.
pub(super) fn shuffle(cx: &mut Lower<'_>, x: Reg, class: Class, l: u32) -> Reg {
    let word = |cx: &mut Lower<'_>, r: Reg| {
        let operands = vec![r.into(), Operand::Imm(1 << l), Operand::Imm(31), Operand::Imm(0xffff_ffff)];
        cx.emit.def(Class::B32, P::ShflSyncBflyB32, operands)
    };
    match class {
        Class::F32 => {
            let bits = cx.emit.def(Class::B32, P::MovB32F32, vec![x.into()]);
            let moved = word(cx, bits);
            cx.emit.def(Class::F32, P::MovF32B32, vec![moved.into()])
        }
        Class::B64 | Class::F64 => {
            let bits = if class == Class::F64 { cx.emit.def(Class::B64, P::MovB64F64, vec![x.into()]) } else { x };
            let (lo, hi) = (cx.emit.reg(Class::B32), cx.emit.reg(Class::B32));
            cx.emit.push(P::UnpackB64B32, vec![Operand::Vec(vec![lo, hi]), bits.into()]);
            let (lo, hi) = (word(cx, lo), word(cx, hi));
            let joined = cx.emit.def(Class::B64, P::PackB64B32, vec![Operand::Vec(vec![lo, hi])]);
            if class == Class::F64 { cx.emit.def(Class::F64, P::MovF64B64, vec![joined.into()]) } else { joined }
        }
        Class::B32 | Class::B16 | Class::Pred => word(cx, x),
    }
}

//! Registers exchanged between the lanes of a warp.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

/// `x` of the lane that differs in bit `l` of its number.
pub(super) fn shuffle(cx: &mut Lower<'_>, x: Reg, class: Class, l: u32) -> Reg {
    shuffled(cx, x, class, (P::ShflSyncBflyB32, Operand::Imm(1 << l)))
}

/// `x` of another lane, which the shuffle `op` selects by `lane`.
pub(super) fn shuffled(cx: &mut Lower<'_>, x: Reg, class: Class, (op, lane): (P, Operand)) -> Reg {
    let word = |cx: &mut Lower<'_>, r: Reg| {
        let operands = vec![r.into(), lane.clone(), Operand::Imm(31), Operand::Imm(0xffff_ffff)];
        cx.emit.def(Class::B32, op, operands)
    };
    match class {
        Class::F32 => {
            let bits = cx.emit.def(Class::B32, P::MovB32F32, [x.into()]);
            let moved = word(cx, bits);
            cx.emit.def(Class::F32, P::MovF32B32, [moved.into()])
        }
        Class::B64 | Class::F64 => {
            let bits = if class == Class::F64 { cx.emit.def(Class::B64, P::MovB64F64, [x.into()]) } else { x };
            let (lo, hi) = (cx.emit.reg(Class::B32), cx.emit.reg(Class::B32));
            cx.emit.push(P::UnpackB64B32, [Operand::Vec(vec![lo, hi]), bits.into()]);
            let (lo, hi) = (word(cx, lo), word(cx, hi));
            let joined = cx.emit.def(Class::B64, P::PackB64B32, [Operand::Vec(vec![lo, hi])]);
            if class == Class::F64 { cx.emit.def(Class::F64, P::MovF64B64, [joined.into()]) } else { joined }
        }
        Class::B32 | Class::B16 | Class::Pred => word(cx, x),
    }
}

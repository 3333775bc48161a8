//! Numbers in registers: literals, conversions between register classes, selections.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::types::Elem;

impl Lower<'_> {
    /// `a` where `cond` holds, else `b`, both of one class.
    pub(super) fn choose(&mut self, cond: Reg, a: Reg, b: Reg) -> Reg {
        let class = self.emit.func.regs[a];
        self.emit.pure(class, select(class), [a.into(), b.into(), cond.into()])
    }

    /// Like [`Self::choose`], into a mutable register.
    pub(super) fn choose_into(&mut self, dst: Reg, cond: Reg, a: Reg, b: Reg) {
        self.emit.push(select(self.emit.func.regs[a]), [dst.into(), a.into(), b.into(), cond.into()]);
    }

    /// An integer literal, exact if the class can hold it.
    pub(super) fn int_literal(&mut self, x: i64, class: Class) -> Reg {
        match class {
            Class::B32 | Class::B64 => {
                let mov = if class == Class::B32 { P::MovB32 } else { P::MovB64 };
                self.emit.pure(class, mov, [Operand::Imm(x)])
            }
            // From the integer, because an f64 of it is rounded already.
            Class::F32 => self.emit.pure(class, P::MovF32, [Operand::F32(x as f32)]),
            _ => self.literal(x as f64, class),
        }
    }

    pub(super) fn literal(&mut self, x: f64, class: Class) -> Reg {
        match class {
            Class::F64 => self.emit.pure(class, P::MovF64, [Operand::F64(x)]),
            Class::B32 => self.emit.pure(class, P::MovB32, [Operand::Imm(x as i64)]),
            Class::B64 => self.emit.pure(class, P::MovB64, [Operand::Imm(x as i64)]),
            _ => self.emit.pure(Class::F32, P::MovF32, [Operand::F32(x as f32)]),
        }
    }

    /// Converts between register classes of numbers.
    pub(super) fn convert(&mut self, x: Reg, to: Class) -> Reg {
        let from = self.emit.func.regs[x];
        let op = match (from, to) {
            (a, b) if a == b => return x,
            (Class::F32, Class::F64) => P::CvtF64F32,
            (Class::F64, Class::F32) => P::CvtRnF32F64,
            (Class::B32, Class::F32) => P::CvtRnF32S32,
            (Class::B32, Class::F64) => P::CvtRnF64S32,
            (Class::B64, Class::F32) => P::CvtRnF32S64,
            (Class::B64, Class::F64) => P::CvtRnF64S64,
            (Class::B32, Class::B64) => P::CvtS64S32,
            (Class::B64, Class::B32) => P::CvtS32S64,
            _ => return x,
        };
        self.emit.pure(to, op, [x.into()])
    }

    /// A number of a type, converted from its own class to a wider one.
    pub(super) fn widened(&mut self, x: Reg, elem: Elem, to: Class) -> Reg {
        if elem == Elem::U32 && to == Class::B64 && self.emit.func.regs[x] == Class::B32 {
            return self.emit.pure(to, P::CvtU64U32, [x.into()]);
        }
        self.convert(x, to)
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
}

/// The selection instruction of a class.
fn select(class: Class) -> P {
    match class {
        Class::F32 => P::SelpF32,
        Class::F64 => P::SelpF64,
        Class::B64 => P::SelpB64,
        _ => P::SelpB32,
    }
}

//! Integers as operands and in registers, in 32 or 64 bits.

use super::ranged_ints::{Int, Repr};
use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

impl Lower<'_> {
    /// An integer as a 32-bit operand; its range must fit.
    pub(super) fn as32(&mut self, a: Int) -> Operand {
        match a.repr {
            // Of a factor of a product of 32 bits only the low ones count, as of a register.
            Repr::Const(x) if i32::try_from(x).is_err() && u32::try_from(x).is_err() => {
                Operand::Imm(i64::from(x as i32))
            }
            Repr::Const(x) => Operand::Imm(x),
            Repr::R32(r) => r.into(),
            Repr::R64(r) => self.emit.pure(Class::B32, P::CvtS32S64, [r.into()]).into(),
        }
    }

    /// An integer as a 64-bit operand.
    pub(super) fn as64(&mut self, a: Int) -> Operand {
        match a.repr {
            Repr::Const(x) => Operand::Imm(x),
            Repr::R32(r) => self.emit.pure(Class::B64, P::CvtS64S32, [r.into()]).into(),
            Repr::R64(r) => r.into(),
        }
    }

    /// An integer in a 32-bit register.
    pub(super) fn in32(&mut self, a: Int) -> Reg {
        match self.as32(a) {
            Operand::Reg(r) => r,
            other => self.emit.pure(Class::B32, P::MovB32, [other]),
        }
    }

    /// An integer in a 64-bit register.
    pub(super) fn in64(&mut self, a: Int) -> Reg {
        match self.as64(a) {
            Operand::Reg(r) => r,
            other => self.emit.pure(Class::B64, P::MovB64, [other]),
        }
    }
}

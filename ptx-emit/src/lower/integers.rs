//! Operators on integer elements for which PTX has no instruction with the semantics of the language.

use super::divide::Floored;
use super::state::Lower;
use super::tile::is_unsigned;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::entities::Expr;
use tilec_ir::ops::Op;
use tilec_ir::types::Elem;
use tilec_ir::typing::const_int;

impl Lower<'_> {
    /// `op` on elements of an integer type; `args` are its operands as expressions. `None`: there is an instruction, or
    /// the operator is not for integers.
    pub(super) fn integer(&mut self, op: Op, elem: Elem, args: &[Expr], xs: &[Reg]) -> Option<Reg> {
        let class = self.emit.func.regs[*xs.first()?];
        let narrow = match class {
            Class::B32 => true,
            Class::B64 => false,
            _ => return None,
        };
        let pick = |n: P, w: P| if narrow { n } else { w };
        let fits = |x: &i64| !narrow || i32::try_from(*x).is_ok() || elem == Elem::U32 && u32::try_from(*x).is_ok();
        let literal = args.get(1).and_then(|&b| const_int(self.k, b)).filter(fits);
        Some(match (op, xs) {
            (Op::Div | Op::Rem | Op::CeilDiv, &[a, b]) => self.divided(op, is_unsigned(elem, class), (a, b), literal),
            (Op::Shl, &[a, b]) => {
                let by = self.shift_amount(b, literal);
                self.emit.pure(class, pick(P::ShlB32, P::ShlB64), [a.into(), by])
            }
            (Op::Shr, &[a, b]) => {
                let by = self.shift_amount(b, literal);
                let unsigned = is_unsigned(elem, class);
                let shift = if unsigned { pick(P::ShrU32, P::ShrU64) } else { pick(P::ShrS32, P::ShrS64) };
                self.emit.pure(class, shift, [a.into(), by])
            }
            // Only the bits of the element's type are inverted.
            (Op::BitNot, &[a]) if matches!(elem, Elem::U4 | Elem::U8 | Elem::U16) => {
                self.emit.pure(class, P::XorB32, [a.into(), Operand::Imm((1 << elem.bits()) - 1)])
            }
            (Op::Popcount, &[a]) => {
                let a = if elem.bits() < 32 {
                    self.emit.pure(class, P::AndB32, [a.into(), Operand::Imm((1 << elem.bits()) - 1)])
                } else {
                    a
                };
                let count = self.emit.pure(Class::B32, pick(P::PopcB32, P::PopcB64), [a.into()]);
                self.convert(count, class)
            }
            _ => return None,
        })
    }

    /// The shift amount. The machine clamps an unsigned 32-bit amount to the register width; a 64-bit amount is first
    /// clamped so that its low word is enough.
    fn shift_amount(&mut self, by: Reg, literal: Option<i64>) -> Operand {
        if let Some(n) = literal {
            return Operand::Imm(if (0..64).contains(&n) { n } else { 64 });
        }
        if self.emit.func.regs[by] == Class::B32 {
            return by.into();
        }
        let most = self.emit.pure(Class::B64, P::MinU64, [by.into(), Operand::Imm(64)]);
        self.emit.pure(Class::B32, P::CvtU32U64, [most.into()]).into()
    }

    /// `a / b`, `a % b` or `ceildiv(a, b)`; `literal` is the divisor if it is a literal.
    fn divided(&mut self, op: Op, unsigned: bool, (a, b): (Reg, Reg), literal: Option<i64>) -> Reg {
        let class = self.emit.func.regs[a];
        let narrow = class == Class::B32;
        let pick = |n: P, w: P| if narrow { n } else { w };
        let Floored { quotient, remainder } = match literal {
            Some(0) => Floored { quotient: self.int_literal(0, class), remainder: a },
            Some(d) if d > 0 && d.count_ones() == 1 => {
                let by = Operand::Imm(i64::from(d.trailing_zeros()));
                let shift = if unsigned { pick(P::ShrU32, P::ShrU64) } else { pick(P::ShrS32, P::ShrS64) };
                let quotient = self.emit.pure(class, shift, [a.into(), by]);
                let remainder = self.emit.pure(class, pick(P::AndB32, P::AndB64), [a.into(), Operand::Imm(d - 1)]);
                Floored { quotient, remainder }
            }
            Some(d) if d > 0 && d <= i64::from(i32::MAX) && narrow && !unsigned => self.floored_by_literal(a, d),
            _ if unsigned => self.unsigned_division(a, b, literal.is_none()),
            _ => self.floored_division(a, b, literal.is_none()),
        };
        match op {
            Op::Div => quotient,
            Op::Rem => remainder,
            _ if literal == Some(0) => quotient,
            _ => {
                // Ceiling division: one more if the remainder is not zero, except for a division by zero.
                let zero = Operand::Imm(0);
                let mut rest =
                    self.emit.pure(Class::Pred, pick(P::SetpNeS32, P::SetpNeS64), [remainder.into(), zero.clone()]);
                if literal.is_none() {
                    let divides = self.emit.pure(Class::Pred, pick(P::SetpNeS32, P::SetpNeS64), [b.into(), zero]);
                    rest = self.emit.pure(Class::Pred, P::AndPred, [rest.into(), divides.into()]);
                }
                let more = self.emit.pure(class, pick(P::AddS32, P::AddS64), [quotient.into(), Operand::Imm(1)]);
                self.choose(rest, more, quotient)
            }
        }
    }
}

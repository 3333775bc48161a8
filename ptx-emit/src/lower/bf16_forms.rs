//! How bf16 elements that stay in registers become f32.
//!
//! If several statements convert the same elements by the same instruction, ptxas converts once and holds the f32 from
//! the first statement to the last: twice the registers of the tile. Each statement therefore converts by another
//! instruction. Log-softmax of 131072 bf16, 128 elements a thread, at most 128 registers, ptxas 13.5: 256 bytes of
//! spills with one form, none with three.

use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::types::Elem;

/// The instruction that places a bf16 in the upper half of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `mov.b32` of two 16-bit registers.
    Pack,
    /// `shl.b32` of the lower element, `and.b32` of the upper one.
    Shift,
    /// `prmt.b32`.
    Permute,
}

impl Form {
    fn next(self) -> Form {
        match self {
            Form::Pack => Form::Shift,
            Form::Shift => Form::Permute,
            Form::Permute => Form::Pack,
        }
    }
}

impl Lower<'_> {
    /// Element `v` of a tile of bf16 pairs as an f32, if this statement uses another form than [`Form::Pack`].
    pub(super) fn widened_by_form(&mut self, tile: &Tile, v: usize) -> Option<Reg> {
        if tile.elem != Elem::BF16 || tile.per_register != 2 {
            return None;
        }
        let (pair, upper) = (tile.regs[v / 2], v % 2 == 1);
        let (op, operands) = match self.form_of(pair) {
            Form::Pack => return None,
            Form::Shift if upper => (P::AndB32, vec![pair.into(), Operand::Imm(0xffff_0000)]),
            Form::Shift => (P::ShlB32, vec![pair.into(), Operand::Imm(16)]),
            // Bytes 4 to 7 of the selector are those of the second operand, which is zero.
            Form::Permute => {
                let selector = if upper { 0x3244 } else { 0x1044 };
                (P::PrmtB32, vec![pair.into(), Operand::Imm(0), Operand::Imm(selector)])
            }
        };
        let bits = self.emit.def(Class::B32, op, operands);
        Some(self.emit.def(Class::F32, P::MovF32B32, [bits.into()]))
    }

    /// The form in which the present statement converts the elements of this register.
    fn form_of(&mut self, pair: Reg) -> Form {
        let now = self.emit.origin;
        let (statement, form) = self.bf16_forms.entry(pair).or_insert((now, Form::Pack));
        if *statement != now {
            (*statement, *form) = (now, form.next());
        }
        *form
    }
}

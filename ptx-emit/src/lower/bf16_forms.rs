//! How bf16 elements that stay in registers become f32.
//!
//! If several statements convert the same elements by the same instruction, ptxas may convert once and hold the f32 from
//! the first statement to the last: twice the registers of the tile. If a thread cannot hold them, each statement
//! converts by another instruction. Log-softmax of 131072 bf16, 128 elements a thread, at most 128 registers, ptxas
//! 13.5: 256 bytes of spills with one form, none with three; 0.73 and 0.90 of a copy's rate on an H200.
//!
//! There are three forms. With four statements that convert, a program was 5 % slower with them than with one.

use super::state::Lower;
use super::tile::{Form, Tile};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::entities::Value;
use tilec_ir::kernel::StmtData;
use tilec_ir::types::{Elem, ElemRef};

/// Registers of a thread for all tiles, and for the f32 of tiles of bf16, from which on the f32 are not held.
const MOST_HELD: u64 = 128;
/// Number of forms.
const FORMS: usize = 3;

impl Lower<'_> {
    /// Whether statements convert the elements of a tile by different forms.
    pub(super) fn choose_bf16_forms(&mut self, value: Value, tile: &Tile) {
        let pairs = tile.elem == Elem::BF16 && tile.per_register == 2;
        if !pairs || !self.converts_by_forms(value) {
            return;
        }
        let all: u64 = self.k.values.keys().map(|v| self.tile_registers(v)).sum();
        let wide = self.k.values.keys().filter(|&v| self.converts_by_forms(v)).map(|v| 2 * self.tile_registers(v));
        if all + wide.sum::<u64>() >= MOST_HELD {
            self.bf16_forms.extend(tile.regs.iter().map(|&pair| (pair, (None.into(), Form::Pack))));
        }
    }

    /// Registers of a thread for a tile.
    fn tile_registers(&self, value: Value) -> u64 {
        let tile = self.k.tile_ty(value).and_then(|tile| Some((tile.elem, tile.reg_layout.as_ref()?)));
        match tile {
            Some((ElemRef::Known(elem), layout)) => elem.size().words(1 << layout.value_bits().min(40)),
            _ => 0,
        }
    }

    /// Whether a value is a tile of bf16 that several statements read, but no more than there are forms.
    fn converts_by_forms(&self, value: Value) -> bool {
        let bf16 = self.k.tile_ty(value).is_some_and(|tile| tile.elem == ElemRef::Known(Elem::BF16));
        bf16 && (2..=FORMS).contains(&self.reading_statements(value))
    }

    /// The number of statements that read a value, also by the names of what is computed of it when it is stored.
    fn reading_statements(&self, value: Value) -> usize {
        let reads = |data: &StmtData| {
            let read = match *data {
                StmtData::Let { value, .. } if self.deferred.init(value).is_some() => return false,
                StmtData::Copy { src, .. } => vec![src],
                _ => data.exprs().into_iter().collect(),
            };
            read.into_iter().any(|e| self.deferred.read_by(self.k, e).contains(&value))
        };
        self.k.statement_data().filter(|data| reads(data)).count()
    }

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
        let Some((statement, form)) = self.bf16_forms.get_mut(&pair) else { return Form::Pack };
        if *statement != now {
            *form = if statement.is_none() { Form::Pack } else { form.next() };
            *statement = now;
        }
        *form
    }
}

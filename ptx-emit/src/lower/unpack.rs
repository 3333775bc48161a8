//! Elements of four bits as 16-bit floats, two in three instructions.
//!
//! Bits that are put below the exponent of a power of two are added to it: `0x6400 | n` is 1024 + n in f16, `0x4300 | n` is 128 + n in bf16. What is too much is
//! subtracted, which is exact (Kim et al., "Who Says Elephants Can't Run", 2022; Frantar et al., "MARLIN", 2024). In f16 the upper half of a byte is taken where it
//! is, as 1024 + 16 n, and divided by 16 in the same instruction. A number with a sign is one without, less 8, when its highest bit is turned over.

use super::packing::selector;
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::types::Elem;

/// `a & b | c` as a truth table of `lop3`.
const AND_OR: i64 = 0xea;

impl Lower<'_> {
    /// Fills `to` with the elements of `from`, which has the same layout, if they are of four bits and whole registers become whole registers of 16-bit floats.
    pub(super) fn unpacked(&mut self, from: &Tile, to: &Tile) -> bool {
        let small = matches!(from.elem, Elem::I4 | Elem::U4) && from.packed() && to.per_register == 2;
        let halves = match to.elem {
            Elem::F16 => true,
            Elem::BF16 => self.target.has_bf16_conversions(),
            _ => false,
        };
        if !small || !halves || from.layout != to.layout {
            return false;
        }
        let pairs: Vec<usize> = to.registers().collect();
        for pairs in pairs.chunk_by(|a, b| 2 * a / from.per_register == 2 * b / from.per_register) {
            let (mut word, offset) = (from.regs[2 * pairs[0] / from.per_register], from.elem == Elem::I4);
            if offset {
                word = self.emit.def(Class::B32, P::XorB32, [word.into(), Operand::Imm(0x8888_8888)]);
            }
            let upper = match to.elem {
                Elem::F16 => word,
                _ => self.emit.def(Class::B32, P::ShrU32, [word.into(), Operand::Imm(4)]),
            };
            for &pair in pairs {
                let byte = pair % (from.per_register / 2);
                let halves = match to.elem {
                    Elem::F16 => self.halves_of_byte(word, byte, offset),
                    _ => self.upper_halves_of_byte(word, upper, byte, offset),
                };
                self.mov(to.regs[pair], halves);
            }
        }
        true
    }

    /// The two numbers of a byte in f16, less 8 if `offset`.
    fn halves_of_byte(&mut self, word: Reg, byte: usize, offset: bool) -> Reg {
        let both = selector([byte, 4, byte, 4]);
        let spread = self.emit.def(Class::B32, P::PrmtB32, [word.into(), Operand::Imm(0x64), both]);
        let moved = self.emit.def(Class::B32, P::AndB32, [spread.into(), Operand::Imm(0x64f0_640f)]);
        // 1 / 16 and 1; -64 and -1024, or -72 and -1032.
        let (scale, back) = (0x2c00_3c00, if offset { 0xd480_e408 } else { 0xd400_e400 });
        self.fused(P::FmaRnF16x2, moved, scale, back)
    }

    /// The same in bf16; `upper` is the word less its lowest four bits.
    fn upper_halves_of_byte(&mut self, word: Reg, upper: Reg, byte: usize, offset: bool) -> Reg {
        let both = selector([byte, byte, byte + 4, byte + 4]);
        let spread = self.emit.def(Class::B32, P::PrmtB32, [word.into(), upper.into(), both]);
        let operands = vec![spread.into(), Operand::Imm(0x000f_000f), Operand::Imm(0x4300_4300), Operand::Imm(AND_OR)];
        let moved = self.emit.def(Class::B32, P::Lop3B32, operands);
        // 1; -128, or -136.
        self.fused(P::FmaRnBf16x2, moved, 0x3f80_3f80, if offset { 0xc308_c308 } else { 0xc300_c300 })
    }

    /// `a * b + c` of pairs, of which two are literals.
    fn fused(&mut self, op: P, a: Reg, b: i64, c: i64) -> Reg {
        let [b, c] = [b, c].map(|bits| self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(bits)]));
        self.emit.def(Class::B32, op, [a.into(), b.into(), c.into()])
    }
}

//! Bytes and half bytes of registers: extracted, and packed by `prmt`, which picks any four bytes of two registers.
//! Packing four bytes from four registers takes three `prmt`, but in a 4x4 transposition the first two serve two
//! results each ([`Pairs`]).

use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::types::Elem;

/// A 4-bit element: its register, and its position among the register's eight.
pub(super) type Nibble = (Reg, usize);

/// Registers that interleave bytes `2h, 2h + 1` of two registers: (first, second, `h`) and the result. An entry is
/// valid as long as the registers keep their values.
#[derive(Default)]
pub(super) struct Pairs(Vec<((Reg, Reg, usize), Reg)>);

/// The selector of `prmt` that picks these bytes, lowest first; 0 to 3 are the first register's, 4 to 7 the second's.
pub(super) fn selector(bytes: [usize; 4]) -> Operand {
    Operand::Imm(bytes.iter().rev().fold(0, |a, &b| a << 4 | b as i64))
}

impl Lower<'_> {
    /// A byte of a register, zeros above it.
    pub(super) fn byte(&mut self, reg: Reg, byte: usize) -> Reg {
        let operands = vec![reg.into(), Operand::Imm(8 * byte as i64), Operand::Imm(8)];
        self.emit.def(Class::B32, P::BfeU32, operands)
    }

    /// Packs up to four bytes, each given by its register and its byte in it; the other bytes are undefined.
    pub(super) fn assemble(&mut self, bytes: &[(Reg, usize)], pairs: &mut Pairs) -> Reg {
        let at = |i: usize| bytes.get(i).or(bytes.first()).copied();
        let (Some(b0), Some(b1), Some(b2), Some(b3)) = (at(0), at(1), at(2), at(3)) else {
            return self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
        };
        let all = [b0, b1, b2, b3];
        if bytes.iter().take(4).enumerate().all(|(i, &(r, b))| r == b0.0 && b == i) {
            return b0.0;
        }
        let second = all.iter().map(|b| b.0).find(|&r| r != b0.0).unwrap_or(b0.0);
        if all.iter().all(|b| b.0 == b0.0 || b.0 == second) {
            let pick = all.map(|(r, b)| if r == b0.0 { b } else { b + 4 });
            return self.permute(b0.0, second, pick);
        }
        let ((low, l), (high, h)) = (self.pair(b0, b1, pairs), self.pair(b2, b3, pairs));
        self.permute(low, high, [l, l + 1, h + 4, h + 5])
    }

    /// A register with two bytes next to each other, and the position of the first.
    fn pair(&mut self, a: (Reg, usize), b: (Reg, usize), pairs: &mut Pairs) -> (Reg, usize) {
        if a.1 != b.1 {
            return (self.permute(a.0, b.0, [a.1, b.1 + 4, 0, 0]), 0);
        }
        let key = (a.0, b.0, a.1 / 2);
        let at = a.1 % 2 * 2;
        if let Some((_, reg)) = pairs.0.iter().find(|(k, _)| *k == key) {
            return (*reg, at);
        }
        let first = a.1 / 2 * 2;
        let reg = self.permute(a.0, b.0, [first, first + 4, first + 1, first + 5]);
        pairs.0.push((key, reg));
        (reg, at)
    }

    fn permute(&mut self, a: Reg, b: Reg, pick: [usize; 4]) -> Reg {
        self.emit.def(Class::B32, P::PrmtB32, [a.into(), b.into(), selector(pick)])
    }

    /// Writes bytes, each given by its register and its byte in it, to elements of a tile; other elements keep their
    /// values.
    pub(super) fn set_bytes(&mut self, tile: &Tile, bytes: &[(usize, (Reg, usize))]) {
        let mut pairs = Pairs::default();
        let mut source: Vec<Option<(Reg, usize)>> = vec![None; tile.len()];
        for &(v, b) in bytes {
            source[v] = Some(b);
        }
        for (i, part) in source.chunks(tile.per_register).enumerate() {
            let Some(&any) = part.iter().flatten().next() else { continue };
            // Bytes of absent elements may have any value.
            let others = |b: usize| if tile.used.has(i * tile.per_register + b) { (tile.regs[i], b) } else { any };
            let whole: Vec<(Reg, usize)> = part.iter().enumerate().map(|(b, s)| s.unwrap_or(others(b))).collect();
            let reg = self.assemble(&whole, &mut pairs);
            self.mov(tile.regs[i], reg);
        }
    }

    /// The bits of an element in a register of its own, sign-extended if the type is signed.
    pub(super) fn bits_of_nibble(&mut self, (reg, at): Nibble, elem: Elem) -> Reg {
        let field = if elem == Elem::U4 { P::BfeU32 } else { P::BfeS32 };
        self.emit.def(Class::B32, field, [reg.into(), Operand::Imm(4 * at as i64), Operand::Imm(4)])
    }

    /// The number of an element.
    pub(super) fn nibble(&mut self, (reg, at): Nibble, elem: Elem) -> Reg {
        let bits = self.bits_of_nibble((reg, at), elem);
        if elem == Elem::E2M1 { self.of_e2m1(bits) } else { bits }
    }

    /// Packs up to eight elements; the other bits are undefined.
    pub(super) fn assemble_nibbles(&mut self, nibbles: &[Nibble]) -> Reg {
        // Two adjacent halves of one byte move as a byte.
        let bytes = nibbles.chunks(2).map(|pair| match *pair {
            [(a, i), (b, j)] if a == b && j == i + 1 && i.is_multiple_of(2) => Some((a, i / 2)),
            _ => None,
        });
        if let Some(bytes) = bytes.collect::<Option<Vec<_>>>() {
            return self.assemble(&bytes, &mut Pairs::default());
        }
        let (first, at) = nibbles[0];
        let mut word = match at {
            0 => first,
            _ => self.emit.def(Class::B32, P::ShrU32, [first.into(), Operand::Imm(4 * at as i64)]),
        };
        for (i, &(reg, at)) in nibbles.iter().enumerate().skip(1) {
            let own = match at {
                0 => reg,
                _ => self.emit.def(Class::B32, P::ShrU32, [reg.into(), Operand::Imm(4 * at as i64)]),
            };
            let place = Operand::Imm(4 * i as i64);
            word = self.emit.def(Class::B32, P::BfiB32, [own.into(), word.into(), place, Operand::Imm(4)]);
        }
        word
    }

    /// Writes elements to a tile; other elements keep their values. Parts of a register without an element repeat one that
    /// is written, so that they are not undefined.
    pub(super) fn set_nibbles(&mut self, tile: &Tile, nibbles: &[(usize, Nibble)]) {
        let mut source: Vec<Option<Nibble>> = vec![None; tile.len()];
        for &(v, n) in nibbles {
            source[v] = Some(n);
        }
        let mut words = Vec::new();
        for (i, part) in source.chunks(tile.per_register).enumerate() {
            if part.iter().all(Option::is_none) {
                continue;
            }
            let own = |n: usize| tile.nibble_of(i * tile.per_register + n);
            // With fewer of its bits, the number of a part is that of one within the extents.
            let written = |mut n: usize| {
                while n > 0 && !tile.used.has(i * tile.per_register + n) {
                    n ^= 1 << n.ilog2();
                }
                part[n]
            };
            let whole: Vec<Nibble> = (0..part.len()).map(|n| written(n).unwrap_or(own(n))).collect();
            words.push((tile.regs[i], self.assemble_nibbles(&whole)));
        }
        // All are read before the first is written.
        words.into_iter().for_each(|(reg, word)| self.mov(reg, word));
    }
}

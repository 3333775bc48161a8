//! 4-bit elements as 16-bit floats, two in three instructions, and bytes, two in two to six.
//!
//! Bits in the fraction of a power of two add to it: `0x6400 | n` is 1024 + n in f16, `0x4300 | n` is 128 + n in bf16.
//! The power is then subtracted, which is exact (Kim et al., "Who Says Elephants Can't Run", 2022; Frantar et al.,
//! "MARLIN", 2024). In f16 the upper half of a byte is not shifted: it is 1024 + 16 n, and the same instruction divides
//! it by 16. A signed number is an unsigned one minus 8, with its highest bit inverted.

use super::packing::{Nibble, selector};
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::numerics::float_format;
use tilec_ir::ops::Op;
use tilec_ir::types::Elem;

/// `a & b | c` and `a & b ^ c` as truth tables of `lop3`.
const AND_OR: i64 = 0xea;
const AND_XOR: i64 = 0x6a;
/// `(a | b) & c`.
const OR_AND: i64 = 0xa8;

/// The bias that the trick adds to a 4-bit number: the smallest power of two whose fraction holds the number as an
/// integer, plus 8 if the number is signed, because its highest bit is inverted.
pub(super) fn more(of: Elem, to: Elem) -> i64 {
    let format = float_format(to).expect("a type of floats");
    (1 << format.mantissa_bits) + if of == Elem::I4 { 8 } else { 0 }
}

/// The negated bias, for both halves of a register.
fn back(of: Elem, to: Elem) -> Operand {
    let half = float_format(to).expect("a type of floats").encode(-(more(of, to) as f64)).cast_signed();
    Operand::Imm(half << 16 | half)
}

/// The number to add to the bits of the two halves of a byte of a [`Word`]. In f16 the upper half is divided by 16
/// first.
fn back_of_halves(of: Elem, to: Elem) -> Operand {
    match (to, of) {
        // -64 and -1024, or -72 and -1032.
        (Elem::F16, Elem::I4) => Operand::Imm(0xd480_e408),
        (Elem::F16, _) => Operand::Imm(0xd400_e400),
        _ => back(of, to),
    }
}

/// A register of more than two 4-bit elements. Signed elements have their highest bit inverted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Word {
    /// The elements.
    word: Reg,
    /// The same with the upper half of every byte shifted to the lower half, for bf16, which has no room for it in
    /// place.
    upper: Reg,
}

impl Lower<'_> {
    /// Fills `to` with the elements of `from`, which has the same layout, if they have 4 bits and whole registers
    /// become whole registers of 16-bit floats.
    pub(super) fn unpacked(&mut self, from: &Tile, to: &Tile) -> bool {
        if self.bytes_unpacked(from, to) {
            return true;
        }
        let small = from.elem.bits() == 4 && from.packed() && to.per_register == 2;
        let halves = match to.elem {
            Elem::F16 => true,
            Elem::BF16 => self.target.has_bf16_conversions(),
            _ => false,
        };
        if !small || !halves || from.layout != to.layout {
            return false;
        }
        if from.elem == Elem::E2M1 {
            self.floats_unpacked(from, to);
            return true;
        }
        let pairs: Vec<usize> = to.registers().collect();
        if from.per_register == 2 {
            let less = self.emit.pure(Class::B32, P::MovB32, [back(from.elem, to.elem)]);
            for pair in pairs {
                let numbers = self.byte_less(from, pair, (to.elem, less));
                self.mov(to.regs[pair], numbers);
            }
            return true;
        }
        let less = self.emit.pure(Class::B32, P::MovB32, [back_of_halves(from.elem, to.elem)]);
        for pairs in pairs.chunk_by(|a, b| 2 * a / from.per_register == 2 * b / from.per_register) {
            let word = self.word_of_halves(from.regs[2 * pairs[0] / from.per_register], from.elem, to.elem);
            for &pair in pairs {
                let numbers = self.halves_less(word, pair % (from.per_register / 2), (to.elem, less));
                self.mov(to.regs[pair], numbers);
            }
        }
        true
    }

    /// 4-bit floats: placed in the low ends of sign, exponent and fraction of a 16-bit float, they are the number
    /// divided by a power of two, also for subnormals.
    fn floats_unpacked(&mut self, from: &Tile, to: &Tile) {
        // Shift of a nibble from the highest bits of a half, the mask of its sign and other bits, and the factor.
        let (down, kept, scale) = match to.elem {
            Elem::F16 => (3, 0x8e00_8e00, 0x7400_7400),
            _ => (6, 0x81c0_81c0, 0x7e80_7e80),
        };
        let scale = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(scale)]);
        let pairs: Vec<usize> = to.registers().collect();
        for pairs in pairs.chunk_by(|a, b| 2 * a / from.per_register == 2 * b / from.per_register) {
            let word = from.regs[2 * pairs[0] / from.per_register];
            let lower = match from.per_register {
                2 => None,
                _ => Some(self.emit.def(Class::B32, P::ShlB32, [word.into(), Operand::Imm(4)])),
            };
            for &pair in pairs {
                let spread = match lower {
                    Some(lower) => {
                        let byte = pair % (from.per_register / 2);
                        let both = selector([byte, byte, byte + 4, byte + 4]);
                        self.emit.def(Class::B32, P::PrmtB32, [lower.into(), word.into(), both])
                    }
                    None => self.emit.def(Class::B32, P::MulLoS32, [word.into(), Operand::Imm(0x0100_1000)]),
                };
                let top = self.emit.def(Class::B32, P::AndB32, [spread.into(), Operand::Imm(0xf000_f000)]);
                let moved = self.emit.def(Class::B32, P::ShrU32, [top.into(), Operand::Imm(down)]);
                let operands = vec![top.into(), moved.into(), Operand::Imm(kept), Operand::Imm(OR_AND)];
                let bits = self.emit.def(Class::B32, P::Lop3B32, operands);
                let numbers = self.operation(Op::Mul, to.elem, bits, scale);
                self.mov(to.regs[pair], numbers);
            }
        }
    }

    /// The correction that converts the bits of two 4-bit numbers ([`byte_less`](Lower::byte_less),
    /// [`halves_less`](Lower::halves_less)) to the numbers minus `numbers`: the sum of `numbers` and [`more`], negated,
    /// is a number of the type.
    pub(super) fn less(&mut self, from: &Tile, numbers: Reg, to: Elem) -> Reg {
        let back = if from.per_register == 2 { back(from.elem, to) } else { back_of_halves(from.elem, to) };
        let negative = self.emit.pure(Class::B32, P::MovB32, [back]);
        self.operation(Op::Sub, to, negative, numbers)
    }

    /// The correction for one 4-bit element that is subtracted from both numbers: its bits below the exponent of the
    /// same power of two, with negative sign.
    pub(super) fn less_nibble(&mut self, from: &Tile, (word, place): Nibble, to: Elem) -> Reg {
        let lowest = match place {
            0 => word,
            _ => self.emit.def(Class::B32, P::ShrU32, [word.into(), Operand::Imm(4 * place as i64)]),
        };
        let (spread, kept) = if to == Elem::F16 && from.per_register > 2 {
            let alone = self.emit.def(Class::B32, P::AndB32, [lowest.into(), Operand::Imm(0xf)]);
            // In the upper half, numbers are multiplied by 16, so the correction is, too.
            (self.emit.def(Class::B32, P::MulLoS32, [alone.into(), Operand::Imm(0x0010_0001)]), 0x00f0_000f)
        } else {
            let twice = [lowest.into(), lowest.into(), selector([0, 1, 0, 1])];
            (self.emit.def(Class::B32, P::PrmtB32, twice), 0x000f_000f)
        };
        let above = match (to, from.per_register > 2) {
            (Elem::F16, true) => 0xd400_e400,
            (Elem::F16, false) => 0xe400_e400,
            _ => 0xc300_c300,
        };
        // The highest bit of a signed number is inverted here, too.
        let (above, how) = if from.elem == Elem::I4 { (above ^ kept & 0x0088_0088, AND_XOR) } else { (above, AND_OR) };
        let operands = vec![spread.into(), Operand::Imm(kept), Operand::Imm(above), Operand::Imm(how)];
        self.emit.def(Class::B32, P::Lop3B32, operands)
    }

    /// Prepares a register of 4-bit elements for extracting pairs.
    pub(super) fn word_of_halves(&mut self, mut word: Reg, of: Elem, to: Elem) -> Word {
        if of == Elem::I4 {
            word = self.emit.def(Class::B32, P::XorB32, [word.into(), Operand::Imm(0x8888_8888)]);
        }
        let upper = match to {
            Elem::F16 => word,
            _ => self.emit.def(Class::B32, P::ShrU32, [word.into(), Operand::Imm(4)]),
        };
        Word { word, upper }
    }

    /// The two numbers of a byte of a word, from their bits below an exponent, plus the correction `less`.
    pub(super) fn halves_less(&mut self, Word { word, upper }: Word, byte: usize, (to, less): (Elem, Reg)) -> Reg {
        if to == Elem::F16 {
            let both = selector([byte, 4, byte, 4]);
            let spread = self.emit.def(Class::B32, P::PrmtB32, [word.into(), Operand::Imm(0x64), both]);
            let bits = self.emit.def(Class::B32, P::AndB32, [spread.into(), Operand::Imm(0x64f0_640f)]);
            // 1 / 16 and 1.
            let scale = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0x2c00_3c00)]);
            return self.emit.def(Class::B32, P::FmaRnF16x2, [bits.into(), scale.into(), less.into()]);
        }
        let both = selector([byte, byte, byte + 4, byte + 4]);
        let spread = self.emit.def(Class::B32, P::PrmtB32, [word.into(), upper.into(), both]);
        let operands = vec![spread.into(), Operand::Imm(0x000f_000f), Operand::Imm(0x4300_4300), Operand::Imm(AND_OR)];
        let bits = self.emit.def(Class::B32, P::Lop3B32, operands);
        self.operation(Op::Add, to, bits, less)
    }

    /// The two numbers of a byte in a register of its own, from their bits below an exponent, plus the correction
    /// `less`.
    pub(super) fn byte_less(&mut self, from: &Tile, pair: usize, (to, less): (Elem, Reg)) -> Reg {
        // The upper half of the byte goes to the upper half of the register.
        let spread = self.emit.def(Class::B32, P::MulLoS32, [from.regs[pair].into(), Operand::Imm(0x1001)]);
        let above = if to == Elem::F16 { 0x6400_6400 } else { 0x4300_4300 };
        let (above, how) = if from.elem == Elem::I4 { (above ^ 0x0008_0008, AND_XOR) } else { (above, AND_OR) };
        let operands = vec![spread.into(), Operand::Imm(0x000f_000f), Operand::Imm(above), Operand::Imm(how)];
        let bits = self.emit.def(Class::B32, P::Lop3B32, operands);
        self.operation(Op::Add, to, bits, less)
    }

    /// 8-bit integers: `0x6400 | n` is 1024 + n in f16. In bf16 the lower seven bits are placed below the exponent of
    /// the number 128. The highest bit changes the correction from -128 to -256 or 0.
    fn bytes_unpacked(&mut self, from: &Tile, to: &Tile) -> bool {
        let bytes = matches!(from.elem, Elem::I8 | Elem::U8) && from.packed();
        let halves = match to.elem {
            Elem::F16 => true,
            Elem::BF16 => self.target.has_bf16_conversions(),
            _ => false,
        };
        if !bytes || !halves || to.per_register != 2 || from.layout != to.layout {
            return false;
        }
        let signed = from.elem == Elem::I8;
        let pairs: Vec<usize> = to.registers().collect();
        for pairs in pairs.chunk_by(|a, b| 2 * a / from.per_register == 2 * b / from.per_register) {
            let mut word = from.regs[2 * pairs[0] / from.per_register];
            if signed && to.elem == Elem::F16 {
                word = self.emit.def(Class::B32, P::XorB32, [word.into(), Operand::Imm(0x8080_8080)]);
            }
            for &pair in pairs {
                let low = 2 * pair % from.per_register;
                let both = selector([low, 4, low + 1, 4]);
                let above = if to.elem == Elem::F16 { 0x64 } else { 0 };
                let moved = self.emit.def(Class::B32, P::PrmtB32, [word.into(), Operand::Imm(above), both]);
                let number = match to.elem {
                    // 1; -1024, or -1152.
                    Elem::F16 => {
                        self.fused(P::FmaRnF16x2, moved, 0x3c00_3c00, if signed { 0xe480_e480 } else { 0xe400_e400 })
                    }
                    _ => self.seven_bits_and_one(moved, signed),
                };
                self.mov(to.regs[pair], number);
            }
        }
        true
    }

    /// Converts two bytes in the halves of a register to bf16.
    fn seven_bits_and_one(&mut self, halves: Reg, signed: bool) -> Reg {
        let part = |lower: &mut Self, bits: i64, or: i64| {
            let operands = vec![halves.into(), Operand::Imm(bits), Operand::Imm(or), Operand::Imm(AND_OR)];
            lower.emit.def(Class::B32, P::Lop3B32, operands)
        };
        let lower = part(self, 0x007f_007f, 0x4300_4300);
        if signed {
            let less = part(self, 0x0080_0080, 0xc300_c300);
            return self.operation(Op::Add, Elem::BF16, lower, less);
        }
        // 0x80 times 0x86 is 128.
        let highest = self.emit.def(Class::B32, P::AndB32, [halves.into(), Operand::Imm(0x0080_0080)]);
        let highest = self.emit.def(Class::B32, P::MulLoS32, [highest.into(), Operand::Imm(0x86)]);
        let back = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0xc300_c300)]);
        let lower = self.operation(Op::Add, Elem::BF16, lower, back);
        self.operation(Op::Add, Elem::BF16, lower, highest)
    }

    /// `a * b + c` on pairs, where `b` and `c` are literals.
    fn fused(&mut self, op: P, a: Reg, b: i64, c: i64) -> Reg {
        let [b, c] = [b, c].map(|bits| self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(bits)]));
        self.emit.def(Class::B32, op, [a.into(), b.into(), c.into()])
    }
}

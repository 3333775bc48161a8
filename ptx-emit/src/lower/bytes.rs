//! Eight-bit elements: four to a register.
//!
//! Registers are put together from bytes of others by `prmt`, which picks any four bytes of two registers. Four bytes of
//! four registers take three of them, but the first two of a 4x4 transposition serve two results each ([`Pairs`]).

use super::Lower;
use super::accesses::{guard, load_op, store_op, vector};
use super::copy::{Access, Filled};
use super::tiles::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::space::Space;
use tilec_ir::types::Elem;

/// Registers already made of bytes `2h, 2h + 1` of two registers, interleaved: (first, second, `h`) and the result. Valid as
/// long as the registers keep their values.
#[derive(Default)]
pub(super) struct Pairs(Vec<((Reg, Reg, usize), Reg)>);

/// The selector of `prmt` that picks these bytes, lowest first; 0 to 3 are the first register's, 4 to 7 the second's.
fn selector(bytes: [usize; 4]) -> Operand {
    Operand::Imm(bytes.iter().rev().fold(0, |a, &b| a << 4 | b as i64))
}

/// The instruction that loads so many bytes, of the registers [`Lower::loaded_bytes`] makes for it.
fn load_of(space: Space, bytes: usize) -> Option<P> {
    let global = space.has_bounds();
    match bytes {
        1 => Some(if global { P::LdGlobalU8 } else { P::LdSharedU8 }),
        2 => load_op(space, Class::B16, 1),
        _ => load_op(space, Class::B32, bytes / 4),
    }
}

impl Lower<'_> {
    /// A byte of a register, zeros above it.
    pub(super) fn byte(&mut self, reg: Reg, byte: usize) -> Reg {
        let operands = vec![reg.into(), Operand::Imm(8 * byte as i64), Operand::Imm(8)];
        self.emit.def(Class::B32, P::BfeU32, operands)
    }

    /// A register of up to four bytes, each given by the register and the byte of it; what is left is of no meaning.
    fn assemble(&mut self, bytes: &[(Reg, usize)], pairs: &mut Pairs) -> Reg {
        let at = |i: usize| bytes.get(i).or(bytes.first()).copied();
        let (Some(b0), Some(b1), Some(b2), Some(b3)) = (at(0), at(1), at(2), at(3)) else {
            return self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
        };
        let all = [b0, b1, b2, b3];
        if all.iter().enumerate().all(|(i, &(r, b))| r == b0.0 && b == i) {
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

    /// A register with two bytes next to each other, and where the first is.
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

    /// Puts bytes, each given by its register and the byte of it, into a tile; the others stay.
    pub(super) fn set_bytes(&mut self, tile: &Tile, bytes: &[(usize, (Reg, usize))]) {
        let mut pairs = Pairs::default();
        let mut source: Vec<Option<(Reg, usize)>> = vec![None; tile.len()];
        for &(v, b) in bytes {
            source[v] = Some(b);
        }
        for (i, part) in source.chunks(tile.per_register).enumerate() {
            let Some(&any) = part.iter().flatten().next() else { continue };
            // What is not there may be anything.
            let others = |b: usize| if tile.held.has(i * tile.per_register + b) { (tile.regs[i], b) } else { any };
            let whole: Vec<(Reg, usize)> = part.iter().enumerate().map(|(b, s)| s.unwrap_or(others(b))).collect();
            let reg = self.assemble(&whole, &mut pairs);
            self.mov(tile.regs[i], reg);
        }
    }

    /// Loads windows of 8-bit elements into a tile.
    pub(super) fn load_bytes(
        &mut self,
        src: Expr,
        access: &mut Access,
        groups: &[Vec<usize>],
        preds: &[Option<Reg>],
        tile: &Tile,
        keep: bool,
    ) -> Result<(), Reported> {
        let mut found = Vec::new();
        for (group, &pred) in groups.iter().zip(preds) {
            // Straight into the tile's registers where they hold whole neighbours.
            let own = if group.len() >= 4 { self.registers_of(tile, group) } else { None };
            let old = keep.then_some(tile);
            let direct = own.is_some();
            let regs = self.loaded_bytes(src, access, group, pred, own, old)?;
            if !direct {
                found.extend(group.iter().enumerate().map(|(i, &v)| (v, (regs[i / 4], i % 4))));
            }
        }
        self.set_bytes(tile, &found);
        Ok(())
    }

    /// One access: the registers its bytes are in, `into` if given. Where it is masked out they are zero, or `old`'s elements.
    fn loaded_bytes(
        &mut self,
        src: Expr,
        access: &mut Access,
        group: &[usize],
        pred: Option<Reg>,
        into: Option<Vec<Reg>>,
        old: Option<&Tile>,
    ) -> Result<Vec<Reg>, Reported> {
        let Some(op) = load_of(access.space, group.len()) else {
            return Err(self.unsupported(src, "an access of this width"));
        };
        let half = group.len() == 2;
        let class = if half { Class::B16 } else { Class::B32 };
        let direct = into.is_some();
        let regs: Vec<Reg> =
            into.unwrap_or_else(|| (0..group.len().div_ceil(4)).map(|_| self.emit.mutable(class)).collect());
        if pred.is_some() {
            for (&r, part) in regs.iter().zip(group.chunks(4)) {
                match old {
                    // A load straight into the tile leaves there what was there.
                    Some(_) if direct => {}
                    Some(tile) => {
                        let bytes: Vec<_> = part.iter().map(|&v| tile.byte_of(v)).collect();
                        let word = self.assemble(&bytes, &mut Pairs::default());
                        let word = if half { self.emit.def(Class::B16, P::CvtU16U32, [word.into()]) } else { word };
                        self.mov(r, word);
                    }
                    None => {
                        // A single byte has the whole register.
                        let bits = if group.len() == 1 { 32 } else { 8 };
                        self.fill_reg(r, access.fill.map(|fill| Filled { bits, ..fill }));
                    }
                }
            }
        }
        let address = self.address(access, group[0])?;
        self.emit.push_if(guard(pred), op, [vector(regs.clone()), address]);
        Ok(if half {
            regs.into_iter().map(|r| self.emit.def(Class::B32, P::CvtU32U16, [r.into()])).collect()
        } else {
            regs
        })
    }

    /// Loads one group of a window into fresh registers of the computed class.
    pub(super) fn load_byte_group(
        &mut self,
        e: Expr,
        access: &mut Access,
        elem: Elem,
        group: &[usize],
        pred: Option<Reg>,
    ) -> Result<Vec<Reg>, Reported> {
        let regs = self.loaded_bytes(e, access, group, pred, None, None)?;
        Ok((0..group.len())
            .map(|i| {
                let raw = self.byte(regs[i / 4], i % 4);
                self.widen(raw, elem)
            })
            .collect())
    }

    /// Stores bytes, each given by its register and the byte of it, side by side.
    pub(super) fn store_bytes(
        &mut self,
        dst: Expr,
        space: Space,
        address: Operand,
        bytes: &[(Reg, usize)],
        pred: Option<Reg>,
        pairs: &mut Pairs,
    ) -> Result<(), Reported> {
        let global = space.has_bounds();
        let (op, value) = match *bytes {
            [(reg, byte)] => {
                let low = if byte == 0 { reg } else { self.byte(reg, byte) };
                (Some(if global { P::StGlobalU8 } else { P::StSharedU8 }), low.into())
            }
            [_, _] => {
                let word = self.assemble(bytes, pairs);
                let half = self.emit.def(Class::B16, P::CvtU16U32, [word.into()]);
                (store_op(space, Class::B16, 1), half.into())
            }
            _ => {
                let words: Vec<Reg> = bytes.chunks(4).map(|part| self.assemble(part, pairs)).collect();
                (store_op(space, Class::B32, words.len()), vector(words))
            }
        };
        let Some(op) = op else { return Err(self.unsupported(dst, "an access of this width")) };
        self.emit.push_if(guard(pred), op, [address, value]);
        Ok(())
    }
}

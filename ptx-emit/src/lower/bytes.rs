//! Accesses to 8-bit elements, four to a register.

use super::accesses::{guard, load_op, store_op, vector};
use super::packing::Pairs;
use super::state::Lower;
use super::tile::{Filled, Tile};
use super::windows::Access;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::space::Space;
use tilec_ir::types::Elem;

/// The instruction that loads `bytes` bytes into the registers that [`Lower::loaded_bytes`] makes for it.
fn load_of(space: Space, bytes: usize) -> Option<P> {
    let global = space.has_bounds();
    match bytes {
        1 => Some(if global { P::LdGlobalU8 } else { P::LdSharedU8 }),
        2 => load_op(space, Class::B16, 1),
        _ => load_op(space, Class::B32, bytes / 4),
    }
}

impl Lower<'_> {
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
            // Loads go directly to the tile's registers if an access fills whole registers.
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

    /// Emits one access and returns the registers of its bytes, `into` if given. Masked bytes are zero, or the elements
    /// of `old`.
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
                    // A masked load into the tile's own registers leaves their old values.
                    Some(_) if direct => {}
                    Some(tile) => {
                        let bytes: Vec<_> = part.iter().map(|&v| tile.byte_of(v)).collect();
                        let word = self.assemble(&bytes, &mut Pairs::default());
                        let word = if half { self.emit.def(Class::B16, P::CvtU16U32, [word.into()]) } else { word };
                        self.mov(r, word);
                    }
                    None => {
                        // A single byte is loaded to a whole register.
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

    /// Stores consecutive bytes, each given by its register and its byte in it.
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
        self.put(pred, op, address, value)
    }
}

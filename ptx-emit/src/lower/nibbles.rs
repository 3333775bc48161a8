//! Accesses to 4-bit elements: two to a byte, the lower half first, eight to a register.
//!
//! A thread that owns whole bytes of a window loads and stores bytes. A single element is loaded as the byte that contains it, of which one half
//! is extracted, selected by the address in half bytes ([`Lower::half_of`]). It cannot be stored, because another thread may store the other half.

use super::accesses::{guard, load_op, store_op, vector};
use super::packing::Nibble;
use super::state::Lower;
use super::tile::Tile;
use super::windows::Access;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, StmtData};
use tilec_ir::modified_values::changes;
use tilec_ir::space::Space;
use tilec_ir::types::Elem;
use tilec_ir::typing::resolve_view;

/// Elements of a register.
const PER_REGISTER: usize = 8;
/// Elements of 16 bits.
const PER_HALF: usize = 4;

impl Lower<'_> {
    /// Whether a register tile changes only by loads of single bytes: then each register holds one byte, and they are
    /// not packed.
    pub(super) fn loaded_by_bytes(&self, value: Value) -> bool {
        let k = self.k;
        let by_bytes = |s: Stmt| match &k.stmts[s] {
            StmtData::Var { value: own, init } => *own == value && init.is_none(),
            StmtData::Copy { src, dst, attrs } => {
                let from = resolve_view(k, *src).is_some_and(|view| view.space(k).is_memory());
                let whole = matches!(k.exprs[*dst], ExprData::Ref(v) if v == value);
                from && whole && attrs.vec == Some(2) && !attrs.keep && attrs.is_by_threads()
            }
            _ => false,
        };
        let mut changing = k.statements().into_iter().filter(|&s| k.sub_blocks(s).is_empty() && changes(k, s, value));
        changing.all(by_bytes)
    }

    /// Loads windows of 4-bit elements into a tile.
    pub(super) fn load_nibbles(
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
            let own = if group.len() >= PER_REGISTER { self.registers_of(tile, group) } else { None };
            let direct = own.is_some();
            let loaded = self.loaded_nibbles(src, access, group, pred, own, keep.then_some(tile))?;
            if !direct {
                found.extend(group.iter().copied().zip(loaded));
            }
        }
        self.set_nibbles(tile, &found);
        Ok(())
    }

    /// Emits one access and returns the places of its elements, in registers `into` if given. Masked elements are the
    /// fill value, or the elements of `old`.
    fn loaded_nibbles(
        &mut self,
        src: Expr,
        access: &mut Access,
        group: &[usize],
        pred: Option<Reg>,
        into: Option<Vec<Reg>>,
        old: Option<&Tile>,
    ) -> Result<Vec<Nibble>, Reported> {
        let global = access.space.has_bounds();
        let half = group.len() == PER_HALF;
        let op = match group.len() {
            1 | 2 => Some(if global { P::LdGlobalU8 } else { P::LdSharedU8 }),
            PER_HALF => load_op(access.space, Class::B16, 1),
            n => load_op(access.space, Class::B32, n / PER_REGISTER),
        };
        let Some(op) = op else { return Err(self.unsupported(src, "an access of this width")) };
        let class = if half { Class::B16 } else { Class::B32 };
        let direct = into.is_some();
        let count = group.len().div_ceil(PER_REGISTER);
        let regs: Vec<Reg> = into.unwrap_or_else(|| (0..count).map(|_| self.emit.mutable(class)).collect());
        if pred.is_some() {
            for (&r, part) in regs.iter().zip(group.chunks(PER_REGISTER)) {
                match old {
                    // A masked load into the tile's own registers leaves their old values.
                    Some(_) if direct => {}
                    Some(tile) => {
                        // A single element takes both halves of its byte.
                        let mut before: Vec<Nibble> = part.iter().map(|&v| tile.nibble_of(v)).collect();
                        if let [one] = before[..] {
                            before.push(one);
                        }
                        let word = self.assemble_nibbles(&before);
                        let word = if half { self.emit.def(Class::B16, P::CvtU16U32, [word.into()]) } else { word };
                        self.mov(r, word);
                    }
                    None => self.fill_reg(r, access.fill),
                }
            }
        }
        let address = self.address(access, group[0])?;
        self.emit.push_if(guard(pred), op, [vector(regs.clone()), address]);
        if let [v] = group[..] {
            let shift = self.half_of(access, v)?;
            let own = self.emit.def(Class::B32, P::ShrU32, [regs[0].into(), shift]);
            return Ok(vec![(own, 0)]);
        }
        let words: Vec<Reg> = if half {
            regs.into_iter().map(|r| self.emit.def(Class::B32, P::CvtU32U16, [r.into()])).collect()
        } else {
            regs
        };
        Ok((0..group.len()).map(|i| (words[i / PER_REGISTER], i % PER_REGISTER)).collect())
    }

    /// Loads one group of a window into fresh registers of the computed class.
    pub(super) fn load_nibble_group(
        &mut self,
        e: Expr,
        access: &mut Access,
        elem: Elem,
        group: &[usize],
        pred: Option<Reg>,
    ) -> Result<Vec<Reg>, Reported> {
        let loaded = self.loaded_nibbles(e, access, group, pred, None, None)?;
        Ok(loaded.into_iter().map(|n| self.nibble(n, elem)).collect())
    }

    /// Stores consecutive elements.
    pub(super) fn store_nibbles(
        &mut self,
        dst: Expr,
        space: Space,
        address: Operand,
        nibbles: &[Nibble],
        pred: Option<Reg>,
    ) -> Result<(), Reported> {
        let words: Vec<Reg> = nibbles.chunks(PER_REGISTER).map(|part| self.assemble_nibbles(part)).collect();
        let (op, value) = match nibbles.len() {
            1 => panic!("bug: `vectorize` lets no thread store half of a byte"),
            2 => (Some(if space.has_bounds() { P::StGlobalU8 } else { P::StSharedU8 }), words[0].into()),
            PER_HALF => {
                let half = self.emit.def(Class::B16, P::CvtU16U32, [words[0].into()]);
                (store_op(space, Class::B16, 1), half.into())
            }
            _ => (store_op(space, Class::B32, words.len()), vector(words)),
        };
        let Some(op) = op else { return Err(self.unsupported(dst, "an access of this width")) };
        self.put(pred, op, address, value)
    }
}

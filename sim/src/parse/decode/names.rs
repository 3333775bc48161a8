//! The slots that registers, constants and special registers get when they are first mentioned.

use super::context::Cx;
use super::scope::{FIELDS, Reg, Var};
use crate::parse::error::Result;
use crate::parse::lex::Pos;
use crate::program::types::{R, Space, Ty};
use crate::program::{Bank, Mention, Special};

/// Registers of the two files and predicates that one kernel may use.
const MAX_SLOTS: usize = 1 << 16;

impl<'a> Cx<'a, '_> {
    /// The register of a name, with its number in a range.
    pub(super) fn find(&self, name: &str) -> Option<(Reg, u32)> {
        for scope in self.scopes.iter().rev() {
            if let Some(&reg) = scope.regs.get(name)
                && reg.count.is_none()
            {
                return Some((reg, 0));
            }
            let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
            for split in name.len() - digits..name.len() {
                let (prefix, number) = name.split_at(split);
                if let Some(&reg) = scope.regs.get(prefix)
                    && let (Some(count), Ok(n)) = (reg.count, number.parse::<u32>())
                    && n < count
                    && (number.len() == 1 || !number.starts_with('0'))
                {
                    return Some((reg, n));
                }
            }
        }
        None
    }

    /// The register of a name, if it is no vector.
    pub(super) fn scalar(&self, name: &str, pos: Pos) -> Result<Option<(Reg, u32)>> {
        match self.find(name) {
            Some((reg, _)) if reg.elements > 1 => {
                let n = reg.elements;
                Err(pos
                    .error(format!("`{name}` is a vector of {n} registers: here goes one of them, such as `{name}.x`")))
            }
            found => Ok(found),
        }
    }

    /// The register of `name.field`, if `name` is a vector.
    pub(super) fn element(&self, name: &str, field: &str, pos: Pos) -> Result<Option<(Reg, u32)>> {
        let Some((reg, index)) = self.find(name).filter(|(reg, _)| reg.elements > 1) else { return Ok(None) };
        let at = FIELDS.iter().position(|names| names.contains(&field)).map(|at| at as u32);
        match at.filter(|at| *at < reg.elements) {
            Some(at) => Ok(Some((Reg { elements: 1, ..reg }, index * reg.elements + at))),
            None => Err(pos.error(format!("`{name}` has {} elements, `{field}` is none of them", reg.elements))),
        }
    }

    pub(super) fn slot(&mut self, reg: Reg, index: u32, pos: Pos) -> Result<R> {
        if let Some(&slot) = self.slots.get(&(reg.id, index)) {
            self.mention(reg.ty, slot, self.written);
            return Ok(slot);
        }
        let file = match reg.ty.bytes() {
            0 => &mut self.entry.npred,
            8 => &mut self.entry.n64,
            16 => return Err(pos.limit("128-bit registers are not supported")),
            _ => &mut self.entry.n32,
        };
        let slot = fresh(file, pos)?;
        self.slots.insert((reg.id, index), slot);
        self.entry.registers.insert((bank(reg.ty), slot), self.shown(reg, index));
        self.mention(reg.ty, slot, self.written);
        Ok(slot)
    }

    /// Records that the current instruction names the register in a slot.
    pub(super) fn mention(&mut self, ty: Ty, slot: R, written: bool) {
        self.mentioned.push(Mention { slot, bank: bank(ty), written });
    }

    /// A register as the text calls it.
    fn shown(&self, reg: Reg, index: u32) -> String {
        let Some(&(name, elements)) = self.declared.get(reg.id as usize - 1) else { return String::new() };
        let number = if reg.count.is_some() { (index / elements).to_string() } else { String::new() };
        let field = if elements > 1 { format!(".{}", FIELDS[(index % elements) as usize][0]) } else { String::new() };
        format!("{name}{number}{field}")
    }

    pub(super) fn pred(&mut self, name: &str, pos: Pos) -> Result<R> {
        match self.find(name) {
            Some((reg, index)) if reg.ty == Ty::Pred => self.slot(reg, index, pos),
            Some((reg, _)) => Err(pos.error(format!("`{name}` is {:?}, expected a predicate", reg.ty))),
            None => Err(pos.error(format!("unknown register `{name}`"))),
        }
    }

    pub(super) fn register(&mut self, ty: Ty, name: &str, pos: Pos) -> Result<Option<R>> {
        let Some(found) = self.scalar(name, pos)? else { return Ok(None) };
        self.typed(ty, found, name, pos).map(Some)
    }

    /// The slot of a register that an instruction on values of a type may name.
    pub(super) fn typed(&mut self, ty: Ty, (reg, index): (Reg, u32), name: &str, pos: Pos) -> Result<R> {
        if reg.ty.bytes() != ty.bytes() || !ty.agrees(reg.ty) {
            return Err(pos.error(format!("`{name}` is {:?}, the instruction works on {ty:?}", reg.ty)));
        }
        self.slot(reg, index, pos)
    }

    pub(super) fn special(&mut self, special: Special, wide: bool, pos: Pos) -> Result<R> {
        if wide {
            return Err(pos.error("a special register has 32 bits"));
        }
        if let Some(&(slot, _)) = self.entry.specials.iter().find(|(_, s)| *s == special) {
            return Ok(slot);
        }
        let slot = fresh(&mut self.entry.n32, pos)?;
        self.entry.specials.push((slot, special));
        Ok(slot)
    }

    /// A slot that holds `value` in every lane.
    pub(crate) fn constant(&mut self, wide: bool, value: u64, pos: Pos) -> Result<R> {
        if wide {
            if let Some(&slot) = self.c64.get(&value) {
                return Ok(slot);
            }
            let slot = fresh(&mut self.entry.n64, pos)?;
            self.c64.insert(value, slot);
            self.entry.const64.push((slot, value));
            return Ok(slot);
        }
        let value = value as u32;
        if let Some(&slot) = self.c32.get(&value) {
            return Ok(slot);
        }
        let slot = fresh(&mut self.entry.n32, pos)?;
        self.c32.insert(value, slot);
        self.entry.const32.push((slot, value));
        Ok(slot)
    }

    /// A slot that holds the address of a place in the shared memory of the block: of several blocks of a cluster each has
    /// its own. `offset` includes the window of a generic address.
    pub(crate) fn shared_address(&mut self, wide: bool, offset: u64, pos: Pos) -> Result<R> {
        if !wide {
            return self.special(Special::SharedAt(offset as u32), false, pos);
        }
        if let Some(&slot) = self.wide_shared.get(&offset) {
            return Ok(slot);
        }
        let slot = fresh(&mut self.entry.n64, pos)?;
        self.wide_shared.insert(offset, slot);
        self.entry.shared64.push((slot, offset));
        Ok(slot)
    }

    /// The predicate that says whether the launch has clusters of its own.
    pub(crate) fn explicit_cluster(&mut self, pos: Pos) -> Result<R> {
        if let Some(slot) = self.entry.clustered {
            return Ok(slot);
        }
        let slot = fresh(&mut self.entry.npred, pos)?;
        self.entry.clustered = Some(slot);
        Ok(slot)
    }

    /// The value of a 32-bit slot that holds a constant.
    pub(crate) fn known(&self, slot: R) -> Option<u32> {
        self.entry.const32.iter().find(|(at, _)| *at == slot).map(|(_, value)| *value)
    }

    /// The predicate that holds the carry of `add.cc`, `subc` and others.
    pub(crate) fn carry(&mut self, pos: Pos) -> Result<R> {
        match self.carry {
            Some(slot) => Ok(slot),
            None => {
                let slot = fresh(&mut self.entry.npred, pos)?;
                self.carry = Some(slot);
                Ok(slot)
            }
        }
    }

    pub(super) fn var(&self, name: &str) -> Option<Var> {
        let local = self.scopes.iter().rev().find_map(|s| s.vars.get(name));
        let dynamic = || self.dynamic.get(name).map(|at| Var { at: *at, space: Space::Shared, stack: None });
        local.copied().or_else(dynamic).or_else(|| self.module.get(name).copied())
    }

    pub(super) fn label(&self, name: &str, pos: Pos) -> Result<u32> {
        let found = self.scopes.iter().rev().find_map(|s| self.labels.get(&(s.id, name)));
        found.copied().ok_or_else(|| pos.error(format!("unknown label `{name}`")))
    }
}

/// The file of registers of a type.
fn bank(ty: Ty) -> Bank {
    match ty.bytes() {
        0 => Bank::Predicates,
        8 => Bank::Longs,
        _ => Bank::Words,
    }
}

/// The next free slot of a file.
fn fresh(file: &mut usize, pos: Pos) -> Result<R> {
    if *file >= MAX_SLOTS {
        return Err(pos.limit("the kernel uses too many registers"));
    }
    *file += 1;
    Ok(u32::try_from(*file - 1).expect("the limit is far below 32 bits"))
}

/// The special register of a name without a field.
pub(super) fn special(name: &str) -> Option<Special> {
    Some(match name {
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::NWarpId,
        "%lanemask_eq" => Special::LaneMaskEq,
        "%lanemask_lt" => Special::LaneMaskLt,
        "%lanemask_le" => Special::LaneMaskLe,
        "%lanemask_gt" => Special::LaneMaskGt,
        "%lanemask_ge" => Special::LaneMaskGe,
        "%dynamic_smem_size" => Special::DynamicSharedBytes,
        "%total_smem_size" | "%aggr_smem_size" => Special::TotalSharedBytes,
        "%cluster_ctarank" => Special::ClusterRank,
        "%cluster_nctarank" => Special::ClusterSize,
        "%smid" | "%gridid" => Special::Zero,
        "%nsmid" => Special::One,
        _ => return None,
    })
}

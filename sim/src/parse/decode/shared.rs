//! Placement of variables in shared memory.

use super::place::{place, target_number, variables};
use crate::parse::error::Result;
use crate::parse::raw::{RawModule, RawVar};
use crate::program::types::Space;

const MAX_SHARED: u64 = 1 << 20;

/// The layout of shared memory: variables are in the assembler's order, but each is followed by a gap, so that an
/// access past a variable does not reach the next one. Addresses stay the same modulo 128, and with them the banks.
/// From sm_90 on the system reserves the first KiB of a block, so that no variable has address zero.
#[derive(Clone, Debug)]
pub(super) struct SharedLayout {
    /// The end without the gaps.
    pub(super) packed: u64,
    /// Bytes of the gaps so far.
    pub(super) shift: u64,
    /// A multiple of every alignment.
    gap: u64,
    /// Bytes in front of all variables.
    reserved: u64,
    /// The end of the last variable.
    pub(super) end: u64,
    pub(super) gaps: Vec<(u64, u64)>,
}

impl SharedLayout {
    /// Bytes of all gaps; after the variables that come later there is none.
    const MAX_GAPS: u64 = 16 << 10;
    /// Bytes of a block's shared memory that the system reserves, from sm_90 on.
    const RESERVED: u64 = 1 << 10;

    pub(super) fn new(raw: &RawModule<'_>) -> SharedLayout {
        let bodies = raw.entries.iter().map(|e| &e.body).chain(raw.funcs.iter().filter_map(|f| f.body.as_ref()));
        let all = raw.vars.iter().chain(bodies.flat_map(|b| variables(b)));
        let align = all.filter(|v| v.space == Space::Shared).map(|v| v.align).max().unwrap_or(1);
        let reserved = if target_number(raw.target) >= 90 { SharedLayout::RESERVED.next_multiple_of(align) } else { 0 };
        SharedLayout { packed: 0, shift: reserved, gap: align.max(128), reserved, end: 0, gaps: Vec::new() }
    }

    pub(super) fn place(&mut self, var: &RawVar<'_>) -> Result<u64> {
        let start = place(&mut self.packed, var, MAX_SHARED)? + self.shift;
        self.skip_to(start);
        self.end = start + var.bytes.unwrap_or(0);
        if self.shift - self.reserved + self.gap <= SharedLayout::MAX_GAPS {
            self.shift += self.gap;
        }
        Ok(start)
    }

    pub(super) fn skip_to(&mut self, start: u64) {
        if start > self.end {
            self.gaps.push((self.end, start));
        }
    }
}

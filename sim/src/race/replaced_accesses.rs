//! Plain accesses that a strong write has replaced in the shadow.
//!
//! A word remembers its last writer and the readers since. An access that conflicts with an older access conflicts with
//! these too, with one exception: strong accesses do not race with each other. An atomic that is unordered with a plain
//! store does not race with a later atomic of the storing thread. The latest plain accesses that a strong write
//! replaces are therefore kept separately; older plain accesses happen before them.

use std::collections::HashMap;

use super::access::{Conflict, Issuer, Strength};
use super::clocks::Clocks;
use super::shadow_cell::{Cell, NOBODY, Read, Sets, unordered_read};

/// Maximum number of words or bytes with an entry: more than shared memory has.
const MAX: usize = 1 << 18;

#[derive(Clone, Debug, Default)]
struct Entry {
    /// Agent, lane, clock and instruction of the write.
    write: Option<(usize, usize, u32, u32)>,
    reads: Vec<(usize, Read)>,
}

/// Keyed by the first byte and the size.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    entries: HashMap<(u64, usize), Entry>,
}

impl Hidden {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Keeps the plain accesses of a cell that a strong write is about to replace; returns false if there is no room.
    pub(super) fn keep(&mut self, sets: &Sets, (byte, size): (u64, usize), cell: &Cell) -> bool {
        let wrote = cell.write_agent != NOBODY && !cell.write_strength.is_strong();
        let mut reads = sets.reads(cell).filter(|(_, read)| !read.strength.is_strong()).peekable();
        if !wrote && reads.peek().is_none() {
            return true;
        }
        if self.entries.len() >= MAX && !self.entries.contains_key(&(byte, size)) {
            return false;
        }
        let entry = self.entries.entry((byte, size)).or_default();
        if wrote {
            let by = (usize::from(cell.write_agent), usize::from(cell.write_lane));
            *entry = Entry { write: Some((by.0, by.1, cell.write_clock, cell.write_pc)), reads: Vec::new() };
        }
        if reads.peek().is_some() {
            entry.reads = reads.collect();
        }
        true
    }

    /// Whether a strong access to `n` bytes within a word is ordered after the kept accesses.
    pub(super) fn check(
        &self,
        clocks: &Clocks,
        (byte, n): (u64, usize),
        who: Issuer,
        writes: bool,
    ) -> Result<(), Conflict> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let word = (byte / 4 * 4, 4);
        for key in std::iter::once(word).chain((byte..byte + n as u64).map(|byte| (byte, 1))) {
            let Some(entry) = self.entries.get(&key) else { continue };
            let behind = key.0.saturating_sub(byte) as usize;
            if let Some((agent, lane, clock, pc)) = entry.write
                && !clocks.ordered((who.warp, who.lane), (agent, lane), clock)
            {
                let copy = clocks.is_async_agent(agent);
                let (warp, lane) = clocks.thread(agent, lane);
                return Err(Conflict { warp, lane, pc, wrote: true, copy, constant: false, byte: behind });
            }
            let plain = Issuer { strength: Strength::Weak, ..who };
            let mut reads = entry.reads.iter().filter(|_| writes);
            if let Some(conflict) = reads.find_map(|(agent, read)| unordered_read(clocks, *agent, *read, plain)) {
                return Err(conflict.behind(behind));
            }
        }
        Ok(())
    }
}

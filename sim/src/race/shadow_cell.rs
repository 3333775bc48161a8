//! The access history of one word or byte, and the rules by which a new access conflicts with it (FastTrack).

use super::access::{Conflict, Issuer, Strength};
use super::clocks::Clocks;

pub(super) const NOBODY: u16 = 0xFFFF;
pub(super) const MANY: u16 = 0xFFFE;
/// Marks a word whose bytes have histories of their own.
const DIVIDED: u16 = 0xFFFD;

/// The last write of a word or byte, and the reads since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) write_clock: u32,
    pub(super) write_pc: u32,
    pub(super) write_seq: u32,
    /// Clock of the only reading agent, or index of a set of them.
    pub(super) read_clock: u32,
    pub(super) read_pc: u32,
    /// Lanes of the only reading agent.
    pub(super) read_lanes: u32,
    pub(super) write_agent: u16,
    pub(super) write_lane: u8,
    pub(super) write_strength: Strength,
    /// Written by an asynchronous copy in flight: ordered before nothing.
    pub(super) flying: bool,
    pub(super) read_agent: u16,
    /// Strength of the reads of the only reading agent.
    pub(super) read_strength: Strength,
}

pub(super) const FRESH: Cell = Cell {
    write_clock: 0,
    write_pc: 0,
    write_seq: 0,
    read_clock: 0,
    read_pc: 0,
    read_lanes: 0,
    write_agent: NOBODY,
    write_lane: 0,
    write_strength: Strength::Weak,
    flying: false,
    read_agent: NOBODY,
    read_strength: Strength::Weak,
};

/// A word without a history of its own; its bytes have one. No fast path matches it.
pub(super) const SPLIT: Cell = Cell { write_agent: DIVIDED, ..FRESH };

// The shadow takes eight times the memory that it shadows.
const _: () = assert!(size_of::<Cell>() == 32);

impl Cell {
    /// Whether the cell has no accesses yet.
    #[inline(always)]
    pub(super) fn is_fresh(&self) -> bool {
        self.write_agent == NOBODY && self.read_agent == NOBODY
    }

    #[inline(always)]
    pub(super) fn is_split(&self) -> bool {
        self.write_agent == DIVIDED
    }

    /// The cell after a write by `who`.
    #[inline(always)]
    pub(super) fn written(who: Issuer, clock: u32) -> Cell {
        Cell {
            write_clock: clock,
            write_pc: who.pc,
            write_seq: who.seq,
            write_agent: who.warp as u16,
            write_lane: who.lane as u8,
            write_strength: who.strength,
            flying: who.copy,
            ..FRESH
        }
    }

    /// The reads of its only reading agent.
    fn only_read(&self) -> Read {
        Read { clock: self.read_clock, pc: self.read_pc, lanes: self.read_lanes, strength: self.read_strength }
    }

    fn set_only_read(&mut self, agent: usize, read: Read) {
        (self.read_agent, self.read_clock, self.read_pc) = (agent as u16, read.clock, read.pc);
        (self.read_lanes, self.read_strength) = (read.lanes, read.strength);
    }
}

/// The last reads of an agent: at one clock, or at several between which its lanes did not synchronise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    pub(super) clock: u32,
    pub(super) pc: u32,
    pub(super) lanes: u32,
    pub(super) strength: Strength,
}

impl Read {
    /// Adds a later read of the same agent; `met` is the clock at which its lanes last synchronised. Reads of other
    /// lanes since then are not ordered before the new one and are kept.
    #[inline(always)]
    pub(super) fn then(self, later: Read, met: u32) -> Read {
        if self.clock <= met || self.lanes == later.lanes {
            return later;
        }
        Read { lanes: self.lanes | later.lanes, strength: self.strength.min(later.strength), ..later }
    }
}

/// Agents of a page of a set.
const PAGE_AGENTS: usize = 8;
/// Entries of a page: for each agent one for weak and one for strong reads.
const PAGE: usize = 2 * PAGE_AGENTS;

/// Readers of cells with more than one reading agent, or with weak and strong reads. A set has one page for every eight
/// agents, allocated at the first read: few of the warps of a cluster read the same word.
#[derive(Debug)]
pub(super) struct Sets {
    warps: usize,
    /// Maximum number of pages of a set.
    pages: usize,
    /// For each agent of the async proxy, the warp that issued its operation.
    pub(super) owners: Vec<u16>,
    /// For every set the number of each of its pages; 0: none.
    index: Vec<u32>,
    /// Pages, from number 1 on.
    entries: Vec<Read>,
    free: Vec<u32>,
    free_pages: Vec<u32>,
}

impl Sets {
    /// `beside`: number of agents of the async proxy.
    pub(super) fn new(warps: usize, beside: usize) -> Sets {
        Sets {
            warps,
            pages: (2 * warps + beside).div_ceil(PAGE_AGENTS),
            owners: vec![0; beside],
            index: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            free_pages: Vec::new(),
        }
    }

    /// The warp on whose behalf an agent works.
    pub(super) fn warp_of(&self, agent: usize) -> usize {
        match agent.checked_sub(2 * self.warps) {
            None => agent % self.warps,
            Some(slot) => self.owners.get(slot).map_or(0, |w| usize::from(*w)),
        }
    }

    fn range(&self, set: u32) -> std::ops::Range<usize> {
        let start = set as usize * self.pages;
        start..start + self.pages
    }

    fn take(&mut self) -> u32 {
        if let Some(set) = self.free.pop() {
            return set;
        }
        let set = self.index.len() / self.pages;
        self.index.resize(self.index.len() + self.pages, 0);
        u32::try_from(set).unwrap_or(u32::MAX)
    }

    /// The number of a new page without reads.
    #[cold]
    fn take_page(&mut self) -> u32 {
        if let Some(page) = self.free_pages.pop() {
            self.entries[(page as usize - 1) * PAGE..][..PAGE].fill(Read::default());
            return page;
        }
        self.entries.resize(self.entries.len() + PAGE, Read::default());
        u32::try_from(self.entries.len() / PAGE).unwrap_or(u32::MAX)
    }

    fn of(&self, cell: &Cell) -> impl Iterator<Item = (usize, Read)> {
        let pages = self.index[self.range(cell.read_clock)].iter().enumerate().filter(|(_, page)| **page != 0);
        pages.flat_map(|(i, page)| {
            let entries = &self.entries[(*page as usize - 1) * PAGE..][..PAGE];
            entries.iter().enumerate().map(move |(j, read)| (i * PAGE_AGENTS + j / 2, *read))
        })
    }

    /// The entry of an agent in the set of a cell, for reads of this strength.
    #[inline(always)]
    pub(super) fn entry(&mut self, cell: &Cell, agent: usize, strength: Strength) -> Option<&mut Read> {
        let place = cell.read_clock as usize * self.pages + agent / PAGE_AGENTS;
        let mut page = *self.index.get(place)? as usize;
        if page == 0 {
            page = self.take_page() as usize;
            self.index[place] = page as u32;
        }
        let i = 2 * (agent % PAGE_AGENTS) + usize::from(strength.is_strong());
        self.entries.get_mut((page - 1) * PAGE + i)
    }

    /// One of the reads of a cell.
    #[inline(always)]
    pub(super) fn first(&self, cell: &Cell) -> Option<(usize, Read)> {
        match cell.read_agent {
            NOBODY => None,
            MANY => self.of(cell).find(|(_, read)| read.lanes != 0),
            agent => Some((usize::from(agent), cell.only_read())),
        }
    }

    /// The reads of a cell.
    pub(super) fn reads(&self, cell: &Cell) -> impl Iterator<Item = (usize, Read)> {
        let many = (cell.read_agent == MANY).then(|| self.of(cell));
        let one = (cell.read_agent < MANY).then(|| (usize::from(cell.read_agent), cell.only_read()));
        many.into_iter().flatten().chain(one).filter(|(_, read)| read.lanes != 0)
    }

    pub(super) fn give_back(&mut self, cell: &Cell) {
        if cell.read_agent == MANY {
            for place in self.range(cell.read_clock) {
                let page = std::mem::take(&mut self.index[place]);
                self.free_pages.extend((page != 0).then_some(page));
            }
            self.free.push(cell.read_clock);
        }
    }

    /// A copy of a cell that owns its set.
    pub(super) fn duplicate(&mut self, cell: &Cell) -> Cell {
        let mut out = *cell;
        if cell.read_agent == MANY {
            out.read_clock = self.take();
            for (from, to) in self.range(cell.read_clock).zip(self.range(out.read_clock)) {
                let page = self.index[from] as usize;
                if page != 0 {
                    let copy = self.take_page();
                    self.index[to] = copy;
                    self.entries.copy_within((page - 1) * PAGE..page * PAGE, (copy as usize - 1) * PAGE);
                }
            }
        }
        out
    }
}

/// Whether the last write of `cell` is not ordered before `who`.
pub(super) fn unordered_write(clocks: &Clocks, cell: &Cell, who: Issuer) -> Option<Conflict> {
    if cell.write_agent == NOBODY || (cell.write_strength.is_strong() && who.strength.is_strong()) {
        return None;
    }
    let (writer, lane) = (usize::from(cell.write_agent), usize::from(cell.write_lane));
    let ordered = !cell.flying && clocks.ordered((who.warp, who.lane), (writer, lane), cell.write_clock);
    let copy = cell.flying || clocks.is_async_agent(writer);
    let (warp, lane) = clocks.thread(writer, lane);
    (!ordered).then_some(Conflict { warp, lane, pc: cell.write_pc, wrote: true, copy, constant: false, byte: 0 })
}

/// Whether some read of an agent is not ordered before `who`.
pub(super) fn unordered_read(clocks: &Clocks, reader: usize, read: Read, who: Issuer) -> Option<Conflict> {
    if (read.strength.is_strong() && who.strength.is_strong()) || read.clock <= clocks.row(who.warp)[reader] {
        return None;
    }
    let mut lanes = read.lanes;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        if !clocks.ordered((who.warp, who.lane), (reader, lane), read.clock) {
            let copy = clocks.is_async_agent(reader);
            let (warp, lane) = clocks.thread(reader, lane);
            return Some(Conflict { warp, lane, pc: read.pc, wrote: false, copy, constant: false, byte: 0 });
        }
    }
    None
}

/// Records a read by the agent `as_agent` on behalf of `who`.
pub(super) fn read(
    clocks: &Clocks,
    sets: &mut Sets,
    cell: &mut Cell,
    who: Issuer,
    (agent, now): (usize, u32),
) -> Result<(), Conflict> {
    let fresh = Read { clock: now, pc: who.pc, lanes: 1 << who.lane, strength: who.strength };
    read_as(clocks, sets, cell, who, agent, fresh)
}

/// Records this read by an agent on behalf of `who`.
pub(super) fn read_as(
    clocks: &Clocks,
    sets: &mut Sets,
    cell: &mut Cell,
    who: Issuer,
    agent: usize,
    fresh: Read,
) -> Result<(), Conflict> {
    if let Some(conflict) = unordered_write(clocks, cell, who) {
        return Err(conflict);
    }
    note_read(clocks, sets, cell, who, agent, fresh);
    Ok(())
}

/// The second half of [`read_as`].
pub(super) fn note_read(clocks: &Clocks, sets: &mut Sets, cell: &mut Cell, who: Issuer, agent: usize, fresh: Read) {
    let met = clocks.row(who.warp)[agent];
    match cell.read_agent {
        NOBODY => cell.set_only_read(agent, fresh),
        MANY => {
            if let Some(read) = sets.entry(cell, agent, who.strength) {
                *read = read.then(fresh, met);
            }
        }
        other => {
            let (other, old) = (usize::from(other), cell.only_read());
            let weak = Read { strength: Strength::Weak, ..old };
            if other == agent && old.strength.is_strong() == fresh.strength.is_strong() {
                cell.set_only_read(agent, old.then(fresh, met));
            } else if fresh.strength <= old.strength && unordered_read(clocks, other, weak, who).is_none() {
                // The old read is ordered before this one and no weaker: every conflict with it is a conflict with this
                // one.
                cell.set_only_read(agent, fresh);
            } else {
                (cell.read_agent, cell.read_clock) = (MANY, sets.take());
                for (agent, read) in [(other, old), (agent, fresh)] {
                    if let Some(entry) = sets.entry(cell, agent, read.strength) {
                        *entry = read;
                    }
                }
            }
        }
    }
}

/// Records a write; `same` says that the bytes do not change. Lanes of a warp may write the same value in one
/// instruction, even when diverged: the order does not matter, and whether lanes execute it together is up to the
/// hardware.
pub(super) fn write(
    clocks: &Clocks,
    sets: &mut Sets,
    cell: &mut Cell,
    who: Issuer,
    same: bool,
) -> Result<(), Conflict> {
    let instruction =
        usize::from(cell.write_agent) == who.warp && cell.write_pc == who.pc && (!cell.flying || who.copy);
    if let Some(conflict) = unordered_write(clocks, cell, who)
        && !(same && instruction)
    {
        return Err(conflict);
    }
    let conflict = match cell.read_agent {
        NOBODY => None,
        MANY => {
            let mut reads = sets.of(cell).filter(|(_, read)| read.lanes != 0);
            reads.find_map(|(agent, read)| unordered_read(clocks, agent, read, who))
        }
        agent => unordered_read(clocks, usize::from(agent), cell.only_read(), who),
    };
    if let Some(conflict) = conflict {
        return Err(conflict);
    }
    sets.give_back(cell);
    *cell = Cell::written(who, clocks.now(who.warp));
    Ok(())
}

//! What is remembered of one word or byte, and the rules by which a new access conflicts with it (FastTrack).

use super::clocks::{AGENTS, Clocks, engine};
use super::{Conflict, Who};

pub(super) const NOBODY: u8 = 0xFF;
pub(super) const MANY: u8 = 0xFE;

/// The last write of a word or byte, and the reads since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) write_clock: u32,
    pub(super) write_pc: u32,
    pub(super) write_seq: u32,
    /// Clock of the only reading agent, or index of a set of them.
    pub(super) read_clock: u32,
    pub(super) read_pc: u32,
    /// Lanes of the only reading agent.
    pub(super) read_lanes: u32,
    pub(super) write_agent: u8,
    pub(super) write_lane: u8,
    pub(super) write_strong: bool,
    /// By an asynchronous copy in flight: ordered before nothing.
    pub(super) flying: bool,
    pub(super) read_agent: u8,
    pub(super) read_strong: bool,
    /// Of a word: look at its bytes instead.
    pub(super) split: bool,
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
    write_strong: false,
    flying: false,
    read_agent: NOBODY,
    read_strong: false,
    split: false,
};

impl Cell {
    /// After a write by `who`.
    #[inline(always)]
    pub(super) fn written(who: Who, clock: u32) -> Cell {
        Cell {
            write_clock: clock,
            write_pc: who.pc,
            write_seq: who.seq,
            write_agent: who.warp as u8,
            write_lane: who.lane as u8,
            write_strong: who.strong,
            flying: who.copy,
            ..FRESH
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    pub(super) clock: u32,
    pub(super) pc: u32,
    pub(super) lanes: u32,
    pub(super) strong: bool,
}

/// Readers of cells with more than one reading agent: to each set an entry for every warp, and behind them for every engine.
#[derive(Debug)]
pub(super) struct Sets {
    warps: usize,
    entries: Vec<Read>,
    free: Vec<u32>,
}

impl Sets {
    pub(super) fn new(warps: usize) -> Sets {
        Sets { warps, entries: Vec::new(), free: Vec::new() }
    }

    fn range(&self, set: u32) -> std::ops::Range<usize> {
        let start = set as usize * 2 * self.warps;
        start..start + 2 * self.warps
    }

    fn take(&mut self) -> u32 {
        if let Some(set) = self.free.pop() {
            let range = self.range(set);
            self.entries[range].fill(Read::default());
            return set;
        }
        let set = self.entries.len() / (2 * self.warps);
        self.entries.resize(self.entries.len() + 2 * self.warps, Read::default());
        u32::try_from(set).unwrap_or(u32::MAX)
    }

    fn of(&self, cell: &Cell) -> impl Iterator<Item = (usize, Read)> {
        let agent = |i: usize| if i < self.warps { i } else { engine(i - self.warps) };
        self.entries[self.range(cell.read_clock)].iter().enumerate().map(move |(i, read)| (agent(i), *read))
    }

    /// The entry of an agent in the set of a cell.
    #[inline(always)]
    pub(super) fn entry(&mut self, cell: &Cell, agent: usize) -> Option<&mut Read> {
        let i = if agent < 32 { agent } else { self.warps + agent - 32 };
        self.entries.get_mut(cell.read_clock as usize * 2 * self.warps + i)
    }

    /// An agent in the set of a cell.
    pub(super) fn first(&self, cell: &Cell) -> Option<(usize, Read)> {
        self.of(cell).find(|(_, read)| read.lanes != 0)
    }

    pub(super) fn give_back(&mut self, cell: &Cell) {
        if cell.read_agent == MANY {
            self.free.push(cell.read_clock);
        }
    }

    /// A copy of a cell that owns its set.
    pub(super) fn duplicate(&mut self, cell: &Cell) -> Cell {
        let mut out = *cell;
        if cell.read_agent == MANY {
            out.read_clock = self.take();
            let (from, to) = (self.range(cell.read_clock), self.range(out.read_clock));
            self.entries.copy_within(from, to.start);
        }
        out
    }
}

/// Whether the last write of `cell` is not ordered before `who`.
fn unordered_write(clocks: &Clocks, cell: &Cell, who: Who) -> Option<Conflict> {
    if cell.write_agent == NOBODY || (cell.write_strong && who.strong) {
        return None;
    }
    let (writer, lane) = (usize::from(cell.write_agent), usize::from(cell.write_lane));
    let ordered = !cell.flying && clocks.ordered((who.warp, who.lane), (writer, lane), cell.write_clock);
    let (copy, warp) = (cell.flying || writer >= 32, writer % 32);
    (!ordered).then_some(Conflict { warp, lane, pc: cell.write_pc, wrote: true, copy })
}

fn unordered_read(clocks: &Clocks, reader: usize, read: Read, who: Who) -> Option<Conflict> {
    if (read.strong && who.strong) || read.clock <= clocks.row(who.warp)[reader % AGENTS] {
        return None;
    }
    let mut lanes = read.lanes;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        if !clocks.ordered((who.warp, who.lane), (reader, lane), read.clock) {
            return Some(Conflict { warp: reader % 32, lane, pc: read.pc, wrote: false, copy: reader >= 32 });
        }
    }
    None
}

/// Records a read by the agent `as_agent` on behalf of `who`.
pub(super) fn read(
    clocks: &Clocks,
    sets: &mut Sets,
    cell: &mut Cell,
    who: Who,
    (agent, now): (usize, u32),
) -> Result<(), Conflict> {
    if let Some(conflict) = unordered_write(clocks, cell, who) {
        return Err(conflict);
    }
    let bit = 1 << who.lane;
    let mine = agent as u8;
    let fresh = Read { clock: now, pc: who.pc, lanes: bit, strong: who.strong };
    if cell.read_agent == MANY {
        if let Some(read) = sets.entry(cell, agent) {
            *read = if read.clock == now {
                Read { lanes: read.lanes | bit, strong: read.strong & who.strong, ..fresh }
            } else {
                fresh
            };
        }
        return Ok(());
    }
    let same = cell.read_agent == mine && cell.read_clock == now;
    // An earlier reader that is ordered before this one needs no remembering: who conflicts with it conflicts with this.
    let earlier = Read { clock: cell.read_clock, pc: cell.read_pc, lanes: cell.read_lanes, strong: false };
    if same {
        cell.read_lanes |= bit;
        cell.read_strong &= who.strong;
        cell.read_pc = who.pc;
    } else if cell.read_agent == NOBODY
        || cell.read_agent == mine
        || unordered_read(clocks, usize::from(cell.read_agent), earlier, who).is_none()
    {
        (cell.read_agent, cell.read_clock, cell.read_pc) = (mine, now, who.pc);
        (cell.read_lanes, cell.read_strong) = (bit, who.strong);
    } else {
        let (other, strong) = (usize::from(cell.read_agent), cell.read_strong);
        (cell.read_agent, cell.read_clock) = (MANY, sets.take());
        for (agent, read) in [(other, Read { strong, ..earlier }), (agent, fresh)] {
            if let Some(entry) = sets.entry(cell, agent) {
                *entry = read;
            }
        }
    }
    Ok(())
}

/// Records a write; `same` says that the bytes do not change by it.
pub(super) fn write(clocks: &Clocks, sets: &mut Sets, cell: &mut Cell, who: Who, same: bool) -> Result<(), Conflict> {
    let same_instruction =
        cell.write_seq == who.seq && usize::from(cell.write_agent) == who.warp && cell.write_pc == who.pc;
    if let Some(conflict) = unordered_write(clocks, cell, who)
        && !(same && same_instruction && !cell.flying)
    {
        return Err(conflict);
    }
    match cell.read_agent {
        NOBODY => {}
        MANY => {
            let conflict = sets.of(cell).find_map(|(agent, read)| unordered_read(clocks, agent, read, who));
            if let Some(conflict) = conflict {
                return Err(conflict);
            }
            sets.give_back(cell);
        }
        agent => {
            let (clock, pc, lanes) = (cell.read_clock, cell.read_pc, cell.read_lanes);
            let read = Read { clock, pc, lanes, strong: cell.read_strong };
            if let Some(conflict) = unordered_read(clocks, usize::from(agent), read, who) {
                return Err(conflict);
            }
        }
    }
    *cell = Cell::written(who, clocks.now(who.warp));
    Ok(())
}

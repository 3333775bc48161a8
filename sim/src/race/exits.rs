//! The end of a block of a cluster: remote accesses to its shared memory must be ordered before it.

use super::access::Conflict;
use super::block::Races;
use super::clock_front::Known;
use super::shadow_cell::{Cell, NOBODY};

impl Races {
    /// Threads of a block exit: what they have acquired is ordered before the end of the block.
    pub(crate) fn exits(&mut self, warp: usize, lanes: u32, live: u32, into: &mut Known) {
        self.clocks.release(warp, lanes, live, into);
    }

    /// An access to these bytes by a warp outside `own` that was not ordered before the exits of the block's threads.
    /// Reads of words for which `begins` holds need only be ordered by the second entry of `known`.
    pub(crate) fn foreign(
        &self,
        bytes: std::ops::Range<usize>,
        own: std::ops::Range<usize>,
        [known, begun]: [&Known; 2],
        begins: impl Fn(usize) -> bool,
    ) -> Option<(usize, Conflict)> {
        let unknown = |cell: &Cell, at: usize| {
            let by = |agent: usize, lane: usize, clock: u32, pc: u32, wrote: bool| {
                let (warp, lane_of) = self.clocks.thread(agent, lane);
                let copy = self.clocks.is_async_agent(agent);
                let begun = || !wrote && begun.front.covers(agent, lane, clock) && begins(at);
                (!own.contains(&warp) && !known.front.covers(agent, lane, clock) && !begun())
                    .then_some((at, Conflict { warp, lane: lane_of, pc, wrote, copy, constant: false, byte: 0 }))
            };
            let lane = usize::from(cell.write_lane);
            let wrote = (cell.write_agent != NOBODY && !cell.flying)
                .then(|| by(usize::from(cell.write_agent), lane, cell.write_clock, cell.write_pc, true));
            wrote.flatten().or_else(|| {
                self.sets.reads(cell).find_map(|(agent, read)| {
                    (0..32).filter(|l| read.lanes >> l & 1 != 0).find_map(|l| by(agent, l, read.clock, read.pc, false))
                })
            })
        };
        (bytes.start / 4..bytes.end.div_ceil(4)).find_map(|word| {
            let cell = self.shared.words.get(word)?;
            if !cell.is_split() {
                return unknown(cell, 4 * word);
            }
            let bytes = self.shared.bytes.get(4 * word..4 * word + 4).unwrap_or_default();
            bytes.iter().enumerate().find_map(|(i, cell)| unknown(cell, 4 * word + i))
        })
    }
}

//! Agents of the async proxy.

use std::collections::HashMap;

/// Number of agents of the async proxy for this number of blocks. Further operations share agents, which can hide a
/// race, never report a false one.
pub(crate) fn slots(blocks: usize) -> usize {
    64.max(32 * blocks)
}

/// What an agent of the async proxy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// Copies that the mbarrier at this address counts.
    Phase(u32),
    /// Copies in bulk groups of a warp: their reads and their writes.
    Reads(usize),
    Writes(usize),
    /// wgmma of a warpgroup; the number is its first warp.
    Products(usize),
}

/// The agents in use.
#[derive(Debug)]
pub(super) struct Slots {
    /// The number of the first agent, and how many there are.
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) known: HashMap<Slot, usize>,
    /// The purpose of each agent, and the warp it works for.
    pub(super) all: Vec<(Slot, usize)>,
}

impl Slots {
    pub(super) fn new(first: usize, count: usize) -> Slots {
        Slots { first, count, known: HashMap::new(), all: Vec::new() }
    }

    /// The thread that reports name for an access of one of these agents.
    pub(super) fn thread(&self, agent: usize, lane: usize) -> Option<(usize, usize)> {
        match *self.all.get(agent.checked_sub(self.first)?)? {
            (Slot::Products(first), _) => Some((first + lane % 4, 0)),
            (_, warp) => Some((warp, lane)),
        }
    }

    /// Whether an agent is one of these.
    pub(super) fn has(&self, agent: usize) -> bool {
        agent >= self.first
    }
}

/// The lanes that represent one of the four warps of a wgmma; the four masks cover all lanes.
pub(crate) const fn quarter(warp: usize) -> u32 {
    0x1111_1111 << (warp % 4)
}

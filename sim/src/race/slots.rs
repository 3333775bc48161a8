//! What works beside the warps, and the agents that stand for it.

use std::collections::HashMap;

/// How many agents of the async proxy there are for so many blocks. What needs more of them shares: that can hide a race, never
/// invent one.
pub(crate) fn slots(blocks: usize) -> usize {
    64.max(32 * blocks)
}

/// What works beside the warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// Copies that the mbarrier at this address counts.
    Phase(u32),
    /// Copies in bulk groups of a warp: what they read, and what they write.
    Reads(usize),
    Writes(usize),
    /// Products of four warps, the first of which is this.
    Products(usize),
}

/// The agents that have work.
#[derive(Debug)]
pub(super) struct Slots {
    /// The number of the first agent, and how many there are.
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) known: HashMap<Slot, usize>,
    /// What each is for, and the warp it works for.
    pub(super) all: Vec<(Slot, usize)>,
}

impl Slots {
    pub(super) fn new(first: usize, count: usize) -> Slots {
        Slots { first, count, known: HashMap::new(), all: Vec::new() }
    }

    /// The thread an access of one of these agents is said to be of.
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

/// The lanes that stand for one of the four warps of a product: together they are all.
pub(crate) const fn quarter(warp: usize) -> u32 {
    0x1111_1111 << (warp % 4)
}

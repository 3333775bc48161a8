//! The kinds of accesses of blocks, and an access in one number.

use super::access::Strength;

/// Nobody.
pub(super) const NONE: u64 = u64::MAX;

/// What the accesses of one kind to a word have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Write,
    Read,
    /// Strong, with a scope beyond the block.
    StrongWrite,
    StrongRead,
    Constant,
    /// Plain, after a strong read of the same block of the same word.
    WriteAfter,
    ReadAfter,
}

pub(super) const KINDS: [Kind; 7] =
    [Kind::Write, Kind::Read, Kind::StrongWrite, Kind::StrongRead, Kind::Constant, Kind::WriteAfter, Kind::ReadAfter];

impl Kind {
    /// `moment` is that of the access, or of a plain one that of the strong read it follows.
    pub(super) fn new(wrote: bool, strength: Strength, moment: u64) -> Kind {
        match (wrote, strength, moment) {
            (true, Strength::Wide, _) => Kind::StrongWrite,
            (false, Strength::Wide, _) => Kind::StrongRead,
            (true, _, 0) => Kind::Write,
            (false, _, 0) => Kind::Read,
            (true, ..) => Kind::WriteAfter,
            (false, ..) => Kind::ReadAfter,
        }
    }

    pub(super) fn wrote(self) -> bool {
        matches!(self, Kind::Write | Kind::StrongWrite | Kind::WriteAfter)
    }

    pub(super) fn after(self) -> bool {
        matches!(self, Kind::WriteAfter | Kind::ReadAfter)
    }

    pub(super) fn strong(self) -> bool {
        matches!(self, Kind::StrongWrite | Kind::StrongRead)
    }

    pub(super) fn conflicts(self, other: Kind) -> bool {
        (self.wrote() || other.wrote()) && !(self.strong() && other.strong())
    }
}

/// Bits of a packed access: those of the thread, through all blocks of a cluster, and of the place before them.
const THREAD_BITS: u32 = 14;
const PLACE_BITS: u32 = 23;
const SPOKE_BIT: u32 = THREAD_BITS + PLACE_BITS;
const BLOCK_BIT: u32 = SPOKE_BIT + 1;

/// The first block that an access cannot name.
pub(super) const MAX_BLOCKS: u64 = 1 << (64 - BLOCK_BIT);
/// The first instruction, or site, that it cannot.
pub(super) const MAX_PLACES: usize = 1 << PLACE_BITS;

/// An access in one number, ordered by block: the block, a bit that says whether it spoke with others, and the instruction, or the
/// number of its site, before the thread.
pub(super) fn pack(block: u64, spoke: bool, place: u32, thread: u32) -> u64 {
    let place = u64::from(place) & (MAX_PLACES as u64 - 1);
    block << BLOCK_BIT | u64::from(spoke) << SPOKE_BIT | place << THREAD_BITS | u64::from(thread)
}

pub(super) fn block_of(v: u64) -> u64 {
    v >> BLOCK_BIT
}

pub(super) fn spoke(v: u64) -> bool {
    v >> SPOKE_BIT & 1 != 0
}

pub(super) fn place_of(v: u64) -> usize {
    (v >> THREAD_BITS) as usize & (MAX_PLACES - 1)
}

pub(super) fn thread_of(v: u64) -> u32 {
    v as u32 & ((1 << THREAD_BITS) - 1)
}

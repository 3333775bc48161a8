//! The kinds of accesses of blocks, and the encoding of an access in one number.

use super::access::Strength;

/// Nobody.
pub(super) const NONE: u64 = u64::MAX;

/// The kind of an access to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Write,
    Read,
    /// Strong, with a scope beyond the block.
    StrongWrite,
    StrongRead,
    Constant,
    /// Plain, after a strong read of the same word by the same block.
    WriteAfter,
    ReadAfter,
}

pub(super) const KINDS: [Kind; 7] =
    [Kind::Write, Kind::Read, Kind::StrongWrite, Kind::StrongRead, Kind::Constant, Kind::WriteAfter, Kind::ReadAfter];

impl Kind {
    /// `moment` is that of the access; for a plain access, that of the strong read it follows.
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

/// Bits of a packed access for the thread (in its cluster) and, above it, for the instruction or site.
const THREAD_BITS: u32 = 14;
const PLACE_BITS: u32 = 23;
const SPOKE_BIT: u32 = THREAD_BITS + PLACE_BITS;
const BLOCK_BIT: u32 = SPOKE_BIT + 1;

/// The first block number that does not fit.
pub(super) const MAX_BLOCKS: u64 = 1 << (64 - BLOCK_BIT);
/// The first instruction or site that does not fit.
pub(super) const MAX_PLACES: usize = 1 << PLACE_BITS;

/// Packs an access so that accesses order by block. From the high bits: the block, whether it communicated with other
/// blocks, the instruction or the index of its site, the thread.
pub(super) fn pack(block: u64, spoke: bool, place: u32, thread: u32) -> u64 {
    let place = u64::from(place) & (MAX_PLACES as u64 - 1);
    block << BLOCK_BIT | u64::from(spoke) << SPOKE_BIT | place << THREAD_BITS | u64::from(thread)
}

pub(super) fn block_of(v: u64) -> u64 {
    v >> BLOCK_BIT
}

pub(super) fn was_strong(v: u64) -> bool {
    v >> SPOKE_BIT & 1 != 0
}

pub(super) fn place_of(v: u64) -> usize {
    (v >> THREAD_BITS) as usize & (MAX_PLACES - 1)
}

pub(super) fn thread_of(v: u64) -> u32 {
    v as u32 & ((1 << THREAD_BITS) - 1)
}

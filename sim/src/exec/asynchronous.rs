//! Asynchronous copies: `cp.async`, its groups, and arrivals at mbarriers (PTX 9.7.9.25, 9.7.13.15.16).
//!
//! A copy is in its warp's queue until it lands. Several moments are legal, and the mode of the launch selects one. A
//! correct program gives the same results in all modes.

use std::collections::VecDeque;

/// When asynchronous copies read and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Landing {
    /// They read and write at issue.
    #[default]
    Early,
    /// They read at issue, and write when the program waits for them, or at the end of the kernel; until then the
    /// destination is undefined.
    Late,
    /// They read when the program waits for them, and write at the same time; until then the destination keeps its old
    /// value.
    LateReads,
    /// They read and write when the program waits for them; until then the destination is undefined.
    Latest,
}

impl Landing {
    /// All modes.
    pub const ALL: [Landing; 4] = [Landing::Early, Landing::Late, Landing::LateReads, Landing::Latest];

    /// Whether the destination is undefined while a copy is in flight.
    pub(crate) fn poisons(self) -> bool {
        matches!(self, Landing::Late | Landing::Latest)
    }

    /// Whether the source is read when a copy lands.
    pub(crate) fn reads_late(self) -> bool {
        matches!(self, Landing::LateReads | Landing::Latest)
    }
}

/// One copy in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) lane: u8,
    /// Group of its lane, counted from zero.
    pub(crate) group: u32,
    pub(crate) pc: u32,
    /// The dynamic instruction that issued it.
    pub(crate) seq: u32,
    pub(crate) src: u64,
    /// Bytes to read; the rest is zero.
    pub(crate) read: u8,
    pub(crate) dst: u64,
    pub(crate) bytes: [u32; 4],
    pub(crate) size: u8,
    /// Clock of the copy engine that reads the source.
    pub(crate) clock: u32,
}

impl Copy {
    /// Whether two copies of lanes of one warp by the same instruction copy the same bytes to the same place.
    pub(crate) fn repeats(&self, other: &Copy) -> bool {
        let of = |copy: &Copy| (copy.pc, copy.group, copy.src, copy.read, copy.dst, copy.bytes);
        self.lane != other.lane && of(self) == of(other)
    }
}

/// The copies of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) flying: Vec<Copy>,
    /// Number of groups that each lane has committed.
    pub(crate) groups: [u32; 32],
    /// Clock of the copy engine up to which the copies of each lane have landed.
    pub(crate) landed: [u32; 32],
    /// Number of copies of each lane in flight.
    pub(crate) pending: [u32; 32],
    /// Clocks of the pending arrivals of each lane, in their order.
    pub(crate) arrivals: [VecDeque<u32>; 32],
}

/// A pending `cp.async.mbarrier.arrive` of one lane: it arrives when the copies before it have landed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Address of the mbarrier.
    pub(crate) at: u32,
    /// It waits for copies with an engine clock up to this one.
    pub(crate) clock: u32,
}

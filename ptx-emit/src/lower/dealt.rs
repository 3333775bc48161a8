//! Which lanes store to which blocks of a cluster.

use crate::inst::Reg;

/// Lanes that hold the same elements store them to different blocks.
#[derive(Clone, Copy)]
pub(super) struct Dealt {
    /// The first block that the lane stores to; of the next group of blocks it is the one with the same number.
    pub(super) first: Reg,
    /// Blocks of a group.
    pub(super) blocks: u32,
}

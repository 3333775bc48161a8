//! Distribution of stores to several blocks of a cluster over lanes.

use crate::inst::Reg;

/// Lanes with the same elements store them to different blocks.
#[derive(Clone, Copy)]
pub(super) struct LaneStores {
    /// The first block that the lane stores to. It stores to the block with the same position in each further group.
    pub(super) first: Reg,
    /// Blocks in a group.
    pub(super) blocks: u32,
}

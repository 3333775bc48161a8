//! Places of tiles in distributed shared memory.

use tilec_ir::entities::Value;

/// Where the tiles of a tensor in distributed shared memory lie.
#[derive(Copy, Clone, Debug)]
pub(super) struct ClusterPlace {
    pub(super) memory: Value,
    /// Of the first tile, and of its mbarrier.
    pub(super) offset: u64,
    pub(super) barriers: u64,
    /// Bytes of a tile, and tiles.
    pub(super) bytes: u64,
    pub(super) count: u64,
}

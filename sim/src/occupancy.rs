//! Active clusters of a launch, for programs that query them before they choose a grid.

/// Multiprocessors of the device: few, so that persistent grids stay small.
pub const MULTIPROCESSORS: u32 = 4;

/// Active clusters of this size: a multiprocessor runs one block. A cluster of more blocks than multiprocessors runs
/// alone. A block without a cluster is a cluster of one.
pub fn max_active_clusters(cluster: [u32; 3]) -> u32 {
    let blocks = cluster.iter().fold(1u32, |blocks, n| blocks.saturating_mul(*n)).max(1);
    (MULTIPROCESSORS / blocks).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiprocessor_has_one_block() {
        assert_eq!([[1, 1, 1], [2, 1, 1], [1, 2, 2], [16, 1, 1]].map(max_active_clusters), [4, 2, 1, 1]);
    }
}

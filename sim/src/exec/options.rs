//! Options of a launch, and the positions of its blocks in the grid.

use crate::exec::asynchronous::Landing;
use crate::numerics::mma::Generation;
use crate::progress::Progress;
use crate::report::Allowance;
use std::sync::Arc;

/// The order in which blocks run. Blocks that may wait for each other: among those that are resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By increasing index.
    #[default]
    Forward,
    /// By decreasing index.
    Reverse,
    /// Shuffled by the seed.
    Seeded,
}

/// How to execute.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of the scheduler.
    pub seed: u64,
    /// Order of the blocks.
    pub order: Order,
    /// Number of host threads for the blocks; blocks that may wait for each other run on one.
    pub threads: usize,
    /// Number of resident blocks, for blocks that wait for each other; by default the number that fits the usual chip
    /// of the module's target, regardless of registers.
    pub resident: Option<u64>,
    /// Warp instructions each block may execute.
    pub fuel: u64,
    /// The generation whose matrix arithmetic is used; by default that of the module's target.
    pub generation: Option<Generation>,
    /// When asynchronous copies land.
    pub landing: Landing,
    /// Blocks of a cluster (x, y, z) in the launch attribute; by default those of the kernel's `.reqnctapercluster`.
    pub cluster: Option<[u32; 3]>,
    /// Whether the launch may begin while previous ones still use global memory (programmatic stream serialization):
    /// then accesses before `griddepcontrol.wait` are errors.
    pub programmatic: bool,
    /// Errors that are listed instead of reported.
    pub allow: Vec<Allowance>,
    /// For a thread that observes or ends the launch.
    pub progress: Option<Arc<Progress>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            order: Order::Forward,
            threads: 1,
            resident: None,
            fuel: 1 << 32,
            generation: None,
            landing: Landing::Early,
            cluster: None,
            programmatic: false,
            allow: Vec::new(),
            progress: None,
        }
    }
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name of the kernel.
    pub entry: String,
    /// Blocks (x, y, z).
    pub grid: [u32; 3],
    /// Threads of a block (x, y, z).
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_smem: u32,
    /// The parameters in order, each as the little-endian bytes of its declared type.
    pub params: Vec<Vec<u8>>,
}

pub(crate) fn volume(dims: [u32; 3]) -> Option<u64> {
    dims.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d))).filter(|n| *n > 0)
}

/// The first block of a cluster.
pub(crate) fn first_of(grid: [u32; 3], cluster: [u32; 3], number: u64) -> [u32; 3] {
    let clusters = std::array::from_fn(|axis| grid[axis] / cluster[axis]);
    let at = position(clusters, number);
    std::array::from_fn(|axis| at[axis] * cluster[axis])
}

pub(crate) fn position(grid: [u32; 3], block: u64) -> [u32; 3] {
    let (x, y) = (u64::from(grid[0]), u64::from(grid[1]));
    [(block % x) as u32, (block / x % y) as u32, (block / x / y) as u32]
}

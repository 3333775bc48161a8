//! Occupancy: resident blocks per multiprocessor, and the resource that limits them.

use tilec_ir::target::{REGISTERS_PER_SM, REGISTERS_PER_THREAD, SCHEDULERS, Target, WARP};

/// The number of blocks for which each resource of a multiprocessor suffices.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// Registers.
    pub registers: u64,
    /// Shared memory.
    pub shared: u64,
    /// Warps.
    pub warps: u64,
    /// Slots for blocks.
    pub blocks: u64,
}

impl Occupancy {
    /// The occupancy of blocks with `threads` threads of `registers` registers each, and `shared` bytes of shared
    /// memory.
    pub fn new(target: Target, threads: u64, registers: u64, shared: u64) -> Occupancy {
        let threads = threads.max(1);
        // The number of warps on a scheduler by registers; blocks distribute their warps over four schedulers.
        let warps = u64::from(REGISTERS_PER_SM) / SCHEDULERS / u64::from(WARP) / registers.max(1).next_multiple_of(8);
        let registers = match registers > u64::from(REGISTERS_PER_THREAD) {
            true => 1,
            false => SCHEDULERS * warps * u64::from(WARP) / threads,
        };
        Occupancy {
            registers,
            shared: target.smem_per_sm() / target.smem_taken(shared).max(1),
            warps: u64::from(target.warps_per_sm()) * u64::from(WARP) / threads,
            blocks: u64::from(target.ctas_per_sm()),
        }
    }

    /// The number of resident blocks; at least 1.
    pub fn resident(&self) -> u64 {
        self.registers.min(self.blocks_without_register_limit()).max(1)
    }

    /// The number of resident blocks without the register limit; at least 1.
    pub(crate) fn blocks_without_register_limit(&self) -> u64 {
        self.shared.min(self.warps).min(self.blocks).max(1)
    }

    /// Each resource with its name and number of blocks.
    pub fn list(&self) -> [(&'static str, u64); 4] {
        [
            ("registers", self.registers),
            ("shared memory", self.shared),
            ("warps", self.warps),
            ("slots for blocks", self.blocks),
        ]
    }

    /// The resources with the smallest number: increasing one of them alone gives no more blocks, if there are several.
    pub fn limits(&self) -> Vec<&'static str> {
        let list = self.list();
        let least = list.iter().map(|(_, n)| *n).min();
        list.into_iter().filter(|&(_, n)| Some(n) == least).map(|(name, _)| name).collect()
    }

    /// Whether a resource is `the limit`, `a limit` among several, or none.
    pub fn as_limit(&self, name: &str) -> Option<&'static str> {
        let limits = self.limits();
        limits.contains(&name).then_some(if limits.len() == 1 { "the limit" } else { "a limit" })
    }
}

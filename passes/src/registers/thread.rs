//! Number of registers that a thread has.

use crate::assign_layouts::Threads;
use crate::roles::threads_of;
use tilec_ir::entities::Block;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::{REGISTERS_PER_SM, REGISTERS_PER_THREAD, SCHEDULERS, WARP, register_share};

/// Most registers of a thread for `blocks` resident blocks of `threads` threads. Each of the four schedulers has a
/// quarter of the registers of a multiprocessor, and warps are distributed over them.
pub(crate) fn cap(threads: u64, blocks: u64) -> u64 {
    let warps = (blocks * threads / u64::from(WARP)).div_ceil(SCHEDULERS).max(1);
    let registers = u64::from(REGISTERS_PER_SM) / SCHEDULERS / u64::from(WARP) / warps;
    (registers / 8 * 8).min(u64::from(REGISTERS_PER_THREAD))
}

/// Statements that the same threads execute, and their registers.
pub(crate) struct Context {
    pub(crate) body: Block,
    /// Number of threads that divide their tiles.
    pub(crate) threads: u64,
    pub(crate) has: u64,
}

/// The roles of a kernel, or the whole kernel.
pub(crate) fn contexts(k: &Kernel) -> Vec<Context> {
    let int = |e| k.as_int(e).and_then(|n| u32::try_from(n).ok());
    let blocks = k.schedule.min_ctas.and_then(int).unwrap_or(1).max(1);
    let mut roles = Vec::new();
    let mut all = 0;
    for &s in &k.blocks[k.body] {
        let StmtData::Role { warps, replicas, registers, body, .. } = k.stmts[s] else { continue };
        let warps = int(warps).unwrap_or(1);
        all += warps * replicas.and_then(int).unwrap_or(1) * WARP;
        roles.push((body, warps * WARP, registers.and_then(int)));
    }
    if roles.is_empty() {
        let of_block = u64::from(threads_of(k));
        return vec![Context { body: k.body, threads: Threads::of(k).count(), has: cap(of_block, u64::from(blocks)) }];
    }
    let share = register_share(all, blocks).min(REGISTERS_PER_THREAD);
    let of = |(body, threads, registers): (Block, u32, Option<u32>)| Context {
        body,
        threads: u64::from(threads),
        has: u64::from(registers.unwrap_or(share).min(REGISTERS_PER_THREAD)),
    };
    roles.into_iter().map(of).collect()
}

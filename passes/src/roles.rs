//! The roles of a kernel on sm_90a: how many warps and registers producer and consumer have, and what of shared memory is theirs.

use crate::analysis::wgmma::is_scheduled;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::{REGISTERS_PER_SM, REGISTERS_PER_THREAD, Target, WARP, register_share};

/// Registers of a thread of the producer where its threads fill slots themselves: addresses of what each copies.
const FILLING: i64 = 72;
/// Bytes that a block keeps for its barriers.
const BARRIER_BYTES: u64 = 1024;

/// Where the schedule asks for two warpgroups that take tiles in turns.
pub(crate) fn ping_pong(k: &Kernel) -> Option<Expr> {
    k.schedule.ping_pong.filter(|&e| k.as_int(e) == Some(1))
}

/// Groups of warps that multiply, each for tiles of its own.
pub(crate) fn replicas(k: &Kernel) -> u32 {
    if ping_pong(k).is_some() { 2 } else { 1 }
}

/// The threads that the schedule names; of a kernel with roles, those of a role that computes.
///
/// # Panics
/// It names none: `select-mma` has not been there yet.
pub(crate) fn threads_of(k: &Kernel) -> u32 {
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).and_then(|n| u32::try_from(n).ok());
    threads.unwrap_or_else(|| panic!("bug: the threads of `{}` are not known yet", k.name))
}

/// Warps that multiply.
pub(crate) fn consumer_warps(k: &Kernel) -> u32 {
    threads_of(k) / WARP
}

pub(crate) fn role(
    k: &mut Kernel,
    name: &str,
    (warps, replicas): (u32, u32),
    registers: Option<i64>,
    body: Vec<Stmt>,
    span: Span,
) -> Stmt {
    let warps = k.int(i64::from(warps), span);
    let replicas = (replicas > 1).then(|| k.int(i64::from(replicas), span));
    let registers = registers.map(|r| k.int(r, span));
    let body = k.block(body);
    k.stmt(StmtData::Role { name: name.to_owned(), warps, replicas, registers, body }, span)
}

/// Registers of a thread of the producer and of the consumer; `None`: all have enough.
///
/// A block starts with equal shares, in steps of 8; what the producer gives back the consumer takes. The sum must be what
/// there was: a warpgroup that asks for more waits for ever.
pub(crate) fn registers(k: &Kernel, warps: u32, filling: bool) -> (Option<i64>, Option<i64>) {
    let few = match warps * replicas(k) {
        _ if filling => FILLING,
        12.. => 32,
        _ => 40,
    };
    let share = share(k, warps);
    let warps = warps * replicas(k);
    if share >= 232 {
        return (None, None);
    }
    let (producer, consumer) = (i64::from(PRODUCER_WARPS), i64::from(warps.max(1)));
    let many = (share * (producer + consumer) - few * producer) / consumer / 8 * 8;
    match many {
        m if m <= share => (None, None),
        m => {
            let many = m.min(240);
            // What is left over is the producer's.
            let left = (share * (producer + consumer) - many * consumer) / producer / 8 * 8;
            (Some(left.clamp(few, share)), Some(many))
        }
    }
}

/// Registers of each thread as a block starts, whose consumer has so many warps.
pub(crate) fn share(k: &Kernel, warps: u32) -> i64 {
    let blocks = k.schedule.min_ctas.and_then(|e| k.as_int(e)).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    i64::from(register_share((warps * replicas(k) + PRODUCER_WARPS) * WARP, blocks))
}

/// Registers of a thread of the consumer, if it has so many warps.
pub(crate) fn consumer_registers(k: &Kernel, warps: u32) -> i64 {
    registers(k, warps, false).1.unwrap_or_else(|| share(k, warps))
}

/// Bytes of shared memory that a block may have for slots and buffers, beside its barriers.
pub(crate) fn slots_limit(k: &Kernel, target: Target) -> u64 {
    let blocks = k.schedule.min_ctas.and_then(|e| k.as_int(e)).and_then(|x| u64::try_from(x).ok()).unwrap_or(1).max(1);
    let all = target.smem_per_block().min((target.smem_per_sm() / blocks).saturating_sub(1024));
    all.saturating_sub(BARRIER_BYTES)
}

/// Registers of a thread that an accumulator and parts of its sums may take, so that addresses find room beside it.
pub(crate) const ACCUMULATORS: u64 = 192;

/// Registers that addresses and counters take beside accumulators.
pub(crate) const BESIDE: u64 = 24;

/// Registers of a thread that the arithmetic of an epilogue takes beside those, for the elements that are computed at once.
pub(crate) const EPILOGUE: u64 = 32;

/// Registers of a thread for the tiles that its stores read: of wgmma's warps what their role has, else what so many threads leave it.
pub(crate) fn epilogue_registers(k: &Kernel, threads: u64) -> u64 {
    let has = match is_scheduled(k) {
        true => {
            let warps = u32::try_from(threads / u64::from(WARP)).expect("a block has few warps");
            u64::try_from(consumer_registers(k, warps)).expect("a count of registers")
        }
        false => u64::from(REGISTERS_PER_SM) / threads.max(1) / 8 * 8,
    };
    has.min(u64::from(REGISTERS_PER_THREAD)).saturating_sub(BESIDE + EPILOGUE)
}

//! Producer and consumer of a kernel on sm_90a: warps, registers, and shared memory of each.

use crate::analysis::uses::all_stmts;
use crate::analysis::wgmma::is_scheduled;
use crate::registers::overhead::{ADDRESSES, EPILOGUE};
use tilec_ir::cluster;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::placement::slots;
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::{REGISTERS_PER_SM, REGISTERS_PER_THREAD, Target, WARP, register_share};
use tilec_ir::typing::resolve_view;

/// Registers of a producer thread if threads fill slots themselves, for the addresses of each copy.
const FILLING: i64 = 72;
/// Registers of a producer thread that only issues TMA loads, and the smallest number. With three consumer warpgroups,
/// only `SOME` are left.
const USUAL: i64 = 40;
const SOME: i64 = 32;
const FEW: i64 = 24;
/// Most values that a producer with the smallest number of registers can hold, as [`held_by_producer`] counts them
/// (ptxas 13: of its 22 registers for code, `gemm.tile` takes 20, and `gemm_fused.tile` 22 with 5 values; with 6 or
/// more, `gemm_splitk.tile`, `gemm_batched.tile`, `swiglu.tile` and `attention.tile` spill 4 to 12 bytes).
const HELD_BY_FEW: usize = 5;
/// Bytes that a block reserves for its barriers.
const BARRIER_BYTES: u64 = 1024;

/// The item `ping_pong`, if the schedule requests it.
pub(crate) fn ping_pong(k: &Kernel) -> Option<Expr> {
    k.schedule.ping_pong.filter(|&e| k.as_int(e) == Some(1))
}

/// Number of replicas of the consumer, each with its own tiles.
pub(crate) fn replicas(k: &Kernel) -> u32 {
    if ping_pong(k).is_some() { 2 } else { 1 }
}

/// The thread count in the schedule; for a kernel with roles, that of a role that computes.
///
/// # Panics
/// There is none, because `select-mma` has not run yet.
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

/// Registers of a thread of the producer and of the consumer; `None`: no change is needed.
///
/// A block starts with equal shares, in multiples of 8; the producer releases registers and the consumer takes them.
/// The sum must not grow, because a warpgroup that requests more waits for ever.
pub(crate) fn registers(k: &Kernel, warps: u32, filling: bool) -> (Option<i64>, Option<i64>) {
    let few = match warps * replicas(k) {
        _ if filling => FILLING,
        _ if held_by_producer(k) <= HELD_BY_FEW => FEW,
        12.. => SOME,
        _ => USUAL,
    };
    register_split(k, warps, few)
}

/// The smallest number of slots of a channel; `None`: there is no channel.
pub(crate) fn least_slots(k: &Kernel) -> Option<u64> {
    let channels = k.values.keys().filter(|&v| matches!(k.values[v].def, ValueDef::Channel { .. }));
    channels.filter_map(|v| slots(k, v)).min()
}

/// Fewest slots of a block that leaves room for a block of the next launch: fewer were not measured.
pub(crate) const LEAST_BESIDE: u64 = 4;

/// Registers of producer and consumer if the block leaves room for another one: the producer has as many as with three
/// warpgroups.
pub(crate) fn registers_beside(k: &Kernel, warps: u32) -> (Option<i64>, Option<i64>) {
    register_split(k, warps, SOME)
}

/// Registers of both if the producer has `few`.
fn register_split(k: &Kernel, warps: u32, few: i64) -> (Option<i64>, Option<i64>) {
    let share = registers_at_start(k, warps);
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
            // The producer keeps the remainder.
            let left = (share * (producer + consumer) - many * consumer) / producer / 8 * 8;
            (Some(left.clamp(few, share)), Some(many))
        }
    }
}

/// Values that the threads which issue TMA loads hold in loops: coordinates of windows, indices, and computed starts.
fn held_by_producer(k: &Kernel) -> usize {
    let slot = |e: Expr| match &k.exprs[e] {
        ExprData::Ref(v) => matches!(k.values[*v].def, ValueDef::Smem(_)),
        ExprData::View(view) => view.slot == Some(Slot::Put),
        _ => false,
    };
    let coordinates = |s: Stmt| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } if slot(dst) => {
            resolve_view(k, src).filter(|view| k.tensor_ty(view.base).is_some()).map_or(0, |view| view.dims.len())
        }
        _ => 0,
    };
    let held = |&s: &Stmt| match k.stmts[s] {
        StmtData::For { start, body, unroll: false, .. } => {
            let filled: usize = all_stmts(k, body).into_iter().map(coordinates).sum();
            let computed = usize::from(k.as_int(start) != Some(0));
            if filled > 0 { filled + 1 + computed } else { 0 }
        }
        _ => 0,
    };
    all_stmts(k, k.body).iter().map(held).sum()
}

/// Registers of each thread when a block starts, with this number of consumer warps.
pub(crate) fn registers_at_start(k: &Kernel, warps: u32) -> i64 {
    let blocks = k.schedule.min_ctas.and_then(|e| k.as_int(e)).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    i64::from(register_share((warps * replicas(k) + PRODUCER_WARPS) * WARP, blocks))
}

/// Registers of a consumer thread, with this number of consumer warps.
pub(crate) fn consumer_registers(k: &Kernel, warps: u32) -> i64 {
    registers(k, warps, false).1.unwrap_or_else(|| registers_at_start(k, warps))
}

/// Bytes of shared memory for slots and buffers of a block, without barriers.
pub(crate) fn slots_limit(k: &Kernel, target: Target) -> u64 {
    let blocks = k.schedule.min_ctas.and_then(|e| k.as_int(e)).and_then(|x| u64::try_from(x).ok()).unwrap_or(1).max(1);
    slots_of(target, blocks)
}

/// The same, without tiles of distributed shared memory.
pub(crate) fn slots_room(k: &Kernel, target: Target) -> u64 {
    slots_limit(k, target).saturating_sub(cluster::memory_bytes(k))
}

/// Bytes for each of `blocks` blocks on a multiprocessor.
pub(crate) fn slots_of(target: Target, blocks: u64) -> u64 {
    target.smem_of_each(blocks).saturating_sub(BARRIER_BYTES)
}

/// Registers of a thread for the tiles that its stores read: for wgmma those of the role, else those of a block with
/// this number of threads.
pub(crate) fn epilogue_registers(k: &Kernel, threads: u64) -> u64 {
    let has = match is_scheduled(k) {
        true => {
            let warps = u32::try_from(threads / u64::from(WARP)).expect("a block has few warps");
            u64::try_from(consumer_registers(k, warps)).expect("a count of registers")
        }
        false => u64::from(REGISTERS_PER_SM) / threads.max(1) / 8 * 8,
    };
    has.min(u64::from(REGISTERS_PER_THREAD)).saturating_sub(ADDRESSES + EPILOGUE)
}

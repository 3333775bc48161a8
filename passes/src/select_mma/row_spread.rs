//! Distribution of long rows over threads and blocks of a cluster.

use crate::analysis::views::{accessed_views, copy_shape, reads_tensor};
use crate::occupancy::Occupancy;
use tilec_ir::bits::Bits;
use tilec_ir::cluster;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_SM, Target};
use tilec_ir::typing::resolve_view;

/// Distribution of rows that are longer than a block can hold: measured for six programs, both element sizes, up to
/// 262144 elements, and all numbers of threads and blocks (`scripts/gpu_row_spread.py`;
/// docs/results/h200/row_spread.csv).
///
/// Blocks are small, so that one loads while others of the multiprocessor reduce: 128 threads of 64 elements, or of 128
/// if two of them are in a register. Softmax
/// of 16384 f32 has 0.97 of a copy's rate in two blocks of 128 threads, 0.83 in one of 512; cross entropy of bf16 0.84
/// and 0.51. Rows of 8192 have two such blocks, too: log-softmax of bf16 0.99, and 0.97 in one. If several tiles are
/// loaded, a thread has 32 elements of each: gradients of softmax of 32768 bf16 have 1.03 of a copy's rate with 32,
/// 0.93 with 64.
///
/// Only the warp itself waits for loads after the reduction (a vector in addition to the rows): there 256 threads have
/// 64 bytes of a row each, or 512 threads if that is the whole row. RMS norm of 65536 bf16: 0.89 in eight blocks of 256
/// threads, 0.71 in eight of 64, 0.85 in eight of 128; of 16384 bf16 0.95 in one of 512, 0.93 in two of 256. Layer norm,
/// which loads two tiles, of 32768 bf16: 0.90 in eight of 128, 0.86 in four of 256.
pub(super) struct Spread {
    /// Threads of a block, as long as there are enough blocks.
    threads: u64,
    /// Threads of a block if it has a row alone, at most.
    alone: u64,
    /// Threads of a block if more than eight blocks of `threads` threads would share a row.
    more: u64,
    /// Elements of a row for each thread.
    pub(super) each: u64,
    /// The most elements for each thread if eight blocks are not enough.
    max_elements: u64,
    /// Threads of a block if eight blocks with `each` elements are not enough.
    wide: u64,
    /// Most threads of a block if there are not enough blocks.
    largest: u64,
    /// Most blocks.
    blocks: u64,
    /// Bytes of a thread for each of its elements, if they determine the number of blocks on a multiprocessor.
    bytes: Option<u64>,
}

impl Spread {
    /// Most bytes of the tiles that a thread loads.
    const BYTES: u64 = 512;
    /// Bytes of a row in a thread that loads more after the reduction.
    const BEHIND: u64 = 64;
    /// Most elements of a row in a thread, if that many threads can have fewer.
    const MOST_OF_ROW: u64 = 64;
    /// Threads of a block that loads several tiles of 2-byte elements, and a vector after the reduction.
    const OF_SEVERAL: u64 = 128;
    /// Blocks of a row from which on half as many are better, if a thread can hold twice the elements. On an H200, cross
    /// entropy of 65536 bf16 has 0.89 of a copy's rate with 128 elements for a thread and 0.82 with 64, softmax 0.94 and
    /// 0.92, log-softmax 0.93 and 0.95; of 16384, in two blocks, cross entropy has 0.93 with 64 and 0.90 with 128.
    const DENSE_FROM: u64 = 4;
    /// Registers of a thread in addition to its elements.
    const BESIDE_ROW: u64 = 64;
    /// Registers of a thread for its elements with which a multiprocessor has two blocks of 512 threads.
    const OF_TWO: u64 = 32;

    /// The distribution for a kernel with `tiles` tiles of a row at once.
    pub(super) fn of(k: &Kernel, elements: u64, tiles: u64, loaded: &[Bits]) -> Spread {
        let word = u64::from(u32::BITS / u8::BITS);
        let least = loaded.iter().min().map_or(word, |size| size.bytes_of(1).clamp(1, word));
        if reads_behind(k, elements) {
            let each = Self::BEHIND / least;
            // With many tiles, a multiprocessor has one large block.
            let (wide, blocks) = if each * tiles <= Self::OF_TWO { (512, MOST_BLOCKS) } else { (1024, FEW_BLOCKS) };
            let threads = if loaded.len() > 1 && least < word { Self::OF_SEVERAL } else { 256 };
            let (alone, more) = (2 * threads, 256);
            return Spread { threads, alone, more, each, max_elements: each, wide, largest: wide, blocks, bytes: None };
        }
        let bytes: u64 = loaded.iter().map(|size| size.bytes_of(1)).sum();
        let several = loaded.len() > 1;
        let each = (1 << (Self::BYTES / bytes.max(1)).max(1).ilog2()).clamp(16, if several { 32 } else { 64 });
        // A single tile with two elements in a register leaves registers for twice as many elements.
        let most = match several {
            true => each,
            false if tiles > 1 || bytes >= word => 64,
            false => 128,
        };
        Spread {
            threads: 128,
            alone: 0,
            more: 128,
            each,
            max_elements: most,
            wide: 128,
            largest: if several { 256 } else { u64::from(MAX_THREADS) },
            blocks: MOST_BLOCKS,
            bytes: (tiles <= 1).then_some(bytes),
        }
    }

    /// Number of blocks for a row of `elements` elements, threads of each, and blocks on a multiprocessor, if that
    /// exceeds what their registers would give.
    pub(super) fn blocks(&self, elements: u64) -> (u64, u64, Option<i64>) {
        if elements <= self.alone * self.each {
            return (1, elements / self.each, None);
        }
        for threads in [self.threads, self.more] {
            let few = elements / (threads * self.each);
            if few <= FEW_BLOCKS {
                let dense = few >= Self::DENSE_FROM && self.max_elements >= 2 * self.each;
                return (if dense { few / 2 } else { few.max(2) }, threads, None);
            }
        }
        let each = (elements / (self.threads * FEW_BLOCKS)).min(self.max_elements);
        let all = elements / each;
        // Two blocks of half as many threads, of which one loads while the other reduces, if eight blocks are enough:
        // layer norm of 131072 bf16 on an H200 has 0.83 of a copy's rate with eight of 512, and 0.77 with four of 1024.
        let halves = self.wide == u64::from(MAX_THREADS) && all <= FEW_BLOCKS * self.wide / 2;
        let wide = if halves { self.wide / 2 } else { self.wide };
        let blocks = (all / wide).clamp(1, self.blocks);
        let least = elements / (blocks * Self::MOST_OF_ROW);
        let threads = (all / blocks).min(self.largest.max(least)).min(u64::from(MAX_THREADS));
        let resident = if halves { Some(2) } else { self.resident_blocks(threads, elements / (blocks * threads)) };
        (blocks, threads, resident)
    }

    /// Blocks of `threads` threads on a multiprocessor, if each thread has `each` elements. The assembler takes more
    /// registers than necessary: on an H200, cross entropy of 131072 bf16 reaches 0.74 of a copy's rate with 128
    /// registers and 0.65 with 168; of 131072 f32 0.90 and 0.78; softmax of 131072 f32 0.95 in 16 blocks with 127
    /// registers, 0.92 in eight with 243.
    pub(super) fn resident_blocks(&self, threads: u64, each: u64) -> Option<i64> {
        let registers = (self.bytes? * each).div_ceil(4);
        let blocks = u64::from(REGISTERS_PER_SM) / (threads * (registers + Self::BESIDE_ROW));
        i64::try_from(blocks).ok().filter(|&blocks| blocks > 1 && registers >= Self::OF_TWO)
    }
}

/// Registers of a thread for a row and the vectors that are loaded in front of its reduction, at most, and those in
/// addition.
const WITH_VECTORS: u64 = 128;
const BESIDE_VECTORS: u64 = 32;

/// Most blocks for a row whose vectors are loaded in front of the reduction, threads of each, and elements of a thread,
/// in the order in which they are preferred. On an H200, RMS norm of 65536 bf16 has 0.94 of a copy's rate in eight
/// blocks of 128 threads with 64 elements each, 0.91 in eight of 64 or four of 128 with 128 elements, 0.83 in 16 with
/// 32; of 131072 bf16 0.90 in 16 with 64 elements, 0.88 in eight with 128.
const NARROW: [(u64, u64, u64); 4] =
    [(FEW_BLOCKS, 128, 32), (FEW_BLOCKS, 128, 64), (MOST_BLOCKS, 128, 64), (MOST_BLOCKS, 128, 128)];
/// The same if threads cannot hold 64 elements with their vectors. Layer norm of 131072 f32 has 0.90 in eight blocks of
/// 512 threads, and 0.81 with vectors that are loaded after the reduction; of 262144 f32 0.83 and 0.75.
const WIDE: [(u64, u64, u64); 4] =
    [(FEW_BLOCKS, 128, 32), (FEW_BLOCKS, 256, 32), (FEW_BLOCKS, 512, 32), (MOST_BLOCKS, 512, 32)];

/// Number of blocks for a row of `elements` elements whose vectors are loaded in front of the reduction, threads of
/// each, and blocks on a multiprocessor. A thread needs `bytes` bytes of registers for each element. `None`: threads
/// cannot hold them.
pub(super) fn with_vectors(target: Target, elements: u64, bytes: u64) -> Option<(u64, u64, Option<i64>)> {
    let fits = |threads: u64, each: u64| fits(target, threads, each, bytes);
    let spreads = if fits(128, 64) { NARROW } else { WIDE };
    let enough =
        |&(blocks, threads, each): &(u64, u64, u64)| elements <= blocks * threads * each && fits(threads, each);
    let (_, threads, each) = spreads.into_iter().find(enough)?;
    let blocks = (elements / (threads * each)).max(2);
    Some((blocks, threads, resident_with_vectors(target, threads, elements / (blocks * threads), bytes)))
}

/// Registers of a thread with `each` elements of a row and its vectors, with those in addition.
fn registers_with_vectors(each: u64, bytes: u64) -> u64 {
    (bytes * each).div_ceil(4) + BESIDE_VECTORS
}

/// Whether threads can hold vectors beside the row, with `each` elements of a thread.
fn fits(target: Target, threads: u64, each: u64, bytes: u64) -> bool {
    let registers = registers_with_vectors(each, bytes);
    registers <= WITH_VECTORS + BESIDE_VECTORS && Occupancy::new(target, threads, registers, 0).registers > 0
}

/// The same with the blocks on a multiprocessor that the schedule demands.
pub(super) fn fits_schedule(k: &Kernel, target: Target, threads: u64, each: u64, bytes: u64) -> bool {
    let blocks = k.schedule.min_ctas.and_then(|e| k.as_int(e)).map_or(1, i64::unsigned_abs);
    fits(target, threads * blocks.max(1), each.max(1), bytes)
}

/// Blocks on a multiprocessor then.
pub(super) fn resident_with_vectors(target: Target, threads: u64, each: u64, bytes: u64) -> Option<i64> {
    let blocks = Occupancy::new(target, threads, registers_with_vectors(each, bytes), 0).resident();
    i64::try_from(blocks).ok().filter(|&blocks| blocks > 1)
}

/// Most blocks that share a row while threads can hold more of it: a cluster size that every device has.
pub(super) const FEW_BLOCKS: u64 = cluster::MAX_BLOCKS as u64;
/// Most blocks that share a row.
const MOST_BLOCKS: u64 = cluster::MAX_BLOCKS_ASKED as u64;

/// Whether a copy of whole rows to a tensor loads other operands in addition to the tiles from which it is computed.
fn reads_behind(k: &Kernel, elements: u64) -> bool {
    let deferred = Deferred::of(k);
    k.statement_data().any(|s| match *s {
        StmtData::Copy { src, dst, .. } => {
            let stores = resolve_view(k, src).is_none() && reads_tensor(k, dst);
            let whole = copy_shape(k, src, dst).is_some_and(|shape| shape.iter().product::<u64>() >= elements);
            stores && whole && accessed_views(k, &deferred, src).iter().any(|view| k.tensor_ty(view.base).is_some())
        }
        _ => false,
    })
}

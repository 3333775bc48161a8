//! How rows spread over threads and blocks of a cluster that are longer than a block has for itself.

use crate::analysis::views::{accessed_views, copy_shape, reads_tensor};
use tilec_ir::bits::Bits;
use tilec_ir::cluster;
use tilec_ir::deferred::Deferred;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_SM};
use tilec_ir::typing::resolve_view;

/// How rows spread that are longer: measured for six programs, both sizes of elements and up to 262144 of them with every number of threads and blocks
/// (`scripts/gpu_row_spread.py`; docs/results/h100/row_spread.csv).
///
/// Blocks are small, so that one loads while others of the multiprocessor reduce: 128 threads of 64 elements. Softmax of 16384 bf16 has 0.99 of a copy's rate in two
/// blocks of 128 threads, 0.95 in one of 512; cross entropy 0.96 and 0.62. A block of several tiles has no more than [`Spread::BYTES`] of them for a thread, as long as there are blocks.
///
/// What is read after the reduction (a vector beside the rows) is waited for by its warp alone: there 256 threads have 64 bytes of a row each. RMS norm of 65536 bf16: 0.97 in eight
/// blocks of 256 threads, 0.79 in eight of 64, 0.93 in eight of 128.
pub(super) struct Spread {
    /// Threads of a block, while blocks suffice.
    threads: u64,
    /// Elements of a row for each thread.
    pub(super) each: u64,
    /// The same where eight blocks are not enough.
    most: u64,
    /// Threads of a block where eight blocks of so many elements are not enough.
    wide: u64,
    /// Most threads of a block, for want of blocks.
    largest: u64,
    /// Most blocks.
    blocks: u64,
    /// Bytes of a thread for each of its elements, where blocks that share a multiprocessor follow from them.
    bytes: Option<u64>,
}

impl Spread {
    /// Bytes of the tiles that a thread loads.
    const BYTES: u64 = 512;
    /// Bytes of a row for a thread that reads more after the reduction.
    const BEHIND: u64 = 64;
    /// Registers of a thread beside those of its elements.
    const BESIDE_ROW: u64 = 64;
    /// Registers of a thread for its elements of which a multiprocessor has two blocks of 512 threads.
    const OF_TWO: u64 = 32;

    /// How the rows of a kernel spread that has so many `tiles` of a row at once.
    pub(super) fn of(k: &Kernel, elements: u64, tiles: u64, loaded: &[Bits]) -> Spread {
        let word = u64::from(u32::BITS / u8::BITS);
        let least = loaded.iter().min().map_or(word, |size| size.bytes_of(1).clamp(1, word));
        if reads_behind(k, elements) {
            let each = Self::BEHIND / least;
            // Of many tiles a multiprocessor has one block: a large one.
            let (wide, blocks) = if each * tiles <= Self::OF_TWO { (512, MOST_BLOCKS) } else { (1024, FEW_BLOCKS) };
            return Spread { threads: 256, each, most: each, wide, largest: wide, blocks, bytes: None };
        }
        let bytes: u64 = loaded.iter().map(|size| size.bytes_of(1)).sum();
        let each = (1 << (Self::BYTES / bytes.max(1)).max(1).ilog2()).clamp(16, 64);
        // What is held of one tile alone, in half a register each, leaves registers for twice as many.
        let most = if tiles > 1 || bytes >= word { 64 } else { 128 };
        Spread {
            threads: 128,
            each,
            most,
            wide: 128,
            largest: u64::from(MAX_THREADS),
            blocks: MOST_BLOCKS,
            bytes: (tiles <= 1).then_some(bytes),
        }
    }

    /// Blocks of a row of so many elements, threads of each, and blocks that share a multiprocessor, where that is more than their registers would have it.
    pub(super) fn blocks(&self, elements: u64) -> (u64, u64, Option<i64>) {
        let few = elements / (self.threads * self.each);
        if few <= FEW_BLOCKS {
            return (few.max(1), self.threads, None);
        }
        let each = (elements / (self.threads * FEW_BLOCKS)).min(self.most);
        let all = elements / each;
        // Two blocks of half as many threads, of which one loads while the other reduces, where eight are enough: layer norm of 131072 bf16 on an H200 has 0.83 of a copy's rate with
        // eight of 512, 0.77 with four of 1024.
        let halves = self.wide == u64::from(MAX_THREADS) && all <= FEW_BLOCKS * self.wide / 2;
        let wide = if halves { self.wide / 2 } else { self.wide };
        let blocks = (all / wide).clamp(1, self.blocks);
        let threads = (all / blocks).min(self.largest);
        let together = if halves { Some(2) } else { self.together(threads, elements / (blocks * threads)) };
        (blocks, threads, together)
    }

    /// Blocks of so many threads that share a multiprocessor, where each thread has so many elements. The assembler takes more registers than it needs: on an H200 cross entropy of 131072 bf16 reaches 0.74 of a
    /// copy's rate with 128 registers and 0.65 with 168, of 131072 f32 0.90 and 0.78; softmax of 131072 f32 0.95 in 16 blocks with 127, 0.92 in eight with 243.
    fn together(&self, threads: u64, each: u64) -> Option<i64> {
        let registers = (self.bytes? * each).div_ceil(4);
        let blocks = u64::from(REGISTERS_PER_SM) / (threads * (registers + Self::BESIDE_ROW));
        i64::try_from(blocks).ok().filter(|&blocks| blocks > 1 && registers >= Self::OF_TWO)
    }
}

/// Blocks that share a row while threads have room for more of it: a cluster that every device has.
pub(super) const FEW_BLOCKS: u64 = cluster::MAX_BLOCKS as u64;
/// Most blocks that share a row.
const MOST_BLOCKS: u64 = cluster::MAX_BLOCKS_ASKED as u64;

/// Whether a copy of whole rows to a tensor reads others beside the tiles that it is computed of.
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

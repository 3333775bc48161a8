//! Cost of one block of a candidate: work for each unit of a multiprocessor.

use super::combining::Combined;
use super::kept::Kept;
use super::work::Region;
use crate::schedule::occupancy;
use tilec_ir::atoms::Atom;
use tilec_ir::entities::Stmt;
use tilec_ir::missed_paths::{FastPath, MissedPath};

/// A region of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// How often it runs.
    pub(super) trips: f64,
    /// Clocks of the product units at full utilisation.
    pub(super) product: f64,
    /// Clocks between the products of a warpgroup: for additions to its accumulator and loads of an operand.
    pub(super) between: f64,
    /// The part of `between` that the products of other warpgroups do not hide: additions, and computed operands.
    pub(super) added: f64,
    /// Elements of operands that warpgroups compute in registers.
    pub(super) computes: f64,
    /// Clocks in which a warpgroup computes an operand while products of the previous step are pending; 0: none.
    pub(super) behind: f64,
    /// Blocks of 64 rows that a warpgroup multiplies one after the other.
    pub(super) blocks: f64,
    /// Instructions that warps issue.
    pub(super) issued: f64,
    /// Bytes that shared memory accesses occupy, in whole wavefronts.
    pub(super) shared: f64,
    /// Bytes read from global memory, and written.
    pub(super) loads: f64,
    pub(super) stores: f64,
    /// Bytes that pass the second-level cache in whole lines in the time that its loads take: more than `loads`, if
    /// rows of TMA boxes are short, or cross lines.
    pub(super) full_rows: f64,
    /// Bytes of each copy. For kernels without products: of the bytes read, those that a cache serves, and of these those that an iteration
    /// reads again from the first-level cache; the bytes of each copy, and those of them that come from memory.
    pub(super) cached: f64,
    pub(super) near: f64,
    pub(super) copied: Vec<f64>,
    pub(super) fetched: Vec<f64>,
    /// Where the next iterations find the rest of partly used sectors of each copy.
    pub(super) kept: Vec<Kept>,
    /// The atomic operations of each copy; the bytes that they combine, which are among those written; those that pass
    /// between memory and the cache for them; and the sectors.
    pub(super) combined: Vec<Option<Combined>>,
    pub(super) adds: f64,
    pub(super) swapped: f64,
    pub(super) sectors: f64,
    /// Bytes of each operand from memory, if one is converted: a partly used line serves the next iteration. And bytes
    /// of a row of the operands that are multiplied. (16x8192x8192 of W4A16 on an H100 without arithmetic: 16.9 us, in
    /// steps of 64 and of 128 4-bit elements.)
    pub(super) sides: Option<[f64; 2]>,
    pub(super) row: f64,
    /// Elements that threads store, if TMA cannot store them.
    pub(super) pieces: f64,
    /// Clocks in which warps on all schedulers compute the stored values, at full utilisation.
    pub(super) computed: f64,
    /// Clocks of the longest chain of dependent instructions.
    pub(super) chain: f64,
    /// Iterations by which loads run ahead of their use; 0: they are awaited at once.
    pub(super) ahead: f64,
    /// Whether tiles pass through registers on their way to shared memory.
    pub(super) staged: bool,
    /// Whether tiles of unaligned rows are held in registers for an iteration, and shifted into place.
    pub(super) carried: bool,
    /// Whether fragments are loaded when they are needed, not one slice ahead.
    pub(super) single: bool,
    /// Whether its products are scalar.
    pub(super) scalar: bool,
    /// Whether it is a loop in which warps synchronise.
    pub(super) synchronised: bool,
    /// Whether loaded rows cross 128-byte lines.
    pub(super) across: bool,
}

impl Part {
    /// The shares of the operands in the loads of a tile, in bytes or proportional to bytes.
    pub(super) fn weights(&self, (rows, cols): (u64, u64)) -> [f64; 2] {
        self.sides.unwrap_or([rows as f64, cols as f64])
    }

    /// Bytes between memory and the second-level cache, for kernels without products.
    pub(super) fn moved(&self) -> f64 {
        self.loads - self.cached + self.stores - self.adds + self.swapped
    }

    /// Bytes of an iteration from memory.
    pub(super) fn taken(&self) -> f64 {
        self.sides.map_or(self.loads, |sides| sides.iter().sum())
    }
}

/// Slots that do not hold loads ahead: one is read, and one is filled during an iteration.
pub(super) const BUSY: f64 = 1.5;

/// Iterations by which loads run ahead with `slots` slots.
pub(super) fn ahead(slots: u64) -> f64 {
    slots as f64 - BUSY
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    pub(super) block: occupancy::Block,
    /// Bytes of shared memory that do not depend on the number of stages, and bytes of one stage.
    pub(super) fixed: u64,
    pub(super) slot: u64,
    /// Bytes in which groups of warps exchange partial sums.
    pub(super) exchanged: u64,
    /// Bytes of a buffer through which results can be stored, and whether it fits.
    pub(super) result: u64,
    pub(super) offloaded: bool,
    /// Free bytes of shared memory for partial sums of another block of the cluster.
    pub(super) room: u64,
    /// As in [`SearchContext`](super::search_context::SearchContext).
    pub(super) stream_k: Option<bool>,
    /// Blocks of a cluster that share a tile along the reduction, from the schedule.
    pub(super) split_k: Option<i64>,
    /// Whether two warpgroups take tiles alternately.
    pub(super) ping_pong: bool,
    /// Whether producer warps load the operands of `mma.sync` products.
    pub(super) fed: bool,
    /// Whether, in addition, a block of the next launch fits next to it.
    pub(super) beside: bool,
    /// Blocks of a cluster along rows and columns of tiles.
    pub(super) cluster: [i64; 2],
    /// Blocks that are resident on a multiprocessor.
    pub(super) resident: u64,
    pub(super) parts: Vec<Part>,
    /// Rows and columns of the first product.
    pub(super) tile: Option<(u64, u64)>,
    /// The instruction of the first product.
    pub(super) atom: Option<Atom>,
    /// Multiply-adds.
    pub(super) macs: f64,
    /// A tie-breaker between equal predictions; smaller is better.
    pub(super) rank: u64,
}

impl Cost {
    /// Makes loops that have lost a fast path wait for their loads. `regions`: those of the parts.
    pub(super) fn wait_for_loads<'a>(
        &mut self,
        regions: &[Region],
        lost: impl Iterator<Item = &'a MissedPath> + Clone,
    ) {
        let waits = |at: Stmt| lost.clone().any(|loss| loss.path == FastPath::Ahead && loss.at.contains(&at));
        for (region, part) in regions.iter().zip(&mut self.parts) {
            if region.at.is_some_and(waits) {
                part.ahead = 0.0;
            }
        }
    }

    /// The same if rows of TMA boxes took no longer than their bytes.
    pub(super) fn with_full_rows(&self) -> Cost {
        let parts = self.parts.iter().map(|part| Part { full_rows: part.loads, across: false, ..part.clone() });
        Cost { parts: parts.collect(), ..self.clone() }
    }

    /// The same if atomic operations took no time of the cache.
    pub(super) fn without_combining(&self) -> Cost {
        let parts = self.parts.iter().map(|part| Part { sectors: 0.0, ..part.clone() });
        Cost { parts: parts.collect(), ..self.clone() }
    }

    /// The cost of a kernel with known parts, which no longer depends on the number of stages.
    pub(super) fn of_parts(
        block: occupancy::Block,
        resident: u64,
        parts: Vec<Part>,
        (tile, atom): (Option<(u64, u64)>, Option<Atom>),
        macs: f64,
    ) -> Cost {
        Cost {
            fixed: block.shared,
            block,
            slot: 0,
            exchanged: 0,
            result: 0,
            offloaded: false,
            room: 0,
            stream_k: Some(false),
            split_k: None,
            ping_pong: false,
            fed: false,
            beside: false,
            cluster: [1, 1],
            resident,
            parts,
            tile,
            atom,
            macs,
            rank: tile.map_or(0, |(rows, cols)| rows * cols),
        }
    }
}

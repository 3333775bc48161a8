//! Cost of one block of a candidate, in work for each unit of a multiprocessor.

use super::work::Region;
use crate::schedule::occupancy;
use tilec_ir::atoms::Atom;
use tilec_ir::entities::Stmt;
use tilec_ir::loss::{FastPath, Loss};

/// A region of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// How often it runs.
    pub(super) trips: f64,
    /// Clocks of the product units, were they never idle.
    pub(super) product: f64,
    /// Clocks that a warpgroup takes between its products: to add their sums to its accumulator, to load an operand.
    pub(super) between: f64,
    /// Of these, those that the products of other warpgroups do not hide: of additions, and of operands that are computed.
    pub(super) added: f64,
    /// Elements of operands that warpgroups compute in registers.
    pub(super) computes: f64,
    /// Clocks in which a warpgroup computes an operand while its products of the step before are pending; 0: it does not.
    pub(super) behind: f64,
    /// Blocks of 64 rows that a warpgroup multiplies one after the other.
    pub(super) blocks: f64,
    /// Instructions that warps issue.
    pub(super) issued: f64,
    /// Bytes of shared memory that its accesses move, in the units in which it moves them.
    pub(super) shared: f64,
    /// Bytes read from global memory, and written.
    pub(super) loads: f64,
    pub(super) stores: f64,
    /// What memory brings of each operand, where one is converted: the other half of a line is there for the next trip. And bytes of a row of what is multiplied. (16x8192x8192 of W4A16 on an H100: without
    /// arithmetic 16.9 us in steps of 64 and of 128 elements of 4 bits.)
    pub(super) sides: Option<[f64; 2]>,
    pub(super) row: f64,
    /// Elements that threads store, because TMA cannot.
    pub(super) pieces: f64,
    /// Clocks in which warps of all schedulers compute what is stored, were there always one that can.
    pub(super) computed: f64,
    /// Clocks of the longest chain of dependent instructions.
    pub(super) chain: f64,
    /// Trips that a load may take without being waited for; 0: it is waited for at once.
    pub(super) ahead: f64,
    /// Tiles pass through registers on their way to shared memory.
    pub(super) staged: bool,
    /// Tiles of unaligned rows wait in registers for an iteration, and are shifted into place.
    pub(super) carried: bool,
    /// Fragments are loaded when they are needed, not one slice ahead.
    pub(super) single: bool,
    /// Its products are scalar.
    pub(super) scalar: bool,
    /// It is a loop that warps synchronise in.
    pub(super) synchronised: bool,
    /// Rows of what it loads lie across lines.
    pub(super) across: bool,
}

impl Part {
    /// How what a tile of so many rows and columns loads is divided between its operands: bytes, or what they are in proportion to.
    pub(super) fn weights(&self, (rows, cols): (u64, u64)) -> [f64; 2] {
        self.sides.unwrap_or([rows as f64, cols as f64])
    }

    /// Bytes that an iteration takes of memory.
    pub(super) fn taken(&self) -> f64 {
        self.sides.map_or(self.loads, |sides| sides.iter().sum())
    }
}

/// Slots that are no loads ahead: one is read, and one is filled in the course of an iteration.
pub(super) const BUSY: f64 = 1.5;

/// How many iterations loads run ahead with so many slots.
pub(super) fn ahead(slots: u64) -> f64 {
    slots as f64 - BUSY
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    pub(super) block: occupancy::Block,
    /// Bytes of shared memory that do not depend on the stages, and those of a stage.
    pub(super) fixed: u64,
    pub(super) slot: u64,
    /// Bytes in which groups of warps exchange their sums.
    pub(super) exchanged: u64,
    /// Bytes of a buffer out of which results can be stored, and whether there is room for it.
    pub(super) result: u64,
    pub(super) offloaded: bool,
    /// Bytes of shared memory that are left for sums of another block of the cluster.
    pub(super) room: u64,
    /// As in [`Setting`].
    pub(super) stream_k: Option<bool>,
    /// Blocks of a cluster that share a tile along the reduction, as the schedule says.
    pub(super) split_k: Option<i64>,
    /// Two warpgroups take tiles alternately.
    pub(super) ping_pong: bool,
    /// Producer warps bring what warps multiply.
    pub(super) fed: bool,
    /// And leave shared memory for a block of the next launch.
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
    /// What is smaller for the better of two that are predicted to be as fast.
    pub(super) rank: u64,
}

impl Cost {
    /// Has the loops of which that is lost wait for what they load. `regions`: those of the parts.
    pub(super) fn lose<'a>(&mut self, regions: &[Region], lost: impl Iterator<Item = &'a Loss> + Clone) {
        let waits = |at: Stmt| lost.clone().any(|loss| loss.path == FastPath::Ahead && loss.at.contains(&at));
        for (region, part) in regions.iter().zip(&mut self.parts) {
            if region.at.is_some_and(waits) {
                part.ahead = 0.0;
            }
        }
    }

    /// Of a kernel whose parts are known: nothing of it depends on the number of stages any more.
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

//! Which tile of a product a warp can have, or a warpgroup, and how many threads that takes.
//!
//! Nothing here looks at the statements of a kernel: `select-mma` asks for its products, and `choose` for candidates, whose extents are numbers before they
//! stand in any text.

use crate::roles::BESIDE;
use crate::select_mma::atoms::{accumulator_registers, divides};
use crate::select_mma::warpgroup::{self, Way};
use tilec_ir::atoms::Atom;
use tilec_ir::kernel::Kernel;
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_THREAD, WARP, WARPGROUP};
use tilec_ir::types::Elem;

/// Who has a tile: each of so many groups of warps that share the reduction, or warpgroups.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Owners {
    Warps { groups: u64 },
    Warpgroups,
}

/// Why a tile is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unfit {
    /// It does not divide the accumulator.
    Divides,
    /// The registers that the accumulator takes, more than a thread has.
    Registers(u64),
    /// The threads that it takes, more than a block has.
    TooMany(u64),
    /// The threads that it takes, others than those that are written.
    Threads(u64),
}

impl Owners {
    /// The threads of a block with tiles of `tile` of an accumulator.
    pub(crate) fn threads(self, (bm, bn): (u64, u64), (wm, wn): (u64, u64)) -> u64 {
        let tiles = (bm / wm.max(1)).saturating_mul(bn / wn.max(1));
        tiles.saturating_mul(match self {
            Owners::Warps { groups } => groups.saturating_mul(u64::from(WARP)),
            Owners::Warpgroups => u64::from(WARP * WARPGROUP),
        })
    }

    /// The threads of a block with such tiles of an accumulator whose elements have so many bytes. `written`: those that the schedule says.
    pub(crate) fn fit(
        self,
        block: (u64, u64),
        tile: (u64, u64),
        bytes: u32,
        written: Option<u64>,
    ) -> Result<u64, Unfit> {
        let warpgroups = self == Owners::Warpgroups;
        if !divides(tile.0, block.0, warpgroups) || !divides(tile.1, block.1, warpgroups) {
            return Err(Unfit::Divides);
        }
        // A warpgroup computes its tile as a warp does, with four times the threads.
        let registers =
            accumulator_registers(tile.0, tile.1, bytes) / if warpgroups { u64::from(WARPGROUP) } else { 1 };
        if registers > u64::from(REGISTERS_PER_THREAD) {
            return Err(Unfit::Registers(registers));
        }
        match self.threads(block, tile) {
            needed if needed > u64::from(MAX_THREADS) => Err(Unfit::TooMany(needed)),
            needed if written.is_some_and(|threads| threads != needed) => Err(Unfit::Threads(needed)),
            needed => Ok(needed),
        }
    }
}

/// A product that warpgroups are to compute.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) atom: Atom,
    /// How it is computed: rather transposed or not.
    pub(crate) way: Way,
    /// Rows, columns and depth.
    pub(crate) block: (u64, u64, u64),
    /// The type of the sums.
    pub(crate) acc: Elem,
    /// The tile that the schedule says.
    pub(crate) scheduled: Option<(u64, u64)>,
    /// How deep sums may get before they are added to the accumulator.
    pub(crate) promoted: Option<u64>,
    /// Dimensions along which tiles like the accumulator are reduced.
    pub(crate) reduced: &'a [usize],
}

/// How warpgroups compute a product.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Tiled {
    /// Rows and columns of each.
    pub(crate) tile: (u64, u64),
    /// How it is computed in the end.
    pub(crate) way: Way,
    /// Registers for a sum: two where parts of it are summed beside it.
    pub(crate) sums: u64,
    /// Registers of a thread that hold sums, and an operand that comes from them.
    pub(crate) registers: u64,
    /// Whether a thread has these, and those for addresses beside them.
    pub(crate) has_room: bool,
}

/// Why warpgroups do not compute a product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoTile {
    /// A tile of the reduction is deeper than its sums may get.
    Deep { depth: u64, most: u64 },
    /// The instruction does not compute such tiles.
    Shape,
    /// The instruction takes so many registers, and a thread starts with fewer.
    Instruction { wanted: u64, has: u64 },
}

impl Wanted<'_> {
    pub(crate) fn sums(&self) -> u64 {
        1 + u64::from(self.promoted.is_some())
    }

    /// The tile of a warpgroup, in a kernel whose schedule says how many blocks and warpgroups there are.
    pub(crate) fn plan(&self, k: &Kernel) -> Result<Tiled, NoTile> {
        let (bm, bn, depth) = self.block;
        if let Some(most) = self.promoted.filter(|&most| depth > most) {
            return Err(NoTile::Deep { depth, most });
        }
        let sums = self.sums();
        let found = self.tile(sums, self.reduced);
        let (tile, swap) = found.ok_or(NoTile::Shape)?;
        let way = Way { swap, ..self.way };
        warpgroup::assembles(k, (bm, bn), tile, way, self.acc)
            .map_err(|(wanted, has)| NoTile::Instruction { wanted, has })?;
        let registers = warpgroup::tiles_of(self.atom, (tile, depth), way, (self.acc, sums));
        let has_room = warpgroup::room(k, (bm, bn), tile).is_some_and(|room| registers + BESIDE <= room);
        Ok(Tiled { tile, way, sums, registers, has_room })
    }

    /// The tile, and whether the product is computed transposed, with so many registers for a sum.
    pub(crate) fn tile(&self, sums: u64, reduced: &[usize]) -> Option<((u64, u64), bool)> {
        warpgroup::tile(self.atom, self.scheduled, self.block, self.way, (self.acc, sums), reduced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_that_does_not_fit_says_why() {
        let warps = Owners::Warps { groups: 1 };
        assert_eq!(warps.fit((128, 128), (64, 32), 4, None), Ok(256));
        assert_eq!(Owners::Warps { groups: 2 }.fit((128, 128), (64, 32), 4, None), Ok(512));
        assert_eq!(warps.fit((128, 128), (48, 32), 4, None), Err(Unfit::Divides));
        assert_eq!(warps.fit((256, 256), (128, 128), 4, None), Err(Unfit::Registers(512)));
        assert_eq!(warps.fit((256, 256), (16, 16), 4, None), Err(Unfit::TooMany(8192)));
        assert_eq!(warps.fit((128, 128), (64, 32), 4, Some(128)), Err(Unfit::Threads(256)));
        // Three warpgroups share 192 rows; warps do not.
        assert_eq!(Owners::Warpgroups.fit((192, 128), (64, 128), 4, None), Ok(384));
        assert_eq!(warps.fit((192, 128), (64, 128), 4, None), Err(Unfit::Divides));
    }
}

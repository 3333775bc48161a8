//! Tiles of a product that a warp or a warpgroup can compute, and the thread count that results.
//!
//! Nothing here looks at the statements of a kernel: `select-mma` requests its products, and `choose` for candidates, whose extents are numbers before they
//! are in any text.

use crate::analysis::wgmma::{ROWS, is_rows};
use crate::refused::Refused;
use crate::registers::beside::ADDRESSES;
use crate::select_mma::atoms::{accumulator_registers, divides};
use crate::select_mma::warpgroup::{self, Way};
use tilec_ir::atoms::Atom;
use tilec_ir::bits::Bits;
use tilec_ir::kernel::Kernel;
use tilec_ir::roles::PRODUCER_WARPS;
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

    /// The threads of a block with such tiles of an accumulator whose elements are of this size. `written`: those that the schedule says.
    pub(crate) fn fit(
        self,
        block: (u64, u64),
        tile: (u64, u64),
        acc: Bits,
        written: Option<u64>,
    ) -> Result<u64, Unfit> {
        let warpgroups = self == Owners::Warpgroups;
        if !divides(tile.0, block.0, warpgroups) || !divides(tile.1, block.1, warpgroups) {
            return Err(Unfit::Divides);
        }
        // A warpgroup computes its tile as a warp does, with four times the threads.
        let registers = accumulator_registers(tile.0, tile.1, acc) / if warpgroups { u64::from(WARPGROUP) } else { 1 };
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
    /// It is computed in no other way.
    pub(crate) fixed: bool,
    /// The instruction is written: whether it finds registers is up to who wrote it.
    pub(crate) written: bool,
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

/// That an instruction takes more registers than a thread starts with.
pub(crate) fn short_of(wanted: u64, has: u64) -> Refused {
    Refused::room(format!(
        "an instruction of so many columns takes {wanted} registers, and threads of so many warps start with {has}"
    ))
}

/// How warpgroups divide the products of a kernel.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) groups: u64,
    /// Products may be computed the other way round than they rather are.
    turned: bool,
    /// Of tiles that are reduced several warps have elements along what is reduced, and exchange them first (`assign-layouts`).
    pub(crate) exchanged: bool,
    /// Each has all rows, and a share of the columns: of few rows and many columns a thread would else have no registers for the sums. What is reduced along the
    /// columns all of them compute, so that nothing goes from one to the other.
    pub(crate) beside: bool,
}

/// Numbers of warpgroups that are tried, best first: two hide one another's waits and leave each most registers.
const GROUPS: [u64; 4] = [2, 3, 1, 4];

impl Shared {
    /// All ways, best first. One product is rather divided by another number of warpgroups than computed the other way round, since results are stored in pieces
    /// then. Of several, two warpgroups hide the waits between them, which is worth more: by their schedule two loops of 64x128 bytes take 609 and 319 clocks an
    /// iteration with two, 644 and 380 with one.
    pub(crate) fn all(several: bool) -> impl Iterator<Item = Shared> {
        let ways = move |exchanged| {
            let of = move |(turned, groups)| Shared { groups, turned, exchanged, beside: false };
            let turns = [false, true];
            let one = turns.into_iter().flat_map(|turned| GROUPS.map(|groups| (turned, groups)));
            let more = GROUPS.into_iter().flat_map(move |groups| turns.map(|turned| (turned, groups)));
            one.filter(move |_| !several).chain(more.filter(move |_| several)).map(of)
        };
        let beside = |&groups: &u64| groups > 1 && groups.is_power_of_two();
        let beside = GROUPS.into_iter().filter(beside).filter(move |_| several);
        let beside = beside.map(|groups| Shared { groups, turned: false, exchanged: false, beside: true });
        [false, true].into_iter().flat_map(ways).chain(beside)
    }

    /// Of how many warpgroups each part of a product is, of which each computes `tile`.
    pub(crate) fn repeats(&self, (bm, bn): (u64, u64), (wm, wn): (u64, u64)) -> u64 {
        self.groups / (bm / wm * (bn / wn)).max(1)
    }
}

impl Tiled {
    /// Whether a thread has registers for these, and those for addresses beside them.
    pub(crate) fn has_room(&self, k: &Kernel, block: (u64, u64)) -> bool {
        warpgroup::room(k, block, self.tile).is_some_and(|room| self.registers + ADDRESSES <= room)
    }
}

impl Wanted<'_> {
    pub(crate) fn sums(&self) -> u64 {
        1 + u64::from(self.promoted.is_some())
    }

    /// The tile of a warpgroup, in a kernel whose schedule says how many blocks there are.
    pub(crate) fn plan(&self, k: &Kernel) -> Result<Tiled, NoTile> {
        let mut why = NoTile::Shape;
        for shared in Shared::all(false) {
            match self.tiled(k, shared) {
                Ok(tiled) => return Ok(tiled),
                Err(NoTile::Shape) => {}
                Err(other) if why == NoTile::Shape => why = other,
                Err(_) => {}
            }
        }
        Err(why)
    }

    /// The same where warpgroups share all products in this way.
    pub(crate) fn tiled(&self, k: &Kernel, shared: Shared) -> Result<Tiled, NoTile> {
        let depth = self.block.2;
        if let Some(most) = self.promoted.filter(|&most| depth > most) {
            return Err(NoTile::Deep { depth, most });
        }
        let way = self.way(shared).ok_or(NoTile::Shape)?;
        let tile = self.tile(shared, way.swap).expect("what fits is a tile");
        if let (Err((wanted, has)), false) = (warpgroup::assembles(k, shared.groups, tile, way, self.acc), self.written)
        {
            return Err(NoTile::Instruction { wanted, has });
        }
        let sums = self.sums();
        Ok(Tiled { tile, way, sums, registers: warpgroup::tiles_of(self.atom, (tile, depth), way, (self.acc, sums)) })
    }

    /// Whether warpgroups can compute it, were there registers for the instruction.
    pub(crate) fn is_possible(&self) -> bool {
        Shared::all(false).any(|shared| self.way(shared).is_some())
    }

    /// How it is computed where warpgroups share all products in this way; `None`: they cannot.
    fn way(&self, shared: Shared) -> Option<Way> {
        let ways =
            [Some(self.way.swap), (shared.turned && !self.fixed && !self.way.registers).then_some(!self.way.swap)];
        let fits = |&swap: &bool| self.fits(shared, swap, if shared.exchanged { &[] } else { self.reduced });
        ways.into_iter().flatten().find(fits).map(|swap| Way { swap, ..self.way })
    }

    /// What each warpgroup computes: as scheduled, else a share of the instruction's rows, or of its columns; `None`: they do not share it out.
    fn tile(&self, shared: Shared, swap: bool) -> Option<(u64, u64)> {
        let ((bm, bn, _), groups) = (self.block, shared.groups);
        let all = shared.beside && !self.reduced.is_empty();
        let share = match swap ^ shared.beside {
            _ if all => (bm, bn),
            true => (bm, bn / groups),
            false => (bm / groups, bn),
        };
        let tile = self.scheduled.unwrap_or(share);
        let divides = tile.0 > 0 && tile.1 > 0 && bm.is_multiple_of(tile.0) && bn.is_multiple_of(tile.1);
        (divides && bm / tile.0 * (bn / tile.1) == if all { 1 } else { groups }).then_some(tile)
    }

    /// Whether so many warpgroups compute it, each its tile: an instruction has 64 rows, and a thread registers for sums, and for an operand that comes from them.
    /// `reduced`: dimensions along which a warp has all elements, those of a row of the instruction.
    fn fits(&self, shared: Shared, swap: bool, reduced: &[usize]) -> bool {
        let (bm, bn, depth) = self.block;
        let Some((wm, wn)) = self.tile(shared, swap) else { return false };
        let whole_rows = reduced.iter().all(|&d| d == usize::from(!swap));
        let (rows, cols) = if swap { (bn, bm) } else { (bm, bn) };
        let (own_rows, own_cols) = if swap { (wn, wm) } else { (wm, wn) };
        // Columns of other than a power of two are those of one warpgroup, and so are all columns where rows are no power of two.
        let odd = !rows.is_power_of_two();
        let whole =
            (own_cols == cols || reduced.is_empty() && cols.is_power_of_two() && !odd) && (!odd || own_rows == ROWS);
        let steps = depth.is_multiple_of(1 << self.atom.row().log2_shape.2);
        // Those that fill the slots need a place in the block, too.
        let place = shared.groups * u64::from(WARPGROUP) <= u64::from(MAX_THREADS / WARP - PRODUCER_WARPS);
        let way = Way { swap, ..self.way };
        let registers = warpgroup::tiles_of(self.atom, ((wm, wn), depth), way, (self.acc, self.sums()));
        whole_rows && whole && steps && place && is_rows(rows) && warpgroup::works(self.atom, (wm, wn), swap, registers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_that_does_not_fit_says_why() {
        let warps = Owners::Warps { groups: 1 };
        assert_eq!(warps.fit((128, 128), (64, 32), Bits::new(32), None), Ok(256));
        assert_eq!(Owners::Warps { groups: 2 }.fit((128, 128), (64, 32), Bits::new(32), None), Ok(512));
        assert_eq!(warps.fit((128, 128), (48, 32), Bits::new(32), None), Err(Unfit::Divides));
        assert_eq!(warps.fit((256, 256), (128, 128), Bits::new(32), None), Err(Unfit::Registers(512)));
        assert_eq!(warps.fit((256, 256), (16, 16), Bits::new(32), None), Err(Unfit::TooMany(8192)));
        assert_eq!(warps.fit((128, 128), (64, 32), Bits::new(32), Some(128)), Err(Unfit::Threads(256)));
        // Three warpgroups share 192 rows; warps do not.
        assert_eq!(Owners::Warpgroups.fit((192, 128), (64, 128), Bits::new(32), None), Ok(384));
        assert_eq!(warps.fit((192, 128), (64, 128), Bits::new(32), None), Err(Unfit::Divides));
    }
}

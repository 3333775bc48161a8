//! Tiles of a product that a warp or a warpgroup can compute, and the resulting thread count.
//!
//! This file does not use the statements of a kernel: `select-mma` calls it for products, and `choose` for candidates,
//! whose extents are plain numbers.

use crate::analysis::wgmma::{ROWS, is_rows};
use crate::refusal::Refused;
use crate::registers::overhead::ADDRESSES;
use crate::select_mma::atoms::{accumulator_registers, divides};
use crate::select_mma::warpgroup::{self, WgmmaForm};
use tilec_ir::atoms::Atom;
use tilec_ir::bits::Bits;
use tilec_ir::kernel::Kernel;
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_THREAD, WARP, WARPGROUP};
use tilec_ir::types::Elem;

/// The unit that owns a tile: a warp in each of several groups that share the reduction, or a warpgroup.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Owners {
    Warps { groups: u64 },
    Warpgroups,
}

/// Why a warp tile is not possible.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TileMisfit {
    /// The tile does not divide the accumulator.
    Divides,
    /// The accumulator needs this number of registers, more than a thread has.
    Registers(u64),
    /// The tiles need this number of threads, more than a block has.
    TooMany(u64),
    /// The tiles need this number of threads, but another one is written.
    Threads(u64),
}

impl Owners {
    /// The threads of a block for an accumulator with tiles of `tile`.
    pub(crate) fn threads(self, (bm, bn): (u64, u64), (wm, wn): (u64, u64)) -> u64 {
        let tiles = (bm / wm.max(1)).saturating_mul(bn / wn.max(1));
        tiles.saturating_mul(match self {
            Owners::Warps { groups } => groups.saturating_mul(u64::from(WARP)),
            Owners::Warpgroups => u64::from(WARP * WARPGROUP),
        })
    }

    /// The threads of a block for an accumulator with this element size. `written`: the scheduled thread count.
    pub(crate) fn fit(
        self,
        block: (u64, u64),
        tile: (u64, u64),
        acc: Bits,
        written: Option<u64>,
    ) -> Result<u64, TileMisfit> {
        let warpgroups = self == Owners::Warpgroups;
        if !divides(tile.0, block.0, warpgroups) || !divides(tile.1, block.1, warpgroups) {
            return Err(TileMisfit::Divides);
        }
        // A warpgroup computes its tile like a warp, with four times the threads.
        let registers = accumulator_registers(tile.0, tile.1, acc) / if warpgroups { u64::from(WARPGROUP) } else { 1 };
        if registers > u64::from(REGISTERS_PER_THREAD) {
            return Err(TileMisfit::Registers(registers));
        }
        match self.threads(block, tile) {
            needed if needed > u64::from(MAX_THREADS) => Err(TileMisfit::TooMany(needed)),
            needed if written.is_some_and(|threads| threads != needed) => Err(TileMisfit::Threads(needed)),
            needed => Ok(needed),
        }
    }
}

/// A wgmma product to be divided.
#[derive(Copy, Clone, Debug)]
pub(crate) struct WgmmaQuery<'a> {
    pub(crate) atom: Atom,
    /// The preferred way: transposed or not.
    pub(crate) form: WgmmaForm,
    /// Whether no other way is possible.
    pub(crate) fixed: bool,
    /// Whether the instruction is written: then registers are the author's responsibility.
    pub(crate) written: bool,
    /// Rows, columns and depth.
    pub(crate) block: (u64, u64, u64),
    /// The type of the sums.
    pub(crate) acc: Elem,
    /// The warp tile of the schedule.
    pub(crate) scheduled: Option<(u64, u64)>,
    /// The depth after which sums are promoted.
    pub(crate) promoted: Option<u64>,
    /// Dimensions along which tiles with the accumulator's shape are reduced.
    pub(crate) reduced: &'a [usize],
}

/// The division of a wgmma product.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Tiled {
    /// Rows and columns of a warpgroup's tile.
    pub(crate) tile: (u64, u64),
    /// The final way: transposed or not.
    pub(crate) form: WgmmaForm,
    /// Registers for each sum: two if partial sums are promoted.
    pub(crate) sums: u64,
    /// Registers of a thread for sums, and for an operand in registers.
    pub(crate) registers: u64,
}

/// Why warpgroups cannot compute a product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoTile {
    /// A tile of the reduction is deeper than promotion allows.
    Deep { depth: u64, most: u64 },
    /// The instruction does not support such tiles.
    Shape,
    /// The instruction needs more registers than a thread has at the start.
    Instruction { wanted: u64, has: u64 },
}

/// The message that an instruction needs more registers than a thread has at the start.
pub(crate) fn short_of(wanted: u64, has: u64) -> Refused {
    Refused::room(format!(
        "an instruction of so many columns takes {wanted} registers, and threads of so many warps start with {has}"
    ))
}

/// How warpgroups divide the products of a kernel.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) groups: u64,
    /// Whether products may be computed in the way that they do not prefer.
    turned: bool,
    /// Whether several warps may have elements along reduced dimensions, and exchange them first (`assign-layouts`).
    pub(crate) exchanged: bool,
    /// Whether each warpgroup has all rows and a share of the columns: with few rows and many columns, a thread would
    /// otherwise lack registers for the sums. Parts that are reduced along the columns are computed by all of them, so
    /// that no data moves between warpgroups.
    pub(crate) beside: bool,
}

/// Numbers of warpgroups to try, best first: two hide each other's waits, and have the most registers each.
const GROUPS: [u64; 4] = [2, 3, 1, 4];

impl Shared {
    /// All ways, best first. A single product is preferably divided by another number of warpgroups than computed in
    /// the other way, because results are stored in pieces then. With several products, two warpgroups hide the waits
    /// between them, which is worth more: by their schedule, two loops of 64x128 bytes take 609 and 319 clocks an
    /// iteration with two warpgroups, 644 and 380 with one.
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

    /// The number of warpgroups that compute the same part of a product, with tiles of `tile`.
    pub(crate) fn repeats(&self, (bm, bn): (u64, u64), (wm, wn): (u64, u64)) -> u64 {
        self.groups / (bm / wm * (bn / wn)).max(1)
    }
}

impl Tiled {
    /// Whether a thread has registers for the tile and for addresses.
    pub(crate) fn has_room(&self, k: &Kernel, block: (u64, u64)) -> bool {
        warpgroup::room(k, block, self.tile).is_some_and(|room| self.registers + ADDRESSES <= room)
    }
}

impl WgmmaQuery<'_> {
    pub(crate) fn sums(&self) -> u64 {
        1 + u64::from(self.promoted.is_some())
    }

    /// The tile of a warpgroup, in a kernel whose schedule gives the number of resident blocks.
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

    /// [`Self::plan`] for a given division.
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
        Ok(Tiled {
            tile,
            form: way,
            sums,
            registers: warpgroup::tiles_of(self.atom, (tile, depth), way, (self.acc, sums)),
        })
    }

    /// Whether warpgroups could compute it with unlimited registers.
    pub(crate) fn is_possible(&self) -> bool {
        Shared::all(false).any(|shared| self.way(shared).is_some())
    }

    /// The way of computing it in this division; `None`: impossible.
    fn way(&self, shared: Shared) -> Option<WgmmaForm> {
        let ways =
            [Some(self.form.swap), (shared.turned && !self.fixed && !self.form.registers).then_some(!self.form.swap)];
        let fits = |&swap: &bool| self.fits(shared, swap, if shared.exchanged { &[] } else { self.reduced });
        ways.into_iter().flatten().find(fits).map(|swap| WgmmaForm { swap, ..self.form })
    }

    /// The tile of each warpgroup: as scheduled, else a share of the instruction's rows or columns; `None`: they cannot
    /// divide it.
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

    /// Whether this number of warpgroups can compute it: an instruction has 64 rows, and a thread needs registers for
    /// sums and for an operand in registers. `reduced`: dimensions along which a warp must have all elements of an
    /// instruction's row.
    fn fits(&self, shared: Shared, swap: bool, reduced: &[usize]) -> bool {
        let (bm, bn, depth) = self.block;
        let Some((wm, wn)) = self.tile(shared, swap) else { return false };
        let whole_rows = reduced.iter().all(|&d| d == usize::from(!swap));
        let (rows, cols) = if swap { (bn, bm) } else { (bm, bn) };
        let (own_rows, own_cols) = if swap { (wn, wm) } else { (wm, wn) };
        // If the columns are no power of two, one warpgroup has all of them; the same holds if rows are no power of
        // two.
        let odd = !rows.is_power_of_two();
        let whole =
            (own_cols == cols || reduced.is_empty() && cols.is_power_of_two() && !odd) && (!odd || own_rows == ROWS);
        let steps = depth.is_multiple_of(1 << self.atom.row().log2_shape.2);
        // Producer warps need a place in the block, too.
        let place = shared.groups * u64::from(WARPGROUP) <= u64::from(MAX_THREADS / WARP - PRODUCER_WARPS);
        let way = WgmmaForm { swap, ..self.form };
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
        assert_eq!(warps.fit((128, 128), (48, 32), Bits::new(32), None), Err(TileMisfit::Divides));
        assert_eq!(warps.fit((256, 256), (128, 128), Bits::new(32), None), Err(TileMisfit::Registers(512)));
        assert_eq!(warps.fit((256, 256), (16, 16), Bits::new(32), None), Err(TileMisfit::TooMany(8192)));
        assert_eq!(warps.fit((128, 128), (64, 32), Bits::new(32), Some(128)), Err(TileMisfit::Threads(256)));
        // Three warpgroups can divide 192 rows; warps cannot.
        assert_eq!(Owners::Warpgroups.fit((192, 128), (64, 128), Bits::new(32), None), Ok(384));
        assert_eq!(warps.fit((192, 128), (64, 128), Bits::new(32), None), Err(TileMisfit::Divides));
    }
}

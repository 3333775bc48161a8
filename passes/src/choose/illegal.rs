//! Reasons why a candidate is not legal.

use crate::select_mma::tiles::TileMisfit;

/// A rule that a candidate violates.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Illegal {
    /// An extent is not a power of two, or not known.
    Extent,
    /// A precondition does not hold.
    Precondition,
    /// The warp tile does not divide the block's.
    WarpTile,
    /// Too many threads, too few, or not the number in the schedule.
    Threads,
    /// There is no instruction for the types and the warp tile.
    Atom,
    /// A tile is deeper along the reduction than sums may be before promotion.
    Promotion,
    /// Too many registers.
    Registers,
    /// Too many stages or none.
    Stages,
    /// Too much shared memory.
    SharedMemory,
}

impl Illegal {
    /// In words.
    pub(super) fn why(self) -> &'static str {
        match self {
            Illegal::Extent => {
                "the model knows tiles of powers of two with at most 2^20 elements, and an extent here is another number, or not known at compile time \
                 (with `wgmma`, columns may be any multiple of 8, and an operand that is contiguous along the reduction has at most 128 bytes of it)"
            }
            Illegal::Precondition => "a condition of `where` does not hold with these sizes and parameters",
            Illegal::WarpTile => {
                "`warp_tile` does not divide the tile of the result; with `ping_pong` it has to be all of that tile"
            }
            Illegal::Threads => {
                "this number of threads is not possible: a block has a power of two of them, 32 to 1024, or three warpgroups with `wgmma`, and as many as the schedule says"
            }
            Illegal::Atom => "the target has no instruction for the element types of the product and this warp tile",
            Illegal::Promotion => "a tile is deeper along the reduction than `promote` lets sums become",
            Illegal::Registers => {
                "by an estimate from types and extents, the tiles of a thread need more registers than it has"
            }
            Illegal::Stages => "`stages` is less than 1 or more than 16",
            Illegal::SharedMemory => "the tiles need more shared memory than a block has",
        }
    }
}

impl From<TileMisfit> for Illegal {
    fn from(why: TileMisfit) -> Illegal {
        match why {
            TileMisfit::Divides => Illegal::WarpTile,
            TileMisfit::Registers(_) => Illegal::Registers,
            TileMisfit::TooMany(_) | TileMisfit::Threads(_) => Illegal::Threads,
        }
    }
}

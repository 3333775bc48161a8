//! Why a candidate is not legal.

use crate::select_mma::tiles::Unfit;

/// Why a candidate is not legal.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Illegal {
    /// An extent is not a power of two, or not known.
    Extent,
    /// A precondition does not hold.
    Precondition,
    /// The warp tile does not divide the block's.
    WarpTile,
    /// Too many threads, too few, or others than the schedule says.
    Threads,
    /// No instruction takes the types and the warp tile.
    Atom,
    /// A tile of the reduction is deeper than sums may get before they are added to the accumulator.
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
                "an extent of a tile is not a power of two (columns of wgmma products: no multiple of 16, or their operand is more than 128 \
                 bytes deep along the reduction, in which it is contiguous), or a tile has more than 2^20 elements"
            }
            Illegal::Precondition => "a precondition of the kernel does not hold",
            Illegal::WarpTile => {
                "the warp tile does not divide the tile of the block, or is not all of it (`ping_pong`)"
            }
            Illegal::Threads => {
                "a block has 32 to 1024 threads, a power of two or three warpgroups that multiply, and as many as the schedule says"
            }
            Illegal::Atom => "no instruction of the target takes these types and this warp tile",
            Illegal::Promotion => "a tile of the reduction is deeper than its sums may get (`promote`)",
            Illegal::Registers => "the tiles of a thread exceed its registers",
            Illegal::Stages => "a pipeline has 1 to 16 stages",
            Illegal::SharedMemory => "the tiles exceed the shared memory of a block",
        }
    }
}

impl From<Unfit> for Illegal {
    fn from(why: Unfit) -> Illegal {
        match why {
            Unfit::Divides => Illegal::WarpTile,
            Unfit::Registers(_) => Illegal::Registers,
            Unfit::TooMany(_) | Unfit::Threads(_) => Illegal::Threads,
        }
    }
}

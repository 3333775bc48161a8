//! Bulk copies as decoded.

use crate::program::operand::{Addr, Area, AtomOp};
use crate::program::types::{R, Ty};

/// The side of a copy that is not the shared memory it names first.
#[derive(Clone, Debug)]
pub(crate) enum Extent {
    /// A box of a tensor: its map, and where it begins; in im2col mode, offsets of all its pixels.
    Tensor { map: Addr, at: Vec<R>, offsets: Option<Vec<R>> },
    /// So many bytes: of global memory, or of the block's own shared memory where the other side is another block's.
    Bytes { at: Addr, n: R },
}

/// Which way a copy goes.
#[derive(Clone, Debug)]
pub(crate) enum Direction {
    /// To shared memory, of all the blocks in a mask if there is one.
    Load {
        barrier: Addr,
        mask: Option<R>,
    },
    Store,
    /// The type is that of the map, if it is not given.
    Reduce {
        op: AtomOp,
        ty: Option<Ty>,
    },
    /// From the block's shared memory to that of another block, where it is perhaps combined with what is there.
    Between {
        barrier: Addr,
        reduce: Option<(AtomOp, Ty)>,
    },
    Prefetch,
}

/// A bulk copy.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    pub(crate) direction: Direction,
    pub(crate) global: Extent,
    pub(crate) shared: Addr,
}

/// Such a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) area: Area,
    pub(crate) to: Addr,
    pub(crate) barrier: Addr,
    /// Bytes of an element.
    pub(crate) size: u8,
    pub(crate) n: u8,
    pub(crate) wide: bool,
    pub(crate) regs: [R; 4],
    pub(crate) reduce: Option<(AtomOp, Ty)>,
}

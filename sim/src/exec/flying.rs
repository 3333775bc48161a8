//! Copies of the bulk engine that are on their way.

use crate::numerics::half::Half;
use crate::program::Atom;
use crate::race::Who;
use std::rc::Rc;

/// Up to 16 bytes that lie together on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) shared: u32,
    /// Of the first of the 16 bytes, be it inside or not.
    pub(crate) global: u64,
    /// Bytes inside the tensor.
    pub(crate) from: u8,
    pub(crate) to: u8,
}

/// What a copy moves.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) pieces: Vec<Piece>,
    /// The 16 bytes of a place outside.
    pub(crate) fill: [u8; 16],
    /// First byte and number of bytes in shared memory.
    pub(crate) span: (u32, u32),
    /// Bytes within which the swizzle stays, where rows are shorter than its pattern.
    pub(crate) reach: u64,
    pub(crate) element: Option<crate::tensor_map::TensorElement>,
    /// The pieces come from shared memory.
    pub(crate) from_shared: bool,
    /// Bytes of shared memory that a piece fills.
    pub(crate) width: u8,
}

/// A load on its way.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) who: Who,
    pub(crate) agent: usize,
    /// Its mbarrier.
    pub(crate) object: u32,
    pub(crate) plan: Rc<Plan>,
    /// How far the destination is after that of the plan: in another block.
    pub(crate) shift: u32,
    pub(crate) data: Option<Rc<Vec<[u8; 16]>>>,
    /// Clock of the engine that reads the source.
    pub(crate) clock: u32,
    /// What is done with the elements that are there.
    pub(crate) reduce: Option<Reduce>,
}

/// The stores of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stores {
    pub(crate) flying: Vec<Store>,
    /// Groups each lane has committed.
    pub(crate) groups: [u32; 32],
}

/// A store on its way.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) who: Who,
    pub(crate) group: u32,
    pub(crate) plan: std::rc::Rc<Plan>,
    pub(crate) reduce: Option<Reduce>,
    /// What it has read.
    pub(crate) data: Option<Vec<[u8; 16]>>,
    /// Whether it has been waited for until it had read.
    pub(crate) read: bool,
    /// Whether it has written.
    pub(crate) written: bool,
    /// Clocks of the agents that read and write.
    pub(crate) clocks: [u32; 2],
}

/// What a reduction does with elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduce {
    pub(crate) atom: Atom,
    /// Minimum or maximum of these floats.
    pub(crate) half: Option<Half>,
}

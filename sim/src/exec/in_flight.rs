//! Bulk copies in flight.

use crate::numerics::half::Half;
use crate::program::Atom;
use crate::race::Issuer;
use std::rc::Rc;

/// Up to 16 bytes that are contiguous on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) shared: u32,
    /// The address of the first of the 16 bytes, even if it is outside.
    pub(crate) global: u64,
    /// Bytes inside the tensor.
    pub(crate) from: u8,
    pub(crate) to: u8,
}

/// What a copy moves.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) pieces: Vec<Piece>,
    /// The 16 bytes that elements outside read as.
    pub(crate) fill: [u8; 16],
    /// First byte and number of bytes in shared memory.
    pub(crate) span: (u32, u32),
    /// Size in bytes of the region that the swizzle permutes, if rows are shorter than its pattern.
    pub(crate) reach: u64,
    pub(crate) element: Option<crate::tensor_map::TensorElement>,
    /// Whether the pieces come from shared memory.
    pub(crate) from_shared: bool,
    /// Bytes of shared memory that a piece writes.
    pub(crate) width: u8,
}

/// A load on its way.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) issuer: Issuer,
    pub(crate) agent: usize,
    /// Its mbarrier.
    pub(crate) object: u32,
    pub(crate) plan: Rc<Plan>,
    /// Distance from the plan's destination to this block's.
    pub(crate) shift: u32,
    pub(crate) data: Option<Rc<Vec<[u8; 16]>>>,
    /// Clock of the engine that reads the source.
    pub(crate) clock: u32,
    /// The reduction with the old elements, if any.
    pub(crate) reduce: Option<Reduce>,
}

/// The stores of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stores {
    pub(crate) flying: Vec<Store>,
    /// Number of groups that each lane has committed.
    pub(crate) groups: [u32; 32],
}

/// A store on its way.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) issuer: Issuer,
    pub(crate) group: u32,
    pub(crate) plan: std::rc::Rc<Plan>,
    pub(crate) reduce: Option<Reduce>,
    /// What it has read.
    pub(crate) data: Option<Vec<[u8; 16]>>,
    /// Whether a thread has waited until it had read.
    pub(crate) read: bool,
    /// Whether it has written.
    pub(crate) written: bool,
    /// Clocks of the reading and the writing agent.
    pub(crate) clocks: [u32; 2],
}

/// What a reduction does with elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduce {
    pub(crate) atom: Atom,
    /// Minimum or maximum of 16-bit floats.
    pub(crate) half: Option<Half>,
}

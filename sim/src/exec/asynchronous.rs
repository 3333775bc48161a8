//! Copies that run beside their warp: `cp.async` and its groups (PTX 9.7.9.25).
//!
//! The place for oracle B: a copy is a row in its lane's queue until something makes it land. Which of the legal moments that
//! is, is the mode of the launch.

/// When asynchronous copies read and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Landing {
    /// At issue.
    #[default]
    Early,
    /// When the program waits for them, or at the end.
    Late,
}

/// One copy in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) lane: u8,
    /// Group of its lane, counted from zero.
    pub(crate) group: u32,
    pub(crate) pc: u32,
    pub(crate) dst: u64,
    pub(crate) bytes: [u32; 4],
    pub(crate) size: u8,
}

/// The copies of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) flying: Vec<Copy>,
    /// Groups each lane has committed.
    pub(crate) groups: [u32; 32],
}

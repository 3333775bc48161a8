//! Fast paths that a program has not taken, as data; a remark has the same as text.

use crate::entities::Stmt;

/// A faster way to do something, which the target has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FastPath {
    /// wgmma products, for those of warps.
    Wgmma,
    /// Loads of a loop run ahead of the iteration that reads what they bring.
    Ahead,
    /// Asynchronous copies of a loop's tiles, for those through registers.
    Asynchronous,
    /// Accesses of 16 bytes, instead of narrower ones or ones that are shifted into place.
    Wide,
    /// Results that TMA stores while the next are summed, for those that threads store.
    StagedStores,
    /// TMA loads, for copies by the threads of producer warps.
    TensorLoads,
    /// Copies by producer warps, for those of the threads that multiply.
    Producer,
    /// A layout of shared memory without bank conflicts.
    Banks,
    /// Statements of a loop in the order that hides most, for that of the text.
    Overlap,
}

/// A fast path that is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissedPath {
    /// What is lost.
    pub path: FastPath,
    /// The statements that take longer for it: products, a loop, copies.
    pub at: Vec<Stmt>,
    /// Shared memory is too small for it: smaller tiles would leave room.
    pub room: bool,
    /// A precondition is missing: that rows of tensors are multiples of 16 bytes.
    pub rows: bool,
    /// Nanoseconds that a launch takes longer for it, as far as they are predicted.
    pub nanoseconds: Option<u64>,
}

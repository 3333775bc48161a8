//! Accesses, and two of them that conflict.

/// The other side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Whether it wrote.
    pub(crate) wrote: bool,
    /// Whether it is an asynchronous copy.
    pub(crate) copy: bool,
    /// Not unordered: one of the two takes the bytes for constants.
    pub(crate) constant: bool,
    /// Bytes from the start of the access at hand to the first that both touch.
    pub(crate) byte: usize,
}

impl Conflict {
    /// The same, found so many bytes after the start of the access.
    pub(crate) fn behind(self, bytes: usize) -> Conflict {
        Conflict { byte: self.byte + bytes, ..self }
    }
}

/// Whether an access is part of the memory model's communication (PTX ISA 8.4, 8.6): atomic, volatile, relaxed or ordered. Two
/// such accesses are no race if the scope of each has the other's thread in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    #[default]
    Weak,
    /// Towards threads of the block.
    Block,
    /// Towards all threads.
    Wide,
}

impl Strength {
    #[inline(always)]
    pub(crate) fn is_strong(self) -> bool {
        self != Strength::Weak
    }
}

/// Who accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Number of the dynamic instruction.
    pub(crate) seq: u32,
    /// Strong accesses are never in a race with their like.
    pub(crate) strength: Strength,
    /// An asynchronous copy, on behalf of this thread.
    pub(crate) copy: bool,
}

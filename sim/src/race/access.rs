//! Memory accesses and conflicts between two of them.

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
    /// The accesses are ordered, but one of the two treats the bytes as constants.
    pub(crate) constant: bool,
    /// Offset in bytes from the start of the checked access to the first byte that both touch.
    pub(crate) byte: usize,
}

impl Conflict {
    /// The same conflict, with an offset that is `bytes` larger.
    pub(crate) fn behind(self, bytes: usize) -> Conflict {
        Conflict { byte: self.byte + bytes, ..self }
    }
}

/// Whether an access is strong in the memory model (PTX ISA 8.4, 8.6): atomic, volatile, relaxed or ordered. Two strong
/// accesses do not race if the scope of each includes the other's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    #[default]
    Weak,
    /// Strong with respect to the threads of the block.
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
pub(crate) struct Issuer {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Number of the dynamic instruction.
    pub(crate) seq: u32,
    /// Two strong accesses never race.
    pub(crate) strength: Strength,
    /// An asynchronous copy, on behalf of this thread.
    pub(crate) copy: bool,
}

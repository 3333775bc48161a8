//! What an instruction leaves: where its warp goes on.

/// What becomes of the fragment after an instruction.
pub(crate) enum Next {
    Advance,
    /// It stopped, split or ended; whoever did so has set the program counter.
    Stop,
}

//! The result of an instruction: how its fragment continues.

/// How the fragment continues after an instruction.
pub(crate) enum Next {
    Advance,
    /// It stopped, split or ended, and its program counter is already set.
    Stop,
}

//! An input.

use crate::problem::Run;
use tilec::CompileOptions;

/// A program and what to do with it.
#[derive(Clone)]
pub(super) struct Input {
    pub(super) text: String,
    pub(super) options: CompileOptions,
    /// The sizes to interpret it with.
    pub(super) run: Run,
    /// It was made to compile.
    pub(super) meant: bool,
    /// What compiles is run as far as it means something, whatever it means.
    pub(super) tried: bool,
}

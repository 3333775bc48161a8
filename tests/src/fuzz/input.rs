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
    /// If the program compiles, it is run as far as it has a meaning.
    pub(super) tried: bool,
}

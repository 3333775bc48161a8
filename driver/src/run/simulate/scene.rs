//! The context of a simulator report: kernel, launch, source.

use crate::compile::report_json::Tile;
use crate::console::render::SourceFile;
use crate::contract::Contract;
use crate::run::program::BoundProgram;

/// What diagnostics may refer to besides the PTX.
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// What carets point into: the tile program, or the PTX itself where there is none.
    pub source: &'a SourceFile,
    /// Whether that is the PTX.
    pub is_ptx: bool,
    /// What the compiler put where in shared memory, for each launch; empty if unknown.
    pub tiles: Vec<&'a [Tile]>,
}

/// Everything that a diagnostic is made from.
pub(super) struct Scene<'a> {
    pub(super) origin: &'a Origin<'a>,
    /// The launch: which, and how.
    pub(super) at: usize,
    pub(super) contract: &'a Contract,
    pub(super) ptx: &'a str,
    pub(super) bound: &'a BoundProgram,
}

//! The context of a simulator report: kernel, launch, source.

use crate::compile::report_json::Tile;
use crate::console::render::SourceFile;
use crate::contract::Contract;
use crate::run::program::BoundProgram;

/// Sources for diagnostics besides the PTX.
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// The text that spans refer to: the tile program, or the PTX itself if there is none.
    pub source: &'a SourceFile,
    /// Whether that is the PTX.
    pub is_ptx: bool,
    /// The positions of tiles in shared memory, for each launch; empty if unknown.
    pub tiles: Vec<&'a [Tile]>,
}

/// Everything that a diagnostic is made from.
pub(super) struct ReportContext<'a> {
    pub(super) origin: &'a Origin<'a>,
    /// The launch: which, and how.
    pub(super) at: usize,
    pub(super) contract: &'a Contract,
    pub(super) ptx: &'a str,
    pub(super) bound: &'a BoundProgram,
}

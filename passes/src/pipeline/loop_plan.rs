//! The decisions about a loop: the buffers that its copies fill, the slices of its products, and the resulting loop.

use crate::refusal::Refused;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::CopyAttrs;

/// A copy to a buffer, from global memory or from an elementwise expression of it.
#[derive(Clone)]
pub(crate) struct Fill {
    pub(super) buffer: Value,
    /// The window of global memory.
    pub(super) src: Expr,
    /// The expression, with the window in it.
    pub(super) computed: Option<Expr>,
    pub(super) attrs: CopyAttrs,
    pub(super) span: Span,
    /// Whether it goes directly from global to shared memory (`cp.async`), not through registers.
    pub(super) direct: bool,
    /// Why it goes through registers although the target has `cp.async`.
    pub(super) refused: Option<Refused>,
}

/// A slice of the reduction: fragment loads, then their uses.
pub(crate) struct Slice {
    pub(super) loads: Vec<Stmt>,
    pub(super) products: Vec<Stmt>,
}

/// The input of `apply`.
pub(crate) struct Plan {
    pub(super) at: Stmt,
    pub(super) place: (Block, usize),
    pub(super) stages: u64,
    pub(super) fills: Vec<Fill>,
    pub(super) slices: Vec<Slice>,
    /// The statements of a loop with other statements than copies and products; it has no slices.
    pub(super) rest: Vec<Stmt>,
    /// Register tiles that the slices load, to be double-buffered.
    pub(super) fragments: Vec<Value>,
    pub(super) double_buffered: bool,
    pub(super) bytes: u64,
}

impl Plan {
    /// Whether some fill is asynchronous.
    pub(super) fn direct(&self) -> bool {
        self.fills.iter().any(|f| f.direct)
    }

    /// Whether tiles are loaded further ahead than to the end of the loading iteration. Then no products are computed
    /// for tiles past the end, because other statements may not ignore zeros.
    pub(super) fn open(&self) -> bool {
        let ahead = |f: &Fill| f.direct || f.attrs.unaligned().is_some() || f.computed.is_some();
        !self.rest.is_empty() || self.fills.iter().any(ahead)
    }
}

//! The decisions about a loop: the buffers that its copies fill, the slices of its products, and the resulting loop.

use crate::refused::Refused;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::CopyAttrs;

/// A copy from global memory into a buffer, or of what is computed of it, element by element.
#[derive(Clone)]
pub(crate) struct Fill {
    pub(super) buffer: Value,
    /// The window of global memory.
    pub(super) src: Expr,
    /// What is computed of it, with the window in it.
    pub(super) computed: Option<Expr>,
    pub(super) attrs: CopyAttrs,
    pub(super) span: Span,
    /// It goes from global to shared memory directly (`cp.async`), not through registers.
    pub(super) direct: bool,
    /// Why it goes through registers on a target that has other copies.
    pub(super) refused: Option<Refused>,
}

/// A slice of the reduction: fragment loads, then what uses them.
pub(crate) struct Slice {
    pub(super) loads: Vec<Stmt>,
    pub(super) products: Vec<Stmt>,
}

/// What `apply` needs to know.
pub(crate) struct Plan {
    pub(super) at: Stmt,
    pub(super) place: (Block, usize),
    pub(super) stages: u64,
    pub(super) fills: Vec<Fill>,
    pub(super) slices: Vec<Slice>,
    /// What a loop does that more than copies and multiplies; it has no slices then.
    pub(super) rest: Vec<Stmt>,
    /// Register tiles that the slices load, to be doubled.
    pub(super) fragments: Vec<Value>,
    pub(super) double_buffered: bool,
    pub(super) bytes: u64,
}

impl Plan {
    /// Whether some fill is asynchronous.
    pub(super) fn direct(&self) -> bool {
        self.fills.iter().any(|f| f.direct)
    }

    /// Whether tiles are fetched further ahead than to the end of the iteration that fetches them: then nothing multiplies those past the end. Of zeros something
    /// else may be computed.
    pub(super) fn open(&self) -> bool {
        let ahead = |f: &Fill| f.direct || f.attrs.unaligned().is_some() || f.computed.is_some();
        !self.rest.is_empty() || self.fills.iter().any(ahead)
    }
}

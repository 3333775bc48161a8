//! wgmma instructions as decoded.

use crate::numerics::mma::WgmmaForm;
use crate::program::types::R;

/// Where a matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matrix {
    Registers([R; 4]),
    /// In shared memory, with the descriptor in a 64-bit slot; `across`: contiguous elements do not run along K.
    Shared {
        descriptor: R,
        across: bool,
    },
}

/// A product.
#[derive(Clone, Debug)]
pub(crate) struct Wgmma {
    pub(crate) form: WgmmaForm,
    pub(crate) d: Vec<R>,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    /// Whether A and B are negated.
    pub(crate) negate: [bool; 2],
    /// Slot of the predicate, and whether it is negated: if true, the product is added to the accumulator (scale-d).
    pub(crate) add: (R, bool),
}

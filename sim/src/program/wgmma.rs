//! wgmma products, as they are written.

use crate::numerics::mma::Wide;
use crate::program::types::R;

/// Where a matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matrix {
    Registers([R; 4]),
    /// In shared memory, as a 64-bit slot says; `across`: neighbours in memory are not those along K.
    Shared {
        descriptor: R,
        across: bool,
    },
}

/// A product.
#[derive(Clone, Debug)]
pub(crate) struct Wgmma {
    pub(crate) form: Wide,
    pub(crate) d: Vec<R>,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    /// Whether A and B change their sign.
    pub(crate) negate: [bool; 2],
    /// A predicate, and whether it is negated: the product is added to what is there.
    pub(crate) add: (R, bool),
}

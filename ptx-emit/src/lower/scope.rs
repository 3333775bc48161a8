//! What an expression is, and the distribution that it is computed in.

use super::dims::Dims;
use crate::inst::Class;
use tilec_ir::layout::RegLayout;

/// What an expression is, as far as evaluation cares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An exact integer.
    Index,
    /// A number, or numbers, computed in this class.
    Number(Class),
}

/// The distribution an expression is computed in.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
}

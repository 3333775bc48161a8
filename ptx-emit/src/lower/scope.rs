//! Kinds of expressions, and the layout in which an expression is computed.

use super::dims::Dims;
use crate::inst::Class;
use tilec_ir::layout::RegLayout;

/// The kind of an expression for its evaluation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An exact integer.
    Index,
    /// Numbers that are computed in this class.
    Number(Class),
}

/// The layout in which an expression is computed.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
}

impl Scope {
    /// Trailing zero bits of the thread's part of coordinates along an axis; with `own`, also of the registers' part.
    pub(super) fn zeros_along(&self, axis: usize, own: bool) -> u32 {
        let shift: u32 = self.dim_bits[..axis].iter().sum();
        let mask = (1u64 << self.dim_bits[axis]) - 1;
        let threads = (0..self.layout.thread_bits()).map(|i| self.layout.thread_col(i));
        let registers = (0..if own { self.layout.value_bits() } else { 0 }).map(|i| self.layout.value_col(i));
        let bits = threads.chain(registers).fold(0, |all, col| all | (col >> shift & mask));
        bits.trailing_zeros()
    }
}

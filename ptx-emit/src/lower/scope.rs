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

impl Scope {
    /// Low bits that are zero in what threads have of the coordinates along an axis; with `own` of registers, in all of them.
    pub(super) fn zeros_along(&self, axis: usize, own: bool) -> u32 {
        let shift: u32 = self.dim_bits[..axis].iter().sum();
        let mask = (1u64 << self.dim_bits[axis]) - 1;
        let threads = (0..self.layout.thread_bits()).map(|i| self.layout.thread_col(i));
        let registers = (0..if own { self.layout.value_bits() } else { 0 }).map(|i| self.layout.value_col(i));
        let bits = threads.chain(registers).fold(0, |all, col| all | (col >> shift & mask));
        bits.trailing_zeros()
    }
}

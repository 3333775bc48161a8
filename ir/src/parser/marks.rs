//! What a formatter wants to know of a text, beside its tokens.

use crate::diag::Span;

/// Where things are in a text that parses.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Where kernels, sequences, statements, and the lines of a combine begin, in order.
    pub(crate) starts: Vec<u32>,
    /// Where the bodies of kernels and statements open, in order.
    pub(crate) blocks: Vec<u32>,
    /// The texts of layouts.
    pub(crate) layouts: Vec<Span>,
}

impl Marks {
    /// Puts the lists in order.
    pub(super) fn sort(&mut self) {
        for list in [&mut self.starts, &mut self.blocks] {
            list.sort_unstable();
            list.dedup();
        }
    }
}

//! Information for a formatter and an editor on a text, besides its tokens.

use crate::diag::Span;
use crate::entities::Value;

/// Where things are in a text that parses.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Where kernels, sequences, statements, and the lines of a combine begin, in order.
    pub(crate) starts: Vec<u32>,
    /// Where the bodies of kernels and statements open, in order.
    pub(crate) blocks: Vec<u32>,
    /// The texts of layouts.
    pub(crate) layouts: Vec<Span>,
    /// The texts of the kernels, in the order of the module.
    pub(crate) kernels: Vec<Span>,
    /// Where names are declared, as they are read.
    pub(crate) declarations: Vec<Declaration>,
    /// Where names of blocks, by kernel, are no longer visible.
    pub(crate) ends: Vec<((usize, Value), u32)>,
    /// Where names are used.
    pub(crate) mentions: Vec<Mention>,
}

/// A name that is declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The number of its kernel in the module.
    pub kernel: usize,
    /// What it names there.
    pub value: Value,
    /// The name as it is written; that of the value may have a number after it.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    /// Where it is visible.
    pub visible: Span,
}

/// A name that is used.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mention {
    /// The number of the kernel in the module.
    pub kernel: usize,
    /// What is named there.
    pub value: Value,
    /// Where.
    pub span: Span,
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

//! Operands of a reduction, a scan or a sort of tuples ([`crate::combine`] explains it).

use crate::entities::{Expr, Value};

/// The operation on the tuples along a dimension.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// One for all of them; or one for each part, which the bits `parts` of an element's number tell apart.
    Reduce {
        /// 0: all are in one part.
        parts: u32,
    },
    /// At each place what the tuples up to there come to; those in front of it, if there is a [`Combine::front`].
    Scan {
        /// The highest bits of an element's number, which tell segments apart of which it is known what they come to ([`Combine::totals`]); 0: none.
        parts: u32,
    },
    /// All of them in order.
    Sort {
        /// The first of the comparisons that are made ([`crate::combine::exchanges`]), and the one after the last; `None`: all are.
        steps: Option<(u32, u32)>,
    },
}

impl How {
    /// Every way, as written.
    pub const ALL: [How; 3] = [How::Reduce { parts: 0 }, How::Scan { parts: 0 }, How::Sort { steps: None }];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            How::Reduce { .. } => "reduce",
            How::Scan { .. } => "scan",
            How::Sort { .. } => "sort",
        }
    }

    /// The operation that a keyword selects.
    pub fn from_word(word: &str) -> Option<How> {
        How::ALL.into_iter().find(|how| how.word() == word)
    }

    /// Whether every element keeps a tuple.
    pub fn keeps_extents(self) -> bool {
        !matches!(self, How::Reduce { .. })
    }

    /// The bits that tell parts of a reduction, or segments of a scan, apart.
    pub fn parts(self) -> u32 {
        match self {
            How::Reduce { parts } | How::Scan { parts } => parts,
            How::Sort { .. } => 0,
        }
    }
}

/// Tuples along a dimension, and what makes one of two of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Combine {
    /// The operation on them.
    pub operation: How,
    /// Along which dimension.
    pub axis: u32,
    /// The components of the tuples: tiles, and numbers that all elements have.
    pub args: Vec<Expr>,
    /// The components of what is in front of the first element, numbers, of an exclusive scan; none of others.
    pub front: Vec<Expr>,
    /// The components of what segments come to that are scanned, a tile each with an element for each segment; none where it is not known.
    pub totals: Vec<Expr>,
    /// The components of the first of two tuples ([`crate::kernel::ValueDef::Element`]).
    pub first: Vec<Value>,
    /// Those of the second.
    pub second: Vec<Value>,
    /// Names of what is computed of them ([`crate::kernel::ValueDef::Local`]), each of those in front.
    pub locals: Vec<Value>,
    /// The components of what they become; of a sort whether the first stays in front.
    pub results: Vec<Expr>,
}

//! Operands, resolved.

use crate::program::Addr;
use crate::program::types::R;

/// A resolved operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    /// A slot of the 32 or 64-bit file; which one follows from the type in the table.
    Slot(R),
    /// A predicate and whether it is negated.
    Pred(R, bool),
    /// Destination and predicate of `d|p`, setp's `p|q`.
    Two(R, R),
    /// Slots of a vector, and whether they are of the 64-bit file.
    Many(Vec<R>, bool),
    Addr(Addr),
    /// A source or destination of a video instruction, with its selector.
    Part {
        slot: R,
        selector: String,
        negate: bool,
    },
    Int(u64),
    Labels(Vec<u32>),
    /// The map of a tensor and a place in it.
    Tensor(Addr, Vec<R>),
    /// An optional operand that is not there.
    Absent,
}

//! Index arithmetic: what every operator means on exact integers.
//!
//! Indices are 64-bit integers. `/` rounds toward minus infinity, `%` is what that leaves (`a - (a / b) * b`, with the sign of
//! the divisor), and `ceildiv` rounds toward plus infinity. A result that does not fit 64 bits and a division by zero have no
//! value ([`Undefined`]); nothing wraps.
//!
//! This is the only place that says so. Interpreter, folding, facts, the model, lowering and the launch contract ask
//! [`binary`], [`unary`], or, for whole expressions wherever they are kept, [`eval`] (`tree.rs`). [`Interval`] bounds what an
//! operator can give (`interval.rs`).
//!
//! What [`of_value`] makes of a number in a register or in memory is such an integer, too.

mod interval;
mod scalar;
mod tree;

pub use interval::Interval;

/// The function that makes an index of an integer scalar.
pub const WORD: &str = "index";

pub use scalar::{Scalar, Undefined, binary, compare, exact, exact_unary, is_zero, of_value, trips, unary, unchanged};
pub use tree::{Node, Stop, Tree, eval, int, truth};

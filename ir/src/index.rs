//! Index arithmetic: what every operator means on exact integers.
//!
//! Indices are 64-bit integers. `/` rounds toward minus infinity, `%` is what that leaves (`a - (a / b) * b`, with the sign of
//! the divisor), and `ceildiv` rounds toward plus infinity. A result that does not fit 64 bits and a division by zero have no
//! value ([`Undefined`]); nothing wraps.
//!
//! This is the only place that says so. Interpreter, folding, facts, the model, lowering and the launch contract ask
//! [`binary`], [`unary`], or, for whole expressions wherever they are kept, [`eval`] (`tree.rs`). [`Interval`] bounds what an
//! operator can give (`interval.rs`).

mod interval;
mod scalar;
#[cfg(test)]
mod tests;
mod tree;

pub use interval::Interval;
pub use scalar::{Scalar, Undefined, binary, compare, exact, exact_unary, trips, unary, unchanged, vanishes};
pub use tree::{Node, OfKernel, Stop, Tree, eval, int, truth};

//! Tile IR to PTX: a typed instruction list first, text last.
//!
//! * [`ops`] is the table: one row per concrete opcode form, with its operands, effect, and the first PTX
//!   version and target that have it. Everything else reads the table.
//! * [`inst`] and [`module`] are the data model; [`builder`] appends to it.
//! * [`check`] refuses what the target lacks and computes the lowest `.version` that works.
//! * [`mod@print`] writes the text in one pass and decides nothing.
//!
//! Invariant: the modules named here know PTX alone. Choosing instructions for tile programs is lowering's
//! work and stays outside them.
#![forbid(unsafe_code)]

pub mod builder;
pub mod check;
pub mod inst;
pub mod launch;
pub mod lower;
pub mod module;
pub mod ops;
pub mod print;
pub mod report;
pub mod target;

#[cfg(test)]
mod table_tests;

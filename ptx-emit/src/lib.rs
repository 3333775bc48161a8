//! Tile IR to PTX: first a typed instruction list, then text.
//!
//! * [`ops`] is the table: one row per concrete opcode form, with its operands, effect, and the first PTX version and
//!   target that have it. Everything else reads the table.
//! * [`inst`] and [`module`] are the data model; [`builder`] appends to it.
//! * [`check`] refuses what the target lacks and computes the lowest `.version` that works.
//! * [`mod@print`] writes the text in one pass and decides nothing.
//!
//! Invariant: these modules know only PTX. Lowering chooses the instructions for tile programs and is separate.
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

//! Driver.

pub mod assembler;
pub mod expr;

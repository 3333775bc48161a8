//! Driver.

pub mod assembler;

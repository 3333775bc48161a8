//! Parses PTX text to a [`Program`]: tokens, statements, then one table of instructions.
//!
//! The parser is strict: an instruction that the table does not have is an error with line and column, never skipped.

mod constant;
mod cursor;
pub(crate) mod decode;
pub(crate) mod error;
pub(crate) mod forms;
mod ignored_directives;
pub(crate) mod lex;
mod linkage;
pub(crate) mod modifiers;
pub(crate) mod module;
pub(crate) mod raw;
pub(crate) mod sem;
pub(crate) mod sem_float;
mod statement;
pub(crate) mod table;
mod variables;

use crate::program::Program;

pub use error::ParseError;

impl Program {
    /// Parses and decodes a module.
    ///
    /// # Errors
    /// At the first thing that is not PTX, or that this simulator does not execute.
    pub fn parse(text: &str) -> Result<Program, ParseError> {
        decode::decode(&module::parse_module(text)?)
    }
}

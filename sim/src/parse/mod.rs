//! PTX text to a [`Program`]: tokens, statements, then one table of instructions.
//!
//! Strict: what the table does not hold is an error with line and column, never skipped.

mod constant;
pub(crate) mod decode;
pub(crate) mod forms;
pub(crate) mod lex;
mod linkage;
pub(crate) mod module;
pub(crate) mod raw;
pub(crate) mod sem;
pub(crate) mod sem_float;
mod statement;
pub(crate) mod table;
mod variables;

use crate::program::Program;

/// Why a text is not a program; both numbers count from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line.
    pub line: u32,
    /// Column.
    pub col: u32,
    /// What was found and what was expected.
    pub message: String,
    /// The text may be right, and be nothing that this simulator executes.
    pub limit: bool,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.col, self.message)
    }
}

impl std::error::Error for ParseError {}

impl Program {
    /// Parses and decodes a module.
    ///
    /// # Errors
    /// At the first thing that is not PTX, or that this simulator does not execute.
    pub fn parse(text: &str) -> Result<Program, ParseError> {
        decode::decode(&module::parse_module(text)?)
    }
}

//! Errors of a launch description.

use crate::contract::ContractError;
use thiserror::Error;

/// Why a description cannot be used.
#[derive(Debug, Error)]
pub enum LaunchFileError {
    /// It is not JSON; line and column from 1.
    #[error("not JSON: {message}")]
    Syntax {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A field is missing, unknown or of the wrong kind.
    #[error("{0}")]
    Field(String),
    /// The PTX, which should say it, does not parse; line and column from 1.
    #[error("{message}")]
    Ptx {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// Completed, it is still no contract.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

pub(crate) fn field(message: impl Into<String>) -> LaunchFileError {
    LaunchFileError::Field(message.into())
}

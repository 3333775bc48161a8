//! Why a text is not a program.

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

/// The result of parsing.
pub(crate) type Result<T> = std::result::Result<T, ParseError>;

//! Violations, and where they are.

use crate::ops::Op;
use std::fmt;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalityError {
    /// Index into [`functions`](crate::module::Module::functions); `None` for the module itself.
    pub function: Option<usize>,
    /// Index into [`body`](crate::module::Function::body), if an item is to blame.
    pub item: Option<usize>,
    /// The row, if that item is an instruction.
    pub op: Option<Op>,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for LegalityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = self.function {
            write!(f, "function {function}")?;
            if let Some(item) = self.item {
                write!(f, ", item {item}")?;
            }
            if let Some(op) = self.op {
                write!(f, " (`{op}`)")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

/// Where the walk is, and what it found.
#[derive(Default)]
pub(super) struct Errors {
    pub(super) function: Option<usize>,
    pub(super) item: Option<usize>,
    pub(super) op: Option<Op>,
    pub(super) list: Vec<LegalityError>,
}

impl Errors {
    pub(super) fn push(&mut self, message: String) {
        let Errors { function, item, op, .. } = *self;
        self.list.push(LegalityError { function, item, op, message });
    }
}

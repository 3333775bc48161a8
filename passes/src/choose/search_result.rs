//! The result of a search, or the reason for its failure.

use super::illegal::Illegal;
use super::prediction::Choice;
use tilec_ir::entities::Value;

/// Why there is no choice.
#[derive(Debug)]
pub(super) enum Failed {
    /// The model cannot predict the kernel.
    Opaque(String),
    /// Every candidate breaks a rule.
    NoneLegal(Illegal),
    /// The passes refuse every candidate; the reason for one of them.
    Refused(String),
}

/// What was found.
#[derive(Debug)]
pub(super) struct SearchResult {
    pub(super) values: Vec<(Value, i64)>,
    /// The choice and its reason, if the model decided.
    pub(super) choice: Option<Choice>,
    /// No candidate leaves enough registers for a thread.
    pub(super) crowded: bool,
}

/// A combination of values.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// Names and values of the parameters that are `auto`, in the order of the kernel.
    pub values: Vec<(String, i64)>,
    /// Predicted seconds of a launch.
    pub seconds: f64,
}

//! The result of a search, or the reason for none.

use super::illegal::Illegal;
use super::prediction::Choice;
use tilec_ir::entities::Value;

/// Why there is no choice.
#[derive(Debug)]
pub(super) enum Failed {
    /// The model cannot see through the kernel.
    Opaque(String),
    /// Every candidate breaks a rule.
    NoneLegal(Illegal),
    /// The passes refuse every candidate; why, of one.
    Refused(String),
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) values: Vec<(Value, i64)>,
    /// Why, where the model decided.
    pub(super) choice: Option<Choice>,
    /// No candidate leaves a thread registers for everything.
    pub(super) crowded: bool,
}

/// A combination of values.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// Names and values of the parameters that are `auto`, in the order of the kernel.
    pub values: Vec<(String, i64)>,
    /// Seconds that a launch takes, as predicted.
    pub seconds: f64,
}

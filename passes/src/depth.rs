//! What is said of a schedule that keeps loops from running ahead.

/// What the model has to say of a schedule with one stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Depth {
    /// More are faster: what to write, in words.
    Write(String),
    /// More are no faster, in words.
    NoGain(String),
}

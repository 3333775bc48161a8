//! Messages about a schedule with one stage, in which no loads run ahead.

/// The model's advice on a schedule with one stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Depth {
    /// More stages are faster: what to write, as text.
    Write(String),
    /// More stages are not faster, as text.
    NoGain(String),
}

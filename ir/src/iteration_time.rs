//! The time of an iteration of a scheduled loop, as data; a remark has the same as text.

use crate::entities::Block;
use crate::span::Span;

/// The tensor cores as a unit.
pub const TENSOR_CORES: &str = "tensor cores";
/// Memory as a unit, were nothing in the cache.
pub const UNCACHED: &str = "memory, uncached";

/// The pace of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IterationTime {
    /// Its body.
    pub body: Block,
    /// Where its variable is declared.
    pub variable: Span,
    /// Clocks of an iteration.
    pub clocks: u64,
    /// The cycles of its statements ([`StmtPlan`](crate::attributes::StmtPlan)) are clocks; else they are the order of the statements.
    pub in_clocks: bool,
    /// Busy clocks of each unit of a multiprocessor per iteration; the largest first.
    pub units: Vec<(&'static str, u64)>,
    /// The same for units that the schedule does not model: copies from tensors also use them, and other blocks share
    /// them.
    pub unmodelled: Vec<(&'static str, u64)>,
}

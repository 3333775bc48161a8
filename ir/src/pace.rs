//! What an iteration of a scheduled loop takes, as data: what a remark says in words.

use crate::entities::Block;

/// Memory as a unit, were nothing in the cache.
pub const UNCACHED: &str = "memory, uncached";

/// The pace of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Its body.
    pub body: Block,
    /// Clocks of an iteration.
    pub clocks: u64,
    /// The cycles of its statements ([`StmtPlan`](crate::attributes::StmtPlan)) are clocks; else they are the order of the statements.
    pub in_clocks: bool,
    /// What each unit of a multiprocessor works in an iteration, in clocks; most first.
    pub units: Vec<(&'static str, u64)>,
    /// The same of units that the schedule does not count: copies from tensors take them beside it, and other blocks share them.
    pub beside: Vec<(&'static str, u64)>,
}

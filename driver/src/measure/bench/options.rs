//! Options of a measurement.

use crate::contract::number::Args;
use crate::measure::bench::variants::Variant;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Which kernel or sequence; `None`: the only sequence of the file, or its only kernel.
    pub kernel: Option<String>,
    /// The programs.
    pub variants: Vec<Variant>,
    /// The problems.
    pub problems: Vec<Args>,
    /// Measure cuBLAS too.
    pub cublas: bool,
    /// Rounds per problem.
    pub rounds: u32,
    /// Seconds of measurement per problem to aim at.
    pub seconds: f64,
    /// Wall clock of the work on one problem.
    pub timeout: Duration,
    /// Seed of the data.
    pub seed: u64,
    /// The variants are the ladder of passes: gains from rung to rung are of interest.
    pub ladder: bool,
}

//! Console output: rendered diagnostics, files written atomically, progress, and the time limit of a run.

pub mod clock;
pub mod output;
pub mod progress;
pub mod render;

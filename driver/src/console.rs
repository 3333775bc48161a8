//! What people see and wait for: diagnostics as drawn, files written as a whole, progress, and the clock that ends a run.

pub mod clock;
pub mod output;
pub mod progress;
pub mod render;

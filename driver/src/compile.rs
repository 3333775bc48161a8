//! Compiling: source text to PTX, a launch contract, diagnostics and remarks.

mod blame;
pub mod bundle;
pub(crate) mod demands;
pub mod explain;
mod gathered;
pub mod machine_code;
pub(crate) mod options;
mod parallel;
mod pipeline;
pub(crate) mod places;
mod reach;
pub mod report_json;
pub(crate) mod shares;
mod sources;
pub mod spilled;
pub(crate) mod stages;
mod texts;
pub(crate) mod variants;
mod wgmma_lines;
mod written;

pub use options::{CompileOptions, Keep, Sizes};
pub(crate) use pipeline::after_file_passes;
pub use pipeline::{
    Compiled, CompiledKernel, Diagnostics, Meaning, Optimized, OptimizedKernel, PARSED, Refused, compile, lower,
    meaning, optimize, optimize_as_far,
};
pub use places::Place;
pub use tilec_passes::caller::Caller;
pub use written::Written;
pub(crate) use written::whole;

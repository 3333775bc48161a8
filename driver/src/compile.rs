//! Compiling: source text to PTX, a launch contract, diagnostics and remarks.

mod assembler_report;
pub(crate) mod attribution;
mod bank_conflicts;
pub mod bundle;
mod chosen_values;
pub(crate) mod copied_operands;
pub(crate) mod demands;
mod error_list;
pub mod explain;
pub(crate) mod implied;
pub mod machine_code;
pub(crate) mod options;
pub(crate) mod parallel;
mod parsed_program;
mod pipeline;
pub mod program_times;
mod reachable_variants;
mod refined_predictions;
pub mod register_lines;
pub mod report_json;
pub(crate) mod several_targets;
pub(crate) mod source_lines;
mod sources;
mod stage_texts;
pub(crate) mod stages;
pub(crate) mod unrepeated;
mod variant_messages;
pub(crate) mod variants;
mod wgmma_lines;

pub use error_list::Diagnostics;
pub use options::{CompileOptions, Keep, Sizes};
pub use parsed_program::ParsedKernel;
pub(crate) use parsed_program::whole;
pub(crate) use pipeline::after_file_passes;
pub(crate) use pipeline::with_preconditions;
pub use pipeline::{
    Compiled, CompiledKernel, Optimized, OptimizedKernel, PARSED, Refused, SourceProgram, compile, lower, meaning,
    optimize, optimize_as_far,
};
pub use source_lines::Place;
pub use tilec_passes::caller::Caller;

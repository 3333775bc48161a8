//! `tilec`: a small tile language compiled to PTX, without a CUDA toolkit.
//!
//! This crate is the compiler as a library, and the `tilec` command over it. It alone touches files, the environment,
//! processes and the GPU.

pub mod assembler;
pub mod bind;
pub mod compile;
pub mod contract;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod data;
pub mod explain;
pub mod expr;
pub mod machine_code;
pub mod output;
pub mod render;
pub mod report_json;
pub mod run;
mod stages;

pub use compile::{CompileOptions, Compiled, Diagnostics, Keep, compile, lower, optimize};
pub use contract::Contract;
pub use tilec_ir::target::Target;

/// A PTX version as `.version` writes it.
fn decimal_version((major, minor): (u8, u8)) -> String {
    format!("{major}.{minor}")
}

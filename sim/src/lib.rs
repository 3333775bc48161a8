//! `tilec-sim`: a software device. PTX text is parsed, executed on the CPU, checked and counted.
//!
//! The crate depends on no other crate of the project, and shares no table with the code that prints PTX: everything
//! here is written from the PTX manual, so that an error on one side is found by the independent implementation on the
//! other.
//!
//! ```text
//! text -> parse (tokens, statements, instruction table) -> Program -> exec (blocks, warps, fragments) -> Counters or Report
//!                                                                      memory, race, numerics
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::needless_range_loop, reason = "a lane indexes several arrays at once")]

mod counters;
mod exec;
mod memory;
pub mod numerics;
pub mod occupancy;
mod parse;
mod program;
mod progress;
mod race;
mod report;
mod tensor_map;

pub use counters::{Counters, Counts, Row};
pub use exec::asynchronous::Landing;
pub use exec::{BLOCKS_APART, Launch, Options, Order};
pub use memory::Device;
pub use numerics::mma::Generation;
pub use parse::ParseError;
pub use parse::forms::{InstructionForm, instruction_forms};
pub use program::Program;
pub use progress::Progress;
pub use report::{Allowance, Cause, Memory, Place, Report, ReportKind};
pub use tensor_map::{Outside, Pixels, Swizzle, TensorElement, TensorMap, TensorMapError};

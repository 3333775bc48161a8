//! The CUDA driver API on the simulator: a shared library in the place of `libcuda.so.1`.
//!
//! A program in C, or in any language that calls the driver, allocates memory, loads PTX and launches kernels as on a GPU. Kernels
//! run on the CPU with every check of the simulator. A launch returns after the kernel has ended. What the simulator reports goes to
//! standard error, and the call returns an error, as all later calls do that need the device: errors of a kernel are sticky, as on a GPU.
//!
//! `abi` has the functions of the driver, and the only unsafe code; [`State`] is what they work on. What the library does not have,
//! such as graphs and machine code, is refused by a code of the driver and a sentence.

mod abi;
mod attributes;
mod code;
mod launch;
mod maps;
mod settings;
mod state;

pub use code::{Code, Failure};
pub use launch::Request;
pub use maps::Map;
pub use settings::Settings;
pub use state::State;

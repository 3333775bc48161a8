//! `tilec`: a small tile language compiled to PTX, without a CUDA toolkit.
//!
//! This crate is the compiler as a library, and the `tilec` command over it. It alone touches files, the environment,
//! processes and the GPU.
//!
//! Compiling to PTX and a launch contract, and looking at what the passes decided:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source = "kernel double(A: gmem f32[N], B: gmem f32[N]) grid (b: ceildiv(N, 1024)) {
//!     var x = reg f32[1024]
//!     copy A[b * 1024..] -> x                  // out of range reads as zero
//!     copy 2.0 * x -> B[b * 1024..]            // out of range is not written
//! }";
//! let compiled = tilec::compile(source, &tilec::CompileOptions::default())?;
//! assert!(compiled.ptx.contains(".entry double("));
//! let contract = &compiled.kernels[0].contract;
//! assert_eq!(contract.grid[0], "ceildiv(N, 1024)");
//! println!("{}", compiled.launch_json());      // all that a host in any language needs
//! println!("{}", tilec::optimize(source, &tilec::CompileOptions::default())?.tile()); // what the passes decided
//! # Ok(())
//! # }
//! ```
//!
//! Loading and launching from the contract (the feature `cuda`):
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tilec::{CompileOptions, Number, compile, cuda::Device, loaded_kernel::LoadedKernel};
//!
//! let compiled = compile(&std::fs::read_to_string("gemm.tile")?, &CompileOptions::default())?;
//! let contract = &compiled.kernels[0].contract;
//!
//! let device = Device::open(0)?;
//! let gemm = LoadedKernel::load(&device, &compiled.ptx, contract)?;
//! let (a, b, c) = (device.alloc(512 * 256 * 2)?, device.alloc(256 * 128 * 2)?, device.alloc(512 * 128 * 4)?);
//! let sizes = [("M", 512), ("N", 128), ("K", 256)].map(|(name, n)| (name.to_owned(), Number::Int(n)));
//! gemm.launch(&sizes.into(), &[("A", &a), ("B", &b), ("C", &c)])?;
//! device.synchronize()?;
//! # Ok(())
//! # }
//! ```

pub mod assembler;
pub mod c_header;
#[cfg(feature = "command")]
pub mod command;
pub mod compile;
pub mod console;
pub mod contract;
pub mod editor;
pub mod measure;
pub mod run;
pub mod why;
pub mod xray;

pub use compile::{explain, machine_code, report_json};
pub use console::{clock, output, progress, render};
pub use contract::{distinct_elements, expr, launch_file};
pub use measure::{bench, tune};
#[cfg(feature = "cuda")]
pub use run::loaded_kernel;
pub use run::{bind, data, dispatch, overlap, program, simulate, tensor_map};
#[cfg(feature = "cuda")]
pub use tilec_launch::cuda;

pub use compile::{CompileOptions, Compiled, Diagnostics, Keep, compile, lower, optimize};
pub use contract::Contract;
pub use run::bind::{Args, Number};
pub use tilec_ir::target::Target;

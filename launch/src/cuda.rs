//! The CUDA driver API, as far as running a compiled kernel needs it.
//!
//! The library (`libcuda.so.1`, `nvcuda.dll`) is opened when the first device is, so that the tool builds, starts and
//! tests without one. Its symbols are looked up one by one into a table of ours; a missing library or symbol
//! is an error and not a panic. Every call returns a [`CudaError`]; nothing here panics, and nothing clamps: a launch
//! beyond a limit is refused with the limit in the message.
//!
//! Ownership: a [`Device`] retains the primary context of its ordinal. Everything made from it (buffers, modules,
//! streams, events) holds that context alive, and releases its handle on drop. For the duration of each call it makes
//! the context current, and then restores what was current before. Handles may go from thread to thread: no call
//! depends on which it is.
//!
//! Trust: this module keeps the *host* safe whatever it is given, namely sizes, argument lists and images. What a kernel
//! does with device addresses is the kernel's affair, as a child process's memory is the child's. A kernel that does not
//! end cannot be stopped from here: whoever launches unproved kernels does so in a process that can be killed.

#![expect(unsafe_code, reason = "foreign functions of the CUDA driver; the only unsafe code of the workspace")]

mod context;
#[cfg(feature = "cublas")]
mod cublas;
mod device;
mod graph;
mod image;
mod launch;
mod memory;
mod module;
mod ready;
mod stream;
mod table;

pub use context::{CudaError, Properties};
#[cfg(feature = "cublas")]
pub use cublas::{At, Compute, Cublas, CublasError, MatType, Matmul, Matrix, Product};
pub use device::Device;
pub use graph::Graph;
pub use launch::{LaunchArg, MAX_PLACES, PROMOTE_TO_128, PixelBox, Shape, TensorMap};
pub use memory::Buffer;
pub use module::{Function, FunctionAttributes, Module};
pub use ready::Ready;
pub use stream::{Event, Stream};

#[cfg(test)]
mod tests;

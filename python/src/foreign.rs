//! Memory and functions of others: the CUDA driver, tensors of other libraries, memory of arrays.
//!
//! This is the only `unsafe` of the package. The driver is a table of C functions opened at run time; a tensor is an address that its library gave,
//! with a shape for which it answers; a DLPack capsule is a C structure that lives as long as its capsule.

#![expect(unsafe_code, reason = "the CUDA driver and DLPack are C interfaces, and arrays are addresses")]

mod dlpack;
mod driver;
mod memory;

pub(crate) use dlpack::{Lent, lent};
pub(crate) use driver::{Block, DeviceMemory, Driver, Function, Shape};
pub(crate) use memory::{read, write};

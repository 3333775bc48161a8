//! Memory and functions of others: tensors of other libraries, memory of arrays, streams.
//!
//! This is the only `unsafe` of the package.
//!
//! * A tensor is an address and a shape, both from the library that owns it.
//! * A DLPack capsule is a C structure that lives as long as its capsule.
//! * A stream is a number of the library that made it.
//! * A call frame of XLA lives for the call.

#![expect(unsafe_code, reason = "DLPack and the calls of XLA are C interfaces, and arrays and streams are addresses")]

mod dlpack;
mod exchange;
mod memory;
mod stream;
mod xla;

pub(crate) use dlpack::{Borrowed, lent};
pub(crate) use exchange::Exchange;
pub(crate) use memory::{read, write};
pub(crate) use stream::stream;
pub(crate) use xla::handlers;

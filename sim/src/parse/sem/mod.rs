//! Semantics of the table's rows: integers, logic, movement, control, synchronisation (PTX 9.7.1 to 9.7.14).
//!
//! Each function turns the resolved operands of one row into an [`Op`](crate::program::Op). Values of 8 and 16 bits are zero-extended in
//! their slot, so functions of small types extend first and truncate last.
mod bits;
mod compare;
pub(crate) mod forms;
mod hopper;
mod integer;
pub(crate) mod lanes;
mod matrix;
mod memory;
mod sync;
mod video;

pub(crate) use bits::*;
pub(crate) use compare::*;
pub(crate) use hopper::*;
pub(crate) use integer::*;
pub(crate) use matrix::*;
pub(crate) use memory::*;
pub(crate) use sync::*;
pub(crate) use video::*;

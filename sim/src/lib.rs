//! `tilec-sim`: a device made of software. PTX text is parsed, executed on the CPU, checked and counted.
//!
//! The crate depends on no other crate of the project and shares no table with the code that prints PTX: everything here is
//! written from the PTX manual, so that an error on one side meets an independent opinion on the other.
#![forbid(unsafe_code)]

pub mod numerics;

//! `tilec-ir`: the tile language. Entities, the op table, types, layout algebra, hardware tables, the text form both ways,
//! the verifier, the reference interpreter, and diagnostics as data.
//!
//! The crate does no I/O and knows no pass and no PTX.

mod accumulators;
pub mod atoms;
mod attributes;
pub mod changes;
pub mod cluster;
pub mod codes;
pub mod combine;
pub mod combining;
pub mod contraction;
pub mod ctas;
pub mod deferred;
pub mod demands;
pub mod diag;
pub mod entities;
pub mod extents;
pub mod facts;
pub mod few;
pub mod format;
pub mod functions;
pub mod handover;
pub mod index;
pub mod interp;
pub mod kernel;
pub mod lanes;
pub mod layout;
mod lexer;
pub mod literal;
pub mod loop_ends;
pub mod loss;
pub mod mechanism;
pub mod names;
pub mod numbered;
pub mod outline;
pub mod overlay;
pub mod own_end;
pub mod pace;
pub mod padded;
pub mod parser;
pub mod partial;
pub mod placement;
pub mod print;
pub mod progression;
#[cfg(test)]
#[path = "../../core/src/random_tests.rs"]
mod random_tests;
pub mod roles;
pub mod rounding;
pub mod same;
pub mod space;
pub mod spots;
pub mod standing;
pub mod symmetric;
pub mod target;
pub mod tensor_store;
mod tuples;
pub mod turns;
pub mod types;
pub mod typing;
pub mod values;
pub mod verify;
pub mod zeros;

pub use tilec_core::{bits, numerics, ops, spelling};

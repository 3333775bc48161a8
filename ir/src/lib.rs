//! `tilec-ir`: the tile language. Entities, the op table, types, layout algebra, hardware tables, the text form both ways,
//! the verifier, the reference interpreter, and diagnostics as data.
//!
//! The crate does no I/O and knows no pass and no PTX.

mod accumulators;
pub mod atomics;
pub mod atoms;
pub mod attributes;
pub mod cluster;
pub mod codes;
pub mod combine;
pub mod commutative;
pub mod constant_loads;
pub mod contraction;
pub mod ctas;
pub mod deferred_lets;
pub mod demands;
pub mod diag;
pub mod entities;
pub mod extents;
pub mod facts;
pub mod fix_locations;
pub mod format;
pub mod functions;
pub mod handover;
pub mod held_elements;
pub mod index;
mod index_difference;
pub mod index_values;
pub mod interp;
pub mod iteration_time;
pub mod kernel;
pub mod lanes;
pub mod layout;
mod lexer;
pub mod literal;
pub mod loop_ends;
pub mod mechanism;
pub mod memory_reuse;
pub mod missed_paths;
pub mod modified_values;
pub mod names;
pub mod ordered;
pub mod outline;
pub mod padded;
pub mod parser;
pub mod partial_sums;
pub mod placement;
pub mod print;
pub mod progression;
#[cfg(test)]
#[path = "../../core/src/random_tests.rs"]
mod random_tests;
pub mod reachable;
pub mod reshape;
pub mod roles;
pub mod rounding;
pub mod small_list;
pub mod space;
pub mod span;
pub mod structural_equality;
pub mod target;
pub mod tensor_store;
pub mod tile_bounds;
pub mod total_order;
mod tuples;
pub mod types;
pub mod typing;
pub mod verify;
pub mod window_ends;
pub mod zero_sizes;

pub use tilec_core::{bits, numerics, ops, spelling};

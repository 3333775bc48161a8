//! `tilec-core`: what the language and the launch of its kernels share. Element types and their numbers, the op table, index
//! arithmetic, and what the launch contract names of the hardware.
//!
//! The compiler (`tilec-ir`) and the runtime (`tilec-launch`) build on it; neither knows the other. It does no I/O and has no
//! dependencies.

pub mod bits;
pub mod elem;
pub mod hardware;
pub mod index;
pub mod numbers;
pub mod numerics;
pub mod ops;
#[cfg(test)]
mod random_tests;
pub mod spelling;

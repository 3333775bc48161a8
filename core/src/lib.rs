//! `tilec-core`: shared by the language and the launch of its kernels. It has element types and their arithmetic, the
//! op table, index arithmetic, and the hardware limits in the launch contract.
//!
//! The compiler (`tilec-ir`) and the runtime (`tilec-launch`) build on it, and are independent of each other. It does
//! no I/O and has no dependencies.

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

//! The launch contract of compiled kernels, and launch descriptions written by hand. What a contract is and what its
//! expressions mean is in `tilec-launch`, for whoever launches without the compiler.

pub mod launch_file;
mod made;
#[cfg(test)]
pub(crate) mod tests;

pub use tilec_launch::contract::*;

pub(crate) use made::{of_kernel, stored};

//! The launch contract of compiled kernels, and hand-written launch descriptions. `tilec-launch` defines contracts and
//! their expressions, for programs that launch without the compiler.

pub mod launch_file;
mod made;
#[cfg(test)]
pub(crate) mod tests;

pub use tilec_launch::contract::*;

pub(crate) use made::{of_kernel, stored};

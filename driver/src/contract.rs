//! The launch contract of compiled kernels, and hand-written launch descriptions. `tilec-launch` defines contracts and
//! their expressions, for programs that launch without the compiler.

mod from_compiled;
pub mod launch_file;
#[cfg(test)]
pub(crate) mod tests;

pub use tilec_launch::contract::*;

pub(crate) use from_compiled::{of_kernel, stored};

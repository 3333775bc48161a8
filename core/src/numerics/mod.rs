//! Number formats of the device: what a value becomes when it is stored.
//!
//! The interpreter, the constant folder and the error bounds compute in `f64` and ask this module
//! what the device would keep. Every operation here is exact: one rounding, straight from `f64`,
//! by integer arithmetic on the bits. Going through `f32` first would round twice and can miss a
//! tie by one unit in the last place.
//!
//! Invariants: a format is data (a row of constants, no code per format); no operation panics for
//! any input; all results are independent of the host's rounding mode and fast-math settings.

pub mod cast;
mod element;
mod erf;
mod float;
mod int;
pub mod philox;

#[cfg(test)]
mod tests;

pub use element::{element, element_unary, permute_bytes};
pub use erf::erf;
pub use float::{FloatFormat, Overflow, Specials, float_format, larger, smaller};
pub use int::IntFormat;

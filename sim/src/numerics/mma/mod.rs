//! Matrix products of a warp, bit for bit as a given generation of device computes them.
//!
//! * [`dense_forms`]: the instructions PTX has (dense, all types but f64, which has [`mma_f64`])
//! * [`layout`]: which lane holds what; `ldmatrix`, `stmatrix`, `movmatrix`
//! * [`model`]: the arithmetic of each form on each generation
//! * [`dot`]: one fused step, exactly and plainly
//! * `tile`: the same over tiles, fast
//! * `warp`: registers in, registers out
//! * [`wide`]: the asynchronous products of four warps

pub mod dense_forms;
pub mod dot;
pub mod layout;
pub mod model;
mod small_ints;
#[expect(
    clippy::needless_range_loop,
    reason = "loops over eight columns of several arrays at once, for the vectorizer"
)]
mod tile;
mod warp;
pub mod wide;

pub use dense_forms::{Acc, Elem, Form, Layout, Registers, Shape};
pub use model::{Generation, Model, Output, Plan};
pub use small_ints::{Pairs, Small};
pub use warp::{MmaError, Register, Register64, m8n8k4, mma, mma_f64, row_col};
pub use wide::WgmmaForm;

#[cfg(test)]
mod tests;

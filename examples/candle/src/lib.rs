//! The products, norms and attention of a transformer for [candle](https://github.com/huggingface/candle), as custom operations with
//! gradients whose kernels are those of `kernels/*.tile`.
//!
//! ```no_run
//! # fn main() -> candle_core::Result<()> {
//! use candle_core::{DType, Device, Tensor};
//! let device = Device::Cpu;
//! let kernels = tilec_candle::Kernels::load(&device)?;
//! let x = Tensor::randn(0f32, 1.0, (3, 64), &device)?.to_dtype(DType::BF16)?;
//! let w = Tensor::randn(0f32, 1.0, (32, 64), &device)?.to_dtype(DType::BF16)?;
//! let y = kernels.linear(&x, &w)?;
//! assert_eq!(y.dims(), [3, 32]);
//! # Ok(())
//! # }
//! ```
//!
//! On `Device::Cpu` the kernels run on the simulator: slowly, and with every access checked. With the feature `cuda` they run on the
//! stream of a `Device::Cuda`.

mod attention;
mod binary;
mod kernels;
mod linear;
mod memory;
mod norm;
pub mod transformer;

pub use kernels::Kernels;

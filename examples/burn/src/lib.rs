//! The products, norms and attention of a transformer for [Burn](https://burn.dev), as custom operations with gradients whose kernels
//! are those of `examples/candle/kernels/*.tile`.
//!
//! ```
//! use burn::tensor::{DType, Device, Distribution, Tensor};
//! let device = Device::flex();
//! let random = |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Default, &device).cast(DType::BF16);
//! let y = tilec_burn::linear(random([3, 64]), random([32, 64]));
//! assert_eq!(y.dims(), [3, 32]);
//! ```
//!
//! On the backend `Flex`, which is on the CPU, the kernels run on the simulator: slowly, and with every access checked. With the
//! feature `cuda` they run on the GPU of a CUDA device of Burn. What does not fit panics, as Burn's own operations do.

#[cfg(feature = "cuda")]
mod cuda;
mod gradients;
mod launchers;
mod memory;
mod operations;
pub mod transformer;

pub use launchers::simulate;
pub use operations::Kernels;

use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// `Y = X·Wᵀ`, with gradients: X of bf16 `[.., K]`, W of bf16 `[N, K]`, Y of bf16 `[.., N]`. Sums are f32.
///
/// # Panics
/// Another type, shapes that do not fit, or K or N no multiple of 8.
pub fn linear<const D: usize>(x: Tensor<D>, w: Tensor<2>) -> Tensor<D> {
    let mut shape = x.dims();
    let y = Dispatch::product(rows(x).into_dispatch(), w.clone().into_dispatch());
    if let Some(last) = shape.last_mut() {
        *last = w.dims()[0];
    }
    Tensor::<2>::from_dispatch(y).reshape(shape)
}

/// `Y = X / sqrt(mean of X² + eps) * W` along the last dimension, with gradients: X and Y of bf16 `[.., N]`, W of bf16 `[N]`.
///
/// # Panics
/// Another type, shapes that do not fit, N no multiple of 8, or N beyond 8192.
pub fn rms_norm<const D: usize>(x: Tensor<D>, w: Tensor<1>, eps: f32) -> Tensor<D> {
    let shape = x.dims();
    Tensor::<2>::from_dispatch(Dispatch::rms_norm(rows(x).into_dispatch(), w.into_dispatch(), eps)).reshape(shape)
}

/// Causal attention, with gradients: Q, K, V and the result of bf16 `[batch, heads, length, 128]`.
///
/// # Panics
/// Another type, or shapes that do not fit.
pub fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, scale: f32) -> Tensor<4> {
    let (o, _) = Dispatch::causal_attention(q.into_dispatch(), k.into_dispatch(), v.into_dispatch(), scale);
    Tensor::from_dispatch(o)
}

/// As rows of the last dimension.
fn rows<const D: usize>(x: Tensor<D>) -> Tensor<2> {
    let columns = x.dims().last().copied().unwrap_or(1);
    let rows = x.dims().iter().product::<usize>() / columns.max(1);
    x.reshape([rows, columns])
}

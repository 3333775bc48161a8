//! A block of a transformer (norms, causal attention with rotary positions, a gated layer), with operations of Burn or of this crate.

use burn::tensor::activation::silu;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{DType, Device, Distribution, Gradients, Tensor, module};

/// The sizes of a block.
#[derive(Copy, Clone, Debug)]
pub struct Config {
    /// The width of a token.
    pub width: usize,
    /// Heads of attention, each `width / heads` wide. The kernels take 128.
    pub heads: usize,
    /// The width of the gated layer.
    pub hidden: usize,
}

/// With what a block computes products, norms and attention.
#[derive(Copy, Clone, Debug)]
pub enum Operations {
    /// Burn's operations.
    Burn,
    /// The kernels of this crate.
    Kernels,
}

/// The weights of a block.
pub struct Block {
    config: Config,
    /// Of queries, keys and values, one below another; of the result; of the gate, one above what it scales; of the way back.
    weights: [Tensor<2>; 4],
    norms: [Tensor<1>; 2],
    /// Cosines and sines of the rotary positions.
    angles: [Tensor<4>; 2],
}

const EPS: f32 = 1e-6;

impl Block {
    /// Random weights for sequences of `length` tokens, which require gradients where the device has them.
    pub fn random(config: Config, length: usize, dtype: DType, device: &Device) -> Block {
        let Config { width, hidden, heads } = config;
        let matrix = |rows: usize, columns: usize| {
            let normal = Distribution::Normal(0.0, (columns as f64).powf(-0.5));
            Tensor::<2>::random([rows, columns], normal, device)
        };
        let norm = || Tensor::<1>::random([width], Distribution::Uniform(0.5, 1.5), device);
        let half = width / heads / 2;
        let angle = |i: usize| (i / half) as f32 * 10000f32.powf(-((i % half) as f32) / half as f32);
        let angles: Vec<f32> = (0..length * half).map(angle).collect();
        let angles = Tensor::<1>::from_data(angles.as_slice(), device).reshape([1, 1, length, half]);
        let block = Block {
            config,
            weights: [matrix(3 * width, width), matrix(width, width), matrix(2 * hidden, width), matrix(width, hidden)],
            norms: [norm(), norm()],
            angles: [angles.clone().cos(), angles.sin()],
        };
        block.cast(dtype)
    }

    /// The same weights in another type.
    #[must_use]
    pub fn cast(&self, dtype: DType) -> Block {
        Block {
            config: self.config,
            weights: self.weights.clone().map(|w| leaf(w, dtype)),
            norms: self.norms.clone().map(|w| leaf(w, dtype)),
            angles: self.angles.clone().map(|a| a.cast(dtype)),
        }
    }

    /// The gradients of all weights, each as one row.
    pub fn gradients(&self, of: &Gradients) -> Vec<Option<Tensor<1>>> {
        let matrices = self.weights.iter().map(|w| w.grad(of).map(|g| g.flatten(0, 1)));
        matrices.chain(self.norms.iter().map(|w| w.grad(of))).collect()
    }

    /// The block applied to `x: [batch, length, width]`.
    pub fn forward(&self, x: Tensor<3>, with: Operations) -> Tensor<3> {
        let Config { width, heads, hidden } = self.config;
        let [batch, length, _] = x.dims();
        let [w_qkv, w_out, w_up, w_down] = self.weights.clone();
        let [first, second] = self.norms.clone();
        let qkv = with.linear(with.norm(x.clone(), first), w_qkv);
        let part = |i: usize| {
            let part = qkv.clone().narrow(2, i * width, width);
            part.reshape([batch, length, heads, width / heads]).swap_dims(1, 2)
        };
        let (q, k) = (self.rotated(part(0)), self.rotated(part(1)));
        let mixed = with.attention(q, k, part(2), ((width / heads) as f32).powf(-0.5));
        let mixed = mixed.swap_dims(1, 2).reshape([batch, length, width]);
        let x = x + with.linear(mixed, w_out);
        let up = with.linear(with.norm(x.clone(), second), w_up);
        let gated = silu(up.clone().narrow(2, 0, hidden)) * up.narrow(2, hidden, hidden);
        x + with.linear(gated, w_down)
    }

    fn rotated(&self, x: Tensor<4>) -> Tensor<4> {
        let half = x.dims()[3] / 2;
        let [cos, sin] = self.angles.clone();
        let (a, b) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
        let low = a.clone() * cos.clone() - b.clone() * sin.clone();
        Tensor::cat(vec![low, b * cos + a * sin], 3)
    }
}

/// A weight in this type, as the start of a graph.
fn leaf<const D: usize>(w: Tensor<D>, dtype: DType) -> Tensor<D> {
    let w = w.cast(dtype).detach();
    if w.is_autodiff() { w.require_grad() } else { w }
}

impl Operations {
    fn linear(self, x: Tensor<3>, w: Tensor<2>) -> Tensor<3> {
        match self {
            Operations::Kernels => crate::linear(x, w),
            Operations::Burn => module::linear(x, w.transpose(), None),
        }
    }

    fn norm(self, x: Tensor<3>, w: Tensor<1>) -> Tensor<3> {
        match self {
            Operations::Kernels => crate::rms_norm(x, w, EPS),
            // As `burn_nn::RmsNorm` computes it.
            Operations::Burn => {
                let dtype = x.dtype();
                let rms = (x.clone().cast(DType::F32).square().mean_dim(2) + EPS).sqrt();
                (x / rms.cast(dtype)) * w.unsqueeze()
            }
        }
    }

    fn attention(self, q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, scale: f32) -> Tensor<4> {
        match self {
            Operations::Kernels => crate::attention(q, k, v, scale),
            Operations::Burn => {
                let options = AttentionModuleOptions { scale: Some(scale.into()), softcap: None, is_causal: true };
                module::attention(q, k, v, None, None, options)
            }
        }
    }
}

//! A block of a transformer (norms, causal attention with rotary positions, a gated layer), with operations of candle or of this crate.

use crate::Kernels;
use candle_core::{D, DType, Device, Result, Tensor, Var};

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
#[derive(Copy, Clone)]
pub enum Operations<'a> {
    /// candle's operations, fused where it has them. Those have no gradients.
    Candle,
    /// candle's operations that have gradients.
    CandleWithGradients,
    /// The kernels of this crate.
    Kernels(&'a Kernels),
}

/// The weights of a block.
pub struct Block {
    config: Config,
    /// Of queries, keys and values, one below another; of the result; of the gate, one above what it scales; of the way back.
    weights: [Var; 4],
    norms: [Var; 2],
    /// Cosines and sines of the rotary positions.
    angles: (Tensor, Tensor),
}

const EPS: f32 = 1e-6;

impl Block {
    /// Random weights for sequences of `length` tokens.
    ///
    /// # Errors
    /// The device has no memory for them.
    pub fn random(config: Config, length: usize, dtype: DType, device: &Device) -> Result<Block> {
        let Config { width, hidden, heads } = config;
        let matrix = |rows: usize, columns: usize| -> Result<Var> {
            let deviation = (columns as f32).powf(-0.5);
            Var::from_tensor(&Tensor::randn(0f32, deviation, (rows, columns), device)?.to_dtype(dtype)?)
        };
        let norm = || Var::from_tensor(&Tensor::rand(0.5f32, 1.5, width, device)?.to_dtype(dtype)?);
        let half = width / heads / 2;
        let frequencies: Vec<f32> = (0..half).map(|i| 10000f32.powf(-(i as f32) / half as f32)).collect();
        let positions: Vec<f32> = (0..length).map(|i| i as f32).collect();
        let angles = Tensor::new(positions, device)?
            .reshape((length, 1))?
            .matmul(&Tensor::new(frequencies, device)?.reshape((1, half))?)?;
        Ok(Block {
            config,
            weights: [
                matrix(3 * width, width)?,
                matrix(width, width)?,
                matrix(2 * hidden, width)?,
                matrix(width, hidden)?,
            ],
            norms: [norm()?, norm()?],
            angles: (angles.cos()?.to_dtype(dtype)?, angles.sin()?.to_dtype(dtype)?),
        })
    }

    /// The same weights in another type.
    ///
    /// # Errors
    /// The device has no memory for them.
    pub fn to_dtype(&self, dtype: DType) -> Result<Block> {
        let var = |v: &Var| Var::from_tensor(&v.as_tensor().to_dtype(dtype)?);
        let [a, b, c, d] = &self.weights;
        let [e, f] = &self.norms;
        Ok(Block {
            config: self.config,
            weights: [var(a)?, var(b)?, var(c)?, var(d)?],
            norms: [var(e)?, var(f)?],
            angles: (self.angles.0.to_dtype(dtype)?, self.angles.1.to_dtype(dtype)?),
        })
    }

    /// All weights.
    pub fn weights(&self) -> Vec<&Var> {
        self.weights.iter().chain(&self.norms).collect()
    }

    /// The block applied to `x: [batch, length, width]`.
    ///
    /// # Errors
    /// Shapes or types do not fit.
    pub fn forward(&self, x: &Tensor, with: Operations<'_>) -> Result<Tensor> {
        let Config { width, heads, hidden } = self.config;
        let (batch, length, _) = x.dims3()?;
        let [w_qkv, w_out, w_up, w_down] = &self.weights;
        let qkv = with.linear(&with.norm(x, &self.norms[0])?, w_qkv)?;
        let part = |i: usize| -> Result<Tensor> {
            qkv.narrow(2, i * width, width)?.reshape((batch, length, heads, width / heads))?.transpose(1, 2)
        };
        let (q, k) = (self.rotated(&part(0)?)?, self.rotated(&part(1)?)?);
        let mixed = with.attention(&q, &k, &part(2)?, ((width / heads) as f32).powf(-0.5))?;
        let mixed = mixed.transpose(1, 2)?.reshape((batch, length, width))?;
        let x = (x + with.linear(&mixed, w_out)?)?;
        let up = with.linear(&with.norm(&x, &self.norms[1])?, w_up)?;
        let gated = (up.narrow(2, 0, hidden)?.silu()? * up.narrow(2, hidden, hidden)?)?;
        x + with.linear(&gated, w_down)?
    }

    fn rotated(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::rotary_emb::rope_slow(&x.contiguous()?, &self.angles.0, &self.angles.1)
    }
}

impl Operations<'_> {
    fn linear(self, x: &Tensor, w: &Tensor) -> Result<Tensor> {
        match self {
            Operations::Kernels(kernels) => kernels.linear(x, w),
            Operations::Candle | Operations::CandleWithGradients => {
                let (batch, length, width) = x.dims3()?;
                x.reshape((batch * length, width))?.matmul(&w.t()?)?.reshape((batch, length, w.dim(0)?))
            }
        }
    }

    fn norm(self, x: &Tensor, w: &Tensor) -> Result<Tensor> {
        match self {
            Operations::Kernels(kernels) => kernels.rms_norm(x, w, EPS),
            Operations::Candle => candle_nn::ops::rms_norm(&x.contiguous()?, w, EPS),
            Operations::CandleWithGradients => candle_nn::ops::rms_norm_slow(x, w, EPS),
        }
    }

    fn attention(self, q: &Tensor, k: &Tensor, v: &Tensor, scale: f32) -> Result<Tensor> {
        if let Operations::Kernels(kernels) = self {
            return kernels.attention(q, k, v, scale);
        }
        let length = q.dim(2)?;
        let behind: Vec<f32> =
            (0..length * length).map(|i| if i % length > i / length { f32::NEG_INFINITY } else { 0.0 }).collect();
        let mask = Tensor::from_vec(behind, (length, length), q.device())?.to_dtype(q.dtype())?;
        let scores = (q.contiguous()?.matmul(&k.transpose(2, 3)?.contiguous()?)? * f64::from(scale))?;
        let scores = scores.broadcast_add(&mask)?;
        let weights = match self {
            Operations::Candle => candle_nn::ops::softmax_last_dim(&scores)?,
            _ => candle_nn::ops::softmax(&scores, D::Minus1)?,
        };
        weights.matmul(&v.contiguous()?)
    }
}

//! The examples of fused products compared with plain loops in double precision.

use crate::loops::sums;
use crate::problem::{Run, Tensor};

/// The value of an element.
type Element<'a> = Box<dyn Fn(i64, i64) -> f64 + 'a>;

/// A formula.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Fusion {
    /// `Y = silu(X·gate) * (X·up)`.
    Swiglu,
    /// `D = (A·B)·C`.
    BackToBack,
    /// `C`, of each row of `scale * A·B` the softmax.
    Softmax,
    /// `C = w * y / sqrt(mean(y * y) + eps)` of each row `y` of `A·B`.
    RmsNorm,
    /// `Y = X·W + Z·B`.
    Lora,
    /// `C = A·B`, `B = (W - zero) * scale`; without a tensor `zero` that is 0.
    Weights,
    /// `C = A·B`, whose factors have a scale for each row and 128 elements of A, and for each 128 x 128 of B.
    Scaled,
    /// `D = q(H·C)`, `H = q(A·B)`: in bytes, each with its bias, factors and zero point.
    Requantised,
}

/// A sum of products of bytes as a byte: with a bias, times the factor of its channel in f32, rounded to even, and saturated.
fn requantised(sum: f64, (bias, scale): (f64, f64), zero: f64) -> f64 {
    let scaled = (sum + bias) as f32 * scale as f32;
    f64::from(scaled.round_ties_even() + zero as f32).clamp(-128.0, 127.0)
}

impl Fusion {
    /// The formula called `name`.
    pub fn from_name(name: &str) -> Option<Fusion> {
        Some(match name {
            "swiglu" => Fusion::Swiglu,
            "back_to_back" => Fusion::BackToBack,
            "gemm_softmax" => Fusion::Softmax,
            "gemm_rmsnorm" => Fusion::RmsNorm,
            "lora" => Fusion::Lora,
            "weights" => Fusion::Weights,
            "scaled" => Fusion::Scaled,
            "requantised" => Fusion::Requantised,
            _ => return None,
        })
    }

    /// The result, in its tensor.
    ///
    /// # Errors
    /// The tensors are not those of the formula.
    pub fn apply(self, before: &[Tensor], after: &mut [Tensor], run: &Run) -> Result<(), String> {
        let find = |name: &str| {
            let found = before.iter().position(|t| t.name == name && t.modes.len() == 2);
            found.ok_or_else(|| format!("the reference needs the matrix {name}"))
        };
        let scalar = |name: &str, default: f64| run.value(name).unwrap_or(default);
        let of = |name: &str| find(name).map(|i| &before[i]);
        let (result, value): (&str, Element<'_>) = match self {
            Fusion::Swiglu => {
                let (gate, up) = (sums(of("X")?, of("gate")?), sums(of("X")?, of("up")?));
                ("Y", Box::new(move |i, j| gate(i, j) / (1.0 + (-gate(i, j)).exp()) * up(i, j)))
            }
            Fusion::BackToBack => {
                let (c, n) = (of("C")?, of("B")?.extent(1));
                let first = sums(of("A")?, of("B")?);
                ("D", Box::new(move |i, j| (0..n).map(|k| first(i, k) * c.data[c.at(k, j)]).sum()))
            }
            Fusion::Softmax => {
                let (y, n, scale) = (sums(of("A")?, of("B")?), of("B")?.extent(1), scalar("scale", 1.0));
                let weight = move |i: i64, j: i64| {
                    let most = (0..n).map(|k| scale * y(i, k)).fold(f64::NEG_INFINITY, f64::max);
                    let all: f64 = (0..n).map(|k| (scale * y(i, k) - most).exp()).sum();
                    (scale * y(i, j) - most).exp() / all
                };
                ("C", Box::new(weight))
            }
            Fusion::RmsNorm => {
                let (y, w, n, eps) = (sums(of("A")?, of("B")?), of("w")?, of("B")?.extent(1), scalar("eps", 1e-5));
                let normal = move |i: i64, j: i64| {
                    let mean = (0..n).map(|k| y(i, k) * y(i, k)).sum::<f64>() / n as f64;
                    y(i, j) / (mean + eps).sqrt() * w.data[w.at(0, j)]
                };
                ("C", Box::new(normal))
            }
            Fusion::Lora => {
                let (layer, low) = (sums(of("X")?, of("W")?), sums(of("Z")?, of("B")?));
                ("Y", Box::new(move |i, j| layer(i, j) + low(i, j)))
            }
            Fusion::Weights => {
                let (a, w, scale, zero) = (of("A")?, of("W")?, of("scale")?, of("zero").ok());
                // A row of them for each group, of a power of two of weights, or for each weight.
                let (n, rows) = (w.extent(0), scale.extent(0));
                let group = (0..32).map(|i| 1 << i).find(|group| (n + group - 1) / group == rows).unwrap_or(1);
                let weight = move |k: i64, j: i64| {
                    let zero = zero.map_or(0.0, |zero| zero.data[zero.at(k / group, j)]);
                    (w.data[w.at(k, j)] - zero) * scale.data[scale.at(k / group, j)]
                };
                ("C", Box::new(move |i, j| (0..w.extent(0)).map(|k| a.data[a.at(i, k)] * weight(k, j)).sum()))
            }
            Fusion::Scaled => {
                let (a, b, of_a, of_b) = (of("A")?, of("B")?, of("scale_a")?, of("scale_b")?);
                let term = move |i, k, j| {
                    let scale = of_a.data[of_a.at(i, k / 128)] * of_b.data[of_b.at(k / 128, j / 128)];
                    scale * a.data[a.at(i, k)] * b.data[b.at(k, j)]
                };
                ("C", Box::new(move |i, j| (0..b.extent(0)).map(|k| term(i, k, j)).sum()))
            }
            Fusion::Requantised => {
                let (first, c, n) = (sums(of("A")?, of("B")?), of("C")?, of("B")?.extent(1));
                let channel = |bias: &str, scale: &str| {
                    let vector = |name: &str| {
                        let found = before.iter().find(|t| t.name == name && t.modes.len() == 1);
                        found.ok_or_else(|| format!("the reference needs the vector {name}"))
                    };
                    let (bias, scale) = (vector(bias)?, vector(scale)?);
                    Ok::<_, String>(move |j: i64| (bias.data[j as usize], scale.data[j as usize]))
                };
                let (of_h, of_d) = (channel("bias_h", "scale_h")?, channel("bias_d", "scale_d")?);
                let (zero_h, zero_d) = (scalar("zero_h", 0.0), scalar("zero_d", 0.0));
                let hidden = move |i: i64, k: i64| requantised(first(i, k), of_h(k), zero_h);
                let sum = move |i: i64, j: i64| (0..n).map(|k| hidden(i, k) * c.data[c.at(k, j)]).sum();
                ("D", Box::new(move |i, j| requantised(sum(i, j), of_d(j), zero_d)))
            }
        };
        let result = &mut after[find(result)?];
        for i in 0..result.extent(0) {
            for j in 0..result.extent(1) {
                let at = result.at(i, j);
                result.data[at] = value(i, j);
            }
        }
        Ok(())
    }
}

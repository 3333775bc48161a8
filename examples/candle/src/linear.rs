//! `Y = X·Wᵀ` and its gradients.

use crate::Kernels;
use crate::binary::{Binary, first, two};
use crate::memory::{Inputs, Made, Memory, Operation, failed};
use candle_core::{Result, Tensor, bail};
use half::bf16;

/// The forward pass.
pub(crate) struct Linear(pub Kernels);

/// A gradient.
enum Gradient {
    /// `dX = dY·W`.
    OfX,
    /// `dW = dYᵀ·X`.
    OfW,
}

impl Operation for Linear {
    fn run<M: Memory>(&self, kernels: &Kernels, memory: &M, inputs: &Inputs<'_, M>) -> Made<M> {
        let [x, w] = inputs else { bail!("a product has two operands") };
        let ([m, _], [n, _]) = (two(x.1)?, two(w.1)?);
        let mut y = memory.empty::<bf16>(m * n)?;
        let (a, b) = (memory.read::<bf16>(*x)?, memory.read::<bf16>(*w)?);
        let (a, b) = (memory.tensor(&a, x.1)?, memory.tensor(&b, w.1)?.transposed());
        kernels.all.linear.with(a, b, memory.written(&mut y, [m, n])).launch(memory.stream()).map_err(failed)?;
        Ok(vec![(memory.store(y), (m, n).into())])
    }
}

impl Operation for Gradient {
    fn run<M: Memory>(&self, kernels: &Kernels, memory: &M, inputs: &Inputs<'_, M>) -> Made<M> {
        let [dy, other] = inputs else { bail!("a product has two operands") };
        let ([m, n], [_, k]) = (two(dy.1)?, two(other.1)?);
        let (g, o) = (memory.read::<bf16>(*dy)?, memory.read::<bf16>(*other)?);
        let (g, o) = (memory.tensor(&g, dy.1)?, memory.tensor(&o, other.1)?);
        let rows = if matches!(self, Gradient::OfX) { m } else { n };
        let mut made = memory.empty::<bf16>(rows * k)?;
        let out = memory.written(&mut made, [rows, k]);
        match self {
            Gradient::OfX => kernels.all.linear_dx.with(g, o, out).launch(memory.stream()),
            Gradient::OfW => kernels.all.linear_dw.with(g.transposed(), o, out).launch(memory.stream()),
        }
        .map_err(failed)?;
        Ok(vec![(memory.store(made), (rows, k).into())])
    }
}

impl Binary for Linear {
    const NAME: &'static str = "tilec-linear";

    fn kernels(&self) -> &Kernels {
        &self.0
    }

    fn gradients(&self, x: &Tensor, w: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let dx = self.0.apply(&Gradient::OfX, &[dy, w])?;
        let dw = self.0.apply(&Gradient::OfW, &[dy, x])?;
        Ok((Some(first(dx)?), Some(first(dw)?)))
    }
}

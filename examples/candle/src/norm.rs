//! RMS norm and its gradients.

use crate::Kernels;
use crate::binary::{Binary, two};
use crate::memory::{Inputs, Made, Memory, Operation, failed};
use candle_core::{Result, Tensor, bail};
use half::bf16;

/// Slices of rows whose parts of the gradient of the weights are summed at last: a few times the multiprocessors of a large GPU.
const SLICES: u32 = 528;

/// The forward pass.
pub(crate) struct RmsNorm {
    pub kernels: Kernels,
    pub eps: f32,
}

/// The gradients of X and W.
struct Gradients(f32);

impl Operation for RmsNorm {
    fn run<M: Memory>(&self, kernels: &Kernels, memory: &M, inputs: &Inputs<'_, M>) -> Made<M> {
        let [x, w] = inputs else { bail!("a norm has rows and weights") };
        let [m, n] = two(x.1)?;
        let mut y = memory.empty::<bf16>(m * n)?;
        let (rows, weights) = (memory.read::<bf16>(*x)?, memory.read::<bf16>(*w)?);
        let (rows, weights) = (memory.tensor(&rows, x.1)?, memory.tensor(&weights, w.1)?);
        let launch = kernels.all.rms_norm.with(rows, weights, memory.written(&mut y, [m, n])).eps(self.eps);
        launch.launch(memory.stream()).map_err(failed)?;
        Ok(vec![(memory.store(y), (m, n).into())])
    }
}

impl Operation for Gradients {
    fn run<M: Memory>(&self, kernels: &Kernels, memory: &M, inputs: &Inputs<'_, M>) -> Made<M> {
        let [x, dy, w] = inputs else { bail!("rows, their gradient and weights") };
        let [m, n] = two(x.1)?;
        let slices = u32::try_from(m).map_or(SLICES, |m| SLICES.min(m));
        let (mut dx, mut dw) = (memory.empty::<bf16>(m * n)?, memory.empty::<bf16>(n)?);
        let (a, b, c) = (memory.read::<bf16>(*x)?, memory.read::<bf16>(*dy)?, memory.read::<bf16>(*w)?);
        let (a, b, c) = (memory.tensor(&a, x.1)?, memory.tensor(&b, dy.1)?, memory.tensor(&c, w.1)?);
        let (x, w) = (memory.written(&mut dx, [m, n]), memory.written(&mut dw, [n]));
        let launch = kernels.all.rms_norm_backward.with(a, b, c, x, w, slices).eps(self.0);
        launch.launch(memory.stream()).map_err(failed)?;
        Ok(vec![(memory.store(dx), (m, n).into()), (memory.store(dw), n.into())])
    }
}

impl Binary for RmsNorm {
    const NAME: &'static str = "tilec-rms-norm";

    fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    fn gradients(&self, x: &Tensor, w: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let mut made = self.kernels.apply(&Gradients(self.eps), &[x, dy, w])?.into_iter();
        Ok((made.next(), made.next()))
    }
}

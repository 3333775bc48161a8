//! Causal attention and its gradients.

use crate::Kernels;
use crate::binary::first;
use crate::kernels::packed;
use crate::memory::{Inputs, Made, Memory, Operation, failed};
use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Storage, Tensor, bail};
use half::bf16;
use std::sync::OnceLock;

/// The forward pass. It keeps, of every query, the logarithm of the sum of its weights for the backward pass.
pub(crate) struct Attention {
    kernels: Kernels,
    scale: f32,
    logarithms: OnceLock<Tensor>,
}

/// The gradients of Q, K and V.
struct Gradients(f32);

/// Weights are powers of two.
fn in_powers_of_two(scale: f32) -> f32 {
    scale * std::f32::consts::LOG2_E
}

impl Attention {
    pub(crate) fn new(kernels: Kernels, scale: f32) -> Attention {
        Attention { kernels, scale, logarithms: OnceLock::new() }
    }

    /// The result alone.
    fn kept<S>(&self, made: Vec<(S, Shape)>, storage: impl Fn(S) -> Storage) -> Result<(S, Shape)> {
        let mut made = made.into_iter();
        let result = made.next();
        if let Some((logarithms, shape)) = made.next() {
            // An operation is applied once, so that this is the first time.
            let _ = self.logarithms.set(Tensor::from_storage(storage(logarithms), shape, BackpropOp::none(), false));
        }
        first(result.into_iter().collect())
    }
}

impl Operation for Attention {
    fn run<M: Memory>(&self, kernels: &Kernels, memory: &M, inputs: &Inputs<'_, M>) -> Made<M> {
        let [q, k, v] = inputs else { bail!("attention has queries, keys and values") };
        let (z, h, l, d) = q.1.shape().dims4()?;
        let (mut o, mut logarithms) = (memory.empty::<bf16>(z * h * l * d)?, memory.empty::<f32>(z * h * l)?);
        let (a, b, c) = (memory.read::<bf16>(*q)?, memory.read::<bf16>(*k)?, memory.read::<bf16>(*v)?);
        let (a, b, c) = (memory.tensor(&a, q.1)?, memory.tensor(&b, k.1)?, memory.tensor(&c, v.1)?);
        let (out, sums) = (memory.written(&mut o, [z, h, l, d]), memory.written(&mut logarithms, [z, h, l, 1]));
        let launch = kernels.all.attention.with(a, b, c, out, sums).scale_log2(in_powers_of_two(self.scale));
        launch.launch(memory.stream()).map_err(failed)?;
        Ok(vec![(memory.store(o), (z, h, l, d).into()), (memory.store(logarithms), (z, h, l, 1).into())])
    }
}

impl Operation for Gradients {
    fn run<M: Memory>(&self, kernels: &Kernels, memory: &M, inputs: &Inputs<'_, M>) -> Made<M> {
        let [q, k, v, o, grad, logarithms] = inputs else { bail!("attention, its result, gradient and logarithms") };
        let (z, h, l, d) = q.1.shape().dims4()?;
        let empty = || memory.empty::<bf16>(z * h * l * d);
        let (mut dq, mut dk, mut dv) = (empty()?, empty()?, empty()?);
        let sums = memory.read::<f32>(*logarithms)?;
        let (a, b, c) = (memory.read::<bf16>(*q)?, memory.read::<bf16>(*k)?, memory.read::<bf16>(*v)?);
        let (r, g) = (memory.read::<bf16>(*o)?, memory.read::<bf16>(*grad)?);
        let shape = [z, h, l, d];
        kernels
            .all
            .attention_backward
            .with(
                memory.tensor(&r, o.1)?,
                memory.tensor(&g, grad.1)?,
                memory.tensor(&sums, logarithms.1)?,
                memory.tensor(&a, q.1)?,
                memory.tensor(&b, k.1)?,
                memory.tensor(&c, v.1)?,
                memory.written(&mut dk, shape),
                memory.written(&mut dv, shape),
                memory.written(&mut dq, shape),
            )
            .scale_log2(in_powers_of_two(self.0))
            .launch(memory.stream())
            .map_err(failed)?;
        Ok([dq, dk, dv].map(|own| (memory.store(own), (z, h, l, d).into())).into())
    }
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "tilec-attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_at: &Layout,
        k: &CpuStorage,
        k_at: &Layout,
        v: &CpuStorage,
        v_at: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.kept(self.kernels.on_cpu(self, &[(q, q_at), (k, k_at), (v, v_at)])?, Storage::Cpu)
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        q: &candle_core::CudaStorage,
        q_at: &Layout,
        k: &candle_core::CudaStorage,
        k_at: &Layout,
        v: &candle_core::CudaStorage,
        v_at: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        self.kept(self.kernels.on_cuda(self, &[(q, q_at), (k, k_at), (v, v_at)])?, Storage::Cuda)
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        o: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(logarithms) = self.logarithms.get() else { bail!("the gradient of attention before its result") };
        let tensors = [q, k, v, o, &packed(grad)?, logarithms];
        let mut made = self.kernels.apply(&Gradients(self.scale), &tensors)?.into_iter();
        Ok((made.next(), made.next(), made.next()))
    }
}

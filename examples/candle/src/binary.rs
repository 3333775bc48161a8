//! Operations of two tensors, as candle applies them.

use crate::Kernels;
use crate::kernels::packed;
use crate::memory::Operation;
use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

/// An operation of two tensors with one result.
pub(crate) trait Binary: Operation {
    /// What candle calls it.
    const NAME: &'static str;

    /// With what it computes.
    fn kernels(&self) -> &Kernels;

    /// The gradients of both tensors, of that of the result, which is packed.
    fn gradients(&self, a: &Tensor, b: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)>;
}

/// It as an operation of candle.
pub(crate) struct Applied<O>(pub O);

impl<O: Binary> CustomOp2 for Applied<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn cpu_fwd(&self, a: &CpuStorage, a_at: &Layout, b: &CpuStorage, b_at: &Layout) -> Result<(CpuStorage, Shape)> {
        first(self.0.kernels().on_cpu(&self.0, &[(a, a_at), (b, b_at)])?)
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        a: &candle_core::CudaStorage,
        a_at: &Layout,
        b: &candle_core::CudaStorage,
        b_at: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        first(self.0.kernels().on_cuda(&self.0, &[(a, a_at), (b, b_at)])?)
    }

    fn bwd(&self, a: &Tensor, b: &Tensor, _result: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        self.0.gradients(a, b, &packed(grad)?)
    }
}

/// The extents of a matrix.
pub(crate) fn two(layout: &Layout) -> Result<[usize; 2]> {
    let (rows, columns) = layout.shape().dims2()?;
    Ok([rows, columns])
}

/// The only one.
pub(crate) fn first<S>(made: Vec<S>) -> Result<S> {
    match made.into_iter().next() {
        Some(first) => Ok(first),
        None => bail!("an operation has a result"),
    }
}

//! The kernels, loaded for a device, and what they are called with.

use crate::binary::Applied;
use crate::memory::{Input, Operation, Simulated, failed};
use crate::{attention, linear, norm};
use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, DType, Device, Error, Result, Shape, Storage, Tensor, bail};
use std::sync::Arc;

/// Launchers that the build script wrote.
pub(crate) mod made {
    #![allow(clippy::too_many_arguments, reason = "a launcher has an argument for each tensor")]
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// All kernels of this crate, loaded for one device. Clones share them.
#[derive(Clone)]
pub struct Kernels {
    pub(crate) all: Arc<made::Launchers>,
    pub(crate) memory: AnyMemory,
}

/// Where the tensors of a device lie.
#[derive(Clone)]
pub(crate) enum AnyMemory {
    Simulated(Simulated),
    #[cfg(feature = "cuda")]
    Cuda(crate::memory::cuda::OnDevice),
}

impl Kernels {
    /// Loads the kernels: for the simulator of an H200 where the device is the CPU, else for that GPU.
    ///
    /// # Errors
    /// The device runs none of the targets, or is neither a CPU nor a GPU of NVIDIA.
    pub fn load(device: &Device) -> Result<Kernels> {
        match device {
            Device::Cpu => Kernels::simulated("sm_90a"),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => {
                let memory = crate::memory::cuda::OnDevice::new(device);
                Ok(Kernels {
                    all: Arc::new(made::Launchers::load(&memory.device()?).map_err(failed)?),
                    memory: AnyMemory::Cuda(memory),
                })
            }
            other => bail!("kernels of tilec run on a GPU of NVIDIA and on the CPU, not on {:?}", other.location()),
        }
    }

    /// Loads the kernels for tensors of the CPU, to be simulated on a target (`sm_80`, `sm_90a`).
    ///
    /// # Errors
    /// There is no such target, or there are no kernels for it.
    pub fn simulated(target: &str) -> Result<Kernels> {
        let device = tilec_launch::Device::simulator(target).map_err(failed)?;
        Ok(Kernels {
            all: Arc::new(made::Launchers::load(&device).map_err(failed)?),
            memory: AnyMemory::Simulated(Simulated),
        })
    }

    /// `Y = X·Wᵀ`, with gradients: X of bf16 `[.., K]`, W of bf16 `[N, K]`, Y of bf16 `[.., N]`. Sums are f32.
    ///
    /// # Errors
    /// Another type, shapes that do not fit, or K or N no multiple of 8.
    pub fn linear(&self, x: &Tensor, w: &Tensor) -> Result<Tensor> {
        let (rows, _) = rows_of(x)?;
        let y = rows.apply_op2(&packed(w)?, Applied(linear::Linear(self.clone())))?;
        let mut shape = x.dims().to_vec();
        shape.pop();
        shape.push(w.dim(0)?);
        y.reshape(shape)
    }

    /// `Y = X / sqrt(mean of X² + eps) * W` along the last dimension, with gradients: X and Y of bf16 `[.., N]`, W of bf16 `[N]`.
    ///
    /// # Errors
    /// Another type, shapes that do not fit, N no multiple of 8, or N beyond 8192.
    pub fn rms_norm(&self, x: &Tensor, w: &Tensor, eps: f32) -> Result<Tensor> {
        let (rows, _) = rows_of(x)?;
        rows.apply_op2(&packed(w)?, Applied(norm::RmsNorm { kernels: self.clone(), eps }))?.reshape(x.shape())
    }

    /// Causal attention, with gradients: Q, K, V and the result of bf16 `[batch, heads, length, 128]`.
    ///
    /// # Errors
    /// Another type, or shapes that do not fit.
    pub fn attention(&self, q: &Tensor, k: &Tensor, v: &Tensor, scale: f32) -> Result<Tensor> {
        packed(q)?.apply_op3(&packed(k)?, &packed(v)?, attention::Attention::new(self.clone(), scale))
    }

    /// What an operation computes from tensors, which nothing is differentiated through.
    ///
    /// # Errors
    /// What the operation says, or a tensor is not on the device of the kernels.
    pub(crate) fn apply(&self, operation: &impl Operation, tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        let elsewhere = || Error::Msg("a tensor is not on the device of the kernels".to_owned());
        let guards: Vec<_> = tensors.iter().map(|t| t.storage_and_layout()).collect();
        let tensor = |(storage, shape)| Tensor::from_storage(storage, shape, BackpropOp::none(), false);
        match &self.memory {
            AnyMemory::Simulated(memory) => {
                let inputs = guards.iter().map(|(guard, layout)| match &**guard {
                    Storage::Cpu(storage) => Ok((storage, *layout)),
                    _ => Err(elsewhere()),
                });
                let made = operation.run(self, memory, &inputs.collect::<Result<Vec<_>>>()?)?;
                Ok(made.into_iter().map(|(storage, shape)| tensor((Storage::Cpu(storage), shape))).collect())
            }
            #[cfg(feature = "cuda")]
            AnyMemory::Cuda(memory) => {
                let inputs = guards.iter().map(|(guard, layout)| match &**guard {
                    Storage::Cuda(storage) => Ok((storage, *layout)),
                    _ => Err(elsewhere()),
                });
                let made = operation.run(self, memory, &inputs.collect::<Result<Vec<_>>>()?)?;
                Ok(made.into_iter().map(|(storage, shape)| tensor((Storage::Cuda(storage), shape))).collect())
            }
        }
    }

    /// The same for storages of the CPU, as the forward pass of a custom operation has them.
    pub(crate) fn on_cpu(
        &self,
        operation: &impl Operation,
        inputs: &[Input<'_, CpuStorage>],
    ) -> Result<Vec<(CpuStorage, Shape)>> {
        match &self.memory {
            AnyMemory::Simulated(memory) => operation.run(self, memory, inputs),
            #[cfg(feature = "cuda")]
            AnyMemory::Cuda(_) => bail!("a tensor is on the CPU, and the kernels are loaded for a GPU"),
        }
    }

    /// The same for storages of a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_cuda(
        &self,
        operation: &impl Operation,
        inputs: &[Input<'_, candle_core::CudaStorage>],
    ) -> Result<Vec<(candle_core::CudaStorage, Shape)>> {
        match &self.memory {
            AnyMemory::Cuda(memory) => operation.run(self, memory, inputs),
            AnyMemory::Simulated(_) => bail!("a tensor is on a GPU, and the kernels are loaded for the simulator"),
        }
    }
}

/// As rows of the last dimension, which are packed; and their length.
fn rows_of(x: &Tensor) -> Result<(Tensor, usize)> {
    let n = x.dim(candle_core::D::Minus1)?;
    Ok((packed(&x.reshape(((), n))?)?, n))
}

/// With elements of the last dimension beside one another, and of bf16. Other dimensions may have any strides of whole 16 bytes.
pub(crate) fn packed(x: &Tensor) -> Result<Tensor> {
    if x.dtype() != DType::BF16 {
        bail!("expected bf16, found {:?}", x.dtype());
    }
    let layout = x.layout();
    let steps =
        layout.stride().split_last().is_none_or(|(last, rest)| *last == 1 && rest.iter().all(|s| s % 8 == 0 && *s > 0));
    if steps && layout.start_offset().is_multiple_of(8) { Ok(x.clone()) } else { x.force_contiguous() }
}

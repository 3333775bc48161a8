//! A kernel on a device.

use super::device::{Code, Module};
use super::launch_cache::Checked;
#[cfg(feature = "cuda")]
use super::on_cuda;
#[cfg(feature = "sim")]
use super::on_simulator;
use super::sequence::Steps;
use crate::contract::number::Number;
use crate::error::LaunchError;
use crate::stream::StreamRef;
use crate::tensor::Argument;
use std::sync::{Mutex, PoisonError};

/// A kernel, or a program of several, ready to be launched.
pub struct Kernel {
    steps: Steps,
    checked: Mutex<Checked>,
    backend: Backend,
}

enum Backend {
    #[cfg(feature = "cuda")]
    Cuda(on_cuda::Loaded),
    #[cfg(feature = "sim")]
    Simulator(on_simulator::Loaded),
}

impl Kernel {
    /// Gets a kernel, a kernel with variants or a program from a module. Launches pass the tensors and values that are named
    /// here, in this order. Sizes and strides of these tensors follow from them; other strides
    /// are those of packed tensors, other scalars have their defaults.
    ///
    /// # Errors
    /// There is no such kernel, it has no such tensor or value, or needs another value that a launch does not pass.
    pub fn load(module: &Module, name: &str, tensors: &[&str], values: &[&str]) -> Result<Kernel, LaunchError> {
        let steps = Steps::new(module.launch_file(), name, tensors, values)?;
        let backend = match &module.code {
            #[cfg(feature = "cuda")]
            Code::Cuda(device, code) => Backend::Cuda(on_cuda::Loaded::new(device, code, &steps)?),
            #[cfg(feature = "sim")]
            Code::Simulator(program) => Backend::Simulator(on_simulator::Loaded::new(program, module.target())?),
        };
        Ok(Kernel { steps, checked: Mutex::default(), backend })
    }

    /// The name it was loaded by.
    pub fn name(&self) -> &str {
        &self.steps.name
    }

    /// Queues a launch on a stream of the device, or runs it on the simulator. `values` and `tensors` are those named
    /// when the kernel was loaded; a scalar without a value has its default. If any check fails, nothing is launched.
    ///
    /// Scratch memory and temporaries are allocated at the first launch on a stream, and by a launch that needs more
    /// than previous ones. Do this before a stream is captured. Each kernel and stream has its own, so launches on two
    /// streams may run concurrently. A captured graph uses those of the stream from which it was captured. It must not
    /// run concurrently with launches on that stream, or with itself.
    ///
    /// # Errors
    /// If a tensor or value does not fit, a precondition does not hold, or the device refuses.
    pub fn launch<'s>(
        &self,
        stream: impl Into<StreamRef<'s>>,
        values: &[Option<Number>],
        tensors: &mut [Argument<'_>],
    ) -> Result<(), LaunchError> {
        match &self.backend {
            #[cfg(feature = "cuda")]
            Backend::Cuda(loaded) => {
                let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
                let known = checked.get(&self.steps, values, tensors)?;
                loaded.launch(&self.steps, known, tensors, stream.into())
            }
            #[cfg(feature = "sim")]
            Backend::Simulator(loaded) => {
                let _ = stream;
                let (values, chosen) = self.steps.choose(values, tensors)?;
                loaded.launch(&self.steps, &chosen, &values, tensors)
            }
        }
    }

    /// How many clusters of the kernel the device runs at once: the best size if clusters share the work (`grid (s: S)`), for one
    /// wave. A block of a kernel without clusters counts as a cluster of one. At least 1, even if there is nothing to launch.
    ///
    /// The result is for the variant that a launch with these values and tensors would use. Sizes that are not extents of a tensor, such
    /// as this `S`, count as 1 if they have no value, or 0. For a program the result is for the first launch whose grid depends on such a
    /// size, else for the first launch. If the grid has other axes, divide by the number of clusters along them.
    ///
    /// On a GPU the driver computes it, once for each variant. The simulator has 4 multiprocessors with one block each.
    ///
    /// # Errors
    /// As for [`Kernel::check`], or no cluster fits on the device.
    pub fn max_active_clusters(&self, values: &[Option<Number>], tensors: &[Argument<'_>]) -> Result<u32, LaunchError> {
        let Some((step, case)) = self.steps.shared(values, tensors)? else { return Ok(1) };
        match &self.backend {
            #[cfg(feature = "cuda")]
            Backend::Cuda(loaded) => Ok(loaded.max_active_clusters(step, case)?),
            #[cfg(feature = "sim")]
            Backend::Simulator(_) => Ok(crate::simulator::max_active_clusters(&self.steps.steps[step][case].contract)),
        }
    }

    /// Checks a launch without executing it: shapes, types, alignment, preconditions. Returns the entries that would be launched.
    ///
    /// # Errors
    /// As for [`Kernel::launch`], without errors of the device.
    pub fn check(&self, values: &[Option<Number>], tensors: &[Argument<'_>]) -> Result<Vec<&str>, LaunchError> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let known = checked.get(&self.steps, values, tensors)?;
        Ok(self.steps.chosen(&known.chosen).map(|(plan, _)| plan.contract.entry.as_str()).collect())
    }
}

//! A kernel on a device.

use super::device::{Code, Module};
use super::known::Checked;
#[cfg(feature = "cuda")]
use super::on_cuda;
#[cfg(feature = "sim")]
use super::on_simulator;
use super::steps::Steps;
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
    /// Takes a kernel, a kernel with variants or a program from a module. Launches pass the tensors and values that are named
    /// here, in this order. Sizes and strides that are extents and strides of these tensors come from them; other strides
    /// are those of packed tensors, other scalars have their defaults.
    ///
    /// # Errors
    /// There is no such kernel, it has no such tensor or value, or takes something that would not be known at a launch.
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

    /// Queues a launch on a stream of the device, or runs it on the simulator. `values` and `tensors` are those that were named
    /// when it was loaded; a scalar without a value has its default. Nothing is launched unless all of it can be.
    ///
    /// Scratch memory and temporaries are allocated at the first launch on a stream, and by one that needs more of them than
    /// those before: let that happen before a stream is captured. They are of the kernel and the stream, so that launches on
    /// two streams may run at one time. A captured graph uses those of the stream that it was captured from: it must not run at
    /// one time with launches on that stream, or with itself.
    ///
    /// # Errors
    /// A tensor or value does not fit, a precondition does not hold, or the device refuses.
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

    /// Clusters of the kernel that the device runs at one time: the size to choose where clusters share the work (`grid (s: S)`), for one
    /// wave of them. A block of a kernel without clusters is a cluster of one. At least 1, also where there is nothing to launch.
    ///
    /// The answer is of the variant that a launch with these values and tensors would take. Sizes that are extents of no tensor, such
    /// as this `S`, count as 1 where they have no value, or 0. Of a program the answer is of the first launch whose grid depends on such a
    /// size, or of the first of all. Where the grid has other axes, divide by the number of clusters along them.
    ///
    /// On a GPU the driver is asked, once for each variant. On the simulator a multiprocessor, of which there are 4, has one block.
    ///
    /// # Errors
    /// As those of [`Kernel::check`], or the device has no room for a cluster.
    pub fn max_active_clusters(&self, values: &[Option<Number>], tensors: &[Argument<'_>]) -> Result<u32, LaunchError> {
        let Some((step, case)) = self.steps.shared(values, tensors)? else { return Ok(1) };
        match &self.backend {
            #[cfg(feature = "cuda")]
            Backend::Cuda(loaded) => Ok(loaded.max_active_clusters(step, case)?),
            #[cfg(feature = "sim")]
            Backend::Simulator(_) => Ok(crate::simulator::max_active_clusters(&self.steps.steps[step][case].contract)),
        }
    }

    /// Checks a launch without making it: shapes, types, alignment, preconditions. Gives the entries that would be launched.
    ///
    /// # Errors
    /// As those of [`Kernel::launch`], but for what the device refuses.
    pub fn check(&self, values: &[Option<Number>], tensors: &[Argument<'_>]) -> Result<Vec<&str>, LaunchError> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let known = checked.get(&self.steps, values, tensors)?;
        Ok(self.steps.chosen(&known.chosen).map(|(plan, _)| plan.contract.entry.as_str()).collect())
    }
}

//! Devices, and the image of a bundle for a device.

use crate::bundle::Bundle;
#[cfg(feature = "sim")]
use crate::bundle::architecture;
use crate::contract::LaunchFile;
use crate::error::LaunchError;
use std::sync::Arc;

/// Where kernels run.
#[derive(Clone)]
pub struct Device(Place);

#[derive(Clone)]
enum Place {
    #[cfg(feature = "cuda")]
    Cuda(Arc<crate::cuda::Device>),
    #[cfg(feature = "sim")]
    Simulator((u32, u32)),
}

impl Device {
    /// The GPU with this ordinal, in the driver's order. It uses the primary context, as do cudarc and the runtime API.
    ///
    /// # Errors
    /// There is no driver, or no such GPU.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32) -> Result<Device, LaunchError> {
        Ok(Device(Place::Cuda(Arc::new(crate::cuda::Device::open(ordinal)?))))
    }

    /// A simulated GPU with the architecture of `target` (`sm_80`, `sm_90a`), whose memory is the host's.
    ///
    /// # Errors
    /// There is no such target.
    #[cfg(feature = "sim")]
    pub fn simulator(target: &str) -> Result<Device, LaunchError> {
        let unknown = || LaunchError::Simulator(format!("`{target}` is no target"));
        let (of, _) = architecture(target).ok_or_else(unknown)?;
        Ok(Device(Place::Simulator((of / 10, of % 10))))
    }

    /// The compute capability: `(9, 0)` of an H100.
    pub fn compute_capability(&self) -> (u32, u32) {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Place::Cuda(device) => device.properties().compute_capability,
            #[cfg(feature = "sim")]
            Place::Simulator(cc) => *cc,
        }
    }

    /// The GPU with its memory and streams, if it is one.
    #[cfg(feature = "cuda")]
    pub fn as_cuda(&self) -> Option<&crate::cuda::Device> {
        match &self.0 {
            Place::Cuda(device) => Some(device),
            #[cfg(feature = "sim")]
            Place::Simulator(_) => None,
        }
    }
}

/// The image of a bundle that a device runs, loaded.
pub struct Module {
    file: LaunchFile,
    target: String,
    pub(super) code: Code,
}

pub(super) enum Code {
    #[cfg(feature = "cuda")]
    Cuda(Arc<crate::cuda::Device>, crate::cuda::Module),
    #[cfg(feature = "sim")]
    Simulator(Arc<tilec_sim::Program>),
}

impl Module {
    /// Loads the image of a bundle for the device: see [`Bundle::image`].
    ///
    /// # Errors
    /// The device runs none of the targets, or the driver refuses the image.
    pub fn load(device: &Device, bundle: &Bundle) -> Result<Module, LaunchError> {
        let image = bundle.image(device.compute_capability())?;
        let (file, ptx) = bundle.program(image.target)?;
        let code = match &device.0 {
            #[cfg(feature = "cuda")]
            Place::Cuda(device) => {
                let module = match image.cubin {
                    Some(cubin) => device.load_cubin(cubin)?,
                    None => device.load_ptx(ptx)?,
                };
                Code::Cuda(Arc::clone(device), module)
            }
            #[cfg(feature = "sim")]
            Place::Simulator(_) => {
                let program = tilec_sim::Program::parse(ptx);
                Code::Simulator(Arc::new(program.map_err(|e| LaunchError::Simulator(e.to_string()))?))
            }
        };
        Ok(Module { file, target: image.target.to_owned(), code })
    }

    /// The target of the loaded image.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The launch file of that target.
    pub fn launch_file(&self) -> &LaunchFile {
        &self.file
    }
}

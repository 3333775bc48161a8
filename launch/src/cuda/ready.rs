//! Launches of a function whose limits and parameters were checked once: each launch only sets the grid and calls the
//! driver.

use super::launch::{MAX_PARAM_BYTES, Shape};
use super::{Device, Function, Module, Stream};
use crate::contract::Contract;
use crate::cuda::context::{Context, CudaError};
use crate::stream::StreamRef;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};
use tilec_core::hardware::SMEM_WITHOUT_OPTIN;

/// Parameters that most kernels have at most; the addresses of more are allocated for each launch.
const USUAL_PARAMS: usize = 48;

impl StreamRef<'static> {
    /// A stream by its handle, a `CUstream` (of the runtime API: a `cudaStream_t`).
    ///
    /// # Safety
    /// The stream is alive while this is used, and one of the device on which it is used.
    pub unsafe fn from_raw(handle: *mut c_void) -> StreamRef<'static> {
        StreamRef::of(handle)
    }
}

impl<'s> From<&'s Stream> for StreamRef<'s> {
    fn from(stream: &'s Stream) -> StreamRef<'s> {
        StreamRef::of(stream.handle().cast())
    }
}

impl<'s> From<&'s cudarc::driver::CudaStream> for StreamRef<'s> {
    fn from(stream: &'s cudarc::driver::CudaStream) -> StreamRef<'s> {
        StreamRef::of(stream.cu_stream().cast())
    }
}

impl<'s> From<&'s Arc<cudarc::driver::CudaStream>> for StreamRef<'s> {
    fn from(stream: &'s Arc<cudarc::driver::CudaStream>) -> StreamRef<'s> {
        StreamRef::from(&**stream)
    }
}

/// A function ready to be launched over grids.
pub struct Ready {
    function: Function,
    /// With a grid that does not count.
    shape: Shape,
    max_grid: [u32; 3],
    sm_count: u32,
    /// Number of active clusters, queried once.
    active: OnceLock<u32>,
    /// The first word of each parameter.
    starts: Vec<usize>,
    /// Words of all parameters.
    words: usize,
}

impl Ready {
    /// Compares once what a launch needs: `shape` (whose grid does not count) with the limits of device and function, and the
    /// bytes of each argument with the parameters.
    ///
    /// # Errors
    /// A limit is exceeded, or the function takes other parameters.
    pub fn new(device: &Device, function: Function, shape: &Shape, arguments: &[usize]) -> Result<Ready, CudaError> {
        super::launch::check_shape(device.properties(), &function, [1; 3], shape.block, shape.dynamic_smem)?;
        if let Some(params) = function.param_bytes()
            && params != arguments
        {
            let name = function.name();
            return Err(CudaError::refused(format!(
                "`{name}` takes parameters of {params:?} bytes, its contract has {arguments:?}"
            )));
        }
        let (mut starts, mut words) = (Vec::new(), 0);
        for bytes in arguments {
            starts.push(words);
            words += bytes.div_ceil(8);
        }
        let (max_grid, sm_count) = (device.properties().max_grid, device.properties().sm_count);
        Ok(Ready { function, shape: *shape, max_grid, sm_count, active: OnceLock::new(), starts, words })
    }

    /// The function of a contract in a module, with the attributes that the contract needs.
    ///
    /// # Errors
    /// If the module has no such entry, the device lacks what the contract needs, or the function takes other
    /// parameters.
    pub fn of(device: &Device, module: &Module, contract: &Contract) -> Result<Ready, CudaError> {
        let function = module.function(&contract.entry)?;
        if contract.dynamic_smem_bytes > SMEM_WITHOUT_OPTIN {
            function.set_max_dynamic_smem(contract.dynamic_smem_bytes)?;
        }
        if contract.has_large_clusters() {
            function.allow_large_clusters()?;
        }
        let arguments: Vec<usize> = contract.params.iter().map(|p| p.kind.bytes()).collect();
        Ready::new(device, function, &Shape::of(contract, [1; 3]), &arguments)
    }

    /// The first word of each parameter.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Words of all parameters: each begins with one of its own, its bytes in the host's order.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Queues a launch. The driver copies the parameters before this returns.
    ///
    /// # Errors
    /// Words are missing, the grid exceeds the device's, or the driver refuses.
    pub fn launch(&self, stream: StreamRef<'_>, grid: [u32; 3], params: &mut Vec<u64>) -> Result<(), CudaError> {
        if params.len() < self.words || grid.iter().zip(&self.max_grid).any(|(n, most)| *n == 0 || n > most) {
            let (name, most) = (self.function.name(), self.max_grid);
            return Err(CudaError::refused(format!("a launch of `{name}` over {grid:?} blocks, at most {most:?}")));
        }
        let known = self.function.param_bytes().is_some();
        if !known {
            // The driver takes as many addresses and bytes as the kernel has parameters, and could not say how many.
            params.resize(self.words + MAX_PARAM_BYTES.div_ceil(8), 0);
        }
        let n = if known { self.starts.len() } else { MAX_PARAM_BYTES };
        let mut usual = [std::ptr::null_mut::<c_void>(); USUAL_PARAMS];
        let mut more = Vec::new();
        let addresses: &mut [*mut c_void] = if n <= USUAL_PARAMS {
            &mut usual[..n]
        } else {
            more.resize(n, std::ptr::null_mut());
            &mut more
        };
        for (i, address) in addresses.iter_mut().enumerate() {
            let start = self.starts.get(i).copied().unwrap_or(self.words);
            *address = params[start..].as_mut_ptr().cast();
        }
        let addresses = addresses.as_mut_ptr();
        let shape = Shape { grid, ..self.shape };
        self.context().with(|api| {
            // SAFETY: function and stream are alive. There are as many addresses as the function has parameters, or as any
            // function can have, each with the parameter's bytes after it.
            unsafe { super::launch::queue(api, self.function.handle(), &shape, stream.handle.cast(), addresses) }
        })
    }

    /// As [`Device::max_active_clusters`]; the driver is queried once.
    ///
    /// # Errors
    /// If the device has no room for a cluster, or the driver refuses.
    pub fn max_active_clusters(&self) -> Result<u32, CudaError> {
        if let Some(known) = self.active.get() {
            return Ok(*known);
        }
        let count = super::launch::max_active_clusters(&self.function, self.sm_count, &self.shape)?;
        Ok(*self.active.get_or_init(|| count))
    }

    /// Resource usage of the function, as assembled by the driver.
    pub fn attributes(&self) -> super::FunctionAttributes {
        self.function.attributes()
    }

    fn context(&self) -> &Arc<Context> {
        self.function.context()
    }
}

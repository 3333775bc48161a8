//! The CUDA driver API, as far as running a compiled kernel needs it.
//!
//! The library (`libcuda.so.1`, `nvcuda.dll`) is opened when the first device is, so that the tool builds, starts and
//! tests without one. Its symbols are looked up one by one into a table of ours; a missing library or symbol
//! is an error and not a panic. Every call returns a [`CudaError`]; nothing here panics, and nothing clamps: a launch
//! beyond a limit is refused with the limit in the message.
//!
//! Ownership: a [`Device`] retains the primary context of its ordinal. Everything made from it (buffers, modules,
//! streams, events) holds that context alive, makes it current for the duration of each call and restores what was
//! current before, and releases its handle on drop. Handles stay on the thread that made them.
//!
//! Trust: this module keeps the *host* safe whatever it is given, namely sizes, argument lists and images. What a kernel
//! does with device addresses is the kernel's affair, as a child process's memory is the child's. A kernel that does not
//! end cannot be stopped from here: whoever launches unproved kernels does so in a process that can be killed.

#![expect(unsafe_code, reason = "foreign functions of the CUDA driver; the only unsafe code of the workspace")]

mod cublas;
mod graph;
mod image;
mod launch;
mod memory;
mod module;
mod stream;
mod table;

use std::rc::Rc;
use thiserror::Error;

pub use cublas::{At, Compute, Cublas, CublasError, MatType, Matmul, Matrix, Product};
pub use graph::Graph;
pub use launch::{LaunchArg, Shape, TensorMap};
pub use memory::Buffer;
pub use module::{Function, FunctionAttributes, Module};
pub use stream::{Event, Stream};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use table::Api;

/// Why the driver or this module refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CudaError {
    /// The loader found no driver library.
    #[error("no CUDA driver library: the loader found {}", none_of(.looked_for))]
    NoLibrary {
        /// The file names tried, in order.
        looked_for: Vec<String>,
    },
    /// The driver library is too old to have a function that every launch needs.
    #[error("the CUDA driver library has no `{symbol}`; driver R525 or later is needed")]
    MissingSymbol {
        /// The function looked for.
        symbol: &'static str,
    },
    /// The driver works and has no such device.
    #[error("no CUDA device {ordinal}: the driver reports {count} device(s) (CUDA_VISIBLE_DEVICES hides devices)")]
    NoDevice {
        /// The ordinal asked for.
        ordinal: u32,
        /// The number of devices there are.
        count: u32,
    },
    /// A driver call failed. Failures of earlier launches surface at later calls.
    #[error("{call}: {name} ({code}): {text}")]
    Driver {
        /// The function that reported it.
        call: &'static str,
        /// Its result, a `CUresult`.
        code: u32,
        /// The name of the result, such as `CUDA_ERROR_OUT_OF_MEMORY`.
        name: String,
        /// The driver's description.
        text: String,
    },
    /// The driver's assembler refused an image.
    #[error("the driver refused the module: {name} ({code}){}{log}", if .log.is_empty() { "" } else { "\n" })]
    Jit {
        /// The result of the load, a `CUresult`.
        code: u32,
        /// The name of the result, such as `CUDA_ERROR_INVALID_PTX`.
        name: String,
        /// What the assembler wrote, a complaint per line.
        log: String,
    },
    /// This module refused before asking the driver.
    #[error("{what}")]
    Refused {
        /// What was asked and which limit it breaks.
        what: String,
    },
}

impl CudaError {
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused { what: what.into() }
    }
}

/// Two names a person knows, and how many spellings there were besides.
fn none_of(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => format!("no {only}"),
        [first, rest @ ..] => {
            let known = rest.iter().find(|name| name.ends_with(".so.1")).unwrap_or(&rest[0]);
            format!("neither {first} nor {known} (nor any of {} other spellings)", names.len() - 2)
        }
    }
}

/// What a device is and how much of everything a launch on it may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Marketing name.
    pub name: String,
    /// Compute capability, `(7, 0)` for sm_70.
    pub compute_capability: (u32, u32),
    /// CUDA version the driver supports, `(12, 9)`.
    pub driver_version: (u32, u32),
    /// Number of streaming multiprocessors.
    pub sm_count: u32,
    /// Peak clock in kHz, 0 where the driver does not tell.
    pub clock_khz: u32,
    /// Device memory in bytes.
    pub total_memory_bytes: usize,
    /// Second-level cache in bytes.
    pub l2_bytes: u32,
    /// Memory clock in kHz, 0 where the driver does not tell. Two transfers a cycle.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits, 0 where the driver does not tell.
    pub memory_bus_bits: u32,
    /// Shared memory a block may have, static and dynamic together, once its function opts in; bytes.
    pub max_shared_bytes_optin: u32,
    /// Threads per block.
    pub max_threads_per_block: u32,
    /// Block extents.
    pub max_block: [u32; 3],
    /// Grid extents.
    pub max_grid: [u32; 3],
}

/// A retained primary context. Owned by everything that was made in it.
struct Context {
    api: &'static Api,
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

impl Context {
    /// Runs `work` with this context current on the calling thread, then restores the one before.
    fn with<R>(&self, work: impl FnOnce(&Api) -> Result<R, CudaError>) -> Result<R, CudaError> {
        let api = self.api;
        // SAFETY: the handle is that of a context we retain.
        api.check("cuCtxPushCurrent", unsafe { (api.cuCtxPushCurrent_v2)(self.handle) })?;
        let result = work(api);
        let mut popped = std::ptr::null_mut();
        // SAFETY: `popped` is a valid place for a handle.
        let pop = api.check("cuCtxPopCurrent", unsafe { (api.cuCtxPopCurrent_v2)(&mut popped) });
        let value = result?;
        pop.map(|()| value)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was retained once when this value was made. A failure leaves nothing to do.
        let _ = unsafe { (self.api.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

/// An open device: its primary context and its limits.
pub struct Device {
    context: Rc<Context>,
    properties: Rc<Properties>,
    default_stream: Stream,
}

impl Device {
    /// Opens the device of this ordinal, in the driver's order.
    ///
    /// Fails with [`CudaError::NoLibrary`] without a driver and with [`CudaError::NoDevice`] without such a device.
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        let api = Api::get()?;
        // SAFETY: 0 is the only value the flags may have.
        let init = unsafe { (api.cuInit)(0) };
        if init == sys::CUresult::CUDA_ERROR_NO_DEVICE as u32 {
            return Err(CudaError::NoDevice { ordinal, count: 0 });
        }
        api.check("cuInit", init)?;
        let mut count = 0;
        // SAFETY: `count` is a valid place for an int.
        api.check("cuDeviceGetCount", unsafe { (api.cuDeviceGetCount)(&mut count) })?;
        let index = i32::try_from(ordinal).ok().filter(|index| *index < count);
        let Some(index) = index else {
            return Err(CudaError::NoDevice { ordinal, count: count.max(0).unsigned_abs() });
        };
        let mut device = 0;
        // SAFETY: `device` is a valid place for a device.
        api.check("cuDeviceGet", unsafe { (api.cuDeviceGet)(&mut device, index) })?;
        let properties = Rc::new(properties(api, device)?);
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for a context, `device` came from the driver.
        api.check("cuDevicePrimaryCtxRetain", unsafe { (api.cuDevicePrimaryCtxRetain)(&mut handle, device) })?;
        let context = Rc::new(Context { api, device, handle });
        let default_stream = Stream::legacy_default(&context, &properties);
        Ok(Self { context, properties, default_stream })
    }

    /// What the device is, and its limits.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Has the driver assemble PTX for this device.
    ///
    /// Fails with [`CudaError::Jit`] and the assembler's text.
    pub fn load_ptx(&self, ptx: &str) -> Result<Module, CudaError> {
        Module::load(&self.context, image::ptx(ptx)?)
    }

    /// Loads a cubin: machine code of this device's architecture.
    pub fn load_cubin(&self, cubin: &[u8]) -> Result<Module, CudaError> {
        Module::load(&self.context, image::cubin(cubin)?)
    }

    /// Allocates device memory of unspecified contents, aligned to at least 256 bytes.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, CudaError> {
        Buffer::alloc(&self.context, bytes)
    }

    /// The default stream. Other streams and plain copies are ordered with it.
    pub fn default_stream(&self) -> &Stream {
        &self.default_stream
    }

    /// Makes another stream.
    pub fn stream(&self) -> Result<Stream, CudaError> {
        Stream::create(&self.context, &self.properties)
    }

    /// Makes an event that can be recorded and timed.
    pub fn event(&self) -> Result<Event, CudaError> {
        Event::create(&self.context)
    }

    /// Launches on the default stream; see [`Stream::launch`].
    pub fn launch(&self, function: &Function, shape: &Shape, params: &[LaunchArg]) -> Result<(), CudaError> {
        self.default_stream.launch(function, shape, params)
    }

    /// Waits for all work of the context. A failure of a kernel is reported here at the latest.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: a context is current.
        self.context.with(|api| api.check("cuCtxSynchronize", unsafe { (api.cuCtxSynchronize)() }))
    }
}

fn properties(api: &Api, device: sys::CUdevice) -> Result<Properties, CudaError> {
    let attribute = |attribute: Attribute| -> Result<u32, CudaError> {
        let mut value = 0;
        // SAFETY: `value` is a valid place for an int, `device` came from the driver.
        api.check("cuDeviceGetAttribute", unsafe { (api.cuDeviceGetAttribute)(&mut value, attribute, device) })?;
        // The driver says "unlimited" with the largest int and never a negative one.
        Ok(value.max(0).unsigned_abs())
    };
    let mut name = [0u8; 256];
    // SAFETY: `name` has room for the 255 characters announced and the final zero.
    api.check("cuDeviceGetName", unsafe { (api.cuDeviceGetName)(name.as_mut_ptr().cast(), 255, device) })?;
    let mut version = 0;
    // SAFETY: `version` is a valid place for an int.
    api.check("cuDriverGetVersion", unsafe { (api.cuDriverGetVersion)(&mut version) })?;
    let version = version.max(0).unsigned_abs();
    let mut total_memory_bytes = 0;
    // SAFETY: `total_memory_bytes` is a valid place for a size.
    api.check("cuDeviceTotalMem", unsafe { (api.cuDeviceTotalMem_v2)(&mut total_memory_bytes, device) })?;
    use sys::CUdevice_attribute::*;
    Ok(Properties {
        name: text_until_zero(&name),
        compute_capability: (
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: (version / 1000, version % 1000 / 10),
        sm_count: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0),
        total_memory_bytes,
        l2_bytes: attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE).unwrap_or(0),
        memory_clock_khz: attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0),
        memory_bus_bits: attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).unwrap_or(0),
        max_shared_bytes_optin: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        max_threads_per_block: attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_block: [
            attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        max_grid: [
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
    })
}

/// The text before the first zero byte, with what is not UTF-8 replaced.
fn text_until_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests;

//! The context of a device, and what can go wrong with it.

use crate::cuda::table::Api;
use cudarc::driver::sys::{self};
use thiserror::Error;

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
    /// The driver works but has no such device.
    #[error("no CUDA device {ordinal}: the driver reports {count} device(s) (CUDA_VISIBLE_DEVICES hides devices)")]
    NoDevice {
        /// The ordinal requested.
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
        /// The assembler's messages, one per line.
        log: String,
    },
    /// This module refused before asking the driver.
    #[error("{what}")]
    Refused {
        /// The request and the limit that it exceeds.
        what: String,
    },
}

impl CudaError {
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused { what: what.into() }
    }
}

/// The two best-known names, and the number of other spellings.
pub(crate) fn none_of(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => format!("no {only}"),
        [first, second] => format!("neither {first} nor {second}"),
        [first, rest @ ..] => {
            let known = rest.iter().find(|name| name.ends_with(".so.1")).unwrap_or(&rest[0]);
            format!("neither {first} nor {known} (nor any of {} other spellings)", names.len() - 2)
        }
    }
}

/// The name of a device and its launch limits.
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
pub(super) struct Context {
    pub(crate) api: &'static Api,
    pub(crate) device: sys::CUdevice,
    pub(crate) handle: sys::CUcontext,
}

// SAFETY: the driver's handles belong to the process; each call makes the context current on its own thread.
unsafe impl Send for Context {}
// SAFETY: as above; the driver's functions may be called from several threads at a time.
unsafe impl Sync for Context {}

impl Context {
    /// Runs `work` with this context current on the calling thread, then restores the one before.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&Api) -> Result<R, CudaError>) -> Result<R, CudaError> {
        let api = self.api;
        let mut current = std::ptr::null_mut();
        // SAFETY: `current` is a valid place for a handle. Where the question fails, the context is pushed.
        if unsafe { (api.cuCtxGetCurrent)(&mut current) } == 0 && current == self.handle {
            return work(api);
        }
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

/// The text before the first zero byte, with what is not UTF-8 replaced.
pub(crate) fn text_until_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

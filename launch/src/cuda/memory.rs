//! Device memory.

use super::LaunchArg;
use crate::cuda::context::{Context, CudaError};
use std::sync::Arc;

/// Device memory, freed on drop. Copies wait for the work before them on the default stream, and for their own end.
pub struct Buffer {
    context: Arc<Context>,
    /// Device address; 0 for an empty buffer, which has no allocation.
    address: u64,
    bytes: usize,
}

impl Buffer {
    pub(super) fn alloc(context: &Arc<Context>, bytes: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        if bytes > 0 {
            context.with(|api| {
                // SAFETY: `address` is a valid place for a device pointer.
                api.check("cuMemAlloc", unsafe { (api.cuMemAlloc_v2)(&mut address, bytes) })
            })?;
        }
        Ok(Self { context: Arc::clone(context), address, bytes })
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The buffer's address as a kernel argument.
    pub fn arg(&self) -> LaunchArg {
        LaunchArg::Ptr(self.address)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `data` to the buffer from byte `offset` on.
    pub fn upload(&self, offset: usize, data: &[u8]) -> Result<(), CudaError> {
        let Some(address) = self.range(offset, data.len())? else { return Ok(()) };
        self.context.with(|api| {
            // SAFETY: the host range is `data`, the device range is in our allocation.
            api.check("cuMemcpyHtoD", unsafe { (api.cuMemcpyHtoD_v2)(address, data.as_ptr().cast(), data.len()) })
        })
    }

    /// Copies from byte `offset` of the buffer on into all of `data`.
    pub fn download(&self, offset: usize, data: &mut [u8]) -> Result<(), CudaError> {
        let Some(address) = self.range(offset, data.len())? else { return Ok(()) };
        self.context.with(|api| {
            // SAFETY: the host range is `data`, borrowed mutably; the device range is in our allocation.
            api.check("cuMemcpyDtoH", unsafe { (api.cuMemcpyDtoH_v2)(data.as_mut_ptr().cast(), address, data.len()) })
        })
    }

    /// Sets every byte.
    pub fn fill(&self, byte: u8) -> Result<(), CudaError> {
        let Some(address) = self.range(0, self.bytes)? else { return Ok(()) };
        // SAFETY: the device range is our allocation.
        self.context.with(|api| api.check("cuMemsetD8", unsafe { (api.cuMemsetD8_v2)(address, byte, self.bytes) }))
    }

    /// The device address of a range of the buffer, or `None` where it is empty.
    fn range(&self, offset: usize, len: usize) -> Result<Option<u64>, CudaError> {
        check_range(offset, len, self.bytes)?;
        Ok((len > 0).then(|| self.address + offset as u64))
    }
}

/// Refuses a range that is not inside `bytes` bytes.
pub(super) fn check_range(offset: usize, len: usize, bytes: usize) -> Result<(), CudaError> {
    match offset.checked_add(len) {
        Some(end) if end <= bytes => Ok(()),
        _ => Err(CudaError::refused(format!("{len} bytes from offset {offset} are not inside a buffer of {bytes}"))),
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: our allocation, freed once. After a failed kernel this fails too, and the context owns the
            // memory.
            let _ = self.context.with(|api| api.check("cuMemFree", unsafe { (api.cuMemFree_v2)(self.address) }));
        }
    }
}

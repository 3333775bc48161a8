//! Memory of the device. Copies "asynchronous" to the host are done when the call returns: kernels are, too.

use super::context::current;
use super::stream::check;
use super::{Answer, answer, list, put};
use crate::attributes::MEMORY;
use crate::code::{Code, Failure};
use crate::state::shared as with;
use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

/// `CU_MEMHOSTALLOC_DEVICEMAP`.
const DEVICE_MAP: c_uint = 2;

/// Memory of the host that calls of the library have made, by its address.
static HOST: std::sync::Mutex<std::collections::BTreeMap<usize, Box<[u64]>>> =
    std::sync::Mutex::new(std::collections::BTreeMap::new());

unsafe fn alloc(to: *mut u64, bytes: usize) -> Result<(), Failure> {
    current()?;
    let address = with(|state| state.alive()?.alloc(bytes as u64))?;
    // SAFETY: the driver's contract: an address may be written there.
    unsafe { put(to, address) }
}

fn free(address: u64) -> Result<(), Failure> {
    current()?;
    with(|state| state.free(address))
}

unsafe fn to_device(to: u64, from: *const c_void, bytes: usize) -> Result<(), Failure> {
    current()?;
    // SAFETY: the driver's contract: so many bytes may be read there.
    let data = unsafe { list(from.cast::<u8>(), bytes)? };
    with(|state| state.alive()?.upload(to, &data))
}

unsafe fn to_host(to: *mut c_void, from: u64, bytes: usize) -> Result<(), Failure> {
    current()?;
    let data = with(|state| state.alive()?.download(from, bytes))?;
    if to.is_null() && bytes > 0 {
        return Err(Code::InvalidValue.into());
    }
    // SAFETY: the driver's contract: so many bytes may be written there, and they are not the simulator's.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to.cast::<u8>(), data.len()) };
    Ok(())
}

fn between(to: u64, from: u64, bytes: usize) -> Result<(), Failure> {
    current()?;
    with(|state| state.alive()?.copy(to, from, bytes))
}

fn fill(to: u64, pattern: &[u8], count: usize) -> Result<(), Failure> {
    current()?;
    with(|state| state.alive()?.fill(to, pattern, count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> Answer {
    // SAFETY: the caller's address is passed on.
    answer("cuMemAlloc", || unsafe { alloc(to, bytes) })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> Answer {
    answer("cuMemFree", || free(address))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocAsync(to: *mut u64, bytes: usize, stream: u64) -> Answer {
    // SAFETY: as above.
    answer("cuMemAllocAsync", || check(stream).and_then(|()| unsafe { alloc(to, bytes) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: u64, stream: u64) -> Answer {
    answer("cuMemFreeAsync", || check(stream).and_then(|()| free(address)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Answer {
    answer("cuMemGetInfo", || {
        current()?;
        // SAFETY: as above.
        unsafe {
            put(free, MEMORY as usize)?;
            put(total, MEMORY as usize)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> Answer {
    // SAFETY: as above.
    answer("cuMemcpyHtoD", || unsafe { to_device(to, from, bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: u64) -> Answer {
    // SAFETY: as above.
    answer("cuMemcpyHtoDAsync", || check(stream).and_then(|()| unsafe { to_device(to, from, bytes) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> Answer {
    // SAFETY: as above.
    answer("cuMemcpyDtoH", || unsafe { to_host(to, from, bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: u64) -> Answer {
    // SAFETY: as above.
    answer("cuMemcpyDtoHAsync", || check(stream).and_then(|()| unsafe { to_host(to, from, bytes) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> Answer {
    answer("cuMemcpyDtoD", || between(to, from, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> Answer {
    answer("cuMemcpyDtoDAsync", || check(stream).and_then(|()| between(to, from, bytes)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(to: u64, byte: c_uchar, count: usize) -> Answer {
    answer("cuMemsetD8", || fill(to, &[byte], count))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(to: u64, byte: c_uchar, count: usize, stream: u64) -> Answer {
    answer("cuMemsetD8Async", || check(stream).and_then(|()| fill(to, &[byte], count)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16_v2(to: u64, word: c_ushort, count: usize) -> Answer {
    answer("cuMemsetD16", || fill(to, &word.to_le_bytes(), count))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16Async(to: u64, word: c_ushort, count: usize, stream: u64) -> Answer {
    answer("cuMemsetD16Async", || check(stream).and_then(|()| fill(to, &word.to_le_bytes(), count)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32_v2(to: u64, word: c_uint, count: usize) -> Answer {
    answer("cuMemsetD32", || fill(to, &word.to_le_bytes(), count))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32Async(to: u64, word: c_uint, count: usize, stream: u64) -> Answer {
    answer("cuMemsetD32Async", || check(stream).and_then(|()| fill(to, &word.to_le_bytes(), count)))
}

unsafe fn host(to: *mut *mut c_void, bytes: usize) -> Result<(), Failure> {
    current()?;
    if bytes == 0 || bytes as u64 > MEMORY {
        return Err(Code::InvalidValue.into());
    }
    let mut memory = vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
    let address = memory.as_mut_ptr();
    HOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(address as usize, memory);
    // SAFETY: as above.
    unsafe { put(to, address.cast()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocHost_v2(to: *mut *mut c_void, bytes: usize) -> Answer {
    // SAFETY: as above.
    answer("cuMemAllocHost", || unsafe { host(to, bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(to: *mut *mut c_void, bytes: usize, flags: c_uint) -> Answer {
    answer("cuMemHostAlloc", || {
        if flags & DEVICE_MAP != 0 {
            return Err(Failure::new(Code::NotSupported, "kernels do not reach memory of the host"));
        }
        // SAFETY: as above.
        unsafe { host(to, bytes) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: *mut c_void) -> Answer {
    answer("cuMemFreeHost", || {
        let held = HOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&(address as usize));
        held.map(|_| ()).ok_or_else(|| Code::InvalidValue.into())
    })
}

/// Kinds of memory (`CU_POINTER_ATTRIBUTE_MEMORY_TYPE`): 2 is the device's. 9 is the device's number.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttribute(to: *mut c_void, attribute: c_uint, address: u64) -> Answer {
    answer("cuPointerGetAttribute", || {
        with(|state| state.download(address, 1).map_err(|_| Code::InvalidValue.into()))?;
        let value: c_uint = match attribute {
            2 => 2,
            9 => 0,
            other => return Err(Failure::new(Code::NotSupported, format!("the attribute {other} is not known"))),
        };
        // SAFETY: as above.
        unsafe { put(to.cast(), value) }
    })
}

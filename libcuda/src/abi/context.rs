//! Start, devices, contexts, errors. There is one device, and contexts share its memory.

use super::{Answer, answer, put};
use crate::attributes::{self, MEMORY};
use crate::code::{Code, Failure};
use crate::state::shared as with;
use crate::state::{Object, initialise};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// CUDA 12.9.
const VERSION: c_int = 12_090;

thread_local! {
    /// The contexts of a thread; the last one is current.
    static CURRENT: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Acts on the contexts of this thread. When a thread or the process ends they are gone before the last destructors run.
fn stack<T>(act: impl FnOnce(&mut Vec<u64>) -> T) -> Result<T, Failure> {
    CURRENT.try_with(|stack| act(&mut stack.borrow_mut())).map_err(|_| Code::Deinitialized.into())
}

/// The current context.
pub(super) fn current() -> Result<u64, Failure> {
    let context = stack(|stack| stack.last().copied())?.unwrap_or(0);
    with(|state| state.check_context(context))?;
    Ok(context)
}

fn is_device(ordinal: c_int) -> Result<(), Failure> {
    with(|_| Ok(()))?;
    if ordinal == 0 { Ok(()) } else { Err(Code::InvalidDevice.into()) }
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> Answer {
    answer("cuInit", || if flags == 0 { initialise() } else { Err(Code::InvalidValue.into()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Answer {
    // SAFETY: the driver's contract: an int may be written there.
    answer("cuDriverGetVersion", || unsafe { put(version, VERSION) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Answer {
    answer("cuDeviceGetCount", || {
        with(|_| Ok(()))?;
        // SAFETY: as above.
        unsafe { put(count, 1) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Answer {
    answer("cuDeviceGet", || {
        is_device(ordinal)?;
        // SAFETY: as above.
        unsafe { put(device, ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, bytes: c_int, device: c_int) -> Answer {
    answer("cuDeviceGetName", || {
        is_device(device)?;
        let said = with(|state| Ok(format!("tilec simulator, {}", state.settings.target.name())))?;
        let room = usize::try_from(bytes).ok().filter(|n| *n > 0).ok_or(Code::InvalidValue)?;
        for (i, byte) in said.bytes().take(room - 1).chain([0]).enumerate() {
            // SAFETY: as above, for `bytes` bytes.
            unsafe { put(name.wrapping_add(i).cast::<u8>(), byte)? };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> Answer {
    answer("cuDeviceTotalMem", || {
        is_device(device)?;
        // SAFETY: as above.
        unsafe { put(bytes, MEMORY as usize) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> Answer {
    answer("cuDeviceGetAttribute", || {
        is_device(device)?;
        let found = with(|state| attributes::of_device(state.settings.target, attribute))?;
        // SAFETY: as above.
        unsafe { put(value, found) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut u64, device: c_int) -> Answer {
    answer("cuDevicePrimaryCtxRetain", || {
        is_device(device)?;
        let made = with(|state| Ok(state.primary()))?;
        // SAFETY: as above.
        unsafe { put(context, made) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Answer {
    answer("cuDevicePrimaryCtxRelease", || is_device(device))
}

/// Makes a context, and makes it current.
unsafe fn create(call: &str, context: *mut u64, device: c_int) -> Answer {
    answer(call, || {
        is_device(device)?;
        let made = with(|state| Ok(state.add(Object::Context)))?;
        stack(|stack| stack.push(made))?;
        // SAFETY: as above.
        unsafe { put(context, made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v2(context: *mut u64, _flags: c_uint, device: c_int) -> Answer {
    // SAFETY: as above.
    unsafe { create("cuCtxCreate", context, device) }
}

/// What CUDA 13 calls `cuCtxCreate`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v4(context: *mut u64, _how: *const c_void, _flags: c_uint, device: c_int) -> Answer {
    // SAFETY: as above.
    unsafe { create("cuCtxCreate", context, device) }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDestroy_v2(context: u64) -> Answer {
    answer("cuCtxDestroy", || {
        with(|state| state.destroy_context(context))?;
        stack(|stack| stack.retain(|c| *c != context))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: u64) -> Answer {
    answer("cuCtxPushCurrent", || {
        with(|state| state.check_context(context))?;
        stack(|stack| stack.push(context))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut u64) -> Answer {
    answer("cuCtxPopCurrent", || {
        let was = stack(Vec::pop)?.ok_or(Code::InvalidContext)?;
        // SAFETY: as above; null is allowed here.
        if context.is_null() { Ok(()) } else { unsafe { put(context, was) } }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: u64) -> Answer {
    answer("cuCtxSetCurrent", || {
        with(|state| if context == 0 { Ok(()) } else { state.check_context(context) })?;
        stack(|stack| {
            stack.pop();
            if context != 0 {
                stack.push(context);
            }
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut u64) -> Answer {
    answer("cuCtxGetCurrent", || {
        with(|_| Ok(()))?;
        // SAFETY: as above.
        unsafe { put(context, current().unwrap_or(0)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> Answer {
    answer("cuCtxGetDevice", || {
        current()?;
        // SAFETY: as above.
        unsafe { put(device, 0) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> Answer {
    answer("cuCtxSynchronize", || {
        current()?;
        with(|state| state.alive().map(|_| ()))
    })
}

/// Stores the text of an error.
unsafe fn told(error: c_uint, to: *mut *const c_char, of: fn(Code) -> &'static str, fine: &'static str) -> Answer {
    let text = if error == 0 { Some(fine) } else { Code::of(error).map(of) };
    // SAFETY: as above; the texts live for ever, and end with a zero.
    answer("cuGetErrorString", || unsafe {
        put(to, text.map_or(std::ptr::null(), |text| text.as_ptr().cast()))?;
        if text.is_some() { Ok(()) } else { Err(Code::InvalidValue.into()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: c_uint, to: *mut *const c_char) -> Answer {
    // SAFETY: as above.
    unsafe { told(error, to, Code::name, "CUDA_SUCCESS\0") }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: c_uint, to: *mut *const c_char) -> Answer {
    // SAFETY: as above.
    unsafe { told(error, to, Code::sentence, "no error\0") }
}

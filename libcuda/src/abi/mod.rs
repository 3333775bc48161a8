//! The driver's functions under their names. Each returns a `CUresult`; what failed, and why, goes to standard error.
#![expect(unsafe_code, reason = "a C interface: callers pass addresses, and names must not be mangled")]

mod context;
mod maps;
mod memory;
mod module;
mod stream;

use crate::code::{Code, Failure};

/// A `CUresult`.
type Answer = u32;

/// What a call returns.
fn answer(call: &str, act: impl FnOnce() -> Result<(), Failure>) -> Answer {
    match act() {
        Ok(()) => 0,
        Err(failure) => {
            if let Some(message) = failure.message {
                eprintln!("tilec simulator: {call}: {message}");
            }
            failure.code as u32
        }
    }
}

/// Stores a result where the caller wants it.
///
/// # Safety
/// `to` is null, or may be written.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Code::InvalidValue.into());
    }
    // SAFETY: it is not null, and the caller says that it may be written.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// `count` elements that the caller lends; none where there are none to read.
///
/// # Safety
/// `from` is null, or `count` elements may be read there.
unsafe fn list<T: Copy>(from: *const T, count: usize) -> Result<Vec<T>, Failure> {
    if from.is_null() {
        return if count == 0 { Ok(Vec::new()) } else { Err(Code::InvalidValue.into()) };
    }
    // SAFETY: the caller says that so many elements may be read; they need not be aligned.
    Ok((0..count).map(|i| unsafe { from.add(i).read_unaligned() }).collect())
}

/// Text that ends with a zero.
///
/// # Safety
/// `from` is null, or text that ends with a zero.
unsafe fn text(from: *const std::ffi::c_char) -> Result<String, Failure> {
    if from.is_null() {
        return Err(Code::InvalidValue.into());
    }
    // SAFETY: it is not null, and ends with a zero.
    let text = unsafe { std::ffi::CStr::from_ptr(from) };
    Ok(text.to_string_lossy().into_owned())
}

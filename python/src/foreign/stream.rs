//! Streams of other libraries.

use std::ffi::c_void;
use tilec_launch::StreamRef;

/// A stream by its number.
///
/// The caller has the number from the library whose stream it is, for the time of one call.
pub(crate) fn stream(number: u64) -> StreamRef<'static> {
    // SAFETY: a stream that its library has as the current one, or that the caller of the kernel passes and so keeps alive. What is
    // none is an error of the driver.
    unsafe { StreamRef::from_raw(number as *mut c_void) }
}

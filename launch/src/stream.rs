//! Streams of the calling library.

use std::ffi::c_void;
use std::marker::PhantomData;

/// A stream, for as long as it is borrowed: of this crate (`cuda::Stream`), of cudarc (`CudaStream`), or by its handle.
#[derive(Copy, Clone)]
pub struct StreamRef<'s> {
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "the simulator knows no streams"))]
    pub(crate) handle: *mut c_void,
    of: PhantomData<&'s ()>,
}

impl<'s> StreamRef<'s> {
    /// The legacy default stream of the device. The simulator, which has no streams, accepts it too.
    pub const DEFAULT: StreamRef<'static> = StreamRef { handle: std::ptr::null_mut(), of: PhantomData };

    /// Of a handle.
    #[cfg(feature = "cuda")]
    pub(crate) fn of(handle: *mut c_void) -> StreamRef<'s> {
        StreamRef { handle, of: PhantomData }
    }
}

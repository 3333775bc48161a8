//! Streams, launches on them, and events.

use super::launch::{self, Arguments, Encoded, Shape};
use super::{Function, LaunchArg};
use crate::cuda::context::{Context, CudaError, Properties};
use cudarc::driver::sys;
use std::sync::Arc;

/// A queue of work on a device.
pub struct Stream {
    context: Arc<Context>,
    properties: Arc<Properties>,
    /// Null for the default stream, which is not destroyed.
    stream: sys::CUstream,
}

// SAFETY: a handle of the driver, which may be used from any thread and from several: see [`Context`].
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// The legacy default stream, which is ordered with all streams made here.
    pub(super) fn legacy_default(context: &Arc<Context>, properties: &Arc<Properties>) -> Self {
        Self { context: Arc::clone(context), properties: Arc::clone(properties), stream: std::ptr::null_mut() }
    }

    pub(super) fn create(context: &Arc<Context>, properties: &Arc<Properties>) -> Result<Self, CudaError> {
        const CU_STREAM_DEFAULT: u32 = 0;
        let mut made = Self::legacy_default(context, properties);
        context.with(|api| {
            // SAFETY: `made.stream` is a valid place for a handle.
            api.check("cuStreamCreate", unsafe { (api.cuStreamCreate)(&mut made.stream, CU_STREAM_DEFAULT) })
        })?;
        Ok(made)
    }

    /// Launches `function` over `shape`.
    ///
    /// Refuses, and never clamps, extents of zero, and extents, threads and shared memory beyond the limits of the
    /// device or the function. A function of another device is refused, too. So are arguments that do not match the
    /// parameters in number and size (the sizes are known from driver R550 on). Returns when the work is queued; a
    /// failure of the kernel itself appears at a later call.
    pub fn launch(&self, function: &Function, shape: &Shape, params: &[LaunchArg]) -> Result<(), CudaError> {
        self.same_context(function.context(), "function")?;
        launch::check(&self.properties, function, shape.grid, shape.block, shape.dynamic_smem, params)?;
        let maps = params.iter().filter_map(|p| match p {
            LaunchArg::TensorMap(map) => Some(launch::encode(&self.context, map)),
            _ => None,
        });
        let maps: Vec<Encoded> = maps.collect::<Result<_, CudaError>>()?;
        let mut arguments = Arguments::new(params, &maps, function.param_bytes().is_some());
        let mut addresses = arguments.addresses();
        self.context.with(|api| {
            // SAFETY: function and stream are alive and of the current context. There are as many addresses as the
            // function has parameters, or as any function can have, each with the parameter's bytes after it.
            unsafe { launch::queue(api, function.handle(), shape, self.stream, addresses.as_mut_ptr()) }
        })
    }

    /// Has `event` mark this point of the queue.
    pub fn record(&self, event: &Event) -> Result<(), CudaError> {
        self.same_context(&event.context, "event")?;
        self.context.with(|api| {
            // SAFETY: event and stream are alive and of the current context.
            api.check("cuEventRecord", unsafe { (api.cuEventRecord)(event.event, self.stream) })
        })
    }

    /// Waits for the work queued here. A failure of a kernel is reported here at the latest.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.with(|api| {
            // SAFETY: the stream is alive.
            api.check("cuStreamSynchronize", unsafe { (api.cuStreamSynchronize)(self.stream) })
        })
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn handle(&self) -> sys::CUstream {
        self.stream
    }

    fn same_context(&self, other: &Arc<Context>, what: &str) -> Result<(), CudaError> {
        // Devices opened twice share their primary context.
        if self.context.handle == other.handle {
            Ok(())
        } else {
            Err(CudaError::refused(format!("the {what} belongs to another device than the stream")))
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.stream.is_null() {
            // SAFETY: made once, destroyed once; the driver lets queued work finish.
            let _ =
                self.context.with(|api| api.check("cuStreamDestroy", unsafe { (api.cuStreamDestroy_v2)(self.stream) }));
        }
    }
}

/// A mark in a stream, with a time.
pub struct Event {
    context: Arc<Context>,
    event: sys::CUevent,
}

// SAFETY: a handle of the driver, which may be used from any thread and from several: see [`Context`].
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(super) fn handle(&self) -> sys::CUevent {
        self.event
    }

    pub(super) fn create(context: &Arc<Context>) -> Result<Self, CudaError> {
        const CU_EVENT_DEFAULT: u32 = 0;
        let mut event = std::ptr::null_mut();
        context.with(|api| {
            // SAFETY: `event` is a valid place for a handle.
            api.check("cuEventCreate", unsafe { (api.cuEventCreate)(&mut event, CU_EVENT_DEFAULT) })
        })?;
        Ok(Self { context: Arc::clone(context), event })
    }

    /// Waits until the mark is reached.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.with(|api| {
            // SAFETY: the event is alive.
            api.check("cuEventSynchronize", unsafe { (api.cuEventSynchronize)(self.event) })
        })
    }

    /// Milliseconds from `start` to this event, with a resolution near half a microsecond. Waits for this event; both
    /// must have been recorded.
    pub fn elapsed_ms_since(&self, start: &Event) -> Result<f32, CudaError> {
        self.synchronize()?;
        let mut milliseconds = 0.0;
        self.context.with(|api| {
            // SAFETY: `milliseconds` is a valid place for a float, both events are alive.
            let code = unsafe { (api.cuEventElapsedTime)(&mut milliseconds, start.event, self.event) };
            api.check("cuEventElapsedTime", code)
        })?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        let _ = self.context.with(|api| api.check("cuEventDestroy", unsafe { (api.cuEventDestroy_v2)(self.event) }));
    }
}

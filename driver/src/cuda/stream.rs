//! Streams, launches on them, and events.

use super::launch::{self, Arguments, Encoded, Shape, TensorMap};
use super::{Function, LaunchArg};
use crate::cuda::context::{Context, CudaError, Properties};
use cudarc::driver::sys;
use std::rc::Rc;
use tilec_ir::target::MAX_TENSOR_RANK;

/// `CU_TENSOR_MAP_INTERLEAVE_NONE`.
const NO_INTERLEAVE: u32 = 0;
/// `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`: on an H200 as fast as 256 bytes where rows begin at multiples of 128, and a tenth faster
/// where they do not (docs/performance.md).
const PROMOTE_TO_128: u32 = 2;
/// `CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE`: what lies outside is zero.
const ZERO_FILL: u32 = 0;

/// A queue of work on a device.
pub struct Stream {
    context: Rc<Context>,
    properties: Rc<Properties>,
    /// Null for the default stream, which nobody destroys.
    stream: sys::CUstream,
}

impl Stream {
    /// The legacy default stream, which is ordered with all streams made here.
    pub(super) fn legacy_default(context: &Rc<Context>, properties: &Rc<Properties>) -> Self {
        Self { context: Rc::clone(context), properties: Rc::clone(properties), stream: std::ptr::null_mut() }
    }

    pub(super) fn create(context: &Rc<Context>, properties: &Rc<Properties>) -> Result<Self, CudaError> {
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
    /// Refuses, and never clamps: extents of zero, extents, threads and shared memory beyond the device's or the
    /// function's limits, a function of another device, and arguments that do not match the parameters in number and
    /// size (the sizes are known from driver R550 on). Returns when the work is queued; a failure of the kernel itself
    /// appears at a later call.
    pub fn launch(&self, function: &Function, shape: &Shape, params: &[LaunchArg]) -> Result<(), CudaError> {
        self.same_context(function.context(), "function")?;
        let Shape { grid, block, dynamic_smem, programmatic } = *shape;
        launch::check(&self.properties, function, grid, block, dynamic_smem, params)?;
        let maps = params.iter().filter_map(|p| match p {
            LaunchArg::TensorMap(map) => Some(self.encode(map)),
            _ => None,
        });
        let maps: Vec<Encoded> = maps.collect::<Result<_, CudaError>>()?;
        let mut arguments = Arguments::new(params, &maps, function.param_bytes().is_some());
        let mut addresses = arguments.addresses();
        self.context.with(|api| {
            if let (true, Some(launch)) = (programmatic, api.cuLaunchKernelEx) {
                let mut serialization = launch::programmatic_serialization();
                let config = sys::CUlaunchConfig {
                    gridDimX: grid[0],
                    gridDimY: grid[1],
                    gridDimZ: grid[2],
                    blockDimX: block[0],
                    blockDimY: block[1],
                    blockDimZ: block[2],
                    sharedMemBytes: dynamic_smem,
                    hStream: self.stream,
                    attrs: &raw mut serialization,
                    numAttrs: 1,
                };
                // SAFETY: as below; the configuration and its one attribute live until the driver returns.
                let code = unsafe { launch(&config, function.handle(), addresses.as_mut_ptr(), std::ptr::null_mut()) };
                return api.check("cuLaunchKernelEx", code);
            }
            // SAFETY: function and stream are alive and of the current context. There are as many addresses as the
            // function has parameters, or as any function can have, each with the parameter's bytes behind it, and the
            // driver copies them before it returns.
            let code = unsafe {
                (api.cuLaunchKernel)(
                    function.handle(),
                    grid[0],
                    grid[1],
                    grid[2],
                    block[0],
                    block[1],
                    block[2],
                    dynamic_smem,
                    self.stream,
                    addresses.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
            api.check("cuLaunchKernel", code)
        })
    }

    /// Has the driver encode a tensor map, of tiles or of pixels (im2col mode).
    fn encode(&self, map: &TensorMap) -> Result<Encoded, CudaError> {
        let Some(data_type) = map.data_type() else {
            return Err(CudaError::refused("a tensor map of elements that no descriptor has".to_owned()));
        };
        let unknown = || CudaError::refused("this driver knows no tensor maps: they came with CUDA 12.0".to_owned());
        let mut encoded = Encoded([0; 16]);
        let rank = map.rank.min(MAX_TENSOR_RANK as u32);
        self.context.with(|api| {
            // SAFETY, of both: the descriptor is 128 bytes, aligned to 64; the arrays have as many elements as the rank says, which is at
            // most five, of strides one less, of corners two less.
            let code = match &map.pixels {
                None => unsafe {
                    api.cuTensorMapEncodeTiled.ok_or_else(unknown)?(
                        (&raw mut encoded).cast(),
                        data_type,
                        rank,
                        map.address as *mut std::ffi::c_void,
                        map.extents.as_ptr(),
                        map.strides[1..].as_ptr(),
                        map.box_extents.as_ptr(),
                        map.steps.as_ptr(),
                        NO_INTERLEAVE,
                        map.swizzle_code(),
                        PROMOTE_TO_128,
                        ZERO_FILL,
                    )
                },
                Some(pixels) => unsafe {
                    api.cuTensorMapEncodeIm2col.ok_or_else(unknown)?(
                        (&raw mut encoded).cast(),
                        data_type,
                        rank,
                        map.address as *mut std::ffi::c_void,
                        map.extents.as_ptr(),
                        map.strides[1..].as_ptr(),
                        pixels.lower.as_ptr(),
                        pixels.upper.as_ptr(),
                        map.box_extents[0],
                        pixels.count,
                        map.steps.as_ptr(),
                        NO_INTERLEAVE,
                        map.swizzle_code(),
                        PROMOTE_TO_128,
                        ZERO_FILL,
                    )
                },
            };
            if code != 0 {
                let what = format!("the driver refuses this tensor map (error {code}): {map:?}");
                return Err(CudaError::refused(what));
            }
            Ok(())
        })?;
        Ok(encoded)
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

    pub(super) fn context(&self) -> &Rc<Context> {
        &self.context
    }

    pub(super) fn handle(&self) -> sys::CUstream {
        self.stream
    }

    fn same_context(&self, other: &Rc<Context>, what: &str) -> Result<(), CudaError> {
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
    context: Rc<Context>,
    event: sys::CUevent,
}

impl Event {
    pub(super) fn create(context: &Rc<Context>) -> Result<Self, CudaError> {
        const CU_EVENT_DEFAULT: u32 = 0;
        let mut event = std::ptr::null_mut();
        context.with(|api| {
            // SAFETY: `event` is a valid place for a handle.
            api.check("cuEventCreate", unsafe { (api.cuEventCreate)(&mut event, CU_EVENT_DEFAULT) })
        })?;
        Ok(Self { context: Rc::clone(context), event })
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

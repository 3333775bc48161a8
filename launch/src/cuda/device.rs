//! Devices and their properties.

use crate::cuda::context::{Context, CudaError, Properties, text_until_zero};
use crate::cuda::{
    image,
    launch::{LaunchArg, Shape, TensorMap, max_active_clusters},
    memory::Buffer,
    module::{Function, Module},
    stream::{Event, Stream},
    table::Api,
};
use crate::stream::StreamRef;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use std::sync::Arc;

/// An open device: its primary context and its limits.
pub struct Device {
    pub(super) context: Arc<Context>,
    properties: Arc<Properties>,
    default_stream: Stream,
}

impl Device {
    /// Opens the device of this ordinal, in the driver's order.
    ///
    /// Fails with [`CudaError::NoLibrary`] without a driver and with [`CudaError::NoDevice`] without such a device.
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        let (api, device) = find(ordinal)?;
        let properties = Arc::new(properties(api, device)?);
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for a context, `device` came from the driver.
        api.check("cuDevicePrimaryCtxRetain", unsafe { (api.cuDevicePrimaryCtxRetain)(&mut handle, device) })?;
        let context = Arc::new(Context { api, device, handle });
        let default_stream = Stream::legacy_default(&context, &properties);
        Ok(Self { context, properties, default_stream })
    }

    /// The compute capability of the device of this ordinal, which need not be open and gets no context.
    ///
    /// # Errors
    /// As those of [`Device::open`].
    pub fn capability(ordinal: u32) -> Result<(u32, u32), CudaError> {
        let (api, device) = find(ordinal)?;
        capability(api, device)
    }

    /// The ordinal of the device to which an address belongs; `None` of addresses that the driver does not know.
    ///
    /// # Errors
    /// There is no driver.
    pub fn of_address(address: u64) -> Result<Option<u32>, CudaError> {
        const DEVICE_ORDINAL: u32 = 9;
        let (api, mut ordinal) = (init()?, -1i32);
        // SAFETY: the attribute is an int, for which there is a place; the driver looks an address up and does not follow it.
        let code = unsafe { (api.cuPointerGetAttribute)((&raw mut ordinal).cast(), DEVICE_ORDINAL, address) };
        Ok(if code == 0 { u32::try_from(ordinal).ok() } else { None })
    }

    /// Clusters of launches of this shape (whose grid does not count) that the device runs at the same time. A block without a cluster is a
    /// cluster of one.
    ///
    /// # Errors
    /// The device has no room for a cluster of this shape, or the driver refuses.
    pub fn max_active_clusters(&self, function: &Function, shape: &Shape) -> Result<u32, CudaError> {
        max_active_clusters(function, self.properties.sm_count, shape)
    }

    /// Whether a graph is being captured from a stream; so it is taken to be where the driver does not say.
    pub fn is_capturing(&self, stream: StreamRef<'_>) -> bool {
        let asked = self.context.with(|api| {
            let mut status = 0;
            // SAFETY: a place for an int, and a stream that is alive.
            api.check("cuStreamIsCapturing", unsafe { (api.cuStreamIsCapturing)(stream.handle.cast(), &mut status) })?;
            Ok(status != 0)
        });
        asked.unwrap_or(true)
    }

    /// Has what is queued on `stream` from here on wait for what is queued on `other` by now.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn order(&self, stream: StreamRef<'_>, other: StreamRef<'_>) -> Result<(), CudaError> {
        let event = Event::create(&self.context)?;
        self.context.with(|api| {
            // SAFETY: event and streams are alive; the driver keeps what it needs of an event that is destroyed.
            unsafe {
                api.check("cuEventRecord", (api.cuEventRecord)(event.handle(), other.handle.cast()))?;
                api.check("cuStreamWaitEvent", (api.cuStreamWaitEvent)(stream.handle.cast(), event.handle(), 0))
            }
        })
    }

    /// The name and limits of the device.
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

    /// Has the driver encode a tensor map: the 128 bytes that a kernel takes.
    ///
    /// # Errors
    /// The driver knows no tensor maps, or refuses this one.
    pub fn encode(&self, map: &TensorMap) -> Result<[u64; 16], CudaError> {
        super::launch::encode(&self.context, map).map(|encoded| encoded.0)
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

/// The driver, started.
fn init() -> Result<&'static Api, CudaError> {
    let api = Api::get()?;
    // SAFETY: 0 is the only value the flags may have.
    let init = unsafe { (api.cuInit)(0) };
    if init == sys::CUresult::CUDA_ERROR_NO_DEVICE as u32 {
        return Err(CudaError::NoDevice { ordinal: 0, count: 0 });
    }
    api.check("cuInit", init)?;
    Ok(api)
}

/// The device of an ordinal.
fn find(ordinal: u32) -> Result<(&'static Api, sys::CUdevice), CudaError> {
    let api = init().map_err(|error| match error {
        CudaError::NoDevice { count, .. } => CudaError::NoDevice { ordinal, count },
        other => other,
    })?;
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
    Ok((api, device))
}

/// An attribute of a device.
fn attribute(api: &Api, device: sys::CUdevice, attribute: Attribute) -> Result<u32, CudaError> {
    let mut value = 0;
    // SAFETY: `value` is a valid place for an int, `device` came from the driver.
    api.check("cuDeviceGetAttribute", unsafe { (api.cuDeviceGetAttribute)(&mut value, attribute, device) })?;
    // The driver returns the largest int for "unlimited", and never a negative number.
    Ok(value.max(0).unsigned_abs())
}

fn capability(api: &Api, device: sys::CUdevice) -> Result<(u32, u32), CudaError> {
    let one = |which| attribute(api, device, which);
    Ok((
        one(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        one(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ))
}

pub(crate) fn properties(api: &Api, device: sys::CUdevice) -> Result<Properties, CudaError> {
    let attribute = |which: Attribute| attribute(api, device, which);
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
        compute_capability: capability(api, device)?,
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

//! Memory of CubeCL on a GPU of NVIDIA as tensors of kernels.
//!
//! CubeCL keeps its streams to itself, so kernels run on a stream of their own. Events of the whole context order it: it waits for all
//! work that CubeCL has queued, and what CubeCL queues from then on waits for the kernel. The host does not wait. The calls are those
//! of CUDA 12.5.

use crate::launchers::Launchers;
use crate::memory::{At, In, Memory, Out, Wanted, refuse, steps};

use burn_cubecl::cubecl::cuda::CudaRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use cubecl_runtime::runtime::Runtime;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, sys};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tilec_launch::{Device, LaunchError, StreamRef};

/// What runs the kernels of a GPU.
struct OnDevice {
    launchers: Launchers,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// All work of CubeCL, and the kernel.
    queued: CudaEvent,
    launched: CudaEvent,
}

/// By the numbers of the GPUs.
static DEVICES: Mutex<BTreeMap<usize, Arc<Mutex<OnDevice>>>> = Mutex::new(BTreeMap::new());

impl OnDevice {
    /// That of this device, loaded at its first use.
    fn of(device: &CubeDevice) -> Arc<Mutex<OnDevice>> {
        let CubeDevice::Cuda(device) = device else {
            refuse(format!("kernels run on a GPU of NVIDIA and on the backend Flex, not on {device:?}"))
        };
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = devices.entry(device.index).or_insert_with(|| match OnDevice::new(device.index) {
            Ok(loaded) => Arc::new(Mutex::new(loaded)),
            Err(error) => refuse(error),
        });
        loaded.clone()
    }

    fn new(index: usize) -> Result<OnDevice, String> {
        let cuda = |error: DriverError| error.to_string();
        let launchers = u32::try_from(index).map_err(|e| e.to_string()).and_then(|index| {
            let device = Device::cuda(index).map_err(|e| e.to_string())?;
            Launchers::load(&device).map_err(|e| e.to_string())
        })?;
        // The primary context, which is that of CubeCL.
        let context = CudaContext::new(index).map_err(cuda)?;
        let stream = context.new_stream().map_err(cuda)?;
        let (queued, launched) = (context.new_event(None).map_err(cuda)?, context.new_event(None).map_err(cuda)?);
        Ok(OnDevice { launchers, context, stream, queued, launched })
    }

    /// Has the stream wait for all work that is queued in the context.
    fn begin(&self) -> Result<(), DriverError> {
        // SAFETY: the event is of this context, and both live.
        unsafe { sys::cuCtxRecordEvent(self.context.cu_ctx(), self.queued.cu_event()) }.result()?;
        self.stream.wait(&self.queued)
    }

    /// Has all work that is queued in the context from now on wait for the stream.
    fn end(&self) -> Result<(), DriverError> {
        self.launched.record(&self.stream)?;
        // SAFETY: as above.
        unsafe { sys::cuCtxWaitEvent(self.context.cu_ctx(), self.launched.cu_event()) }.result()
    }
}

impl Memory for CubeBackend {
    fn launch<const I: usize, const O: usize>(
        inputs: [CubeTensor; I],
        results: [Wanted; O],
        with: impl FnOnce(&Launchers, [In<'_>; I], [Out<'_>; O], StreamRef<'_>) -> Result<(), LaunchError>,
    ) -> [CubeTensor; O] {
        let Some(first) = inputs.first() else { refuse("an operation without tensors") };
        let (client, device) = (first.client.clone(), first.device.clone());
        inputs.iter().for_each(|x| x.assert_is_on_same_device(first));
        let on = OnDevice::of(&device);
        // The addresses. CubeCL has queued by then what writes the inputs, and keeps the memory as long as these are held.
        let held = |x: CubeTensor| match client.get_resource::<<CudaRuntime as Runtime>::Server>(x.handle.clone()) {
            Ok(memory) => (x, memory),
            Err(error) => refuse(format!("{error:?}")),
        };
        let inputs = inputs.map(held);
        let results = results.map(|(shape, dtype)| {
            let memory = client.empty(shape.iter().product::<usize>() * dtype.size());
            held(CubeTensor::new_contiguous(client.clone(), device.clone(), shape.into(), memory, dtype))
        });
        let read = inputs.each_ref().map(|(x, memory)| In {
            at: At::Device(memory.resource().ptr, memory.resource().size as usize),
            shape: x.meta.shape().to_vec(),
            strides: x.meta.strides().to_vec(),
        });
        let written = results.each_ref().map(|(x, memory)| Out {
            at: At::Device(memory.resource().ptr, memory.resource().size as usize),
            shape: x.meta.shape().to_vec(),
        });
        let on = on.lock().unwrap_or_else(PoisonError::into_inner);
        on.begin().unwrap_or_else(|error| refuse(error));
        let launched = with(&on.launchers, read, written, StreamRef::from(&*on.stream));
        on.end().unwrap_or_else(|error| refuse(error));
        launched.unwrap_or_else(|error| refuse(error));
        results.map(|(x, _)| x)
    }

    fn packed(x: CubeTensor) -> CubeTensor {
        let whole = x.handle.offset_start.unwrap_or(0).is_multiple_of(16);
        if whole && !x.meta.is_tiled() && steps(x.meta.strides().iter().copied()) {
            return x;
        }
        let x = into_contiguous(x);
        if x.handle.offset_start.unwrap_or(0).is_multiple_of(16) { x } else { x.copy() }
    }
}

//! Memory of candle as tensors of kernels: vectors of the CPU for the simulator, slices of cudarc for a GPU.

use candle_core::{CpuStorage, Error, Layout, Result, Shape, WithDType};
use tilec_launch::element::Element;
use tilec_launch::{Holds, StreamRef, Tensor, TensorMut};

/// A storage of candle, and where in it the elements of a tensor are.
pub(crate) type Input<'a, S> = (&'a S, &'a Layout);

/// What an operation takes, in a kind of memory.
pub(crate) type Inputs<'a, M> = [Input<'a, <M as Memory>::Storage>];
/// What it computes.
pub(crate) type Made<M> = Result<Vec<(<M as Memory>::Storage, Shape)>>;

/// What kernels compute, wherever the tensors lie.
pub(crate) trait Operation {
    /// Launches, and gives what was computed.
    fn run<M: Memory>(&self, kernels: &crate::Kernels, memory: &M, inputs: &Inputs<'_, M>) -> Made<M>;
}

/// Types of elements that candle and kernels have.
#[cfg(not(feature = "cuda"))]
pub(crate) trait Held: WithDType {}
/// Types of elements that candle and kernels have.
#[cfg(feature = "cuda")]
pub(crate) trait Held: WithDType + candle_core::cuda_backend::CudaDType + cudarc::driver::DeviceRepr {}
impl Held for half::bf16 {}
impl Held for f32 {}

/// A kind of memory.
pub(crate) trait Memory {
    /// What candle keeps elements in.
    type Storage;
    /// Elements that are read.
    type In<'a, T: Held>;
    /// Elements that are written.
    type Own<T: Held>;

    /// The elements of a storage from the first one of a tensor on.
    fn read<'a, T: Held>(&self, input: Input<'a, Self::Storage>) -> Result<Self::In<'a, T>>;
    /// These as a tensor.
    fn tensor<'a, E: Element, T: Held + Holds<E>, const R: usize>(
        &'a self,
        elements: &'a Self::In<'_, T>,
        layout: &Layout,
    ) -> Result<Tensor<'a, E, R>>;
    /// Memory for `n` elements, all of which a kernel writes.
    fn empty<T: Held>(&self, n: usize) -> Result<Self::Own<T>>;
    /// This as a packed tensor to be written.
    fn written<'a, E: Element, T: Held + Holds<E>, const R: usize>(
        &'a self,
        own: &'a mut Self::Own<T>,
        shape: [usize; R],
    ) -> TensorMut<'a, E, R>;
    /// This as a storage of candle.
    fn store<T: Held>(&self, own: Self::Own<T>) -> Self::Storage;
    /// The stream of the device.
    fn stream(&self) -> StreamRef<'_>;
}

/// An error of the runtime as one of candle.
pub(crate) fn failed(error: tilec_launch::LaunchError) -> Error {
    Error::Msg(error.to_string())
}

/// The extents, or the strides, of a tensor that has `R` dimensions.
fn numbers<const R: usize>(of: &[usize]) -> Result<[usize; R]> {
    of.try_into().map_err(|_| Error::Msg(format!("a tensor of {R} dimensions is expected, found {}", of.len())))
}

/// Memory of the CPU.
#[derive(Copy, Clone)]
pub(crate) struct Simulated;

impl Memory for Simulated {
    type Storage = CpuStorage;
    type In<'a, T: Held> = &'a [T];
    type Own<T: Held> = Vec<T>;

    fn read<'a, T: Held>(&self, (storage, layout): Input<'a, CpuStorage>) -> Result<&'a [T]> {
        Ok(&storage.as_slice::<T>()?[layout.start_offset()..])
    }

    fn tensor<'a, E: Element, T: Held + Holds<E>, const R: usize>(
        &'a self,
        elements: &'a &[T],
        layout: &Layout,
    ) -> Result<Tensor<'a, E, R>> {
        Ok(Tensor::host(elements, numbers(layout.dims())?).with_strides(numbers(layout.stride())?))
    }

    fn empty<T: Held>(&self, n: usize) -> Result<Vec<T>> {
        Ok(vec![T::zero(); n])
    }

    fn written<'a, E: Element, T: Held + Holds<E>, const R: usize>(
        &'a self,
        own: &'a mut Vec<T>,
        shape: [usize; R],
    ) -> TensorMut<'a, E, R> {
        TensorMut::host(own, shape)
    }

    fn store<T: Held>(&self, own: Vec<T>) -> CpuStorage {
        T::to_cpu_storage_owned(own)
    }

    fn stream(&self) -> StreamRef<'_> {
        StreamRef::DEFAULT
    }
}

/// Memory of a GPU.
#[cfg(feature = "cuda")]
pub(crate) mod cuda {
    use super::{Held, Input, Memory, failed, numbers};
    use candle_core::{CudaDevice, CudaStorage, Error, Layout, Result};
    use cudarc::driver::{CudaSlice, CudaStream, CudaView};
    use std::sync::Arc;
    use tilec_launch::element::Element;
    use tilec_launch::{Holds, StreamRef, Tensor, TensorMut};

    /// A GPU, and the stream on which candle runs.
    #[derive(Clone)]
    pub(crate) struct OnDevice {
        device: CudaDevice,
        stream: Arc<CudaStream>,
    }

    impl OnDevice {
        pub(crate) fn new(device: &CudaDevice) -> OnDevice {
            OnDevice { device: device.clone(), stream: device.cuda_stream() }
        }

        /// The same GPU for the runtime of kernels.
        pub(crate) fn device(&self) -> Result<tilec_launch::Device> {
            let ordinal = u32::try_from(self.stream.context().ordinal()).map_err(Error::wrap)?;
            tilec_launch::Device::cuda(ordinal).map_err(failed)
        }
    }

    impl Memory for OnDevice {
        type Storage = CudaStorage;
        type In<'a, T: Held> = CudaView<'a, T>;
        type Own<T: Held> = CudaSlice<T>;

        fn read<'a, T: Held>(&self, (storage, layout): Input<'a, CudaStorage>) -> Result<CudaView<'a, T>> {
            Ok(storage.as_cuda_slice::<T>()?.slice(layout.start_offset()..))
        }

        fn tensor<'a, E: Element, T: Held + Holds<E>, const R: usize>(
            &'a self,
            elements: &'a CudaView<'_, T>,
            layout: &Layout,
        ) -> Result<Tensor<'a, E, R>> {
            let tensor = Tensor::cudarc(elements, &self.stream, numbers(layout.dims())?);
            Ok(tensor.with_strides(numbers(layout.stride())?))
        }

        fn empty<T: Held>(&self, n: usize) -> Result<CudaSlice<T>> {
            // SAFETY: the kernel that is launched next writes all elements, and where it is not launched the memory is dropped.
            unsafe { self.device.alloc::<T>(n) }
        }

        fn written<'a, E: Element, T: Held + Holds<E>, const R: usize>(
            &'a self,
            own: &'a mut CudaSlice<T>,
            shape: [usize; R],
        ) -> TensorMut<'a, E, R> {
            TensorMut::cudarc(own, &self.stream, shape)
        }

        fn store<T: Held>(&self, own: CudaSlice<T>) -> CudaStorage {
            CudaStorage::wrap_cuda_slice(own, self.device.clone())
        }

        fn stream(&self) -> StreamRef<'_> {
            StreamRef::from(&*self.stream)
        }
    }
}

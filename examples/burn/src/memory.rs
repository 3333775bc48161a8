//! Memory of Burn as tensors of kernels: vectors of the CPU for the simulator, buffers of CubeCL for a GPU.

use crate::launchers::{Launchers, simulated};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::{Backend, Flex, tensor::FloatTensor};
use burn::tensor::{Bytes, DType};
use half::bf16;
use tilec_launch::element::{BF16, F32};
use tilec_launch::{LaunchError, StreamRef, Tensor, TensorMut};

/// The shape and the type of a result, which is packed.
pub type Wanted = (Vec<usize>, DType);

/// A backend on whose tensors kernels run.
pub trait Memory: Backend {
    /// Launches `with` the launchers, on inputs and on results that a kernel writes as a whole.
    fn launch<const I: usize, const O: usize>(
        inputs: [FloatTensor<Self>; I],
        results: [Wanted; O],
        with: impl FnOnce(&Launchers, [In<'_>; I], [Out<'_>; O], StreamRef<'_>) -> Result<(), LaunchError>,
    ) -> [FloatTensor<Self>; O];

    /// With elements of the last dimension beside one another. Other dimensions may have any strides of whole 16 bytes.
    fn packed(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// Whether the strides of a tensor of 16-bit elements are those that kernels take.
pub(crate) fn steps(strides: impl DoubleEndedIterator<Item = usize>) -> bool {
    let mut from_last = strides.rev();
    from_last.next().is_none_or(|last| last == 1) && from_last.all(|s| s > 0 && s % 8 == 0)
}

/// Ends an operation that cannot be, as Burn's operations end.
pub(crate) fn refuse(why: impl std::fmt::Display) -> ! {
    panic!("tilec: {why}")
}

/// Where elements lie.
pub(crate) enum At<Bf16, F32> {
    Bf16(Bf16),
    F32(F32),
    /// At an address of a GPU, with so many bytes after it.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "a GPU alone has addresses"))]
    Device(u64, usize),
}

/// A tensor that is read.
pub struct In<'a> {
    pub(crate) at: At<&'a [bf16], &'a [f32]>,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<usize>,
}

/// A packed tensor that is written.
pub struct Out<'a> {
    pub(crate) at: At<&'a mut [bf16], &'a mut [f32]>,
    pub(crate) shape: Vec<usize>,
}

/// The extents, or the strides, of a tensor that has `R` dimensions.
fn numbers<const R: usize>(of: Vec<usize>) -> [usize; R] {
    let found = of.len();
    of.try_into().unwrap_or_else(|_| refuse(format!("a tensor of {R} dimensions is expected, found {found}")))
}

fn other_type() -> ! {
    refuse("a tensor of another type than the kernel's")
}

impl<'a> In<'a> {
    pub fn bf16<const R: usize>(self) -> Tensor<'a, BF16, R> {
        let shape = numbers(self.shape);
        match self.at {
            At::Bf16(elements) => Tensor::host(elements, shape),
            At::Device(address, bytes) => Tensor::at(address, bytes, shape),
            At::F32(_) => other_type(),
        }
        .with_strides(numbers(self.strides))
    }

    pub fn f32<const R: usize>(self) -> Tensor<'a, F32, R> {
        let shape = numbers(self.shape);
        match self.at {
            At::F32(elements) => Tensor::host(elements, shape),
            At::Device(address, bytes) => Tensor::at(address, bytes, shape),
            At::Bf16(_) => other_type(),
        }
        .with_strides(numbers(self.strides))
    }
}

impl<'a> Out<'a> {
    pub fn bf16<const R: usize>(self) -> TensorMut<'a, BF16, R> {
        let shape = numbers(self.shape);
        match self.at {
            At::Bf16(elements) => TensorMut::host(elements, shape),
            At::Device(address, bytes) => TensorMut::at(address, bytes, shape),
            At::F32(_) => other_type(),
        }
    }

    pub fn f32<const R: usize>(self) -> TensorMut<'a, F32, R> {
        let shape = numbers(self.shape);
        match self.at {
            At::F32(elements) => TensorMut::host(elements, shape),
            At::Device(address, bytes) => TensorMut::at(address, bytes, shape),
            At::Bf16(_) => other_type(),
        }
    }
}

impl Memory for Flex {
    fn launch<const I: usize, const O: usize>(
        inputs: [FlexTensor; I],
        results: [Wanted; O],
        with: impl FnOnce(&Launchers, [In<'_>; I], [Out<'_>; O], StreamRef<'_>) -> Result<(), LaunchError>,
    ) -> [FlexTensor; O] {
        let read = inputs.each_ref().map(|x| {
            let layout = x.layout();
            let from = layout.start_offset();
            let at = match x.dtype() {
                DType::BF16 => At::Bf16(&x.storage::<bf16>()[from..]),
                DType::F32 => At::F32(&x.storage::<f32>()[from..]),
                other => refuse(format!("tensors of bf16 and f32 are simulated, not of {other:?}")),
            };
            let strides = layout.strides().iter().map(|s| s.unsigned_abs()).collect();
            In { at, shape: layout.shape().to_vec(), strides }
        });
        let mut results = results.map(|(shape, dtype)| match (shape.iter().product(), dtype) {
            (n, DType::BF16) => (shape, dtype, At::Bf16(vec![bf16::ZERO; n])),
            (n, DType::F32) => (shape, dtype, At::F32(vec![0f32; n])),
            (_, other) => refuse(format!("results of bf16 and f32 are simulated, not of {other:?}")),
        });
        let written = results.each_mut().map(|(shape, _, own)| {
            let at = match own {
                At::Bf16(elements) => At::Bf16(elements.as_mut_slice()),
                At::F32(elements) => At::F32(elements.as_mut_slice()),
                At::Device(address, bytes) => At::Device(*address, *bytes),
            };
            Out { at, shape: shape.clone() }
        });
        let launched = simulated().and_then(|launchers| with(&launchers, read, written, StreamRef::DEFAULT));
        launched.unwrap_or_else(|error| refuse(error));
        results.map(|(shape, dtype, own)| {
            let bytes = match own {
                At::Bf16(elements) => Bytes::from_elems(elements),
                At::F32(elements) => Bytes::from_elems(elements),
                At::Device(..) => unreachable!("results of the CPU"),
            };
            FlexTensor::new(bytes, Layout::contiguous(shape.into()), dtype)
        })
    }

    fn packed(x: FlexTensor) -> FlexTensor {
        let layout = x.layout();
        let forward = layout.strides().iter().all(|s| *s >= 0);
        let strides = layout.strides().iter().map(|s| s.unsigned_abs());
        // The simulator places what it is given at an aligned address, wherever it began.
        if forward && steps(strides) { x } else { x.to_contiguous() }
    }
}

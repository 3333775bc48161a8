//! Tensors for launches: memory with shape and strides; the type has element type, rank and access.
//!
//! Memory is on a device (an address, a buffer, a slice of cudarc) or, for the simulator, on the host.

use crate::overlap::Place;
use std::marker::PhantomData;
use tilec_core::elem::Elem;

/// The maximal number of dimensions of a tensor, counting modes.
pub const MAX_RANK: usize = 8;

/// Element types as Rust types.
pub mod element {
    use tilec_core::elem::Elem;

    /// A Rust type for an element type.
    pub trait Element: 'static {
        /// The element type.
        const ELEM: Elem;
    }

    macro_rules! elements {
        ($($name:ident: $($host:ty),+;)+) => {
            $(
                #[doc = concat!("Stands for [`Elem::", stringify!($name), "`].")]
                #[derive(Copy, Clone, Debug)]
                pub enum $name {}
                impl Element for $name {
                    const ELEM: Elem = Elem::$name;
                }
                $(impl super::Holds<$name> for $host {})+
            )+
        };
    }

    // For elements that share a byte, a host slice has the bytes; for formats that Rust does not have, their bits.
    elements! {
        F16: u16;
        BF16: u16;
        TF32: f32;
        F32: f32;
        F64: f64;
        E4M3: u8;
        E5M2: u8;
        E2M1: u8;
        UE8M0: u8;
        I4: u8;
        U4: u8;
        I8: i8;
        U8: u8;
        I16: i16;
        U16: u16;
        I32: i32;
        U32: u32;
        I64: i64;
        U64: u64;
        Bool: u8;
    }

    #[cfg(feature = "half")]
    impl super::Holds<F16> for half::f16 {}
    #[cfg(feature = "half")]
    impl super::Holds<BF16> for half::bf16 {}
}

use element::Element;

/// A host type whose values are copied to device memory as bytes.
pub trait Host: Copy + 'static {
    /// The bytes of a slice.
    fn to_bytes(slice: &[Self]) -> Vec<u8>;

    /// Sets a slice from as many bytes.
    fn set_bytes(slice: &mut [Self], bytes: &[u8]);
}

/// A host type whose slices can hold elements of a type.
pub trait Holds<E: Element>: Host {}

macro_rules! hosts {
    ($($ty:ty)+) => {
        $(impl Host for $ty {
            fn to_bytes(slice: &[$ty]) -> Vec<u8> {
                slice.iter().flat_map(|x| x.to_le_bytes()).collect()
            }

            fn set_bytes(slice: &mut [$ty], bytes: &[u8]) {
                for (x, bytes) in slice.iter_mut().zip(bytes.chunks_exact(size_of::<$ty>())) {
                    let mut own = [0; size_of::<$ty>()];
                    own.copy_from_slice(bytes);
                    *x = <$ty>::from_le_bytes(own);
                }
            }
        })+
    };
}

hosts! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

#[cfg(feature = "half")]
hosts! { half::f16 half::bf16 }

/// Memory of the host that is read.
#[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "the simulator alone reads memory of the host"))]
pub(crate) trait HostMemory {
    fn bytes(&self) -> Vec<u8>;
}

/// Memory of the host that is written.
#[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "the simulator alone reads memory of the host"))]
pub(crate) trait HostMemoryMut: HostMemory {
    fn set(&mut self, bytes: &[u8]);
}

struct Slice<'a, T>(&'a [T]);
struct SliceMut<'a, T>(&'a mut [T]);

impl<T: Host> HostMemory for Slice<'_, T> {
    fn bytes(&self) -> Vec<u8> {
        T::to_bytes(self.0)
    }
}

impl<T: Host> HostMemory for SliceMut<'_, T> {
    fn bytes(&self) -> Vec<u8> {
        T::to_bytes(self.0)
    }
}

impl<T: Host> HostMemoryMut for SliceMut<'_, T> {
    fn set(&mut self, bytes: &[u8]) {
        T::set_bytes(self.0, bytes);
    }
}

/// The memory of a tensor.
#[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "the simulator alone reads memory of the host"))]
pub(crate) enum Memory<'a> {
    /// On a device.
    Device(u64),
    /// On the host, to be read.
    Host(Box<dyn HostMemory + 'a>),
    /// On the host, to be read and written.
    HostMut(Box<dyn HostMemoryMut + 'a>),
}

/// A tensor whose type is checked at the launch; [`Tensor`] and [`TensorMut`] contain one.
pub struct Argument<'a> {
    pub(crate) memory: Memory<'a>,
    /// Bytes from the first element to the end of the memory.
    pub(crate) bytes: u64,
    pub(crate) elem: Elem,
    pub(crate) writable: bool,
    rank: usize,
    shape: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
    /// Tells cudarc when the launch is queued.
    #[cfg(feature = "cuda")]
    _queued: Option<cudarc::driver::SyncOnDrop<'a>>,
}

impl<'a> Argument<'a> {
    fn new(memory: Memory<'a>, bytes: u64, elem: Elem, writable: bool, shape: &[usize]) -> Argument<'a> {
        let mut made = Argument {
            memory,
            bytes,
            elem,
            writable,
            rank: shape.len().min(MAX_RANK),
            shape: [1; MAX_RANK],
            strides: [0; MAX_RANK],
            #[cfg(feature = "cuda")]
            _queued: None,
        };
        made.shape.iter_mut().zip(shape).for_each(|(to, from)| *to = *from as u64);
        let mut step = 1u64;
        for dim in (0..made.rank).rev() {
            made.strides[dim] = step;
            step = step.saturating_mul(made.shape[dim].max(1));
        }
        made
    }

    /// The extent of each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape[..self.rank]
    }

    /// The stride of each dimension, in elements.
    pub fn strides(&self) -> &[u64] {
        &self.strides[..self.rank]
    }

    fn set_strides(&mut self, strides: &[usize]) {
        self.strides.iter_mut().zip(strides).for_each(|(to, from)| *to = *from as u64);
    }

    /// Reverses the dimensions.
    fn transpose(&mut self) {
        self.shape[..self.rank].reverse();
        self.strides[..self.rank].reverse();
    }
}

impl Argument<'_> {
    /// The device address, of memory that has one.
    pub(crate) fn address(&self) -> Option<u64> {
        match &self.memory {
            Memory::Device(address) => Some(*address),
            Memory::Host(_) | Memory::HostMut(_) => None,
        }
    }

    /// Whether elements have distinct addresses: in order of their strides, each dimension steps beyond the range of all smaller ones.
    pub(crate) fn is_distinct(&self) -> bool {
        let dims = self.shape().iter().zip(self.strides()).filter(|(n, _)| **n > 1);
        let mut dims: Vec<(u64, u64)> = dims.map(|(n, stride)| (*stride, *n)).collect();
        dims.sort_unstable();
        let mut reach = 0u64;
        dims.into_iter().all(|(stride, n)| {
            let apart = stride > reach;
            reach = reach.saturating_add(stride.saturating_mul(n - 1));
            apart
        })
    }

    /// The same tensor at this address.
    pub(crate) fn place(&self, address: u64) -> Place<'_> {
        Place { address, elem: self.elem, shape: self.shape(), strides: self.strides() }
    }
}

macro_rules! tensors {
    ($(#[doc = $doc:literal])+ $name:ident, $writable:literal, $($of:ident)?) => {
        $(#[doc = $doc])+
        pub struct $name<'a, E: Element, const RANK: usize> {
            argument: Argument<'a>,
            of: PhantomData<E>,
        }

        impl<'a, E: Element, const RANK: usize> $name<'a, E, RANK> {
            const FITS: () = assert!(RANK <= MAX_RANK, "a tensor has at most eight dimensions");

            fn made(memory: Memory<'a>, bytes: u64, shape: [usize; RANK]) -> $name<'a, E, RANK> {
                let () = Self::FITS;
                $name { argument: Argument::new(memory, bytes, E::ELEM, $writable, &shape), of: PhantomData }
            }

            /// A packed tensor in row-major order at a device address, with `bytes` bytes of memory. Rust does not protect
            /// device memory: the address is not checked.
            pub fn at(address: u64, bytes: usize, shape: [usize; RANK]) -> $name<'a, E, RANK> {
                $name::made(Memory::Device(address), bytes as u64, shape)
            }

            /// With these strides, in elements.
            #[must_use]
            pub fn with_strides(mut self, strides: [usize; RANK]) -> $name<'a, E, RANK> {
                self.argument.set_strides(&strides);
                self
            }

            /// With the dimensions in reverse order: the transpose of a matrix.
            #[must_use]
            pub fn transposed(mut self) -> $name<'a, E, RANK> {
                self.argument.transpose();
                self
            }

            /// The argument of a launch by name.
            pub fn argument(self) -> Argument<'a> {
                self.argument
            }
        }
    };
}

tensors! {
    /// A tensor that a kernel reads: elements of type `E`, `RANK` dimensions.
    Tensor, false,
}

tensors! {
    /// A tensor that a kernel writes, or reads and writes: elements of type `E`, `RANK` dimensions.
    TensorMut, true,
}

impl<'a, E: Element, const RANK: usize> Tensor<'a, E, RANK> {
    /// A packed tensor of the host, for the simulator.
    pub fn host<T: Holds<E>>(slice: &'a [T], shape: [usize; RANK]) -> Tensor<'a, E, RANK> {
        Tensor::made(Memory::Host(Box::new(Slice(slice))), size_of_val(slice) as u64, shape)
    }
}

impl<'a, E: Element, const RANK: usize> TensorMut<'a, E, RANK> {
    /// A packed tensor of the host, for the simulator.
    pub fn host<T: Holds<E>>(slice: &'a mut [T], shape: [usize; RANK]) -> TensorMut<'a, E, RANK> {
        let bytes = size_of_val(slice) as u64;
        TensorMut::made(Memory::HostMut(Box::new(SliceMut(slice))), bytes, shape)
    }
}

#[cfg(feature = "cuda")]
mod on_device {
    use super::{Element, Holds, Tensor, TensorMut};
    use crate::cuda::Buffer;
    use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};

    impl<'a, E: Element, const RANK: usize> Tensor<'a, E, RANK> {
        /// A packed tensor at the start of a buffer.
        pub fn buffer(buffer: &'a Buffer, shape: [usize; RANK]) -> Tensor<'a, E, RANK> {
            Tensor::at(buffer.address(), buffer.bytes(), shape)
        }

        /// A packed tensor in memory of cudarc (`CudaSlice`, `CudaView`), to be used on `stream`, which waits for what was
        /// written before; cudarc learns that it is read when the tensor is dropped, after the launch.
        pub fn cudarc<T: Holds<E>, S: DevicePtr<T>>(
            slice: &'a S,
            stream: &'a CudaStream,
            shape: [usize; RANK],
        ) -> Tensor<'a, E, RANK> {
            let (address, queued) = slice.device_ptr(stream);
            let mut made = Tensor::at(address, slice.len() * size_of::<T>(), shape);
            made.argument._queued = Some(queued);
            made
        }
    }

    impl<'a, E: Element, const RANK: usize> TensorMut<'a, E, RANK> {
        /// A packed tensor at the start of a buffer.
        pub fn buffer(buffer: &'a Buffer, shape: [usize; RANK]) -> TensorMut<'a, E, RANK> {
            TensorMut::at(buffer.address(), buffer.bytes(), shape)
        }

        /// A packed tensor in memory of cudarc (`CudaSlice`, `CudaViewMut`), to be used on `stream`, which waits for what was
        /// read and written before; cudarc learns that it is written when the tensor is dropped, after the launch.
        pub fn cudarc<T: Holds<E>, S: DevicePtrMut<T>>(
            slice: &'a mut S,
            stream: &'a CudaStream,
            shape: [usize; RANK],
        ) -> TensorMut<'a, E, RANK> {
            let bytes = slice.len() * size_of::<T>();
            let (address, queued) = slice.device_ptr_mut(stream);
            let mut made = TensorMut::at(address, bytes, shape);
            made.argument._queued = Some(queued);
            made
        }
    }
}

//! Launches: limits and arguments, checked before the driver sees them.

use super::{Function, FunctionAttributes};
use crate::contract::Contract;
use crate::cuda::context::{Context, CudaError, Properties};
use crate::cuda::table::Api;
use cudarc::driver::sys;
use std::ffi::c_void;
use tilec_core::elem::Elem;
use tilec_core::hardware::Exchange;
use tilec_core::hardware::MAX_TENSOR_RANK;

/// Bytes of parameters a kernel can have at most (PTX ISA 8.1, section 4.2.8 "Kernel function parameters", sm_70 on).
pub(super) const MAX_PARAM_BYTES: usize = 32_764;

/// `CU_TENSOR_MAP_INTERLEAVE_NONE`.
const NO_INTERLEAVE: u32 = 0;
/// `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`: on an H200 as fast as 256 bytes where rows begin at multiples of 128, and a tenth faster
/// where they do not (docs/performance.md).
pub const PROMOTE_TO_128: u32 = 2;
/// `CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE`: elements out of bounds are zero.
const ZERO_FILL: u32 = 0;

/// The launch configuration of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, bytes.
    pub dynamic_smem: u32,
    /// Blocks of a cluster; `[1, 1, 1]`: no cluster. The PTX may have its own.
    pub cluster: [u32; 3],
    /// It may begin while the launch in front of it ends, if the driver and the device can (compute capability 9.0): the kernel waits
    /// itself (`griddepcontrol.wait`).
    pub programmatic: bool,
}

impl Shape {
    /// The configuration of a contract over a grid.
    pub fn of(contract: &Contract, grid: [u32; 3]) -> Shape {
        Shape {
            grid,
            block: contract.block,
            dynamic_smem: contract.dynamic_smem_bytes,
            cluster: contract.cluster,
            programmatic: contract.programmatic,
        }
    }
}

/// No cluster.
const ALONE: [u32; 3] = [1; 3];

/// Queues a launch in the current context: with attributes where it has a cluster or may begin early.
///
/// # Errors
/// The driver refuses, or knows no clusters.
///
/// # Safety
/// `function` and `stream` are alive and of the current context. `addresses` has as many addresses as the function has
/// parameters, or as any function can have, each with the parameter's bytes after it.
pub(super) unsafe fn queue(
    api: &Api,
    function: sys::CUfunction,
    shape: &Shape,
    stream: sys::CUstream,
    addresses: *mut *mut c_void,
) -> Result<(), CudaError> {
    let Shape { grid, block, dynamic_smem, cluster, programmatic } = *shape;
    if cluster == ALONE && !(programmatic && api.cuLaunchKernelEx.is_some()) {
        // SAFETY: as the caller says; the driver copies the parameters before it returns.
        let code = unsafe {
            (api.cuLaunchKernel)(
                function,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                dynamic_smem,
                stream,
                addresses,
                std::ptr::null_mut(),
            )
        };
        return api.check("cuLaunchKernel", code);
    }
    let launch = api.cuLaunchKernelEx.ok_or_else(no_clusters)?;
    let mut attributes = Attributes::of(cluster, programmatic);
    let config = attributes.configuration(shape, stream);
    // SAFETY: as the caller says; the configuration and its attributes live until the driver returns.
    let code = unsafe { launch(&config, function, addresses, std::ptr::null_mut()) };
    api.check("cuLaunchKernelEx", code)
}

/// The error for a driver that is too old for clusters.
fn no_clusters() -> CudaError {
    CudaError::refused("this driver knows no clusters: they need CUDA 11.8")
}

/// Clusters of launches of this shape (whose grid does not count) that a device of `sm_count` multiprocessors, which is that of the
/// function, runs at the same time.
///
/// # Errors
/// The device has no room for a cluster of this shape, or the driver refuses.
pub(super) fn max_active_clusters(function: &Function, sm_count: u32, shape: &Shape) -> Result<u32, CudaError> {
    let Shape { block, dynamic_smem, cluster, .. } = *shape;
    let mut count = 0;
    function.context().with(|api| {
        if cluster == ALONE {
            let (threads, shared) = (block.iter().product::<u32>() as i32, dynamic_smem as usize);
            // SAFETY: `count` is a valid place for an int, the function is one of a loaded module, whose context is current.
            let code = unsafe {
                (api.cuOccupancyMaxActiveBlocksPerMultiprocessor)(&mut count, function.handle(), threads, shared)
            };
            return api.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code);
        }
        let ask = api.cuOccupancyMaxActiveClusters.ok_or_else(no_clusters)?;
        let mut attributes = Attributes::of(cluster, false);
        let config = attributes.configuration(&Shape { grid: cluster, ..*shape }, std::ptr::null_mut());
        // SAFETY: as above; the configuration and its attributes live until the driver returns.
        api.check("cuOccupancyMaxActiveClusters", unsafe { ask(&mut count, function.handle(), &config) })
    })?;
    let of_each = if cluster == ALONE { sm_count } else { 1 };
    match count.max(0).unsigned_abs().saturating_mul(of_each) {
        0 => Err(CudaError::refused(format!("the device has no room for a cluster of `{}`", function.name()))),
        count => Ok(count),
    }
}

/// Attributes of a launch.
struct Attributes {
    all: [sys::CUlaunchAttribute; 2],
    count: usize,
}

impl Attributes {
    fn of(cluster: [u32; 3], programmatic: bool) -> Attributes {
        // SAFETY: integers, pointers and enumerations that have a zero, for all of which zero is a value.
        let mut attributes: [sys::CUlaunchAttribute; 2] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        if cluster != ALONE {
            attributes[count].id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes[count].value.clusterDim =
                sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: cluster[0], y: cluster[1], z: cluster[2] };
            count += 1;
        }
        if programmatic {
            attributes[count].id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes[count].value.programmaticStreamSerializationAllowed = 1;
            count += 1;
        }
        Attributes { all: attributes, count }
    }

    /// A configuration that points to these attributes.
    fn configuration(&mut self, shape: &Shape, stream: sys::CUstream) -> sys::CUlaunchConfig {
        let Shape { grid, block, dynamic_smem, .. } = *shape;
        sys::CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: dynamic_smem,
            hStream: stream,
            attrs: self.all.as_mut_ptr(),
            numAttrs: self.count as u32,
        }
    }
}

/// A kernel argument. Its size is that of the variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LaunchArg {
    /// A device address, 8 bytes.
    Ptr(u64),
    /// 1 byte.
    U8(u8),
    /// 1 byte.
    I8(i8),
    /// 2 bytes.
    U16(u16),
    /// The bits of a half, 2 bytes.
    F16(u16),
    /// The bits of a bfloat16, 2 bytes.
    Bf16(u16),
    /// 4 bytes.
    U32(u32),
    /// 4 bytes.
    I32(i32),
    /// 4 bytes.
    F32(f32),
    /// 8 bytes.
    U64(u64),
    /// 8 bytes.
    I64(i64),
    /// 8 bytes.
    F64(f64),
    /// A tensor map, 128 bytes encoded by the driver.
    TensorMap(TensorMap),
}

/// The parameters of a tensor map; dimensions from the contiguous one on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorMap {
    /// Element type.
    pub elem: Elem,
    /// Device address of the tensor, a multiple of 16 bytes.
    pub address: u64,
    /// Bytes from where the descriptor begins to the tensor, which [`TensorMap::begin`] takes off.
    pub in_front: u64,
    /// Dimensions that count.
    pub rank: u32,
    /// Extents in elements.
    pub extents: [u64; MAX_TENSOR_RANK],
    /// Strides in bytes, multiples of 16; that of the contiguous dimension is the size of an element.
    pub strides: [u64; MAX_TENSOR_RANK],
    /// Extents of a box in elements.
    pub box_extents: [u32; MAX_TENSOR_RANK],
    /// The swizzling mode.
    pub swizzle: Exchange,
    /// Elements from one that is copied to the next.
    pub steps: [u32; MAX_TENSOR_RANK],
    /// The pixels of a map in im2col mode, whose first box extent counts channels.
    pub pixels: Option<PixelBox>,
}

/// Most dimensions between channels and images.
pub const MAX_PLACES: usize = MAX_TENSOR_RANK - 2;

/// The pixels of a map in im2col mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelBox {
    /// Lower corner of the bounding box.
    pub lower: [i32; MAX_PLACES],
    /// Upper corner, relative to the last element.
    pub upper: [i32; MAX_PLACES],
    /// Pixels of a copy.
    pub count: u32,
}

/// Bytes of an encoded tensor map. The driver requires alignment to half of that.
#[repr(C, align(64))]
pub(super) struct Encoded(pub(super) [u64; 16]);

impl TensorMap {
    /// The address that the driver is given.
    pub fn begin(&self) -> u64 {
        self.address.wrapping_sub(self.in_front)
    }

    /// `CUtensorMapDataType`; `None` of elements that no map has.
    pub fn data_type(&self) -> Option<u32> {
        crate::tensor_map::data_type(self.elem)
    }

    /// `CUtensorMapSwizzle`.
    pub fn swizzle_code(&self) -> u32 {
        crate::tensor_map::swizzle(self.swizzle)
    }
}

impl LaunchArg {
    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::U8(_) | Self::I8(_) => 1,
            Self::U16(_) | Self::F16(_) | Self::Bf16(_) => 2,
            Self::U32(_) | Self::I32(_) | Self::F32(_) => 4,
            Self::Ptr(_) | Self::U64(_) | Self::I64(_) | Self::F64(_) => 8,
            Self::TensorMap(_) => size_of::<Encoded>(),
        }
    }

    /// The value in the first bytes of a word, in the host's byte order, which is the device's.
    pub(super) fn word(&self) -> [u8; 8] {
        fn first<const N: usize>(bytes: [u8; N]) -> [u8; 8] {
            let mut word = [0; 8];
            word[..N].copy_from_slice(&bytes);
            word
        }
        match *self {
            Self::Ptr(x) | Self::U64(x) => x.to_ne_bytes(),
            Self::I64(x) => x.to_ne_bytes(),
            Self::F64(x) => x.to_ne_bytes(),
            Self::U32(x) => first(x.to_ne_bytes()),
            Self::I32(x) => first(x.to_ne_bytes()),
            Self::F32(x) => first(x.to_ne_bytes()),
            Self::U16(x) | Self::F16(x) | Self::Bf16(x) => first(x.to_ne_bytes()),
            Self::U8(x) => [x, 0, 0, 0, 0, 0, 0, 0],
            Self::I8(x) => first(x.to_ne_bytes()),
            Self::TensorMap(_) => [0; 8],
        }
    }
}

/// Arguments in the form that the driver reads: one word each, and an address for each.
///
/// The driver reads as many addresses, and as many bytes at each, as the kernel has parameters. If the driver reports
/// the sizes, they have been compared. Otherwise the list has as many addresses as any kernel can have, each followed
/// by the longest possible parameter list, filled with zeros. A wrong list then gives a wrong kernel, not a host read
/// out of bounds.
pub(super) struct Arguments {
    words: Vec<u64>,
    /// Start of each argument; one more for the end.
    starts: Vec<usize>,
    n_addresses: usize,
}

impl Arguments {
    /// `maps`: the encoded tensor maps among the arguments, in their order.
    pub(super) fn new(arguments: &[LaunchArg], maps: &[Encoded], sizes_known: bool) -> Self {
        let (mut words, mut starts, mut maps) = (Vec::new(), Vec::new(), maps.iter());
        for argument in arguments {
            starts.push(words.len());
            match argument {
                LaunchArg::TensorMap(_) => words.extend(maps.next().map_or([0; 16], |m| m.0)),
                _ => words.push(u64::from_ne_bytes(argument.word())),
            }
        }
        starts.push(words.len());
        let n_arguments = arguments.len();
        if sizes_known {
            return Self { words, starts, n_addresses: n_arguments };
        }
        words.resize(words.len() + MAX_PARAM_BYTES.div_ceil(8), 0);
        Self { words, starts, n_addresses: n_arguments.max(MAX_PARAM_BYTES) }
    }

    /// The addresses, valid until the arguments are dropped or moved out of.
    pub(super) fn addresses(&mut self) -> Vec<*mut c_void> {
        let (words, starts) = (&mut self.words, &self.starts);
        // Arguments that are not there all are at the first zero.
        let last = starts.len() - 1;
        (0..self.n_addresses).map(|i| (&raw mut words[starts[i.min(last)]]).cast()).collect()
    }
}

/// Refuses a list of arguments that is not the function's list of parameters, by number and sizes.
pub(super) fn check_arguments(name: &str, param_bytes: &[usize], arguments: &[LaunchArg]) -> Result<(), CudaError> {
    if param_bytes.len() != arguments.len() {
        let (found, expected) = (arguments.len(), param_bytes.len());
        return Err(CudaError::refused(format!("`{name}` takes {expected} parameters, found {found} arguments")));
    }
    for (index, (expected, argument)) in param_bytes.iter().zip(arguments).enumerate() {
        let found = argument.bytes();
        if found != *expected {
            return Err(CudaError::refused(format!(
                "parameter {index} of `{name}` has {expected} bytes, found {argument:?} of {found}"
            )));
        }
    }
    Ok(())
}

/// The limits for launches of one function on one device.
pub(super) struct Limits<'a> {
    pub(super) device: &'a Properties,
    pub(super) function: FunctionAttributes,
    /// Dynamic shared memory the function is set to allow, bytes.
    pub(super) max_dynamic_smem: u32,
}

impl Limits<'_> {
    /// Refuses extents of zero and everything beyond a limit.
    pub(super) fn check(&self, grid: [u32; 3], block: [u32; 3], dynamic_smem: u32) -> Result<(), CudaError> {
        for (what, extents, limits) in [("grid", grid, self.device.max_grid), ("block", block, self.device.max_block)] {
            for ((axis, extent), limit) in ["x", "y", "z"].into_iter().zip(extents).zip(limits) {
                if extent == 0 || extent > limit {
                    return Err(CudaError::refused(format!("{what} extent {axis} is {extent}, expected 1 to {limit}")));
                }
            }
        }
        let threads: u64 = block.into_iter().map(u64::from).product();
        let FunctionAttributes { registers, max_threads_per_block, static_shared_bytes, .. } = self.function;
        if threads > u64::from(self.device.max_threads_per_block) {
            let limit = self.device.max_threads_per_block;
            return Err(CudaError::refused(format!(
                "a block of {threads} threads is over the device's limit of {limit}"
            )));
        }
        if threads > u64::from(max_threads_per_block) {
            return Err(CudaError::refused(format!(
                "a block of {threads} threads is over the function's limit of {max_threads_per_block} \
                 ({registers} registers per thread)"
            )));
        }
        let shared = u64::from(static_shared_bytes) + u64::from(dynamic_smem);
        if shared > u64::from(self.device.max_shared_bytes_optin) {
            let limit = self.device.max_shared_bytes_optin;
            return Err(CudaError::refused(format!(
                "{shared} bytes of shared memory ({static_shared_bytes} static, {dynamic_smem} dynamic) are over the \
                 device's limit of {limit} per block"
            )));
        }
        if dynamic_smem > self.max_dynamic_smem {
            return Err(CudaError::refused(format!(
                "{dynamic_smem} bytes of dynamic shared memory are over the {} the function is set to allow; raise them \
                 with `set_max_dynamic_smem`",
                self.max_dynamic_smem
            )));
        }
        Ok(())
    }
}

/// Has the driver encode a tensor map, of tiles or of pixels (im2col mode).
pub(super) fn encode(context: &Context, map: &TensorMap) -> Result<Encoded, CudaError> {
    let Some(data_type) = map.data_type() else {
        return Err(CudaError::refused("a tensor map of elements that no descriptor has".to_owned()));
    };
    let unknown = || CudaError::refused("this driver knows no tensor maps: they need CUDA 12.0".to_owned());
    let mut encoded = Encoded([0; 16]);
    let rank = map.rank.min(MAX_TENSOR_RANK as u32);
    context.with(|api| {
        // SAFETY, of both: the descriptor is 128 bytes, aligned to 64; the arrays have as many elements as the rank says, which is at
        // most five, of strides one less, of corners two less.
        let code = match &map.pixels {
            None => unsafe {
                api.cuTensorMapEncodeTiled.ok_or_else(unknown)?(
                    (&raw mut encoded).cast(),
                    data_type,
                    rank,
                    map.begin() as *mut std::ffi::c_void,
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
                    map.begin() as *mut std::ffi::c_void,
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

/// Checks everything about a launch that can be known before it.
pub(super) fn check(
    device: &Properties,
    function: &Function,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_smem: u32,
    arguments: &[LaunchArg],
) -> Result<(), CudaError> {
    check_shape(device, function, grid, block, dynamic_smem)?;
    match function.param_bytes() {
        Some(sizes) => check_arguments(function.name(), sizes, arguments),
        None => Ok(()),
    }
}

/// Checks grid, block and shared memory of launches.
pub(super) fn check_shape(
    device: &Properties,
    function: &Function,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_smem: u32,
) -> Result<(), CudaError> {
    let max_dynamic_smem = function.max_dynamic_smem()?;
    Limits { device, function: function.attributes(), max_dynamic_smem }.check(grid, block, dynamic_smem)
}

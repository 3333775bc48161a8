//! The launch contract as data: everything a host needs to run a kernel, and nothing else.
//!
//! Expressions are strings in the notation of the language (`ceildiv(M, 128)`), over the names of the parameters of kind
//! size, stride and scalar.

use tilec_ir::interp::Number;
use tilec_ir::layout::hardware::Exchange;
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, Scratch};

/// What a kernel needs from its host.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// Entry name.
    pub entry: String,
    /// Target the PTX is for.
    pub target: Target,
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster; `[1, 1, 1]`: no cluster launch.
    pub cluster: [u32; 3],
    /// A launch may begin while the one in front of it ends: programmatic stream serialization is allowed.
    pub programmatic: bool,
    /// Dynamic shared memory, bytes. Above 48 KiB the function attribute must be raised.
    pub dynamic_smem_bytes: u32,
    /// Grid extents as expressions.
    pub grid: [String; 3],
    /// Kernel parameters in order.
    pub params: Vec<LaunchParam>,
    /// Preconditions, as Boolean expressions; all must hold.
    pub requires: Vec<String>,
}

/// A kernel parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchParam {
    /// Its name in the source.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
}

/// How a kernel uses a tensor.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// It is only read.
    Read,
    /// It is only written.
    Write,
    /// Both.
    ReadWrite,
}

/// A descriptor for TMA (`cuTensorMapEncodeTiled`): 128 bytes, passed by value. Address, extents and
/// strides are those of the tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorMap {
    /// The tensor.
    pub tensor: String,
    /// Its dimensions in the order of the descriptor, the contiguous one first.
    pub dims: Vec<u32>,
    /// Extents of a box along them.
    pub extents: Vec<u32>,
    /// The swizzling mode.
    pub exchange: Exchange,
    /// The dimension that the descriptor has twice, for windows with an end of their own ([`tilec_ir::window_ends`]).
    pub ended: Option<u32>,
    /// Set in im2col mode (`cuTensorMapEncodeIm2col`), where boxes consist of channels and pixels.
    pub im2col: Option<Im2colMap>,
}

/// The pixels that a descriptor in im2col mode covers. Lists have the dimensions between channels and images, innermost
/// first.
#[derive(Clone, PartialEq, Debug)]
pub struct Im2colMap {
    /// Where the box of pixels begins, as expressions.
    pub lower: Vec<String>,
    /// Where it ends, relative to the last pixel, as expressions.
    pub upper: Vec<String>,
    /// Distance between adjacent pixels of a box.
    pub steps: Vec<u32>,
}

/// What a kernel parameter is, and how it is passed.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamKind {
    /// A device pointer, 64 bits.
    Tensor {
        /// Element type.
        elem: Elem,
        /// Alignment in bytes of the address, or of each address of an array of pointers.
        align: u32,
        /// How the kernel uses it.
        access: Access,
        /// Extents of each dimension's modes, as expressions. Most dimensions have one mode.
        shape: Vec<Vec<String>>,
        /// Strides of each dimension's modes in elements, as expressions. The first dimension of an array of pointers
        /// has none.
        strides: Vec<Vec<String>>,
        /// The parameter is the address of an array of addresses, one for each index of the first dimension.
        pointers: bool,
        /// Scratch memory: neither input nor result. The host allocates it and clears its signals.
        scratch: Option<Scratch>,
        /// Accesses also read the gaps between elements and drop what they read.
        reads_gaps: bool,
        /// It may be loaded before launches in front of this one have ended.
        constant: bool,
        /// Read-only tensors that may have the same address as this output, if their strides are equal too.
        may_alias: Vec<String>,
    },
    /// A descriptor of a tensor, 128 bytes.
    TensorMap(TensorMap),
    /// An extent, u32.
    Size,
    /// A stride in elements, i64.
    Stride {
        /// The stride of a packed tensor, as an expression; `None` where packing is not defined.
        packed: Option<String>,
    },
    /// A scalar of this type.
    Scalar {
        /// Element type.
        elem: Elem,
        /// Default.
        default: Option<Number>,
    },
}

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
    /// Which of them is there twice, for windows with an end of their own ([`tilec_ir::own_end`]).
    pub ended: Option<u32>,
    /// Of a descriptor in im2col mode (`cuTensorMapEncodeIm2col`), whose box is of channels and pixels.
    pub im2col: Option<Im2colMap>,
}

/// Which pixels a descriptor in im2col mode counts. Dimensions between channels and images, innermost first.
#[derive(Clone, PartialEq, Debug)]
pub struct Im2colMap {
    /// Where the box of pixels begins, as expressions.
    pub lower: Vec<String>,
    /// Where it ends, counted from the last line, as expressions.
    pub upper: Vec<String>,
    /// Lines from pixel to pixel.
    pub steps: Vec<u32>,
}

/// What a kernel parameter is, and how it is passed.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamKind {
    /// A device pointer, 64 bits.
    Tensor {
        /// Element type.
        elem: Elem,
        /// Alignment of the address (of each of the addresses), bytes.
        align: u32,
        /// How the kernel uses it.
        access: Access,
        /// The extents of each dimension's modes, as expressions: mostly of one.
        shape: Vec<Vec<String>>,
        /// The strides of each dimension's modes in elements, as expressions: of every dimension, but for the first of an
        /// array of pointers.
        strides: Vec<Vec<String>>,
        /// It is the address of an array of addresses, one for each index of the first dimension.
        pointers: bool,
        /// It is not an input and no result: the host makes room, and has all signals down.
        scratch: Option<Scratch>,
        /// What is between its elements is read as well, if only to be thrown away.
        reads_gaps: bool,
        /// Tensors that are read, at whose address this one, which is written, may stand: if the strides are equal too.
        may_alias: Vec<String>,
    },
    /// A descriptor of a tensor, 128 bytes.
    TensorMap(TensorMap),
    /// An extent, u32.
    Size,
    /// A stride in elements, i64.
    Stride {
        /// What it is when the tensor is packed, as an expression; `None` where no packing is defined.
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

//! The launch requirements of one kernel.

use crate::contract::number::Number;
use serde::{Deserialize, Serialize};
use tilec_core::elem::Elem;
use tilec_core::hardware::Exchange;

/// The value of `schema` in a contract without the tensor maps of [`SCHEMA_ENDED`].
pub const SCHEMA: &str = "tilec.launch/1";

/// The value of `schema` for a contract with [`TensorMapParam::ended`], and for a file with such a contract. A host
/// that does not know this field would encode a wrong map.
pub const SCHEMA_ENDED: &str = "tilec.launch/3";

/// The launch requirements of one kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Contract {
    /// [`SCHEMA`] or [`SCHEMA_ENDED`].
    pub schema: String,
    /// Entry name in the PTX.
    pub entry: String,
    /// Target of the PTX, such as `sm_70`.
    pub target: String,
    /// `.version` of the PTX, such as `6.4`. The driver must support it.
    pub ptx_version: String,
    /// The id in a comment of the PTX, made by `Contract::mark`: a hash of all other fields. Absent if the contract was
    /// written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster; `[1, 1, 1]`: no cluster launch.
    pub cluster: [u32; 3],
    /// The launch may begin while the one in front of it in the stream ends: programmatic stream serialization is allowed, and asked
    /// for by the launch attribute of that name. Without it the launch is as any other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub programmatic: bool,
    /// Dynamic shared memory of a block in bytes; above 48 KiB the function attribute must be raised.
    pub dynamic_smem_bytes: u32,
    /// Grid extents as expressions over sizes, strides and integer scalars.
    pub grid: [String; 3],
    /// Kernel parameters in the order in which they are passed.
    pub params: Vec<Param>,
    /// Preconditions as Boolean expressions; all must hold before the launch.
    pub requires: Vec<String>,
}

/// A kernel parameter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Param {
    /// Its name in the source, unique in the kernel.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: ParamKind,
}

/// The kind of a parameter, and how it is passed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ParamKind {
    /// The device address of a tensor, 64 bits.
    Tensor(TensorParam),
    /// The device address of an array of device addresses, 64 bits each: one for every index of the first dimension.
    Pointers(TensorParam),
    /// A tensor descriptor, 128 bytes by value, as made by `cuTensorMapEncodeTiled`.
    #[serde(rename = "tensor_map")]
    TensorMap(TensorMapParam),
    /// An extent, at least 1 and less than 2^31.
    Size {
        /// How it is passed.
        #[serde(rename = "type")]
        ty: U32,
    },
    /// A stride in elements, at least 0.
    Stride {
        /// How it is passed.
        #[serde(rename = "type")]
        ty: I64,
        /// Its value when the tensor is packed, as an expression; absent where packing is not defined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packed: Option<String>,
    },
    /// A scalar.
    Scalar {
        /// Element type.
        #[serde(rename = "type", with = "elem_name")]
        elem: Elem,
        /// Default; infinities and NaN are the words `inf`, `-inf` and `nan`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<Number>,
    },
}

/// An expression for a dimension of a tensor, or one for each of its modes, outermost first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dimension {
    /// A dimension with one stride.
    One(String),
    /// A dimension whose index is split into digits, the last one fastest.
    Modes(Vec<String>),
}

impl Dimension {
    /// The expressions in it.
    pub fn parts(&self) -> &[String] {
        match self {
            Dimension::One(text) => std::slice::from_ref(text),
            Dimension::Modes(texts) => texts,
        }
    }
}

impl From<Vec<String>> for Dimension {
    fn from(parts: Vec<String>) -> Dimension {
        match <[String; 1]>::try_from(parts) {
            Ok([one]) => Dimension::One(one),
            Err(parts) => Dimension::Modes(parts),
        }
    }
}

impl From<&str> for Dimension {
    fn from(text: &str) -> Dimension {
        Dimension::One(text.to_owned())
    }
}

/// A tensor, or what an array of pointers points to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TensorParam {
    /// Element type.
    #[serde(rename = "type", with = "elem_name")]
    pub elem: Elem,
    /// Alignment of the address, or of each of the addresses, in bytes.
    pub align: u32,
    /// Whether the kernel reads or writes it.
    pub access: Access,
    /// Extents, as expressions.
    pub shape: Vec<Dimension>,
    /// Strides in elements, as expressions; grouped as the extents are, of which the first of an array of pointers has none.
    pub strides: Vec<Dimension>,
    /// The kernel also reads what is between the elements, and throws it away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_gaps: bool,
    /// Nobody writes it while a launch may run, also not the launch in front of it in the stream: the kernel may load it before that one has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub constant: bool,
    /// Memory that the host provides, and that is not an input and no result: see [`Scratch`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Scratch>,
    /// Tensors that the kernel reads and that this one, which it writes, may alias, if the strides are equal too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_alias: Vec<String>,
}

/// The use of scratch memory. Launches that may run concurrently need separate memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scratch {
    /// Elements that blocks exchange; the contents before and after a launch do not matter.
    Elements,
    /// Words that are zero before the first launch; each launch leaves them so.
    Signals,
}

/// Multiples of which the addresses of tensors with maps are (`cuTensorMapEncodeTiled`).
pub const MAP_ADDRESS_BYTES: u64 = 16;
/// Bytes of a `CUtensorMap`.
pub const MAP_BYTES: u64 = 128;

/// A tensor map. Its element type, address, extents and strides are those of the tensor. Elements are not interleaved,
/// element strides are 1, and elements out of bounds are zero.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TensorMapParam {
    /// The tensor.
    pub tensor: String,
    /// Its dimensions in the order of the descriptor: that with stride 1 first.
    pub dims: Vec<u32>,
    /// Extents of a box along them.
    #[serde(rename = "box")]
    pub extents: Vec<u32>,
    /// The swizzling mode.
    #[serde(with = "exchange_name")]
    pub swizzle: Exchange,
    /// The place in `dims` of a dimension that is there twice, for windows with an end of their own: with the extent of the box, and once more after all others, of
    /// one element more than the tensor has. The address is a box in front of the tensor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u32>,
    /// im2col mode (`cuTensorMapEncodeIm2col`): the first dimension is of channels, the last of images; the box has
    /// channels and pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub im2col: Option<Im2colParam>,
}

/// Which pixels a descriptor in im2col mode counts; of the dimensions between channels and images, in the order of the descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Im2colParam {
    /// Lower corner of the bounding box, as expressions.
    pub lower: Vec<String>,
    /// Upper corner relative to the last element, as expressions.
    pub upper: Vec<String>,
    /// Elements from pixel to pixel.
    pub steps: Vec<u32>,
}

/// Swizzling modes are their row bytes: `128B`.
mod exchange_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tilec_core::hardware::Exchange;

    pub(super) fn serialize<S: Serializer>(mode: &Exchange, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(mode.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Exchange, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Exchange::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown swizzling mode `{name}`")))
    }
}

impl ParamKind {
    /// Whether the host passes a number for it.
    pub fn is_value(&self) -> bool {
        match self {
            ParamKind::Size { .. } | ParamKind::Stride { .. } | ParamKind::Scalar { .. } => true,
            ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) => false,
        }
    }

    /// Bytes of the parameter.
    pub fn bytes(&self) -> usize {
        match self {
            ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::Stride { .. } => 8,
            ParamKind::TensorMap(_) => MAP_BYTES as usize,
            ParamKind::Size { .. } => 4,
            ParamKind::Scalar { elem, .. } => elem.bytes_of(1) as usize,
        }
    }

    /// The tensor, if it is passed by its address or by those of its parts.
    pub fn tensor(&self) -> Option<&TensorParam> {
        match self {
            ParamKind::Tensor(tensor) | ParamKind::Pointers(tensor) => Some(tensor),
            ParamKind::Size { .. } | ParamKind::Stride { .. } | ParamKind::Scalar { .. } | ParamKind::TensorMap(_) => {
                None
            }
        }
    }
}

/// The word `u32`: 32 bits, unsigned.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum U32 {
    /// `u32`
    #[default]
    #[serde(rename = "u32")]
    U32,
}

/// The word `i64`: 64 bits, two's complement.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum I64 {
    /// `i64`
    #[default]
    #[serde(rename = "i64")]
    I64,
}

/// Whether a kernel reads or writes a tensor.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It is only read.
    Read,
    /// It is only written.
    Write,
    /// Both.
    ReadWrite,
}

impl Access {
    /// Whether the kernel may read it.
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    /// Whether the kernel may write it.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// Element types are their names.
mod elem_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tilec_core::elem::Elem;

    pub(super) fn serialize<S: Serializer>(elem: &Elem, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(elem.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Elem, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Elem::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown element type `{name}`")))
    }
}

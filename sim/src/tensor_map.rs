//! Tensor maps for bulk copies: the counterpart of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`, as 128 bytes
//! that only this simulator understands.
//!
//! The checks are those that the CUDA driver documents for these functions. The bytes of a map are opaque in CUDA, too.

use std::fmt;

/// Type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the driver's own type names")]
pub enum TensorElement {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    Bf16,
    F32Ftz,
    Tf32,
    Tf32Ftz,
}

impl TensorElement {
    /// All of them, in the order of `CUtensorMapDataType`.
    pub const ALL: [TensorElement; 13] = [
        TensorElement::U8,
        TensorElement::U16,
        TensorElement::U32,
        TensorElement::S32,
        TensorElement::U64,
        TensorElement::S64,
        TensorElement::F16,
        TensorElement::F32,
        TensorElement::F64,
        TensorElement::Bf16,
        TensorElement::F32Ftz,
        TensorElement::Tf32,
        TensorElement::Tf32Ftz,
    ];

    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            TensorElement::U8 => 1,
            TensorElement::U16 | TensorElement::F16 | TensorElement::Bf16 => 2,
            TensorElement::U64 | TensorElement::S64 | TensorElement::F64 => 8,
            _ => 4,
        }
    }

    const fn is_float(self) -> bool {
        !matches!(
            self,
            TensorElement::U8
                | TensorElement::U16
                | TensorElement::U32
                | TensorElement::S32
                | TensorElement::U64
                | TensorElement::S64
        )
    }

    /// Bit pattern of an out-of-bounds element when the fill is NaN.
    pub(crate) const fn nan(self) -> u64 {
        match self {
            TensorElement::F16 | TensorElement::Bf16 => crate::numerics::half::OUTSIDE as u64,
            TensorElement::F64 => 0x7FFF_FFFF_FFFF_FFFF,
            _ => 0x7FFF_FFFF,
        }
    }
}

/// Swizzle: how the 16-byte units of a box's rows are permuted in shared memory, within a span of this size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the driver's own names")]
pub enum Swizzle {
    #[default]
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl Swizzle {
    /// All of them, in the order of `CUtensorMapSwizzle`.
    pub const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

    /// Address bits that are XORed, with the bits three positions above them.
    pub(crate) const fn mask(self) -> u64 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 0x10,
            Swizzle::Bytes64 => 0x30,
            Swizzle::Bytes128 => 0x70,
        }
    }

    /// Bytes of a row of the swizzle pattern.
    const fn span(self) -> u64 {
        match self {
            Swizzle::None => u64::MAX,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }
}

/// The out-of-bounds fill of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outside {
    /// Zeros.
    #[default]
    Zero,
    /// NaN, of floats.
    Nan,
}

/// The pixels that a map in im2col mode moves (PTX 5.5.4): consecutive pixels, in the rows of a bounding box around the
/// images. Per spatial dimension, innermost first; channels and images have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Lower corner of the bounding box.
    pub lower: Vec<i32>,
    /// Upper corner, relative to the last element of the image.
    pub upper: Vec<i32>,
    /// Number of pixels per copy.
    pub count: u32,
}

impl Pixels {
    /// Bounds of the corners by the number of spatial dimensions (`cuTensorMapEncodeIm2col`).
    const fn corners(dims: usize) -> (i32, i32) {
        match dims {
            1 => (-(1 << 15), (1 << 15) - 1),
            2 => (-(1 << 7), (1 << 7) - 1),
            _ => (-(1 << 4), (1 << 4) - 1),
        }
    }

    /// The largest im2col offset of an instruction along each dimension (PTX 5.5.4.2).
    pub(crate) const fn largest_offset(dims: usize) -> u32 {
        match dims {
            1 => (1 << 16) - 1,
            2 => (1 << 8) - 1,
            _ => (1 << 5) - 1,
        }
    }
}

/// Why a map is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMapError(String);

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TensorMapError {}

/// A tensor in global memory and the box that one copy moves; innermost dimension first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of the elements.
    pub element: TensorElement,
    /// Address of the first element.
    pub address: u64,
    /// Elements along each dimension, one to five of them.
    pub dims: Vec<u64>,
    /// Bytes between neighbours along every dimension but the innermost.
    pub strides: Vec<u64>,
    /// Elements that a box spans along each dimension; in im2col mode, the number of channels, then ones.
    pub box_dims: Vec<u32>,
    /// Along each dimension, one of this many elements is moved.
    pub element_strides: Vec<u32>,
    /// Swizzle in shared memory.
    pub swizzle: Swizzle,
    /// Out-of-bounds fill of loads.
    pub outside: Outside,
    /// The pixels of a map in im2col mode.
    pub pixels: Option<Pixels>,
}

const MAGIC: [u8; 8] = *b"simtmap1";
/// Bytes of a map.
pub(crate) const BYTES: usize = 128;

impl TensorMap {
    /// A map of a packed tensor, with element strides of 1.
    #[must_use]
    pub fn packed(element: TensorElement, address: u64, dims: &[u64], box_dims: &[u32]) -> TensorMap {
        let mut at = element.bytes();
        let mut strides = Vec::new();
        for dim in dims.iter().take(dims.len().saturating_sub(1)) {
            at = at.saturating_mul(*dim);
            strides.push(at);
        }
        TensorMap {
            element,
            address,
            dims: dims.to_vec(),
            strides,
            box_dims: box_dims.to_vec(),
            element_strides: vec![1; dims.len()],
            swizzle: Swizzle::None,
            outside: Outside::Zero,
            pixels: None,
        }
    }

    /// Whether the driver would accept such a map.
    ///
    /// # Errors
    /// The first rule that it violates.
    pub fn check(&self) -> Result<(), TensorMapError> {
        let fail = |message: String| Err(TensorMapError(message));
        let rank = self.dims.len();
        if !(1..=5).contains(&rank) {
            return fail(format!("a tensor of {rank} dimensions: 1 to 5 are possible"));
        }
        if (self.strides.len(), self.box_dims.len(), self.element_strides.len()) != (rank - 1, rank, rank) {
            return fail(format!("{rank} dimensions need {} strides, {rank} box sizes and element strides", rank - 1));
        }
        if !self.address.is_multiple_of(16) || self.address == 0 {
            return fail(format!("address {:#x} is not a multiple of 16", self.address));
        }
        if let Some(dim) = self.dims.iter().find(|d| !(1..=1 << 32).contains(*d)) {
            return fail(format!("{dim} elements along a dimension: 1 to 2^32 are possible"));
        }
        if let Some(stride) = self.strides.iter().find(|s| **s % 16 != 0 || **s >= 1 << 40) {
            return fail(format!("a stride of {stride} bytes: it must be a multiple of 16 below 2^40"));
        }
        if let Some(size) = self.box_dims.iter().find(|b| !(1..=256).contains(*b)) {
            return fail(format!("a box of {size} elements along a dimension: 1 to 256 are possible"));
        }
        if let Some(stride) = self.element_strides.iter().find(|s| !(1..=8).contains(*s)) {
            return fail(format!("an element stride of {stride}: 1 to 8 are possible"));
        }
        let inner = self.row_bytes();
        if !inner.is_multiple_of(16) {
            return fail(format!("the inner dimension of the box has {inner} bytes, no multiple of 16"));
        }
        if inner > self.swizzle.span() {
            return fail(format!(
                "the inner dimension of the box has {inner} bytes, the swizzle takes {}",
                self.swizzle.span()
            ));
        }
        if let Some(pixels) = &self.pixels {
            self.check_pixels(pixels)?;
        }
        if self.outside == Outside::Nan && !self.element.is_float() {
            return fail(format!("elements of {:?} cannot be NaN", self.element));
        }
        Ok(())
    }

    fn check_pixels(&self, pixels: &Pixels) -> Result<(), TensorMapError> {
        let fail = |message: String| Err(TensorMapError(message));
        let rank = self.dims.len();
        if !(3..=5).contains(&rank) {
            return fail(format!("the im2col mode has 3 to 5 dimensions, not {rank}"));
        }
        if (pixels.lower.len(), pixels.upper.len()) != (rank - 2, rank - 2) {
            return fail(format!("{rank} dimensions need corners of {}", rank - 2));
        }
        let (low, high) = Pixels::corners(rank - 2);
        if let Some(corner) = pixels.lower.iter().chain(&pixels.upper).find(|c| !(low..=high).contains(*c)) {
            return fail(format!("a corner at {corner}: {low} to {high} are possible"));
        }
        if !(1..=1024).contains(&pixels.count) {
            return fail(format!("{} pixels: 1 to 1024 are possible", pixels.count));
        }
        if self.box_dims[1..].iter().any(|&n| n != 1) {
            return fail("in im2col mode boxes are of channels alone".to_owned());
        }
        Ok(())
    }

    /// Encodes the map as a kernel parameter, or for memory aligned to 64 bytes.
    ///
    /// # Errors
    /// As [`TensorMap::check`].
    pub fn encode(&self) -> Result<[u8; 128], TensorMapError> {
        self.check()?;
        let mut out = Vec::with_capacity(BYTES);
        out.extend_from_slice(&MAGIC);
        let element = TensorElement::ALL.iter().position(|e| *e == self.element).unwrap_or(0) as u8;
        let rank = self.dims.len();
        out.extend_from_slice(&[element, rank as u8, self.swizzle as u8, self.outside as u8, 0, 0, 0, 0]);
        out.extend_from_slice(&self.address.to_le_bytes());
        for i in 0..5 {
            out.extend_from_slice(&((self.dims.get(i).map_or(0, |d| d - 1)) as u32).to_le_bytes());
            out.extend_from_slice(&((self.box_dims.get(i).map_or(0, |d| d - 1)) as u8).to_le_bytes());
            out.push(self.element_strides.get(i).map_or(0, |s| *s as u8));
        }
        for i in 0..4 {
            out.extend_from_slice(&self.strides.get(i).copied().unwrap_or(0).to_le_bytes());
        }
        if let Some(pixels) = &self.pixels {
            out.push(1);
            for i in 0..3 {
                for corner in [&pixels.lower, &pixels.upper] {
                    out.extend_from_slice(&(corner.get(i).map_or(0, |&c| c as i16)).to_le_bytes());
                }
            }
            out.extend_from_slice(&(pixels.count as u16).to_le_bytes());
        }
        out.resize(BYTES - 4, 0);
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&out);
        Ok(bytes)
    }

    /// Decodes a map; `None` if the bytes are not one.
    pub(crate) fn decode(bytes: &[u8; BYTES]) -> Option<TensorMap> {
        let (data, sum) = bytes.split_at(BYTES - 4);
        if data.get(..8)? != MAGIC || checksum(data).to_le_bytes() != sum {
            return None;
        }
        let number = |at: usize, n: usize| {
            data.get(at..at + n).map(|b| b.iter().rev().fold(0u64, |v, x| v << 8 | u64::from(*x)))
        };
        let rank = usize::from(*data.get(9)?).min(5);
        let map = TensorMap {
            element: *TensorElement::ALL.get(usize::from(data[8]))?,
            address: number(16, 8)?,
            dims: (0..rank).map(|i| number(24 + 6 * i, 4).map(|d| d + 1)).collect::<Option<_>>()?,
            box_dims: (0..rank).map(|i| number(28 + 6 * i, 1).map(|d| d as u32 + 1)).collect::<Option<_>>()?,
            element_strides: (0..rank).map(|i| number(29 + 6 * i, 1).map(|d| d as u32)).collect::<Option<_>>()?,
            strides: (0..rank.saturating_sub(1)).map(|i| number(54 + 8 * i, 8)).collect::<Option<_>>()?,
            swizzle: *Swizzle::ALL.get(usize::from(data[10]))?,
            outside: if data[11] == 0 { Outside::Zero } else { Outside::Nan },
            pixels: match data[86] {
                0 => None,
                _ => {
                    let corner = |i: usize| number(87 + 2 * i, 2).map(|c| i32::from(c as u16 as i16));
                    let corners = |first: usize| -> Option<Vec<i32>> {
                        (0..rank.checked_sub(2)?).map(|i| corner(2 * i + first)).collect()
                    };
                    Some(Pixels { lower: corners(0)?, upper: corners(1)?, count: number(99, 2)? as u32 })
                }
            },
        };
        map.check().ok().map(|()| map)
    }

    /// Elements of a box along a dimension that are moved.
    pub(crate) fn moved(&self, dim: usize) -> u64 {
        let (size, stride) = (self.box_dims[dim], self.step(dim));
        u64::from(size.div_ceil(stride))
    }

    /// Distance in elements between moved elements; 1 along the innermost dimension.
    pub(crate) fn step(&self, dim: usize) -> u32 {
        if dim == 0 { 1 } else { self.element_strides[dim] }
    }

    /// Bytes of a row of the box in shared memory.
    pub(crate) fn row_bytes(&self) -> u64 {
        u64::from(self.box_dims.first().copied().unwrap_or(1)) * self.element.bytes()
    }

    /// Bytes of the whole box in shared memory, which the mbarrier's transaction count expects.
    #[must_use]
    pub fn box_bytes(&self) -> u64 {
        if let Some(pixels) = &self.pixels {
            return self.row_bytes() * u64::from(pixels.count);
        }
        (1..self.dims.len()).fold(self.row_bytes(), |n, dim| n * self.moved(dim))
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, b| (hash ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap::packed(TensorElement::F16, 0x1000, &[64, 5, 7], &[32, 2, 1])
    }

    #[test]
    fn maps_come_back() {
        for (swizzle, outside) in [(Swizzle::None, Outside::Zero), (Swizzle::Bytes64, Outside::Nan)] {
            let map = TensorMap { swizzle, outside, element_strides: vec![1, 2, 8], ..map() };
            let mut bytes = map.encode().expect("it is legal");
            assert_eq!(TensorMap::decode(&bytes), Some(map));
            bytes[20] ^= 1;
            assert_eq!(TensorMap::decode(&bytes), None);
        }
        assert_eq!(TensorMap::decode(&[0; 128]), None);
        assert_eq!((map().strides.clone(), map().box_bytes()), (vec![128, 640], 128));
    }

    #[test]
    fn rules_of_the_driver() {
        let wrong = [
            TensorMap { address: 0x1008, ..map() },
            TensorMap { dims: vec![], ..map() },
            TensorMap { dims: vec![64, 5, 0], ..map() },
            TensorMap { dims: vec![64, 5, (1 << 32) + 1], ..map() },
            TensorMap { strides: vec![128], ..map() },
            TensorMap { strides: vec![120, 640], ..map() },
            TensorMap { strides: vec![128, 1 << 40], ..map() },
            TensorMap { box_dims: vec![257, 1, 1], ..map() },
            TensorMap { box_dims: vec![4, 2, 1], ..map() },
            TensorMap { element_strides: vec![1, 9, 1], ..map() },
            TensorMap { swizzle: Swizzle::Bytes32, ..map() },
            TensorMap { element: TensorElement::U16, outside: Outside::Nan, ..map() },
        ];
        for map in wrong {
            assert!(map.encode().is_err(), "{map:?}");
        }
        map().encode().expect("it is legal");
    }
}

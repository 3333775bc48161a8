//! Tensor maps, by the numbers of `cuda.h`.

use crate::code::{Code, Failure};
use tilec_sim::{Outside, Pixels, Swizzle, TensorElement, TensorMap};

/// What `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` are given.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// `CUtensorMapDataType`.
    pub element: u32,
    /// Address of the tensor.
    pub address: u64,
    /// Extents, innermost first.
    pub extents: Vec<u64>,
    /// Strides in bytes of all dimensions but the innermost.
    pub strides: Vec<u64>,
    /// Elements of a box; in im2col mode empty.
    pub box_extents: Vec<u32>,
    /// Of these every so-manieth is moved.
    pub steps: Vec<u32>,
    /// `CUtensorMapInterleave`.
    pub interleave: u32,
    /// `CUtensorMapSwizzle`.
    pub swizzle: u32,
    /// `CUtensorMapFloatOOBfill`.
    pub fill: u32,
    /// In im2col mode: corners of the box, channels, pixels.
    pub pixels: Option<(Vec<i32>, Vec<i32>, u32, u32)>,
}

impl Map {
    /// The 128 bytes of the map.
    ///
    /// # Errors
    /// The driver would not make such a map, or the simulator does not know the mode.
    pub fn encode(&self) -> Result<[u8; 128], Failure> {
        let unknown = |what: &str, n: u32| Failure::new(Code::NotSupported, format!("the {what} {n} is not known"));
        let element = TensorElement::ALL
            .get(self.element as usize)
            .copied()
            .ok_or_else(|| unknown("element type", self.element))?;
        let swizzle =
            Swizzle::ALL.get(self.swizzle as usize).copied().ok_or_else(|| unknown("swizzle", self.swizzle))?;
        if self.interleave != 0 {
            return Err(unknown("interleaved layout", self.interleave));
        }
        let outside = match self.fill {
            0 => Outside::Zero,
            1 => Outside::Nan,
            other => return Err(unknown("fill", other)),
        };
        let mut box_dims = self.box_extents.clone();
        let mut pixels = None;
        if let Some((lower, upper, channels, count)) = &self.pixels {
            box_dims = vec![1; self.extents.len()];
            if let Some(first) = box_dims.first_mut() {
                *first = *channels;
            }
            pixels = Some(Pixels { lower: lower.clone(), upper: upper.clone(), count: *count });
        }
        let map = TensorMap {
            element,
            address: self.address,
            dims: self.extents.clone(),
            strides: self.strides.clone(),
            box_dims,
            element_strides: self.steps.clone(),
            swizzle,
            outside,
            pixels,
        };
        map.encode().map_err(|error| Failure::new(Code::InvalidValue, error.to_string()))
    }
}

//! Tensor maps: a contract's description, evaluated for a tensor of a launch.
//!
//! The driver and the simulator encode the same description differently.

#[cfg(feature = "sim")]
mod simulated;

use crate::bind::TensorPlan;
use crate::contract::TensorMapParam;
use crate::contract::expr;
use tilec_core::elem::Elem;
use tilec_core::hardware::Exchange;

/// Multiples of which strides are (`cuTensorMapEncodeTiled`).
const STRIDE_BYTES: u64 = 16;

/// `CUtensorMapDataType`, by the driver API manual, section "Tensor Map Object Management"; `None` of elements that no map has.
pub fn data_type(elem: Elem) -> Option<u32> {
    Some(match elem {
        // For elements smaller than a byte the map counts bytes.
        Elem::U8 | Elem::I8 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 | Elem::I4 | Elem::U4 => 0,
        Elem::U16 | Elem::I16 => 1,
        Elem::U32 => 2,
        Elem::I32 => 3,
        Elem::U64 => 4,
        Elem::I64 => 5,
        Elem::F16 => 6,
        // As it is: the type TFLOAT32 would round, and a tf32 is truncated.
        Elem::F32 | Elem::TF32 => 7,
        Elem::F64 => 8,
        Elem::BF16 => 9,
        Elem::Bool => return None,
    })
}

/// `CUtensorMapSwizzle`, of the same section.
pub fn swizzle(mode: Exchange) -> u32 {
    match mode {
        Exchange::Plain => 0,
        Exchange::Bytes32 => 1,
        Exchange::Bytes64 => 2,
        Exchange::Bytes128 => 3,
    }
}

/// A tensor map but for the address. Dimensions from the contiguous one on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Element type.
    pub elem: Elem,
    /// Bytes from the address of the map to that of the tensor.
    pub in_front: u64,
    /// Extents in units of the map: elements, or bytes where elements share them.
    pub extents: Vec<u64>,
    /// Strides in bytes of all dimensions but the first.
    pub strides: Vec<u64>,
    /// Extents of a box in units of the map.
    pub box_extents: Vec<u32>,
    /// The swizzling mode.
    pub swizzle: Exchange,
    /// The pixels of a map in im2col mode.
    pub pixels: Option<PixelBox>,
}

/// Which pixels a map in im2col mode counts; of the dimensions between channels and images.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PixelBox {
    /// Lower corner of the bounding box.
    pub lower: Vec<i32>,
    /// Upper corner, relative to the last element.
    pub upper: Vec<i32>,
    /// Elements from pixel to pixel.
    pub steps: Vec<u32>,
    /// Pixels of a copy.
    pub count: u32,
}

impl Description {
    /// Elements from one that is copied to the next, along each dimension.
    pub fn element_strides(&self) -> Vec<u32> {
        let mut all = vec![1; self.extents.len()];
        if let Some(p) = &self.pixels {
            all.iter_mut().skip(1).zip(&p.steps).for_each(|(to, &step)| *to = step);
        }
        all
    }
}

impl TensorMapParam {
    /// The map of a tensor of a bound launch; `value` gives the values of the contract's names.
    pub fn describe(&self, plan: &TensorPlan, value: impl Fn(&str) -> Option<i64>) -> Description {
        let number = |text: &str| expr::integer(text, &value).unwrap_or(i64::MAX);
        self.of_tensor(plan.elem, |d| plan.extent(d), |d| plan.offset(d, 1), number)
    }

    /// The map of a tensor with these extents and strides (in elements) along its dimensions; `number` works out expressions of the contract.
    pub fn of_tensor(
        &self,
        elem: Elem,
        extent: impl Fn(usize) -> u64,
        stride: impl Fn(usize) -> u64,
        number: impl Fn(&str) -> i64,
    ) -> Description {
        let mut extents: Vec<u64> = self.dims.iter().map(|&d| extent(d as usize)).collect();
        let stride = |(&dim, &extent): (&u32, &u64)| {
            let stride = elem.bytes_of(stride(dim as usize));
            // A dimension of one element has no neighbours: any stride will do, but one there must be.
            if extent == 1 { stride.max(STRIDE_BYTES).next_multiple_of(STRIDE_BYTES) } else { stride }
        };
        let mut strides: Vec<u64> = self.dims.iter().zip(&extents).skip(1).map(stride).collect();
        let mut box_extents = self.extents.clone();
        let mut in_front = 0;
        if let Some(i) = self.ended.map(|i| i as usize).filter(|&i| i >= 1 && i < extents.len()) {
            let (rows, step) = (u64::from(box_extents.get(i).copied().unwrap_or(1)), strides[i - 1]);
            in_front = rows.wrapping_mul(step);
            let all = std::mem::replace(&mut extents[i], rows);
            extents.push(all + 1);
            strides.push(step);
            box_extents.push(1);
        }
        let per_byte = elem.per(1);
        if let Some(contiguous) = extents.first_mut().filter(|_| per_byte > 1) {
            *contiguous = elem.bytes_of(*contiguous);
            box_extents[0] /= per_byte;
        }
        let pixels = self.im2col.as_ref().map(|of| {
            let corner = |text: &String| number(text).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            let count = std::mem::replace(&mut box_extents, vec![1; extents.len()]);
            box_extents[0] = count.first().copied().unwrap_or(1);
            PixelBox {
                lower: of.lower.iter().map(corner).collect(),
                upper: of.upper.iter().map(corner).collect(),
                steps: of.steps.clone(),
                count: count.get(1).copied().unwrap_or(1),
            }
        });
        Description { elem, in_front, extents, strides, box_extents, swizzle: self.swizzle, pixels }
    }
}

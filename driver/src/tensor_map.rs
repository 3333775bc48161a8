//! Tensor maps: what a contract says of one, worked out for a tensor of a launch.
//!
//! The driver and the simulator encode them each in their way; both are told the same.

use crate::bind::TensorPlan;
use crate::contract::TensorMapParam;
use tilec_ir::layout::hardware::Exchange;
use tilec_ir::types::Elem;

/// Multiple of which strides are (`cuTensorMapEncodeTiled`).
const STRIDE_BYTES: u64 = 16;

/// A tensor map but for the address. Dimensions from the contiguous one on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Element type.
    pub elem: Elem,
    /// Extents in elements.
    pub extents: Vec<u64>,
    /// Strides in bytes of all dimensions but the first.
    pub strides: Vec<u64>,
    /// Extents of a box in elements.
    pub box_extents: Vec<u32>,
    /// The swizzling mode.
    pub swizzle: Exchange,
}

impl TensorMapParam {
    /// The map of a tensor, whose launch is worked out.
    pub fn describe(&self, plan: &TensorPlan) -> Description {
        let bytes = u64::from(plan.elem.bytes());
        let extents: Vec<u64> = self.dims.iter().map(|&d| plan.extent(d as usize)).collect();
        let stride = |(&dim, &extent): (&u32, &u64)| {
            let stride = plan.offset(dim as usize, 1) * bytes;
            // A dimension of one element has no neighbours: any stride will do, but one there must be.
            if extent == 1 { stride.max(STRIDE_BYTES).next_multiple_of(STRIDE_BYTES) } else { stride }
        };
        let strides = self.dims.iter().zip(&extents).skip(1).map(stride).collect();
        Description { elem: plan.elem, extents, strides, box_extents: self.extents.clone(), swizzle: self.swizzle }
    }
}

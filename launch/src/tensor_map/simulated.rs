//! Tensor maps of the simulator, which also knows the rules of the driver.

use super::Description;
use crate::contract::{MAP_ADDRESS_BYTES, MAP_BYTES, TensorMapParam};
use tilec_core::elem::Elem;
use tilec_core::hardware::Exchange;
use tilec_sim::{Outside, Pixels, Swizzle, TensorElement, TensorMap, TensorMapError};

impl Description {
    /// The map for the simulator: 128 bytes that mean something to it alone. What the driver would refuse is no map, which is
    /// reported where a kernel uses it.
    pub fn encode_for_simulator(&self, address: u64) -> Vec<u8> {
        self.at(address).encode().map_or_else(|_| vec![0; MAP_BYTES as usize], |bytes| bytes.to_vec())
    }

    fn at(&self, address: u64) -> TensorMap {
        TensorMap {
            element: match self.elem {
                Elem::U8
                | Elem::I8
                | Elem::E4M3
                | Elem::E5M2
                | Elem::E2M1
                | Elem::UE8M0
                | Elem::Bool
                | Elem::I4
                | Elem::U4 => TensorElement::U8,
                Elem::U16 | Elem::I16 => TensorElement::U16,
                Elem::U32 => TensorElement::U32,
                Elem::I32 => TensorElement::S32,
                Elem::I64 => TensorElement::S64,
                Elem::U64 => TensorElement::U64,
                Elem::F16 => TensorElement::F16,
                Elem::BF16 => TensorElement::Bf16,
                Elem::F32 | Elem::TF32 => TensorElement::F32,
                Elem::F64 => TensorElement::F64,
            },
            address: address.wrapping_sub(self.in_front),
            dims: self.extents.clone(),
            strides: self.strides.clone(),
            box_dims: self.box_extents.clone(),
            element_strides: self.element_strides(),
            swizzle: match self.swizzle {
                Exchange::Plain => Swizzle::None,
                Exchange::Bytes32 => Swizzle::Bytes32,
                Exchange::Bytes64 => Swizzle::Bytes64,
                Exchange::Bytes128 => Swizzle::Bytes128,
            },
            outside: Outside::Zero,
            pixels: self.pixels.as_ref().map(|p| Pixels {
                lower: p.lower.clone(),
                upper: p.upper.clone(),
                count: p.count,
            }),
        }
    }
}

impl TensorMapParam {
    /// Whether the driver would accept such a map of elements of this type, as far as that does not depend on address
    /// and sizes.
    ///
    /// # Errors
    /// The first rule of `cuTensorMapEncodeTiled` that it violates.
    pub fn check(&self, elem: Elem) -> Result<(), TensorMapError> {
        let described = self.of_tensor(elem, |_| 1, |_| 1, |_| 0);
        described.at(MAP_ADDRESS_BYTES.wrapping_add(described.in_front)).check()
    }
}

//! Extents of a tile, and the bits of its coordinates.

use std::ops::Deref;
use tilec_ir::layout::shape_bits;

/// Extents of a tile. As a slice: the bits of each coordinate, `ceil(log2(extent))`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dims {
    extents: Vec<u64>,
    bits: Vec<u32>,
}

impl Dims {
    pub(super) fn of(shape: &[u64]) -> Dims {
        let extents: Vec<u64> = shape.iter().map(|&n| n.max(1)).collect();
        Dims { bits: shape_bits(&extents), extents }
    }

    pub(super) fn extents(&self) -> &[u64] {
        &self.extents
    }
}

impl Deref for Dims {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.bits
    }
}

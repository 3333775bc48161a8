//! An order of the dimensions of a tile, as small as an edge of the graph needs it.

/// Which dimension of a tile each dimension of a permuted tile is: four bits each.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct AxisOrder(u32);

/// Bits of a dimension. The verifier allows fewer dimensions than 8.
const BITS: u32 = 4;

impl AxisOrder {
    pub(super) fn of(order: &[u32]) -> AxisOrder {
        AxisOrder(order.iter().rev().fold(0, |all, &axis| all << BITS | axis))
    }

    /// The dimensions in order.
    pub(super) fn axes(self, rank: usize) -> Vec<u32> {
        (0..rank as u32).map(|d| self.0 >> (d * BITS) & 0xf).collect()
    }

    /// The order that undoes this one.
    pub(super) fn inverse(self, rank: usize) -> Vec<u32> {
        let mut found = vec![0; rank];
        for (d, axis) in self.axes(rank).into_iter().enumerate() {
            found[axis as usize] = d as u32;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::AxisOrder;

    #[test]
    fn an_order_and_its_inverse_cancel() {
        let order = AxisOrder::of(&[2, 0, 1]);
        assert_eq!(order.axes(3), [2, 0, 1]);
        assert_eq!(order.inverse(3), [1, 2, 0]);
    }
}

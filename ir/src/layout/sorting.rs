//! Sorts along a dimension of a register tile: which registers and lanes a comparison uses.
//!
//! A comparison of a sort is between elements whose indices differ by a mask ([`crate::combine::exchanges`]). In a layout the mask becomes register bits and
//! lane bits, the same for all elements, because layouts are linear. One column of a layout may be a whole mask: then a bit of a thread's number selects
//! an element or its mirror image within a block.

use super::extents::shape_bits;
use super::f2::F2Map;
use super::reduction::NoReduction;
use super::tile::RegLayout;
use crate::combine::exchanges_of;
use crate::target::WARP;

/// Where a comparison finds the other element.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// By what the numbers of registers differ.
    pub registers: usize,
    /// By what the numbers of lanes differ.
    pub lanes: u32,
    /// An odd number of these bits of a register's number, and of `threads` of a thread's, is set of the element with the higher number.
    pub upper: usize,
    /// See `upper`.
    pub threads: u64,
}

impl RegLayout {
    /// The comparisons of a sort of a tile of these extents along dimension `axis`: of all, or from one to the one in front of another.
    ///
    /// # Errors
    /// Elements that are compared are in several warps; or the extent along the dimension is not a power of two, the layout does not cover the tile, or a thread holds an element twice.
    pub fn sorted(
        &self,
        shape: &[u64],
        axis: usize,
        steps: Option<(u32, u32)>,
    ) -> Result<Vec<Comparison>, NoReduction> {
        let bits = shape_bits(shape);
        let fits = bits.iter().sum::<u32>() == self.out_bits() && self.covers_tile() && self.is_injective_per_thread();
        let own = bits.get(axis).filter(|_| fits && shape[axis].is_power_of_two()).ok_or(NoReduction::Layout)?;
        let base: u32 = bits[..axis].iter().sum();
        let (values, lanes) = (self.value_bits(), WARP.ilog2().min(self.thread_bits()));
        let within = [self.value().cols(), &self.thread().cols()[..lanes as usize]].concat();
        let within = F2Map::new(within, self.out_bits()).ok_or(NoReduction::Layout)?;
        let with = |cols: &[u64], bit: u32| {
            cols.iter().enumerate().fold(0u64, |all, (i, c)| all | (c >> (base + bit) & 1) << i)
        };
        let one = |mask: u32| {
            let other = within.solve(u64::from(mask) << base).ok_or(NoReduction::Warps)?;
            let top = mask.ilog2();
            Ok(Comparison {
                registers: (other & ((1 << values) - 1)) as usize,
                lanes: (other >> values) as u32,
                upper: with(self.value().cols(), top) as usize,
                threads: with(self.thread().cols(), top),
            })
        };
        exchanges_of(*own, steps).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combine::comparisons;

    /// Element by element: a comparison finds the element that the mask says, and which of the two has the higher number.
    fn check(layout: &RegLayout, bits: u32, steps: Option<(u32, u32)>) {
        let found = layout.sorted(&[1, 1 << bits], 1, steps).expect("comparisons");
        let masks: Vec<u32> = exchanges_of(bits, steps).collect();
        assert_eq!(found.len(), masks.len());
        for (c, mask) in found.iter().zip(masks) {
            for thread in 0..1u64 << layout.thread_bits() {
                for v in 0..1usize << layout.value_bits() {
                    let at = layout.at(thread, v as u64);
                    let other = layout.at(thread ^ u64::from(c.lanes), (v ^ c.registers) as u64);
                    assert_eq!(at ^ other, u64::from(mask));
                    let odd = (v & c.upper).count_ones() + (thread & c.threads).count_ones();
                    assert_eq!(odd % 2 == 1, at > other, "thread {thread}, register {v}, mask {mask:#x}");
                }
            }
        }
    }

    #[test]
    fn comparisons_find_their_elements() {
        let one = |bits: std::ops::Range<u32>| bits.map(|b| 1u64 << b).collect::<Vec<_>>();
        let warp = RegLayout::new(one(0..2), one(2..7), 7).expect("a layout");
        check(&warp, 7, None);
        // Two warps: all that they do within themselves.
        let two = RegLayout::new(one(0..2), one(2..8), 8).expect("a layout");
        check(&two, 8, Some((0, comparisons(7))));
        assert_eq!(two.sorted(&[1, 256], 1, None), Err(NoReduction::Warps));
        // The last block mirrored: a register tells its halves apart.
        let mirrored = RegLayout::new(vec![1, 0xff], vec![4, 8, 16, 32, 64, 2], 8).expect("a layout");
        check(&mirrored, 8, Some((comparisons(7), comparisons(7) + 6)));
        assert_eq!(mirrored.sorted(&[1, 256], 1, Some((34, 35))), Err(NoReduction::Warps));
    }
}

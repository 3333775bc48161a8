//! Extents that are not powers of two.
//!
//! A layout is linear over bits, so it is one of a tile whose extents are rounded up. What is beyond an extent is not there: no thread
//! has it, and no memory is set aside for what is behind the last element ([`SmemLayout::span`]). All threads must have the same registers
//! ([`Held`]).

use super::f2::mask;
use super::tile::{RegLayout, SmemLayout};

/// Bits of the coordinates of a dimension of so many elements.
pub fn extent_bits(extent: u64) -> u32 {
    extent.checked_next_power_of_two().map_or(63, u64::ilog2)
}

/// The same of all dimensions of a tile.
pub fn shape_bits(shape: &[u64]) -> Vec<u32> {
    shape.iter().map(|&n| extent_bits(n)).collect()
}

/// Whether all extents are powers of two: then nothing is beyond them.
pub fn is_whole(shape: &[u64]) -> bool {
    shape.iter().all(|n| n.is_power_of_two())
}

impl SmemLayout {
    /// Elements of memory that a tile of these extents takes: one more than the offset of its last element. `None` if the layout is for
    /// others.
    pub fn span(&self, shape: &[u64]) -> Option<u64> {
        if self.dim_bits() != shape_bits(shape) {
            return None;
        }
        // Below the lowest bit of an extent coordinates take all values, above it they count.
        let units: Vec<u32> = shape.iter().map(|n| n.max(&1).trailing_zeros()).collect();
        let mut low: Vec<u64> = Vec::new();
        for (d, &unit) in units.iter().enumerate() {
            for &column in &self.dim_cols(d)[..unit as usize] {
                let reduced = low.iter().fold(column, |c, &b| c.min(c ^ b));
                if reduced != 0 {
                    low.push(reduced);
                    low.sort_unstable_by(|a, b| b.cmp(a));
                }
            }
        }
        let mut last = 0;
        let mut counts = vec![0; shape.len()];
        loop {
            let start: Vec<u64> = counts.iter().zip(&units).map(|(c, unit)| c << unit).collect();
            last = last.max(low.iter().fold(self.offset(&start), |at, &b| at.max(at ^ b)));
            let Some(d) = (0..shape.len()).find(|&d| counts[d] + 1 < shape[d] >> units[d]) else {
                return Some(last + 1);
            };
            counts[..d].fill(0);
            counts[d] += 1;
        }
    }

    /// Whether the elements of a tile of these extents take the places from 0 on, one each.
    pub fn is_dense(&self, shape: &[u64]) -> bool {
        self.is_bijective() && self.span(shape) == Some(shape.iter().product())
    }
}

/// Which of its registers a thread has elements in, the same ones in every thread.
#[derive(Clone, Debug)]
pub struct Held {
    /// By value index; empty: all.
    held: Vec<bool>,
}

impl RegLayout {
    /// Whether all threads have elements of a tile of these extents in the same registers: what tells threads apart lies below the lowest bit
    /// of each extent.
    pub fn is_even(&self, shape: &[u64]) -> bool {
        let threads = self.thread().cols().iter().fold(0, |all, c| all | c);
        let apart =
            |(extent, bits, base): (u64, u32, u32)| (threads >> base & mask(bits)) >> extent.trailing_zeros() != 0;
        is_whole(shape) || !dimensions(shape).any(apart)
    }
}

/// Of each dimension the extent, the bits of its coordinates, and where these begin in a column-major index.
fn dimensions(shape: &[u64]) -> impl Iterator<Item = (u64, u32, u32)> {
    shape.iter().scan(0, |base, &extent| {
        let (first, bits) = (*base, extent_bits(extent));
        *base += bits;
        Some((extent.max(1), bits, first))
    })
}

impl Held {
    /// Of a tile of these extents; `None` if it differs between threads.
    pub fn of(layout: &RegLayout, shape: &[u64]) -> Option<Held> {
        if is_whole(shape) {
            return Some(Held { held: Vec::new() });
        }
        let inside = |v: usize| {
            let at = layout.value().apply(v as u64);
            // Of the unit of an extent all elements are inside, or none.
            dimensions(shape).all(|(extent, bits, base)| {
                let unit = extent.trailing_zeros();
                (at >> base & mask(bits)) >> unit < extent >> unit
            })
        };
        layout.is_even(shape).then(|| Held { held: (0..1usize << layout.value_bits()).map(inside).collect() })
    }

    /// Whether an element is in register `value`.
    pub fn has(&self, value: usize) -> bool {
        self.held.get(value).copied().unwrap_or(self.held.is_empty())
    }

    /// How many registers have elements, of as many as the layout has.
    pub fn count(&self, of: usize) -> usize {
        if self.held.is_empty() { of } else { self.held.iter().filter(|&&h| h).count() }
    }

    /// The groups of registers that have elements; `None` if a group has some that have and some that have not.
    pub fn groups(&self, groups: Vec<Vec<usize>>) -> Option<Vec<Vec<usize>>> {
        let mixed = |g: &Vec<usize>| g.iter().any(|&v| self.has(v) != self.has(g[0]));
        if groups.iter().any(mixed) {
            return None;
        }
        Some(groups.into_iter().filter(|g| g.first().is_none_or(|&v| self.has(v))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::hardware::panels;
    use crate::layout::parse_smem_layout;

    #[test]
    fn panels_take_whole_rows() {
        let span = |shape: &[u64], contiguous, exact| panels(shape, contiguous, 2, exact).and_then(|l| l.span(shape));
        assert_eq!(span(&[64, 160], 1, true), Some(64 * 160)); // five panels of 64 bytes
        assert_eq!(span(&[64, 160], 1, false), Some(64 * 192)); // three of 128
        assert_eq!(span(&[64, 192], 1, true), Some(64 * 192));
        assert_eq!(span(&[64, 176], 1, true), Some(64 * 176)); // eleven of 32
        assert_eq!(span(&[64, 48], 1, false), Some(64 * 64));
        assert_eq!(span(&[160, 64], 1, false), Some(160 * 64)); // rows of 128 bytes
        assert_eq!(span(&[160, 128], 1, false), None); // two panels of which each would have a gap
        assert_eq!(span(&[64, 72], 1, true), None); // rows of 16 bytes
    }

    /// Element by element against the definition.
    #[test]
    fn spans_end_behind_the_last_element() {
        for (text, shape) in [
            ("(64,(64,4)):(64,(1,4096)) swizzle<3,3,3>", [64, 176]),
            ("(64,(32,8)):(32,(1,2048)) swizzle<2,3,3>", [64, 160]),
            ("(64,256):(256,1)", [40, 160]),
            ("(256,64):(1,256)", [136, 40]),
            ("(64,256):(256,1) swizzle<3,3,3>", [40, 200]),
        ] {
            let layout = parse_smem_layout(text).expect(text);
            let offsets = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| [i, j])).map(|at| layout.offset(&at));
            assert_eq!(layout.span(&shape), offsets.max().map(|last| last + 1), "{text} of {shape:?}");
        }
        let natural = SmemLayout::natural(&[8, 6], &[0, 1]).expect("a layout");
        assert_eq!((natural.is_dense(&[160, 64]), natural.is_dense(&[256, 48])), (false, true));
        assert_eq!(natural.span(&[64, 64]), None);
    }

    /// Element by element against the definition.
    #[test]
    fn held_registers_are_those_inside() {
        // The sums of m64n160: pairs of columns, rows eight apart, columns by eights.
        let value = [7, 3, 10, 11, 12, 13, 14].map(|b| if b == 7 { 1 << 7 } else { 1u64 << b });
        let (rows, shape) = (7, [128, 160]);
        let value = value.iter().map(|&c| if c == 1 << 7 { 1 << rows } else { c }).collect();
        let thread = vec![1 << 8, 1 << 9, 1, 2, 4, 16, 32, 64];
        let layout = RegLayout::new(value, thread, 15).expect("a layout");
        let held = Held::of(&layout, &shape).expect("the same in all threads");
        for v in 0..1usize << layout.value_bits() {
            for t in 0..256 {
                let at = layout.coords(t, v as u64, &shape_bits(&shape));
                assert_eq!(held.has(v), at[1] < 160, "thread {t}, register {v}");
            }
        }
        assert_eq!(held.count(128), 80);
        // Lanes that tell columns sixteen apart from each other do not all have the same of 24.
        let spread = RegLayout::new(vec![1, 2, 4, 8], vec![16], 5).expect("a layout");
        assert!(Held::of(&spread, &[24]).is_none());
        assert!(Held::of(&spread, &[32]).is_some());
    }

    #[test]
    fn groups_are_inside_or_outside() {
        let layout = RegLayout::new(vec![1, 2, 4], vec![], 3).expect("a layout");
        let held = Held::of(&layout, &[6]).expect("one thread");
        let pairs = || (0..4).map(|i| vec![2 * i, 2 * i + 1]).collect::<Vec<_>>();
        assert_eq!(held.groups(pairs()).map(|g| g.len()), Some(3));
        assert_eq!(held.groups(vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]]), None);
    }
}

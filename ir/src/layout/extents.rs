//! Extents that are not powers of two.
//!
//! A layout is linear over bits, so its tile has extents rounded up to powers of two. Elements beyond an extent do not
//! exist: no thread holds them, and no memory is reserved after the last element ([`SmemLayout::span`]), or after the
//! last one of a panel if panels are contiguous ([`super::Pitch`]). All threads must hold the same registers
//! ([`UsedRegisters`]). If the highest bits of a thread's number count units of such an extent, threads beyond it do not exist
//! ([`RegLayout::threads`]): for 192 rows, three warpgroups hold 64 rows each, and there is no fourth.

use super::f2::mask;
use super::smem::SmemLayout;
use super::tile::RegLayout;
use crate::target::WARP;

/// Number of coordinate bits of a dimension with this extent.
pub fn extent_bits(extent: u64) -> u32 {
    extent.checked_next_power_of_two().map_or(63, u64::ilog2)
}

/// The same of all dimensions of a tile.
pub fn shape_bits(shape: &[u64]) -> Vec<u32> {
    shape.iter().map(|&n| extent_bits(n)).collect()
}

/// Whether all extents are powers of two, so that no element is beyond them.
pub fn is_whole(shape: &[u64]) -> bool {
    shape.iter().all(|n| n.is_power_of_two())
}

impl SmemLayout {
    /// Number of elements of memory that a tile of these extents occupies: one more than the offset of its last
    /// element. `None` if the layout is for other extents.
    pub fn span(&self, shape: &[u64]) -> Option<u64> {
        if self.dim_bits() != shape_bits(shape) {
            return None;
        }
        let last = self.last(shape, u64::MAX);
        // A panel ends where the next one begins.
        let apart = self.pitch().is_none_or(|p| self.last(shape, mask(p.bit)) < p.stride);
        apart.then(|| self.address(last) + 1)
    }

    /// The largest offset, restricted to the bits `of`, of an element of a tile of these extents.
    fn last(&self, shape: &[u64], of: u64) -> u64 {
        // Below the lowest bit of an extent coordinates take all values, above it they count.
        let units: Vec<u32> = shape.iter().map(|n| n.max(&1).trailing_zeros()).collect();
        let mut low: Vec<u64> = Vec::new();
        for (d, &unit) in units.iter().enumerate() {
            for &column in &self.dim_cols(d)[..unit as usize] {
                let reduced = low.iter().fold(column & of, |c, &b| c.min(c ^ b));
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
            last = last.max(low.iter().fold(self.place(&start) & of, |at, &b| at.max(at ^ b)));
            let Some(d) = (0..shape.len()).find(|&d| counts[d] + 1 < shape[d] >> units[d]) else {
                return last;
            };
            counts[..d].fill(0);
            counts[d] += 1;
        }
    }

    /// Whether the elements of a tile of these extents occupy consecutive offsets from 0 on, one each.
    pub fn is_dense(&self, shape: &[u64]) -> bool {
        self.is_bijective() && self.span(shape) == Some(shape.iter().product())
    }
}

/// Which of its registers a thread has elements in, the same ones in every thread.
#[derive(Clone, Debug)]
pub struct UsedRegisters {
    /// By value index; empty: all.
    used: Vec<bool>,
}

impl RegLayout {
    /// Whether all threads hold elements of a tile of these extents in the same registers.
    pub fn is_even(&self, shape: &[u64]) -> bool {
        self.threads(shape).is_some()
    }

    /// The number of threads, from the first on, that hold elements of a tile of these extents, if all of them use the
    /// same registers; else `None`.
    ///
    /// This is the layout's number of threads if thread bits are all below the lowest set bit of each extent. In one
    /// dimension, the highest bits of the thread number (above the lane) may instead be exactly the coordinate bits
    /// from the extent's lowest set bit on. They then number the units of the extent, and there are as many threads as
    /// units need.
    pub fn threads(&self, shape: &[u64]) -> Option<u64> {
        let all = 1u64.checked_shl(self.thread_bits())?;
        if is_whole(shape) {
            return Some(all);
        }
        // Of a dimension that is not a power of two the bits above its lowest, in a column-major index.
        let above = |(extent, bits, base): (u64, u32, u32)| {
            let unit = extent.trailing_zeros().min(bits);
            (mask(bits) >> unit << unit) << base
        };
        let touched = |cols: &[u64], bits: u64| cols.iter().any(|c| c & bits != 0);
        let mut dealt = dimensions(shape).filter(|&d| touched(self.thread().cols(), above(d)));
        let Some(d @ (extent, ..)) = dealt.next() else { return Some(all) };
        let units = above(d);
        let low = self.thread_bits().checked_sub(units.count_ones()).filter(|&low| low >= WARP.ilog2())?;
        let (own, numbers) = self.thread().cols().split_at(low as usize);
        let counted = numbers.iter().enumerate().all(|(i, &c)| c == 1u64 << (units.trailing_zeros() + i as u32));
        let others = touched(own, units) || touched(self.value().cols(), units);
        (dealt.next().is_none() && counted && !others).then_some((extent >> extent.trailing_zeros()) << low)
    }

    /// Whether `threads` threads hold exactly a tile of these extents. If `threads` is not a power of two, the last
    /// ones may hold copies.
    pub fn is_for(&self, shape: &[u64], threads: u64) -> bool {
        let own = self.threads(shape);
        let told = self.thread().cols().iter().rposition(|&c| c != 0).map_or(0, |i| i + 1);
        let repeats = !threads.is_power_of_two()
            && own == Some(1 << self.thread_bits())
            && extent_bits(threads) == self.thread_bits()
            && 1u64 << told <= threads;
        own == Some(threads) || repeats
    }
}

/// For each dimension: the extent, the number of its coordinate bits, and their position in a column-major index.
fn dimensions(shape: &[u64]) -> impl Iterator<Item = (u64, u32, u32)> {
    shape.iter().scan(0, |base, &extent| {
        let (first, bits) = (*base, extent_bits(extent));
        *base += bits;
        Some((extent.max(1), bits, first))
    })
}

impl UsedRegisters {
    /// The registers that hold elements of a tile of these extents; `None` if they differ between threads.
    pub fn of(layout: &RegLayout, shape: &[u64]) -> Option<UsedRegisters> {
        if is_whole(shape) {
            return Some(UsedRegisters { used: Vec::new() });
        }
        let inside = |v: usize| {
            let at = layout.value().apply(v as u64);
            // The elements of a unit of an extent are all inside, or all outside.
            dimensions(shape).all(|(extent, bits, base)| {
                let unit = extent.trailing_zeros();
                (at >> base & mask(bits)) >> unit < extent >> unit
            })
        };
        layout.is_even(shape).then(|| UsedRegisters { used: (0..1usize << layout.value_bits()).map(inside).collect() })
    }

    /// Whether an element is in register `value`.
    pub fn has(&self, value: usize) -> bool {
        self.used.get(value).copied().unwrap_or(self.used.is_empty())
    }

    /// Number of registers that hold elements, of `of` registers of the layout.
    pub fn count(&self, of: usize) -> usize {
        if self.used.is_empty() { of } else { self.used.iter().filter(|&&h| h).count() }
    }

    /// The groups of registers that hold elements; `None` if only part of a group does.
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
    use crate::bits::Bits;
    use crate::layout::hardware::panels;
    use crate::layout::parse_smem_layout;

    #[test]
    fn panels_take_whole_rows() {
        let span = |shape: &[u64], contiguous, exact| {
            panels(shape, contiguous, Bits::new(16), exact).and_then(|l| l.span(shape))
        };
        assert_eq!(span(&[64, 160], 1, true), Some(64 * 160)); // five panels of 64 bytes
        assert_eq!(span(&[64, 160], 1, false), Some(64 * 192)); // three of 128
        assert_eq!(span(&[64, 192], 1, true), Some(64 * 192));
        assert_eq!(span(&[64, 176], 1, true), Some(64 * 176)); // eleven of 32
        assert_eq!(span(&[64, 48], 1, false), Some(64 * 64));
        assert_eq!(span(&[160, 64], 1, false), Some(160 * 64)); // rows of 128 bytes
        assert_eq!(span(&[160, 128], 1, false), Some(160 * 128)); // two panels, the second where the first one ends
        assert_eq!(span(&[80, 80], 1, false), Some(80 * 128)); // two panels, the second one used by a quarter
        assert_eq!(span(&[176, 192], 0, false), Some(192 * 192));
        assert_eq!(span(&[36, 128], 1, false), None); // exchanged pieces repeat themselves every eight rows
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
            ("(256,(64,2)):(64,(1,11264)) swizzle<3,3,3>", [176, 128]),
            ("(128,(64,2)):(64,(1,5120)) swizzle<3,3,3>", [80, 80]),
            ("((64,4),64):((1,3072),64) swizzle<3,3,3>", [192, 48]),
            ("(128,(128,2)):(128,(1,12288)) swizzle<3,4,3>", [96, 192]),
        ] {
            let layout = parse_smem_layout(text).expect(text);
            let offsets = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| [i, j])).map(|at| layout.offset(&at));
            assert_eq!(layout.span(&shape), offsets.max().map(|last| last + 1), "{text} of {shape:?}");
        }
        let natural = SmemLayout::natural(&[8, 6], &[0, 1]).expect("a layout");
        assert_eq!((natural.is_dense(&[160, 64]), natural.is_dense(&[256, 48])), (false, true));
        assert_eq!(natural.span(&[64, 64]), None);
        // Panels of a tile of more rows overlap.
        let pitched = parse_smem_layout("(256,(64,2)):(64,(1,11264)) swizzle<3,3,3>").expect("a layout");
        assert_eq!((pitched.span(&[176, 128]).is_some(), pitched.span(&[184, 128])), (true, None));
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
        let held = UsedRegisters::of(&layout, &shape).expect("the same in all threads");
        for v in 0..1usize << layout.value_bits() {
            for t in 0..256 {
                let at = layout.coords(t, v as u64, &shape_bits(&shape));
                assert_eq!(held.has(v), at[1] < 160, "thread {t}, register {v}");
            }
        }
        assert_eq!(held.count(128), 80);
        // Lanes that tell columns sixteen apart from each other do not all have the same of 24.
        let spread = RegLayout::new(vec![1, 2, 4, 8], vec![16], 5).expect("a layout");
        assert!(UsedRegisters::of(&spread, &[24]).is_none());
        assert!(UsedRegisters::of(&spread, &[32]).is_some());
    }

    /// Element by element against the definition.
    #[test]
    fn threads_that_are_there_hold_the_tile() {
        // The sums of 192x96 of three warpgroups, and of as many that compute the transposed product.
        let columns = |rows: u32, first: u32| {
            let value: Vec<u64> =
                [first, rows + 3].into_iter().chain((3..7).map(|b| first + b)).map(|b| 1u64 << b).collect();
            let thread = [first + 1, first + 2, rows, rows + 1, rows + 2, rows + 4, rows + 5, rows + 6, rows + 7];
            RegLayout::new(value, thread.map(|b| 1u64 << b).to_vec(), 15).expect("a layout")
        };
        for (layout, shape) in [(columns(0, 8), [192, 96]), (columns(7, 0), [96, 192])] {
            assert_eq!(layout.threads(&shape), Some(384));
            assert!(layout.is_for(&shape, 384) && !layout.is_for(&shape, 512) && !layout.is_for(&shape, 256));
            let held = UsedRegisters::of(&layout, &shape).expect("the same in all threads");
            let mut seen = std::collections::BTreeSet::new();
            for (v, t) in (0..1usize << layout.value_bits()).flat_map(|v| (0..384).map(move |t| (v, t))) {
                let at = layout.coords(t, v as u64, &shape_bits(&shape));
                assert_eq!(held.has(v), at[0] < shape[0] && at[1] < shape[1], "thread {t}, register {v}");
                assert!(!held.has(v) || seen.insert(at), "thread {t}, register {v}");
            }
            assert_eq!(seen.len() as u64, shape[0] * shape[1]);
            // Units of 64, of 32, and of 8 rows, which a warp has three of.
            let rows = |n: u64| layout.threads(&if shape[0] == 192 { [n, 96] } else { [96, n] });
            assert_eq!([256, 160, 136].map(rows), [Some(512), Some(320), None]);
        }
        // Of twelve rows and two columns, told by eight warps: four rows of a warp in registers, or told by other bits than the highest.
        let warps = |warp: [u32; 3], value: [u32; 2]| {
            let columns = |bits: &[u32]| bits.iter().map(|b| 1u64 << b).collect::<Vec<u64>>();
            let thread = [vec![0; 5], columns(&warp)].concat();
            RegLayout::new(columns(&value), thread, 5).and_then(|l| l.threads(&[12, 2])).map(|n| n / 32)
        };
        assert_eq!(warps([0, 2, 3], [1, 4]), Some(6));
        assert_eq!(warps([2, 3, 0], [1, 4]), None);
        assert_eq!(warps([0, 3, 2], [1, 4]), None);
        assert_eq!(warps([0, 1, 2], [3, 4]), None);
        assert_eq!(warps([0, 1, 4], [2, 3]), Some(8));
        // Lanes are there, or their warp is not.
        let lanes = RegLayout::new(vec![16], vec![1, 2, 0, 4, 8], 5).expect("a layout");
        assert_eq!(lanes.threads(&[12, 2]), None);
    }

    #[test]
    fn further_threads_may_repeat_a_tile() {
        let layout = |thread: Vec<u64>| RegLayout::new(vec![1, 2], thread, 4).expect("a layout");
        assert!(layout(vec![4, 8, 0]).is_for(&[16], 6) && layout(vec![4, 8, 0]).is_for(&[16], 8));
        // The last two of eight are not there, and nobody else has what they would.
        assert!(!layout(vec![4, 0, 8]).is_for(&[16], 6));
        assert!(layout(vec![4, 0, 8]).is_for(&[16], 8));
        assert!(!layout(vec![4, 8]).is_for(&[16], 6) && !layout(vec![4, 8, 0, 0]).is_for(&[16], 6));
    }

    #[test]
    fn groups_are_inside_or_outside() {
        let layout = RegLayout::new(vec![1, 2, 4], vec![], 3).expect("a layout");
        let held = UsedRegisters::of(&layout, &[6]).expect("one thread");
        let pairs = || (0..4).map(|i| vec![2 * i, 2 * i + 1]).collect::<Vec<_>>();
        assert_eq!(held.groups(pairs()).map(|g| g.len()), Some(3));
        assert_eq!(held.groups(vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]]), None);
    }
}

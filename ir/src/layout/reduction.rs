//! Reductions along a dimension of a register tile, and the layout of their results.
//!
//! The result has extent 1 along the dimension, and the layout of the tile without that dimension's bits: threads that held elements
//! of one row, which differ in these bits only, hold the same number ([`RegLayout::repeated`]). So elementwise expressions can combine it
//! with the tile without moving data.
//!
//! The columns determine what is combined: a thread's own elements, by value bits along the dimension, then those of
//! lanes, by lane bits. A column that also had bits of other dimensions, or depended on others, would include
//! elements of another row, or some twice: such layouts have no reduction here.

use super::extents::{UsedRegisters, shape_bits};
use super::f2::mask;
use super::tile::RegLayout;
use crate::target::WARP;
use crate::tuples::How;

/// How a register tile is reduced along a dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// The layout of the result.
    pub layout: RegLayout,
    /// For each register of the result the registers of the tile that it combines, in ascending order; none where the tile has none.
    pub members: Vec<Vec<usize>>,
    /// The bits of a lane's number that tell elements along the dimension apart.
    pub lanes: Vec<u32>,
}

/// Why there is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NoReduction {
    /// Elements along the dimension are in several warps.
    Warps,
    /// The layout mixes dimensions, or holds elements several times in another way than by threads that repeat others.
    Layout,
}

/// What tells elements of a scan apart: a bit of an element's number along the dimension is one of these.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ScanBit {
    /// A bit of a register's number.
    Register(u32),
    /// A bit of a lane's number.
    Lane(u32),
    /// A bit of a thread's number that tells warps apart.
    Warp(u32),
}

/// Log2 of the elements that a thread reads at once.
const IN_THREAD: u32 = 2;

impl RegLayout {
    /// The reduction of a tile of these extents along dimension `axis`; elements whose numbers differ in the bits `parts` are in different parts.
    ///
    /// # Errors
    /// The layout allows none.
    pub fn reduction(&self, shape: &[u64], axis: usize, parts: u32) -> Result<Reduction, NoReduction> {
        let bits = shape_bits(shape);
        let fits = bits.iter().sum::<u32>() == self.out_bits() && self.covers_tile() && self.is_injective_per_thread();
        let own = bits.get(axis).filter(|&&own| fits && u64::from(parts) <= mask(own)).ok_or(NoReduction::Layout)?;
        let base: u32 = bits[..axis].iter().sum();
        let along = (mask(*own) & !u64::from(parts)) << base;
        let columns = || self.value().cols().iter().chain(self.thread().cols());
        let mixed = columns().any(|c| c & along != 0 && c & !along != 0);
        // As many columns as bits that they reach are independent.
        if mixed || columns().filter(|&c| c & along != 0).count() != along.count_ones() as usize {
            return Err(NoReduction::Layout);
        }
        let lanes: Vec<u32> = (0..self.thread_bits()).filter(|&i| self.thread_col(i) & along != 0).collect();
        if lanes.iter().any(|&i| i >= WARP.ilog2()) {
            return Err(NoReduction::Warps);
        }
        let held = UsedRegisters::of(self, shape).ok_or(NoReduction::Layout)?;
        let (combined, kept): (Vec<u32>, Vec<u32>) =
            (0..self.value_bits()).partition(|&i| self.value_col(i) & along != 0);
        let spread = |x: usize, bits: &[u32]| bits.iter().enumerate().fold(0usize, |a, (i, &b)| a | (x >> i & 1) << b);
        let members = (0..1usize << kept.len()).map(|i| {
            let mut all: Vec<usize> =
                (0..1usize << combined.len()).map(|j| spread(i, &kept) | spread(j, &combined)).collect();
            all.retain(|&v| held.has(v));
            all.sort_unstable();
            all
        });
        let layout = self.without(along).ok_or(NoReduction::Layout)?;
        Ok(Reduction { layout, members: members.collect(), lanes })
    }

    /// How a tile of these extents is scanned along dimension `axis`, or reduced in the order of its elements: for each bit of an element's number along it that tells
    /// no `parts` apart, the lowest first, where it is.
    ///
    /// # Errors
    /// Elements of a row are in several warps, or a bit of the number is several of a register's or a lane's.
    pub fn scan(&self, shape: &[u64], axis: usize, parts: u32) -> Result<Vec<ScanBit>, NoReduction> {
        self.reduction(shape, axis, parts)?;
        let bits = shape_bits(shape);
        let base: u32 = bits[..axis].iter().sum();
        let place = |i: u32| {
            let of = |cols: &[u64]| cols.iter().position(|&c| c == 1 << (base + i)).map(|at| at as u32);
            let register = of(self.value().cols()).map(ScanBit::Register);
            register.or_else(|| of(self.thread().cols()).map(ScanBit::Lane)).ok_or(NoReduction::Layout)
        };
        (0..bits[axis]).filter(|i| parts >> i & 1 == 0).map(place).collect()
    }

    /// Where the bits `parts` of an element's number are, which tell segments of a row apart that is scanned: those above all that [`RegLayout::scan`] finds.
    ///
    /// # Errors
    /// A bit is a lane's, or several of a register's or a thread's.
    pub fn segments(&self, shape: &[u64], axis: usize, parts: u32) -> Result<Vec<ScanBit>, NoReduction> {
        let bits = shape_bits(shape);
        let base: u32 = bits[..axis].iter().sum();
        let place = |i: u32| {
            let of = |cols: &[u64]| {
                // A column that has the bit has no other, and no other has it.
                let mut with = cols.iter().enumerate().filter(|(_, c)| *c >> (base + i) & 1 == 1);
                let found = with.next().filter(|&(_, &c)| c == 1 << (base + i)).map(|(at, _)| at as u32);
                found.filter(|_| with.next().is_none())
            };
            match (of(self.value().cols()), of(self.thread().cols())) {
                (Some(bit), None) => Ok(ScanBit::Register(bit)),
                (None, Some(bit)) if bit >= WARP.ilog2() => Ok(ScanBit::Warp(bit)),
                _ => Err(NoReduction::Layout),
            }
        };
        (0..bits[axis]).filter(|i| parts >> i & 1 == 1).map(place).collect()
    }

    /// The layout of the totals of `2^parts` segments of such a tile's rows: a thread holds the totals of all segments
    /// of the rows of which it holds elements.
    pub fn of_totals(&self, shape: &[u64], axis: usize, parts: u32) -> Option<RegLayout> {
        let bits = shape_bits(shape);
        let base: u32 = bits.get(..axis)?.iter().sum();
        let row = self.without(mask(*bits.get(axis)?) << base)?;
        let spread = |c: &u64| (c >> base) << (base + parts) | c & mask(base);
        let value = (0..parts).map(|bit| 1 << (base + bit)).chain(row.value().cols().iter().map(spread)).collect();
        RegLayout::new(value, row.thread().cols().iter().map(spread).collect(), row.out_bits() + parts)
    }

    /// The same distribution with elements distributed so that each warp has a segment along dimension `axis`: the bits of an element's number there that warps tell apart
    /// become the highest ones. `None` where a bit is not one of a thread's or a register's number alone, or nothing changes.
    pub fn in_segments(&self, shape: &[u64], axis: usize) -> Option<RegLayout> {
        let bits = shape_bits(shape);
        let (own, base) = (*bits.get(axis)?, bits[..axis].iter().sum::<u32>());
        let along = mask(own) << base;
        let columns = || self.value().cols().iter().chain(self.thread().cols());
        if columns().any(|c| c & along != 0 && !c.is_power_of_two()) {
            return None;
        }
        let of_warps = self.thread().cols().iter().skip(WARP.ilog2() as usize).fold(0, |all, &c| all | c & along);
        let order = |warps: bool| (base..base + own).filter(move |&i| (of_warps >> i & 1 == 1) == warps);
        let from: Vec<u32> = order(false).chain(order(true)).collect();
        let to = |c: &u64| match from.iter().position(|&i| *c == 1 << i) {
            Some(at) => 1u64 << (base + at as u32),
            None => *c,
        };
        let value = self.value().cols().iter().map(to).collect();
        let found = RegLayout::new(value, self.thread().cols().iter().map(to).collect(), self.out_bits())?;
        (found != *self).then_some(found)
    }

    /// The layout of what tuples along dimension `axis` of a tile of these extents come to.
    ///
    /// # Errors
    /// As of [`RegLayout::scan`].
    pub fn combined(&self, shape: &[u64], axis: usize, how: How) -> Result<RegLayout, NoReduction> {
        match how {
            How::Sort { steps } => self.sorted(shape, axis, steps).map(drop)?,
            _ => self.scan(shape, axis, how.parts()).map(drop)?,
        }
        Ok(if how.keeps_extents() { self.clone() } else { self.reduction(shape, axis, how.parts())?.layout })
    }

    /// The layout in which all threads of all warps with elements of a row hold the row's result, and the bits that
    /// distinguish the warps. `None` if a row's elements are in one warp, or if the layout mixes dimensions.
    pub fn across_warps(&self, shape: &[u64], axis: usize) -> Option<(RegLayout, u32)> {
        let bits = shape_bits(shape);
        let (own, base) = (*bits.get(axis)?, bits[..axis].iter().sum::<u32>());
        let along = mask(own) << base;
        let warps = self.thread().cols().iter().skip(WARP.ilog2() as usize).fold(0, |all, &c| all | c & along);
        let parts = u32::try_from(warps >> base).ok().filter(|&parts| parts != 0 && shape[axis].is_power_of_two())?;
        self.reduction(shape, axis, parts).ok()?;
        Some((self.without(along)?, parts))
    }

    /// The layout of a tile of these extents of which this is the layout of a tile with extent 1 along dimension `axis`: threads hold all elements along it, up to
    /// four in their own registers, others in lanes that would hold the same.
    pub fn with_dimension(&self, shape: &[u64], axis: usize) -> Option<RegLayout> {
        let bits = shape_bits(shape);
        let base: u32 = bits.get(..axis)?.iter().sum();
        let own = *bits.get(axis)?;
        let spread = |c: &u64| (c >> base) << (base + own) | c & mask(base);
        let mut thread: Vec<u64> = self.thread().cols().iter().map(spread).collect();
        let free: Vec<usize> = (0..thread.len().min(WARP.ilog2() as usize)).filter(|&i| thread[i] == 0).collect();
        let shared = own.saturating_sub(IN_THREAD).min(free.len() as u32);
        for (bit, &lane) in (own - shared..own).zip(&free) {
            thread[lane] = 1 << (base + bit);
        }
        let along = (0..own - shared).map(|bit| 1u64 << (base + bit));
        let value = along.chain(self.value().cols().iter().map(spread)).collect();
        RegLayout::new(value, thread, self.out_bits() + own)
    }

    /// The layout of a tile without these bits of its elements' numbers: threads that differ in them alone hold the same.
    fn without(&self, along: u64) -> Option<RegLayout> {
        let left = |column: u64| {
            let kept = (0..self.out_bits()).filter(|&i| along >> i & 1 == 0);
            kept.enumerate().fold(0, |all, (to, from)| all | (column >> from & 1) << to)
        };
        let value = self.value().cols().iter().map(|&c| left(c)).filter(|&c| c != 0).collect();
        let thread = self.thread().cols().iter().map(|&c| left(c)).collect();
        RegLayout::new(value, thread, self.out_bits() - along.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Element by element: what all lanes of a row combine is the row, each element once.
    fn check(layout: &RegLayout, shape: [u64; 2], axis: usize) {
        let bits = shape_bits(&shape);
        let reduction = layout.reduction(&shape, axis, 0).expect("a reduction");
        let mut small = shape;
        small[axis] = 1;
        for thread in 0..1u64 << layout.thread_bits() {
            for (i, members) in reduction.members.iter().enumerate() {
                let row = reduction.layout.coords(thread, i as u64, &shape_bits(&small));
                if row[1 - axis] >= shape[1 - axis] {
                    assert!(members.is_empty());
                    continue;
                }
                let mut seen = BTreeSet::new();
                for x in 0..1u64 << reduction.lanes.len() {
                    let flipped = reduction.lanes.iter().enumerate().fold(0, |a, (i, &l)| a | (x >> i & 1) << l);
                    for &v in members {
                        let at = layout.coords(thread ^ flipped, v as u64, &bits);
                        assert_eq!(at[1 - axis], row[1 - axis], "thread {thread}, register {v}");
                        assert!(seen.insert(at[axis]), "thread {thread}, register {v}");
                    }
                }
                assert_eq!(seen, (0..shape[axis]).collect(), "thread {thread}, row {i}");
            }
        }
    }

    fn of(value: &[u32], thread: &[Option<u32>], out: u32) -> RegLayout {
        let value = value.iter().map(|b| 1 << b).collect();
        let thread = thread.iter().map(|b| b.map_or(0, |b| 1 << b)).collect();
        RegLayout::new(value, thread, out).expect("a layout")
    }

    #[test]
    fn rows_are_combined_once() {
        // The sums of a warpgroup, 64 rows: pairs of columns, rows eight apart, columns by eights.
        let warpgroup = |columns: u32| {
            let value: Vec<u32> = [6, 3].into_iter().chain(9..6 + columns).collect();
            of(&value, &[7, 8, 0, 1, 2, 4, 5].map(Some), 6 + columns)
        };
        check(&warpgroup(7), [64, 128], 1);
        check(&warpgroup(8), [64, 160], 1);
        assert_eq!(warpgroup(7).reduction(&[64, 128], 1, 0).map(|r| r.lanes), Ok(vec![0, 1]));
        // Its columns are in four warps.
        assert_eq!(warpgroup(7).reduction(&[64, 128], 0, 0), Err(NoReduction::Warps));
        // Four neighbours of a thread, eight lanes along a row, four rows; the second warp repeats the first.
        let coalesced = of(&[3, 4, 2], &[Some(5), Some(6), Some(7), Some(0), Some(1), None], 8);
        check(&coalesced, [8, 32], 1);
        check(&coalesced, [8, 32], 0);
        assert_eq!(coalesced.reduction(&[8, 32], 0, 0).map(|r| r.lanes), Ok(vec![3, 4]));
    }

    #[test]
    fn scans_know_where_each_bit_is() {
        // Four neighbours of a thread, eight lanes along a row, four rows; columns are scanned, too.
        let coalesced = of(&[3, 4, 2], &[Some(5), Some(6), Some(7), Some(0), Some(1), None], 8);
        let (register, lane) = (ScanBit::Register, ScanBit::Lane);
        assert_eq!(coalesced.scan(&[8, 32], 1, 0), Ok(vec![register(0), register(1), lane(0), lane(1), lane(2)]));
        assert_eq!(coalesced.scan(&[8, 32], 0, 0), Ok(vec![lane(3), lane(4), register(2)]));
        let across = of(&[0], &[1, 2, 3, 4, 5, 6].map(Some), 7);
        assert_eq!(across.scan(&[1, 128], 1, 0), Err(NoReduction::Warps));
        // Bits of a number that are several of a lane's.
        let mixed = RegLayout::new(vec![1, 2 | 1], vec![4, 8], 4).expect("a layout");
        assert_eq!(mixed.scan(&[1, 16], 1, 0), Err(NoReduction::Layout));
    }

    #[test]
    fn parts_are_scanned_by_themselves() {
        // Two neighbours of a thread, the lanes of a warp, two warps, two more registers of a thread: what is after another warp's elements is a part of its own.
        let shared = of(&[0, 7], &[1, 2, 3, 4, 5, 6].map(Some), 8);
        assert_eq!(shared.scan(&[1, 256], 1, 0), Err(NoReduction::Warps));
        let lanes = (0..5).map(ScanBit::Lane);
        let within: Vec<ScanBit> = std::iter::once(ScanBit::Register(0)).chain(lanes).collect();
        assert_eq!(shared.scan(&[1, 256], 1, 0b1100_0000), Ok(within));
        let left = shared.combined(&[1, 256], 1, How::Reduce { parts: 0b1100_0000 }).expect("parts");
        assert_eq!((left.value_bits(), left.out_bits()), (1, 2));
    }

    #[test]
    fn warps_have_segments_of_a_row() {
        // Two neighbours of a thread, the lanes of a warp, two warps, two more registers of a thread.
        let shared = of(&[0, 7], &[1, 2, 3, 4, 5, 6].map(Some), 8);
        let (register, warp) = (ScanBit::Register, ScanBit::Warp);
        assert_eq!(shared.segments(&[1, 256], 1, 0b1100_0000), Ok(vec![warp(5), register(1)]));
        assert_eq!(shared.segments(&[1, 256], 1, 0b1110_0000), Err(NoReduction::Layout));
        let apart = shared.in_segments(&[1, 256], 1).expect("a layout");
        assert_eq!(apart, of(&[0, 6], &[1, 2, 3, 4, 5, 7].map(Some), 8));
        assert_eq!(apart.in_segments(&[1, 256], 1), None);
        // Every thread holds two rows, and the totals of both segments of each.
        let rows = of(&[0], &[Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(7)], 8);
        let totals = rows.of_totals(&[2, 128], 1, 1).expect("a layout");
        assert_eq!(totals, of(&[1, 0], &[None; 7], 2));
        // A bit that is two of a thread's number.
        let mixed = RegLayout::new(vec![1], [2, 4, 8, 16, 32, 64, 64].to_vec(), 7).expect("a layout");
        assert_eq!(mixed.segments(&[1, 128], 1, 64), Err(NoReduction::Layout));
    }

    #[test]
    fn what_would_count_elements_twice_is_none() {
        let layout = |value: Vec<u64>, thread: Vec<u64>| RegLayout::new(value, thread, 4).expect("a layout");
        let none = |l: RegLayout| l.reduction(&[4, 4], 1, 0).err();
        assert_eq!(none(layout(vec![1, 4], vec![2, 8])), None);
        // A lane bit that moves along both dimensions.
        assert_eq!(none(layout(vec![1, 4], vec![2 | 8, 8])), Some(NoReduction::Layout));
        // Two lanes that have the same columns, and a thread that has some twice.
        assert_eq!(none(layout(vec![1, 4], vec![2, 8, 8])), Some(NoReduction::Layout));
        assert_eq!(none(layout(vec![1, 4, 0], vec![2, 8])), Some(NoReduction::Layout));
        // It misses columns, is of another tile, or there is no such dimension.
        assert_eq!(none(layout(vec![1, 4], vec![2])), Some(NoReduction::Layout));
        assert_eq!(layout(vec![1, 4], vec![2, 8]).reduction(&[4, 8], 1, 0), Err(NoReduction::Layout));
        assert_eq!(layout(vec![1, 4], vec![2, 8]).reduction(&[4, 4], 2, 0), Err(NoReduction::Layout));
    }
}

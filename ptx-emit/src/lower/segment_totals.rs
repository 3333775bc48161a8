//! Totals of the segments of a row that several warps share.
//!
//! Every thread has the totals of all segments of its rows in registers. They are combined like a scan: for aligned
//! blocks of 2, 4, 8, .. segments they give the total in front of the upper half of each block. Bits of register
//! numbers, which are constants, and bits of the thread's warp number, by selections, select the block.

use super::combine_elements::By;
use super::scope::Scope;
use super::state::Lower;
use crate::inst::Reg;
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::layout::ScanBit;

/// The totals of segments, and the segment of each register.
pub(super) struct SegmentTotals {
    /// For each row of which a thread has elements, a tuple for each segment.
    rows: Vec<Vec<Vec<Reg>>>,
    /// By register: its row, and the bits of the segment number that the register number determines.
    places: BTreeMap<usize, (usize, usize)>,
}

impl SegmentTotals {
    /// Collects the totals `found`, by row (its coordinates, 0 along `axis`) and segment number. The scanned tile has
    /// the layout of `scope`, and its segments have `2^low` elements.
    pub(super) fn of(
        found: BTreeMap<(Vec<u64>, usize), Vec<Reg>>,
        scope: &Scope,
        (axis, low): (usize, u32),
    ) -> SegmentTotals {
        let mut rows: Vec<(Vec<u64>, Vec<Vec<Reg>>)> = Vec::new();
        for ((row, _), tuple) in found {
            match rows.last_mut().filter(|(last, _)| *last == row) {
                Some((_, tuples)) => tuples.push(tuple),
                None => rows.push((row, vec![tuple])),
            }
        }
        let mut places = BTreeMap::new();
        for v in 0..1usize << scope.layout.value_bits() {
            let (row, at) = split_row(axis, scope.layout.coords(0, v as u64, &scope.dim_bits));
            // Beyond an extent that is no power of two, there are neither elements nor totals.
            if let Some(row) = rows.iter().position(|(own, _)| *own == row) {
                places.insert(v, (row, at >> low));
            }
        }
        SegmentTotals { rows: rows.into_iter().map(|(_, tuples)| tuples).collect(), places }
    }

    /// The number of segments of a row, as a power of two.
    pub(super) fn bits(&self) -> usize {
        self.rows.first().map_or(0, |row| row.len().ilog2() as usize)
    }
}

/// The coordinates of an element's row, 0 along `axis`, and its index along `axis`.
pub(super) fn split_row(axis: usize, coords: Vec<u64>) -> (Vec<u64>, usize) {
    let (mut row, at) = (coords.clone(), coords[axis]);
    row[axis] = 0;
    (row, at as usize)
}

/// Totals in front of elements.
pub(super) struct PrefixTotals<'t> {
    segments: &'t SegmentTotals,
    /// The meaning of each bit of a segment number.
    steps: &'t [ScanBit],
    /// For each row, the totals of blocks of 1, 2, 4, .. segments.
    blocks: BTreeMap<usize, Vec<Vec<Vec<Reg>>>>,
    /// Selected totals, by level, row and the known bits of the segment number.
    chosen: BTreeMap<(usize, usize, usize), Vec<Reg>>,
}

impl<'t> PrefixTotals<'t> {
    pub(super) fn new(segments: &'t SegmentTotals, steps: &'t [ScanBit]) -> PrefixTotals<'t> {
        PrefixTotals { segments, steps, blocks: BTreeMap::new(), chosen: BTreeMap::new() }
    }
}

impl Lower<'_> {
    /// The total of the lower half of the block of `2^(level + 1)` segments that register `v` is in.
    pub(super) fn front_of(
        &mut self,
        by: By<'_>,
        fronts: &mut PrefixTotals<'_>,
        level: usize,
        v: usize,
    ) -> Result<Vec<Reg>, Reported> {
        let &(row, known) = fronts.segments.places.get(&v).expect("bug: an element is in a row");
        let known = known >> (level + 1) << (level + 1);
        if let Some(found) = fronts.chosen.get(&(level, row, known)) {
            return Ok(found.clone());
        }
        let blocks = fronts.blocks.entry(row).or_insert_with(|| vec![fronts.segments.rows[row].clone()]);
        while blocks.len() <= level {
            let last = &blocks[blocks.len() - 1];
            let next = last.chunks(2).map(|pair| self.two(by, &pair[0], &pair[1])).collect::<Result<_, _>>()?;
            blocks.push(next);
        }
        // The possible blocks, by the higher bits that the warp number determines, lowest bit first.
        let warps = fronts.steps.iter().enumerate().skip(level + 1).filter_map(|(i, step)| match *step {
            ScanBit::Warp(bit) => Some((i, bit)),
            _ => None,
        });
        let warps: Vec<(usize, u32)> = warps.collect();
        let number =
            |chosen: usize| warps.iter().enumerate().fold(known, |all, (i, (at, _))| all | (chosen >> i & 1) << at);
        let mut found: Vec<Vec<Reg>> =
            (0..1usize << warps.len()).map(|chosen| blocks[level][number(chosen) >> level].clone()).collect();
        for &(_, bit) in &warps {
            let upper = self.has_lane_bit(bit);
            found = found
                .chunks(2)
                .map(|pair| pair[1].iter().zip(&pair[0]).map(|(&a, &b)| self.choose(upper, a, b)).collect())
                .collect();
        }
        let front = found.swap_remove(0);
        fronts.chosen.insert((level, row, known), front.clone());
        Ok(front)
    }
}

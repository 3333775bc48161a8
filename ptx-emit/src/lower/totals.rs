//! What stretches of a row come to, of which warps have one each.
//!
//! Every thread has that of all stretches of its rows in registers. Put together as a scan does, stretches of 2, 4, 8, .. that begin at multiples of their number,
//! they give what lies in front of the upper half of each such block. Which block a thread is in is told by bits of its registers' numbers, which are known here, and by
//! bits of its warp's number, by which it chooses.

use super::dims::Dims;
use super::joins::By;
use super::scope::Scope;
use super::state::Lower;
use crate::inst::{Class, Reg};
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::layout::{RegLayout, ScanBit};

/// What stretches come to, and which of them registers are in.
pub(super) struct Stretches {
    /// Of each row that a thread has elements of, a tuple for each stretch.
    rows: Vec<Vec<Vec<Reg>>>,
    /// By register: its row, and the bits of the stretch's number that the register's number says.
    places: BTreeMap<usize, (usize, usize)>,
}

impl Stretches {
    /// Stretches, as a power of two.
    pub(super) fn bits(&self) -> usize {
        self.rows.first().map_or(0, |row| row.len().ilog2() as usize)
    }
}

/// What lies in front of elements.
pub(super) struct Fronts<'t> {
    stretches: &'t Stretches,
    /// Where each bit of a stretch's number is.
    steps: &'t [ScanBit],
    /// Of each row what blocks of 1, 2, 4, .. stretches come to.
    blocks: BTreeMap<usize, Vec<Vec<Vec<Reg>>>>,
    /// What was chosen, by level, row and bits of the stretch's number that are known.
    chosen: BTreeMap<(usize, usize, usize), Vec<Reg>>,
}

impl<'t> Fronts<'t> {
    pub(super) fn new(stretches: &'t Stretches, steps: &'t [ScanBit]) -> Fronts<'t> {
        Fronts { stretches, steps, blocks: BTreeMap::new(), chosen: BTreeMap::new() }
    }
}

impl Lower<'_> {
    /// What stretches of the rows of a tile come to, a component in each of the tiles `totals`; the tile that is scanned is distributed like `scope`.
    pub(super) fn totals(
        &mut self,
        e: Expr,
        (totals, classes): (&[Expr], &[Class]),
        scope: &Scope,
        (axis, parts): (usize, u32),
    ) -> Result<Stretches, Reported> {
        let shape: Vec<u64> = scope.dim_bits.extents().to_vec();
        let low = parts.trailing_zeros();
        // A row by its other coordinates, and an element or a stretch of it.
        let split = |coords: Vec<u64>| {
            let at = coords[axis];
            let mut row = coords;
            row[axis] = 0;
            (row, at as usize)
        };
        let wanted = scope.layout.of_totals(&shape, axis, parts.count_ones());
        let mut found: BTreeMap<(Vec<u64>, usize), Vec<Reg>> = BTreeMap::new();
        for (&tile, &class) in totals.iter().zip(classes) {
            let subject = self.subject(tile);
            let fits = |found: &RegLayout| wanted.as_ref().is_some_and(|wanted| wanted.thread() == found.thread());
            let Some(subject) = subject.filter(|s| fits(&s.layout)) else {
                let what = "a scan whose totals lie otherwise; leave their layout out to have one found";
                return Err(self.unsupported(e, what));
            };
            let own = Scope { layout: subject.layout.clone(), dim_bits: Dims::of(&subject.shape) };
            let mut operands = self.operands(tile, &own, &CopyAttrs::default(), None)?;
            let all: Vec<usize> = (0..1usize << subject.layout.value_bits()).collect();
            self.begin_group(&mut operands, 0, &all)?;
            let xs = self.eval(tile, &operands, &all, class)?;
            for (v, x) in all.into_iter().zip(xs) {
                let at = split(own.layout.coords(0, v as u64, &own.dim_bits));
                found.entry(at).or_default().push(x);
            }
        }
        let mut rows: Vec<(Vec<u64>, Vec<Vec<Reg>>)> = Vec::new();
        for ((row, _), tuple) in found {
            match rows.last_mut().filter(|(last, _)| *last == row) {
                Some((_, tuples)) => tuples.push(tuple),
                None => rows.push((row, vec![tuple])),
            }
        }
        let mut places = BTreeMap::new();
        for v in 0..1usize << scope.layout.value_bits() {
            let (row, at) = split(scope.layout.coords(0, v as u64, &scope.dim_bits));
            // Beyond an extent that is no power of two there are neither elements nor totals.
            if let Some(row) = rows.iter().position(|(own, _)| *own == row) {
                places.insert(v, (row, at >> low));
            }
        }
        Ok(Stretches { rows: rows.into_iter().map(|(_, tuples)| tuples).collect(), places })
    }

    /// What lies in front of the upper half of the block of `2^(level + 1)` stretches that register `v` is in: what its lower half comes to.
    pub(super) fn front_of(
        &mut self,
        by: By<'_>,
        fronts: &mut Fronts<'_>,
        level: usize,
        v: usize,
    ) -> Result<Vec<Reg>, Reported> {
        let &(row, known) = fronts.stretches.places.get(&v).expect("bug: an element is in a row");
        let known = known >> (level + 1) << (level + 1);
        if let Some(found) = fronts.chosen.get(&(level, row, known)) {
            return Ok(found.clone());
        }
        let blocks = fronts.blocks.entry(row).or_insert_with(|| vec![fronts.stretches.rows[row].clone()]);
        while blocks.len() <= level {
            let last = &blocks[blocks.len() - 1];
            let next = last.chunks(2).map(|pair| self.two(by, &pair[0], &pair[1])).collect::<Result<_, _>>()?;
            blocks.push(next);
        }
        // The blocks that it may be, by the bits above that warps say, the lowest first.
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

//! A problem, and the smaller ones that the simulator is given.

use super::program::{Form, Order, Program};
use crate::problem::{Random, Run};
use crate::reference;
use std::collections::BTreeMap;

/// A problem.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Where it comes from.
    pub name: String,
    /// The program that is to solve it.
    pub program: Program,
    /// M, N, K.
    pub size: [i64; 3],
    /// Leading dimensions of A, B and C.
    pub ld: [i64; 3],
    /// Scale of the product.
    pub alpha: f64,
    /// Scale of the old C.
    pub beta: f64,
    /// Matrices of a batch.
    pub batch: i64,
    /// Slices of a split reduction.
    pub slices: i64,
    /// Data are integers of at most this magnitude.
    pub range: i64,
    /// Seed of the data.
    pub seed: u64,
}

impl Problem {
    pub(super) fn new(
        name: String,
        program: Program,
        size: [i64; 3],
        ld: [Option<i64>; 3],
        scale: [f64; 2],
    ) -> Problem {
        let [m, n, k] = size;
        let [a, b, c] = program.orders;
        let packed = [a.packed(m, k), b.packed(k, n), c.packed(m, n)];
        let ld = [0, 1, 2].map(|i| ld[i].unwrap_or(packed[i]));
        let [alpha, beta] = scale;
        // The largest data for which every partial sum and the result are exact.
        let magnitude = |r: i64| alpha.abs().max(1.0) * (k * r * r) as f64 + beta.abs() * r as f64;
        let precision = program.acc.precision().min(program.out.precision());
        let fits = |r: i64| {
            magnitude(r) * 2.0 <= (1u64 << precision) as f64 && reference::accumulates_exactly(program.acc, k, r)
        };
        // Past that, small data: their random sums stay far below the bound (and the reference checks that they do).
        let range = (1..=4).rev().find(|&r| fits(r)).unwrap_or(1);
        let seed = size.into_iter().chain(ld).fold(1, |s, x| Random(s ^ x.unsigned_abs()).bits());
        Problem { name, program, size, ld, alpha, beta, batch: 1, slices: 1, range, seed }
    }

    /// As a run line.
    pub fn run(&self) -> Run {
        let [m, n, k] = self.size;
        let [a, b, c] = self.ld;
        let mut values = BTreeMap::new();
        let mut set = |name: &str, x: i64| {
            values.insert(name.to_owned(), x as f64);
        };
        ["M", "N", "K"].into_iter().zip([m, n, k]).for_each(|(name, x)| set(name, x));
        match self.program.form {
            Form::Batched => {
                set("Z", self.batch);
                // One matrix follows the other, with the padding of its last row.
                let extents = [(m, k), (k, n), (m, n)];
                for (i, name) in ["A", "B", "C"].into_iter().enumerate() {
                    let (rows, cols) = extents[i];
                    let count = if self.program.orders[i] == Order::Row { rows } else { cols };
                    set(&format!("{name}_ld0"), count * self.ld[i]);
                    set(&format!("{name}_ld1"), self.ld[i]);
                }
            }
            form => {
                ["A_ld", "B_ld", "C_ld"].into_iter().zip([a, b, c]).for_each(|(name, x)| set(name, x));
                if form == Form::Split {
                    set("S", self.slices);
                }
            }
        }
        values.insert("alpha".to_owned(), self.alpha);
        values.insert("beta".to_owned(), self.beta);
        Run { values, seed: self.seed, range: self.range, tolerance: 0.0, at: None }
    }

    /// Extents of the contiguous dimensions of A, B and C.
    pub(super) fn runs(&self) -> [i64; 3] {
        let [m, n, k] = self.size;
        let [a, b, c] = self.program.orders;
        [a.packed(m, k), b.packed(k, n), c.packed(m, n)]
    }

    /// The same in small, for the simulator: large extents become one tile and what they have beyond whole tiles. Padding
    /// stays.
    pub(super) fn reduced(&self) -> Problem {
        self.resized(self.size.map(|n| if n > 96 { 64 + n % 64 } else { n }))
    }

    /// The same with other extents; padding stays.
    pub(super) fn resized(&self, size: [i64; 3]) -> Problem {
        let mut other = Problem::new(self.name.clone(), self.program, size, [None; 3], [self.alpha, self.beta]);
        let padding = self.ld.iter().zip(self.runs()).map(|(ld, run)| ld - run);
        other.ld.iter_mut().zip(padding).for_each(|(ld, padding)| *ld += padding);
        // Two matrices of a batch show what more of them would.
        Problem { batch: self.batch.min(2), slices: self.slices, ..other }
    }

    /// The problems of a program that are simulated: full tiles, tiles ragged along every dimension, and the most
    /// complex problem, cut down.
    pub(super) fn simulated(problems: &[Problem]) -> Vec<Problem> {
        let Some(reduced) = problems.iter().map(Problem::reduced).max_by_key(|p| (p.beta != 0.0, p.work())) else {
            return Vec::new();
        };
        let tile = reduced.program.block();
        let [bm, bn, bk] = tile;
        // Two tiles of the reduction; in slices, one for each of some.
        let full = [bm, bn, bk * if reduced.slices > 1 { 3 } else { 2 }];
        let least = reduced.program.align.into_iter().max().unwrap_or(1);
        let ragged = [bm + least, least, bk + least];
        let is_ragged = |p: &Problem| p.size.iter().zip(tile).all(|(n, tile)| n % tile != 0);
        let mut all = vec![reduced.resized(full)];
        if !is_ragged(&reduced) {
            all.push(reduced.resized(ragged));
        }
        all.push(reduced);
        all
    }

    /// Multiply-adds.
    pub(super) fn work(&self) -> i64 {
        self.size.iter().product()
    }
}

/// The largest power of two up to `limit` that divides all of them.
pub(super) fn conforming(limit: i64, extents: impl Iterator<Item = i64>) -> i64 {
    let bits = extents.fold(limit.max(1), |all, x| all | x);
    // The lowest bit set anywhere, but not above `limit`.
    bits & bits.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_the_common_power_of_two() {
        assert_eq!(conforming(8, [64, 30, 64].into_iter()), 2);
        assert_eq!(conforming(8, [64, 8].into_iter()), 8);
        assert_eq!(conforming(2, [64, 36].into_iter()), 2);
        assert_eq!(conforming(8, [7].into_iter()), 1);
    }
}

//! The search for better values of the numbers of a program.
//!
//! From the program as it is, and then from the best that was found, each number is halved and doubled, and a tile of the
//! product together with the warp tile along it. If nothing is better, pairs of numbers are tried. If something is, the
//! multiples of half its values are.

use super::advice::Advice;
use super::answer::Known;
use super::numbers::{self, Number, Values};
use super::programs::Change;
use super::trials::{Effect, FASTER, effect, restrictions};
use crate::compile::CompiledKernel;
use crate::compile::unrepeated::unrepeated;
use std::collections::BTreeSet;
use tilec_ir::diag::counted;
use tilec_passes::choose::{Prediction, Role};

/// Programs that are compiled at most.
const MOST: usize = 28;

/// Pairs of numbers that are compiled besides, if no number alone is better.
const PAIRS: usize = 8;

/// What half and one and a half of an extent have to be multiples of.
const GRANULE: i64 = 16;

/// What other values are to have less of.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Less {
    /// The predicted time.
    Time,
    /// The bytes between memory and the second-level cache.
    Bytes,
}

/// A search.
pub(super) struct Search<'a> {
    known: &'a Known<'a>,
    kernel: &'a CompiledKernel,
    less: Less,
    /// The program without a change, and what there is of it.
    p: &'a Prediction,
    now: f64,
    numbers: &'a [Number],
    seen: BTreeSet<Values>,
    /// How many of these are pairs.
    pairs: usize,
    better: Vec<(Values, Effect)>,
}

impl<'a> Search<'a> {
    /// Of a kernel.
    pub(super) fn new(
        known: &'a Known<'a>,
        kernel: &'a CompiledKernel,
        less: Less,
        p: &'a Prediction,
        numbers: &'a [Number],
    ) -> Search<'a> {
        let now = match less {
            Less::Time => p.seconds,
            Less::Bytes => p.bytes,
        };
        Search { known, kernel, less, p, now, numbers, seen: BTreeSet::new(), pairs: 0, better: Vec::new() }
    }

    /// All programs that are better.
    pub(super) fn run(&mut self) -> Vec<(Values, Effect)> {
        let (mut base, mut least) = (Values::new(), self.now);
        while let Some((values, x)) = self.round(self.neighbours(&base), FASTER * least, MOST) {
            (base, least) = (values, x);
        }
        if base.is_empty() {
            let pairs = self.ranked_pairs();
            let before = self.seen.len();
            self.round(pairs, FASTER * least, before + PAIRS);
            self.pairs = self.seen.len() - before;
        } else {
            self.round(self.multiples(&base), FASTER * least, MOST);
        }
        std::mem::take(&mut self.better)
    }

    /// Programs that were tried.
    pub(super) fn tried(&self) -> usize {
        self.seen.len()
    }

    /// Compiles programs that were not yet, up to a number of all: the best one of them, if it has less than `limit`.
    fn round(&mut self, all: Vec<Values>, limit: f64, most: usize) -> Option<(Values, f64)> {
        let mut round: Vec<Values> = Vec::new();
        for values in all {
            if self.seen.len() < most && !values.is_empty() && self.seen.insert(values.clone()) {
                round.push(values);
            }
        }
        self.known.trials.prepare(&round.iter().map(|values| self.change(values)).collect::<Vec<_>>());
        let mut next: Option<(Values, f64)> = None;
        for values in round {
            let Some(own) = effect(self.known, self.kernel, &self.change(&values)) else { continue };
            let x = self.value(&own);
            if x < next.as_ref().map_or(limit, |(_, best)| *best) {
                next = Some((values.clone(), x));
            }
            if x < FASTER * self.now {
                self.better.push((values, own));
            }
        }
        next
    }

    /// What there is to be less of, relative to the same without a change.
    pub(super) fn value(&self, effect: &Effect) -> f64 {
        match self.less {
            // With what is launched beside the kernel.
            Less::Time => self.now * effect.then / effect.now,
            Less::Bytes => effect.prediction.bytes,
        }
    }

    pub(super) fn change(&self, values: &Values) -> Change {
        numbers::change(self.known, self.kernel, self.numbers, values)
    }

    /// Values with another one of a number.
    fn with(&self, base: &Values, at: usize, value: i64) -> Values {
        let mut values: Values = base.iter().filter(|(other, _)| *other != at).copied().collect();
        if value != self.numbers[at].now() {
            values.push((at, value));
        }
        values.sort_unstable();
        values
    }

    fn value_in(&self, base: &Values, at: usize) -> i64 {
        let own = base.iter().find(|(other, _)| *other == at);
        own.map_or(self.numbers[at].now(), |(_, value)| *value)
    }

    /// Values with another one of a single number, and of a tile with its warp tile.
    fn neighbours(&self, base: &Values) -> Vec<Values> {
        let mut all = Vec::new();
        for (at, number) in self.numbers.iter().enumerate() {
            let own = self.value_in(base, at);
            let others = number.beside(own, self.p);
            all.extend(others.into_iter().map(|value| self.with(base, at, value)));
            if let Some(of_warps) = self.warps_along(number.role()) {
                let warps = self.value_in(base, of_warps);
                let scaled = [(own.checked_mul(2), warps.checked_mul(2)), (half(own), half(warps))];
                let both = scaled.into_iter().filter_map(|(tile, warp)| tile.zip(warp));
                all.extend(both.map(|(tile, warp)| self.with(&self.with(base, at, tile), of_warps, warp)));
            }
        }
        all
    }

    /// The number of the warp tile along the rows or columns of a product.
    fn warps_along(&self, role: Option<Role>) -> Option<usize> {
        let wanted = match role? {
            Role::Rows => Role::WarpRows,
            Role::Cols => Role::WarpCols,
            _ => return None,
        };
        self.numbers.iter().position(|number| number.role() == Some(wanted))
    }

    /// Values with one and a half, or three quarters, of one of them.
    fn multiples(&self, base: &Values) -> Vec<Values> {
        let of = |&(at, value): &(usize, i64)| {
            let halves = |n: Option<i64>| n.filter(|n| n % GRANULE == 0).and_then(|n| n.checked_mul(3));
            let others = [halves(half(value)), halves(half(value).and_then(half))];
            others.into_iter().flatten().map(move |value| (at, value)).collect::<Vec<_>>()
        };
        base.iter().flat_map(of).map(|(at, value)| self.with(base, at, value)).collect()
    }

    /// Pairs of other values: in front those of which each alone loses least. What does not compile alone may together.
    fn ranked_pairs(&self) -> Vec<Values> {
        let alone = self.seen.iter().filter(|values| values.len() == 1).map(|values| {
            let own = effect(self.known, self.kernel, &self.change(values));
            (values[0], own.map_or(1.0, |own| self.value(&own) / self.now))
        });
        let alone: Vec<((usize, i64), f64)> = alone.collect();
        let mut pairs: Vec<(Values, f64)> = Vec::new();
        for (i, (first, a)) in alone.iter().enumerate() {
            let others = alone[i + 1..].iter().filter(|(second, _)| second.0 != first.0);
            pairs.extend(others.map(|(second, b)| {
                let mut values = vec![*first, *second];
                values.sort_unstable();
                (values, a * b)
            }));
        }
        pairs.sort_by(|a, b| a.1.total_cmp(&b.1));
        pairs.into_iter().map(|(values, _)| values).collect()
    }

    /// What was tried.
    pub(super) fn in_words(&self) -> String {
        let pairs = match self.pairs {
            0 => String::new(),
            n => format!(", {} of these", counted(n, "pair")),
        };
        format!("{}{pairs}", numbers::tried(self.numbers, self.p))
    }

    /// The advice to take values.
    pub(super) fn advice(&self, values: &Values, own: &Effect) -> Advice {
        let mut unproven: Vec<String> =
            values.iter().filter_map(|&(at, _)| self.numbers[at].unproven()).map(|name| format!("`{name}`")).collect();
        unrepeated(&mut unproven);
        let proof = match unproven[..] {
            [] => String::new(),
            _ => format!(" (that results do not depend on {} is not proved)", unproven.join(", ")),
        };
        let bytes = match self.less {
            Less::Time => String::new(),
            Less::Bytes => format!(": {:.0} bytes are moved, not {:.0}", own.prediction.bytes, self.p.bytes),
        };
        let restricted = restrictions(self.known, self.kernel, &self.change(values));
        let text = format!("{}{bytes}{restricted}{proof}", numbers::in_words(self.numbers, values));
        Advice::by(text, Some(self.change(values)))
    }
}

fn half(n: i64) -> Option<i64> {
    (n > 1 && n % 2 == 0).then_some(n / 2)
}

//! The accesses that are kept for a word or byte of global memory, and runs of words with equal contents.

use super::packed_access::{Kind, NONE, block_of, was_strong};

/// An access with its moment, or that of the strong access it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) v: u64,
    pub(super) moment: u64,
}

impl Access {
    pub(super) const NONE: Access = Access { v: NONE, moment: 0 };

    pub(super) fn block(self) -> u64 {
        block_of(self.v)
    }
}

/// The accesses of one kind to a word or byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Accesses of the two lowest blocks.
    pub(super) lowest: [Access; 2],
    /// Extreme accesses of two blocks without release or acquire: the earliest and latest position in the total order
    /// of strong accesses.
    pub(super) extreme: [Access; 2],
}

pub(super) const NOTHING: Unit = Unit { lowest: [Access::NONE; 2], extreme: [Access::NONE; 2] };

impl Unit {
    /// Inserts an access among those of the two lowest blocks; returns the access that must be kept separately.
    pub(super) fn insert(&mut self, kind: Kind, new: Access) -> Option<Access> {
        if (kind.after() || kind.strong()) && !was_strong(new.v) {
            self.extend(kind, new);
        }
        let [low, high] = &mut self.lowest;
        for old in [&mut *low, &mut *high] {
            if old.v != NONE && old.block() == new.block() {
                if was_strong(old.v) || was_strong(new.v) {
                    return (*old != new).then_some(new);
                }
                if old.moment == new.moment {
                    old.v = old.v.min(new.v);
                } else if is_more_extreme(kind, new, *old) {
                    *old = new;
                }
                return None;
            }
        }
        let lost = if low.v == NONE || new.block() < low.block() {
            std::mem::replace(high, std::mem::replace(low, new))
        } else if high.v == NONE || new.block() < high.block() {
            std::mem::replace(high, new)
        } else {
            new
        };
        // Two blocks without release or acquire represent all others.
        (lost.v != NONE && (was_strong(lost.v) || was_strong(low.v) || was_strong(high.v))).then_some(lost)
    }

    /// Inserts an access among the extreme ones of two blocks.
    fn extend(&mut self, kind: Kind, new: Access) {
        let [first, second] = &mut self.extreme;
        let more = |new: Access, old: Access| old.v == NONE || is_more_extreme(kind, new, old);
        if first.v != NONE && first.block() == new.block() {
            if more(new, *first) {
                *first = new;
            }
        } else if more(new, *first) {
            *second = std::mem::replace(first, new);
        } else if more(new, *second) {
            *second = new;
        }
    }
}

/// Whether `new` is more extreme: the later one of strong accesses; the one that follows the earlier strong access of
/// plain ones.
fn is_more_extreme(kind: Kind, new: Access, old: Access) -> bool {
    if kind.after() { new.moment < old.moment } else { new.moment > old.moment }
}

/// The accesses to each word or byte of a page, as runs of equal entries.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) ends: Vec<u16>,
    lowest: Vec<[u64; 2]>,
    /// Moments and extreme accesses, where moments matter.
    timed: Vec<([u64; 2], [Access; 2])>,
}

impl Runs {
    pub(super) fn new(all: &[Unit]) -> Runs {
        let mut out = Runs::default();
        let timed = all.iter().any(|unit| unit.lowest.iter().any(|a| a.moment != 0));
        let mut last = None;
        for (at, unit) in all.iter().enumerate() {
            match out.ends.last_mut() {
                Some(end) if last == Some(unit) => *end = at as u16 + 1,
                _ => {
                    out.ends.push(at as u16 + 1);
                    out.lowest.push(unit.lowest.map(|a| a.v));
                    if timed {
                        out.timed.push((unit.lowest.map(|a| a.moment), unit.extreme));
                    }
                }
            }
            last = Some(unit);
        }
        out.ends.shrink_to_fit();
        out.lowest.shrink_to_fit();
        out.timed.shrink_to_fit();
        out
    }

    pub(super) fn bytes(&self) -> usize {
        18 * self.ends.len() + 48 * self.timed.len()
    }

    /// One entry for each of `n` units; several may come from one run.
    pub(super) fn expand(&self, n: usize) -> Vec<Unit> {
        let units = self.ends.last().map_or(1, |e| usize::from(*e));
        let mut out = Vec::with_capacity(n);
        for (i, (end, [low, high])) in self.ends.iter().zip(&self.lowest).enumerate() {
            let (moments, extreme) = self.timed.get(i).copied().unwrap_or(([0; 2], [Access::NONE; 2]));
            let lowest = [Access { v: *low, moment: moments[0] }, Access { v: *high, moment: moments[1] }];
            out.resize(usize::from(*end) * n / units, Unit { lowest, extreme });
        }
        out
    }
}

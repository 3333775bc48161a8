//! Joins of the abstract state after branches.

use super::dependence_kind::{Kind, Last, Scale, mixed};
use super::tiles::Tiles;
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Stmt, Value};

type Kinds = BTreeMap<Value, Kind>;

/// Most passes over a loop body until its kinds no longer change.
const ROUNDS: usize = 8;

/// Where an extreme was last computed, if `kind` is derived from the extreme `v`.
fn computed(kinds: &Kinds, v: Value) -> Option<Option<Last>> {
    match kinds.get(&v) {
        Some(&Kind::Old(own)) if own == v => Some(None),
        Some(&Kind::Grown(own, _, Some(last))) if own == v => Some(Some(last)),
        _ => None,
    }
}

/// The scale of the sum of exponentials `v` relative to `extreme`; the inner `None`: that of the previous iteration.
fn divided(kinds: &Kinds, v: Value, extreme: Value) -> Option<Option<Scale>> {
    match (kinds.get(&v), computed(kinds, extreme)?) {
        (Some(&Kind::Old(own)), None) if own == v => Some(None),
        (Some(&Kind::Scaled(own, scale)), Some(last)) if own == v && scale.extreme == extreme && scale.last == last => {
            Some(Some(scale))
        }
        _ => None,
    }
}

impl Tiles<'_> {
    /// Joins the kinds after `s`, where this or `other` was executed, depending on a condition of kind `by`.
    pub(super) fn either(&mut self, other: &Kinds, by: Kind, s: Stmt) {
        let here = std::mem::take(&mut self.kinds);
        let values: Vec<Value> = here.keys().chain(other.keys()).copied().collect();
        for v in values {
            let (Some(&a), Some(&b)) = (here.get(&v), other.get(&v)) else {
                // The variable is declared inside.
                self.kinds.extend(here.get(&v).or(other.get(&v)).map(|&kind| (v, kind)));
                continue;
            };
            let joined = match (a, b) {
                _ if a == b => a,
                _ if !by.is_fixed() => mixed(&[a, b, by]),
                (Kind::Scaled(_, scale), _) | (_, Kind::Scaled(_, scale)) => {
                    let sides = [&here, other].map(|kinds| divided(kinds, v, scale.extreme));
                    let same = |of: &Scale| (of.by, of.negative) == (scale.by, scale.negative);
                    let fits = sides.iter().all(|side| side.is_some_and(|of| of.is_none_or(|of| same(&of))));
                    if fits { Kind::Scaled(v, Scale { last: Last::Joined(s), ..scale }) } else { mixed(&[a, b]) }
                }
                (Kind::Grown(own, op, _), other_side) | (other_side, Kind::Grown(own, op, _))
                    if own == v && computed(&here, v).is_some() && computed(other, v).is_some() =>
                {
                    match other_side {
                        Kind::Grown(_, of, _) if of != op => mixed(&[a, b]),
                        _ => Kind::Grown(v, op, Some(Last::Joined(s))),
                    }
                }
                _ => a.join(b),
            };
            self.kinds.insert(v, joined);
        }
    }

    /// A loop in the loop.
    pub(super) fn repeated(&mut self, s: Stmt, body: Block, by: Kind) {
        for _ in 0..ROUNDS {
            let before = self.kinds.clone();
            self.block(body);
            self.either(&before, by, s);
            if self.kinds == before {
                return;
            }
        }
        self.kinds.values_mut().for_each(|kind| *kind = Kind::Other { carried: true });
    }
}

//! Elements of tiles and names at a place of the program: those that hold what is made of an element, or that it is made of.

use super::spot::{Run, Spot, contains};
use super::windows::Numbers;
use tilec_ir::entities::Value;

/// Elements of a tile or a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Held {
    pub(super) place: Value,
    pub(super) spot: Spot,
    /// The components of a name of tuples.
    pub(super) parts: u64,
    /// Reductions in between.
    pub(super) level: u8,
    /// Numbers of grid indices and loops at which they are.
    pub(super) numbers: Numbers,
    /// The definition that they are from, or what reads them.
    pub(super) node: Option<usize>,
}

/// Adds elements, unless there are the same with no more reductions in between.
pub(super) fn add(state: &mut Vec<Held>, held: Held) {
    let like = |h: &Held| {
        h.place == held.place
            && h.level <= held.level
            && h.parts & held.parts == held.parts
            && contains(&h.spot, &held.spot)
            && (h.level < held.level || h.spot == held.spot)
    };
    let covered = state.iter().any(|h| like(h) && (h.numbers == held.numbers || h.level < held.level));
    if !covered {
        state.push(held);
    }
}

/// Adds those of another state: that of a branch, or of another iteration.
pub(super) fn join(state: &mut Vec<Held>, other: Vec<Held>) {
    let own = std::mem::take(state);
    own.into_iter().chain(other).for_each(|h| add(state, h));
    widen(state);
}

/// Spots of one tile at which a loop never arrives at an end become one.
fn widen(state: &mut Vec<Held>) {
    const MOST: usize = 6;
    let places: Vec<(Value, u8)> = state.iter().map(|h| (h.place, h.level)).collect();
    for (place, level) in places {
        let same = |h: &Held| h.place == place && h.level == level;
        if state.iter().filter(|h| same(h)).count() <= MOST {
            continue;
        }
        let Some(mut all) = state.iter().find(|h| same(h)).cloned() else { continue };
        for h in state.iter().filter(|h| same(h)) {
            let hull = |(a, b): (&Run, &Run)| Run { from: a.from.min(b.from), to: a.to.max(b.to) };
            all.spot = all.spot.iter().zip(&h.spot).map(hull).collect();
            all.parts |= h.parts;
            all.numbers.retain(|v, n| h.numbers.get(v) == Some(n));
        }
        state.retain(|h| !same(h));
        state.push(all);
    }
}

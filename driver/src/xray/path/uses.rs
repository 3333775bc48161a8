//! Where an expression has what is computed with an element.

use super::graph::{ALL_PARTS, Via, dependents};
use super::solve::Solver;
use super::spot::{Run, Spot, reshaped, spread, whole};
use super::state::Held;
use super::windows::{Numbers, Window, from_memory, spaced};
use tilec_ir::combine::{Combine, How};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma};
use tilec_ir::typing::{ResolvedView, ViewDim, copy_shape, fixed_shape, resolve_view};

/// Reductions that are told apart.
pub(super) const MOST_LEVELS: u8 = 2;

/// Where an expression has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Use {
    pub(super) spot: Spot,
    pub(super) parts: u64,
    pub(super) level: u8,
    pub(super) numbers: Numbers,
    pub(super) via: Vec<Via>,
    pub(super) node: Option<usize>,
}

impl Use {
    fn through(mut self, e: Expr, to: Spot, levels: u8) -> Use {
        let from = std::mem::replace(&mut self.spot, to.clone());
        self.via.push(Via { e, from, to, right: false });
        self.level = (self.level + levels).min(MOST_LEVELS);
        self
    }
}

/// What is known where an expression is read.
pub(super) struct Uses<'s, 'k> {
    pub(super) k: &'k Kernel,
    pub(super) solver: &'s Solver<'k>,
    pub(super) state: &'s [Held],
    /// A window of a tensor that has the element itself.
    pub(super) read: Option<(Expr, Spot, &'s Numbers)>,
    /// Numbers that loops are past.
    pub(super) after: &'s Numbers,
}

impl Uses<'_, '_> {
    /// `shape`: that of what the expression is assigned to, where it has none of its own.
    pub(super) fn of(&self, e: Expr, shape: Option<&[u64]>) -> Vec<Use> {
        let k = self.k;
        if let Some((read, spot, numbers)) = &self.read
            && *read == e
        {
            let numbers = (*numbers).clone();
            return vec![Use { spot: spot.clone(), parts: ALL_PARTS, level: 0, numbers, via: Vec::new(), node: None }];
        }
        if let Some(view) = resolve_view(k, e) {
            return self.window(e, &view, shape);
        }
        let own = fixed_shape(k, e);
        match &k.exprs[e] {
            ExprData::Ref(v) => self.held(*v),
            ExprData::Reduce { axis, arg, parts, .. } => {
                let reduced = |own: Use| {
                    let mut to = own.spot.clone();
                    to.get_mut(*axis as usize).into_iter().for_each(|run| *run = part_of(*run, *parts));
                    own.through(e, to, 1)
                };
                self.of(*arg, None).into_iter().map(reduced).collect()
            }
            ExprData::Scan { axis, arg, exclusive, totals, .. } => {
                let shape = fixed_shape(k, *arg);
                let scanned = |own: Use| {
                    let to = scanned(&own.spot, (*axis as usize, *exclusive), shape.as_deref());
                    own.through(e, to, 1)
                };
                let mut all: Vec<Use> = self.of(*arg, None).into_iter().map(scanned).collect();
                let totals = totals.map_or(Vec::new(), |t| self.of(t.tile, None));
                all.extend(totals.into_iter().map(|own| widened(own, e, *axis as usize, shape.as_deref())));
                all.retain(|own| !own.spot.iter().any(|run| run.is_empty()));
                all
            }
            ExprData::Combine(combine) => self.combined(e, combine),
            ExprData::Part { of, index } => {
                let has = |own: &Use| own.parts >> (*index).min(63) & 1 == 1;
                self.of(*of, None).into_iter().filter(has).map(|own| Use { parts: ALL_PARTS, ..own }).collect()
            }
            ExprData::Transpose(arg) => {
                let turned = |own: Use| Use { spot: own.spot.into_iter().rev().collect(), ..own };
                self.of(*arg, None).into_iter().map(turned).collect()
            }
            ExprData::Permute { arg, order } => {
                let turned = |own: Use| {
                    let run = |&axis: &u32| own.spot.get(axis as usize).copied().unwrap_or(Run::all(1));
                    Use { spot: order.iter().map(run).collect(), ..own }
                };
                self.of(*arg, None).into_iter().map(turned).collect()
            }
            ExprData::Reshape { arg, .. } => {
                let (Some(from), Some(to)) = (fixed_shape(k, *arg), own) else { return Vec::new() };
                let shaped = |own: Use| Use { spot: reshaped(&own.spot, &from, &to), ..own };
                self.of(*arg, None).into_iter().map(shaped).collect()
            }
            ExprData::Mma(mma) => self.multiplied(e, *mma),
            ExprData::Iota { .. } => Vec::new(),
            _ => {
                let own = own.or_else(|| shape.map(<[u64]>::to_vec));
                let mut all: Vec<Use> = Vec::new();
                for child in k.children(e) {
                    for used in self.of(child, own.as_deref()) {
                        let spot = spread(&used.spot, fixed_shape(k, child).as_deref(), own.as_deref());
                        let used = Use { spot, ..used };
                        let like = |old: &Use| {
                            (&old.spot, old.level, old.parts, &old.via)
                                == (&used.spot, used.level, used.parts, &used.via)
                        };
                        if !all.iter().any(like) {
                            all.push(used);
                        }
                    }
                }
                all
            }
        }
    }

    /// Of tuples that are reduced, scanned or sorted.
    fn combined(&self, e: Expr, combine: &Combine) -> Vec<Use> {
        let k = self.k;
        let shape = tilec_ir::typing::shape_of_tuples(k, combine);
        let axis = combine.axis as usize;
        let mut all = Vec::new();
        for (i, &arg) in combine.args.iter().enumerate() {
            let parts = dependents(k, combine, 1 << i.min(63));
            for own in self.of(arg, shape.as_deref()) {
                let spot = spread(&own.spot, fixed_shape(k, arg).as_deref(), shape.as_deref());
                let mut own = Use { spot: spot.clone(), parts, ..own };
                let to = match combine.operation {
                    How::Reduce { parts } => {
                        let mut to = spot;
                        to.get_mut(axis).into_iter().for_each(|run| *run = part_of(*run, parts));
                        to
                    }
                    How::Scan { .. } => scanned(&spot, (axis, !combine.front.is_empty()), shape.as_deref()),
                    How::Sort { .. } => along(&spot, axis, shape.as_deref()),
                };
                own = own.through(e, to, 1);
                all.push(own);
            }
        }
        for &arg in combine.front.iter().chain(&combine.totals) {
            all.extend(self.of(arg, None).into_iter().map(|own| widened(own, e, axis, shape.as_deref())));
        }
        all.retain(|own| !own.spot.iter().any(|run| run.is_empty()));
        all
    }

    fn multiplied(&self, e: Expr, mma: Mma) -> Vec<Use> {
        let k = self.k;
        let Some(sum) = fixed_shape(k, mma.c).or_else(|| fixed_shape(k, e)) else { return Vec::new() };
        let product = |own: Use, right: bool| {
            let mut to = whole(&sum);
            let (of, side) = if right { (1, 1) } else { (0, 2) };
            let rank = to.len();
            if let (Some(&run), Some(d)) = (own.spot.get(of), rank.checked_sub(side)) {
                to[d] = run;
            }
            let mut own = own.through(e, to, 0);
            own.via.iter_mut().filter(|via| via.e == e).for_each(|via| via.right = right);
            own
        };
        let (a, b) = (self.of(mma.a, None), self.of(mma.b, None));
        let added = self.of(mma.c, None);
        let products = a.into_iter().map(|own| product(own, false));
        products.chain(b.into_iter().map(|own| product(own, true))).chain(added).collect()
    }

    fn held(&self, v: Value) -> Vec<Use> {
        let own = |h: &Held| Use {
            spot: h.spot.clone(),
            parts: h.parts,
            level: h.level,
            numbers: h.numbers.clone(),
            via: Vec::new(),
            node: h.node,
        };
        self.state.iter().filter(|h| h.place == v).map(own).collect()
    }

    /// What a window has of what its base holds, and what of it memory names by the element.
    fn window(&self, e: Expr, view: &ResolvedView, shape: Option<&[u64]>) -> Vec<Use> {
        let Some(shape) = window_shape(self.k, e, view, shape) else { return Vec::new() };
        let window = Window { solver: self.solver, k: self.k, view, shape: &shape };
        let mut all = Vec::new();
        for own in self.held(view.base) {
            if let Some((spot, numbers)) = window.finds(&own.spot, &own.numbers, self.after) {
                all.push(Use { spot, numbers, ..own });
            }
        }
        all.extend(self.names(e, view, &shape));
        all
    }

    /// What a window has where the element says which elements these are.
    pub(super) fn names(&self, e: Expr, view: &ResolvedView, shape: &[u64]) -> Vec<Use> {
        let mut all = Vec::new();
        for (d, dim) in view.dims.iter().enumerate().filter(|(_, dim)| from_memory(self.k, dim)) {
            for &index in dim.starts() {
                let own = matches!(dim, ViewDim::Gather(_)) && spaced(self.k, dim).is_none();
                let kept = view.base_dims().iter().position(|&kept| kept == d).filter(|_| own);
                let by_element = kept.is_some_and(|w| view.is_by_element(self.k, w, index));
                for used in self.of(index, None) {
                    let rows = fixed_shape(self.k, index);
                    let mut to =
                        if by_element { spread(&used.spot, rows.as_deref(), Some(shape)) } else { whole(shape) };
                    let extends = |(i, _): &(usize, &Run)| rows.as_ref().and_then(|n| n.get(*i)).is_none_or(|&n| n > 1);
                    let along = used.spot.iter().enumerate().find(extends).map(|(_, run)| *run);
                    if let (Some(i), Some(run), false) = (kept, along, by_element) {
                        to[i] = run;
                    }
                    all.push(used.through(e, to, 1));
                }
            }
        }
        all
    }
}

/// The extents of a window in an expression.
pub(super) fn window_shape(k: &Kernel, e: Expr, view: &ResolvedView, shape: Option<&[u64]>) -> Option<Vec<u64>> {
    let rank = view.base_dims().len();
    let own = fixed_shape(k, e).or_else(|| copy_shape(k, e, e)).filter(|own| own.len() == rank);
    own.or_else(|| shape.and_then(|shape| Some(shape[shape.len().checked_sub(rank)?..].to_vec())))
}

/// The part that elements of a dimension are in: by the bits of `parts`, from the lowest on.
pub(super) fn part_of(run: Run, parts: u32) -> Run {
    let bits = (0..u32::BITS).filter(|bit| parts >> bit & 1 == 1);
    match run.only() {
        Some(index) => Run::one((0..).zip(bits).fold(0, |part, (to, bit)| part | (index >> bit & 1) << to)),
        None => Run::all(1 << parts.count_ones()),
    }
}

fn scanned(spot: &[Run], (axis, exclusive): (usize, bool), shape: Option<&[u64]>) -> Spot {
    let mut to = spot.to_vec();
    if let Some(run) = to.get_mut(axis) {
        let end = shape.and_then(|shape| shape.get(axis).copied()).unwrap_or(run.to);
        *run = Run { from: run.from + u64::from(exclusive), to: end };
    }
    to
}

fn along(spot: &[Run], axis: usize, shape: Option<&[u64]>) -> Spot {
    let mut to = spot.to_vec();
    if let (Some(run), Some(&n)) = (to.get_mut(axis), shape.and_then(|shape| shape.get(axis))) {
        *run = Run::all(n);
    }
    to
}

/// A number for a whole row: every element along the axis.
fn widened(own: Use, e: Expr, axis: usize, shape: Option<&[u64]>) -> Use {
    let spot = match shape {
        Some(shape) if own.spot.is_empty() => whole(shape),
        _ => along(&own.spot, axis, shape),
    };
    own.through(e, spot, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_numbered_by_their_bits() {
        let part = |index, parts| part_of(Run::one(index), parts).only();
        assert_eq!(
            [part(0b1000_0000, 1 << 7), part(5, 1 << 7), part(0b1_1000_0000, 0b11 << 7)],
            [Some(1), Some(0), Some(3)]
        );
        assert_eq!(part(200, 0), Some(0));
        assert_eq!(part_of(Run::all(512), 0b11 << 7), Run::all(4));
    }

    #[test]
    fn a_scan_reaches_what_is_behind() {
        assert_eq!(
            scanned(&[Run::one(3), Run::one(5)], (1, false), Some(&[8, 64])),
            [Run::one(3), Run { from: 5, to: 64 }]
        );
        assert_eq!(
            scanned(&[Run::one(3), Run::one(5)], (1, true), Some(&[8, 64])),
            [Run::one(3), Run { from: 6, to: 64 }]
        );
    }
}

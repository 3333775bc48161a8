//! What an expression is made of, at a place in it.

use super::graph::{ALL_PARTS, Via, sources};
use super::solve::Solver;
use super::spot::{Run, Spot, beside, reshaped, whole};
use super::uses::{MOST_LEVELS, window_shape};
use super::windows::{Numbers, Window, from_memory, name_of};
use tilec_ir::combine::{Combine, How};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, product_depth, resolve_view, shape_of_tuples, type_of};

/// Where something that is read is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// In a tile, in its coordinates, or a name.
    Place(Value, Spot),
    /// In a window of a tensor, in coordinates of the window.
    Tensor(Expr, Spot),
}

/// Something that is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub(super) source: Source,
    /// The components of a name of tuples.
    pub(super) parts: u64,
    pub(super) level: u8,
    pub(super) via: Vec<Via>,
}

/// What is known where an expression is read.
pub(super) struct Needs<'s, 'k> {
    pub(super) k: &'k Kernel,
    pub(super) solver: &'s Solver<'k>,
    pub(super) numbers: &'s Numbers,
    pub(super) found: Vec<Need>,
}

/// The operations in between, from the outermost in.
#[derive(Clone, Default)]
struct Within {
    parts: u64,
    level: u8,
    via: Vec<Via>,
}

impl Within {
    fn through(&self, e: Expr, from: &[Run], to: &[Run], (levels, right): (u8, bool)) -> Within {
        let mut via = self.via.clone();
        via.push(Via { e, from: from.to_vec(), to: to.to_vec(), right });
        Within { parts: ALL_PARTS, level: (self.level + levels).min(MOST_LEVELS), via }
    }
}

impl Needs<'_, '_> {
    /// What the elements at `spot` of an expression are made of.
    pub(super) fn of(&mut self, e: Expr, spot: &[Run], parts: u64, level: u8) {
        self.visit(e, spot, &Within { parts, level, via: Vec::new() });
    }

    fn visit(&mut self, e: Expr, spot: &[Run], within: &Within) {
        let k = self.k;
        if let Some(view) = resolve_view(k, e) {
            return self.window(e, &view, spot, within);
        }
        match &k.exprs[e] {
            ExprData::Ref(v) => {
                if matches!(k.values[*v].def, ValueDef::Let) && k.let_init(*v).is_some() {
                    self.push(Source::Place(*v, spot.to_vec()), within);
                }
            }
            ExprData::Mma(mma) => {
                let [.., row, column] = *spot else { return };
                let depth = product_depth(k, mma).unwrap_or(u64::MAX);
                let (a, b) = ([row, Run::all(depth)], [Run::all(depth), column]);
                self.visit(mma.a, &a, &within.through(e, &a, spot, (0, false)));
                self.visit(mma.b, &b, &within.through(e, &b, spot, (0, true)));
                self.visit(mma.c, spot, within);
            }
            ExprData::Reduce { axis, arg, .. } => {
                let from = self.along(*arg, spot, *axis as usize);
                self.visit(*arg, &from, &within.through(e, &from, spot, (1, false)));
            }
            ExprData::Scan { axis, arg, exclusive, totals, .. } => {
                let from = up_to(spot, (*axis as usize, *exclusive));
                if !from.iter().any(|run| run.is_empty()) {
                    self.visit(*arg, &from, &within.through(e, &from, spot, (1, false)));
                }
                if let Some(totals) = totals {
                    let from = self.along(totals.tile, spot, *axis as usize);
                    self.visit(totals.tile, &from, &within.through(e, &from, spot, (1, false)));
                }
            }
            ExprData::Combine(combine) => self.combined(e, combine, spot, within),
            ExprData::Part { of, index } => {
                self.visit(*of, spot, &Within { parts: 1 << (*index).min(63), ..within.clone() });
            }
            ExprData::Transpose(arg) => {
                let turned: Spot = spot.iter().rev().copied().collect();
                self.visit(*arg, &turned, within);
            }
            ExprData::Permute { arg, order } => {
                let mut own: Spot = vec![Run::all(1); order.len()];
                order.iter().zip(spot).for_each(|(&axis, &run)| own[axis as usize] = run);
                self.visit(*arg, &own, within);
            }
            ExprData::Reshape { arg, .. } => {
                let (Some(from), Some(to)) = (fixed_shape(k, *arg), fixed_shape(k, e)) else { return };
                self.visit(*arg, &reshaped(spot, &to, &from), within);
            }
            ExprData::Iota { .. } | ExprData::Int(_) | ExprData::Float(_) => {}
            _ => {
                for child in k.children(e) {
                    let own = self.shape(child, spot);
                    self.visit(child, &beside(spot, &own), within);
                }
            }
        }
    }

    fn combined(&mut self, e: Expr, combine: &Combine, spot: &[Run], within: &Within) {
        let k = self.k;
        let shape = shape_of_tuples(k, combine);
        let axis = combine.axis as usize;
        let from = match combine.operation {
            How::Scan { .. } => up_to(spot, (axis, !combine.front.is_empty())),
            How::Reduce { .. } | How::Sort { .. } => {
                let mut from = spot.to_vec();
                let all = shape.as_ref().and_then(|shape| shape.get(axis)).copied();
                from.get_mut(axis).into_iter().for_each(|run| *run = Run::all(all.unwrap_or(u64::MAX)));
                from
            }
        };
        let wanted = sources(k, combine, within.parts);
        for (i, &arg) in combine.args.iter().enumerate() {
            if wanted >> i.min(63) & 1 == 1 && !from.iter().any(|run| run.is_empty()) {
                let own = fixed_shape(k, arg).map_or_else(Vec::new, |own| beside(&from, &own));
                self.visit(arg, &own, &within.through(e, &from, spot, (1, false)));
            }
        }
        for &arg in combine.front.iter().chain(&combine.totals) {
            let own = self.along(arg, spot, axis);
            self.visit(arg, &own, &within.through(e, &own, spot, (1, false)));
        }
    }

    /// The extents of an operand, as far as it has any of its own.
    fn shape(&self, e: Expr, spot: &[Run]) -> Vec<u64> {
        let open = || vec![u64::MAX; type_of(self.k, e).map_or(0, |ty| ty.rank()).min(spot.len())];
        fixed_shape(self.k, e).unwrap_or_else(open)
    }

    /// The elements along an axis of an operand.
    fn along(&self, arg: Expr, spot: &[Run], axis: usize) -> Spot {
        let Some(shape) = fixed_shape(self.k, arg) else { return Vec::new() };
        let mut from = beside(spot, &shape);
        from.get_mut(axis).into_iter().for_each(|run| *run = Run::all(shape[axis]));
        from
    }

    fn push(&mut self, source: Source, within: &Within) {
        let need = Need { source, parts: within.parts, level: within.level, via: within.via.clone() };
        if !self.found.contains(&need) {
            self.found.push(need);
        }
    }

    fn window(&mut self, e: Expr, view: &ResolvedView, spot: &[Run], within: &Within) {
        let k = self.k;
        let behind: Vec<u64> = spot.iter().map(|run| run.to).collect();
        let Some(shape) = window_shape(k, e, view, Some(&behind)).filter(|shape| shape.len() == spot.len()) else {
            return;
        };
        match k.tile_ty(view.base) {
            Some(tile) => {
                let extents = k.const_shape(&tile.shape).unwrap_or_default();
                let window = Window { solver: self.solver, k, view, shape: &shape };
                if let Some(own) = window.in_base(spot, self.numbers, &extents) {
                    self.push(Source::Place(view.base, own), within);
                }
            }
            None => self.push(Source::Tensor(e, spot.to_vec()), within),
        }
        self.names(e, view, spot, within);
    }

    /// What says which elements a window has.
    pub(super) fn names_of(&mut self, e: Expr, view: &ResolvedView, spot: &[Run], level: u8) {
        self.names(e, view, spot, &Within { parts: ALL_PARTS, level, via: Vec::new() });
    }

    fn names(&mut self, e: Expr, view: &ResolvedView, spot: &[Run], within: &Within) {
        for (d, dim) in view.dims.iter().enumerate().filter(|(_, dim)| from_memory(self.k, dim)) {
            for &index in dim.starts() {
                let own = match dim {
                    ViewDim::Gather(_) => name_of(self.k, view, (d, index), spot),
                    _ => whole(&fixed_shape(self.k, index).unwrap_or_default()),
                };
                self.visit(index, &own, &within.through(e, &own, spot, (1, false)));
            }
        }
    }
}

fn up_to(spot: &[Run], (axis, exclusive): (usize, bool)) -> Spot {
    let mut from = spot.to_vec();
    if let Some(run) = from.get_mut(axis) {
        *run = Run { from: 0, to: run.to.saturating_sub(u64::from(exclusive)) };
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_reads_what_is_in_front() {
        assert_eq!(up_to(&[Run::one(3), Run::one(5)], (1, false)), [Run::one(3), Run { from: 0, to: 6 }]);
        assert_eq!(up_to(&[Run::one(3), Run::one(5)], (1, true)), [Run::one(3), Run { from: 0, to: 5 }]);
    }
}

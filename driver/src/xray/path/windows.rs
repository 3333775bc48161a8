//! Windows: at which numbers of grid indices and loops one has an element, and where in it.

pub(in crate::xray) use super::intervals::Numbers;
use super::solve::{Constraint, Solution, Solver};
use super::spot::{Run, Spot, whole};
use std::collections::BTreeMap;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::index::{self, Interval, OfKernel};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::progression::{Progression, progression};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape};

/// The value of an index, where `numbers` has those of variables; `let`s are followed.
pub(in crate::xray) fn value_of(k: &Kernel, e: Expr, numbers: &Numbers) -> Option<i64> {
    k.by_names(e, |e, known: &BTreeMap<Value, Option<i64>>| {
        let leaf = |x: Expr| match &k.exprs[x] {
            ExprData::Ref(v) => numbers.get(v).copied().or_else(|| known.get(v).copied().flatten()),
            _ => None,
        };
        index::int(&OfKernel::new(k, leaf), e)
    })
}

/// The dimensions of its base along which memory names the elements of a window, and the tiles with the names.
pub(super) fn gathered(k: &Kernel, view: &ResolvedView) -> Vec<(usize, Expr)> {
    let rows = |(d, dim): (usize, &ViewDim)| match dim {
        ViewDim::Gather(e) if spaced(k, dim).is_none() => Some((d, *e)),
        _ => None,
    };
    view.dims.iter().enumerate().filter_map(rows).collect()
}

/// Where the tile `rows`, which names elements along dimension `d` of a window's base, has the names of the elements at `spot` in the window.
pub(super) fn name_of(k: &Kernel, view: &ResolvedView, (d, rows): (usize, Expr), spot: &[Run]) -> Spot {
    let shape = fixed_shape(k, rows).unwrap_or_default();
    let Some(w) = view.base_dims().iter().position(|&kept| kept == d) else { return whole(&shape) };
    let run = spot.get(w).copied().unwrap_or(Run::all(1));
    let by_element = view.is_by_element(k, w, rows);
    match shape.len() {
        0 | 1 if !by_element => vec![run],
        _ => {
            let own = |(i, &n): (usize, &u64)| match (n, by_element) {
                (1, _) => Run::all(1),
                (_, true) => spot.get(i).copied().unwrap_or(Run::all(n)),
                (_, false) => run,
            };
            shape.iter().enumerate().map(own).collect()
        }
    }
}

/// Whether memory says where a dimension of a window begins.
pub(super) fn from_memory(k: &Kernel, dim: &ViewDim) -> bool {
    spaced(k, dim).is_none()
        || dim.starts().iter().any(|&e| k.has_part(e, |part| matches!(k.exprs[part], ExprData::Index(_))))
}

/// Where the elements of a window are along a dimension of its base; `None`: wherever memory says.
pub(super) fn spaced(k: &Kernel, dim: &ViewDim) -> Option<Progression> {
    match dim {
        ViewDim::Gather(e) => match k.exprs[*e] {
            ExprData::Ref(v) => progression(k, v).filter(|p| p.step > 0),
            _ => None,
        },
        ViewDim::Fixed(_) | ViewDim::From { .. } => {
            Some(Progression { step: 1, terms: dim.starts().iter().map(|&e| (e, 1)).collect(), constant: 0 })
        }
    }
}

/// What the start of a dimension comes to, where these numbers say that.
pub(super) fn sum(solver: &Solver<'_>, k: &Kernel, dim: &ViewDim, numbers: &Numbers) -> Option<i64> {
    let Progression { terms, constant, .. } = spaced(k, dim)?;
    let add = |sum: i64, &(e, times): &(Expr, i64)| {
        let own = solver.range(e, numbers).filter(|r| r.lo == r.hi)?;
        sum.checked_add(i64::try_from(own.lo).ok()?.checked_mul(times)?)
    };
    terms.iter().try_fold(constant, add)
}

/// A window of a kernel, with its extents.
pub(super) struct Window<'w, 'k> {
    pub(super) solver: &'w Solver<'k>,
    pub(super) k: &'k Kernel,
    pub(super) view: &'w ResolvedView,
    /// Its extents, by its own dimensions.
    pub(super) shape: &'w [u64],
}

impl Window<'_, '_> {
    /// That the window has something of `spot`, which is in coordinates of its base; it is anywhere along the dimensions in `any`, and where memory says.
    pub(super) fn has(&self, spot: &[Run], any: &[usize]) -> Option<Vec<Constraint>> {
        let extents = self.view.extents_of_base(self.shape)?;
        let mut all = Vec::new();
        for (d, dim) in self.view.dims.iter().enumerate() {
            if any.contains(&d) || from_memory(self.k, dim) {
                continue;
            }
            let Progression { step, terms, constant } = spaced(self.k, dim)?;
            let run = spot.get(d)?;
            let length = i128::from(extents[d].saturating_sub(1)) * i128::from(step);
            let bounds = Interval::new(i128::from(run.from) - length, i128::from(run.to) - 1);
            let apart = run.only().map(|n| (step, i128::from(n))).filter(|_| step > 1);
            all.push(Constraint::Between { terms, constant, bounds, apart });
            if let ViewDim::From { end: Some(end), .. } = dim {
                all.push(Constraint::Behind(*end, i128::from(run.from)));
            }
        }
        Some(all)
    }

    /// Where the window has elements of `spot`, with these numbers, in its own coordinates; all of it where that is not known. `None`: nowhere.
    pub(super) fn inside(&self, spot: &[Run], numbers: &Numbers) -> Option<Spot> {
        let extents = self.view.extents_of_base(self.shape)?;
        let own = |d: usize| {
            let (all, dim) = (Run::all(extents[d]), &self.view.dims[d]);
            let (Some(start), Some(p)) = (sum(self.solver, self.k, dim, numbers), spaced(self.k, dim)) else {
                return all;
            };
            let step = p.step.unsigned_abs().max(1);
            let behind = |n: u64| i64::try_from(n).unwrap_or(i64::MAX).saturating_sub(start);
            let from = u64::try_from(behind(spot[d].from)).unwrap_or(0).div_ceil(step);
            let to = u64::try_from(behind(spot[d].to)).unwrap_or(0).div_ceil(step);
            Run { from, to }.meet(all)
        };
        let spot: Spot = self.view.base_dims().into_iter().map(own).collect();
        (!spot.iter().any(|run| run.is_empty())).then_some(spot)
    }

    /// Where the window has elements of `spot`, and the further numbers at which it does first.
    pub(super) fn finds(&self, spot: &[Run], fixed: &Numbers, after: &Numbers) -> Option<(Spot, Numbers)> {
        match self.solver.solve(&self.has(spot, &[])?, fixed, after) {
            Solution::At(found, _) => {
                let mut numbers = fixed.clone();
                numbers.extend(found.into_iter().next().unwrap_or_default());
                Some((self.inside(spot, &numbers)?, numbers))
            }
            Solution::Nowhere => None,
            Solution::Unknown(_) => Some((self.inside(spot, fixed)?, fixed.clone())),
        }
    }

    /// Elements of the window in coordinates of its base, wherever it is with these numbers; `extents`: those of the base.
    pub(super) fn in_base(&self, spot: &[Run], numbers: &Numbers, extents: &[u64]) -> Option<Spot> {
        let kept = self.view.base_dims();
        let place = |(d, dim): (usize, &ViewDim)| {
            let whole = Run::all(extents.get(d).copied().unwrap_or(u64::MAX));
            let own = kept.iter().position(|&kept| kept == d).map_or(Some(Run::one(0)), |i| spot.get(i).copied())?;
            let Some(Progression { step, terms, constant }) = spaced(self.k, dim) else { return Some(whole) };
            let of = |e: Expr| self.solver.range(e, numbers);
            let start = terms.iter().try_fold((constant, constant), |(lo, hi), &(e, times)| {
                let r = of(e)?;
                let of = |n: i128| i64::try_from(n).ok()?.checked_mul(times);
                Some((lo.checked_add(of(r.lo)?)?, hi.checked_add(of(r.hi)?)?))
            });
            let Some((lo, hi)) = start else { return Some(whole) };
            let step = step.unsigned_abs();
            let from = lo.saturating_add_unsigned(own.from.saturating_mul(step));
            let last = hi.saturating_add_unsigned(own.to.saturating_sub(1).saturating_mul(step));
            let run = Run { from: u64::try_from(from.max(0)).ok()?, to: u64::try_from(last.max(-1) + 1).ok()? };
            Some(run.meet(whole))
        };
        self.view.dims.iter().enumerate().map(place).collect::<Option<Spot>>().filter(|_| kept.len() == spot.len())
    }
}

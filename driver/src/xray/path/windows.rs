//! Windows: at which numbers of grid indices and loops one has an element, and where in it.

use std::collections::BTreeMap;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::names::Parts;
use tilec_ir::progression::{Progression, progression};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, resolve_view};

/// Coordinates; `None`: every one along that dimension.
pub(in crate::xray) type Coords = Vec<Option<u64>>;

/// The numbers of grid axes and loops at which a window has an element.
pub(in crate::xray) type Numbers = BTreeMap<Value, i64>;

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

/// That a window is the same one in further iterations of a loop, in words: `k / 128` where `k` grows by 64.
pub(super) fn repeated(k: &Kernel, window: Expr, numbers: &Numbers) -> String {
    let Some(view) = resolve_view(k, window) else { return String::new() };
    let mut all = Vec::new();
    view.dims.iter().flat_map(ViewDim::starts).for_each(|&e| variables(k, e, &mut all));
    let same = |&(v, _, step): &(Value, i64, i64)| {
        let mut next = numbers.clone();
        let Some(n) = next.get_mut(&v) else { return false };
        *n += step;
        view.dims.iter().all(|dim| sum(k, dim, numbers).is_some_and(|at| sum(k, dim, &next) == Some(at)))
    };
    let names: Vec<String> = all.iter().filter(|v| same(v)).map(|(v, ..)| format!("`{}`", k.values[*v].name)).collect();
    if names.is_empty() { String::new() } else { format!(" and further values of {}", names.join(", ")) }
}

/// The dimensions of its base along which memory names the elements of a window, and the tiles with the names.
pub(super) fn gathered(k: &Kernel, view: &ResolvedView) -> Vec<(usize, Expr)> {
    let rows = |(d, dim): (usize, &ViewDim)| match dim {
        ViewDim::Gather(e) if spaced(k, dim).is_none() => Some((d, *e)),
        _ => None,
    };
    view.dims.iter().enumerate().filter_map(rows).collect()
}

/// Where the tile `rows`, which names elements along dimension `d` of a window's base, has the name of the element at `spot` in the
/// window.
pub(super) fn name_of(k: &Kernel, view: &ResolvedView, (d, rows): (usize, Expr), spot: &[Option<u64>]) -> Coords {
    let Some(w) = view.base_dims().iter().position(|&kept| kept == d) else { return vec![None] };
    if !view.is_by_element(k, w, rows) {
        return vec![spot.get(w).copied().flatten()];
    }
    let shape = fixed_shape(k, rows).unwrap_or_default();
    let own = |(i, &n): (usize, &Option<u64>)| if shape.get(i) == Some(&1) { Some(0) } else { n };
    spot.iter().enumerate().map(own).collect()
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

/// The coordinates, in its base, of what is `inside` a window; none: they are not known with these numbers.
pub(super) fn in_base(k: &Kernel, view: &ResolvedView, inside: &[u64], numbers: &Numbers) -> Option<Vec<u64>> {
    let kept = view.base_dims();
    let place = |(d, dim): (usize, &ViewDim)| {
        let own = kept.iter().position(|&kept| kept == d).map_or(Some(0), |i| inside.get(i).copied())?;
        let step = spaced(k, dim)?.step.checked_mul(i64::try_from(own).ok()?)?;
        u64::try_from(sum(k, dim, numbers)?.checked_add(step)?).ok()
    };
    view.dims.iter().enumerate().map(place).collect::<Option<Vec<u64>>>().filter(|_| kept.len() == inside.len())
}

/// What the start of a dimension comes to.
pub(super) fn sum(k: &Kernel, dim: &ViewDim, numbers: &Numbers) -> Option<i64> {
    let Progression { terms, constant, .. } = spaced(k, dim)?;
    let add = |sum: i64, &(e, times): &(Expr, i64)| sum.checked_add(value_of(k, e, numbers)?.checked_mul(times)?);
    terms.iter().try_fold(constant, add)
}

/// Grid indices and loop variables of an expression, with what each grows by; through `let`s.
pub(super) fn variables(k: &Kernel, e: Expr, found: &mut Vec<(Value, i64, i64)>) {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        parts.inside(e);
        let ExprData::Ref(v) = k.exprs[e] else { continue };
        match &k.values[v].def {
            ValueDef::Grid if found.iter().all(|(w, ..)| *w != v) => found.push((v, 0, 1)),
            ValueDef::Loop if found.iter().all(|(w, ..)| *w != v) => {
                let of = k.statement_data().find_map(|s| match s {
                    // Numbers that are drawn are known at run time.
                    StmtData::For { var, start, step, next: None, .. } if *var == v => {
                        Some((value_of(k, *start, &Numbers::new())?, value_of(k, *step, &Numbers::new())?))
                    }
                    _ => None,
                });
                found.extend(of.map(|(start, step)| (v, start, step)));
            }
            _ => {}
        }
    }
}

/// At which numbers a window has an element of its base, and where in the window; none: at none that can be told.
pub(super) fn place_in(k: &Kernel, view: &ResolvedView, shape: &[u64], coords: &[u64]) -> Option<(Numbers, Vec<u64>)> {
    let (numbers, spot) = spot_in(k, view, shape, coords)?;
    Some((numbers, spot.into_iter().collect::<Option<Vec<u64>>>()?))
}

/// The same; where memory says which elements the window has, it is any of them.
pub(super) fn spot_in(k: &Kernel, view: &ResolvedView, shape: &[u64], coords: &[u64]) -> Option<(Numbers, Coords)> {
    spot_beside(k, view, shape, coords, &[])
}

/// The same, wherever it is along the dimensions in `any`.
pub(super) fn spot_beside(
    k: &Kernel,
    view: &ResolvedView,
    shape: &[u64],
    coords: &[u64],
    any: &[usize],
) -> Option<(Numbers, Coords)> {
    let extents = view.extents_of_base(shape)?;
    let mut numbers = Numbers::new();
    let mut inside: Coords = vec![Some(0); coords.len()];
    for (d, dim) in view.dims.iter().enumerate() {
        let Some(Progression { step: apart, terms, .. }) = spaced(k, dim).filter(|_| !any.contains(&d)) else {
            inside[d] = None;
            continue;
        };
        let mut all = Vec::new();
        terms.iter().for_each(|&(e, _)| variables(k, e, &mut all));
        let mut grow = Vec::new();
        for &(v, start, step) in &all {
            numbers.entry(v).or_insert(start);
            grow.push((v, start, step));
        }
        let wanted = i64::try_from(coords[d]).ok()?;
        let first = sum(k, dim, &numbers)?;
        let by_one = |v: Value, step: i64, numbers: &Numbers| {
            let mut next = numbers.clone();
            *next.get_mut(&v)? += step;
            sum(k, dim, &next)?.checked_sub(sum(k, dim, numbers)?)
        };
        let mut steps: Vec<(i64, Value, i64)> =
            grow.iter().filter_map(|&(v, _, step)| Some((by_one(v, step, &numbers)?, v, step))).collect();
        steps.sort_by_key(|&(delta, ..)| std::cmp::Reverse(delta));
        let mut rest = wanted.checked_sub(first)?;
        let before = numbers.clone();
        for (delta, v, step) in steps.into_iter().filter(|&(delta, ..)| delta > 0) {
            let turns = rest.max(0) / delta;
            *numbers.get_mut(&v)? += turns * step;
            rest -= turns * delta;
        }
        // The window is no such sum if this is not where it then begins.
        let within = |numbers: &Numbers| {
            let behind = wanted.checked_sub(sum(k, dim, numbers)?).filter(|n| n % apart == 0)?;
            u64::try_from(behind / apart).ok().filter(|&at| at < extents[d])
        };
        if within(&numbers).is_none() {
            numbers = before;
            for &(v, _, step) in &grow {
                let turns = turns(wanted, |n| {
                    let mut then = numbers.clone();
                    let at = then.get_mut(&v)?;
                    *at = step.checked_mul(n)?.checked_add(*at)?;
                    sum(k, dim, &then)
                })?;
                *numbers.get_mut(&v)? += turns * step;
            }
        }
        inside[d] = Some(within(&numbers)?);
    }
    Some((numbers, view.base_dims().into_iter().map(|d| inside[d]).collect()))
}

/// Steps that are tried at most.
const MOST_TURNS: i64 = 1 << 40;

/// The first number of steps after which something that does not fall, such as `k / 128`, is the last that is not above `wanted`.
fn turns(wanted: i64, at: impl Fn(i64) -> Option<i64>) -> Option<i64> {
    let mut end = 1;
    while end < MOST_TURNS && at(end).is_some_and(|n| n <= wanted) {
        end *= 2;
    }
    let first = |below: &dyn Fn(i64) -> bool| {
        let (mut from, mut to) = (0, end);
        while from < to {
            let middle = from + (to - from) / 2;
            if below(at(middle).unwrap_or(i64::MAX)) { from = middle + 1 } else { to = middle }
        }
        from
    };
    let last = first(&|n| n <= wanted).max(1) - 1;
    let found = at(last)?;
    Some(first(&|n| n < found))
}

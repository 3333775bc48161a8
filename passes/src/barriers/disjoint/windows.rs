//! Windows of tensors, and whether they are disjoint.

use super::tile_loops::{Digits, digits};
use super::value_numbers::{Form, Forms, Sum};
use crate::analysis::conditions::is_of_launch;
use std::collections::BTreeMap;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};

/// For each dimension of the tensor, the start and extent.
#[derive(Clone, Debug)]
pub(super) struct Window(Vec<(Sum, i64)>);

/// Most divisions of an index into quotient and remainder on its way to tensor dimensions.
const PARTS: u32 = 4;

/// From the first to the last value.
type Range = (i64, i64);

/// Facts about the windows of a kernel.
pub(super) struct Windows<'k> {
    pub(super) forms: Forms<'k>,
    /// Ranges of loop variables between literals.
    ranges: BTreeMap<Form, Range>,
    /// Numbers of which loop variables are multiples.
    steps: BTreeMap<Form, i64>,
}

impl<'k> Windows<'k> {
    /// `same`: variables of loops with the same iterations.
    pub(super) fn new(k: &'k Kernel, same: Option<(Value, Value)>) -> Windows<'k> {
        let mut forms = Forms::new(k, same);
        let (mut ranges, mut steps) = (BTreeMap::new(), BTreeMap::new());
        k.walk(k.body, &mut |k, _, s| {
            let StmtData::For { var, start, end, step, .. } = k.stmts[s] else { return };
            let (Some(from), Some(by)) = (k.as_int(start), k.as_int(step)) else { return };
            steps.insert(forms.name(var), gcd(from, by));
            let Some(to) = k.as_int(end) else { return };
            let last = to.checked_sub(1).and_then(|last| last.checked_sub(from)).filter(|&n| n >= 0 && by > 0);
            if let Some(n) = last {
                ranges.insert(forms.name(var), (from, from + n / by * by));
            }
        });
        Windows { forms, ranges, steps }
    }

    pub(super) fn k(&self) -> &'k Kernel {
        self.forms.k
    }

    /// The window of a view of a tensor, for tiles of these extents.
    pub(super) fn window(&mut self, view: Expr, shape: &[u64]) -> Option<Window> {
        let view = resolve_view(self.forms.k, view)?;
        self.of(&view, shape)
    }

    /// The window of a resolved view.
    pub(super) fn of(&mut self, view: &ResolvedView, shape: &[u64]) -> Option<Window> {
        let kept = view.base_dims();
        let mut dims = Vec::new();
        for (d, dim) in view.dims.iter().enumerate() {
            let (starts, extent) = match dim {
                ViewDim::Fixed(at) => (vec![*at], 1),
                // Anywhere.
                ViewDim::Gather(_) => return None,
                ViewDim::From { starts, .. } => {
                    let place = kept.iter().position(|&kept| kept == d)?;
                    (starts.clone(), i64::try_from(*shape.get(place)?).ok()?)
                }
            };
            let mut sum = Sum::default();
            for e in starts {
                let form = self.forms.of(e);
                sum.add(&self.forms.sum(form)?, 1)?;
            }
            dims.push((sum, extent));
        }
        (kept.len() == shape.len()).then_some(Window(dims))
    }

    /// Whether a name keeps its value while only the loops inside `outer` iterate.
    fn is_invariant(&self, outer: &[Stmt]) -> impl Fn(Value) -> bool + use<'k> {
        let k = self.forms.k;
        let vars: Vec<Value> = outer.iter().filter_map(|&s| variable(k, s)).collect();
        move |v| is_of_launch(k, v) || matches!(k.values[v].def, ValueDef::Grid) || vars.contains(&v)
    }

    /// Whether windows are disjoint in two different iterations of a loop, in the same iteration of the loops in
    /// `outer`.
    pub(super) fn differ_in(&mut self, s: Stmt, outer: &[Stmt], windows: [&Window; 2]) -> bool {
        let ways = digits(&mut self.forms, s);
        let settled = self.is_invariant(outer);
        self.disjoint_in_iteration(outer, windows)
            || ways.iter().any(|way| self.differ(way, &settled, &BTreeMap::new(), windows))
    }

    /// Whether windows are disjoint if one of these indices differs. `ranges`: of other variables that change.
    fn differ(
        &self,
        digits: &Digits,
        settled: &dyn Fn(Value) -> bool,
        ranges: &BTreeMap<Form, Range>,
        [a, b]: [&Window; 2],
    ) -> bool {
        digits.iter().all(|&digit| self.disjoint_if_different(digit, settled, ranges, [a, b], PARTS))
    }

    /// Whether windows are disjoint if an index differs by at least the given number: directly, or because its quotient
    /// or remainder (`z / H`, `z % H`) then differs. These may be divided again, up to `parts` times.
    fn disjoint_if_different(
        &self,
        (digit, by): (Form, i64),
        settled: &dyn Fn(Value) -> bool,
        ranges: &BTreeMap<Form, Range>,
        [a, b]: [&Window; 2],
        parts: u32,
    ) -> bool {
        let by_itself = a.0.iter().zip(&b.0).any(|(x, y)| {
            let (Some(&times), Some(&other)) = (x.0.terms.get(&digit), y.0.terms.get(&digit)) else { return false };
            let rest = self.rest(x, y, Some(digit), settled, ranges);
            times == other
                && times.checked_mul(by).is_some_and(|step| {
                    rest.is_some_and(|[(a, b), (c, d)]| {
                        b.max(d).checked_sub(a.min(c)).is_some_and(|reach| reach <= step.saturating_abs())
                    })
                })
        });
        let told = |form: Form| self.disjoint_if_different((form, 1), settled, ranges, [a, b], parts - 1);
        by_itself
            || parts > 0
                && self.divisors(digit, a).into_iter().any(|n| {
                    let remainder = self.forms.known(Op::Rem, digit, n);
                    self.forms.positive(n)
                        && remainder.is_some_and(told)
                        && self.quotients(digit, n).into_iter().any(told)
                })
    }

    /// The divisors by which a window divides an index, or a quotient of it.
    fn divisors(&self, digit: Form, window: &Window) -> Vec<Form> {
        let mut found = Vec::new();
        for mut form in window.0.iter().flat_map(|(sum, _)| sum.terms.keys().copied()) {
            while let Some([x, n]) = [Op::Div, Op::Rem].iter().find_map(|&op| self.forms.args(form, op)) {
                if x == digit && !found.contains(&n) {
                    found.push(n);
                }
                form = x;
            }
        }
        found
    }

    /// The forms of an index's quotient: `z / W` divided by `H` is `z / W / H` or `z / (H * W)`.
    fn quotients(&self, digit: Form, n: Form) -> Vec<Form> {
        let at_once = self.forms.args(digit, Op::Div).filter(|&[_, m]| self.forms.positive(m)).map(|[x, m]| {
            let products = [self.forms.known(Op::Mul, n, m), self.forms.known(Op::Mul, m, n)];
            products.into_iter().flatten().filter_map(|by| self.forms.known(Op::Div, x, by)).collect::<Vec<Form>>()
        });
        self.forms.known(Op::Div, digit, n).into_iter().chain(at_once.unwrap_or_default()).collect()
    }

    /// The ranges that two windows cover, without their common terms.
    fn rest(
        &self,
        a: &(Sum, i64),
        b: &(Sum, i64),
        but: Option<Form>,
        settled: &dyn Fn(Value) -> bool,
        ranges: &BTreeMap<Form, Range>,
    ) -> Option<[Range; 2]> {
        let mut reach = [(a.0.first, a.0.first.checked_add(a.1)?), (b.0.first, b.0.first.checked_add(b.1)?)];
        let own: Vec<Form> = a.0.terms.keys().chain(b.0.terms.keys()).copied().filter(|&f| Some(f) != but).collect();
        for (i, &form) in own.iter().enumerate() {
            let times = [&a.0, &b.0].map(|sum| sum.terms.get(&form).copied().unwrap_or(0));
            if own[..i].contains(&form) || (times[0] == times[1] && self.forms.only_names(form, settled)) {
                continue;
            }
            let &(first, last) = ranges.get(&form).or_else(|| self.ranges.get(&form))?;
            for (reach, times) in reach.iter_mut().zip(times) {
                let (p, q) = (first.checked_mul(times)?, last.checked_mul(times)?);
                *reach = (reach.0.checked_add(p.min(q))?, reach.1.checked_add(p.max(q))?);
            }
        }
        Some(reach)
    }

    /// Whether windows are disjoint within one iteration of each of these loops.
    pub(super) fn disjoint_in_iteration(&self, outer: &[Stmt], [a, b]: [&Window; 2]) -> bool {
        let settled = self.is_invariant(outer);
        a.0.iter().zip(&b.0).any(|(x, y)| {
            let reach = self.rest(x, y, None, &settled, &BTreeMap::new());
            reach.is_some_and(|[(a, b), (c, d)]| b <= c || d <= a)
        })
    }

    /// Whether the starts of windows differ by multiples of their extents, within one iteration of each of these loops.
    /// Then an element in both windows has the same place in both.
    pub(super) fn congruent(&self, outer: &[Stmt], [a, b]: [&Window; 2]) -> bool {
        let settled = self.is_invariant(outer);
        a.0.iter().zip(&b.0).all(|((x, extent), (y, other))| {
            let multiple = |n: i64| n.checked_rem(*extent) == Some(0);
            let terms = |form: &Form| {
                let times = [x, y].map(|sum| sum.terms.get(form).copied().unwrap_or(0));
                let by = self.steps.get(form).copied().unwrap_or(1);
                times[0] == times[1] && self.forms.only_names(*form, &settled)
                    || times.into_iter().all(|times| times.checked_mul(by).is_some_and(multiple))
            };
            let first = x.first.checked_sub(y.first);
            extent == other && first.is_some_and(multiple) && x.terms.keys().chain(y.terms.keys()).all(terms)
        })
    }

    /// Whether windows of different blocks are disjoint, in any iterations of a loop.
    pub(super) fn blocks_differ(&mut self, s: Stmt, windows: [&Window; 2]) -> bool {
        let k = self.forms.k;
        let axes: Digits = k.grid.iter().map(|axis| (self.forms.name(axis.index), 1)).collect();
        let settled = |v: Value| is_of_launch(k, v);
        self.differ(&axes, &settled, &BTreeMap::new(), windows)
            || self.distinct_block_tiles(s, windows).unwrap_or(false)
    }

    /// [`Self::blocks_differ`] for blocks with one tile each, where grid axes number the tiles.
    pub(super) fn tiles_differ(&mut self, windows: [&Window; 2]) -> bool {
        let k = self.forms.k;
        let several = k.grid.iter().filter(|axis| k.as_int(axis.extent) != Some(1));
        let axes: Digits = several.map(|axis| (self.forms.name(axis.index), 1)).collect();
        self.differ(&axes, &|v| is_of_launch(k, v), &BTreeMap::new(), windows)
    }

    /// Whether no two blocks have the same tile: each begins with the tile of its number, or of its cluster, and steps
    /// by their number.
    fn distinct_block_tiles(&mut self, s: Stmt, windows: [&Window; 2]) -> Option<bool> {
        let k = self.forms.k;
        let ([axis], &StmtData::For { start, step, .. }) = (&k.grid[..], &k.stmts[s]) else { return None };
        let (block, extent) = (self.forms.name(axis.index), self.forms.of(axis.extent));
        let (start, step) = (self.forms.of(start), k.as_int(step)?);
        let each = match self.forms.args(start, Op::Div) {
            Some([b, each]) if b == block => self.forms.as_int(each).filter(|each| (1..=1024).contains(each))?,
            _ if start == block => 1,
            _ => return None,
        };
        let groups = match self.forms.args(extent, Op::Mul) {
            Some([groups, by]) if each > 1 && self.forms.as_int(by) == Some(each) => groups,
            _ if each == 1 => extent,
            _ => self.forms.as_int(extent).filter(|n| n % each == 0).map(|n| self.forms.int(n / each))?,
        };
        let most = self.forms.int(step);
        if !self.forms.at_most(groups, most) {
            return Some(false);
        }
        // For clusters: the terms that depend on the rank of the block.
        let mut places: BTreeMap<Form, Vec<i64>> = BTreeMap::new();
        let terms = windows.iter().flat_map(|w| &w.0).flat_map(|(sum, _)| sum.terms.keys().copied());
        for form in terms {
            let values: Option<Vec<i64>> = (0..each).map(|n| self.forms.at_remainder(form, block, each, n)).collect();
            places.extend(values.map(|values| (form, values)));
        }
        let ranges: BTreeMap<Form, Range> =
            places.iter().filter_map(|(&form, v)| Some((form, (*v.iter().min()?, *v.iter().max()?)))).collect();
        let ways = digits(&mut self.forms, s);
        let settled = |v: Value| is_of_launch(k, v);
        let fellows = (0..each).all(|n| {
            (0..n).all(|m| {
                // Blocks of a cluster have the same tile in the same iteration.
                let own = |v: Value| is_of_launch(k, v) || variable(k, s) == Some(v);
                windows[0].0.iter().zip(&windows[1].0).any(|(x, y)| {
                    [(n, m), (m, n)].into_iter().all(|(n, m)| {
                        let at = |(sum, extent): &(Sum, i64), n: i64| {
                            let mut sum = sum.clone();
                            for (form, values) in &places {
                                let times = sum.terms.remove(form).unwrap_or(0);
                                let value = values.get(usize::try_from(n).ok()?)?;
                                sum.first = sum.first.checked_add(times.checked_mul(*value)?)?;
                            }
                            Some((sum, *extent))
                        };
                        let reach =
                            at(x, n).zip(at(y, m)).and_then(|(x, y)| self.rest(&x, &y, None, &own, &BTreeMap::new()));
                        reach.is_some_and(|[(a, b), (c, d)]| b <= c || d <= a)
                    })
                })
            })
        });
        Some(fellows && ways.iter().any(|way| self.differ(way, &settled, &ranges, windows)))
    }
}

/// The greatest number that divides both.
fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.checked_abs().unwrap_or(1), b.checked_abs().unwrap_or(1));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn variable(k: &Kernel, s: Stmt) -> Option<Value> {
    match k.stmts[s] {
        StmtData::For { var, .. } => Some(var),
        _ => None,
    }
}

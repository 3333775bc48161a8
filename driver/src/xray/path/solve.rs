//! At which numbers of grid indices and loop variables something holds: a window has an element, and the conditions around the statement are met.
//!
//! Boxes of numbers are bounded by intervals, and divided until one number of each variable is left: the lowest numbers come first, whatever the indices are made of.

use super::intervals::{Bounds, END, Eval, Indices, Numbers};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index::Interval;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::names::Parts;

/// Solutions that are counted at most.
const MOST: usize = 256;
/// Iterations that are returned at most.
const MOST_ITERATIONS: usize = 8;
/// Boxes that are looked at, at most.
const BOXES: usize = 20_000;

/// What must hold.
#[derive(Clone, Debug)]
pub(super) enum Constraint {
    /// A sum, each part times a number and with a constant, is between two numbers.
    Between { terms: Vec<(Expr, i64)>, constant: i64, bounds: Interval, apart: Option<(i64, i128)> },
    /// A condition holds, or does not.
    Holds(Expr, bool),
    /// An end is greater than a number, as far as is known.
    Behind(Expr, i128),
}

/// Where something holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Solution {
    /// At these numbers in the first block, one for each iteration, and how often.
    At(Vec<Numbers>, Count),
    /// At none.
    Nowhere,
    /// Sizes say where: their names; none if memory does.
    Unknown(Vec<String>),
}

/// How many blocks and, in the first one, how many iterations.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Count {
    pub(super) blocks: usize,
    pub(super) iterations: usize,
    /// There may be more.
    pub(super) more: bool,
}

/// Solves for the numbers of a kernel.
pub(super) struct Solver<'k> {
    k: &'k Kernel,
    indices: Indices<'k>,
    /// Grid indices, then loop variables from the outside in.
    order: Vec<Value>,
    conditions: BTreeMap<Stmt, Vec<(Expr, bool)>>,
}

impl<'k> Solver<'k> {
    pub(super) fn new(k: &'k Kernel) -> Solver<'k> {
        let order = k.grid.iter().map(|axis| axis.index).collect();
        let mut own = Solver { k, indices: Indices::new(k), order, conditions: BTreeMap::new() };
        own.visit(k.body, &mut Vec::new());
        own
    }

    fn visit(&mut self, block: Block, conditions: &mut Vec<(Expr, bool)>) {
        for &s in &self.k.blocks[block] {
            if !conditions.is_empty() {
                self.conditions.insert(s, conditions.clone());
            }
            match self.k.stmts[s] {
                StmtData::For { var, start, end, step, ref next, body, .. } => {
                    self.indices.loops.insert(var, Bounds { start, end, step, drawn: next.is_some() });
                    self.order.push(var);
                    self.visit(body, conditions);
                }
                StmtData::If { cond, then, otherwise } => {
                    for (block, holds) in std::iter::once((then, true)).chain(otherwise.map(|b| (b, false))) {
                        conditions.push((cond, holds));
                        self.visit(block, conditions);
                        conditions.pop();
                    }
                }
                StmtData::Role { body, .. } | StmtData::Ordered { body } => self.visit(body, conditions),
                _ => {}
            }
        }
    }

    /// Grid indices, then loop variables from the outside in.
    pub(super) fn order(&self) -> &[Value] {
        &self.order
    }

    /// Whether memory says where a loop begins.
    pub(super) fn begins_by_data(&self, v: Value) -> bool {
        self.indices.begins_by_data(v)
    }

    /// The conditions under which a statement runs.
    pub(super) fn conditions(&self, s: Stmt) -> impl Iterator<Item = Constraint> + '_ {
        self.conditions.get(&s).into_iter().flatten().map(|&(e, holds)| Constraint::Holds(e, holds))
    }

    /// The conditions under which a statement runs of which one cannot tell whether they hold.
    pub(super) fn open_conditions(&self, s: Stmt, fixed: &Numbers) -> Vec<(Expr, bool)> {
        let open = |(e, _): &&(Expr, bool)| self.truth(*e, fixed).is_none();
        self.conditions.get(&s).into_iter().flatten().filter(open).copied().collect()
    }

    /// The numbers that an index can be, with these known.
    pub(super) fn range(&self, e: Expr, fixed: &Numbers) -> Option<Interval> {
        Eval { indices: &self.indices, fixed, turns: &BTreeMap::new() }.of(e)
    }

    /// Whether a condition holds, with these numbers.
    pub(super) fn truth(&self, e: Expr, fixed: &Numbers) -> Option<bool> {
        self.range(e, fixed).filter(|r| r.lo == r.hi).map(|r| r.lo != 0)
    }

    /// Whether a loop has no iteration before the one with these numbers.
    pub(super) fn is_first(&self, v: Value, fixed: &Numbers) -> bool {
        let (Some(b), Some(&at)) = (self.indices.loops.get(&v).filter(|b| !b.drawn), fixed.get(&v)) else {
            return false;
        };
        self.range(b.start, fixed).is_some_and(|start| start.lo == i128::from(at))
    }

    /// Whether a loop has no iteration after the one with these numbers.
    pub(super) fn is_last(&self, v: Value, fixed: &Numbers) -> bool {
        let (Some(b), Some(&at)) = (self.indices.loops.get(&v).filter(|b| !b.drawn), fixed.get(&v)) else {
            return false;
        };
        let ends = self.range(b.end, fixed).zip(self.range(b.step, fixed));
        ends.is_some_and(|(end, step)| i128::from(at) + step.lo.max(1) >= end.hi)
    }

    /// Where all constraints hold. `fixed`: numbers that are known; `after`: numbers that loops are past.
    pub(super) fn solve(&self, all: &[Constraint], fixed: &Numbers, after: &Numbers) -> Solution {
        let vars = self.variables(all, fixed);
        let mut turns = BTreeMap::new();
        for &v in &vars {
            let eval = Eval { indices: &self.indices, fixed, turns: &turns };
            let last = match self.indices.loops.get(&v) {
                Some(b) => {
                    let known = |e| eval.of(e);
                    match (known(b.start), known(b.end), known(b.step)) {
                        (Some(start), Some(end), Some(step)) => {
                            let step = step.lo.max(1);
                            (end.hi.saturating_sub(start.lo) + step - 1).div_euclid(step) - 1
                        }
                        _ => i128::from(END),
                    }
                }
                None => eval.extent(v).map_or(i128::from(END), |n| n.hi - 1),
            };
            if last < 0 {
                return Solution::Nowhere;
            }
            turns.insert(v, (0, i64::try_from(last).unwrap_or(END).min(END)));
        }
        let query = Query { all, fixed, after, vars: &vars };
        let mut search = Search { found: Vec::new(), left: BOXES, unknown: false };
        self.search(&query, &mut turns, &mut search);
        if search.unknown && search.found.is_empty() {
            let by_data = vars.iter().any(|&v| self.indices.begins_by_data(v) && !self.indices.is_by_one(v));
            return Solution::Unknown(if by_data { Vec::new() } else { self.open_sizes(all, fixed) });
        }
        let Some(first) = search.found.first() else { return Solution::Nowhere };
        let of_grid = |n: &Numbers| -> Vec<i64> {
            n.iter().filter(|(v, _)| matches!(self.k.values[**v].def, ValueDef::Grid)).map(|(_, &n)| n).collect()
        };
        let blocks: BTreeSet<Vec<i64>> = search.found.iter().map(of_grid).collect();
        let iterations: Vec<Numbers> = search.found.iter().filter(|n| of_grid(n) == of_grid(first)).cloned().collect();
        let more = search.found.len() >= MOST || search.left == 0 || search.unknown;
        let count = Count { blocks: blocks.len(), iterations: iterations.len(), more };
        Solution::At(iterations.into_iter().take(MOST_ITERATIONS).collect(), count)
    }

    fn search(&self, query: &Query<'_>, turns: &mut BTreeMap<Value, (i64, i64)>, search: &mut Search) {
        if search.left == 0 || search.found.len() >= MOST || search.unknown {
            return;
        }
        search.left -= 1;
        let eval = Eval { indices: &self.indices, fixed: query.fixed, turns };
        let Some(certain) = self.verdict(query, &eval) else { return };
        let Some(&v) = query.vars.iter().find(|v| turns[v].0 < turns[v].1) else {
            let number = |&v: &Value| {
                let n = eval.value(v).filter(|n| n.lo == n.hi)?;
                Some((v, i64::try_from(n.lo).ok()?))
            };
            match query.vars.iter().map(number).collect::<Option<Numbers>>().filter(|_| certain) {
                Some(numbers) => search.found.push(numbers),
                None => search.unknown = true,
            }
            return;
        };
        let (lo, hi) = turns[&v];
        let middle = lo + (hi - lo) / 2;
        for half in [(lo, middle), (middle + 1, hi)] {
            turns.insert(v, half);
            self.search(query, turns, search);
        }
        turns.insert(v, (lo, hi));
    }

    /// Whether all constraints are sure to hold in a box; none: one does not.
    fn verdict(&self, query: &Query<'_>, eval: &Eval<'_, '_>) -> Option<bool> {
        for v in query.vars {
            let Some(own) = eval.value(*v) else { continue };
            let end = match self.indices.loops.get(v) {
                Some(b) => eval.of(b.end),
                None => eval.extent(*v),
            };
            if end.is_some_and(|end| own.lo >= end.hi)
                || query.after.get(v).is_some_and(|&after| own.hi <= i128::from(after))
            {
                return None;
            }
        }
        let mut certain = true;
        for c in query.all {
            match c {
                Constraint::Holds(e, holds) => {
                    let is = eval.of(*e).filter(|r| r.lo == r.hi);
                    if is.is_some_and(|r| (r.lo != 0) != *holds) {
                        return None;
                    }
                }
                Constraint::Behind(end, at) => {
                    if eval.of(*end).is_some_and(|end| end.hi <= *at) {
                        return None;
                    }
                }
                Constraint::Between { terms, constant, bounds, apart } => {
                    let Some(sum) = eval.sum(terms, *constant) else {
                        certain = false;
                        continue;
                    };
                    if sum.hi < bounds.lo || sum.lo > bounds.hi {
                        return None;
                    }
                    certain &= bounds.lo <= sum.lo && sum.hi <= bounds.hi;
                    // Elements apart: the wanted one is a number of steps after the start.
                    if let Some((step, wanted)) = apart
                        && sum.lo == sum.hi
                        && (wanted - sum.lo) % i128::from(*step) != 0
                    {
                        return None;
                    }
                }
            }
        }
        Some(certain)
    }

    /// Grid indices and loop variables on which constraints depend, and those on which their loops do.
    fn variables(&self, all: &[Constraint], fixed: &Numbers) -> Vec<Value> {
        let mut found = BTreeSet::new();
        self.depends(all, fixed, &mut |v| {
            found.insert(v);
        });
        self.order.iter().copied().filter(|v| found.contains(v)).collect()
    }

    fn open_sizes(&self, all: &[Constraint], fixed: &Numbers) -> Vec<String> {
        let mut found = BTreeSet::new();
        self.depends(all, fixed, &mut |v| {
            if matches!(self.k.values[v].def, ValueDef::Size | ValueDef::Stride) {
                found.insert(self.k.values[v].name.clone());
            }
        });
        found.into_iter().collect()
    }

    /// Names that constraints depend on and that have no number yet.
    fn depends(&self, all: &[Constraint], fixed: &Numbers, found: &mut dyn FnMut(Value)) {
        let mut parts = Parts::new(self.k);
        for c in all {
            match c {
                Constraint::Between { terms, .. } => terms.iter().for_each(|&(e, _)| parts.also(e)),
                Constraint::Holds(e, _) | Constraint::Behind(e, _) => parts.also(*e),
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(e) = parts.take() {
            parts.inside(e);
            let ExprData::Ref(v) = self.k.exprs[e] else { continue };
            if fixed.contains_key(&v) || !seen.insert(v) {
                continue;
            }
            found(v);
            if let Some(b) = self.indices.loops.get(&v).filter(|_| !self.indices.begins_by_data(v)) {
                [b.start, b.end, b.step].into_iter().for_each(|e| parts.also(e));
            }
        }
    }
}

struct Query<'q> {
    all: &'q [Constraint],
    fixed: &'q Numbers,
    after: &'q Numbers,
    vars: &'q [Value],
}

struct Search {
    found: Vec<Numbers>,
    /// Boxes that may still be looked at.
    left: usize,
    /// Sizes or memory decide.
    unknown: bool,
}

#[cfg(test)]
mod tests;

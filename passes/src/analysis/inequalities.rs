//! Inequalities between indices, proved from preconditions, loop and grid bounds, conditions, and properties of
//! operators.
//!
//! Indices are sums of products of atoms: sizes, variables, positions in tiles (`iota`), and non-linear terms such as
//! quotients. A claim is proved if its negation contradicts what is known about its atoms.

mod atoms;
mod indices;
mod known;
mod rows;
mod sum;

use super::facts::Facts;
pub(crate) use atoms::{Given, Inequalities};
use std::cell::RefCell;
use std::collections::BTreeMap;
use sum::{Cases, Sum, contradict};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::typing::Extent;

/// Elements of a window that are outside of the valid range.
#[derive(Clone, PartialEq)]
pub(crate) struct Outside {
    /// The start of the window.
    start: Sum,
    extent: Sum,
    /// Elements from there on are outside; `None`: elements below 0 are.
    end: Option<Sum>,
}

impl Outside {
    /// Whether windows of one extent are cut at the same end.
    pub(crate) fn ends_like(&self, other: &Outside) -> bool {
        self.end == other.end && self.extent == other.extent
    }
}

impl<'k> Inequalities<'k> {
    /// Collects the facts about `k`.
    pub(crate) fn new(k: &'k Kernel) -> Inequalities<'k> {
        let mut loops = BTreeMap::new();
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::For { var, start, end, step, .. } = k.stmts[s] {
                loops.insert(var, [start, end, step]);
            }
        });
        let mut known = Inequalities {
            k,
            facts: Facts::new(k),
            ranges: Ranges::new(k),
            loops,
            same: indices::same(k),
            constants: indices::single_writes(k),
            extents: indices::extents(k),
            stored: Vec::new(),
            atoms: RefCell::new(Vec::new()),
            answers: RefCell::default(),
            sums: RefCell::default(),
            conditions: RefCell::default(),
            of_atoms: RefCell::default(),
        };
        known.stored = known.stores();
        known
    }

    pub(crate) fn kernel(&self) -> &'k Kernel {
        self.k
    }

    /// The elements at or past `end` of a window that begins at the sum of `starts`; `None`: these are no sums.
    pub(crate) fn behind(&self, starts: &[Expr], extent: u64, end: Expr) -> Option<Outside> {
        let extent = self.extent(Extent::Known(extent))?;
        Some(Outside { start: self.starts(starts)?, extent, end: Some(self.sum(end)?) })
    }

    /// The elements below 0 of a window.
    pub(crate) fn in_front(&self, starts: &[Expr], extent: u64) -> Option<Outside> {
        Some(Outside { start: self.starts(starts)?, extent: self.extent(Extent::Known(extent))?, end: None })
    }

    /// The elements at or past `end` of a tile of `size` elements at the variable of a loop; `numbers`: at the variable
    /// times `size`.
    pub(crate) fn behind_tiles(&self, var: Value, size: Expr, end: Expr, numbers: bool) -> Option<Outside> {
        let k = self.k;
        let var = k.exprs.keys().find(|&e| matches!(k.exprs[e], ExprData::Ref(v) if v == var))?;
        let (var, extent) = (self.sum(var)?, self.sum(size)?);
        let start = if numbers { var.times(&extent)? } else { var };
        Some(Outside { start, extent, end: Some(self.sum(end)?) })
    }

    fn starts(&self, starts: &[Expr]) -> Option<Sum> {
        starts.iter().try_fold(Sum::default(), |all, &e| all.plus(&self.sum(e)?, 1))
    }

    /// Whether a window never has such elements under these conditions.
    pub(crate) fn is_never(&self, outside: &Outside, given: &[Given]) -> bool {
        self.outside(outside, 0).is_some_and(|of| self.impossible(&of, given))
    }

    /// The least and the largest value of an index.
    pub(crate) fn range(&self, e: Expr) -> Option<(f64, f64)> {
        self.ranges.of(e).map(|range| (range.lo as f64, range.hi as f64))
    }

    /// Whether an index is at least `least` in every launch.
    pub(crate) fn at_least(&self, e: Expr, least: i64) -> bool {
        let below = || Sum::number(i128::from(least)).plus(&self.sum(e)?, -1)?.less_one();
        below().is_some_and(|below| self.impossible(&[below], &[]))
    }

    /// Whether an index is at least 0, or more than `below`, under these conditions.
    pub(crate) fn is_at_least(&self, e: Expr, below: Option<Expr>, given: &[Given]) -> bool {
        let fails = || match below {
            None => Sum::default().plus(&self.sum(e)?, -1)?.less_one(),
            Some(below) => self.sum(below)?.plus(&self.sum(e)?, -1),
        };
        fails().is_some_and(|fails| self.impossible(&[fails], given))
    }

    /// The result of a comparison for outside elements, along dimension `axis`, if it is the same for all of them.
    pub(crate) fn compared(&self, op: Op, sides: [Expr; 2], outside: &Outside, axis: u32) -> Option<bool> {
        let decided = self.decided(op, sides, outside, axis);
        // A number in memory that is compared with positions, such as a label, selects an existing element.
        let label = || matches!(op, Op::Eq | Op::Ne) && self.is_label(sides, axis);
        decided.or_else(|| label().then_some(op == Op::Ne))
    }

    fn decided(&self, op: Op, [x, y]: [Expr; 2], outside: &Outside, axis: u32) -> Option<bool> {
        let (x, y) = (self.sum(x)?, self.sum(y)?);
        let mut given = self.outside(outside, axis)?;
        let place = self.place(axis, outside.extent.clone());
        given.extend(self.rows(&x.plus(&y, -1)?, place));
        let never = |claims: &[Sum]| {
            let all: Vec<Sum> = given.iter().chain(claims).cloned().collect();
            self.impossible(&all, &[])
        };
        // `a <= b`, and `a < b`.
        let at_most = |a: &Sum, b: &Sum| b.plus(a, -1);
        let below = |a: &Sum, b: &Sum| b.plus(a, -1)?.less_one();
        let (holds, fails) = match op {
            Op::Lt => (vec![below(&x, &y)?], vec![at_most(&y, &x)?]),
            Op::Le => (vec![at_most(&x, &y)?], vec![below(&y, &x)?]),
            Op::Gt => (vec![below(&y, &x)?], vec![at_most(&x, &y)?]),
            Op::Ge => (vec![at_most(&y, &x)?], vec![below(&x, &y)?]),
            Op::Eq | Op::Ne => {
                let same = never(&[below(&x, &y)?]) && never(&[below(&y, &x)?]);
                let apart = || never(&[at_most(&x, &y)?, at_most(&y, &x)?]).then_some(op == Op::Ne);
                return if same { Some(op == Op::Eq) } else { apart() };
            }
            _ => return None,
        };
        if never(&holds) { Some(false) } else { never(&fails).then_some(true) }
    }

    /// Whether the outside elements `of` a window are also outside elements of the other window.
    pub(crate) fn is_outside(&self, of: &Outside, other: &Outside) -> bool {
        let inside = || {
            let (place, mut all) = (Sum::atom(self.place(0, of.extent.clone())), self.outside(of, 0)?);
            let at = other.start.plus(&place, 1)?;
            all.push(match &other.end {
                Some(end) => end.plus(&at, -1)?.less_one()?,
                None => at,
            });
            Some(self.impossible(&all, &[]))
        };
        of.extent == other.extent && inside() == Some(true)
    }

    /// Inequalities that hold for an outside element.
    fn outside(&self, of: &Outside, axis: u32) -> Option<Vec<Sum>> {
        let at = of.start.plus(&Sum::atom(self.place(axis, of.extent.clone())), 1)?;
        Some(vec![match &of.end {
            Some(end) => at.plus(end, -1)?,
            None => Sum::number(-1).plus(&at, -1)?,
        }])
    }

    /// Whether these inequalities `.. >= 0` contradict the known facts under the given conditions.
    fn impossible(&self, claims: &[Sum], given: &[Given]) -> bool {
        let question = (claims.to_vec(), given.to_vec());
        if let Some(&answer) = self.answers.borrow().get(&question) {
            return answer;
        }
        let answer = self.contradicted(claims, given);
        self.answers.borrow_mut().insert(question, answer);
        answer
    }

    fn contradicted(&self, claims: &[Sum], given: &[Given]) -> bool {
        let mut known = self.claimed(claims, given);
        loop {
            // Most proofs need no case distinction.
            if contradict(&known.always) {
                return true;
            }
            if !self.step(&mut known) {
                let (several, mut all) = (&known.splits, known.always);
                return !several.is_empty() && every(&several[..several.len().min(SPLITS)], &mut all);
            }
        }
    }
}

/// Most case distinctions of a proof.
const SPLITS: usize = 4;

/// Whether `all` is contradictory in every combination of cases.
fn every(splits: &[Cases], all: &mut Vec<Sum>) -> bool {
    let Some((cases, rest)) = splits.split_first() else { return contradict(all) };
    cases.iter().all(|case| {
        let length = all.len();
        all.extend(case.iter().cloned());
        let contradicts = every(rest, all);
        all.truncate(length);
        contradicts
    })
}

//! What is known of atoms.

use super::atoms::{Atom, Inequalities};
use super::sum::Sum;
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, ValueDef};
use tilec_ir::ops::Op;

/// Atoms of which something is said: of others nothing is.
const ATOMS: usize = 24;

/// What is known of the atoms of some sums.
#[derive(Default)]
pub(super) struct Known {
    /// Inequalities `.. >= 0`.
    pub(super) always: Vec<Sum>,
    /// One of these cases holds, each of several inequalities.
    pub(super) splits: Vec<Vec<Vec<Sum>>>,
}

impl Inequalities<'_> {
    /// What is known of the atoms in claims and in the cases that hold, and of those that this mentions.
    pub(super) fn known(&self, claims: &[Sum], cases: &[Vec<Vec<Sum>>]) -> Known {
        let mut known = Known::default();
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let given = cases.iter().flatten().flatten();
        let mut rest: Vec<usize> = claims.iter().chain(given).flat_map(Sum::atoms).collect();
        let mut products: BTreeSet<Vec<usize>> =
            claims.iter().chain(cases.iter().flatten().flatten()).flat_map(|sum| sum.terms.keys().cloned()).collect();
        while let Some(atom) = rest.pop() {
            if seen.len() >= ATOMS || !seen.insert(atom) {
                continue;
            }
            let (own, split) = self.of_atom(atom);
            for sum in own.iter().chain(split.iter().flatten().flatten()) {
                rest.extend(sum.atoms());
                products.extend(sum.terms.keys().cloned());
            }
            known.always.extend(own);
            known.splits.extend(split);
        }
        // What is at least 0, times what is at least 0.
        for product in products.iter().filter(|product| product.len() == 2) {
            for [x, y] in [[product[0], product[1]], [product[1], product[0]]] {
                if self.least(y).is_some_and(|least| least >= 0) {
                    let times = |sum: &Sum| sum.times(&Sum::atom(y));
                    known.always.extend(self.of_atom(x).0.iter().filter_map(times));
                }
            }
        }
        known
    }

    fn least(&self, atom: usize) -> Option<i128> {
        let atom = self.atoms.borrow()[atom].clone();
        match atom {
            Atom::Place(..) => Some(0),
            Atom::Of(e) => match self.k.exprs[e] {
                ExprData::Ref(v) if self.extents.contains(&v) => Some(1),
                _ => Some(self.ranges.of(e)?.lo),
            },
        }
    }

    /// What is known of an atom.
    fn of_atom(&self, at: usize) -> (Vec<Sum>, Option<Vec<Vec<Sum>>>) {
        let (own, atom) = (Sum::atom(at), self.atoms.borrow()[at].clone());
        let mut found: Vec<Sum> = Vec::new();
        found.extend(self.least(at).and_then(|least| own.plus(&Sum::number(least), -1)));
        let e = match atom {
            Atom::Place(_, extent) => {
                found.extend(extent.plus(&own, -1).and_then(|sum| sum.less_one()));
                return (found, None);
            }
            Atom::Of(e) => e,
        };
        found.extend(self.ranges.of(e).and_then(|range| Sum::number(range.hi).plus(&own, -1)));
        let split = match &self.k.exprs[e] {
            ExprData::Ref(v) => {
                found.extend(self.of_variable(*v, &own).into_iter().flatten());
                None
            }
            ExprData::Op { op, args } => self.of_operator(*op, args, &own, &mut found),
            _ => None,
        };
        (found, split)
    }

    /// Variables of loops and places in the grid lie within their bounds.
    fn of_variable(&self, v: Value, own: &Sum) -> Option<Vec<Sum>> {
        let k = self.k;
        if matches!(k.values[v].def, ValueDef::Grid) {
            let axis = k.grid.iter().find(|axis| axis.index == v)?;
            return Some(vec![self.sum(axis.extent)?.plus(own, -1)?.less_one()?]);
        }
        let &[start, end, step] = self.loops.get(&v)?;
        let mut found = Vec::new();
        found.extend(self.sum(start).and_then(|start| own.plus(&start, -1)));
        let end_sum = self.sum(end).and_then(|end| end.plus(own, -1));
        let whole = k
            .as_int(step)
            .and_then(|step| u64::try_from(step).ok())
            .filter(|&step| step > 0 && self.facts.is_multiple(k, start, step) && self.facts.is_multiple(k, end, step));
        let last = Sum::number(whole.map_or(1, i128::from));
        found.extend(end_sum.and_then(|sum| sum.plus(&last, -1)));
        Some(found)
    }

    fn of_operator(&self, op: Op, args: &[Expr], own: &Sum, found: &mut Vec<Sum>) -> Option<Vec<Vec<Sum>>> {
        let sums: Vec<Sum> = args.iter().map(|&arg| self.sum(arg)).collect::<Option<_>>()?;
        let same = |sum: &Sum| Some(vec![own.plus(sum, -1)?, sum.plus(own, -1)?]);
        match op {
            Op::Min | Op::Max => {
                let by = if op == Op::Min { 1 } else { -1 };
                let bound = |sum: &Sum| Sum::default().plus(sum, by)?.plus(own, -by);
                found.extend(sums.iter().filter_map(bound));
                Some(vec![same(&sums[0])?, same(&sums[1])?])
            }
            Op::Select => Some(vec![same(&sums[1])?, same(&sums[2])?]),
            Op::Div | Op::CeilDiv => {
                let [a, d] = [&sums[0], &sums[1]];
                if !(self.is_not_negative(args[0]) && self.is_not_negative(args[1])) {
                    return None;
                }
                let product = own.times(d)?;
                let k = self.k;
                let exact = k
                    .as_int(args[1])
                    .and_then(|d| u64::try_from(d).ok())
                    .is_some_and(|d| self.facts.is_multiple(k, args[0], d));
                let (up, down) = (a.plus(&product, -1)?, product.plus(a, -1)?);
                let rest = d.less_one()?;
                match (exact, op) {
                    (true, _) => found.extend([up, down]),
                    (false, Op::Div) => found.extend([up, down.plus(&rest, 1)?]),
                    (false, _) => found.extend([down, up.plus(&rest, 1)?]),
                }
                None
            }
            Op::Rem if self.is_not_negative(args[0]) => {
                found.extend([own.clone(), sums[1].plus(own, -1)?.less_one()?, sums[0].plus(own, -1)?]);
                None
            }
            _ => None,
        }
    }

    fn is_not_negative(&self, e: Expr) -> bool {
        match self.k.exprs[e] {
            ExprData::Ref(v) if self.extents.contains(&v) => true,
            _ => self.ranges.of(e).is_some_and(|range| range.lo >= 0),
        }
    }
}

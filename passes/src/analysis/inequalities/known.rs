//! Facts about atoms.

use super::atoms::{Atom, Given, Inequalities, OfAtom};
use super::sum::{Cases, Product, Sum};
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, ValueDef};
use tilec_ir::ops::Op;

/// Most atoms whose facts are used in a proof.
const ATOMS: usize = 24;

/// Facts about the atoms of some sums.
#[derive(Default)]
pub(super) struct Known {
    /// Inequalities `.. >= 0`.
    pub(super) always: Vec<Sum>,
    /// Case distinctions: in each, one case holds.
    pub(super) splits: Vec<Cases>,
    /// Atoms whose facts were added.
    seen: BTreeSet<usize>,
    /// Atoms whose facts are added next.
    next: BTreeSet<usize>,
    /// Products whose facts were added.
    products: BTreeSet<Product>,
    /// Conditions that hold, but share no atom with the facts so far.
    conditions: Vec<Cases>,
}

impl Known {
    fn take(&mut self, sums: impl Iterator<Item = Sum>) {
        for sum in sums {
            self.next.extend(sum.atoms().filter(|atom| !self.seen.contains(atom)));
            self.always.push(sum);
        }
    }

    fn split(&mut self, mut cases: Cases) {
        if cases.len() == 1 {
            return self.take(cases.remove(0).into_iter());
        }
        let atoms = cases.iter().flatten().flat_map(Sum::atoms).filter(|atom| !self.seen.contains(atom));
        self.next.extend(atoms);
        self.splits.push(cases);
    }
}

impl Inequalities<'_> {
    /// The claims, and the conditions that hold. Facts are added by [`Inequalities::step`], closest to the claims
    /// first, because most proofs need few.
    pub(super) fn claimed(&self, claims: &[Sum], given: &[Given]) -> Known {
        let mut known = Known::default();
        known.take(claims.iter().cloned());
        given.iter().for_each(|&(e, holds)| known.split(self.condition(e, holds)));
        known.conditions = self.k.requires.iter().map(|&e| self.condition(e, true)).collect();
        known
    }

    /// Adds facts about the atoms mentioned so far. The result says whether there were any.
    pub(super) fn step(&self, known: &mut Known) -> bool {
        let room = ATOMS - known.seen.len();
        let atoms: Vec<usize> = std::mem::take(&mut known.next).into_iter().take(room).collect();
        if atoms.is_empty() {
            return false;
        }
        known.seen.extend(&atoms);
        for &atom in &atoms {
            let (own, split) = self.of_atom(atom);
            known.take(own.into_iter());
            split.into_iter().for_each(|cases| known.split(cases));
        }
        let near = |cases: &Cases| cases.iter().flatten().flat_map(Sum::atoms).any(|atom| known.seen.contains(&atom));
        let (near, far) = std::mem::take(&mut known.conditions).into_iter().partition(near);
        known.conditions = far;
        let near: Vec<Cases> = near;
        near.into_iter().for_each(|cases| known.split(cases));
        self.multiply(known);
        true
    }

    /// Adds products of non-negative sums, which are non-negative.
    fn multiply(&self, known: &mut Known) {
        let sums = known.always.iter().chain(known.splits.iter().flatten().flatten());
        let products: BTreeSet<Product> =
            sums.flat_map(|sum| sum.terms.keys()).filter(|product| product.len() == 2).cloned().collect();
        for product in products.difference(&known.products) {
            for [x, y] in [[product[0], product[1]], [product[1], product[0]]] {
                if self.least(y).is_some_and(|least| least >= 0) {
                    let times = |sum: &Sum| sum.times(&Sum::atom(y));
                    known.always.extend(self.of_atom(x).0.iter().filter_map(times));
                }
            }
        }
        known.products.extend(products);
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

    /// Facts about an atom.
    fn of_atom(&self, at: usize) -> OfAtom {
        if let Some(found) = self.of_atoms.borrow().get(&at) {
            return found.clone();
        }
        let found = self.learned(at);
        self.of_atoms.borrow_mut().insert(at, found.clone());
        found
    }

    fn learned(&self, at: usize) -> OfAtom {
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

    /// The bounds of loop variables and grid indices.
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

    fn of_operator(&self, op: Op, args: &[Expr], own: &Sum, found: &mut Vec<Sum>) -> Option<Cases> {
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

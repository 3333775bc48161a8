//! Combining two elements in a reduction: an instruction for numbers, predicate logic for conditions, and for `argmax`
//! and `argmin` a selection of number and index.

use super::arithmetic::{compare_op, instruction};
use super::shuffles::shuffle;
use super::state::Lower;
use super::tile::{compute_class, is_unsigned};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::combine::{Combine, local};
use tilec_ir::diag::Reported;
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::rounding::is_rounded;
use tilec_ir::types::Elem;
use tilec_ir::typing::{Type, type_of};

/// A partial result of a reduction.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) value: Reg,
    /// The index of the element along the dimension, for `argmax` and `argmin`.
    pub(super) place: Option<Operand>,
}

/// How two partial results are combined.
#[derive(Clone, Copy)]
pub(super) enum Join {
    /// Numbers, by an instruction of a class.
    Number(Class, P),
    /// Truth values: the instruction on predicates, and the one on words that are 0 or 1.
    Truth(P, P),
    /// `argmax`, `argmin`: the better number, or the lower index if both are equal.
    Place { class: Class, unsigned: bool, larger: bool },
}

impl Join {
    /// The combination of a reduction of elements of a type.
    pub(super) fn of(op: ReduceOp, elem: Elem) -> Option<Join> {
        let class = compute_class(elem);
        let unsigned = is_unsigned(elem, class);
        Some(match op {
            ReduceOp::Any => Join::Truth(P::OrPred, P::OrB32),
            ReduceOp::All => Join::Truth(P::AndPred, P::AndB32),
            ReduceOp::ArgMax | ReduceOp::ArgMin => Join::Place { class, unsigned, larger: op == ReduceOp::ArgMax },
            _ => Join::Number(class, instruction(op.operator()?, (class, unsigned))?),
        })
    }
}

/// How two elements in order are combined.
#[derive(Clone, Copy)]
pub(super) enum By<'c> {
    /// By a commutative instruction on numbers.
    Instruction(Class, P),
    /// By the program's own function on tuples.
    Program(&'c Combine),
}

impl Lower<'_> {
    /// Combines two elements.
    pub(super) fn two(&mut self, by: By<'_>, a: &[Reg], b: &[Reg]) -> Result<Vec<Reg>, Reported> {
        match by {
            By::Instruction(class, op) => Ok(vec![self.emit.def(class, op, [a[0].into(), b[0].into()])]),
            By::Program(combine) => {
                self.name_components(combine, a, b)?;
                let mut found = Vec::new();
                for (&result, &v) in combine.results.iter().zip(&combine.first) {
                    let elem = self.elem(v).expect("bug: types are bound, which is verified");
                    found.push(self.scalar_in(result, compute_class(elem))?);
                }
                Ok(found)
            }
        }
    }

    /// Whether the first of two tuples stays in front of the second in a sort.
    pub(super) fn precedes(&mut self, combine: &Combine, a: &[Reg], b: &[Reg]) -> Result<Reg, Reported> {
        self.name_components(combine, a, b)?;
        self.condition(combine.results[0])
    }

    /// Binds the component names to these registers, and computes the names that depend on them.
    fn name_components(&mut self, combine: &Combine, a: &[Reg], b: &[Reg]) -> Result<(), Reported> {
        for (&v, &x) in combine.first.iter().zip(a).chain(combine.second.iter().zip(b)) {
            self.scalars[v] = Some(x);
        }
        for &v in &combine.locals {
            let init = local(self.k, v);
            match type_of(self.k, init) {
                Ok(Type::Index) => self.ints[v] = Some(self.index(init)?),
                Ok(Type::Bool) => self.scalars[v] = Some(self.condition(init)?),
                Ok(_) => {
                    let mut x = self.scalar(init)?;
                    if let Some(elem) = self.elem_of_expr(init).filter(|_| !is_rounded(self.k, init)) {
                        x = self.rounded(init, vec![x], (Some(elem), elem))?[0];
                    }
                    self.scalars[v] = Some(x);
                }
                Err(d) => return Err(self.sink.report(*d.0)),
            }
        }
        Ok(())
    }

    /// The tuples of two lanes in lane order; the lanes differ in one bit of their number, and `upper` says that this
    /// lane has the bit set.
    pub(super) fn in_order(&mut self, upper: Reg, own: &[Reg], other: &[Reg]) -> (Vec<Reg>, Vec<Reg>) {
        let pairs = || own.iter().zip(other);
        let lower = pairs().map(|(&own, &other)| self.choose(upper, other, own)).collect();
        (lower, pairs().map(|(&own, &other)| self.choose(upper, own, other)).collect())
    }

    /// The predicate that a bit of the lane's number is set.
    pub(super) fn has_lane_bit(&mut self, bit: u32) -> Reg {
        let tid = self.tid();
        let masked = self.emit.pure(Class::B32, P::AndB32, [tid.into(), Operand::Imm(1 << bit)]);
        self.emit.pure(Class::Pred, P::SetpNeS32, [masked.into(), Operand::Imm(0)])
    }

    /// Combines the parts in a tree of neighbours; an odd part joins in the next level. `ascending`: the parts are in
    /// the order of their indices.
    pub(super) fn joined(&mut self, join: Join, mut parts: Vec<Part>, ascending: bool) -> Part {
        while parts.len() > 1 {
            let pair = |p: &[Part]| match p {
                [a, b] => self.join(join, a, b, ascending),
                _ => p[0].clone(),
            };
            parts = parts.chunks(2).map(pair).collect();
        }
        parts.swap_remove(0)
    }

    fn join(&mut self, join: Join, a: &Part, b: &Part, ascending: bool) -> Part {
        match join {
            Join::Number(class, op) => {
                Part { value: self.emit.def(class, op, [a.value.into(), b.value.into()]), place: None }
            }
            Join::Truth(op, _) => {
                Part { value: self.emit.def(Class::Pred, op, [a.value.into(), b.value.into()]), place: None }
            }
            Join::Place { class, unsigned, larger } => {
                let by = (class, unsigned, larger);
                let mut takes = self.better(by, b.value, a.value);
                let places =
                    [a, b].map(|p| p.place.clone().unwrap_or_else(|| unreachable!("bug: a part without a place")));
                let [at, of_b] = places;
                if !ascending {
                    let worse = self.better(by, a.value, b.value);
                    let not_worse = self.emit.def(Class::Pred, P::NotPred, [worse.into()]);
                    let first = self.emit.def(Class::Pred, P::SetpLtS32, [of_b.clone(), at.clone()]);
                    let tie = self.emit.def(Class::Pred, P::AndPred, [not_worse.into(), first.into()]);
                    takes = self.emit.def(Class::Pred, P::OrPred, [takes.into(), tie.into()]);
                }
                let value = self.choose(takes, b.value, a.value);
                let place = self.emit.def(Class::B32, P::SelpB32, [of_b, at, takes.into()]);
                Part { value, place: Some(place.into()) }
            }
        }
    }

    /// Whether `x` is better than `than`, regardless of their indices: a NaN is better than any number.
    fn better(&mut self, (class, unsigned, larger): (Class, bool, bool), x: Reg, than: Reg) -> Reg {
        let compare =
            |op| compare_op(op, (class, unsigned)).unwrap_or_else(|| unreachable!("bug: numbers are compared"));
        if matches!(class, Class::F32 | Class::F64) {
            let not = compare(if larger { Op::Le } else { Op::Ge });
            let not = self.emit.def(Class::Pred, not, [x.into(), than.into()]);
            let more_or_nan = self.emit.def(Class::Pred, P::NotPred, [not.into()]);
            let number = self.emit.def(Class::Pred, compare(Op::Eq), [than.into(), than.into()]);
            return self.emit.def(Class::Pred, P::AndPred, [more_or_nan.into(), number.into()]);
        }
        self.emit.def(Class::Pred, compare(if larger { Op::Gt } else { Op::Lt }), [x.into(), than.into()])
    }

    /// Combines a number over lanes that differ in some bits of their numbers. All lanes get the same result, because
    /// the operation is commutative.
    pub(super) fn combine_lanes(&mut self, mut x: Reg, class: Class, combine: P, lanes: &[u32]) -> Reg {
        for &lane in lanes {
            let other = shuffle(self, x, class, lane);
            x = self.emit.def(class, combine, [x.into(), other.into()]);
        }
        x
    }

    /// Combines a part over lanes that differ in some bits of their numbers: a number, a condition or an index.
    pub(super) fn join_lanes(&mut self, join: Join, part: Part, lanes: &[u32]) -> Reg {
        match join {
            Join::Number(class, op) => self.combine_lanes(part.value, class, op, lanes),
            Join::Truth(..) if lanes.is_empty() => part.value,
            Join::Truth(_, op) => {
                let srcs = [Operand::Imm(1), Operand::Imm(0), part.value.into()];
                let word = self.emit.def(Class::B32, P::SelpB32, srcs);
                let word = self.combine_lanes(word, Class::B32, op, lanes);
                self.emit.def(Class::Pred, P::SetpNeS32, [word.into(), Operand::Imm(0)])
            }
            Join::Place { class, .. } => {
                let mut own = part;
                for &lane in lanes {
                    let place = self.place_of(&own);
                    let other = Part {
                        value: shuffle(self, own.value, class, lane),
                        place: Some(shuffle(self, place, Class::B32, lane).into()),
                    };
                    own = self.join(join, &own, &other, false);
                }
                self.place_of(&own)
            }
        }
    }

    /// The register of a part's index.
    fn place_of(&mut self, part: &Part) -> Reg {
        match part.place {
            Some(Operand::Reg(r)) => r,
            Some(Operand::Imm(x)) => self.int_literal(x, Class::B32),
            _ => unreachable!("bug: a part without a place"),
        }
    }
}

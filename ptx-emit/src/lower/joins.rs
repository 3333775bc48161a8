//! What makes one of two elements of a row, for each reduction: of numbers an instruction, of conditions one on predicates, and where the place of an element
//! is wanted the number and its place.

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

/// What is left of some elements of a row.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) value: Reg,
    /// Where it stands along the dimension, where that is wanted.
    pub(super) place: Option<Operand>,
}

/// How two parts become one.
#[derive(Clone, Copy)]
pub(super) enum Join {
    /// Of numbers.
    Number(Class, P),
    /// Of predicates, and of words that are 0 or 1.
    Truth(P, P),
    /// The one that is better, or in front of the other.
    Place { class: Class, unsigned: bool, larger: bool },
}

impl Join {
    /// That of a reduction of such elements.
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

/// What makes one of two elements, of which one is in front of the other.
#[derive(Clone, Copy)]
pub(super) enum By<'c> {
    /// An instruction, of two numbers, whichever is first.
    Instruction(Class, P),
    /// What the program writes, of two tuples.
    Program(&'c Combine),
}

impl Lower<'_> {
    /// Two elements as one.
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

    /// Whether the first of two tuples stays in front of the second.
    pub(super) fn stays(&mut self, combine: &Combine, a: &[Reg], b: &[Reg]) -> Result<Reg, Reported> {
        self.name_components(combine, a, b)?;
        self.condition(combine.results[0])
    }

    /// Has the names of components stand for these numbers, and those of what is computed of them for that.
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

    /// Of a lane's tuple and that of the lane that differs in a bit of its number the one of the lower lane, and the other; `upper`: this lane has the bit.
    pub(super) fn in_order(&mut self, upper: Reg, own: &[Reg], other: &[Reg]) -> (Vec<Reg>, Vec<Reg>) {
        let pairs = || own.iter().zip(other);
        let lower = pairs().map(|(&own, &other)| self.choose(upper, other, own)).collect();
        (lower, pairs().map(|(&own, &other)| self.choose(upper, own, other)).collect())
    }

    /// Whether a bit of the lane's number is set.
    pub(super) fn has_lane_bit(&mut self, bit: u32) -> Reg {
        let tid = self.tid();
        let masked = self.emit.pure(Class::B32, P::AndB32, [tid.into(), Operand::Imm(1 << bit)]);
        self.emit.pure(Class::Pred, P::SetpNeS32, [masked.into(), Operand::Imm(0)])
    }

    /// The parts joined by a tree: neighbours first, an odd one with the next round. `ascending`: each is in front of those that follow.
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

    /// Whether a number is better than another one, whatever their places: a NaN is better than any number.
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

    /// What lanes have that differ in some bits of their numbers: all of them get the same, for a sum of two does not depend on which is first.
    pub(super) fn combine_lanes(&mut self, mut x: Reg, class: Class, combine: P, lanes: &[u32]) -> Reg {
        for &lane in lanes {
            let other = shuffle(self, x, class, lane);
            x = self.emit.def(class, combine, [x.into(), other.into()]);
        }
        x
    }

    /// What all lanes have that differ in some bits of their numbers, joined: the number, the condition, or the place.
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

    /// Where a part stands.
    fn place_of(&mut self, part: &Part) -> Reg {
        match part.place {
            Some(Operand::Reg(r)) => r,
            Some(Operand::Imm(x)) => self.int_literal(x, Class::B32),
            _ => unreachable!("bug: a part without a place"),
        }
    }
}

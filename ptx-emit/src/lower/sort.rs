//! Sorts of tuples: the comparisons of a sorting network, between registers of a thread or lanes of a warp.
//!
//! If a bit of a thread's number selects which of two elements has the higher index, selections order them for the
//! condition. Then registers are exchanged or not. If only equal tuples are tied ([`Combine::total_order`]), the
//! condition is computed once, in any order, and inverted by that bit; and one integer takes a minimum and a maximum.
//!
//! Comparisons that differ only in their lanes are loops ([`super::networks`]), whose lane masks are fields of a
//! register that each iteration shifts.

use super::networks::{ENTRY, Part, packed, parts};
use super::shuffles::shuffled;
use super::state::Lower;
use super::tile::{compute_class, is_unsigned};
use crate::inst::{Class, Guard, Label, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use std::collections::BTreeMap;
use tilec_ir::combine::Combine;
use tilec_ir::diag::Reported;
use tilec_ir::layout::Comparison;
use tilec_ir::total_order::Key;

/// Tuples by the first register of their block.
pub(super) type Blocks = BTreeMap<usize, Vec<Reg>>;

/// The condition of a sort.
struct Condition<'c> {
    combine: &'c Combine,
    /// The components that order the tuples, if only equal ones are tied.
    order: Option<Vec<Key>>,
}

/// Whether two tuples keep their places.
#[derive(Copy, Clone)]
struct Stays {
    holds: Reg,
    /// Whether they do if the predicate does not hold.
    inverted: bool,
}

/// The lane masks of the comparisons in a loop: the remaining entries of [`packed`].
struct Lanes {
    /// The first comparison, which says which registers are compared.
    like: Comparison,
    lanes: Reg,
    /// The bits that select the upper lanes, if they differ from the bits that are exchanged.
    upper: Option<Reg>,
    /// Whether a run has several comparisons, so that the code is a loop.
    is_loop: bool,
}

/// The lane with the other tuple of a comparison, and the threads that have the upper one.
#[derive(Clone)]
struct Across {
    registers: usize,
    /// Registers with an odd number of these bits have the upper tuple, too.
    upper_registers: usize,
    lanes: Operand,
    upper: Option<Reg>,
}

impl Lower<'_> {
    /// The tuples of a thread after these comparisons.
    pub(super) fn sorted(
        &mut self,
        mut xs: Blocks,
        combine: &Combine,
        comparisons: &[Comparison],
    ) -> Result<Blocks, Reported> {
        let by = &Condition { combine, order: combine.total_order(self.k) };
        for part in parts(comparisons, xs.len()) {
            xs = match part {
                Part::One(c) => self.compared(&xs, by, &c, None)?,
                Part::Lanes(all) => {
                    let lanes = self.lanes(&[&all]);
                    self.in_lanes(xs, by, &lanes)?
                }
                Part::Rounds(rounds) => self.in_rounds(xs, by, &rounds)?,
            };
        }
        Ok(xs)
    }

    /// Emits the loop over rounds of equal parts.
    fn in_rounds(&mut self, xs: Blocks, by: &Condition<'_>, rounds: &[Vec<Part>]) -> Result<Blocks, Reported> {
        let mut all = Vec::new();
        for (at, part) in rounds[0].iter().enumerate() {
            let Part::Lanes(_) = part else { continue };
            let runs: Vec<&[Comparison]> = rounds.iter().map(|round| round[at].entries()).collect();
            all.push((at, self.lanes(&runs)));
        }
        let changing = self.changing(&xs);
        let head = self.emit.label("sort_rounds");
        self.emit.push_frame();
        let mut xs = changing.clone();
        let lanes = |at: usize| all.iter().find(|(own, _)| *own == at).map(|(_, lanes)| lanes);
        let is_loop = |at: usize| lanes(at).is_some_and(|lanes| lanes.is_loop);
        for (at, part) in rounds[0].iter().enumerate() {
            // Registers that a loop changes must be defined in front of it, and at the end of the round.
            let into = (at + 1 == rounds[0].len() || is_loop(at + 1)).then_some(&changing);
            xs = match (part, lanes(at)) {
                (_, Some(lanes)) if lanes.is_loop => {
                    self.in_loop(&changing, by, lanes)?;
                    changing.clone()
                }
                (_, Some(lanes)) => {
                    let (across, _) = self.next_lanes(lanes);
                    self.exchanged(&xs, by, &across, into)?
                }
                (Part::One(c), None) => self.compared(&xs, by, c, into)?,
                (part, None) => panic!("bug: {part:?} in a round"),
            };
        }
        let (_, first) = all.first().expect("bug: rounds differ by lanes");
        let more = self.emit.def(Class::Pred, P::SetpNeS64, [first.lanes.into(), Operand::Imm(0)]);
        self.close_sort(head, more);
        Ok(changing)
    }

    /// Emits comparisons that differ by lanes.
    fn in_lanes(&mut self, xs: Blocks, by: &Condition<'_>, lanes: &Lanes) -> Result<Blocks, Reported> {
        let changing = self.changing(&xs);
        self.in_loop(&changing, by, lanes)?;
        Ok(changing)
    }

    /// Emits the loop over them, which changes these registers.
    fn in_loop(&mut self, changing: &Blocks, by: &Condition<'_>, lanes: &Lanes) -> Result<(), Reported> {
        let head = self.emit.label("sort_lanes");
        self.emit.push_frame();
        let (across, more) = self.next_lanes(lanes);
        self.exchanged(changing, by, &across, Some(changing))?;
        self.close_sort(head, more);
        Ok(())
    }

    /// Ends a loop whose body is in the innermost frame; it continues while `more`, which is uniform, holds.
    fn close_sort(&mut self, head: Label, more: Reg) {
        self.emit.push_if(Some(Guard { reg: more, negated: false }), P::BraUni, [head.into()]);
        let body = self.emit.pop_frame();
        self.emit.item(Item::Label(head));
        self.emit.item(Item::Pragma("nounroll"));
        self.emit.items(body);
    }

    /// Registers for the lanes of these comparisons.
    fn lanes(&mut self, runs: &[&[Comparison]]) -> Lanes {
        let (lanes, upper) = packed(runs.iter().copied());
        let entries = |this: &mut Self, entries: u64| {
            let reg = this.emit.mutable(Class::B64);
            this.emit.push(P::MovB64, [reg.into(), Operand::Imm(entries.cast_signed())]);
            reg
        };
        let apart = runs.iter().any(|run| run.iter().any(|c| c.threads != u64::from(c.lanes)));
        let (lanes, upper) = (entries(self, lanes), apart.then(|| entries(self, upper)));
        Lanes { like: runs[0][0], lanes, upper, is_loop: runs.iter().any(|run| run.len() > 1) }
    }

    /// The next comparison, and the predicate that it is not the last one of its run.
    fn next_lanes(&mut self, all: &Lanes) -> (Across, Reg) {
        let next = |this: &mut Self, reg: Reg| {
            let low = this.emit.def(Class::B32, P::CvtU32U64, [reg.into()]);
            this.emit.push(P::ShrU64, [reg.into(), reg.into(), Operand::Imm(i64::from(ENTRY))]);
            low
        };
        let ends = 1i64 << (ENTRY - 1);
        let number =
            |this: &mut Self, entry: Reg| this.emit.def(Class::B32, P::AndB32, [entry.into(), Operand::Imm(ends - 1)]);
        let entry = next(self, all.lanes);
        let lanes = number(self, entry);
        let end = self.emit.def(Class::B32, P::AndB32, [entry.into(), Operand::Imm(ends)]);
        let more = self.emit.def(Class::Pred, P::SetpEqS32, [end.into(), Operand::Imm(0)]);
        let bit = match all.upper {
            None => lanes,
            Some(upper) => {
                let entry = next(self, upper);
                number(self, entry)
            }
        };
        let tid = self.tid();
        let masked = self.emit.def(Class::B32, P::AndB32, [tid.into(), bit.into()]);
        let upper = self.emit.def(Class::Pred, P::SetpNeS32, [masked.into(), Operand::Imm(0)]);
        let Comparison { registers, upper: upper_registers, .. } = all.like;
        (Across { registers, upper_registers, lanes: lanes.into(), upper: Some(upper) }, more)
    }

    /// Mutable registers that are initialised with these tuples.
    fn changing(&mut self, xs: &Blocks) -> Blocks {
        let own = |this: &mut Self, tuple: &Vec<Reg>| -> Vec<Reg> {
            let each = tuple.iter().map(|&x| {
                let reg = this.emit.mutable(this.emit.func.regs[x]);
                this.mov(reg, x);
                reg
            });
            each.collect()
        };
        xs.iter().map(|(&v, tuple)| (v, own(self, tuple))).collect()
    }

    /// Emits one comparison; the results go to the registers `into`, if given.
    fn compared(
        &mut self,
        xs: &Blocks,
        by: &Condition<'_>,
        c: &Comparison,
        into: Option<&Blocks>,
    ) -> Result<Blocks, Reported> {
        let upper = self.has_odd_bits(c.threads);
        if c.lanes != 0 {
            let lanes = Operand::Imm(i64::from(c.lanes));
            let across = Across { registers: c.registers, upper_registers: c.upper, lanes, upper };
            return self.exchanged(xs, by, &across, into);
        }
        let mut next = Blocks::new();
        for (&v, own) in xs {
            let there = v ^ c.registers;
            if v < there {
                let (other, behind) = (&xs[&there], (v & c.upper).count_ones() % 2 == 1);
                let (first, second) = match self.extremes(by, own, other).filter(|_| upper.is_none()) {
                    Some(pair) if behind => (pair.1, pair.0),
                    Some(pair) => pair,
                    None => {
                        let stays = self.keeps(by, (own, behind), other, upper)?;
                        (self.either(stays, own, other), self.either(stays, other, own))
                    }
                };
                next.extend([(v, self.taken(first, into, v)), (there, self.taken(second, into, there))]);
            }
        }
        Ok(next)
    }

    /// Emits one comparison between lanes; each lane computes its own tuples. The results go to the registers `into`,
    /// if given.
    fn exchanged(
        &mut self,
        xs: &Blocks,
        by: &Condition<'_>,
        across: &Across,
        into: Option<&Blocks>,
    ) -> Result<Blocks, Reported> {
        let mut next = Blocks::new();
        for &v in xs.keys() {
            let there = v ^ across.registers;
            // If two tuples of a thread are exchanged crosswise with another lane, both are sent before one changes.
            let pair: &[usize] = if v == there { &[v] } else { &[v, there] };
            if there < v {
                continue;
            }
            let shuffle = |this: &mut Self, x: Reg| {
                shuffled(this, x, this.emit.func.regs[x], (P::ShflSyncBflyB32, across.lanes.clone()))
            };
            let mut others = Vec::new();
            for own in pair {
                let sent = &xs[&(own ^ across.registers)];
                others.push(sent.iter().map(|&x| shuffle(self, x)).collect::<Vec<Reg>>());
            }
            for (&v, other) in pair.iter().zip(others) {
                let (own, behind) = (&xs[&v], (v & across.upper_registers).count_ones() % 2 == 1);
                let stays = self.keeps(by, (own, behind), &other, across.upper)?;
                let mine = match into {
                    None => self.either(stays, own, &other),
                    Some(into) => self.either_into(stays, own, &other, &into[&v]),
                };
                next.insert(v, mine);
            }
        }
        Ok(next)
    }

    /// Whether two tuples keep their places. `behind`: the first one has the higher index; in threads that are `upper`
    /// it has the lower one.
    fn keeps(
        &mut self,
        by: &Condition<'_>,
        (own, behind): (&[Reg], bool),
        other: &[Reg],
        upper: Option<Reg>,
    ) -> Result<Stays, Reported> {
        if by.order.is_some() {
            let precedes = self.precedes(by.combine, own, other)?;
            let holds = upper
                .map_or(precedes, |upper| self.emit.pure(Class::Pred, P::XorPred, [precedes.into(), upper.into()]));
            return Ok(Stays { holds, inverted: behind });
        }
        let (a, b) = if behind { (other, own) } else { (own, other) };
        let holds = match upper {
            None => self.precedes(by.combine, a, b)?,
            Some(upper) => {
                let (a, b) = self.in_order(upper, a, b);
                self.precedes(by.combine, &a, &b)?
            }
        };
        Ok(Stays { holds, inverted: false })
    }

    /// The one of two tuples that comes first, and the other, if they are single integers of a register.
    fn extremes(&mut self, by: &Condition<'_>, a: &[Reg], b: &[Reg]) -> Option<(Vec<Reg>, Vec<Reg>)> {
        let (&[key], &[a], &[b]) = (&by.order.as_ref()?[..], a, b) else { return None };
        let elem = self.elem(by.combine.first[key.component])?;
        let class = compute_class(elem);
        let (least, greatest) = match is_unsigned(elem, class) {
            _ if class != Class::B32 => return None,
            true => (P::MinU32, P::MaxU32),
            false => (P::MinS32, P::MaxS32),
        };
        let mut of = |op: P| vec![self.emit.def(class, op, [a.into(), b.into()])];
        let (least, greatest) = (of(least), of(greatest));
        Some(if key.descending { (greatest, least) } else { (least, greatest) })
    }

    /// Whether an odd number of these bits of the thread's number is set; `None`: there are no bits.
    fn has_odd_bits(&mut self, bits: u64) -> Option<Reg> {
        let each: Vec<Reg> = (0..u64::BITS).filter(|i| bits >> i & 1 == 1).map(|bit| self.has_lane_bit(bit)).collect();
        each.into_iter().reduce(|a, b| self.emit.pure(Class::Pred, P::XorPred, [a.into(), b.into()]))
    }

    /// The components of the first tuple if it keeps its place, else those of the second.
    fn either(&mut self, Stays { holds, inverted }: Stays, a: &[Reg], b: &[Reg]) -> Vec<Reg> {
        let (a, b) = if inverted { (b, a) } else { (a, b) };
        a.iter().zip(b).map(|(&a, &b)| self.choose(holds, a, b)).collect()
    }

    /// Like [`Self::either`], into mutable registers.
    fn either_into(&mut self, Stays { holds, inverted }: Stays, a: &[Reg], b: &[Reg], into: &[Reg]) -> Vec<Reg> {
        let (a, b) = if inverted { (b, a) } else { (a, b) };
        for ((&a, &b), &dst) in a.iter().zip(b).zip(into) {
            self.choose_into(dst, holds, a, b);
        }
        into.to_vec()
    }

    /// A tuple, moved to the mutable registers of `v`, if there are any.
    fn taken(&mut self, tuple: Vec<Reg>, into: Option<&Blocks>, v: usize) -> Vec<Reg> {
        let Some(into) = into else { return tuple };
        for (&dst, &x) in into[&v].iter().zip(&tuple) {
            self.mov(dst, x);
        }
        into[&v].clone()
    }
}

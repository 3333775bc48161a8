//! Scans. The bits of an element's index along the dimension are taken from the lowest. For each, the total of the
//! lower half of a block is combined with the elements of its upper half.
//!
//! A bit of a register's number takes an operation for each element of the upper half. A bit of a lane's number takes a
//! shuffle for each block of a thread, and an operation and a selection for each element. So the order is that of the
//! indices, in any layout. Elements are numbers, or tuples that the program combines.
//!
//! A bit that selects warps uses the totals of segments of the row ([`super::segment_totals`]), and otherwise works as a lane
//! bit.

use super::combine_elements::By;
use super::segment_totals::{PrefixTotals, SegmentTotals};
use super::shuffles::shuffle;
use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::layout::ScanBit;
use tilec_ir::numerics::cast::int_format;
use tilec_ir::ops::ReduceOp;
use tilec_ir::types::Elem;

/// The value of an exclusive scan at the first element.
pub(super) struct Front {
    /// The value in the program's result.
    pub(super) shown: Vec<Reg>,
    /// The neutral element: combining with it changes no number. It differs from `shown`, because zeros have signs and
    /// a NaN loses against an infinity. `None`: no neutral element is known, and selections keep the first elements
    /// uncombined.
    pub(super) neutral: Option<Reg>,
}

/// Inputs of a scan in addition to its elements.
pub(super) struct ScanInputs<'t> {
    /// The first value, for an exclusive scan.
    pub(super) front: Option<Front>,
    /// Totals of segments of rows.
    pub(super) totals: Option<&'t SegmentTotals>,
}

impl Lower<'_> {
    /// The first value and the neutral element of an exclusive scan.
    pub(super) fn front(&mut self, op: ReduceOp, elem: Elem, class: Class) -> Front {
        let both = |shown, neutral| Front { shown: vec![shown], neutral: Some(neutral) };
        if let Some(format) = int_format(elem) {
            let shown = match op {
                ReduceOp::Sum => 0,
                ReduceOp::Product => 1,
                ReduceOp::Maximum => format.min(),
                _ => format.max(),
            };
            // A 32-bit literal is given by its bits, whatever its sign.
            let shown = if class == Class::B32 { i64::from(shown as i32) } else { shown as i64 };
            let shown = self.int_literal(shown, class);
            return both(shown, shown);
        }
        let (shown, neutral) = match op {
            ReduceOp::Sum => (0.0, -0.0),
            ReduceOp::Product => (1.0, 1.0),
            ReduceOp::Maximum => (f64::NEG_INFINITY, f64::NAN),
            _ => (f64::INFINITY, f64::NAN),
        };
        both(self.literal(shown, class), self.literal(neutral, class))
    }

    /// The scan of each of a thread's elements: inclusive, or exclusive with a `front`.
    pub(super) fn scanned(
        &mut self,
        xs: BTreeMap<usize, Vec<Reg>>,
        by: By<'_>,
        steps: &[ScanBit],
        ScanInputs { front, totals }: ScanInputs<'_>,
    ) -> Result<BTreeMap<usize, Vec<Reg>>, Reported> {
        let front = front.as_ref();
        let open = front.is_some_and(|front| front.neutral.is_none());
        let (steps, of_segments) = steps.split_at(steps.len() - totals.map_or(0, SegmentTotals::bits));
        let mut found: BTreeMap<usize, Option<Vec<Reg>>> =
            xs.iter().map(|(&v, x)| (v, front.is_none().then(|| x.clone()))).collect();
        // Totals of blocks, by the first register of each.
        let mut whole = xs;
        let (mut within, mut behind_first) = (0usize, None);
        for (i, step) in steps.iter().enumerate() {
            // The predicate that lower lanes have elements in front, if only lane bits decide it.
            let only = |v: usize, within: usize| behind_first.filter(|_| open && v & within == 0);
            let mut next = BTreeMap::new();
            let last = i + 1 == steps.len();
            match *step {
                ScanBit::Register(bit) => {
                    let bit = 1usize << bit;
                    for (&v, x) in found.iter_mut().filter(|(v, _)| *v & bit != 0) {
                        let lower = &whole[&(v & !within & !bit)];
                        *x = Some(match x {
                            Some(x) => self.in_front_of(by, lower, x, only(v, within))?,
                            None => lower.clone(),
                        });
                    }
                    for (&block, lower) in whole.iter().filter(|&(block, _)| !last && block & bit == 0) {
                        let both = match whole.get(&(block | bit)) {
                            Some(upper) => self.two(by, lower, upper)?,
                            None => lower.clone(),
                        };
                        next.insert(block, both);
                    }
                    within |= bit;
                }
                ScanBit::Lane(lane) => {
                    let upper = self.has_lane_bit(lane);
                    for (&block, own) in &whole {
                        let other: Vec<Reg> =
                            own.iter().map(|&x| shuffle(self, x, self.emit.func.regs[x], lane)).collect();
                        for (&v, x) in found.iter_mut().filter(|(v, _)| *v & !within == block) {
                            *x = Some(self.behind(by, (upper, &other), (x.take(), only(v, within)), front)?);
                        }
                        if !last {
                            let (a, b) = match by {
                                By::Instruction(..) => (own.clone(), other),
                                By::Program(_) => self.in_order(upper, own, &other),
                            };
                            next.insert(block, self.two(by, &a, &b)?);
                        }
                    }
                    behind_first = Some(self.either_of(behind_first, upper));
                }
                ScanBit::Warp(_) => unreachable!("bug: what warps have is known"),
            }
            whole = next;
        }
        let mut fronts = totals.map(|segments| PrefixTotals::new(segments, of_segments));
        for (level, step) in of_segments.iter().enumerate() {
            let fronts = fronts.as_mut().expect("bug: segments without what they come to");
            let only = |v: usize| behind_first.filter(|_| open && v & within == 0);
            for (&v, x) in &mut found {
                match *step {
                    ScanBit::Register(bit) if v >> bit & 1 == 0 => {}
                    ScanBit::Register(_) => {
                        let lower = self.front_of(by, fronts, level, v)?;
                        *x = Some(match x {
                            Some(x) => self.in_front_of(by, &lower, x, only(v))?,
                            None => lower,
                        });
                    }
                    ScanBit::Warp(bit) => {
                        let lower = self.front_of(by, fronts, level, v)?;
                        let upper = self.has_lane_bit(bit);
                        *x = Some(self.behind(by, (upper, &lower), (x.take(), only(v)), front)?);
                    }
                    ScanBit::Lane(_) => unreachable!("bug: lanes tell no segments apart"),
                }
            }
            match *step {
                ScanBit::Register(bit) => within |= 1 << bit,
                ScanBit::Warp(bit) | ScanBit::Lane(bit) => {
                    let upper = self.has_lane_bit(bit);
                    behind_first = Some(self.either_of(behind_first, upper));
                }
            }
        }
        Ok(self.with_front(found, front, behind_first, within))
    }

    /// Sets the first element of an exclusive scan to `front`. Lanes (`behind_first`) and register numbers (`within`)
    /// say which element is first.
    fn with_front(
        &mut self,
        found: BTreeMap<usize, Option<Vec<Reg>>>,
        front: Option<&Front>,
        behind_first: Option<Reg>,
        within: usize,
    ) -> BTreeMap<usize, Vec<Reg>> {
        let Some(front) = front else { return found.into_iter().filter_map(|(v, x)| Some((v, x?))).collect() };
        let mut all = BTreeMap::new();
        for (v, x) in found {
            let x = match (x, behind_first) {
                (None, _) => front.shown.clone(),
                (Some(x), Some(behind)) if v & within == 0 => {
                    x.iter().zip(&front.shown).map(|(&x, &shown)| self.choose(behind, x, shown)).collect()
                }
                (Some(x), _) => x,
            };
            all.insert(v, x);
        }
        all
    }

    /// Combines an element with the total in front of it (`lower`) if `upper` holds, else leaves it. An element without
    /// a value yet gets `lower`, or the neutral element.
    fn behind(
        &mut self,
        by: By<'_>,
        (upper, lower): (Reg, &[Reg]),
        (x, only): (Option<Vec<Reg>>, Option<Reg>),
        front: Option<&Front>,
    ) -> Result<Vec<Reg>, Reported> {
        let (with, without) = match (x, front) {
            (Some(x), _) => (self.in_front_of(by, lower, &x, only)?, x),
            (None, Some(&Front { neutral: Some(neutral), .. })) => (lower.to_vec(), vec![neutral]),
            // In other lanes the value is not used.
            (None, Some(Front { neutral: None, .. })) => return Ok(lower.to_vec()),
            (None, None) => unreachable!("bug: an element up to itself is one"),
        };
        Ok(with.into_iter().zip(without).map(|(a, b)| self.choose(upper, a, b)).collect())
    }

    /// Combines `lower` with `x`. If `only` is given, lanes in which it is false have no value in `x` yet, and get
    /// `lower`.
    fn in_front_of(&mut self, by: By<'_>, lower: &[Reg], x: &[Reg], only: Option<Reg>) -> Result<Vec<Reg>, Reported> {
        let both = self.two(by, lower, x)?;
        Ok(match only {
            Some(only) => both.into_iter().zip(lower).map(|(both, &lower)| self.choose(only, both, lower)).collect(),
            None => both,
        })
    }

    /// The disjunction of two predicates, of which the first may be missing (false).
    fn either_of(&mut self, a: Option<Reg>, b: Reg) -> Reg {
        match a {
            Some(a) => self.emit.def(Class::Pred, P::OrPred, [Operand::Reg(a), b.into()]),
            None => b,
        }
    }
}

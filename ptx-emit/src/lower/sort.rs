//! Sorts of tuples: comparison after comparison of a network, of registers of a thread or of lanes of a warp.
//!
//! Where a bit of a thread's number tells which of two elements has the higher number, the condition takes them in order by selections. Registers of a thread
//! then change places or do not, whichever of them is in front.

use super::shuffles::shuffle_by;
use super::state::Lower;
use crate::inst::Class;
use crate::inst::Reg;
use crate::ops::Op as P;
use std::collections::BTreeMap;
use tilec_ir::combine::Combine;
use tilec_ir::diag::Reported;
use tilec_ir::layout::Comparison;

/// Tuples by the first register of the block that they are of.
pub(super) type Blocks = BTreeMap<usize, Vec<Reg>>;

impl Lower<'_> {
    /// The tuples of a thread behind these comparisons.
    pub(super) fn sorted(
        &mut self,
        mut xs: Blocks,
        combine: &Combine,
        comparisons: &[Comparison],
    ) -> Result<Blocks, Reported> {
        for comparison in comparisons {
            let upper = self.has_odd_bits(comparison.threads);
            let mut next = Blocks::new();
            for (&v, own) in &xs {
                let there = v ^ comparison.registers;
                let behind = (v & comparison.upper).count_ones() % 2 == 1;
                if comparison.lanes != 0 {
                    let other: Vec<Reg> = xs[&there]
                        .iter()
                        .map(|&x| shuffle_by(self, x, self.emit.func.regs[x], comparison.lanes))
                        .collect();
                    let stays = self.keeps(combine, (own, behind), &other, upper)?;
                    let mine = self.either(stays, own, &other);
                    next.insert(v, mine);
                } else if v < there {
                    let other = &xs[&there];
                    let stays = self.keeps(combine, (own, behind), other, upper)?;
                    next.extend([(v, self.either(stays, own, other)), (there, self.either(stays, other, own))]);
                }
            }
            xs = next;
        }
        Ok(xs)
    }

    /// Whether two tuples keep their places; `behind`: the first one has the higher number, or the lower one in threads that are `upper`.
    fn keeps(
        &mut self,
        combine: &Combine,
        (own, behind): (&[Reg], bool),
        other: &[Reg],
        upper: Option<Reg>,
    ) -> Result<Reg, Reported> {
        let (a, b) = if behind { (other, own) } else { (own, other) };
        match upper {
            None => self.stays(combine, a, b),
            Some(upper) => {
                let (a, b) = self.in_order(upper, a, b);
                self.stays(combine, &a, &b)
            }
        }
    }

    /// Whether an odd number of these bits of the thread's number is set; `None`: there are no bits.
    fn has_odd_bits(&mut self, bits: u64) -> Option<Reg> {
        let each: Vec<Reg> = (0..u64::BITS).filter(|i| bits >> i & 1 == 1).map(|bit| self.has_lane_bit(bit)).collect();
        each.into_iter().reduce(|a, b| self.emit.pure(Class::Pred, P::XorPred, [a.into(), b.into()]))
    }

    /// Each component of the first tuple where the condition holds, else that of the second.
    fn either(&mut self, holds: Reg, a: &[Reg], b: &[Reg]) -> Vec<Reg> {
        a.iter().zip(b).map(|(&a, &b)| self.choose(holds, a, b)).collect()
    }
}

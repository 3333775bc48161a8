//! Tuples that the program combines along a dimension of register tiles: reduced, scanned, sorted.
//!
//! Tuples are combined in the order of their elements' indices, bit by bit, lowest first, whether a bit belongs to a
//! register or a lane. If a thread has several blocks when lanes combine theirs, the two lanes divide the blocks: one
//! continues with the lower blocks, the other with the upper ones. So one lane combines each block, with half as many
//! shuffles, and lane bits replace register bits.

use super::combine_elements::By;
use super::dims::Dims;
use super::reduce::{Subject, steps_of};
use super::scan::{Front, ScanInputs};
use super::scope::Scope;
use super::shuffles::shuffle;
use super::sort::Blocks;
use super::state::{Lower, NO_WHOLE_TILE};
use super::tile::{Tile, compute_class};
use crate::inst::{Class, Reg};
use tilec_ir::combine::{Combine, How, component};
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::layout::{ScanBit, UsedRegisters};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{layout_of_tuples, shape_of_tuples};

impl Lower<'_> {
    /// The combined tuples, as a tile for each component.
    pub(super) fn combined(&mut self, e: Expr, combine: &Combine) -> Result<Vec<Tile>, Reported> {
        let (Some(layout), Some(shape)) = (layout_of_tuples(self.k, combine), shape_of_tuples(self.k, combine)) else {
            return Err(self.unsupported(e, "tuples that meet no register tile"));
        };
        let dims = Dims::of(&shape);
        let (axis, parts) = (combine.axis as usize, combine.operation.parts());
        let held = UsedRegisters::of(&layout, dims.extents()).filter(|_| layout.out_bits() == dims.iter().sum());
        let Some(held) = held else { return Err(self.unsupported(e, NO_WHOLE_TILE)) };
        let steps = match combine.operation {
            How::Scan { .. } => steps_of(&layout, &shape, axis, parts),
            How::Sort { .. } => Ok(Vec::new()),
            _ => layout.scan(&shape, axis, parts),
        };
        let (steps, to) = match (steps, layout.combined(&shape, axis, combine.operation)) {
            (Ok(steps), Ok(to)) => (steps, to),
            (Err(why), _) | (_, Err(why)) if combine.operation.keeps_extents() => return Err(self.no_scan(e, why)),
            (Err(why), _) | (_, Err(why)) => return Err(self.no_reduction(e, combine.axis, why)),
        };
        let all: Vec<usize> = (0..1usize << layout.value_bits()).filter(|&v| held.has(v)).collect();
        let subject = Subject { layout, shape, elem: Elem::F32 };
        let xs = self.components(e, combine, &subject, &all)?;
        let Subject { layout, mut shape, .. } = subject;
        let by = By::Program(combine);
        let found: Vec<(usize, Vec<Reg>)> = match combine.operation {
            How::Scan { .. } => {
                let scope = Scope { layout: layout.clone(), dim_bits: Dims::of(&shape) };
                let mut classes = Vec::new();
                for &v in &combine.first {
                    let ElemRef::Known(elem) = component(self.k, v) else {
                        return Err(self.unsupported(e, "this type"));
                    };
                    classes.push(compute_class(elem));
                }
                let totals = match parts {
                    0 => None,
                    _ => Some(self.totals(e, (&combine.totals, &classes), &scope, (axis, parts))?),
                };
                let beside = ScanInputs {
                    front: self.front_of_tuples(combine, (&scope, &all), &classes)?,
                    totals: totals.as_ref(),
                };
                self.scanned(xs, by, &steps, beside)?.into_iter().collect()
            }
            How::Sort { steps } => {
                let comparisons = layout.sorted(&shape, axis, steps).expect("bug: what is sorted is compared");
                self.sorted(xs, combine, &comparisons)?.into_iter().collect()
            }
            How::Reduce { .. } => {
                let reduction = layout.reduction(&shape, axis, parts).expect("bug: what is scanned is reduced");
                let blocks = self.reduced_tuples(xs, by, steps, layout.value_bits())?;
                let firsts = reduction.members.iter().map(|members| members.first());
                let at = |(i, first): (usize, Option<&usize>)| Some((i, blocks[first?].clone()));
                firsts.enumerate().filter_map(at).collect()
            }
        };
        if !combine.operation.keeps_extents() {
            shape[axis] = 1 << parts.count_ones();
        }
        let mut tiles = Vec::new();
        for (i, &v) in combine.first.iter().enumerate() {
            let ElemRef::Known(elem) = component(self.k, v) else { return Err(self.unsupported(e, "this type")) };
            let Some(tile) = self.new_tile(elem, to.clone(), Dims::of(&shape), true) else {
                return Err(self.unsupported(e, "register tiles of this element type"));
            };
            let values: Vec<(usize, Reg)> = found.iter().map(|(v, regs)| (*v, regs[i])).collect();
            self.set_computed(e, &tile, &values)?;
            tiles.push(tile);
        }
        Ok(tiles)
    }

    /// The first value of an exclusive scan of tuples.
    fn front_of_tuples(
        &mut self,
        combine: &Combine,
        (scope, all): (&Scope, &[usize]),
        classes: &[Class],
    ) -> Result<Option<Front>, Reported> {
        let Some(&any) = all.first().filter(|_| !combine.front.is_empty()) else { return Ok(None) };
        let mut shown = Vec::new();
        for (&front, &class) in combine.front.iter().zip(classes) {
            let mut operands = self.operands(front, scope, &CopyAttrs::default(), None)?;
            self.begin_group(&mut operands, 0, &[any])?;
            shown.extend(self.eval(front, &operands, &[any], class)?);
        }
        Ok(Some(Front { shown, neutral: None }))
    }

    /// The tuples of a thread's elements.
    fn components(&mut self, e: Expr, combine: &Combine, subject: &Subject, all: &[usize]) -> Result<Blocks, Reported> {
        let scope = Scope { layout: subject.layout.clone(), dim_bits: Dims::of(&subject.shape) };
        let mut found: Blocks = all.iter().map(|&v| (v, Vec::new())).collect();
        for (&arg, &v) in combine.args.iter().zip(&combine.first) {
            let mut operands = self.operands(arg, &scope, &CopyAttrs::default(), None)?;
            if operands.reads_memory() {
                let what = "tuples that are combined as they are read of memory; copy the window to a register tile";
                return Err(self.unsupported(e, what));
            }
            self.begin_group(&mut operands, 0, all)?;
            let ElemRef::Known(elem) = component(self.k, v) else { return Err(self.unsupported(e, "this type")) };
            let xs = self.eval(arg, &operands, all, compute_class(elem))?;
            found.values_mut().zip(xs).for_each(|(tuple, x)| tuple.push(x));
        }
        Ok(found)
    }

    /// The combined tuples of each row, by its first register.
    fn reduced_tuples(
        &mut self,
        mut blocks: Blocks,
        by: By<'_>,
        mut steps: Vec<ScanBit>,
        value_bits: u32,
    ) -> Result<Blocks, Reported> {
        // Lane bits that have replaced register bits, because lanes divided blocks of one row or of different rows.
        let mut shared: Vec<(usize, u32)> = Vec::new();
        for i in 0..steps.len() {
            match steps[i] {
                ScanBit::Register(bit) => blocks = self.in_thread(blocks, by, 1 << bit)?,
                ScanBit::Warp(_) => unreachable!("bug: what is reduced in parts is one warp's"),
                ScanBit::Lane(lane) => match half_of(&blocks, &steps[i + 1..], value_bits) {
                    Some(bit) => {
                        blocks = self.combine_across_lanes(blocks, by, (1 << bit, lane))?;
                        match steps[i + 1..].iter().position(|&s| s == ScanBit::Register(bit)) {
                            Some(at) => steps[i + 1 + at] = ScanBit::Lane(lane),
                            None => shared.push((1 << bit, lane)),
                        }
                    }
                    None => {
                        for tuple in blocks.values_mut() {
                            let other = self.other(tuple, lane);
                            *tuple = self.two_of_lanes(by, lane, tuple, &other)?;
                        }
                    }
                },
            }
        }
        for (bit, lane) in shared.into_iter().rev() {
            let mut both = Blocks::new();
            for (block, own) in blocks {
                let other = self.other(&own, lane);
                let upper = self.has_lane_bit(lane);
                let (a, b) = self.in_order(upper, &own, &other);
                both.extend([(block, a), (block | bit, b)]);
            }
            blocks = both;
        }
        Ok(blocks)
    }

    /// Combines blocks that differ in a bit of the register number.
    fn in_thread(&mut self, blocks: Blocks, by: By<'_>, bit: usize) -> Result<Blocks, Reported> {
        let mut next = Blocks::new();
        for (&block, lower) in blocks.iter().filter(|&(block, _)| block & bit == 0) {
            let both = match blocks.get(&(block | bit)) {
                Some(upper) => self.two(by, lower, upper)?,
                None => lower.clone(),
            };
            next.insert(block, both);
        }
        Ok(next)
    }

    /// Combines blocks of two lanes: one lane continues with the blocks whose register bit is 0, the other with the
    /// rest.
    fn combine_across_lanes(
        &mut self,
        blocks: Blocks,
        by: By<'_>,
        (bit, lane): (usize, u32),
    ) -> Result<Blocks, Reported> {
        let upper = self.has_lane_bit(lane);
        let mut next = Blocks::new();
        for (&block, low) in blocks.iter().filter(|&(block, _)| block & bit == 0) {
            let high = &blocks[&(block | bit)];
            let (given, kept) = self.in_order(upper, high, low);
            let taken = self.other(&given, lane);
            next.insert(block, self.two_of_lanes(by, lane, &kept, &taken)?);
        }
        Ok(next)
    }

    /// Combines the tuples of this lane and of the lane that differs in one bit of its number; the lower lane's tuple
    /// is first if the order matters.
    fn two_of_lanes(&mut self, by: By<'_>, lane: u32, own: &[Reg], other: &[Reg]) -> Result<Vec<Reg>, Reported> {
        let symmetric = match by {
            By::Instruction(..) => true,
            By::Program(combine) => combine.is_symmetric(self.k),
        };
        if symmetric {
            return self.two(by, own, other);
        }
        let upper = self.has_lane_bit(lane);
        let (a, b) = self.in_order(upper, own, other);
        self.two(by, &a, &b)
    }

    /// The tuple of another lane.
    fn other(&mut self, tuple: &[Reg], lane: u32) -> Vec<Reg> {
        tuple.iter().map(|&x| shuffle(self, x, self.emit.func.regs[x], lane)).collect()
    }
}

/// A register bit in which all blocks of a thread come in pairs: one that is combined later, or that selects rows.
fn half_of(blocks: &Blocks, later: &[ScanBit], value_bits: u32) -> Option<u32> {
    let paired = |bit: &u32| blocks.len() > 1 && blocks.keys().all(|block| blocks.contains_key(&(block ^ 1 << bit)));
    let register = |s: &ScanBit| if let ScanBit::Register(bit) = s { Some(*bit) } else { None };
    later.iter().rev().filter_map(register).find(paired).or_else(|| (0..value_bits).rev().find(paired))
}

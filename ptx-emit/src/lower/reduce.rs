//! Reductions along a dimension of a register tile.
//!
//! A thread combines its own elements of a row, by a tree, and then lanes that hold others of the same row exchange what they have, bit
//! of the lane's number by bit (`shfl.sync.bfly`): all of them end up with the same number, for a sum of two does not
//! depend on which is first. The result has the layout of the tile without the dimension ([`Reduction`]), so no thread
//! has to ask another for what it is combined with.

use super::Lower;
use super::copy::NO_WHOLE_TILE;
use super::dims::Dims;
use super::elementwise::{Scope, instruction};
use super::relayout::shuffle;
use super::tiles::{Tile, compute_class};
use crate::inst::{Class, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{CopyAttrs, ExprData};
use tilec_ir::layout::{NoReduction, Reduction, RegLayout};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::{Elem, ElemRef, Partial};
use tilec_ir::typing::{Type, layout_of, type_of};

/// What is reduced.
struct Operand {
    layout: RegLayout,
    shape: Vec<u64>,
    elem: Elem,
}

/// The result of a reduction, as the thread has it.
pub(super) struct Reduced {
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
    /// By value index, in the class that elements are computed in; none where there is no element.
    pub(super) regs: Vec<Option<Reg>>,
}

impl Lower<'_> {
    /// How `arg` is reduced along `axis`, if it can be: with the tile's layout, extents and type.
    fn reduction_of(&self, arg: Expr, axis: u32) -> Option<(Result<Reduction, NoReduction>, Operand)> {
        let Ok(Type::Tile(t)) = type_of(self.k, arg) else { return None };
        let ElemRef::Known(elem) = t.elem else { return None };
        let (shape, layout) = (t.known_shape()?, layout_of(self.k, arg)?);
        let found = layout.reduction(&shape, axis as usize);
        Some((found, Operand { layout, shape, elem }))
    }

    /// Refuses an expression that has no layout: for a reduction in it that cannot be computed, if there is one.
    pub(super) fn without_layout(&mut self, e: Expr, what: &str) -> Reported {
        let mut rest = vec![e];
        while let Some(e) = rest.pop() {
            if let ExprData::Reduce { axis, arg, .. } = self.k.exprs[e]
                && let Some((Err(why), _)) = self.reduction_of(arg, axis)
            {
                return self.no_reduction(e, axis, why);
            }
            rest.extend(self.k.children(e));
        }
        self.unsupported(e, what)
    }

    fn no_reduction(&mut self, e: Expr, axis: u32, why: NoReduction) -> Reported {
        match why {
            NoReduction::Warps => self.across_warps(e, axis),
            NoReduction::Layout => self.unsupported(e, "a reduction of a tile whose layout mixes its dimensions"),
        }
    }

    /// Computes a reduction.
    pub(super) fn reduce(&mut self, e: Expr) -> Result<Reduced, Reported> {
        let ExprData::Reduce { op, axis, arg } = self.k.exprs[e] else {
            return Err(self.unsupported(e, "this reduction"));
        };
        let Some((found, Operand { layout, shape, elem })) = self.reduction_of(arg, axis) else {
            return Err(self.unsupported(e, "a reduction of a tile that meets no register tile"));
        };
        if layout.out_bits() != Dims::of(&shape).iter().sum() {
            return Err(self.unsupported(arg, NO_WHOLE_TILE));
        }
        let reduction = match found {
            Ok(reduction) => reduction,
            Err(why) => return Err(self.no_reduction(e, axis, why)),
        };
        let class = compute_class(elem);
        let Some(combine) = combine(op, elem, class) else {
            return Err(self.unsupported(e, &format!("`{}` of {} elements", op.token(), elem.name())));
        };
        let in_parts = match &self.parts {
            Some((partial, of)) if of.contains(&e) => {
                if partial.lanes != reduction.lanes {
                    let message = format!(
                        "lanes that differ in bits {:?} hold what is reduced, and the tile has parts of {:?}",
                        reduction.lanes, partial.lanes
                    );
                    return Err(self.sink.report(Diagnostic::error(codes::BAD_PARTIAL, self.k.expr_spans[e], message)));
                }
                true
            }
            _ => false,
        };
        let scope = Scope { layout, dim_bits: Dims::of(&shape) };
        let mut operands = self.operands(arg, &scope, &CopyAttrs::default(), None)?;
        if operands.reads_memory() {
            return Err(self
                .unsupported(e, "a reduction that reads memory; copy the window to a register tile, and reduce that"));
        }
        let mut regs = Vec::new();
        for (g, members) in reduction.members.iter().enumerate() {
            if members.is_empty() {
                regs.push(None);
                continue;
            }
            let xs = self.compute_group(arg, &mut operands, g, members)?;
            let x = self.combined(&xs, class, combine);
            regs.push(Some(if in_parts { x } else { self.combine_lanes(x, class, combine, &reduction.lanes) }));
        }
        let mut small = shape;
        small[axis as usize] = 1;
        Ok(Reduced { layout: reduction.layout, dim_bits: Dims::of(&small), regs })
    }

    /// What lanes have that differ in some bits of their numbers: all of them get the same, for a sum of two does not depend on which is first.
    fn combine_lanes(&mut self, mut x: Reg, class: Class, combine: P, lanes: &[u32]) -> Reg {
        for &lane in lanes {
            let other = shuffle(self, x, class, lane);
            x = self.emit.def(class, combine, [x.into(), other.into()]);
        }
        x
    }

    /// A tile of parts with its parts put together.
    pub(super) fn put_together(&mut self, at: Expr, tile: &Tile, partial: &Partial) -> Result<Tile, Reported> {
        let class = compute_class(tile.elem);
        let unsupported = |cx: &mut Self| cx.unsupported(at, &format!("parts of {} elements", tile.elem.name()));
        let Some(combine) = combine(partial.op, tile.elem, class) else { return Err(unsupported(self)) };
        let Some(whole) = self.new_tile(tile.elem, tile.layout.clone(), tile.dim_bits.clone(), true) else {
            return Err(unsupported(self));
        };
        let mut values = Vec::new();
        for v in tile.elements() {
            let part = self.get(tile, v);
            values.push((v, self.combine_lanes(part, class, combine, &partial.lanes)));
        }
        self.set_computed(at, &whole, &values)?;
        Ok(whole)
    }

    /// The elements combined by a tree: neighbours first, an odd one with the next round.
    fn combined(&mut self, xs: &[Reg], class: Class, combine: P) -> Reg {
        let mut xs = xs.to_vec();
        while xs.len() > 1 {
            let pair = |p: &[Reg]| match *p {
                [a, b] => self.emit.def(class, combine, [a.into(), b.into()]),
                _ => p[0],
            };
            xs = xs.chunks(2).map(pair).collect();
        }
        xs[0]
    }

    fn across_warps(&mut self, e: Expr, axis: u32) -> Reported {
        let note = match axis {
            1 => "of a product, give each warp whole rows: as many columns in `warp_tile` as the accumulator has",
            _ => "of a product, give each warp whole columns: as many rows in `warp_tile` as the accumulator has",
        };
        let message = format!(
            "not compiled to PTX for {} yet: a reduction along dimension {axis} of a tile whose elements along it are in several warps",
            self.target.name()
        );
        self.sink.report(
            Diagnostic::error(codes::NOT_LOWERED, self.k.expr_spans[e], message)
                .with_note(note)
                .with_note("elsewhere leave the layout of the tile out, or store the tile to shared memory and copy it to one of another layout"),
        )
    }
}

/// The instruction that combines two elements.
fn combine(op: ReduceOp, elem: Elem, class: Class) -> Option<P> {
    let op = match op {
        ReduceOp::Sum => Op::Add,
        ReduceOp::Maximum => Op::Max,
        ReduceOp::Minimum => Op::Min,
    };
    instruction(op, (class, elem == Elem::U32))
}

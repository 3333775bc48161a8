//! What reductions along a dimension of a register tile are made of.
//!
//! A thread combines its own elements of a row, by a tree, and then lanes that hold others of the same row exchange what they have, bit
//! of the lane's number by bit (`shfl.sync.bfly`): all of them end up with the same number, for a sum of two does not
//! depend on which is first. The result has the layout of the tile without the dimension ([`Reduction`]), so no thread
//! has to ask another for what it is combined with.

use super::arithmetic::instruction;
use super::shuffles::shuffle;
use super::state::Lower;
use super::tile::{Tile, compute_class};
use crate::inst::{Class, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::ExprData;
use tilec_ir::layout::{NoReduction, Reduction, RegLayout};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::{Elem, ElemRef, Partial};
use tilec_ir::typing::{Type, layout_of, type_of};

/// What is reduced.
pub(super) struct Subject {
    pub(super) layout: RegLayout,
    pub(super) shape: Vec<u64>,
    pub(super) elem: Elem,
}

impl Lower<'_> {
    /// How `arg` is reduced along `axis`, in `parts`, if it can be: with the tile's layout, extents and type.
    pub(super) fn reduction_of(
        &self,
        arg: Expr,
        axis: u32,
        parts: u32,
    ) -> Option<(Result<Reduction, NoReduction>, Subject)> {
        let Ok(Type::Tile(t)) = type_of(self.k, arg) else { return None };
        let ElemRef::Known(elem) = t.elem else { return None };
        let (shape, layout) = (t.known_shape()?, layout_of(self.k, arg)?);
        let found = layout.reduction(&shape, axis as usize, parts);
        Some((found, Subject { layout, shape, elem }))
    }

    /// Refuses an expression that has no layout: for a reduction in it that cannot be computed, if there is one.
    pub(super) fn without_layout(&mut self, e: Expr, what: &str) -> Reported {
        let mut rest = vec![e];
        while let Some(e) = rest.pop() {
            if let ExprData::Reduce { axis, parts, arg, .. } = self.k.exprs[e]
                && let Some((Err(why), _)) = self.reduction_of(arg, axis, parts)
            {
                return self.no_reduction(e, axis, why);
            }
            rest.extend(self.k.children(e));
        }
        self.unsupported(e, what)
    }

    pub(super) fn no_reduction(&mut self, e: Expr, axis: u32, why: NoReduction) -> Reported {
        match why {
            NoReduction::Warps => self.across_warps(e, axis),
            NoReduction::Layout => self.unsupported(e, "a reduction of a tile whose layout mixes its dimensions"),
        }
    }

    /// What lanes have that differ in some bits of their numbers: all of them get the same, for a sum of two does not depend on which is first.
    pub(super) fn combine_lanes(&mut self, mut x: Reg, class: Class, combine: P, lanes: &[u32]) -> Reg {
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
    pub(super) fn combined(&mut self, xs: &[Reg], class: Class, combine: P) -> Reg {
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
pub(super) fn combine(op: ReduceOp, elem: Elem, class: Class) -> Option<P> {
    let op = match op {
        ReduceOp::Sum => Op::Add,
        ReduceOp::Maximum => Op::Max,
        ReduceOp::Minimum => Op::Min,
    };
    instruction(op, (class, elem == Elem::U32))
}

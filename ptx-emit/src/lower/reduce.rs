//! Reductions along a dimension of a register tile.
//!
//! A thread combines its own elements of a row as a tree. Then lanes with other elements of the row exchange their
//! results, for each bit of the lane number (`shfl.sync.bfly`). All of them get the same number, because the operation
//! is commutative. The result has the layout of the tile without the dimension ([`Reduction`]), so expressions that
//! combine both need no exchange.

use super::combine_elements::{Join, Part};
use super::scope::Scope;
use super::state::Lower;
use super::tile::{Tile, compute_class};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::ExprData;
use tilec_ir::layout::{NoReduction, Reduction, RegLayout, ScanBit};
use tilec_ir::types::{Elem, ElemRef, Partial};
use tilec_ir::typing::{Type, layout_of, type_of};

/// The tile that is reduced.
pub(super) struct Subject {
    pub(super) layout: RegLayout,
    pub(super) shape: Vec<u64>,
    pub(super) elem: Elem,
}

impl Lower<'_> {
    /// The reduction of `arg` along `axis` in `parts`, if it is possible, with the tile's layout, extents and type.
    pub(super) fn reduction_of(
        &self,
        arg: Expr,
        axis: u32,
        parts: u32,
    ) -> Option<(Result<Reduction, NoReduction>, Subject)> {
        let subject = self.subject(arg)?;
        Some((subject.layout.reduction(&subject.shape, axis as usize, parts), subject))
    }

    /// A tile that is reduced or scanned, if it has a layout.
    pub(super) fn subject(&self, arg: Expr) -> Option<Subject> {
        let Ok(Type::Tile(t)) = type_of(self.k, arg) else { return None };
        let ElemRef::Known(elem) = t.elem else { return None };
        Some(Subject { layout: layout_of(self.k, arg)?, shape: t.known_shape()?, elem })
    }

    /// The bits of an element's index along a dimension, if `arg` can be scanned along it; the bits that select `parts`
    /// are last.
    pub(super) fn scan_of(&self, arg: Expr, axis: u32, parts: u32) -> Option<Result<Vec<ScanBit>, NoReduction>> {
        let subject = self.subject(arg)?;
        Some(steps_of(&subject.layout, &subject.shape, axis as usize, parts))
    }

    pub(super) fn no_scan(&mut self, e: Expr, why: NoReduction) -> Reported {
        let why = match why {
            NoReduction::Warps => "elements along it are in several warps",
            NoReduction::Layout => "its layout mixes its dimensions",
        };
        self.unfit(e, &format!("a scan of a tile that has a layout: {why}; leave the layout out to have one found"))
    }

    /// Refuses an expression that has no layout. If a reduction in it cannot be computed, that is the reason.
    pub(super) fn without_layout(&mut self, e: Expr, what: &str) -> Reported {
        let mut rest = vec![e];
        while let Some(e) = rest.pop() {
            if let ExprData::Reduce { axis, parts, arg, .. } = self.k.exprs[e]
                && let Some((Err(why), _)) = self.reduction_of(arg, axis, parts)
            {
                return self.no_reduction(e, axis, why);
            }
            if let ExprData::Scan { axis, totals, arg, .. } = self.k.exprs[e]
                && let Some(Err(why)) = self.scan_of(arg, axis, totals.map_or(0, |totals| totals.parts))
            {
                return self.no_scan(e, why);
            }
            rest.extend(self.k.children(e));
        }
        self.unsupported(e, what)
    }

    pub(super) fn no_reduction(&mut self, e: Expr, axis: u32, why: NoReduction) -> Reported {
        match why {
            NoReduction::Warps => self.across_warps(e, axis),
            NoReduction::Layout => self.unfit(e, "a reduction of a tile whose layout mixes its dimensions"),
        }
    }

    /// Combines the partial results of a tile.
    pub(super) fn combine_partials(&mut self, at: Expr, tile: &Tile, partial: &Partial) -> Result<Tile, Reported> {
        let class = compute_class(tile.elem);
        let unsupported = |cx: &mut Self| cx.unsupported(at, &format!("parts of {} elements", tile.elem.name()));
        let Some(Join::Number(_, combine)) = Join::of(partial.op, tile.elem) else { return Err(unsupported(self)) };
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

    /// Elements of a row with their indices in it, in ascending order. Indices are relative to the thread's first
    /// element, which [`Lower::with_row_index`] adds. `false`: the elements are unordered, with absolute indices.
    pub(super) fn placed(&mut self, scope: &Scope, axis: usize, members: &[usize], xs: &[Reg]) -> (Vec<Part>, bool) {
        let own = |v: usize| scope.layout.coords(0, v as u64, &scope.dim_bits)[axis];
        if has_places(scope, axis) {
            let mut all: Vec<(u64, Reg)> = members.iter().zip(xs).map(|(&v, &x)| (own(v), x)).collect();
            all.sort_by_key(|&(at, _)| at);
            let part = |(at, value): (u64, Reg)| Part { value, place: Some(Operand::Imm(at as i64)) };
            return (all.into_iter().map(part).collect(), true);
        }
        let mut parts = Vec::new();
        for (&v, &value) in members.iter().zip(xs) {
            let at = self.coordinate(scope, axis, v);
            parts.push(Part { value, place: Some(self.in32(at).into()) });
        }
        (parts, false)
    }

    /// A part with its absolute index in the row.
    pub(super) fn with_row_index(&mut self, scope: &Scope, axis: usize, part: Part) -> Part {
        let Some(own) = part.place.clone().filter(|_| has_places(scope, axis)) else { return part };
        let first = self.coordinate(scope, axis, 0);
        let first = self.in32(first);
        Part { place: Some(self.emit.def(Class::B32, P::XorB32, [first.into(), own]).into()), ..part }
    }

    fn across_warps(&mut self, e: Expr, axis: u32) -> Reported {
        let note = match axis {
            1 => "of a product, give each warp whole rows: as many columns in `warp_tile` as the accumulator has",
            _ => "of a product, give each warp whole columns: as many rows in `warp_tile` as the accumulator has",
        };
        let message = format!(
            "a reduction along dimension {axis} of a tile with a layout whose elements along it are in several warps"
        );
        self.sink.report(
            Diagnostic::error(codes::UNFIT, self.k.expr_spans[e], message)
                .with_note(note)
                .with_note("elsewhere leave the layout of the tile out, or store the tile to shared memory and copy it to one of another layout"),
        )
    }
}

/// The steps of a scan: first those within segments, then those of segments.
pub(super) fn steps_of(
    layout: &RegLayout,
    shape: &[u64],
    axis: usize,
    parts: u32,
) -> Result<Vec<ScanBit>, NoReduction> {
    let mut steps = layout.scan(shape, axis, parts)?;
    steps.extend(layout.segments(shape, axis, parts)?);
    Ok(steps)
}

/// Whether each bit of an index along a dimension is a bit of the register number or of the thread's number. Then a
/// thread's elements are in ascending order of their registers.
fn has_places(scope: &Scope, axis: usize) -> bool {
    let base: u32 = scope.dim_bits[..axis].iter().sum();
    let along = ((1u64 << scope.dim_bits[axis]) - 1) << base;
    let mut columns = scope.layout.value().cols().iter().chain(scope.layout.thread().cols());
    columns.all(|c| (c & along).count_ones() <= 1)
}

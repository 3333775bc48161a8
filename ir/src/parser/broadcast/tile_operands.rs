//! Places of tiles: numbers of what is gathered, operands of products that are windows, single elements, and windows of what is computed.

use super::super::window_notes::{Notes, leaves, window};
use super::{Writer, extent};
use crate::attributes::CopyAttrs;
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Mma, Range, StmtData, ValueDef, View};
use crate::types::TileTy;
use crate::typing::{Extent, Type, register_tile, shape_text, type_of};

impl Writer<'_> {
    /// Tiles in other shapes among the numbers of what a window gathers.
    pub(super) fn numbers(&mut self, k: &mut Kernel, e: Expr) {
        let ExprData::View(view) = k.exprs[e].clone() else { return };
        for range in view.ranges {
            let (Range::At(at) | Range::Gather(at)) = range else { continue };
            let mut found = Vec::new();
            leaves(k, at, &mut found);
            for part in found {
                self.inside(k, part);
                self.in_shape(k, part, &[]);
            }
        }
    }

    /// Operands of a product that are windows. A window of a register tile becomes a separate tile, whose extents
    /// follow from the product if they are not given. A window of memory next to a tile is an operand itself. If both
    /// operands are windows of memory, the first becomes a tile.
    pub(super) fn operands(&mut self, k: &mut Kernel, m: &Mma) {
        let (a, b) = (extents_of_operand(k, self.notes, m.a), extents_of_operand(k, self.notes, m.b));
        let of_sum = match type_of(k, m.c) {
            Ok(Type::Tile(sum)) if sum.shape.len() >= 2 => {
                let first = sum.shape.len() - 2;
                [Some(sum.shape[first]), Some(sum.shape[first + 1])]
            }
            _ => [None, None],
        };
        for (e, own, other, beside) in [(m.a, a, [of_sum[0], b[0]], m.b), (m.b, b, [a[1], of_sum[1]], m.a)] {
            let (transposed, inner) = match k.exprs[e] {
                ExprData::Transpose(inner) => (true, inner),
                _ => (false, e),
            };
            let ExprData::View(view) = &k.exprs[inner] else { continue };
            let written = m.atom.is_some() && k.tile_ty(view.base).is_some_and(|tile| tile.reg_layout.is_some());
            if written {
                continue;
            }
            let in_memory = !matches!(k.values[view.base].def, ValueDef::Var(_));
            if in_memory && matches!(type_of(k, beside), Ok(Type::Tile(_))) {
                self.agrees(k, inner, own, other);
                continue;
            }
            // A register tile is an operand in either order, what is loaded has the order of the operand.
            let (of, transposed) = if in_memory { (e, false) } else { (inner, transposed) };
            let mut extents = [own[0].or(other[0]), own[1].or(other[1])];
            if transposed {
                extents.reverse();
            }
            let ([Some(rows), Some(columns)], Ok(ty @ Type::View(_))) = (extents, type_of(k, of)) else { continue };
            let Some(elem) = ty.elem().filter(|_| ty.rank() == 2) else { continue };
            let span = k.expr_spans[of];
            let shape = [rows, columns].into_iter().map(|n| extent(k, n, of)).collect();
            let src = k.expr(k.exprs[of].clone(), span);
            if let Some(said) = self.notes.remove(&of) {
                self.notes.insert(src, said);
            }
            let named = self.filled(k, "part", TileTy::registers(elem, shape, None), src);
            k.exprs[of] = k.exprs[named].clone();
        }
    }

    /// The extents of a window of memory that also follow from the other operand and the sum.
    fn agrees(&mut self, k: &Kernel, window: Expr, own: [Option<Extent>; 2], other: [Option<Extent>; 2]) {
        // A step is more than an extent.
        if self.notes.get(&window).is_none_or(|said| said.iter().any(|said| said.step.is_some())) {
            return;
        }
        let said = self.notes.remove(&window).unwrap_or_default();
        for (at, (own, other)) in own.into_iter().zip(other).enumerate() {
            if let (Some(own), Some(other)) = (own, other)
                && own.same(k, other) != Some(true)
            {
                let (own, other) = (shape_text(k, &[own]), shape_text(k, &[other]));
                let message = format!("this window has {own} elements, the product {other} there");
                let note = "leave the extent out: a window has as many elements as the product";
                let d = Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[window], message).with_note(note);
                self.wrong.push(d.with_left_out(said.get(at).and_then(|said| said.written)));
            }
        }
    }

    /// A name of something computed that has windows is a register tile.
    pub(super) fn named_tile(&self, k: &mut Kernel, s: Stmt, value: Value, init: Expr) {
        if self.windowed.contains(&value)
            && let Some(tile) = register_tile(k, init)
        {
            k.values[value].def = ValueDef::Var(tile);
            k.stmts[s] = StmtData::Var { value, init: Some(init) };
        }
    }

    /// A copy to one element of a register tile, `copy x -> p[2]`, is one to a window of one element that a scalar fills. The scalar also is between two
    /// elements of a buffer, `copy b[3] -> b[4]`: a barrier has its place after it.
    pub(super) fn single(&mut self, k: &mut Kernel, s: Stmt, dst: Expr) {
        let (ExprData::View(view), StmtData::Copy { src, attrs, .. }) = (k.exprs[dst].clone(), k.stmts[s].clone())
        else {
            return;
        };
        let (tile, in_buffer) = match k.values[view.base].def.clone() {
            ValueDef::Var(tile) if tile.reg_layout.is_none() => (tile, false),
            ValueDef::Smem(tile) if matches!(&k.exprs[src], ExprData::View(from) if from.base == view.base) => {
                (tile, true)
            }
            _ => return,
        };
        let places: Vec<Expr> =
            view.ranges.iter().filter_map(|range| if let Range::At(at) = *range { Some(at) } else { None }).collect();
        if tile.shape.is_empty() || places.len() != tile.shape.len() {
            return;
        }
        let span = k.expr_spans[dst];
        let scalar = k.value("element", span, ValueDef::Var(TileTy::registers(tile.elem, Vec::new(), None)));
        let (to, read) = (k.value_ref(scalar, span), k.value_ref(scalar, span));
        self.front.push(k.stmt(StmtData::Var { value: scalar, init: None }, span));
        self.front.push(k.stmt(StmtData::Copy { src, dst: to, attrs }, span));
        let src = if in_buffer {
            read
        } else {
            let ones = places.iter().map(|_| k.int(1, span)).collect();
            let part = k.value("part", span, ValueDef::Var(TileTy::registers(tile.elem, ones, None)));
            self.front.push(k.stmt(StmtData::Var { value: part, init: Some(read) }, span));
            let ranges = places.into_iter().map(|start| Range::From { start, end: None }).collect();
            k.exprs[dst] = ExprData::View(View { ranges, ..view });
            k.value_ref(part, span)
        };
        k.stmts[s] = StmtData::Copy { src, dst, attrs: CopyAttrs::default() };
    }
}

/// The given extents of an operand of a product.
fn extents_of_operand(k: &Kernel, notes: &Notes, e: Expr) -> [Option<Extent>; 2] {
    match type_of(k, e) {
        Ok(Type::Tile(tile)) if tile.shape.len() == 2 => [Some(tile.shape[0]), Some(tile.shape[1])],
        _ => match window(k, notes, e).map(|window| window.dims) {
            Some(dims) if dims.len() == 2 => [0, 1].map(|d: usize| dims[d].given_extent().or(dims[d].all)),
            _ => [None, None],
        },
    }
}

//! Places of tiles: numbers of what is gathered, operands of products that are windows, single elements, and windows of what is computed.

use super::super::window_notes::{Notes, Window, leaves, rank, window};
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
                if rank(k, self.notes, part) > 0 {
                    self.tile_of_window(k, part, &[]);
                }
            }
        }
    }

    /// Operands of a product that are windows, or are computed of windows. A window of a register tile becomes a
    /// separate tile, whose extents follow from the product if they are not given. What is read in memory next to a
    /// tile is an operand itself. If both operands are in memory, the first becomes a tile.
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
            let in_memory = match &k.exprs[inner] {
                ExprData::View(view) => {
                    if m.atom.is_some() && k.tile_ty(view.base).is_some_and(|tile| tile.reg_layout.is_some()) {
                        continue;
                    }
                    !matches!(k.values[view.base].def, ValueDef::Var(_))
                }
                _ if is_computed_of_windows(k, inner) => true,
                _ => continue,
            };
            if in_memory && matches!(type_of(k, beside), Ok(Type::Tile(_))) {
                self.agrees(k, e, own, other);
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
            if in_memory {
                self.agrees(k, e, own, extents);
            }
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

    /// The extents of windows of memory that also follow from the other operand and the sum.
    fn agrees(&mut self, k: &Kernel, operand: Expr, own: [Option<Extent>; 2], other: [Option<Extent>; 2]) {
        for (window, transposed) in windows_of_operand(k, self.notes, operand) {
            let Some(at) = window.from.first().copied() else { continue };
            // A step is more than an extent.
            if self.notes.get(&at).is_none_or(|said| said.iter().any(|said| said.step.is_some())) {
                continue;
            }
            self.notes.remove(&at);
            let mut wanted = [0, 1].map(|d: usize| other[d].or(own[d]));
            if transposed {
                wanted.reverse();
            }
            for (dim, wanted) in window.dims.iter().rev().zip(wanted.into_iter().rev()) {
                if let (Some(own), Some(wanted)) = (dim.extent, wanted)
                    && own.same(k, wanted) != Some(true)
                {
                    let (own, wanted) = (shape_text(k, &[own]), shape_text(k, &[wanted]));
                    let message = format!("this window has {own} elements, the product {wanted} there");
                    let note = "leave the extent out: a window has as many elements as the product";
                    let d = Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[at], message).with_note(note);
                    self.wrong.push(d.with_left_out(dim.written));
                }
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

/// Whether an operand of a product is computed element by element of windows of memory, which have no extents.
fn is_computed_of_windows(k: &Kernel, e: Expr) -> bool {
    let computed = matches!(k.exprs[e], ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. });
    computed && matches!(type_of(k, e), Ok(Type::View(view)) if view.rank == 2)
}

/// The windows of which an operand of a product is computed, and whether the operand is transposed after that.
fn windows_of_operand(k: &Kernel, notes: &Notes, e: Expr) -> Vec<(Window, bool)> {
    let (inner, transposed) = match k.exprs[e] {
        ExprData::Transpose(inner) if window(k, notes, e).is_none() => (inner, true),
        _ => (e, false),
    };
    let mut found = Vec::new();
    leaves(k, inner, &mut found);
    found.into_iter().filter_map(|e| Some((window(k, notes, e)?, transposed))).collect()
}

/// The given extents of an operand of a product.
fn extents_of_operand(k: &Kernel, notes: &Notes, e: Expr) -> [Option<Extent>; 2] {
    if let Ok(Type::Tile(tile)) = type_of(k, e)
        && tile.shape.len() == 2
    {
        return [Some(tile.shape[0]), Some(tile.shape[1])];
    }
    let mut found = [None, None];
    for (window, transposed) in windows_of_operand(k, notes, e) {
        let dims: Vec<_> = window.dims.iter().rev().map(|dim| dim.given_extent().or(dim.all)).collect();
        for (from_last, own) in dims.into_iter().enumerate().take(2) {
            let at = if transposed { from_last } else { 1 - from_last };
            found[at] = found[at].or(own);
        }
    }
    found
}

//! Elements of a vector in shared memory that a tile of indices names one by one: `s[_, p]` with `p: reg i32[32, 64]`.
//!
//! The tile is written out as a vector of indices, and what it names takes its extents again:
//!
//! ```text
//! var places = reg i32[2048]
//! copy reshape(p, [2048]) -> places
//! var part = reg f32[2048]
//! copy s[places] -> part
//! var looked_up = reg f32[32, 64]
//! copy reshape(part, [32, 64]) -> looked_up
//! ```
//!
//! Reshaped tiles stay in their registers, so no element moves. (A tensor takes the missing dimensions in its type:
//! [`super::super::broadcast_vectors`].)

use super::super::window_notes::rank;
use super::{Writer, extent, takes_dimensions};
use crate::entities::{Expr, Stmt};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::ops::Op;
use crate::types::TileTy;
use crate::typing::{Extent, Type, type_of};

impl Writer<'_> {
    /// The indices of a window of a vector, if they are a tile of more dimensions.
    pub(super) fn indices_of_vector(&self, k: &Kernel, e: Expr) -> Option<Expr> {
        let ExprData::View(view) = &k.exprs[e] else { return None };
        let said = self.notes.get(&e).filter(|_| takes_dimensions(k, view.base))?;
        let mut own = view.ranges.iter().zip(said).filter(|(_, said)| !said.repeats).map(|(range, _)| *range);
        let (Some(Range::At(at) | Range::Gather(at)), None) = (own.next(), own.next()) else { return None };
        (said.len() > 1 && rank(k, self.notes, at) == said.len()).then_some(at)
    }

    /// Replaces the window `e` by a tile of what `indices` name. Leaves it if their extents are not known yet.
    pub(super) fn looked_up(&mut self, k: &mut Kernel, e: Expr, indices: Expr) {
        let Ok(Type::Tile(of)) = type_of(k, indices) else { return };
        let ExprData::View(view) = k.exprs[e].clone() else { unreachable!("it is a window") };
        let Some(elem) = k.values[view.base].def.elem() else { return };
        self.notes.remove(&e);
        let (count, places) = self.as_vector(k, indices, &of.shape);
        let src = k.expr(ExprData::View(View { ranges: vec![Range::Gather(places)], ..view }), k.expr_spans[e]);
        let part = self.filled(k, "part", TileTy::registers(elem, vec![count], None), src);
        let shape = of.shape.iter().map(|&n| extent(k, n, e)).collect();
        k.exprs[e] = ExprData::Reshape { arg: part, shape, numbered: None };
        self.in_shape(k, e, &[]);
    }

    /// A copy to elements of a vector that `indices` name one by one.
    pub(super) fn scattered(&mut self, k: &mut Kernel, s: Stmt, indices: Expr) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { unreachable!("it is a copy") };
        let (Ok(Type::Tile(of)), Ok(ty)) = (type_of(k, indices), type_of(k, src)) else { return };
        let ExprData::View(view) = k.exprs[dst].clone() else { unreachable!("it is a window") };
        self.notes.remove(&dst);
        let (_, places) = self.as_vector(k, indices, &of.shape);
        let to = k.expr(ExprData::View(View { ranges: vec![Range::Gather(places)], ..view }), k.expr_spans[dst]);
        let from = match ty.elem().filter(|_| ty.rank() > 0) {
            Some(elem) => {
                let shape = of.shape.iter().map(|&n| extent(k, n, src)).collect();
                let whole = self.filled(k, "part", TileTy::registers(elem, shape, None), src);
                self.as_vector(k, whole, &of.shape).1
            }
            None => src,
        };
        if let StmtData::Copy { src, dst, .. } = &mut k.stmts[s] {
            (*src, *dst) = (from, to);
        }
    }

    /// The elements of a register tile of these extents as a vector, and how many there are.
    fn as_vector(&mut self, k: &mut Kernel, tile: Expr, shape: &[Extent]) -> (Expr, Expr) {
        let span = k.expr_spans[tile];
        let extents: Vec<Expr> = shape.iter().map(|&n| extent(k, n, tile)).collect();
        let arg = match k.exprs[tile] {
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)) => tile,
            _ => {
                let elem = type_of(k, tile).ok().and_then(|ty| ty.elem()).expect("a tile has elements");
                self.filled(k, "part", TileTy::registers(elem, extents.clone(), None), tile)
            }
        };
        let elem = type_of(k, arg).ok().and_then(|ty| ty.elem()).expect("a tile has elements");
        let known: Option<Vec<u64>> = shape.iter().map(|n| n.known()).collect();
        let count = |k: &mut Kernel, extents: &mut Vec<Expr>| match &known {
            Some(known) => {
                // The verifier refuses a tile of too many.
                let all = known.iter().fold(1u64, |all, &n| all.saturating_mul(n));
                k.int(i64::try_from(all).unwrap_or(i64::MAX), span)
            }
            None => {
                let first = extents.remove(0);
                let first = k.copy_expr(first);
                extents.iter().fold(first, |all, &n| {
                    let n = k.copy_expr(n);
                    k.expr(ExprData::Op { op: Op::Mul, args: vec![all, n] }, span)
                })
            }
        };
        let [n, own, all] = [(); 3].map(|()| count(k, &mut extents.clone()));
        let src = k.expr(ExprData::Reshape { arg, shape: vec![n], numbered: None }, span);
        (all, self.filled(k, "places", TileTy::registers(elem, vec![own], None), src))
    }
}

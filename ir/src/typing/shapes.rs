//! Tiles in other shapes, and one after the other.

use super::elementwise::join_element;
use super::types::{Extent, TileType, Type, TypeError, Types, shape_text};
use crate::codes;
use crate::diag::{Diagnostic, counted};
use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel};
use crate::reshape::Numbered;
use crate::space::Space;
use crate::types::ElemRef;

impl Types<'_> {
    /// The type of `reshape(arg, shape)`: as many elements as before.
    pub(super) fn reshaped(&self, e: Expr, arg: Expr, shape: &[Expr]) -> Result<Type, TypeError> {
        let k = self.k;
        let t = self.tile(arg, "reshape")?;
        let own: Vec<Extent> = shape.iter().map(|&n| Extent::of(k, n)).collect();
        let count = |shape: &[Extent]| shape.iter().try_fold(1u64, |all, n| n.known().map(|n| all.saturating_mul(n)));
        if own.is_empty() || count(&t.shape).zip(count(&own)).is_some_and(|(a, b)| a != b) {
            let (from, to) = (shape_text(k, &t.shape), shape_text(k, &own));
            let message = format!("{from} and {to} have different numbers of elements");
            return Err(self.error(codes::SHAPE_MISMATCH, e, message).into());
        }
        Ok(Type::Tile(TileType { shape: own, space: Space::Reg, ..t }))
    }

    /// The type of `permute(arg, order)`.
    pub(super) fn permuted(&self, e: Expr, arg: Expr, order: &[u32]) -> Result<Type, TypeError> {
        let t = self.tile(arg, "permute")?;
        let rank = t.shape.len();
        for &axis in order {
            if axis as usize >= rank {
                let message = format!("axis {axis} does not exist: the tile has {}", counted(rank, "dimension"));
                return Err(self.error(codes::BAD_AXIS, e, message).with_note("axes count from 0").into());
            }
        }
        if order.len() != rank || (0..rank as u32).any(|axis| !order.contains(&axis)) {
            let message = format!("{order:?} is no order of the {} of this tile", counted(rank, "dimension"));
            let all: Vec<usize> = (0..rank).rev().collect();
            let note = format!("it has each dimension once, as {all:?} does");
            return Err(self.error(codes::BAD_AXIS, e, message).with_note(note).into());
        }
        let shape = order.iter().map(|&axis| t.shape[axis as usize]).collect();
        Ok(Type::Tile(TileType { shape, space: Space::Reg, ..t }))
    }

    /// The type of elements that are read by their numbers.
    pub(super) fn numbered(&self, e: Expr, arg: Expr, shape: &[Expr], of: &Numbered) -> Result<Type, TypeError> {
        let k = self.k;
        let t = self.tile(arg, "reshape")?;
        let own: Vec<Extent> = shape.iter().map(|&n| Extent::of(k, n)).collect();
        let count = |shape: &[u64]| shape.iter().try_fold(1u64, |all, &n| all.checked_mul(n));
        let holds = |shape: &[Extent], part: &[u64]| {
            shape.len() == part.len() && shape.iter().zip(part).all(|(n, &part)| n.known().is_none_or(|n| part <= n))
        };
        let fits = holds(&t.shape, &of.from) && own.len() == of.to.len() && of.at.len() == of.to.len();
        let near = of.at.iter().all(|at| at.unsigned_abs() < 1 << 20);
        if !fits || !near || count(&of.from) != count(&of.to) || count(&of.from).is_none_or(|n| n == 0 || n > 1 << 20) {
            let message = format!("{:?} elements in {:?}", of.from, of.to);
            let d = self.error(codes::SHAPE_MISMATCH, e, message);
            let note =
                "both have as many elements, the buffer holds those that are read, and each shape has its dimensions";
            return Err(d.with_note(note).into());
        }
        Ok(Type::Tile(TileType { shape: own, space: Space::Reg, ..t }))
    }

    /// The type of `concat(args, axis)`, if the extents along the dimension are numbers. The parser writes out others (`parser/broadcast/concat.rs`).
    pub(super) fn concatenated(&self, e: Expr, args: &[Expr], axis: u32) -> Result<Type, TypeError> {
        let k = self.k;
        let (elem, tiles) = self.concat_operands(e, args, axis)?;
        let along = tiles.iter().try_fold(0u64, |sum, t| Some(sum.saturating_add(t.shape[axis as usize].known()?)));
        let mut shape = tiles.into_iter().next().expect("bug: the parser has two at least").shape;
        shape[axis as usize] = Extent::Known(along.ok_or_else(|| {
            let message = format!("how many elements there are along dimension {axis} is not known here");
            let note = "name the tile, `let joined = concat(a, b, 1)`, and use the name";
            TypeError::from(Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[e], message).with_note(note))
        })?);
        Ok(Type::Tile(TileType { elem, shape, space: Space::Reg }))
    }

    /// The tiles that `concat(args, axis)` joins, and the type of the elements. Extents along the other dimensions may be equal.
    fn concat_operands(&self, e: Expr, args: &[Expr], axis: u32) -> Result<(ElemRef, Vec<TileType>), TypeError> {
        let k = self.k;
        let tiles = args.iter().map(|&arg| self.tile(arg, "concat")).collect::<Result<Vec<_>, _>>()?;
        let mut all = tiles[0].clone();
        self.check_axis(e, axis, &all)?;
        for t in &tiles[1..] {
            let mut others = all.shape.iter().zip(&t.shape).enumerate().filter(|&(d, _)| d != axis as usize);
            let fits = t.shape.len() == all.shape.len() && others.all(|(_, (&x, &y))| x.same(k, y) != Some(false));
            let (Some(elem), true) = (join_element(k, all.elem, t.elem), fits) else {
                let (a, b) = (Type::Tile(all).describe(k), Type::Tile(t.clone()).describe(k));
                let message = format!("{a} and {b} cannot be concatenated along dimension {axis}");
                let note = "elements have one type, and extents along the other dimensions are the same";
                return Err(self.error(codes::SHAPE_MISMATCH, e, message).with_note(note).into());
            };
            all.elem = elem;
        }
        Ok((all.elem, tiles))
    }
}

/// The tiles that `concat(args, axis)` joins, and the type of the elements; `None`: they do not go together.
pub(crate) fn joined(k: &Kernel, e: Expr) -> Option<(ElemRef, Vec<TileType>)> {
    let ExprData::Concat { args, axis } = &k.exprs[e] else { return None };
    Types::of_expr(k, e).concat_operands(e, args, *axis).ok()
}

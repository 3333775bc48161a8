//! Tiles in other shapes (`copy reshape(x, [16, 4, 8]) -> y`), and windows of tiles (`concat`): registers get other positions in any layout.
//!
//! A layout is a map over the bits of an element's index. In row-major order these are the same bits in every shape, if extents are powers of two. Another extent counts as the
//! next power of two, so it may only be the outermost part of a dimension: 24 rows of 64 are 24 x 4 of 16, or 3 x 8 x 64, but not 8 x 3 rows.
//!
//! Other tiles go through a buffer, from which each thread reads its elements by their row-major index ([`Numbered`]):
//!
//! ```text
//! copy reshape(x, [48, 12]) -> y       ->   copy x -> x_rows,   copy reshape(x_rows, [48, 12], [12, 48] in [48, 12]) -> y
//! copy x[0.., 40..] -> y               ->   copy x -> x_rows,   copy reshape(x_rows, [48, 40], [48, 80] in [48, 80] at [0, -40]) -> y
//! copy x -> y[0.., 40..]               ->   copy x -> x_rows,   copy reshape(x_rows, [48, 80], [48, 40] in [48, 40] at [0, 40]) -> part,
//!                                           y = select(iota(y, 1) >= 40 && iota(y, 1) < 80, part, y)
//! ```

use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::{copy_shape, register_window};
use crate::assign_layouts::in_memory;
use crate::bool_storage::{NUMBERS, as_condition, as_stored};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::reshape::Numbered;
use tilec_ir::types::{Elem, ElemRef, Order, TileTy};
use tilec_ir::typing::{ViewDim, fixed_shape};

/// Makes tiles whose elements have no index bits in common go through buffers. `stay`: extents that are not padded to
/// powers of two.
pub(super) fn by_numbers(k: &mut Kernel, stay: &[u64]) {
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { continue };
        if *attrs != CopyAttrs::default() {
            continue;
        }
        if let ExprData::Reshape { arg, numbered: None, .. } = k.exprs[src] {
            let (Some(from), Some(to)) = (fixed_shape(k, arg), fixed_shape(k, src)) else { continue };
            // Unpadded extents, such as 24 rows, have other bits than padded ones.
            let kept = |shape: &[u64]| shape.iter().copied().filter(|n| stay.contains(n)).collect::<Vec<u64>>();
            if !same_bits(&from, &to) || kept(&from) != kept(&to) {
                let at = vec![0; to.len()];
                reshaped(k, s, arg, Numbered { from, to, at });
            }
            continue;
        }
        if let Some(window) = Window::of(k, (src, dst), src) {
            window.read(k, s, src);
        }
        if let Some(window) = Window::of(k, (src, dst), dst) {
            window.written(k, s, src);
        }
    }
}

/// A window of a register tile at a known position, whose extent is no power of two.
struct Window {
    of: Value,
    elem: ElemRef,
    /// Its extents, and those of the tile.
    shape: Vec<u64>,
    whole: Vec<u64>,
    at: Vec<i64>,
}

impl Window {
    fn of(k: &Kernel, (src, dst): (Expr, Expr), e: Expr) -> Option<Window> {
        let view = register_window(k, e).filter(|view| !view.transposed)?;
        let ty = k.tile_ty(view.base).filter(|ty| ty.reg_layout.is_none())?;
        let (whole, shape) = (k.const_shape(&ty.shape)?, copy_shape(k, src, dst)?);
        if view.base_dims().len() != view.dims.len() || shape.len() != whole.len() {
            return None;
        }
        let start = |dim: &ViewDim| match dim {
            ViewDim::From { starts, end: None } => starts.iter().map(|&e| k.as_int(e)).sum::<Option<i64>>(),
            _ => None,
        };
        let at: Vec<i64> = view.dims.iter().map(start).collect::<Option<_>>()?;
        let mut odd = false;
        for ((&n, &all), &at) in shape.iter().zip(&whole).zip(&at) {
            let end = u64::try_from(at).ok()?.checked_add(n)?;
            if end > all {
                return None;
            }
            odd |= n != all && !n.is_power_of_two();
        }
        odd.then_some(Window { of: view.base, elem: ty.elem, shape, whole, at })
    }

    /// Makes the statement copy the window from a buffer.
    fn read(self, k: &mut Kernel, s: Stmt, src: Expr) {
        let span = k.expr_spans[src];
        let name = k.values[self.of].name.clone();
        let part = tile(k, (&format!("{name}_part"), span), (self.elem, &self.shape), None);
        let var = k.stmt(StmtData::Var { value: part, init: None }, span);
        let all = k.value_ref(self.of, span);
        let at = self.at.iter().map(|at| -at).collect();
        let numbered = Numbered { from: self.whole.clone(), to: self.whole, at };
        let copies = numbered_copies(k, (&name, all), (self.elem, part), numbered);
        insert(k, s, [var].into_iter().chain(copies).collect());
        k.exprs[src] = ExprData::Ref(part);
    }

    /// Makes the statement write its value to the tile.
    fn written(self, k: &mut Kernel, s: Stmt, src: Expr) {
        let span = k.stmt_spans[s];
        let name = k.values[self.of].name.clone();
        begins(k, self.of);
        let part = tile(k, (&format!("{name}_part"), span), (self.elem, &self.whole), None);
        let var = k.stmt(StmtData::Var { value: part, init: None }, span);
        let numbered = Numbered { from: self.shape.clone(), to: self.shape.clone(), at: self.at.clone() };
        let copies = numbered_copies(k, (&name, src), (self.elem, part), numbered);
        insert(k, s, [var].into_iter().chain(copies).collect());
        let mut within: Option<Expr> = None;
        for (axis, ((&n, &all), &at)) in self.shape.iter().zip(&self.whole).zip(&self.at).enumerate() {
            for (op, bound) in [(Op::Ge, at), (Op::Lt, at + n as i64)] {
                if op == Op::Ge && at == 0 || op == Op::Lt && bound == all as i64 {
                    continue;
                }
                let like = k.value_ref(self.of, span);
                let place = k.expr(ExprData::Iota { axis: axis as u32, like }, span);
                let bound = k.int(bound, span);
                let own = k.binary(op, place, bound, span);
                within = Some(within.map_or(own, |all| k.binary(Op::And, all, own, span)));
            }
        }
        let (within, new, old) =
            (within.expect("bug: it is no window"), k.value_ref(part, span), k.value_ref(self.of, span));
        let both = if self.elem == ElemRef::Known(Elem::Bool) {
            let again = k.copy_expr(within);
            let outside = k.expr(ExprData::Op { op: Op::Not, args: vec![again] }, span);
            let (new, old) = (k.binary(Op::And, within, new, span), k.binary(Op::And, outside, old, span));
            k.binary(Op::Or, new, old, span)
        } else {
            k.expr(ExprData::Op { op: Op::Select, args: vec![within, new, old] }, span)
        };
        k.stmts[s] = StmtData::Assign { dst: self.of, src: both };
    }
}

/// Initialises a tile of which parts are kept when others are written.
fn begins(k: &mut Kernel, v: Value) {
    for s in all_stmts(k, k.body) {
        if let StmtData::Var { value, init: None } = k.stmts[s]
            && value == v
        {
            let zero = k.int(0, k.stmt_spans[s]);
            let truths = k.tile_ty(value).is_some_and(|ty| ty.elem == ElemRef::Known(Elem::Bool));
            let init = if truths { as_condition(k, zero) } else { zero };
            k.stmts[s] = StmtData::Var { value, init: Some(init) };
        }
    }
}

/// Makes a reshaped tile go through a buffer.
fn reshaped(k: &mut Kernel, s: Stmt, arg: Expr, numbered: Numbered) {
    let StmtData::Copy { dst, .. } = k.stmts[s] else { unreachable!("a tile in another shape is copied") };
    let (ExprData::Ref(from), ExprData::Ref(to)) = (&k.exprs[arg], &k.exprs[dst]) else {
        unreachable!("bug: a tile in another shape goes from one variable to another, which is verified")
    };
    let (name, to) = (k.values[*from].name.clone(), *to);
    let elem = k.tile_ty(to).expect("it is a tile").elem;
    let copies = numbered_copies(k, (&name, arg), (elem, to), numbered);
    let (block, index) = place_of(k, s);
    k.blocks[block].splice(index..=index, copies);
}

/// A buffer for `what`, the copy to it, and the copy of its elements to a tile. Conditions, and elements that share
/// bytes, are stored as other numbers.
fn numbered_copies(
    k: &mut Kernel,
    (name, what): (&str, Expr),
    (elem, to): (ElemRef, Value),
    numbered: Numbered,
) -> Vec<Stmt> {
    let span = k.expr_spans[what];
    let truths = elem == ElemRef::Known(Elem::Bool);
    let numbers = if truths { NUMBERS } else { in_memory(elem) };
    if numbers != elem {
        let whole = k.tile_ty(to).and_then(|ty| k.const_shape(&ty.shape)).expect("specialised");
        let [from, read] =
            [&numbered.from, &whole].map(|shape| tile(k, (&format!("{name}_held"), span), (numbers, shape), None));
        let held = if truths { as_stored(k, what) } else { k.expr(cast(numbers, what), span) };
        let stored = k.stmt(StmtData::Var { value: from, init: Some(held) }, span);
        let var = k.stmt(StmtData::Var { value: read, init: None }, span);
        let own = k.value_ref(from, span);
        let copies = numbered_copies(k, (name, own), (numbers, read), numbered);
        let number = k.value_ref(read, span);
        let src = if truths { as_condition(k, number) } else { k.expr(cast(elem, number), span) };
        let back = k.stmt(StmtData::Assign { dst: to, src }, span);
        return [stored, var].into_iter().chain(copies).chain([back]).collect();
    }
    let buffer = tile(k, (&format!("{name}_rows"), span), (elem, &numbered.from), Some(Order::Row));
    let alloc = k.stmt(StmtData::Alloc { value: buffer, over: Vec::new() }, span);
    let dst = k.value_ref(buffer, span);
    let fill = k.stmt(StmtData::Copy { src: what, dst, attrs: CopyAttrs::default() }, span);
    let whole = k.tile_ty(to).and_then(|ty| k.const_shape(&ty.shape)).expect("specialised");
    let shape = extents(k, &whole, span);
    let arg = k.value_ref(buffer, span);
    let src = k.expr(ExprData::Reshape { arg, shape, numbered: Some(Box::new(numbered)) }, span);
    let dst = k.value_ref(to, span);
    let read = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
    vec![alloc, fill, read]
}

fn cast(elem: ElemRef, arg: Expr) -> ExprData {
    ExprData::Cast { elem, arg }
}

fn insert(k: &mut Kernel, s: Stmt, stmts: Vec<Stmt>) {
    let (block, index) = place_of(k, s);
    k.blocks[block].splice(index..index, stmts);
}

fn extents(k: &mut Kernel, shape: &[u64], span: Span) -> Vec<Expr> {
    shape.iter().map(|&n| k.int(n as i64, span)).collect()
}

/// A register tile, or with an order a buffer.
fn tile(k: &mut Kernel, (name, span): (&str, Span), (elem, shape): (ElemRef, &[u64]), order: Option<Order>) -> Value {
    let shape = extents(k, shape, span);
    let ty = TileTy { order, ..TileTy::registers(elem, shape, None) };
    let def = if order.is_some() { ValueDef::Smem(ty) } else { ValueDef::Var(ty) };
    k.value(name, span, def)
}

/// Whether the row-major index of an element has the same bits in both shapes, where extents count as the next power of
/// two.
fn same_bits(from: &[u64], to: &[u64]) -> bool {
    let ((mut a, mut b), mut left) = ((from.iter().rev(), to.iter().rev()), (1u64, 1u64));
    loop {
        if left.0 == 1 {
            left.0 = match a.find(|&&n| n != 1) {
                Some(&n) => n,
                None => return left.1 == 1 && b.all(|&n| n == 1),
            };
        }
        if left.1 == 1 {
            left.1 = match b.find(|&&n| n != 1) {
                Some(&n) => n,
                None => return false,
            };
        }
        let inner = left.0.min(left.1);
        if !left.0.is_multiple_of(inner) || !left.1.is_multiple_of(inner) {
            return false;
        }
        left = (left.0 / inner, left.1 / inner);
        if left != (1, 1) && !inner.is_power_of_two() {
            return false;
        }
    }
}

/// Gives reshapes the shape of the tiles to which they are copied.
pub(super) fn follow(k: &mut Kernel) {
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let (ExprData::Reshape { arg, numbered, .. }, Some(shape)) = (&k.exprs[src], fixed_shape(k, dst)) else {
            continue;
        };
        let (arg, numbered, span) = (*arg, numbered.clone(), k.expr_spans[src]);
        let shape = shape.into_iter().map(|n| k.int(n as i64, span)).collect();
        k.exprs[src] = ExprData::Reshape { arg, shape, numbered };
    }
}

#[cfg(test)]
mod tests {
    use super::same_bits;

    #[test]
    fn extents_that_are_no_powers_of_two_are_outermost() {
        let yes: [(&[u64], &[u64]); 8] = [
            (&[16, 64], &[16, 4, 16]),
            (&[24, 64], &[3, 8, 64]),
            (&[24, 64], &[24, 4, 16]),
            (&[3, 8], &[24]),
            (&[8, 24], &[8, 3, 8]),
            (&[12, 8], &[3, 32]),
            (&[7], &[1, 7, 1]),
            (&[1], &[1, 1]),
        ];
        for (from, to) in yes {
            assert!(same_bits(from, to) && same_bits(to, from), "{from:?} {to:?}");
        }
        let no: [(&[u64], &[u64]); 4] = [(&[8, 3], &[24]), (&[6, 4], &[8, 3]), (&[4, 6], &[24]), (&[6, 35], &[10, 21])];
        for (from, to) in no {
            assert!(!same_bits(from, to) && !same_bits(to, from), "{from:?} {to:?}");
        }
    }
}

//! Scale factors of partial sums, loaded through slots.
//!
//! ```text
//! copy s -> s_read
//! part = mma<m64k32_f8>(a, b, part)
//! acc = acc + part * (s_read * f)
//! ```
//!
//! A slot is released when all of it has been read. So scales of rows are read in front of the product, where a thread needs a register for each of
//! its rows. Their slot is released with those of the operands, and nothing is read between the completion of a partial sum and its addition.
//!
//! A scalar, `copy scale[kb, j] -> f`, would be waited for in every iteration. TMA loads the 16 bytes that contain it into slots:
//! `copy scale[kb / 4 * 4.., j] -> f_tile`, `copy f_tile[kb % 4] -> f`.

use super::apply_wgmma::DecidedProduct;
use super::k_slices::{declare_beside, insert_at, insert_before_outermost};
use crate::Options;
use crate::analysis::access_width::{MAX_ACCESS_BYTES, known_elem};
use crate::analysis::facts::contiguous_dim;
use crate::analysis::reduction;
use crate::analysis::uses::{loop_body, path_to, place_of};
use crate::analysis::views::plain_var;
use crate::graph::accesses::Accesses;
use crate::producer_fills;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Range, StmtData, ValueDef, View};
use tilec_ir::ops::Op;
use tilec_ir::types::{ElemRef, TileTy};
use tilec_ir::typing::fixed_shape;

/// Makes per-row factors of partial sums be read in front of the product.
pub(super) fn read_in_front(k: &mut Kernel, decided: &DecidedProduct) {
    let product = decided.product.s;
    let around = path_to(k, product).into_iter().rev().find_map(|(block, i)| loop_body(k, k.blocks[block][i]));
    let Some(part) = around.and_then(|body| reduction::of(k, body).ok()).and_then(|step| step.part) else { return };
    let StmtData::Assign { src, .. } = k.stmts[part.sum] else { unreachable!("a part is added by an assignment") };
    let mut found = Vec::new();
    buffers(k, src, &mut found);
    let (block, from) = place_of(k, product);
    let (_, to) = place_of(k, part.sum);
    let between: Vec<Stmt> = k.blocks[block][from..to].to_vec();
    // A thread has many of the instruction's columns, so factors of columns are not loaded early.
    let per_row = usize::from(!decided.form.swap);
    for e in found {
        let (v, shape) = (buffer(k, e), fixed_shape(k, e).unwrap_or_default());
        let written = between.iter().any(|&s| Accesses::of(k, s).get(v).is_some_and(|touch| touch.writes));
        if shape.len() != 2 || shape[per_row] != 1 || written {
            continue;
        }
        let span = k.expr_spans[e];
        let name = format!("{}_read", k.values[v].name);
        let tile = declare_beside(k, product, &name, known_elem(k, v), &shape, span);
        let (src, dst) = (k.value_ref(v, span), k.value_ref(tile, span));
        let copy = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
        let place = place_of(k, product);
        insert_at(k, place, vec![copy]);
        k.exprs[e] = ExprData::Ref(tile);
    }
}

/// Makes scalar factors of partial sums be loaded through slots, if TMA can: returns the copies.
pub(super) fn load_through_slots(k: &mut Kernel, options: &Options, decided: &DecidedProduct) -> Vec<Stmt> {
    let product = decided.product.s;
    let around = path_to(k, product).into_iter().rev().find_map(|(block, i)| loop_body(k, k.blocks[block][i]));
    let Some(body) = around else { return Vec::new() };
    let Some(part) = reduction::of(k, body).ok().and_then(|step| step.part) else { return Vec::new() };
    let mut brought = Vec::new();
    for f in part.factors {
        let copies = k.blocks[body].iter().copied().take_while(|&s| s != product);
        let Some(copy) = copies.into_iter().find(|&s| copies_number(k, s, f)) else { continue };
        let before = k.clone();
        let fed = through_slot(k, (copy, f), product).is_some_and(|slot| {
            let feeds = producer_fills::plan(k, options, &[slot]);
            feeds.is_ok_and(|feeds| feeds.iter().all(|feed| feed.mechanism == producer_fills::How::Tensor))
        });
        if fed {
            brought.push(copy);
        } else {
            *k = before;
        }
    }
    brought
}

/// Whether a statement copies a single element of a tensor to the scalar `f`, without written attributes.
fn copies_number(k: &Kernel, s: Stmt, f: Value) -> bool {
    let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return false };
    let scalar = k.tile_ty(f).is_some_and(|tile| tile.shape.is_empty());
    scalar
        && *attrs == CopyAttrs::default()
        && plain_var(k, dst) == Some(f)
        && matches!(&k.exprs[src], ExprData::View(view) if k.tensor_ty(view.base).is_some())
}

/// Replaces a copy of a number by a copy of the 16 bytes that contain it. They go to a buffer, from which the number is
/// read in front of the product. `None`: not possible.
fn through_slot(k: &mut Kernel, (copy, f): (Stmt, Value), product: Stmt) -> Option<Value> {
    let StmtData::Copy { src, .. } = k.stmts[copy] else { unreachable!("a number is copied") };
    let ExprData::View(mut view) = k.exprs[src].clone() else { unreachable!("of a tensor") };
    let span = k.stmt_spans[copy];
    let elem = known_elem(k, view.base);
    if elem != known_elem(k, f) || elem.bits() < 8 {
        return None;
    }
    let contiguous = contiguous_dim(k, view.base)?;
    let range = view.ranges.get_mut(contiguous)?;
    let Range::At(index) = *range else { return None };
    let many = i64::from(elem.per(MAX_ACCESS_BYTES));
    let by = |k: &mut Kernel, op: Op, e: Expr| {
        let n = k.int(many, span);
        k.binary(op, e, n, span)
    };
    let group = by(k, Op::Div, index);
    let start = by(k, Op::Mul, group);
    let index = k.copy_expr(index);
    let place_in_group = by(k, Op::Rem, index);
    *range = Range::From { start, end: None };
    let extent = k.int(many, span);
    let name = format!("{}_tile", k.values[f].name);
    let tile = TileTy::registers(ElemRef::Known(elem), vec![extent], None);
    let slot = k.value(&name, span, ValueDef::Smem(tile));
    let alloc = k.stmt(StmtData::Alloc { value: slot, over: Vec::new() }, span);
    insert_before_outermost(k, copy, alloc);
    let (from, to) = (k.expr(ExprData::View(view), span), k.value_ref(slot, span));
    k.stmts[copy] = StmtData::Copy { src: from, dst: to, attrs: CopyAttrs::default() };
    let element = View { base: slot, slot: None, ranges: vec![Range::At(place_in_group)] };
    let (src, dst) = (k.expr(ExprData::View(element), span), k.value_ref(f, span));
    let read = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
    let place = place_of(k, product);
    insert_at(k, place, vec![read]);
    Some(slot)
}

/// The buffers in shared memory that an expression reads unconverted.
fn buffers(k: &Kernel, e: Expr, out: &mut Vec<Expr>) {
    match k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Smem(_)) => out.push(e),
        _ => k.children(e).into_iter().for_each(|child| buffers(k, child, out)),
    }
}

fn buffer(k: &Kernel, e: Expr) -> Value {
    match k.exprs[e] {
        ExprData::Ref(v) => v,
        _ => unreachable!("a buffer as it is"),
    }
}

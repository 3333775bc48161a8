//! Register tiles that are filled from memory.
//!
//! `var x = reg f32[8, 64] = X[i.., j..]` and `x = X[i.., j..]` become `copy X[i.., j..] -> x`, so that later passes
//! make it wide and load it ahead. Windows of tensors that are operands, `acc = acc + X[i.., j..]`, are copied to tiles
//! in front of the statement, for the same reason. If a copy computes from a buffer that it fills,
//! `copy s * sum(x, 1) -> s`, the result goes through a register tile, so that all elements are read before one is
//! written. `let x = s` of a buffer names the values at that point, so it becomes a register tile that is filled in the
//! same way. A `let` of a window of a tensor is another name for it.

use super::pad::in_context;
use crate::analysis::distribution::copy_layout;
use crate::rewrite::same_expr;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::types::TileTy;
use tilec_ir::typing::{Type, fixed_shape, register_tile, resolve_view, type_of};

/// Replaces assignments of memory windows to register tiles by copies.
pub(super) fn assignments_to_copies(k: &mut Kernel) {
    k.replace_statements(k.body, &mut statement);
}

fn statement(k: &mut Kernel, s: Stmt, out: &mut Vec<Stmt>) {
    match k.stmts[s] {
        StmtData::Var { value, init: Some(e) } if moves(k, e, value) => {
            k.stmts[s] = StmtData::Var { value, init: None };
            out.push(s);
            fill(k, s, e, value, out);
        }
        StmtData::Let { value, init } if is_buffer(k, init) => {
            let tile = register_tile(k, init).expect("a buffer has extents");
            k.values[value].def = ValueDef::Var(tile);
            k.stmts[s] = StmtData::Var { value, init: None };
            out.push(s);
            fill(k, s, init, value, out);
        }
        StmtData::Assign { dst, src } if moves(k, src, dst) => fill(k, s, src, dst, out),
        StmtData::Var { value, init: Some(src) } | StmtData::Assign { dst: value, src } => {
            operands(k, s, src, value, out);
            out.push(s);
        }
        StmtData::Copy { src, dst, ref attrs } if *attrs == CopyAttrs::default() && is_spread(k, src, dst) => {
            let ExprData::Ref(value) = k.exprs[dst] else { unreachable!("a register tile has a name") };
            let elem = k.tile_ty(value).expect("a register tile has a type").elem;
            let span = k.expr_spans[src];
            let same = matches!(type_of(k, src), Ok(Type::Scalar(own)) if own == elem);
            let src = if same { src } else { k.expr(ExprData::Cast { elem, arg: src }, span) };
            k.stmts[s] = StmtData::Assign { dst: value, src };
            out.push(s);
        }
        StmtData::Copy { src, dst, ref attrs } if attrs.is_by_threads() && rewrites(k, src, dst, attrs) => {
            let attrs = attrs.clone();
            let Some(tile) = between(k, src, dst) else { return out.push(s) };
            let span = k.stmt_spans[s];
            let value = k.value("rewritten", span, ValueDef::Var(tile));
            out.push(k.stmt(StmtData::Var { value, init: None }, span));
            fill(k, s, src, value, out);
            let src = k.value_ref(value, span);
            k.stmts[s] = StmtData::Copy { src, dst, attrs };
            out.push(s);
        }
        _ => out.push(s),
    }
}

/// Whether a copy sets all elements of a register tile to one number.
fn is_spread(k: &Kernel, src: Expr, dst: Expr) -> bool {
    let ExprData::Ref(value) = k.exprs[dst] else { return false };
    let is_tile = matches!(&k.values[value].def, ValueDef::Var(t) if !t.shape.is_empty());
    is_tile && matches!(type_of(k, src), Ok(Type::Scalar(_)))
}

/// Inserts a copy that fills a register tile, in place of the statement `s`.
fn fill(k: &mut Kernel, s: Stmt, src: Expr, value: Value, out: &mut Vec<Stmt>) {
    let span = k.stmt_spans[s];
    let dst = k.value_ref(value, span);
    out.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
}

/// Loads the tensor windows among the operands of `e`, whose value the tile `to` gets, in front of the statement `s`.
fn operands(k: &mut Kernel, s: Stmt, e: Expr, to: Value, out: &mut Vec<Stmt>) {
    let Some(shape) = k.tile_ty(to).and_then(|tile| k.const_shape(&tile.shape)) else { return };
    let mut found: Vec<(Expr, Vec<u64>)> = Vec::new();
    in_context(k, e, &shape, &mut |e, shape| {
        if is_load(k, e, shape) {
            found.push((e, shape.to_vec()));
        }
    });
    let mut loaded: Vec<(Expr, Value)> = Vec::new();
    for (e, shape) in found {
        let known = loaded.iter().find(|&&(other, value)| {
            same_expr(k, other, e)
                && k.tile_ty(value).and_then(|tile| k.const_shape(&tile.shape)).as_ref() == Some(&shape)
        });
        let value = if let Some(&(_, value)) = known {
            value
        } else {
            let span = k.expr_spans[e];
            let base = resolve_view(k, e).expect("a load is of a window").base;
            let data = &k.values[base];
            let elem = data.def.elem().expect("a tensor has elements");
            let name = format!("{}_now", data.name);
            let shape = shape.iter().map(|&n| k.int(n.cast_signed(), span)).collect();
            let value = k.value(&name, span, ValueDef::Var(TileTy::registers(elem, shape, None)));
            let src = k.expr(k.exprs[e].clone(), span);
            out.push(k.stmt(StmtData::Var { value, init: None }, k.stmt_spans[s]));
            fill(k, s, src, value, out);
            loaded.push((src, value));
            value
        };
        k.exprs[e] = ExprData::Ref(value);
    }
}

/// Whether `e` is a window of a tensor with all elements of a tile of this shape, without broadcast dimensions.
fn is_load(k: &Kernel, e: Expr, shape: &[u64]) -> bool {
    let Some(view) = resolve_view(k, e) else { return false };
    let Some(tensor) = k.tensor_ty(view.base) else { return false };
    let kept = view.base_dims();
    let one = |d: usize| tensor.shape.get(d).and_then(|&n| k.as_int(n)) == Some(1);
    !shape.is_empty() && kept.len() == shape.len() && !kept.into_iter().any(|d| tensor.repeats.contains(&d) || one(d))
}

/// Whether a copy to a buffer reads elements of it that another thread may write: unless written layouts give each
/// element to one thread.
fn rewrites(k: &Kernel, src: Expr, dst: Expr, attrs: &CopyAttrs) -> bool {
    fn reads(k: &Kernel, e: Expr, of: (Value, Option<Expr>)) -> bool {
        match resolve_view(k, e) {
            Some(view) => view.base == of.0 && !of.1.is_some_and(|dst| is_buffer(k, e) && same_expr(k, e, dst)),
            None => k.children(e).into_iter().any(|child| reads(k, child, of)),
        }
    }
    let Some(buffer) = resolve_view(k, dst).filter(|view| view.space(k).is_of_block()) else { return false };
    let once = copy_layout(k, src, dst, attrs).is_some_and(|layout| !layout.is_replicated());
    reads(k, src, (buffer.base, once.then_some(dst)))
}

/// The register tile for the new contents of a buffer; `None`: its extents are not known.
fn between(k: &mut Kernel, src: Expr, dst: Expr) -> Option<TileTy> {
    let elem = k.tile_ty(resolve_view(k, dst)?.base)?.elem;
    let tile = [src, dst].into_iter().find_map(|e| register_tile(k, e))?;
    Some(TileTy { elem, ..tile })
}

/// Whether `e` is a window of memory with the extents of the tile `to`.
fn moves(k: &Kernel, e: Expr, to: Value) -> bool {
    let in_memory = resolve_view(k, e).is_some_and(|view| view.space(k).is_memory());
    let extents = k.tile_ty(to).and_then(|tile| k.const_shape(&tile.shape));
    in_memory && extents.is_some() && fixed_shape(k, e).is_none_or(|own| Some(own) == extents)
}

/// Whether `e` is a whole shared-memory buffer, transposed or not.
fn is_buffer(k: &Kernel, e: Expr) -> bool {
    let in_block = resolve_view(k, e).is_some_and(|view| view.space(k).is_of_block());
    in_block && matches!(type_of(k, e), Ok(Type::Tile(_)))
}

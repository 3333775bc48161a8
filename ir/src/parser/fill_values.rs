//! Fill values in expressions: `copy max(m, X[i.., j..]) -> m fill -inf`.
//!
//! Each window of a tensor in such an expression becomes a tile that is filled by a copy of the window. `write_out`
//! puts `var x_read = reg f32[64, 64]`, `copy X[i.., j..] -> x_read fill -inf` before the statement, and the expression
//! reads `x_read`. After that, `fill` occurs only in copies of windows.

use crate::attributes::CopyAttrs;
use crate::entities::{Expr, Stmt};
use crate::kernel::{ExprData, Kernel, Mechanism, StmtData, ValueDef};
use crate::types::TileTy;
use crate::typing::{ResolvedView, resolve_view};

/// Writes out the tiles.
pub(super) fn write_out(k: &mut Kernel) {
    k.replace_statements(k.body, &mut |k, s, out| {
        if let StmtData::Copy { src, dst, ref attrs } = k.stmts[s]
            && attrs.fill.is_some()
            && attrs.mechanism == Mechanism::Registers
            && resolve_view(k, src).is_none()
            && let Some(shape) = shape_of(k, dst)
        {
            through_tiles(k, s, (src, &shape), out);
        }
        out.push(s);
    });
}

/// The extents of the tile that a copy fills.
fn shape_of(k: &Kernel, dst: Expr) -> Option<Vec<Expr>> {
    match k.exprs[dst] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_) | ValueDef::Smem(_)) => {
            k.tile_ty(v).map(|t| t.shape.clone())
        }
        _ => None,
    }
}

fn through_tiles(k: &mut Kernel, s: Stmt, (src, shape): (Expr, &[Expr]), out: &mut Vec<Stmt>) {
    let span = k.stmt_spans[s];
    let StmtData::Copy { attrs, .. } = k.stmts[s].clone() else { unreachable!("it is a copy") };
    let mut windows = Vec::new();
    windows_in(k, src, &mut windows);
    // Tiles of as many dimensions; of others the verifier says what is wrong.
    windows.retain(|(_, view)| view.base_dims().len() == shape.len());
    for (e, view) in &windows {
        let tensor = k.tensor_ty(view.base).expect("a window of a tensor").clone();
        let kept = view.base_dims();
        let extent = |k: &mut Kernel, (&d, &n): (&usize, &Expr)| match tensor.repeats.contains(&d) {
            true => k.int(1, span),
            false => k.copy_expr(n),
        };
        let shape = kept.iter().zip(shape).map(|pair| extent(k, pair)).collect();
        let name = format!("{}_read", k.values[view.base].name.to_lowercase());
        let value = k.value(&name, span, ValueDef::Var(TileTy::registers(tensor.elem, shape, None)));
        let window = k.exprs[*e].clone();
        let window = k.expr(window, k.expr_spans[*e]);
        k.exprs[*e] = ExprData::Ref(value);
        let to = k.value_ref(value, span);
        let load = CopyAttrs { vec: attrs.vec, check: attrs.check.clone(), ..load(k, &attrs) };
        out.push(k.stmt(StmtData::Var { value, init: None }, span));
        out.push(k.stmt(StmtData::Copy { src: window, dst: to, attrs: load }, span));
    }
    if !windows.is_empty()
        && let StmtData::Copy { attrs, .. } = &mut k.stmts[s]
    {
        (attrs.fill, attrs.vec, attrs.check, attrs.when) = (None, None, None, None);
    }
}

/// How a window of a tensor is loaded for a copy with these attributes.
pub(super) fn load(k: &mut Kernel, attrs: &CopyAttrs) -> CopyAttrs {
    let when = attrs.when.map(|cond| k.copy_expr(cond));
    CopyAttrs { fill: attrs.fill, when, ..CopyAttrs::default() }
}

/// Whether windows of tensors are in an expression.
pub(super) fn reads_tensors(k: &Kernel, e: Expr) -> bool {
    let mut windows = Vec::new();
    windows_in(k, e, &mut windows);
    !windows.is_empty()
}

/// The windows of tensors in an expression, but for single elements.
fn windows_in(k: &Kernel, e: Expr, found: &mut Vec<(Expr, ResolvedView)>) {
    match resolve_view(k, e) {
        Some(view) if k.tensor_ty(view.base).is_some() && !view.base_dims().is_empty() => found.push((e, view)),
        Some(_) => {}
        None if matches!(k.exprs[e], ExprData::Iota { .. } | ExprData::Index(_)) => {}
        None => k.children(e).into_iter().for_each(|child| windows_in(k, child, found)),
    }
}

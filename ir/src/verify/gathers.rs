//! Windows whose elements are gathered or scattered along dimensions: rule 33.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt};
use crate::kernel::{CopyAttrs, ExprData, Range, StmtData, ValueDef};
use crate::typing::{Extent, Type, shape_text};
use crate::verify::context::Cx;

/// Checks the gathered windows of a copy.
pub(super) fn check(
    cx: &mut Cx<'_, '_>,
    s: Stmt,
    (src, dst): (Expr, Expr),
    (from, to): (&Type, &Type),
    attrs: &CopyAttrs,
) {
    let mut found = Vec::new();
    for e in [src, dst] {
        windows(cx, e, &mut found);
    }
    let shape = match (from, to) {
        (_, Type::Tile(t)) | (Type::Tile(t), _) => Some(t.shape.clone()),
        _ => None,
    };
    for Gathered { window: own, seen: e } in found {
        window(cx, (own, e), shape.as_deref());
        if attrs.is_tensor() || attrs.unaligned().is_some() || attrs.is_prefetch() || attrs.is_fragment() {
            let message = "`tma`, `unaligned`, `prefetch` and `fragment` cannot be used with gathered windows";
            cx.report(
                Diagnostic::error(codes::BAD_COPY, cx.k.stmt_spans[s], message)
                    .with_place(cx.k.expr_spans[e], "its elements are gathered or scattered")
                    .with_note("without it threads copy them, each where its number says"),
            );
        }
    }
}

/// A gathered window, and the expression of the copy in which it is: the window itself, or its transposition.
struct Gathered {
    window: Expr,
    seen: Expr,
}

/// The gathered windows of an expression that a copy moves element by element.
fn windows(cx: &Cx<'_, '_>, e: Expr, found: &mut Vec<Gathered>) {
    match cx.k.exprs[e] {
        ExprData::View(_) if is_gathered(cx, e) => found.push(Gathered { window: e, seen: e }),
        ExprData::Transpose(arg) if is_gathered(cx, arg) => found.push(Gathered { window: arg, seen: e }),
        ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } => {
            cx.k.children(e).into_iter().for_each(|c| windows(cx, c, found));
        }
        _ => {}
    }
}

fn is_gathered(cx: &Cx<'_, '_>, e: Expr) -> bool {
    matches!(&cx.k.exprs[e], ExprData::View(view) if view.ranges.iter().any(|r| matches!(r, Range::Gather(_))))
}

fn window(cx: &mut Cx<'_, '_>, (own, e): (Expr, Expr), shape: Option<&[Extent]>) {
    let k = cx.k;
    let Some(view) = cx.types.resolve_view(e) else { return };
    let name = cx.name(view.base).to_owned();
    let tensor = k.tensor_ty(view.base);
    let buffer = matches!(k.values[view.base].def, ValueDef::Smem(_) | ValueDef::Channel { .. });
    if tensor.is_none() && !buffer {
        let message = format!("`{name}` is neither a tensor nor a buffer, and elements are gathered from these");
        let note =
            "copy it to shared memory, and gather there: `let s = smem f32[256]`, `copy x -> s`, `copy s[rows] -> y`";
        cx.error_at(codes::BAD_VIEW, e, message, note);
    }
    for (w, numbers) in view.gathered_dims() {
        if !view.is_by_element(k, w, numbers) {
            indices(cx, (w, numbers), shape);
        } else if own != e {
            let message = "a transposed window that is gathered element by element";
            let note = "copy the elements into a tile first, and transpose that: `copy X[i.., p] -> x`, `transpose(x)`";
            cx.error_at(codes::BAD_VIEW, e, message, note);
        } else if tensor.is_some_and(|t| !t.padded.is_empty()) {
            let message = format!("`{name}` has padding, and elements of it are not gathered one by one");
            cx.error_at(codes::BAD_VIEW, e, message, "give each row one index: `X[rows, j..]` of a vector `rows`");
        } else {
            of_elements(cx, (w, numbers), shape);
        }
    }
}

/// Checks that a tile of indices, of dimension `w` of the copied window, has an index for each element.
fn of_elements(cx: &mut Cx<'_, '_>, (w, numbers): (usize, Expr), shape: Option<&[Extent]>) {
    let k = cx.k;
    let (Ok(Type::Tile(tile)), Some(shape)) = (cx.types.type_of(numbers), shape) else { return };
    let repeats = |d: usize, n: Extent| d != w && n == Extent::Known(1);
    let mut sides = tile.shape.iter().copied().zip(shape).enumerate();
    if sides.any(|(d, (own, &all))| own.same(k, all) == Some(false) && !repeats(d, own)) {
        let (own, all) = (shape_text(k, &tile.shape), shape_text(k, shape));
        let message = format!("indices of extents {own} for dimension {w} of a tile of extents {all}");
        cx.report(Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[numbers], message).with_note(
            "there is an index for each element of the tile; an extent of 1 along another dimension repeats the indices",
        ));
    }
}

/// Checks that a tile of indices has an index for each element along dimension `w` of the copied window.
fn indices(cx: &mut Cx<'_, '_>, (w, numbers): (usize, Expr), shape: Option<&[Extent]>) {
    let k = cx.k;
    let Ok(Type::Tile(tile)) = cx.types.type_of(numbers) else { return };
    let own = tile.shape.iter().copied().find(|&n| n != Extent::Known(1)).unwrap_or(Extent::Known(1));
    if let Some(&extent) = shape.and_then(|shape| shape.get(w))
        && own.same(k, extent) == Some(false)
    {
        let (own, all) = (shape_text(k, &[own]), shape_text(k, shape.unwrap_or_default()));
        let message = format!("{own} indices for dimension {w} of a tile of extents {all}");
        cx.report(
            Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[numbers], message)
                .with_note("there is an index for each element of the tile along the dimension"),
        );
    }
}

/// Reports gathered windows in statements that do not copy element by element.
pub(super) fn elsewhere(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut allowed = Vec::new();
    let mut all = Vec::new();
    for s in k.statements() {
        if let StmtData::Copy { src, dst, .. } = k.stmts[s] {
            [src, dst].into_iter().for_each(|e| windows(cx, e, &mut allowed));
        }
        k.stmts[s].exprs().into_iter().for_each(|e| views(cx, e, &mut all));
    }
    for e in all.into_iter().filter(|&e| !allowed.iter().any(|g| g.window == e)) {
        let message = "only copies gather and scatter elements";
        let note = "copy the rows into a tile first: `var x = reg f32[64, 64]`, `copy X[rows, j..] -> x`";
        cx.error_at(codes::BAD_VIEW, e, message, note);
    }
}

fn views(cx: &Cx<'_, '_>, e: Expr, found: &mut Vec<Expr>) {
    if is_gathered(cx, e) {
        found.push(e);
    }
    cx.k.children(e).into_iter().for_each(|c| views(cx, c, found));
}

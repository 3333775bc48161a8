//! Copies that combine with memory: the place of old values, and the types that each operation allows.

use crate::atomics::Combining;
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt};
use crate::kernel::{CopyAttrs, ValueDef};
use crate::space::Space;
use crate::typing::{Extent, ResolvedView, Type, shape_text};
use crate::verify::context::Cx;

/// Rule 13 for `add`, `min`, `max` and `exchange` with `old`. `sides`: the stored value, and the window to which it is
/// stored.
pub(super) fn check(cx: &mut Cx<'_, '_>, s: Stmt, sides: (Expr, Expr), attrs: &CopyAttrs, target: &ResolvedView) {
    let k = cx.k;
    let place = attrs.old.and_then(|old| cx.types.resolve_view(old));
    let place = place.filter(|view| matches!(k.values[view.base].def, ValueDef::Smem(_)));
    let found = attrs.old.and_then(|old| cx.type_of(old));
    let moved = extents(cx, sides.0).or_else(|| extents(cx, sides.1)).unwrap_or_default();
    // `word`: the part to be removed; empty: none.
    let mut bad = |word: &str, message: String, note: &str| {
        let d = Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_note(note);
        cx.report(d.with_left_out(k.clause(k.stmt_spans[s], word)));
    };
    let Some(op) = attrs.reduce else {
        if attrs.old.is_some() {
            bad(
                "old",
                "`old` without an operator that combines".to_owned(),
                "old values are those that `add`, `min`, `max` or `exchange` replace: `copy 1 -> counter[0] add old ticket`",
            );
        }
        return;
    };
    let word = op.word();
    let buffer = matches!(k.values[target.base].def, ValueDef::Smem(_));
    if target.space(k) != Space::Gmem && !buffer {
        bad(
            "",
            format!("`{word}` is for copies into global memory and buffers"),
            "combine register tiles by an assignment, such as `x = x + y`",
        );
        return;
    }
    let Some(old) = attrs.old else {
        if op == Combining::Exchange {
            bad(
                word,
                "`exchange` without `old`".to_owned(),
                "it says where the old values go: `copy x -> C[i..] exchange old y`; a plain copy stores without them",
            );
        }
        return;
    };
    if !attrs.is_by_threads() || attrs.is_fragment() {
        bad("", format!("`{word}` with `old` is done by threads, each with its elements"), "leave the mechanism out");
        return;
    }
    let (Some(place), Some(found)) = (place, found) else {
        bad(
            "",
            "old values go to a register variable or to a buffer in shared memory".to_owned(),
            "declare one of the tensor's type: `var ticket = reg i32[]`",
        );
        return;
    };
    let elems = [target.base, place.base].map(|v| k.values[v].def.elem());
    if elems[0] != elems[1] {
        let name = &k.values[target.base].name;
        bad(
            "",
            format!("old values of `{name}` go to elements of another type"),
            "they are elements of the tensor: give the variable its element type",
        );
        return;
    }
    let own = match &found {
        Type::Tile(t) => Some(t.shape.clone()),
        Type::View(view) if view.rank == 0 => Some(Vec::new()),
        _ => None,
    };
    let alike =
        |own: &[Extent]| own.len() == moved.len() && own.iter().zip(&moved).all(|(&a, &b)| a.same(k, b) != Some(false));
    if own.as_deref().is_none_or(|own| !alike(own)) {
        let message = format!("old values of {} elements go to {}", shape_text(k, &moved), found.describe(k));
        let d = Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[old], message);
        cx.report(d.with_note("there is an old value for each element that is stored"));
    }
}

/// The extents of a tile.
fn extents(cx: &mut Cx<'_, '_>, e: Expr) -> Option<Vec<Extent>> {
    match cx.type_of(e) {
        Some(Type::Tile(t)) => Some(t.shape),
        _ => None,
    }
}

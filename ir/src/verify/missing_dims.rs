//! Fixes for expressions with fewer dimensions than required.

use super::context::Cx;
use crate::diag::{Diagnostic, Span};
use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel, Range};
use crate::print::print_expr;
use crate::typing::{Extent, Type, shape_text};

/// The text to write if `e` has fewer dimensions than required, or one element instead of a scalar.
pub(super) fn lacking(cx: &Cx<'_, '_>, e: Expr, ty: &Type, wanted: usize) -> Option<String> {
    if let (Type::Tile(t), 0) = (ty, wanted) {
        let extents = shape_text(cx.k, &t.shape);
        let one = t.shape.iter().all(|n| n.known() == Some(1));
        return one.then(|| {
            format!(
                "a reduction keeps its dimension, with extent 1: declare a tile of extents `{extents}`, which is broadcast as a scalar is"
            )
        });
    }
    if ty.rank() == 0 || ty.rank() >= wanted {
        return None;
    }
    let (name, range) = match &cx.k.exprs[e] {
        ExprData::Ref(v) => (cx.name(*v), ".."),
        ExprData::View(view) => (cx.name(view.base), "i.."),
        _ => ("v", ".."),
    };
    let note = "a vector broadcasts along a dimension that it lacks, which is written `_`";
    Some(format!("{note}: `{name}[_, {range}]` in every row, `{name}[{range}, _]` in every column"))
}

/// A window of `rank` dimensions or the name of one, with an extent of 64 in every dimension.
pub(super) fn with_extents(k: &Kernel, e: Expr, rank: usize) -> String {
    let (base, ranges) = match &k.exprs[e] {
        ExprData::View(view) => (view.base, view.ranges.as_slice()),
        ExprData::Ref(v) => (*v, &[][..]),
        _ => return "X[i * 64..+64, j * 64..+64]".to_owned(),
    };
    let extent = |range: &Range| match range {
        Range::From { start, .. } => format!("{}..+64", print_expr(k, *start)),
        _ => range_text(k, range),
    };
    let mut texts: Vec<String> = ranges.iter().map(extent).collect();
    if texts.is_empty() {
        texts = vec!["..+64".to_owned(); rank];
    }
    format!("{}[{}]", k.values[base].name, texts.join(", "))
}

/// Adds the window for a tile of more dimensions: `R[i]` of one element becomes `R[i..]`, and `_` is added for
/// dimensions of extent 1.
pub(super) fn window_of_sums(k: &Kernel, d: Diagnostic, dst: Expr, shape: &[Extent], rank: usize) -> Diagnostic {
    let other = "a vector broadcasts along a dimension that it lacks: `L[i.., _]` for a tile of extents `[64, 1]`";
    let ExprData::View(view) = &k.exprs[dst] else { return d.with_note(other) };
    let missing = shape.len() - rank;
    let ones = shape[shape.len() - missing..].iter().all(|n| n.known() == Some(1));
    let first = shape.first().and_then(|n| n.known()) == Some(1);
    // An index instead of a range, if the tile has one element along that dimension.
    let index = matches!(view.ranges[..], [.., Range::At(_)]) && first;
    let span = k.expr_spans[dst];
    if !ones || view.ranges.is_empty() || span.is_none() {
        return d.with_note(other);
    }
    let mut more = vec!["_"; missing - usize::from(index)];
    more.insert(0, if index { ".." } else { "" });
    let more = more.join(", ");
    let ranges: Vec<String> = view.ranges.iter().map(|range| range_text(k, range)).collect();
    let written = format!("{}[{}{more}]", k.values[view.base].name, ranges.join(", "));
    let why = if index {
        "an index takes the dimension away, and a range keeps it"
    } else {
        "`_` stands for a dimension of extent 1"
    };
    // In front of the bracket that ends the window.
    d.with_note(format!("{why}: `{written}`")).with_fix(Span { start: span.end - 1, end: span.end - 1 }, more)
}

fn range_text(k: &Kernel, range: &Range) -> String {
    match range {
        Range::At(at) => print_expr(k, *at),
        Range::From { start, end: None } => format!("{}..", print_expr(k, *start)),
        Range::From { start, end: Some(end) } => format!("{}..{}", print_expr(k, *start), print_expr(k, *end)),
        Range::Gather(rows) => print_expr(k, *rows),
    }
}

//! Operands of one row: `bias: gmem f16[1, N]` with a tile of 64 rows is row 0, followed by zeros past the end.

use crate::Cx;
use crate::analysis::uses::{all_stmts, stmt_exprs};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::Expr;
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::{ExprData, Kernel, Range};
use tilec_ir::typing::{Extent, Type, elem_name, resolve_view, type_of};

/// Warns of windows that are combined with tiles larger than a dimension of extent 1.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) {
    let mut said = Vec::new();
    for e in all_stmts(k, k.body).into_iter().flat_map(|s| stmt_exprs(k, s)) {
        visit(k, e, None, &mut said);
    }
    said.into_iter().for_each(|d| cx.warn(d));
}

fn visit(k: &Kernel, e: Expr, shape: Option<&[Extent]>, said: &mut Vec<Diagnostic>) {
    match &k.exprs[e] {
        ExprData::Op { .. } | ExprData::Round { .. } => {
            let own = match type_of(k, e) {
                Ok(Type::Tile(t)) => Some(t.shape),
                _ => None,
            };
            let shape = own.as_deref().or(shape);
            k.children(e).into_iter().for_each(|arg| visit(k, arg, shape, said));
        }
        ExprData::Cast { arg, .. } | ExprData::Bits { arg, .. } => visit(k, *arg, shape, said),
        ExprData::Ref(_) | ExprData::View(_) => {
            if let Some(shape) = shape {
                said.extend(cut_short(k, e, shape));
            }
        }
        _ => k.children(e).into_iter().for_each(|child| visit(k, child, None, said)),
    }
}

fn cut_short(k: &Kernel, e: Expr, shape: &[Extent]) -> Option<Diagnostic> {
    let view = resolve_view(k, e)?;
    let tensor = k.tensor_ty(view.base)?;
    let kept = view.base_dims();
    let (wide, dim) = shape.iter().zip(&kept).find_map(|(extent, &d)| {
        let many = extent.known().is_some_and(|n| n > 1);
        (kept.len() == shape.len() && many && k.as_int(tensor.shape[d]) == Some(1)).then_some((extent.known()?, d))
    })?;
    let name = &k.values[view.base].name;
    let message =
        format!("dimension {dim} of `{name}` has one element, and {wide} are combined: the others read as zero");
    let others = |own: &dyn Fn(usize) -> String, repeats: &str| {
        let dims = (0..tensor.shape.len()).map(|d| if d == dim { repeats.to_owned() } else { own(d) });
        dims.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let extents = others(&|d| tilec_ir::print::print_expr(k, tensor.shape[d]), "");
    let window = others(&|_| "..".to_owned(), "_");
    let elem = elem_name(k, tensor.elem);
    let note = format!(
        "a tensor repeats along dimensions that it lacks: `{name}: gmem {elem}[{extents}]`, and `{name}[{window}]` is read"
    );
    let d = Diagnostic::warning(codes::ONE_ELEMENT, k.expr_spans[e], message).with_note(note);
    let window = k.expr_spans[e];
    let dots = k
        .fix_locations
        .iter()
        .filter(|(spot, at)| *spot == FixLocation::Dots && window.start <= at.start && at.end <= window.end);
    let places: Vec<Span> = dots.map(|(_, at)| *at).collect();
    let ExprData::View(view) = &k.exprs[e] else { return Some(d) };
    // The single element should be broadcast if the tile has several.
    Some(match view.ranges.get(dim) {
        Some(Range::From { start, end: None }) if k.literal(*start).is_some() && places.len() == view.ranges.len() => {
            d.with_fix(places[dim], ", _")
        }
        _ => d,
    })
}

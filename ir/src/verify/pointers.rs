//! Windows of tensors that are arrays of pointers: rule 23.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::Expr;
use crate::typing::ViewDim;
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    if !k.params.iter().any(|&v| k.tensor_ty(v).is_some_and(|t| t.pointers)) {
        return;
    }
    let mut roots = Vec::new();
    k.walk(k.body, &mut |k, _, s| roots.extend(k.stmts[s].exprs()));
    for e in roots {
        windows(cx, e);
    }
}

/// Checks the windows in an expression.
fn windows(cx: &mut Cx<'_, '_>, e: Expr) {
    let k = cx.k;
    let several = cx.types.resolve_view(e).filter(|view| {
        let pointers = k.tensor_ty(view.base).is_some_and(|t| t.pointers);
        pointers && !matches!(view.dims.first(), Some(ViewDim::Fixed(_)))
    });
    if let Some(view) = several {
        let (name, rank) = (cx.name(view.base).to_owned(), view.dims.len());
        let message = format!("this window needs several of the addresses of `{name}`");
        let example = vec![".."; rank.saturating_sub(1)].join(", ");
        cx.report(
            Diagnostic::error(codes::BAD_VIEW, k.expr_spans[e], message)
                .with_place(k.values[view.base].span, "an array of pointers")
                .with_note(format!("name one of them by a single index: `{name}[z, {example}]`")),
        );
        return;
    }
    for child in k.children(e) {
        windows(cx, child);
    }
}

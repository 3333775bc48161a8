//! Constant tensors: rule 37.
//!
//! A launch may load them before those in front of it have ended. So the kernel does not write them, and they are not its scratch memory.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt};
use crate::fix_locations::FixLocation;
use crate::kernel::StmtData;
use crate::typing::resolve_view;
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    for &v in k.params.iter().filter(|&&v| k.tensor_ty(v).is_some_and(|t| t.constant)) {
        let (name, span) = (&k.values[v].name, k.values[v].span);
        let to = |e: Expr| resolve_view(k, e).is_some_and(|view| view.base == v);
        let writes = |&s: &Stmt| matches!(k.stmts[s], StmtData::Copy { dst, .. } if to(dst));
        let d = match k.statements().into_iter().find(writes) {
            Some(s) => {
                let message = format!("`{name}` is `constant`, and this copy writes it");
                Diagnostic::error(codes::BAD_COPY, k.stmt_spans[s], message).with_place(span, "declared here")
            }
            None if k.tensor_ty(v).is_some_and(|t| t.scratch.is_some()) => {
                let message = format!("`{name}` is scratch memory, and cannot be `constant`");
                Diagnostic::error(codes::BAD_SIGNAL, span, message)
            }
            None => continue,
        };
        let word = k.spots_behind(span, FixLocation::Constant).next();
        cx.report(
            d.with_note("launches may load constant tensors before those in front of them have ended")
                .with_left_out(word),
        );
    }
}

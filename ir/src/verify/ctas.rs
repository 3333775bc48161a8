//! Rule 32: blocks of a cluster that divide tiles (`ctas`) hold them in registers.
//!
//! Lowering stores the elements of a buffer to all of these blocks. Other ways to fill shared memory fill that of one
//! block only.

use crate::codes;
use crate::ctas;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt};
use crate::kernel::{ExprData, Kernel, StmtData};
use crate::typing::{const_int, resolve_view};
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let Some(asked) = k.schedule.ctas.filter(|_| ctas::ctas(k) > 1) else { return };
    if ctas::ctas(k).count_ones() != 1 {
        let message = format!("`ctas` is 1, 2, 4, 8 or 16, found {}", ctas::ctas(k));
        cx.error_at(codes::BAD_SCHEDULE, asked, message, "blocks divide tiles in halves, quarters, ..");
        return;
    }
    if let Some(threads) = k.schedule.threads.and_then(|e| const_int(k, e)).filter(|n| n.count_ones() != 1) {
        let message = format!("`ctas` together with {threads} threads");
        cx.error_at(codes::BAD_SCHEDULE, asked, message, "blocks that divide tiles have a power of two of threads");
    }
    if let Some(&e) = k.schedule.cluster.first() {
        let note = "the blocks of `ctas` are the cluster: leave `cluster` out";
        let d =
            Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], "`cluster` together with `ctas`").with_note(note);
        cx.report(d.with_left_out(k.schedule_item("cluster")));
    }
    if let Some(e) = k.schedule.raster.filter(|&e| const_int(k, e) != Some(1)) {
        let note = "neighbouring blocks share a tile: leave `raster` out";
        let d =
            Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], "`raster` together with `ctas`").with_note(note);
        cx.report(d.with_left_out(k.schedule_item("raster")));
    }
    let mut refused: Vec<(Stmt, &str)> = Vec::new();
    k.walk(k.body, &mut |k, _, s| refused.extend(other_than_registers(k, s).map(|what| (s, what))));
    for (s, what) in refused {
        let message = format!("{what}, in a kernel whose tiles are divided among several blocks (`ctas`)");
        let d = Diagnostic::error(codes::BAD_SCHEDULE, k.stmt_spans[s], message);
        let d = d.with_note("leave `ctas` out, or copy the windows of tensors to register tiles");
        cx.report(d.with_left_out(k.schedule_item("ctas")));
    }
}

/// The operation of a statement that affects one block only.
fn other_than_registers(k: &Kernel, s: Stmt) -> Option<&'static str> {
    let product = |e: Expr| matches!(k.exprs[e], ExprData::Mma(_));
    match k.stmts[s] {
        StmtData::Role { .. } => Some("a role"),
        StmtData::Channel { .. } => Some("a channel"),
        StmtData::Signal { .. } => Some("a signal"),
        StmtData::Assign { src, .. } if product(src) => Some("a product"),
        StmtData::Var { init: Some(src), .. } if product(src) => Some("a product"),
        StmtData::Copy { src, dst, ref attrs } => {
            let shared = |e| resolve_view(k, e).is_some_and(|view| view.space(k).is_of_block());
            let global = |e| resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some());
            if shared(dst) && attrs.reduce.is_some() {
                // Each block has its own copy of a buffer.
                return Some("an atomic operation on shared memory");
            }
            (shared(dst) && global(src) || shared(src) && global(dst)).then_some("a copy between memories")
        }
        _ => None,
    }
}

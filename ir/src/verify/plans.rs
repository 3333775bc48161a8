//! Schedules of statements: pipeline stages of loops, and what the producer warps run.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Block, Stmt};
use crate::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData, ValueDef};
use crate::verify::cx::Cx;

/// The highest pipeline stage.
const MAX_STAGE: u32 = 1;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut planned: Option<Stmt> = None;
    let mut role = false;
    let mut loops: Vec<Block> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        role |= matches!(k.stmts[s], StmtData::Role { .. });
        if k.plans[s].is_some() {
            planned = planned.or(Some(s));
        }
        if let StmtData::For { body, unroll: false, .. } = k.stmts[s] {
            loops.push(body);
        }
    });
    let Some(first) = planned else { return };
    if role {
        let d =
            Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[first], "a statement is scheduled in a kernel with roles");
        cx.report(d.with_note("write the roles by hand, or leave them to `@(producer)` and stages"));
    }
    let mut staged: Vec<Stmt> = Vec::new();
    for body in loops {
        stages(cx, body);
        staged.extend(&k.blocks[body]);
    }
    k.walk(k.body, &mut |k, _, s| {
        let plan = k.plans[s];
        if plan.ordered && (plan.producer || plan.stage.is_none()) {
            let d =
                Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], "`ordered` without a stage, or of the producer");
            cx.report(d.with_note("the consumer's warpgroups take turns in statements of a loop that have stages"));
        }
        if plan.stage.is_some() && !staged.contains(&s) {
            let d =
                Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], "a statement outside of a loop's body has a stage");
            cx.report(d.with_note("stages are those of the statements that stand in a loop which is not unrolled"));
        }
        if plan.producer && !produces(k, s) {
            let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], "the producer warps cannot run this statement");
            cx.report(d.with_note(
                "they run `acquire`, `publish`, and copies from tensors into whole buffers or slots (`ring.put`)",
            ));
        }
    });
}

/// Either all statements of a loop have stages, or none.
fn stages(cx: &mut Cx<'_, '_>, body: Block) {
    let k = cx.k;
    let list = &k.blocks[body];
    let Some(&with) = list.iter().find(|&&s| k.plans[s].stage.is_some()) else { return };
    for &s in list {
        match k.plans[s].stage {
            None => {
                let message = "this statement has no pipeline stage, and others of the loop have one";
                let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], message);
                cx.report(
                    d.with_place(k.stmt_spans[with], "this one has")
                        .with_note("write `@(stage 0, cycle 0)` in front of it"),
                );
            }
            Some(n) if n > MAX_STAGE => {
                let message = format!("stage {n}; a loop has at most {} stages", MAX_STAGE + 1);
                let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], message);
                cx.report(d.with_note("of two iterations statements run at once: stages are 0 and 1"));
            }
            Some(_) => {}
        }
    }
}

/// Whether the producer warps can run a statement.
fn produces(k: &Kernel, s: Stmt) -> bool {
    match &k.stmts[s] {
        StmtData::Channel { op, .. } => matches!(op, ChannelOp::Acquire | ChannelOp::Publish),
        StmtData::Copy { dst, .. } => match &k.exprs[*dst] {
            ExprData::View(v) => v.slot == Some(Slot::Put),
            // Before it becomes a channel, a whole buffer.
            ExprData::Ref(v) => matches!(k.values[*v].def, ValueDef::Smem(_)),
            _ => false,
        },
        _ => false,
    }
}

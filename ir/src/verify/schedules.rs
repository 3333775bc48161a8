//! Schedules of statements: pipeline stages of loops, and what the producer warps run.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Block, Stmt};
use crate::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData, StmtPlan, ValueDef};
use crate::verify::context::Cx;

/// The highest pipeline stage: the number of slots, and a few stages for copies before the first slot.
const MAX_STAGE: u32 = 31;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut planned = false;
    let mut of_roles: Option<Stmt> = None;
    let mut role = false;
    let mut loops: Vec<Block> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        role |= matches!(k.stmts[s], StmtData::Role { .. });
        let plan = k.plans[s];
        planned |= plan.is_some();
        if plan.producer || plan.ordered {
            of_roles = of_roles.or(Some(s));
        }
        if let StmtData::For { body, unroll: false, cond: None, .. } = k.stmts[s] {
            loops.push(body);
        }
    });
    if !planned {
        return;
    }
    if let Some(first) = of_roles.filter(|_| role) {
        let message = "a statement is given to a role in a kernel with roles";
        let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[first], message);
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
            cx.report(d.with_note("only statements of a loop that is not unrolled and has no condition (`while`) have stages"));
        }
        if let Some(word) = of_loop(plan)
            && !matches!(k.stmts[s], StmtData::For { unroll: false, cond: None, .. })
        {
            let message = format!("`{word}` is for loops that are not unrolled and have no condition (`while`)");
            cx.report(Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], message));
        }
        if let StmtData::For { body, .. } = k.stmts[s]
            && plan.open
            && k.blocks[body].iter().all(|&s| k.plans[s].stage.is_none())
        {
            let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], "an `open` loop has no stages");
            cx.report(d.with_note("stages in front of the last run on past its end: write `@(stage 0, cycle 0)` in front of each statement"));
        }
        if plan.producer && !produces(k, s) {
            let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], "the producer warps cannot run this statement");
            cx.report(d.with_note(
                "they run `acquire`, `publish`, and copies from tensors into whole buffers, slots (`ring.put`), or register tiles by whose numbers these gather",
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
                        .with_note("write `@(stage 0, cycle 0)` in front of it")
                        .with_fix_around(k.stmt_spans[s], "@(stage 0, cycle 0) ", ""),
                );
            }
            Some(n) if n > MAX_STAGE => {
                let message = format!("stage {n}; a loop has at most {} stages", MAX_STAGE + 1);
                let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], message);
                cx.report(d.with_note("tiles are fetched as far ahead as there are slots for them"));
            }
            Some(_) => {}
        }
    }
}

/// The text of a loop's plan.
fn of_loop(plan: StmtPlan) -> Option<&'static str> {
    match plan {
        StmtPlan { open: true, .. } => Some("open"),
        StmtPlan { ragged: true, .. } => Some("ragged"),
        _ => None,
    }
}

/// Whether the producer warps can run a statement.
fn produces(k: &Kernel, s: Stmt) -> bool {
    match &k.stmts[s] {
        StmtData::Channel { op, .. } => matches!(op, ChannelOp::Acquire | ChannelOp::Publish),
        StmtData::Copy { dst, .. } => match &k.exprs[*dst] {
            ExprData::View(v) => v.slot == Some(Slot::Put),
            // A whole buffer, before it becomes a channel.
            ExprData::Ref(v) => matches!(k.values[*v].def, ValueDef::Smem(_) | ValueDef::Var(_)),
            _ => false,
        },
        // Row indices that it gathers.
        StmtData::Var { init, .. } => init.is_none(),
        _ => false,
    }
}

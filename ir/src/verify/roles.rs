//! Roles: rule 17.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Block, Stmt};
use crate::kernel::{Kernel, StmtData};
use crate::roles::{all_warps, distributed_loop};
use crate::target::{MAX_THREADS, WARP, WARPGROUP, register_share};
use crate::typing::const_int;
use crate::verify::context::Cx;
use std::collections::BTreeSet;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut found: Vec<(Block, usize, Stmt)> = Vec::new();
    let mut stack = vec![k.body];
    while let Some(b) = stack.pop() {
        for (i, &s) in k.blocks[b].iter().enumerate() {
            if matches!(k.stmts[s], StmtData::Role { .. }) {
                found.push((b, i, s));
            }
            stack.extend(k.sub_blocks(s));
        }
    }
    let (mut previous, mut total, mut names) = (None, 0i64, BTreeSet::new());
    for (b, i, s) in found {
        let StmtData::Role { name, warps, replicas, registers, body } = &k.stmts[s] else { continue };
        let mut bad = |message: String, note: &str| {
            cx.report(Diagnostic::error(codes::BAD_ROLE, k.stmt_spans[s], message).with_note(note));
        };
        if b != k.body {
            bad(format!("role `{name}` is inside another statement"), "roles must be in the body of the kernel");
            continue;
        }
        if previous.is_some_and(|p: usize| p + 1 != i) {
            let note = "move the statements between them before the first role, or into one of them";
            bad(format!("role `{name}` is not next to the role before it"), note);
        }
        previous = Some(i);
        if !names.insert(name) {
            bad(format!("there are two roles called `{name}`"), "give each its own name");
        }
        let max_warps = i64::from(MAX_THREADS / WARP);
        cx.bounded(codes::BAD_ROLE, "the warps of a role", *warps, 1, max_warps);
        if let Some(replicas) = *replicas {
            cx.bounded(codes::BAD_ROLE, "the replicas of a role", replicas, 1, max_warps);
            replicated(cx, name, s, *body);
        }
        let before = total;
        total = total.saturating_add(all_warps(k, s).map_or(0, i64::from));
        if before <= max_warps && total > max_warps {
            let message = format!("the roles have {total} warps together, expected at most {max_warps}");
            cx.error_at(codes::BAD_ROLE, *warps, message, "a block has at most 1024 threads");
        }
        if let Some(registers) = *registers {
            // PTX ISA, setmaxnreg: 24 to 256 in steps of 8.
            cx.bounded(codes::BAD_ROLE, "the registers of a role", registers, 24, 256);
            if let Some(x) = const_int(k, registers).filter(|x| x % 8 != 0) {
                let message = format!("the registers of a role must be a multiple of 8, found {x}");
                cx.error_at(codes::BAD_ROLE, registers, message, "");
            }
            let warps = const_int(k, *warps);
            if warps.is_some_and(|w| w % i64::from(WARPGROUP) != 0) || before % i64::from(WARPGROUP) != 0 {
                let message = format!("role `{name}` has registers of its own, but is not made of whole warpgroups");
                let note = "registers are given away by four warps at a time: let it, and the roles before it, have a multiple of 4 warps";
                cx.error_at(codes::BAD_ROLE, registers, message, note);
            }
        }
    }
    beside(cx);
    ordered(cx);
    register_budget(cx, total);
}

/// No thread executes statements outside of roles. They declare the data that roles share.
fn beside(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let body = &k.blocks[k.body];
    let Some(&role) = body.iter().find(|&&s| matches!(k.stmts[s], StmtData::Role { .. })) else { return };
    let shared = |s: &Stmt| match k.stmts[*s] {
        StmtData::Let { .. } | StmtData::Alloc { .. } | StmtData::Barrier | StmtData::Role { .. } => true,
        // This is reported elsewhere.
        StmtData::Ordered { .. } => true,
        _ => false,
    };
    if let Some(&s) = body.iter().find(|s| !shared(s)) {
        let message = "only names, buffers, channels and barriers can be outside roles: no threads would execute this";
        let d = Diagnostic::error(codes::BAD_ROLE, k.stmt_spans[s], message)
            .with_place(k.stmt_spans[role], "the role")
            .with_note("move it into a role; a kernel without roles gets them from the compiler where that pays");
        cx.report(d);
    }
}

/// A role with replicas only has the loop whose iterations they execute alternately.
fn replicated(cx: &mut Cx<'_, '_>, name: &str, role: Stmt, body: Block) {
    let k = cx.k;
    if distributed_loop(k, body).is_some() {
        return;
    }
    let message = format!("role `{name}` has replicas, but is no loop whose iterations they could share");
    cx.report(Diagnostic::error(codes::BAD_ROLE, k.stmt_spans[role], message).with_note(
        "such a role has names (`let`) and one loop, not unrolled, and nothing that all replicas would run",
    ));
}

/// `ordered` statements are in the loop whose iterations the replicas share.
fn ordered(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut allowed: Vec<Stmt> = Vec::new();
    for &s in &k.blocks[k.body] {
        // Warpgroups of one role execute it one after the other, in any place.
        if let StmtData::Role { replicas: None, warps, body, .. } = k.stmts[s]
            && const_int(k, warps).is_none_or(|n| n > i64::from(WARPGROUP) && n % i64::from(WARPGROUP) == 0)
        {
            k.walk(body, &mut |_, _, s| allowed.push(s));
        }
        if let StmtData::Role { replicas: Some(_), body, .. } = k.stmts[s]
            && let Some(turns) = distributed_loop(k, body)
            && let StmtData::For { body, .. } = k.stmts[turns]
        {
            allowed.extend(k.blocks[body].iter().copied());
        }
    }
    for &role in k.blocks[k.body].iter().filter(|&&s| matches!(k.stmts[s], StmtData::Role { .. })) {
        let inside = k.sub_blocks(role);
        inside.into_iter().for_each(|b| k.walk(b, &mut |k, _, s| counted(cx, k, s)));
    }
    k.walk(k.body, &mut |k, _, s| {
        if matches!(k.stmts[s], StmtData::Ordered { .. }) && !allowed.contains(&s) {
            cx.report(
                Diagnostic::error(codes::BAD_ROLE, k.stmt_spans[s], "`ordered` where neither replicas nor several warpgroups run")
                    .with_note("in a role of several warpgroups it may be anywhere; with replicas it must be directly in the body of the loop, not in branches or loops there: `role consumer warps 4 replicas 2 { for tile in .. { ordered { .. } } }`"),
            );
        }
    });
}

/// The registers of all roles together. If a warpgroup requests more than the others release, it waits forever.
fn register_budget(cx: &mut Cx<'_, '_>, warps: i64) {
    let k = cx.k;
    let Ok(threads) = u32::try_from(warps.saturating_mul(i64::from(WARP))) else { return };
    let blocks = k.schedule.min_ctas.and_then(|e| const_int(k, e)).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    if threads == 0 || threads > MAX_THREADS {
        return;
    }
    let share = i64::from(register_share(threads, blocks));
    let (mut left, mut last) = (share * warps, None);
    for &s in &k.blocks[k.body] {
        let StmtData::Role { registers, .. } = k.stmts[s] else { continue };
        let Some(warps) = all_warps(k, s).map(i64::from) else { return };
        let own = match registers {
            Some(e) => match const_int(k, e) {
                Some(x) => {
                    last = Some(e);
                    x
                }
                None => return,
            },
            None => share,
        };
        left = left.saturating_sub(own.saturating_mul(warps));
    }
    let Some(last) = last.filter(|_| left < 0) else { return };
    let message = format!(
        "the roles take {} registers, the block has {}",
        (share * warps).saturating_sub(left).saturating_mul(i64::from(WARP)),
        share * warps * i64::from(WARP)
    );
    let note = format!(
        "a thread starts with {share} ({threads} threads a block, {blocks} block(s) on a multiprocessor): registers that one role takes beyond this, another must release (`setmaxnreg`)"
    );
    cx.error_at(codes::BAD_ROLE, last, message, &note);
}

/// Roles fill and empty the same slots. Loops with equal trip counts in all roles show how often.
fn counted(cx: &mut Cx<'_, '_>, k: &Kernel, s: Stmt) {
    let StmtData::For { cond: Some(_), body, .. } = k.stmts[s] else { return };
    let mut hands_over = None;
    k.walk(body, &mut |k, _, s| {
        if matches!(k.stmts[s], StmtData::Channel { .. } | StmtData::Ordered { .. }) {
            hands_over.get_or_insert(s);
        }
    });
    if let Some(at) = hands_over {
        let d = Diagnostic::error(
            codes::BAD_ROLE,
            k.stmt_spans[s],
            "a role uses slots in a loop with a condition (`while`)",
        );
        cx.report(
            d.with_place(k.stmt_spans[at], "here")
                .with_note("the other role has to run as often: give both loops the same bounds"),
        );
    }
}

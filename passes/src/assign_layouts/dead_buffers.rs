//! Dead buffers whose memory an exchange may reuse.
//!
//! The operands of products in a loop are dead after the loop, so the buffer of an exchange there reuses their memory (`over`).

use crate::analysis::uses::{all_stmts, for_each_ref, stmt_exprs};
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// The buffers whose memory is free at `place`: they are declared in front of it in its block, and used only there.
/// Excluded are operands of wgmma, which are refilled for the next tile while the last one is stored, and buffers of
/// roles.
pub(super) fn buffers(k: &Kernel, (block, index): (Block, usize)) -> Vec<Value> {
    let all = all_stmts(k, k.body);
    let elsewhere = |&s: &Stmt| match k.stmts[s] {
        StmtData::Role { .. } | StmtData::Channel { .. } => true,
        StmtData::Assign { src, .. } => {
            matches!(k.exprs[src], ExprData::Mma(m) if m.atom.is_some_and(|a| a.row().asynchronous()))
        }
        _ => false,
    };
    if all.iter().any(elsewhere) {
        return Vec::new();
    }
    let before: Vec<Vec<Stmt>> = k.blocks[block][..index].iter().map(|&s| within(k, s)).collect();
    let behind = all.into_iter().filter(|s| !before.iter().any(|part| part.contains(s)));
    let used_behind = buffers_of(k, &behind.collect::<Vec<Stmt>>());
    let declared = before.iter().flatten().filter_map(|&s| match &k.stmts[s] {
        StmtData::Alloc { value, over } if k.blocks[block].contains(&s) && over.is_empty() => Some(*value),
        _ => None,
    });
    // Nor memory that an earlier buffer reuses and still needs.
    let held: Vec<Value> = before
        .iter()
        .flatten()
        .filter_map(|&s| match &k.stmts[s] {
            StmtData::Alloc { value, over } if used_behind.contains(value) => Some(over.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let mut free: Vec<Value> = declared.filter(|v| !used_behind.contains(v) && !held.contains(v)).collect();
    // Buffers that are used together are pipelined together, so they are reused together.
    loop {
        let torn = before.iter().map(|part| buffers_of(k, part)).find(|used| {
            used.iter().any(|v| free.contains(v)) && used.iter().any(|v| !free.contains(v) && !is_above(k, *v))
        });
        let Some(used) = torn else { break };
        free.retain(|v| !used.contains(v));
    }
    // Memory that one buffer reuses already is reused by others as the same list, also in front of it: exchanges are
    // not created in the order of the text.
    for over in reused_buffers(k) {
        if over.iter().all(|v| free.contains(v)) {
            return over;
        }
        free.retain(|v| !over.contains(v));
    }
    free
}

/// The lists of buffers whose memory others reuse, in the order of the text.
fn reused_buffers(k: &Kernel) -> Vec<Vec<Value>> {
    let lists = all_stmts(k, k.body).into_iter().filter_map(|s| match &k.stmts[s] {
        StmtData::Alloc { over, .. } if !over.is_empty() => Some(over.clone()),
        _ => None,
    });
    lists.collect()
}

/// Whether a buffer reuses the memory of others.
fn is_above(k: &Kernel, buffer: Value) -> bool {
    k.statement_data().any(|s| matches!(s, StmtData::Alloc { value, over } if *value == buffer && !over.is_empty()))
}

/// A statement and what is inside it.
fn within(k: &Kernel, s: Stmt) -> Vec<Stmt> {
    std::iter::once(s).chain(k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b))).collect()
}

/// The buffers that statements use, without declarations.
fn buffers_of(k: &Kernel, stmts: &[Stmt]) -> Vec<Value> {
    let mut used = Vec::new();
    for e in stmts.iter().flat_map(|&s| stmt_exprs(k, s)) {
        for_each_ref(k, e, &mut |v| {
            if k.values[v].def.space().is_of_block() && !used.contains(&v) {
                used.push(v);
            }
        });
    }
    used
}

//! Liveness of contents: whether a buffer or a register tile is read before it is written again.

use crate::analysis::uses::{mentions, path_to, stmt_exprs};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// What happens next to the contents of a buffer or register tile.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NextUse {
    /// They are read on some path.
    Read,
    /// They are overwritten on every path.
    Overwritten,
    /// Neither: some path reaches the end.
    Left,
}

/// The fate of `v` in consecutive statements.
pub(crate) fn next_use(k: &Kernel, stmts: &[Stmt], v: Value) -> NextUse {
    stmts.iter().map(|&s| of_statement(k, s, v)).find(|&f| f != NextUse::Left).unwrap_or(NextUse::Left)
}

/// The fate of `v` in one statement.
pub(crate) fn of_statement(k: &Kernel, s: Stmt, v: Value) -> NextUse {
    match &k.stmts[s] {
        // The loop may have no iteration.
        StmtData::For { cond: Some(cond), .. } if mentions(k, *cond, v) => NextUse::Read,
        StmtData::For { body, .. } => match next_use(k, &k.blocks[*body], v) {
            NextUse::Read => NextUse::Read,
            _ => NextUse::Left,
        },
        StmtData::If { then, otherwise, .. } => {
            let sides = [Some(*then), *otherwise].map(|b| b.map_or(NextUse::Left, |b| next_use(k, &k.blocks[b], v)));
            match sides {
                _ if sides.contains(&NextUse::Read) => NextUse::Read,
                [NextUse::Overwritten, NextUse::Overwritten] => NextUse::Overwritten,
                _ => NextUse::Left,
            }
        }
        StmtData::Ordered { body } | StmtData::Role { body, .. } => next_use(k, &k.blocks[*body], v),
        StmtData::Alloc { value, over } if *value == v || over.contains(&v) => NextUse::Overwritten,
        StmtData::Await { value, .. } if *value == v => NextUse::Read,
        StmtData::Copy { src, dst, attrs } => {
            let whole = matches!(k.exprs[*dst], ExprData::Ref(w) if w == v);
            let kept = attrs.keep || attrs.when.is_some() || attrs.reduce.is_some();
            match whole && !kept && !mentions(k, *src, v) {
                true => NextUse::Overwritten,
                false if stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v)) => NextUse::Read,
                false => NextUse::Left,
            }
        }
        _ if stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v)) => NextUse::Read,
        _ => NextUse::Left,
    }
}

/// Whether something after a loop, in the same or a later iteration of a loop around it, reads what the loop leaves in
/// `v`.
pub(crate) fn read_behind(k: &Kernel, at: Stmt, v: Value) -> bool {
    let path = path_to(k, at);
    for (depth, &(block, index)) in path.iter().enumerate().rev() {
        match next_use(k, &k.blocks[block][index + 1..], v) {
            NextUse::Read => return true,
            NextUse::Overwritten => return false,
            NextUse::Left => {}
        }
        let around = depth.checked_sub(1).map(|d| k.blocks[path[d].0][path[d].1]);
        let again = around.is_some_and(|s| matches!(k.stmts[s], StmtData::For { .. }));
        if again && next_use(k, &k.blocks[block][..index], v) == NextUse::Read {
            return true;
        }
    }
    false
}

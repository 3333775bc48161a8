//! Liveness of contents: whether a buffer or a register tile is read before it is written again.

use crate::analysis::uses::{mentions, path_to, stmt_exprs};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// What happens next to the contents of a buffer or register tile.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// They are read on some path.
    Read,
    /// They are overwritten on every path.
    Overwritten,
    /// Neither: some path reaches the end.
    Left,
}

/// The fate of `v` in consecutive statements.
pub(crate) fn fate(k: &Kernel, stmts: &[Stmt], v: Value) -> Fate {
    stmts.iter().map(|&s| of_statement(k, s, v)).find(|&f| f != Fate::Left).unwrap_or(Fate::Left)
}

/// The fate of `v` in one statement.
pub(crate) fn of_statement(k: &Kernel, s: Stmt, v: Value) -> Fate {
    match &k.stmts[s] {
        // The loop may have no iteration.
        StmtData::For { cond: Some(cond), .. } if mentions(k, *cond, v) => Fate::Read,
        StmtData::For { body, .. } => match fate(k, &k.blocks[*body], v) {
            Fate::Read => Fate::Read,
            _ => Fate::Left,
        },
        StmtData::If { then, otherwise, .. } => {
            let sides = [Some(*then), *otherwise].map(|b| b.map_or(Fate::Left, |b| fate(k, &k.blocks[b], v)));
            match sides {
                _ if sides.contains(&Fate::Read) => Fate::Read,
                [Fate::Overwritten, Fate::Overwritten] => Fate::Overwritten,
                _ => Fate::Left,
            }
        }
        StmtData::Ordered { body } | StmtData::Role { body, .. } => fate(k, &k.blocks[*body], v),
        StmtData::Alloc { value, over } if *value == v || over.contains(&v) => Fate::Overwritten,
        StmtData::Await { value, .. } if *value == v => Fate::Read,
        StmtData::Copy { src, dst, attrs } => {
            let whole = matches!(k.exprs[*dst], ExprData::Ref(w) if w == v);
            let kept = attrs.keep || attrs.when.is_some() || attrs.reduce.is_some();
            match whole && !kept && !mentions(k, *src, v) {
                true => Fate::Overwritten,
                false if stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v)) => Fate::Read,
                false => Fate::Left,
            }
        }
        _ if stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v)) => Fate::Read,
        _ => Fate::Left,
    }
}

/// Whether something after a loop, in the same or a later iteration of a loop around it, reads what the loop leaves in
/// `v`.
pub(crate) fn read_behind(k: &Kernel, at: Stmt, v: Value) -> bool {
    let path = path_to(k, at);
    for (depth, &(block, index)) in path.iter().enumerate().rev() {
        match fate(k, &k.blocks[block][index + 1..], v) {
            Fate::Read => return true,
            Fate::Overwritten => return false,
            Fate::Left => {}
        }
        let around = depth.checked_sub(1).map(|d| k.blocks[path[d].0][path[d].1]);
        let again = around.is_some_and(|s| matches!(k.stmts[s], StmtData::For { .. }));
        if again && fate(k, &k.blocks[block][..index], v) == Fate::Read {
            return true;
        }
    }
    false
}

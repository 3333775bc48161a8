//! Liveness of contents: whether a buffer or a register tile is read before it is written again.

use crate::analysis::uses::{mentions, path_to, stmt_exprs};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// What becomes of what a buffer or a register tile holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Some way reads it.
    Read,
    /// Every way overwrites it.
    Overwritten,
    /// Some way may lead past.
    Left,
}

/// What statements, one after the other, make of it.
pub(crate) fn fate(k: &Kernel, stmts: &[Stmt], v: Value) -> Fate {
    stmts.iter().map(|&s| of_statement(k, s, v)).find(|&f| f != Fate::Left).unwrap_or(Fate::Left)
}

/// What a statement makes of it.
pub(crate) fn of_statement(k: &Kernel, s: Stmt, v: Value) -> Fate {
    match &k.stmts[s] {
        // There may be no iteration.
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

/// Whether something after a loop, in an iteration around it or a later one, reads what the loop leaves in a buffer or a register tile.
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

//! Whether a loop-carried value is read after the loop.

use crate::analysis::uses::{mentions, path_to, stmt_exprs};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// The first effect of statements on a variable.
#[derive(Copy, Clone, PartialEq, Eq)]
enum First {
    Read,
    /// It is overwritten on every path.
    Written,
    Neither,
}

/// Whether the value that the loop `s` leaves in `v` is read after the loop, or by a later iteration of a loop around
/// it.
pub(super) fn is_needed(k: &Kernel, s: Stmt, v: Value) -> bool {
    let path = path_to(k, s);
    for (depth, &(block, at)) in path.iter().enumerate().rev() {
        let stmts = &k.blocks[block];
        match first(k, &stmts[at + 1..], v) {
            First::Read => return true,
            First::Written => return false,
            First::Neither => {}
        }
        let around = depth.checked_sub(1).and_then(|up| path.get(up)).map(|&(block, at)| k.blocks[block][at]);
        let again = around.is_some_and(|t| matches!(k.stmts[t], StmtData::For { .. }));
        if again && first(k, &stmts[..at], v) == First::Read {
            return true;
        }
    }
    false
}

fn first(k: &Kernel, stmts: &[Stmt], v: Value) -> First {
    stmts.iter().map(|&s| first_of(k, s, v)).find(|&first| first != First::Neither).unwrap_or(First::Neither)
}

fn first_of(k: &Kernel, s: Stmt, v: Value) -> First {
    let (read, written) = match k.stmts[s] {
        StmtData::Assign { dst, src } => (mentions(k, src, v), dst == v),
        StmtData::Copy { src, dst, ref attrs } => {
            let whole = k.exprs[dst] == ExprData::Ref(v);
            let read = !whole && mentions(k, dst, v) || attrs.keep && whole;
            (read || mentions(k, src, v) || attrs.when.is_some_and(|e| mentions(k, e, v)), whole)
        }
        _ => (stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v)), false),
    };
    if read || written {
        return if read { First::Read } else { First::Written };
    }
    let inside: Vec<First> = k.sub_blocks(s).into_iter().map(|b| first(k, &k.blocks[b], v)).collect();
    let always = match k.stmts[s] {
        StmtData::If { .. } => inside.len() == 2,
        StmtData::For { .. } => false,
        _ => true,
    };
    if inside.contains(&First::Read) {
        First::Read
    } else if always && !inside.is_empty() && inside.iter().all(|&first| first == First::Written) {
        First::Written
    } else {
        First::Neither
    }
}

//! The values that statements modify.

use crate::entities::{Stmt, Value};
use crate::kernel::{Kernel, StmtData};
use crate::typing::resolve_view;

/// Whether a statement, or one inside it, declares or changes `v`.
pub fn changes(k: &Kernel, s: Stmt, v: Value) -> bool {
    let here = match k.stmts[s] {
        StmtData::Let { value, .. } | StmtData::Var { value, .. } => value == v,
        StmtData::Assign { dst, .. } => dst == v,
        StmtData::Copy { dst, ref attrs, .. } => {
            [Some(dst), attrs.old].into_iter().flatten().any(|e| resolve_view(k, e).is_some_and(|view| view.base == v))
        }
        _ => false,
    };
    here || k.sub_blocks(s).into_iter().any(|b| k.blocks[b].iter().any(|&s| changes(k, s, v)))
}

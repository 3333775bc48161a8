//! Paths to statements through their enclosing blocks, and whether two statements are ordered.

use crate::analysis::conditions::{alike, is_fixed};
use crate::analysis::uses::path_to;
use tilec_ir::atomics::Combining;
use tilec_ir::entities::{Block, Stmt};
use tilec_ir::kernel::{Kernel, StmtData};

/// A block, and the index of a statement in it.
pub(super) type Step = (Block, usize);

/// Whether the paths to two statements diverge at a condition that is the same for both and decided once.
pub(super) fn exclusive(k: &Kernel, a: &[Step], b: &[Step]) -> bool {
    let sides = |path: &[Step]| {
        let mut sides = Vec::new();
        for pair in path.windows(2) {
            if let StmtData::If { cond, then, .. } = k.stmts[k.blocks[pair[0].0][pair[0].1]] {
                sides.push((cond, pair[1].0 == then));
            }
        }
        sides
    };
    let (a, b) = (sides(a), sides(b));
    a.iter().any(|&(c, x)| b.iter().any(|&(d, y)| x != y && is_fixed(k, c) && alike(k, c, d, &[])))
}

/// [`exclusive`] for two statements.
pub(in crate::barriers) fn exclusive_statements(k: &Kernel, a: Stmt, b: Stmt) -> bool {
    exclusive(k, &path_to(k, a), &path_to(k, b))
}

/// Whether a store promises that no other store writes its elements.
pub(in crate::barriers) fn is_marked_apart(k: &Kernel, s: Stmt) -> bool {
    matches!(&k.stmts[s], StmtData::Copy { attrs, .. } if attrs.apart)
}

/// The loops around a statement, outermost first.
pub(super) fn loops(k: &Kernel, path: &[Step]) -> Vec<Stmt> {
    let stmts = path.iter().map(|&(block, index)| k.blocks[block][index]);
    stmts.filter(|&s| matches!(k.stmts[s], StmtData::For { .. })).collect()
}

/// Whether two copies combine elements by one operator, so that their order matters only for rounding.
pub(in crate::barriers) fn commute(k: &Kernel, a: Stmt, b: Stmt) -> bool {
    let op = |s| match &k.stmts[s] {
        StmtData::Copy { attrs, .. } => attrs.reduce,
        _ => None,
    };
    // With exchanges, the last value remains, so their order matters.
    op(a).is_some_and(|op| op != Combining::Exchange) && op(a) == op(b)
}

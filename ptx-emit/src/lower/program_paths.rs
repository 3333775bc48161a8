//! Statements of a program with the blocks around them, and what these read.

use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

/// A block, and the index of a statement in it. A path has one for each nested block down to a statement.
pub(super) type Step = (Block, usize);

/// Whether elements of a tensor are part of indices in an expression.
pub(super) fn names_places(k: &Kernel, e: Expr, tensor: Value) -> bool {
    let element = |e: Expr| resolve_view(k, e).is_some_and(|view| view.base == tensor);
    let own = matches!(k.exprs[e], ExprData::Index(_)) && k.children(e).into_iter().any(|c| any_part(k, c, &element));
    own || k.children(e).into_iter().any(|c| names_places(k, c, tensor))
}

/// Whether some part of an expression is as asked.
pub(super) fn any_part(k: &Kernel, e: Expr, holds: &dyn Fn(Expr) -> bool) -> bool {
    holds(e) || k.children(e).into_iter().any(|c| any_part(k, c, holds))
}

/// The expressions that a statement reads, without the destination of a copy.
pub(super) fn reads(stmt: &StmtData) -> Vec<Expr> {
    match stmt {
        StmtData::Copy { src, attrs, .. } => std::iter::once(*src).chain(attrs.when).collect(),
        StmtData::Let { init, .. } => vec![*init],
        StmtData::Var { init, .. } => init.iter().copied().collect(),
        StmtData::Assign { src, .. } => vec![*src],
        StmtData::If { cond, .. } => vec![*cond],
        _ => Vec::new(),
    }
}

/// Calls `f` with every statement under `block` and its path.
pub(super) fn walk(k: &Kernel, block: Block, path: &mut Vec<Step>, f: &mut dyn FnMut(&[Step], Stmt)) {
    for (i, &s) in k.blocks[block].iter().enumerate() {
        path.push((block, i));
        f(path, s);
        for inner in k.sub_blocks(s) {
            walk(k, inner, path, f);
        }
        path.pop();
    }
}

/// The statement at the end of a path.
pub(super) fn statement(k: &Kernel, path: &[Step]) -> Option<Stmt> {
    path.last().map(|&(block, index)| k.blocks[block][index])
}

/// The depth at which two paths diverge, if the first statement precedes the second in that block.
pub(super) fn in_front(first: &[Step], second: &[Step]) -> Option<usize> {
    let common = first.iter().zip(second).take_while(|(x, y)| x == y).count();
    let (&(a, i), &(b, j)) = first.get(common).zip(second.get(common))?;
    (a == b && i < j).then_some(common)
}

/// Whether two indices are equal for equal values of the paired loop variables.
pub(super) fn same_index(k: &Kernel, a: Expr, b: Expr, pairs: &[(Value, Value)]) -> bool {
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Ref(v), ExprData::Ref(w)) => v == w || pairs.contains(&(*v, *w)),
        (ExprData::Op { op: p, args: x }, ExprData::Op { op: q, args: y }) => {
            p == q && x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| same_index(k, x, y, pairs))
        }
        _ => print_expr(k, a) == print_expr(k, b),
    }
}

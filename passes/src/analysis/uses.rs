//! Uses of values: walks over expressions and statements, and the place of a statement.

use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, View};
use tilec_ir::names::Parts;
pub use tilec_ir::names::mentions;
use tilec_ir::small_list::SmallList;

/// Calls `f` for every value that `e` mentions, in text order.
pub fn for_each_ref(k: &Kernel, e: Expr, f: &mut dyn FnMut(Value)) {
    match &k.exprs[e] {
        ExprData::Ref(v) => f(*v),
        ExprData::View(view) => f(view.base),
        _ => {}
    }
    for child in k.children(e) {
        for_each_ref(k, child, f);
    }
}

/// Calls `f` for every value whose elements `e` reads, not for tiles of which only extents count (`iota(x, 0)`).
pub fn for_each_read(k: &Kernel, e: Expr, f: &mut dyn FnMut(Value)) {
    match &k.exprs[e] {
        ExprData::Iota { .. } => return,
        ExprData::Ref(v) => f(*v),
        ExprData::View(view) => f(view.base),
        _ => {}
    }
    for child in k.children(e) {
        for_each_read(k, child, f);
    }
}

/// Whether an expression depends on a value, directly or through names.
pub(crate) fn depends(k: &Kernel, e: Expr, v: Value) -> bool {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        if let ExprData::Ref(w) | ExprData::View(View { base: w, .. }) = k.exprs[e] {
            if w == v {
                return true;
            }
            parts.named(w);
        }
        parts.inside(e);
    }
    false
}

/// The expressions a statement owns itself (not those of its blocks).
pub fn stmt_exprs(k: &Kernel, s: Stmt) -> SmallList<Expr> {
    k.stmts[s].exprs()
}

/// The path to a statement of the kernel: the chain of (block, index) from the body down to it.
///
/// # Panics
/// The statement is not in the kernel, which is a bug of the calling pass.
pub fn path_to(k: &Kernel, target: Stmt) -> Vec<(Block, usize)> {
    fn search(k: &Kernel, block: Block, target: Stmt, path: &mut Vec<(Block, usize)>) -> bool {
        for (i, &s) in k.blocks[block].iter().enumerate() {
            path.push((block, i));
            if s == target || k.sub_blocks(s).into_iter().any(|b| search(k, b, target, path)) {
                return true;
            }
            path.pop();
        }
        false
    }
    let mut path = Vec::new();
    assert!(search(k, k.body, target, &mut path), "bug: a statement that is not in the body of `{}`", k.name);
    path
}

/// The block that contains a statement of the kernel, and its index in it.
pub(crate) fn place_of(k: &Kernel, s: Stmt) -> (Block, usize) {
    *path_to(k, s).last().expect("a path ends at its statement")
}

/// Every statement under `block`, in program order.
pub fn all_stmts(k: &Kernel, block: Block) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(k.stmts.len());
    k.walk(block, &mut |_, _, s| out.push(s));
    out
}

/// The block a loop owns.
pub(crate) fn loop_body(k: &Kernel, s: Stmt) -> Option<Block> {
    match k.stmts[s] {
        StmtData::For { body, .. } => Some(body),
        _ => None,
    }
}

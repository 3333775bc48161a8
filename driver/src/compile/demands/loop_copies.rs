//! Copies of loops that take time which no unit works for: stores over the store of the iteration before, and loads straight to
//! registers that every iteration waits for.

use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::typing::resolve_view;

/// Whether an index depends on a variable, through names too.
pub(super) fn depends_on(k: &Kernel, e: Expr, v: Value) -> bool {
    k.has_part(e, |part| matches!(k.exprs[part], ExprData::Ref(w) if w == v))
}

/// Stores of a loop to a window that is the same in each of its iterations, and that nothing in the loop reads: where, what
/// there is to say, and what would change it.
pub(super) fn overwritten(k: &Kernel) -> Vec<(Span, String, String)> {
    let mut out = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::For { var, body, unroll: false, .. } = k.stmts[s] else { return };
        let inside = inside(k, body);
        for &store in &k.blocks[body] {
            let StmtData::Copy { dst, ref attrs, .. } = k.stmts[store] else { continue };
            let Some(to) = resolve_view(k, dst).filter(|to| k.tensor_ty(to.base).is_some() && !to.is_gathered()) else {
                continue;
            };
            // Names of the loop may change with it.
            let steady = starts_are_of(k, dst, &inside) && !depends_on(k, dst, var);
            let read = inside.iter().filter(|&&s| s != store).any(|&s| names(k, s, to.base));
            if steady && !read && attrs.reduce.is_none() && attrs.when.is_none() {
                let (tensor, index) = (&k.values[to.base].name, &k.values[var].name);
                out.push((
                    k.stmt_spans[store],
                    format!(
                        "each iteration over `{index}` stores to the same elements of `{tensor}` as the one before"
                    ),
                    format!("store `{tensor}` once, after the loop over `{index}`"),
                ));
            }
        }
    });
    out
}

/// The statements of a block, with those inside them.
fn inside(k: &Kernel, body: tilec_ir::entities::Block) -> Vec<Stmt> {
    let mut all = Vec::new();
    k.walk(body, &mut |_, _, s| all.push(s));
    all
}

/// Whether no name that a window's indices have is made by one of these statements.
fn starts_are_of(k: &Kernel, window: Expr, stmts: &[Stmt]) -> bool {
    let made: Vec<Value> = stmts
        .iter()
        .filter_map(|&s| match k.stmts[s] {
            StmtData::For { var, .. } => Some(var),
            StmtData::Assign { dst, .. } => Some(dst),
            StmtData::Var { value, .. } => Some(value),
            _ => None,
        })
        .collect();
    !made.into_iter().any(|v| depends_on(k, window, v))
}

/// Whether a statement names a value.
fn names(k: &Kernel, s: Stmt, v: Value) -> bool {
    k.stmts[s].exprs().into_iter().any(|e| depends_on(k, e, v))
}

/// A load of a loop straight to registers.
pub(crate) struct StraightLoad {
    /// The loop, and the load.
    pub(crate) around: Stmt,
    pub(crate) load: Stmt,
    /// The window, and its tensor.
    pub(crate) window: Expr,
    pub(crate) tensor: Value,
}

/// Loads of loops straight to registers.
pub(crate) fn straight(k: &Kernel) -> Vec<StraightLoad> {
    let mut out = Vec::new();
    k.walk(k.body, &mut |k, _, around| {
        let StmtData::For { body, unroll: false, .. } = k.stmts[around] else { return };
        for &load in &k.blocks[body] {
            let StmtData::Copy { src: window, dst, .. } = k.stmts[load] else { continue };
            let from = resolve_view(k, window).map(|from| from.base).filter(|&v| k.tensor_ty(v).is_some());
            let held = resolve_view(k, dst).is_some_and(|to| to.space(k).in_registers());
            out.extend(from.filter(|_| held).map(|tensor| StraightLoad { around, load, window, tensor }));
        }
    });
    out
}

/// Where iterations wait for such loads.
pub(super) fn awaited(k: &Kernel) -> Vec<(Span, String)> {
    let of = |own: StraightLoad| {
        let name = &k.values[own.tensor].name;
        (k.stmt_spans[own.load], format!("each iteration waits for `{name}`, which it loads to registers"))
    };
    straight(k).into_iter().map(of).collect()
}

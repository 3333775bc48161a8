//! Products with a split reduction: one kernel stores a partial sum per slice, the next adds them up.
//!
//! In the first kernel, the bounds of the loop over the reduction depend on a grid axis. It stores the bare sums to a
//! workspace at the index of that axis. The second adds the workspace over all indices, from zero, and its stores are
//! an epilogue like any other. Whether the slices cover the whole reduction is not checked here, because results are
//! compared.

use super::finder::{Finder, of_slices};
use super::form::{Coefficient, Product};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::names::Parts;
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;

use tilec_ir::typing::{ViewDim, resolve_view};

/// The grid index that the bounds of a loop around a product depend on.
pub(super) fn sliced_by(k: &Kernel) -> Option<Value> {
    let mut found = None;
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::For { start, end, body, .. } = k.stmts[s] else { return };
        let mut product = false;
        k.walk(body, &mut |k, _, s| {
            product |= matches!(k.stmts[s], StmtData::Assign { src, .. } if matches!(k.exprs[src], ExprData::Mma(_)));
        });
        if product {
            found = found.or_else(|| grid_index(k, start)).or_else(|| grid_index(k, end));
        }
    });
    found
}

/// A grid index in an expression, names looked up.
fn grid_index(k: &Kernel, e: Expr) -> Option<Value> {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        if let ExprData::Ref(v) = k.exprs[e]
            && matches!(k.values[v].def, ValueDef::Grid)
        {
            return Some(v);
        }
        parts.inside(e);
    }
    None
}

/// The product that `partial` and then `reduce` compute.
pub(super) fn product(partial: &Kernel, reduce: &Kernel) -> Option<Product> {
    let axis = &partial.values[sliced_by(partial)?].name;
    let slices = of_slices(partial)?;
    let bare = slices.epilogue == Some((Coefficient::number(1.0), None));
    let workspace = slices.c;
    let by_slice = workspace.batch.as_ref().is_some_and(|batch| batch.axis == *axis);
    if !bare || !by_slice || slices.a.batch.is_some() || slices.b.batch.is_some() {
        return None;
    }
    let finder = Finder::new(reduce);
    let sum = added_up(reduce, &workspace.tensor, workspace.dims)?;
    if finder.fails || !finder.products.is_empty() || !finder.starts_at_zero(sum.acc, &|src| src == sum.src) {
        return None;
    }
    let (c, epilogue) = finder.stored(sum.acc)?;
    c.batch.is_none().then_some(Product { a: slices.a, b: slices.b, c, acc: slices.acc, epilogue })
}

/// A register tile that a tensor is added up in.
struct Sum {
    acc: Value,
    /// The assigned value.
    src: Expr,
}

/// The tile in which a kernel adds up `workspace[s, .., ..]` over all `s`, if its other dimensions are `dims`.
fn added_up(k: &Kernel, workspace: &str, dims: [usize; 2]) -> Option<Sum> {
    let mut found: Vec<Sum> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::For { var, start, end, step, body, .. } = k.stmts[s] else { return };
        if k.as_int(start) != Some(0) || k.as_int(step) != Some(1) {
            return;
        }
        k.walk(body, &mut |k, _, s| {
            let StmtData::Assign { dst, src } = k.stmts[s] else { return };
            let ExprData::Op { op: Op::Add, args } = &k.exprs[src] else { return };
            let is_acc = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if v == dst);
            let part = match args[..] {
                [a, b] if is_acc(a) => b,
                [a, b] if is_acc(b) => a,
                _ => return,
            };
            let extent = slice(k, part, workspace, dims, var);
            if extent.is_some_and(|extent| print_expr(k, extent) == print_expr(k, end)) {
                found.push(Sum { acc: dst, src });
            }
        });
    });
    if found.len() == 1 { found.pop() } else { None }
}

/// Whether `e` is the window of the workspace at the loop index `at`, perhaps through a register tile: then how many there are.
fn slice(k: &Kernel, e: Expr, workspace: &str, dims: [usize; 2], at: Value) -> Option<Expr> {
    if let ExprData::Cast { arg, .. } = k.exprs[e] {
        return slice(k, arg, workspace, dims, at);
    }
    let view = resolve_view(k, e)?;
    if view.space(k).in_registers() {
        let mut sources = Vec::new();
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::Copy { src, dst, .. } = k.stmts[s]
                && matches!(k.exprs[dst], ExprData::Ref(v) if v == view.base)
            {
                sources.push(src);
            }
        });
        let [src] = sources[..] else { return None };
        return resolve_view(k, src)
            .filter(|from| from.space(k).has_bounds())
            .and_then(|_| slice(k, src, workspace, dims, at));
    }
    let index = (0..view.dims.len()).find(|d| !dims.contains(d))?;
    let by_index = matches!(view.dims[index], ViewDim::Fixed(e) if matches!(k.exprs[e], ExprData::Ref(v) if v == at));
    let same = k.values[view.base].name == workspace && view.dims.len() == 3 && view.base_dims() == dims;
    (by_index && same).then(|| k.tensor_ty(view.base)?.shape.get(index).copied())?
}

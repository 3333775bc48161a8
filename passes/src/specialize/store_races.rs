//! Stores of several blocks to the same elements (W0411): the window does not depend on an index of the grid.
//!
//! Blocks run in no order, so any of them may store last. Atomic stores (`add`) are no problem. Nor are stores for
//! which a condition or a loop that depends on the index, or on memory, may select the blocks.

use crate::Cx;
use std::collections::BTreeSet;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, GridAxis, Kernel, StmtData, ValueDef, View};
use tilec_ir::names::Parts;
use tilec_ir::ops::ReduceOp;
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

/// The dependences of a position or condition.
#[derive(Clone, Default)]
struct Depends {
    /// Indices of the grid.
    grid: BTreeSet<Value>,
    /// Sizes and parameters.
    sizes: BTreeSet<Value>,
    /// Whether it depends on values that blocks read or compute, which may be anything.
    unknown: bool,
}

/// An axis of the grid.
struct Axis {
    index: Value,
    /// Sizes in its extent: a condition on these may ensure that there is one block.
    sizes: BTreeSet<Value>,
}

impl Axis {
    fn new(k: &Kernel, axis: &GridAxis) -> Axis {
        let mut extent = Depends::default();
        depends(k, axis.extent, &mut extent);
        Axis { index: axis.index, sizes: extent.sizes }
    }
}

/// Warns of stores of several blocks to the same elements.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) {
    let axes = k.grid.iter().filter(|axis| k.as_int(axis.extent) != Some(1));
    let axes: Vec<Axis> = axes.map(|axis| Axis::new(k, axis)).collect();
    if axes.is_empty() {
        return;
    }
    let mut found = Vec::new();
    visit_stores(k, k.body, &Depends::default(), &axes, &mut found);
    found.into_iter().for_each(|d| cx.warn(d));
}

fn visit_stores(k: &Kernel, block: Block, around: &Depends, axes: &[Axis], found: &mut Vec<Diagnostic>) {
    for &s in &k.blocks[block] {
        let mut here = around.clone();
        match &k.stmts[s] {
            StmtData::If { cond, .. } => depends(k, *cond, &mut here),
            StmtData::For { var, .. } => {
                of_bounds(k, *var, &mut here);
                // Loop bounds do not limit the number of blocks; conditions may.
                here.sizes.clone_from(&around.sizes);
            }
            StmtData::Copy { .. } => found.extend(store(k, s, &here, axes)),
            _ => {}
        }
        k.sub_blocks(s).into_iter().for_each(|sub| visit_stores(k, sub, &here, axes, found));
    }
}

/// The warning for a copy.
fn store(k: &Kernel, s: Stmt, around: &Depends, axes: &[Axis]) -> Option<Diagnostic> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return None };
    let base = resolve_view(k, *dst)?.base;
    if k.tensor_ty(base)?.is_of_cluster() {
        return None;
    }
    if attrs.reduce.is_some() || is_literal(k, *src) {
        return None;
    }
    let mut own = around.clone();
    attrs.when.iter().for_each(|&when| depends(k, when, &mut own));
    let asked = own.sizes.clone();
    depends(k, *dst, &mut own);
    let raced = |axis: &&Axis| !own.grid.contains(&axis.index) && axis.sizes.is_disjoint(&asked);
    let missing = axes.iter().find(raced).filter(|_| !own.unknown)?;
    let (tensor, index) = (&k.values[base].name, &k.values[missing.index].name);
    let message = format!(
        "blocks that differ in `{index}` store to the same elements of `{tensor}`: `{}` does not depend on `{index}`",
        print_expr(k, *dst)
    );
    let adds = "what the blocks have is added up, to what the tensor had before";
    let d = Diagnostic::warning(codes::RACED, k.stmt_spans[s], message);
    // Partial sums should be added; the purpose of other stores is unknown.
    let d = match k.exprs[*src] {
        ExprData::Reduce { op: ReduceOp::Sum, .. } => d.with_fix_around(k.stmt_spans[s], "", " add").with_meaning(adds),
        _ => d,
    };
    Some(d.with_note(format!(
        "blocks run in no order, and the last store wins: combine their values (`copy .. -> {tensor}[..] add`), or replace the grid index `{index}` by a loop in the kernel"
    )))
}

/// The dependences of a loop's bounds, also through names.
fn of_bounds(k: &Kernel, var: Value, out: &mut Depends) {
    let mut parts = Parts::new(k);
    of_loop(k, var, out, &mut parts);
    all_parts(k, &mut parts, out);
}

/// Whether a number is the same in all blocks.
fn is_literal(k: &Kernel, e: Expr) -> bool {
    matches!(k.exprs[e], ExprData::Int(_) | ExprData::Float(_))
}

fn of_loop(k: &Kernel, var: Value, out: &mut Depends, parts: &mut Parts<'_>) {
    let bounds = k.stmts.values().find_map(|s| match s {
        StmtData::For { var: own, start, end, step, cond, next, .. } if *own == var => {
            Some(([*start, *end, *step], *cond, next.is_some()))
        }
        _ => None,
    });
    let Some((bounds, cond, drawn)) = bounds else { return };
    // Numbers from a counter differ between blocks.
    out.unknown |= drawn;
    bounds.into_iter().chain(cond).for_each(|e| parts.also(e));
}

fn depends(k: &Kernel, e: Expr, out: &mut Depends) {
    all_parts(k, &mut Parts::of(k, e), out);
}

fn all_parts(k: &Kernel, parts: &mut Parts<'_>, out: &mut Depends) {
    while let Some(e) = parts.take() {
        if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) = k.exprs[e] {
            of_value(k, v, out, parts);
        }
        k.children(e).into_iter().for_each(|child| parts.also(child));
    }
}

fn of_value(k: &Kernel, v: Value, out: &mut Depends, parts: &mut Parts<'_>) {
    match k.values[v].def {
        ValueDef::Grid => drop(out.grid.insert(v)),
        ValueDef::Loop if parts.once(v) => of_loop(k, v, out, parts),
        ValueDef::Let => parts.named(v),
        ValueDef::Loop => {}
        ValueDef::Var(_)
        | ValueDef::Smem(_)
        | ValueDef::Channel { .. }
        | ValueDef::Element { .. }
        | ValueDef::Local(_) => {
            out.unknown = true;
        }
        ValueDef::ConstParam(_) | ValueDef::Size | ValueDef::Scalar { .. } => drop(out.sizes.insert(v)),
        ValueDef::Stride | ValueDef::Tensor(_) | ValueDef::Table(_) => {}
    }
}

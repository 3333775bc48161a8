//! Copies of statements with fresh names, replaced references, and stages of new statements.

use tilec_ir::attributes::HeldElements;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Next, Range, StmtData, ValueData, ValueDef, View};
use tilec_ir::ops::Op;

/// The replacement of references to a value in a copy.
pub(crate) enum Subst {
    /// Another value.
    Value(Value),
    /// A copy of this expression.
    Expr(Expr),
}

/// A substitution.
#[derive(Default)]
pub(crate) struct Map(pub(crate) Vec<(Value, Subst)>);

impl Map {
    fn get(&self, v: Value) -> Option<&Subst> {
        self.0.iter().rev().find(|(w, _)| *w == v).map(|(_, s)| s)
    }

    fn value(&self, v: Value) -> Value {
        match self.get(v) {
            Some(Subst::Value(w)) => *w,
            _ => v,
        }
    }
}

/// Copies an expression.
pub(crate) fn clone_expr(k: &mut Kernel, e: Expr, map: &Map) -> Expr {
    let copy = k.clone_expr(e, &mut |k, v| match map.get(v)? {
        Subst::Value(w) => Some(k.value_ref(*w, k.expr_spans[e])),
        Subst::Expr(e) => Some(k.copy_expr(*e)),
    });
    rebase_views(k, copy, map);
    copy
}

/// `clone_expr` substitutes references; the bases of views are values, not references.
fn rebase_views(k: &mut Kernel, e: Expr, map: &Map) {
    if let ExprData::View(view) = &k.exprs[e] {
        let base = map.value(view.base);
        if let ExprData::View(view) = &mut k.exprs[e] {
            view.base = base;
        }
    }
    for child in k.children(e) {
        rebase_views(k, child, map);
    }
}

/// Copies a block; everything declared inside gets a fresh name.
pub(crate) fn clone_block(k: &mut Kernel, block: Block, map: &mut Map) -> Block {
    let stmts = k.blocks[block].clone();
    let copies = stmts.into_iter().map(|s| clone_stmt(k, s, map)).collect();
    k.block(copies)
}

fn redeclare(k: &mut Kernel, v: Value, map: &mut Map) -> Value {
    let ValueData { name, span, def, declared, .. } = k.values[v].clone();
    let def = match def {
        ValueDef::Var(t) => ValueDef::Var(clone_tile(k, t)),
        ValueDef::Smem(t) => ValueDef::Smem(clone_tile(k, t)),
        ValueDef::Channel { tile, slots } => {
            let tile = clone_tile(k, tile);
            let slots = k.copy_expr(slots);
            ValueDef::Channel { tile, slots }
        }
        other => other,
    };
    let new = k.value(&name, span, def);
    k.values[new].declared = declared;
    (k.handovers[new], k.shared_places[new]) = (k.handovers[v], k.shared_places[v]);
    map.0.push((v, Subst::Value(new)));
    new
}

fn clone_tile(k: &mut Kernel, mut t: tilec_ir::types::TileTy) -> tilec_ir::types::TileTy {
    t.shape = t.shape.iter().map(|&e| k.copy_expr(e)).collect();
    t
}

/// Copies a statement with everything under it.
pub(crate) fn clone_stmt(k: &mut Kernel, s: Stmt, map: &mut Map) -> Stmt {
    let data = match k.stmts[s].clone() {
        StmtData::Let { value, init } => {
            let init = clone_expr(k, init, map);
            StmtData::Let { value: redeclare(k, value, map), init }
        }
        StmtData::Var { value, init } => {
            let init = init.map(|e| clone_expr(k, e, map));
            StmtData::Var { value: redeclare(k, value, map), init }
        }
        StmtData::Alloc { value, over } => {
            let over = over.into_iter().map(|v| map.value(v)).collect();
            StmtData::Alloc { value: redeclare(k, value, map), over }
        }
        StmtData::Assign { dst, src } => StmtData::Assign { dst: map.value(dst), src: clone_expr(k, src, map) },
        StmtData::Copy { src, dst, attrs } => {
            let when = attrs.when.map(|e| clone_expr(k, e, map));
            let old = attrs.old.map(|e| clone_expr(k, e, map));
            let held = attrs.held.iter().map(|h| HeldElements { tile: clone_expr(k, h.tile, map), ..h.clone() });
            let attrs = CopyAttrs { when, old, held: held.collect(), ..attrs };
            StmtData::Copy { src: clone_expr(k, src, map), dst: clone_expr(k, dst, map), attrs }
        }
        StmtData::For { var, start, end, step, cond, next, unroll, body } => {
            let (start, end, step) = (clone_expr(k, start, map), clone_expr(k, end, map), clone_expr(k, step, map));
            let cond = cond.map(|e| clone_expr(k, e, map));
            let var = redeclare(k, var, map);
            let next = next.map(|n| Next { channel: map.value(n.channel), counter: map.value(n.counter) });
            StmtData::For { var, start, end, step, cond, next, unroll, body: clone_block(k, body, map) }
        }
        StmtData::If { cond, then, otherwise } => {
            let cond = clone_expr(k, cond, map);
            let then = clone_block(k, then, map);
            StmtData::If { cond, then, otherwise: otherwise.map(|b| clone_block(k, b, map)) }
        }
        StmtData::Channel { op, channels, pending } => {
            StmtData::Channel { op, channels: channels.into_iter().map(|c| map.value(c)).collect(), pending }
        }
        StmtData::Barrier => StmtData::Barrier,
        StmtData::Fence => StmtData::Fence,
        StmtData::Signal { op, signals, index } => {
            StmtData::Signal { op, signals: map.value(signals), index: clone_expr(k, index, map) }
        }
        StmtData::Await { value, pending, after } => StmtData::Await {
            value: map.value(value),
            pending,
            after: after.into_iter().map(|v| map.value(v)).collect(),
        },
        StmtData::Ordered { body } => StmtData::Ordered { body: clone_block(k, body, map) },
        StmtData::Role { name, warps, replicas, registers, body } => {
            let warps = clone_expr(k, warps, map);
            let replicas = replicas.map(|e| clone_expr(k, e, map));
            let registers = registers.map(|e| clone_expr(k, e, map));
            StmtData::Role { name, warps, replicas, registers, body: clone_block(k, body, map) }
        }
    };
    let (span, plan) = (k.stmt_spans[s], k.plans[s]);
    let copy = k.stmt(data, span);
    k.plans[copy] = plan;
    k.expects[copy] = k.expects[s].clone();
    k.lanes[copy] = k.lanes[s];
    k.recomputed[copy] = k.recomputed[s];
    copy
}

/// Whether two expressions have the same text.
pub(crate) fn same_expr(k: &Kernel, a: Expr, b: Expr) -> bool {
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Int(x), ExprData::Int(y)) => x == y,
        (ExprData::Float(x), ExprData::Float(y)) => x == y,
        (ExprData::Ref(x), ExprData::Ref(y)) => x == y,
        (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
            x == y && p.len() == q.len() && p.iter().zip(q).all(|(&a, &b)| same_expr(k, a, b))
        }
        (ExprData::View(v), ExprData::View(w)) => same_view(k, v, w),
        (ExprData::Index(_), ExprData::Index(_)) => tilec_ir::typing::same_expr(k, a, b),
        _ => false,
    }
}

fn same_view(k: &Kernel, v: &View, w: &View) -> bool {
    let same_range = |a: &Range, b: &Range| match (a, b) {
        (Range::At(a), Range::At(b)) => same_expr(k, *a, *b),
        (Range::From { start: a, end: p }, Range::From { start: b, end: q }) => {
            same_expr(k, *a, *b)
                && match (p, q) {
                    (None, None) => true,
                    (Some(p), Some(q)) => same_expr(k, *p, *q),
                    _ => false,
                }
        }
        _ => false,
    };
    v.base == w.base
        && v.slot == w.slot
        && v.ranges.len() == w.ranges.len()
        && v.ranges.iter().zip(&w.ranges).all(|(a, b)| same_range(a, b))
}

/// Gives new statements in a loop with stages the stage of the statement in front of which they are, and which they
/// serve.
pub(crate) fn inherit_stages(k: &mut Kernel) {
    let staged = |k: &Kernel, s: Stmt| k.plans[s].stage.is_some();
    let mut blocks = Vec::new();
    k.walk(k.body, &mut |k, b, s| {
        if staged(k, s) && !blocks.contains(&b) {
            blocks.push(b);
        }
    });
    for b in blocks {
        let list = k.blocks[b].clone();
        let consumers = |k: &Kernel, s: Stmt| staged(k, s) && !k.plans[s].producer;
        let mut last = list.iter().rev().copied().find(|&s| consumers(k, s));
        for &s in list.iter().rev() {
            if consumers(k, s) {
                last = Some(s);
            } else if let Some(served) = last.filter(|_| !staged(k, s)) {
                let plan = k.plans[served];
                k.plans[s].stage = plan.stage;
                k.plans[s].cycle = plan.cycle;
                k.plans[s].ordered = plan.ordered;
            }
        }
    }
}

/// Adds a condition to a copy.
pub(crate) fn add_condition(k: &mut Kernel, s: Stmt, cond: Expr) {
    let span = k.stmt_spans[s];
    let StmtData::Copy { attrs, .. } = &k.stmts[s] else { unreachable!("a condition is a copy's") };
    let both = match attrs.when {
        Some(other) => k.binary(Op::And, other, cond, span),
        None => cond,
    };
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
        attrs.when = Some(both);
    }
}

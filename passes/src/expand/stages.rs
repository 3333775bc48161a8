//! The expansion of a loop with stages.
//!
//! If one stage computes a value and a later one reads it, the value is in a register tile that is declared in front of the loop. Indices and names for windows are
//! computed again for each iteration that needs them. [`super::iterations`] writes the resulting loop.

use super::body::Body;
use super::iterations;
use super::tiles::Tiles;
use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::wgmma::is_product;
use crate::graph::accesses::Accesses;
use crate::ordered::split_declaration;
use crate::residue::steady;
use crate::rewrite::{Map, Subst, add_condition, clone_block};
use crate::schedule_loops::modulo::is_index;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, StmtPlan, ValueDef};
use tilec_ir::typing::{let_init, resolve_view};

/// Expands a loop in place.
pub(super) fn expand(k: &mut Kernel, at: Stmt) -> Result<(), Box<Diagnostic>> {
    let StmtData::For { body: block, .. } = k.stmts[at] else { unreachable!("a loop is expanded") };
    let span = k.stmt_spans[at];
    if k.blocks[block].iter().all(|&s| k.plans[s].stage.is_none()) {
        return peel_first(k, at);
    }
    let body = Body::of(k, at);
    if body.last == 0 {
        in_one_stage(k, &body);
        return if k.plans[at].ragged { peel_first(k, at) } else { Ok(()) };
    }
    let place = place_of(k, at);
    let released = released_early(k, &body, place);
    let turned = in_two(k, &body);
    let is_var = |v: Value| matches!(k.values[v].def, ValueDef::Var(_));
    if let Some(&v) = turned.iter().find(|&&v| body.last > 1 || body.open || !is_var(v)) {
        let message = format!("`{}` is written again before a later stage is done with it", k.values[v].name);
        let d = Diagnostic::error(codes::BAD_PLAN, span, message);
        return Err(Box::new(
            d.with_note("a `var` alternates between two tiles only in a loop of two stages with a drain"),
        ));
    }
    let tiles = Tiles::of(k, &body)?;
    let mut out = hoisted(k, &body);
    let mut turns = Map::default();
    for v in turned {
        let Some(tile) = k.tile_ty(v).cloned() else { unreachable!("tiles take turns") };
        let name = k.values[v].name.clone();
        let other = k.value(&name, span, ValueDef::Var(tile));
        out.push(k.stmt(StmtData::Var { value: other, init: None }, span));
        turns.0.push((v, Subst::Value(other)));
    }
    out.extend(iterations::pipelined(k, &body, &tiles, &released, turns));
    let own = k.plans[at];
    clear(k, &out);
    in_its_place(k, &out, own);
    let (block, index) = place;
    k.blocks[block].splice(index..=index + released.len(), out);
    Ok(())
}

/// Sorts the statements of a loop with a single stage by cycles.
fn in_one_stage(k: &mut Kernel, body: &Body) {
    let mut list: Vec<Stmt> = body.declared.iter().chain(&body.names).copied().collect();
    let order: Vec<(Stmt, Stmt)> = body.order.iter().map(|&(s, _)| (s, s)).collect();
    iterations::with_turns(k, &order, &mut list);
    clear(k, &list);
    let new = k.block(list);
    let StmtData::For { body, .. } = &mut k.stmts[body.at] else { unreachable!("a loop is expanded") };
    *body = new;
}

/// Peels the first iteration of a loop without stages, for the ragged tile.
fn peel_first(k: &mut Kernel, at: Stmt) -> Result<(), Box<Diagnostic>> {
    let StmtData::For { var, body, .. } = k.stmts[at] else { unreachable!("a loop is divided") };
    let span = k.stmt_spans[at];
    let ragged = Tiles::ragged(k, at)?.unwrap_or_else(|| panic!("bug: a loop is expanded that has no schedule"));
    let mut map = Map(vec![(var, Subst::Expr(ragged.plan.first(k, span)))]);
    let first = clone_block(k, body, &mut map);
    for (of, s) in all_stmts(k, body).into_iter().zip(all_stmts(k, first)) {
        let Some(dim) = ragged.plan.fetched(of) else { continue };
        ragged.plan.cut(k, s, dim, ragged.head);
        if !ragged.plan.whole {
            let any = ragged.plan.any(k, span);
            add_condition(k, s, any);
        }
        steady(k, of, dim);
    }
    let second = ragged.plan.place(k, ragged.head, 0, span);
    if let StmtData::For { start, .. } = &mut k.stmts[at] {
        *start = second;
    }
    let mut list = vec![ragged.decl];
    list.extend(&k.blocks[first]);
    in_its_place(k, &list, k.plans[at]);
    let (block, index) = place_of(k, at);
    k.blocks[block].splice(index..index, list);
    Ok(())
}

/// Tiles that the loop declares and that the next iteration overwrites before this one has finished with them. Each is
/// doubled, and iterations alternate (modulo variable expansion; Lam, *Software pipelining*, 1988). A register operand
/// of a product is in use until the product's slots are released.
fn in_two(k: &Kernel, body: &Body) -> Vec<Value> {
    let accesses: Vec<Accesses> = body.order.iter().map(|&(s, _)| Accesses::of(k, s)).collect();
    let release = |s: Stmt| matches!(k.stmts[s], StmtData::Channel { op: ChannelOp::Release, .. });
    let late = body.order.iter().rposition(|&(s, stage)| stage > 0 && release(s));
    let mut found: Vec<Value> = Vec::new();
    for touch in accesses.iter().flat_map(|a| &a.touches) {
        let v = touch.value;
        let named = || let_init(k, v).is_some_and(|e| !is_index(k, e) && resolve_view(k, e).is_none());
        let tile = (matches!(k.values[v].def, ValueDef::Var(_)) || named()) && body.declares(k, v);
        let written = accesses.iter().position(|a| a.get(v).is_some_and(|t| t.writes));
        let Some(written) = written.filter(|_| tile && !found.contains(&v)) else { continue };
        let mut read = None;
        for (i, &(s, stage)) in body.order.iter().enumerate() {
            if !accesses[i].get(v).is_some_and(|t| t.reads) {
                continue;
            }
            let behind = stage.saturating_sub(body.order[written].1);
            if behind > 1 {
                read = Some(usize::MAX);
            } else if behind == 1 {
                read = read.max(Some(i));
            } else if is_product(k, s) && operand(k, s, v) {
                read = read.max(late);
            }
        }
        if read.is_some_and(|read| read > written) {
            found.push(v);
        }
    }
    found
}

/// Whether a product reads a register tile as an operand.
fn operand(k: &Kernel, s: Stmt, v: Value) -> bool {
    let StmtData::Assign { src, .. } = k.stmts[s] else { return false };
    let ExprData::Mma(mma) = k.exprs[src] else { return false };
    [mma.a, mma.b].into_iter().any(|e| matches!(k.exprs[e], ExprData::Ref(w) if w == v))
}

/// Releases directly after the loop, of slots that no later stage reads. They need not wait for the drain, so producer
/// warps can refill the slots meanwhile.
fn released_early(k: &Kernel, body: &Body, (block, index): (Block, usize)) -> Vec<Stmt> {
    let late = |c: Value| {
        let touches = |&&(s, stage): &&(Stmt, u32)| stage > 0 && Accesses::of(k, s).get(c).is_some();
        body.order.iter().any(|of| touches(&of))
    };
    let behind = k.blocks[block][index + 1..].iter().copied();
    behind
        .take_while(|&s| match &k.stmts[s] {
            StmtData::Channel { op: ChannelOp::Release, channels, .. } => channels.iter().all(|&c| !late(c)),
            _ => false,
        })
        .collect()
}

fn clear(k: &mut Kernel, list: &[Stmt]) {
    for &s in list {
        k.plans[s].stage = None;
        k.plans[s].cycle = None;
        k.plans[s].ordered = false;
        k.plans[s].open = false;
        k.plans[s].ragged = false;
        for b in k.sub_blocks(s) {
            let inner = k.blocks[b].clone();
            clear(k, &inner);
        }
    }
}

/// Gives the statements that replace an inner loop the stage and cycle of that loop.
fn in_its_place(k: &mut Kernel, list: &[Stmt], of: StmtPlan) {
    for &s in list {
        let StmtPlan { stage, cycle, ordered, .. } = of;
        k.plans[s] = StmtPlan { stage, cycle, ordered, ..k.plans[s] };
    }
}

/// Declarations in front of the loop for tiles that its statements declare. A `var` with a value becomes an assignment,
/// and so does a `let` that another stage reads.
fn hoisted(k: &mut Kernel, body: &Body) -> Vec<Stmt> {
    let mut out = body.declared.clone();
    let touches: Vec<(u32, Accesses)> = body.order.iter().map(|&(s, stage)| (stage, Accesses::of(k, s))).collect();
    for &(s, stage) in &body.order {
        let elsewhere = |v: Value| touches.iter().any(|(other, a)| *other != stage && a.get(v).is_some());
        let apart = match k.stmts[s] {
            StmtData::Var { init: Some(_), value } => !body.open || elsewhere(value),
            StmtData::Let { value, .. } => elsewhere(value),
            _ => false,
        };
        if apart {
            out.extend(split_declaration(k, s));
        }
    }
    out
}

//! Prologue, steady state and drain of a loop with stages.
//!
//! ```text
//! stage 0 of the first iteration; stages 0, 1 of the second and first; ..     // prologue
//! for j in start + S * step..end step step {                                  // steady state, in the order of cycles
//!     stage 0 of iteration j; stage 1 of iteration j - step; ..
//! }
//! stages 1, 2 .. of the last iterations; ..                                   // drain
//! ```
//!
//! If there may be fewer iterations than the prologue has, a branch runs them one after the other instead.
//!
//! An open loop has no drain. There `j` is the iteration of the last stage:
//!
//! ```text
//! for j in start..end step step { stage 0 of iteration j + S * step; ..; stage S of iteration j }
//! ```
//!
//! Its other stages run past the end, where their copies load nothing. The slots filled there are waited for and released.

use super::body::Body;
use super::overrun::{begins, only_adds};
use super::tiles::{At, Tiles};
use crate::graph::accesses::Accesses;
use crate::ordered::ordered;
use crate::rewrite::{Map, Subst, clone_stmt};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;

/// Emits prologue, steady state and drain. `turns`: tiles that are doubled.
pub(super) fn pipelined(k: &mut Kernel, body: &Body, tiles: &Tiles, released: &[Stmt], turns: Map) -> Vec<Stmt> {
    let span = body.span;
    let [start, end, _] = body.bounds;
    let mut list = Vec::new();
    for n in 0..body.last {
        let stages: Vec<(u32, At)> = (0..=n).map(|stage| (stage, At::Nth(n - stage))).collect();
        list.extend(iteration(k, body, tiles, &stages, &[]));
    }
    list.extend(match turns.0.is_empty() {
        _ if body.open => open(k, body, tiles),
        true => single_buffered(k, body, tiles, released),
        false => double_buffered(k, body, tiles, released, &turns),
    });
    let list: Vec<Stmt> = tiles.decl().into_iter().chain(list).collect();
    if !enough(k, body) {
        return branch_on_count(k, body, tiles, (list, released));
    }
    if tiles.may_be_none(body) || begins(k, body) {
        return list;
    }
    let (from, to) = (k.copy_expr(start), k.copy_expr(end));
    let cond = k.expr(ExprData::Op { op: Op::Lt, args: vec![from, to] }, span);
    let then = k.block(list);
    let none: Vec<Stmt> = released.iter().map(|&s| clone_stmt(k, s, &mut Map::default())).collect();
    let otherwise = (!none.is_empty()).then(|| k.block(none));
    vec![k.stmt(StmtData::If { cond, then, otherwise }, span)]
}

/// Whether there are certainly as many iterations as the prologue begins, or fewer are harmless.
fn enough(k: &Kernel, body: &Body) -> bool {
    let [start, end, step] = body.bounds.map(|e| k.as_int(e));
    let begun = |step: i64| i64::from(body.last - 1).saturating_mul(step);
    let known = start.zip(end).zip(step).is_some_and(|((start, end), step)| start.saturating_add(begun(step)) < end);
    body.open || body.last < 2 || known || only_adds(k, body)
}

/// Emits a branch: `list` if there are enough iterations for its prologue, otherwise the iterations one after the
/// other.
fn branch_on_count(k: &mut Kernel, body: &Body, tiles: &Tiles, (list, released): (Vec<Stmt>, &[Stmt])) -> Vec<Stmt> {
    let span = body.span;
    let [_, end, _] = body.bounds;
    let (begins, to) = (tiles.begin(k, body, body.last - 1), k.copy_expr(end));
    let cond = k.expr(ExprData::Op { op: Op::Lt, args: vec![begins, to] }, span);
    let name = k.values[body.var].name.clone();
    let var = k.value(&name, k.values[body.var].span, ValueDef::Loop);
    // Cycles order statements of different iterations. Within one iteration, the stages are executed in order.
    let mut plain = Vec::new();
    for stage in 0..=body.last {
        plain.extend(iteration(k, body, tiles, &[(stage, At::Alone(var))], &[]));
    }
    let plain = k.block(plain);
    let bounds = body.bounds.map(|e| k.copy_expr(e));
    let mut few = vec![steady_loop(k, body, var, bounds, plain)];
    few.extend(released.iter().map(|&s| clone_stmt(k, s, &mut Map::default())));
    let (then, otherwise) = (k.block(list), Some(k.block(few)));
    vec![k.stmt(StmtData::If { cond, then, otherwise }, span)]
}

/// The loop without a drain, and the waits and releases of slots that were filled for iterations past the end.
fn open(k: &mut Kernel, body: &Body, tiles: &Tiles) -> Vec<Stmt> {
    let [_, end, step] = body.bounds;
    let stages: Vec<(u32, At)> =
        (0..=body.last).map(|stage| (stage, At::After(body.var, i64::from(body.last - stage)))).collect();
    let steady = iteration(k, body, tiles, &stages, &[]);
    let steady = k.block(steady);
    let (start, end) = tiles.steady_open(k, body, end);
    k.stmts[body.at] =
        StmtData::For { var: body.var, start, end, step, cond: None, next: None, unroll: false, body: steady };
    let mut list = vec![body.at];
    let filled = |c: Value| {
        let publishes = |s: Stmt| matches!(&k.stmts[s], StmtData::Channel { op: ChannelOp::Publish, channels, .. } if channels.contains(&c));
        body.order.iter().find(|&&(s, _)| publishes(s)).map(|&(_, stage)| stage)
    };
    let mut left: Vec<(Stmt, u32)> = Vec::new();
    for &(s, stage) in &body.order {
        let StmtData::Channel { op: ChannelOp::Wait | ChannelOp::Release, ref channels, .. } = k.stmts[s] else {
            continue;
        };
        if let Some(first) = channels.first().and_then(|&c| filled(c)) {
            left.push((s, stage.saturating_sub(first)));
        }
    }
    for n in 0..body.last {
        for &(s, rounds) in left.iter().filter(|(_, rounds)| n < *rounds) {
            let copy = clone_stmt(k, s, &mut Map::default());
            tiles.pending(k, copy, i64::from(rounds) - 1 - i64::from(n));
            list.push(copy);
        }
    }
    list
}

/// Steady state and drain, if every iteration uses the same tiles.
fn single_buffered(k: &mut Kernel, body: &Body, tiles: &Tiles, released: &[Stmt]) -> Vec<Stmt> {
    let [_, end, step] = body.bounds;
    let var = body.var;
    let stages: Vec<(u32, At)> = (0..=body.last).map(|stage| (stage, At::After(var, -i64::from(stage)))).collect();
    let steady = iteration(k, body, tiles, &stages, &[]);
    let steady = k.block(steady);
    let start = tiles.index(k, body, At::Nth(body.last));
    let (end, step) = (k.copy_expr(end), k.copy_expr(step));
    let mut list = vec![steady_loop(k, body, var, [start, end, step], steady)];
    list.extend(released);
    for n in 1..=body.last {
        let stages: Vec<(u32, At)> = (n..=body.last).map(|stage| (stage, At::Last(stage - n))).collect();
        list.extend(iteration(k, body, tiles, &stages, &[]));
    }
    list
}

/// The loop of the steady state, with the recomputed values of the original loop.
fn steady_loop(k: &mut Kernel, of: &Body, var: Value, range: [Expr; 3], body: Block) -> Stmt {
    let [start, end, step] = range;
    let s = k.stmt(StmtData::For { var, start, end, step, cond: None, next: None, unroll: false, body }, of.span);
    k.recomputed[s] = k.recomputed[of.at];
    s
}

/// Steady state and drain with two iterations in one, for doubled tiles. If the number of iterations is even, one
/// iteration remains.
///
/// ```text
/// for j in start + step..end - step step 2 * step { stage 0 of j; stage 1 of j - step; stage 0 of j + step; stage 1 of j }
/// if ceildiv(end - start, step) % 2 == 0 { stage 0 of the last; stage 1 of the one before; stage 1 of the last } else { stage 1 of the last }
/// ```
fn double_buffered(k: &mut Kernel, body: &Body, tiles: &Tiles, released: &[Stmt], turns: &Map) -> Vec<Stmt> {
    let span = body.span;
    let [start, end, step] = body.bounds;
    let second = |stage: u32| (stage, turns);
    let name = k.values[body.var].name.clone();
    let var = k.value(&name, k.values[body.var].span, ValueDef::Loop);
    let mut steady = iteration(k, body, tiles, &[(0, At::After(var, 0)), (1, At::After(var, -1))], &[second(0)]);
    steady.extend(iteration(k, body, tiles, &[(0, At::After(var, 1)), (1, At::After(var, 0))], &[second(1)]));
    let steady = k.block(steady);
    let (from, by) = (k.copy_expr(start), k.copy_expr(step));
    let from = k.binary(Op::Add, from, by, span);
    let (to, by) = (k.copy_expr(end), k.copy_expr(step));
    let to = k.binary(Op::Sub, to, by, span);
    let double = match k.as_int(step) {
        Some(step) => k.int(2 * step, span),
        None => {
            let (step, two) = (k.copy_expr(step), k.int(2, span));
            k.binary(Op::Mul, step, two, span)
        }
    };
    let mut list = vec![steady_loop(k, body, var, [from, to, double], steady)];
    list.extend(released);
    let mut rest = iteration(k, body, tiles, &[(0, At::Last(0)), (1, At::Last(1))], &[second(0)]);
    rest.extend(iteration(k, body, tiles, &[(1, At::Last(0))], &[second(1)]));
    let done = iteration(k, body, tiles, &[(1, At::Last(0))], &[]);
    let number = k.as_int(start).zip(k.as_int(end)).zip(k.as_int(step));
    match number.map(|((start, end), step)| (end - start + step - 1) / step % 2 == 0) {
        Some(true) => list.extend(rest),
        Some(false) => list.extend(done),
        None => {
            let cond = even(k, body);
            let (then, otherwise) = (k.block(rest), (!done.is_empty()).then(|| k.block(done)));
            list.push(k.stmt(StmtData::If { cond, then, otherwise }, span));
        }
    }
    list
}

/// The condition that the number of iterations is even.
fn even(k: &mut Kernel, body: &Body) -> Expr {
    let [start, end, step] = body.bounds;
    let span = body.span;
    let (from, to) = (k.copy_expr(start), k.copy_expr(end));
    let all = k.binary(Op::Sub, to, from, span);
    let by = k.copy_expr(step);
    let steps = k.binary(Op::CeilDiv, all, by, span);
    let (two, none) = (k.int(2, span), k.int(0, span));
    let odd = k.binary(Op::Rem, steps, two, span);
    k.expr(ExprData::Op { op: Op::Eq, args: vec![odd, none] }, span)
}

/// The statements of some stages, each for an iteration. `turned`: the stages that use the second of two tiles, and the
/// replacements.
fn iteration(k: &mut Kernel, body: &Body, tiles: &Tiles, stages: &[(u32, At)], turned: &[(u32, &Map)]) -> Vec<Stmt> {
    let mut out = Vec::new();
    // Names are computed for each iteration; unused ones are removed below.
    let mut maps: Vec<(u32, At, Map)> = Vec::new();
    for &(stage, at) in stages {
        let mut map = Map::default();
        let needed = needed(k, body, stage);
        let needed = body.names.iter().copied().filter(|s| needed.contains(s));
        if once(body, at) {
            out.extend(needed);
            maps.push((stage, at, map));
            continue;
        }
        if at != At::After(body.var, 0) {
            let index = tiles.index(k, body, at);
            map.0.push((body.var, Subst::Expr(index)));
        }
        for (_, turns) in turned.iter().filter(|(of, _)| *of == stage) {
            for (v, other) in &turns.0 {
                let Subst::Value(other) = other else { unreachable!("a tile stands for a tile") };
                map.0.push((*v, Subst::Value(*other)));
            }
        }
        for s in needed.collect::<Vec<_>>() {
            out.push(clone_stmt(k, s, &mut map));
        }
        maps.push((stage, at, map));
    }
    let mut copies: Vec<(Stmt, Stmt)> = Vec::new();
    for &(s, stage) in &body.order {
        let Some((_, at, map)) = maps.iter_mut().find(|(of, ..)| *of == stage) else { continue };
        let copy = if once(body, *at) { s } else { clone_stmt(k, s, map) };
        tiles.adapt_copy(k, body, (s, copy), *at);
        copies.push((s, copy));
    }
    with_turns(k, &copies, &mut out);
    out
}

/// Whether an iteration's statements occur only once: those of the last stage of an open loop, which need no copies.
fn once(body: &Body, at: At) -> bool {
    body.open && at == At::After(body.var, 0)
}

/// Appends copies of statements; `ordered` ones become blocks.
pub(super) fn with_turns(k: &mut Kernel, copies: &[(Stmt, Stmt)], out: &mut Vec<Stmt>) {
    let mut turn: Vec<Stmt> = Vec::new();
    for &(s, copy) in copies {
        match k.plans[s].ordered {
            true => turn.push(copy),
            // Producer statements are not in `ordered` blocks of the consumer.
            false if k.plans[s].producer => out.push(copy),
            false => {
                ordered_block(k, &mut turn, out);
                out.push(copy);
            }
        }
    }
    ordered_block(k, &mut turn, out);
}

/// An `ordered` block of statements, which warpgroups of the consumer execute one after the other.
fn ordered_block(k: &mut Kernel, turn: &mut Vec<Stmt>, out: &mut Vec<Stmt>) {
    let Some(&first) = turn.first() else { return };
    let span = k.stmt_spans[first];
    out.extend(ordered(k, std::mem::take(turn), None, span));
}

/// The names that statements of a stage use, directly or through other names.
fn needed(k: &Kernel, body: &Body, stage: u32) -> Vec<Stmt> {
    let mut wanted: Vec<Value> = Vec::new();
    let note = |k: &Kernel, s: Stmt, wanted: &mut Vec<Value>| {
        wanted.extend(Accesses::of(k, s).touches.iter().filter(|t| !t.declares).map(|t| t.value));
    };
    body.order.iter().filter(|&&(_, of)| of == stage).for_each(|&(s, _)| note(k, s, &mut wanted));
    let mut found = Vec::new();
    for &s in body.names.iter().rev() {
        let StmtData::Let { value, .. } = k.stmts[s] else { unreachable!("names are `let`s") };
        if wanted.contains(&value) {
            note(k, s, &mut wanted);
            found.push(s);
        }
    }
    found
}

//! Modulo expansion of a loop with two stages.
//!
//! ```text
//! stage 0 of the first iteration                       // prologue
//! for j in start + step..end step step {               // steady state, in the order of cycles
//!     stage 0 of iteration j; stage 1 of iteration j - step
//! }
//! stage 1 of the last iteration                        // drain
//! ```
//!
//! What stage 0 computes and stage 1 reads lives in a register tile that is declared in front of the loop. Indices and names for windows are
//! computed again for each iteration that needs them.

use crate::analysis::uses::place_of;
use crate::analysis::wgmma::is_product;
use crate::graph::accesses::Accesses;
use crate::rewrite::{Map, Subst, clone_stmt};
use crate::schedule_loops::modulo::is_index;
use crate::turns::{declared_apart, ordered};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::let_init;

/// A loop that is being expanded.
struct Body {
    /// In the order of an iteration of the steady state.
    order: Vec<(Stmt, u32)>,
    /// Indices and names, in program order.
    names: Vec<Stmt>,
    /// Declarations without a value.
    declared: Vec<Stmt>,
    var: Value,
    bounds: [Expr; 3],
    span: Span,
}

/// Expands a loop in place.
pub(super) fn expand(k: &mut Kernel, at: Stmt) {
    let StmtData::For { var, start, end, step, body, .. } = k.stmts[at] else { unreachable!("a loop is expanded") };
    let (declared, body) = sorted(k, body);
    let span = k.stmt_spans[at];
    let body = Body { order: body.0, names: body.1, declared: declared.clone(), var, bounds: [start, end, step], span };
    let stages = body.order.iter().map(|&(_, stage)| stage).max().unwrap_or(0) + 1;
    if stages == 1 {
        let mut list: Vec<Stmt> = declared.into_iter().chain(body.names.iter().copied()).collect();
        let mut turn: Vec<Stmt> = Vec::new();
        for &(s, _) in &body.order {
            match k.plans[s].ordered {
                true => turn.push(s),
                false if k.plans[s].producer => list.push(s),
                false => {
                    in_turns(k, &mut turn, &mut list);
                    list.push(s);
                }
            }
        }
        in_turns(k, &mut turn, &mut list);
        clear(k, &list);
        let new = k.block(list);
        let StmtData::For { body, .. } = &mut k.stmts[at] else { unreachable!("a loop is expanded") };
        *body = new;
        return;
    }
    let (block, index) = place_of(k, at);
    let released = released_early(k, &body, (block, index));
    let turned = in_two(k, &body);
    let mut out = hoisted(k, declared, &body);
    let mut turns = Map::default();
    for v in turned {
        let Some(tile) = k.tile_ty(v).cloned() else { unreachable!("tiles take turns") };
        let name = k.values[v].name.clone();
        let other = k.value(&name, span, ValueDef::Var(tile));
        out.push(k.stmt(StmtData::Var { value: other, init: None }, span));
        turns.0.push((v, Subst::Value(other)));
    }
    out.extend(pipelined(k, &body, &released, turns));
    clear(k, &out);
    k.blocks[block].splice(index..=index + released.len(), out);
}

/// The tiles that the loop declares and that the next iteration writes before this one is done with them: of each there are two, in turns (modulo variable
/// expansion; Lam, *Software pipelining*, 1988). A register operand of a product is in use until its slots are given back.
fn in_two(k: &Kernel, body: &Body) -> Vec<Value> {
    let accesses: Vec<Accesses> = body.order.iter().map(|&(s, _)| Accesses::of(k, s)).collect();
    let release = |s: Stmt| matches!(k.stmts[s], StmtData::Channel { op: ChannelOp::Release, .. });
    let late = body.order.iter().rposition(|&(s, stage)| stage > 0 && release(s));
    let mut found: Vec<Value> = Vec::new();
    for touch in accesses.iter().flat_map(|a| &a.touches) {
        let v = touch.value;
        let tile = matches!(k.values[v].def, ValueDef::Var(_)) && body.declares(k, v);
        let written = accesses.iter().position(|a| a.get(v).is_some_and(|t| t.writes));
        let Some(written) = written.filter(|_| tile && !found.contains(&v)) else { continue };
        let mut read = None;
        for (i, &(s, stage)) in body.order.iter().enumerate() {
            if !accesses[i].get(v).is_some_and(|t| t.reads) {
                continue;
            }
            if stage > body.order[written].1 {
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

impl Body {
    /// Whether a statement of the loop declares a value.
    fn declares(&self, k: &Kernel, v: Value) -> bool {
        let own = |s: Stmt| matches!(k.stmts[s], StmtData::Var { value, .. } if value == v);
        self.declared.iter().any(|&s| own(s)) || self.order.iter().any(|&(s, _)| own(s))
    }
}

/// The releases directly behind the loop of slots that no later stage reads: they need not wait for the drain, so that producer warps fill
/// them meanwhile.
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

type Sorted = (Vec<Stmt>, (Vec<(Stmt, u32)>, Vec<Stmt>));

/// The statements of a loop: declarations without a value; those that have stages, in the order of cycles; names.
fn sorted(k: &Kernel, body: Block) -> Sorted {
    let (mut declared, mut names, mut order) = (Vec::new(), Vec::new(), Vec::new());
    for (i, &s) in k.blocks[body].iter().enumerate() {
        let plan = k.plans[s];
        match k.stmts[s] {
            StmtData::Var { init: None, .. } | StmtData::Alloc { .. } => declared.push(s),
            StmtData::Let { init, .. } if is_index(k, init) => names.push(s),
            _ => order.push((plan.cycle.unwrap_or(0), i, s, plan.stage.unwrap_or(0))),
        }
    }
    order.sort_unstable_by_key(|&(cycle, i, ..)| (cycle, i));
    (declared, (order.into_iter().map(|(_, _, s, stage)| (s, stage)).collect(), names))
}

fn clear(k: &mut Kernel, list: &[Stmt]) {
    for &s in list {
        k.plans[s].stage = None;
        k.plans[s].cycle = None;
        k.plans[s].ordered = false;
        for b in k.sub_blocks(s) {
            let inner = k.blocks[b].clone();
            clear(k, &inner);
        }
    }
}

/// Declarations in front of the loop, of the tiles that its statements declare: a `var` with a value becomes an assignment, and so does a `let` that
/// another stage reads.
fn hoisted(k: &mut Kernel, declared: Vec<Stmt>, body: &Body) -> Vec<Stmt> {
    let mut out = declared;
    let touches: Vec<(u32, Accesses)> = body.order.iter().map(|&(s, stage)| (stage, Accesses::of(k, s))).collect();
    for &(s, stage) in &body.order {
        let apart = match k.stmts[s] {
            StmtData::Var { .. } => true,
            StmtData::Let { value, .. } => {
                touches.iter().any(|(other, a)| *other != stage && a.get(value).is_some_and(|t| t.reads))
            }
            _ => false,
        };
        if apart {
            out.extend(declared_apart(k, s));
        }
    }
    out
}

/// Prologue, steady state and drain. `turns`: tiles of which there are two.
fn pipelined(k: &mut Kernel, body: &Body, released: &[Stmt], turns: Map) -> Vec<Stmt> {
    let span = body.span;
    let [start, end, _] = body.bounds;
    let mut list = Vec::new();
    let first = copy(k, start);
    list.extend(iteration(k, body, &[(0, first)], &[]));
    list.extend(match turns.0.is_empty() {
        true => in_one_turn(k, body, released),
        false => in_two_turns(k, body, released, &turns),
    });
    if begins(k, start, end) {
        return list;
    }
    let (from, to) = (copy(k, start), copy(k, end));
    let cond = k.expr(ExprData::Op { op: Op::Lt, args: vec![from, to] }, span);
    let then = k.block(list);
    let none: Vec<Stmt> = released.iter().map(|&s| clone_stmt(k, s, &mut Map::default())).collect();
    let otherwise = (!none.is_empty()).then(|| k.block(none));
    vec![k.stmt(StmtData::If { cond, then, otherwise }, span)]
}

/// Steady state and drain, where every iteration uses the same tiles.
fn in_one_turn(k: &mut Kernel, body: &Body, released: &[Stmt]) -> Vec<Stmt> {
    let span = body.span;
    let [start, end, step] = body.bounds;
    let name = k.values[body.var].name.clone();
    let var = k.value(&name, span, ValueDef::Loop);
    let now = k.value_ref(var, span);
    let (at, by) = (k.value_ref(var, span), copy(k, step));
    let before = k.binary(Op::Sub, at, by, span);
    let steady = iteration(k, body, &[(0, now), (1, before)], &[]);
    let steady = k.block(steady);
    let (from, by) = (copy(k, start), copy(k, step));
    let second = k.binary(Op::Add, from, by, span);
    let (to, by) = (copy(k, end), copy(k, step));
    let mut list =
        vec![k.stmt(StmtData::For { var, start: second, end: to, step: by, unroll: false, body: steady }, span)];
    list.extend(released);
    let last = last(k, body);
    list.extend(iteration(k, body, &[(1, last)], &[]));
    list
}

/// The same with two iterations in one, for tiles that take turns; where their number is even one is left over.
///
/// ```text
/// for j in start + step..end - step step 2 * step { stage 0 of j; stage 1 of j - step; stage 0 of j + step; stage 1 of j }
/// if ceildiv(end - start, step) % 2 == 0 { stage 0 of the last; stage 1 of the one before; stage 1 of the last } else { stage 1 of the last }
/// ```
fn in_two_turns(k: &mut Kernel, body: &Body, released: &[Stmt], turns: &Map) -> Vec<Stmt> {
    let span = body.span;
    let [start, end, step] = body.bounds;
    let second = |stage: u32| (stage, turns);
    let name = k.values[body.var].name.clone();
    let var = k.value(&name, span, ValueDef::Loop);
    let at = |k: &mut Kernel, op: Op| {
        let (at, by) = (k.value_ref(var, span), copy(k, step));
        k.binary(op, at, by, span)
    };
    let (now, before) = (k.value_ref(var, span), at(k, Op::Sub));
    let mut steady = iteration(k, body, &[(0, now), (1, before)], &[second(0)]);
    let (next, now) = (at(k, Op::Add), k.value_ref(var, span));
    steady.extend(iteration(k, body, &[(0, next), (1, now)], &[second(1)]));
    let steady = k.block(steady);
    let (from, by) = (copy(k, start), copy(k, step));
    let from = k.binary(Op::Add, from, by, span);
    let (to, by) = (copy(k, end), copy(k, step));
    let to = k.binary(Op::Sub, to, by, span);
    let double = match k.as_int(step) {
        Some(step) => k.int(2 * step, span),
        None => {
            let (step, two) = (copy(k, step), k.int(2, span));
            k.binary(Op::Mul, step, two, span)
        }
    };
    let mut list =
        vec![k.stmt(StmtData::For { var, start: from, end: to, step: double, unroll: false, body: steady }, span)];
    list.extend(released);
    let (left, by) = (last(k, body), copy(k, step));
    let at = copy(k, left);
    let before = k.binary(Op::Sub, at, by, span);
    let at = copy(k, left);
    let mut rest = iteration(k, body, &[(0, at), (1, before)], &[second(0)]);
    let at = copy(k, left);
    rest.extend(iteration(k, body, &[(1, at)], &[second(1)]));
    let done = iteration(k, body, &[(1, left)], &[]);
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

/// Whether there are an even number of iterations.
fn even(k: &mut Kernel, body: &Body) -> Expr {
    let [start, end, step] = body.bounds;
    let span = body.span;
    let (from, to) = (copy(k, start), copy(k, end));
    let all = k.binary(Op::Sub, to, from, span);
    let by = copy(k, step);
    let steps = k.binary(Op::CeilDiv, all, by, span);
    let (two, none) = (k.int(2, span), k.int(0, span));
    let odd = k.binary(Op::Rem, steps, two, span);
    k.expr(ExprData::Op { op: Op::Eq, args: vec![odd, none] }, span)
}

/// The statements of some stages, each of the iteration that the loop variable's value names.
/// `turned`: the stages that use the other one of two tiles, and which these are.
fn iteration(k: &mut Kernel, body: &Body, stages: &[(u32, Expr)], turned: &[(u32, &Map)]) -> Vec<Stmt> {
    let mut out = Vec::new();
    // Names are computed for each iteration; those that it does not need go below.
    let mut maps: Vec<(u32, Map)> = Vec::new();
    for &(stage, at) in stages {
        let mut map = Map(vec![(body.var, Subst::Expr(at))]);
        for (_, turns) in turned.iter().filter(|(of, _)| *of == stage) {
            for (v, other) in &turns.0 {
                let Subst::Value(other) = other else { unreachable!("a tile stands for a tile") };
                map.0.push((*v, Subst::Value(*other)));
            }
        }
        let needed = needed(k, body, stage);
        for &s in body.names.iter().filter(|s| needed.contains(s)) {
            out.push(clone_stmt(k, s, &mut map));
        }
        maps.push((stage, map));
    }
    let mut turn: Vec<Stmt> = Vec::new();
    for &(s, stage) in &body.order {
        let Some((_, map)) = maps.iter_mut().find(|(of, _)| *of == stage) else { continue };
        let copy = clone_stmt(k, s, map);
        match k.plans[s].ordered {
            true => turn.push(copy),
            // The producer's statements are none of theirs.
            false if k.plans[s].producer => out.push(copy),
            false => {
                in_turns(k, &mut turn, &mut out);
                out.push(copy);
            }
        }
    }
    in_turns(k, &mut turn, &mut out);
    out
}

/// Statements that the warpgroups of the consumer run one after the other.
fn in_turns(k: &mut Kernel, turn: &mut Vec<Stmt>, out: &mut Vec<Stmt>) {
    let Some(&first) = turn.first() else { return };
    let span = k.stmt_spans[first];
    out.extend(ordered(k, std::mem::take(turn), None, span));
}

/// The names that statements of a stage need, with those that these need.
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

fn copy(k: &mut Kernel, e: Expr) -> Expr {
    k.clone_expr(e, &mut |_, _| None)
}

/// The value of the loop variable in the last iteration: counted from the end, so that it is plainly in front of that.
fn last(k: &mut Kernel, body: &Body) -> Expr {
    let [start, end, step] = body.bounds;
    let span = body.span;
    let (to, one) = (copy(k, end), k.int(1, span));
    let to = k.binary(Op::Sub, to, one, span);
    if k.as_int(step) == Some(1) {
        return to;
    }
    let (from, by) = (copy(k, start), copy(k, step));
    let length = copy(k, to);
    let length = k.binary(Op::Sub, length, from, span);
    let rest = k.expr(ExprData::Op { op: Op::Rem, args: vec![length, by] }, span);
    k.binary(Op::Sub, to, rest, span)
}

/// Whether the loop runs at least once for certain: sizes are at least 1.
fn begins(k: &Kernel, start: Expr, end: Expr) -> bool {
    let named = |mut e: Expr| {
        while let ExprData::Ref(v) = k.exprs[e]
            && let Some(init) = let_init(k, v)
        {
            e = init;
        }
        e
    };
    let (start, end) = (named(start), named(end));
    let least = match k.exprs[end] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Size) => Some(1),
        _ => k.as_int(end),
    };
    k.as_int(start).zip(least).is_some_and(|(start, least)| start < least)
}

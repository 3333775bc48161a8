//! Statements: rules 9 to 11 and 14 to 16.

use super::header::MAX_RANK;
use super::missing_dims::{lacking, with_extents};
use super::structure::mentions;
use super::{copies, roles, work_queue};
use crate::diag::{Diagnostic, Span};
use crate::entities::{Block, Expr, Stmt, Value};
use crate::fix_locations::FixLocation;
use crate::kernel::{ENDLESS, ExprData, Kernel, StmtData, ValueDef};
use crate::memory_reuse::Overlays;
use crate::types::{Elem, ElemRef, MAX_ELEMENTS, Scratch, TileTy};
use crate::typing::{Extent, Type, const_int, elem_name, resolve_view, shape_text};
use crate::verify::context::{Cx, condition, is_const};
use crate::{codes, index};
use std::collections::BTreeSet;

/// Maximum number of slots of a channel.
const MAX_SLOTS: i64 = 1024;
/// Maximum number of copies of a body in nested unrolled loops.
const MAX_UNROLL: u64 = 4096;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    block(cx, cx.k.body, 1);
    roles::check(cx);
    work_queue::check(cx);
}

/// Checks the statements of a block that is unrolled `copies` times.
fn block(cx: &mut Cx<'_, '_>, b: Block, copies: u64) {
    for &s in &cx.k.blocks[b] {
        let inner = statement(cx, s, copies);
        for b in cx.k.sub_blocks(s) {
            block(cx, b, inner);
        }
    }
}

/// Checks a statement. Returns the number of copies of its blocks.
fn statement(cx: &mut Cx<'_, '_>, s: Stmt, copies: u64) -> u64 {
    let k = cx.k;
    if uses_failed(cx, s) {
        return copies;
    }
    match &k.stmts[s] {
        StmtData::Let { value, init } => named(cx, *value, *init),
        StmtData::Var { value, init } => {
            if let Some(t) = k.tile_ty(*value) {
                tile(cx, *value, t);
            }
            if let Some(init) = init {
                assigned(cx, *value, *init);
            }
        }
        StmtData::Alloc { value, over } => {
            alloc(cx, *value);
            check_reuse(cx, s, over);
        }
        StmtData::Assign { dst, src } => {
            if matches!(k.values[*dst].def, ValueDef::Var(_)) {
                assigned(cx, *dst, *src);
            } else {
                cx.type_of(*src);
                not_assignable(cx, s, *dst);
            }
        }
        StmtData::Copy { src, dst, attrs } => copies::check(cx, s, *src, *dst, attrs),
        StmtData::For { start, end, step, cond, unroll, .. } => {
            for &e in [start, end, step] {
                let typed = cx.types.index(e);
                cx.ok(typed);
            }
            if let Some(x) = const_int(k, *step).filter(|&x| x < 1) {
                let message = format!("a step must be at least 1, found {x}");
                let d =
                    Diagnostic::error(codes::BAD_LOOP, k.expr_spans[*step], message).with_note("loops count upward");
                let up = x.checked_neg().unwrap_or(1).max(1);
                cx.report(cx.with_number(d, *step, up));
            }
            while_condition(cx, s, *end, *cond, *unroll);
            if *unroll && cond.is_none() {
                return unrolled(cx, s, [*start, *end, *step], copies);
            }
        }
        StmtData::If { cond, .. } => condition(cx, *cond),
        StmtData::Channel { op, channels, .. } => {
            let mut seen = BTreeSet::new();
            for &c in channels {
                let message = if !matches!(k.values[c].def, ValueDef::Channel { .. }) {
                    format!("`{}` takes channels, and `{}` is none", op.token(), cx.name(c))
                } else if !seen.insert(c) {
                    format!("`{}` names `{}` twice", op.token(), cx.name(c))
                } else {
                    continue;
                };
                let d = Diagnostic::error(codes::BAD_CHANNEL, k.stmt_spans[s], message)
                    .with_place(k.values[c].span, "declared here")
                    .with_note("a channel is declared with `let c = channel f16[64, 32] slots 2`");
                cx.report(d);
            }
        }
        StmtData::Await { value, after, .. } => {
            for &v in after {
                let tile = k.tile_ty(v).filter(|_| matches!(k.values[v].def, ValueDef::Var(_)));
                if tile.is_none_or(|t| matches!(t.elem, ElemRef::Known(e) if e != Elem::F32)) {
                    let message = format!("`after` names register tiles of f32, and `{}` is none", cx.name(v));
                    let d = Diagnostic::error(codes::NOT_ASSIGNABLE, k.stmt_spans[s], message);
                    cx.report(
                        d.with_note("it names tiles that are computed in front of the wait: `await o, 0 after m, l`"),
                    );
                }
            }
            if !matches!(k.values[*value].def, ValueDef::Var(_) | ValueDef::Smem(_)) {
                let message = format!(
                    "`await` takes an accumulator or a buffer, and `{}` is no register variable and no shared memory",
                    cx.name(*value)
                );
                cx.report(Diagnostic::error(codes::NOT_ASSIGNABLE, k.stmt_spans[s], message).with_note(
                    "`await` waits for asynchronous products into an accumulator, or for TMA stores (`tma`) from a buffer",
                ));
            }
        }
        StmtData::Signal { op, signals, index } => {
            let typed = cx.types.index(*index);
            cx.ok(typed);
            if !k.tensor_ty(*signals).and_then(|t| t.scratch).is_some_and(Scratch::has_signals) {
                let message = format!("`{}` takes a signal, and `{}` is none", op.token(), cx.name(*signals));
                let d = Diagnostic::error(codes::BAD_SIGNAL, k.stmt_spans[s], message)
                    .with_place(k.values[*signals].span, "declared here")
                    .with_note("signals are a parameter of the kernel: `ready: gmem u32[132] strides (1) signals`; tiles of `dsmem` have their own");
                cx.report(d);
            }
        }
        StmtData::Barrier | StmtData::Fence | StmtData::Ordered { .. } | StmtData::Role { .. } => {}
    }
    copies
}

/// Whether a statement reads a name whose `let` is an error. Then a name that it declares is another.
fn uses_failed(cx: &mut Cx<'_, '_>, s: Stmt) -> bool {
    let (k, mut found) = (cx.k, false);
    if !cx.failed.is_empty() {
        for e in k.stmts[s].exprs() {
            mentions(k, e, &mut |_, v| found |= cx.failed.contains(&v));
        }
    }
    if let StmtData::Let { value, .. } = k.stmts[s]
        && found
    {
        cx.failed.insert(value);
    }
    found
}

/// Reports that the target of an assignment is not a register variable.
fn not_assignable(cx: &mut Cx<'_, '_>, s: Stmt, dst: Value) {
    let k = cx.k;
    let name = cx.name(dst).to_owned();
    let d = Diagnostic::error(codes::NOT_ASSIGNABLE, k.stmt_spans[s], format!("`{name}` cannot be assigned"))
        .with_place(k.values[dst].span, "declared here");
    cx.report(match k.values[dst].def {
        ValueDef::Let => {
            let d = d.with_note("a `let` never changes; declare a register variable with `var`");
            with_variable(cx, d, dst)
        }
        ValueDef::Smem(_) | ValueDef::Tensor(_) | ValueDef::Channel { .. } => {
            d.with_note(format!("memory is written by a copy: `copy x -> {name}`"))
        }
        _ => d.with_note("only register variables (`var`) are assigned"),
    });
}

/// Adds a fix that replaces the assigned `let` by a register variable, if its type can be written.
fn with_variable(cx: &Cx<'_, '_>, d: Diagnostic, v: Value) -> Diagnostic {
    let k = cx.k;
    let Some((s, ty)) = k.let_stmt(v).zip(k.let_init(v).and_then(|init| cx.types.type_of(init).ok())) else { return d };
    let (elem, shape) = match &ty {
        Type::Float => (Elem::F32.name().to_owned(), Some(Vec::new())),
        Type::Scalar(elem) => (elem_name(k, *elem), Some(Vec::new())),
        Type::Tile(t) => (elem_name(k, t.elem), t.shape.iter().map(|x| x.known()).collect::<Option<Vec<u64>>>()),
        Type::Index | Type::Bool | Type::View(_) => return d,
    };
    let Some(shape) = shape else { return d };
    let extents = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let head = Span { start: k.stmt_spans[s].start, end: k.values[v].span.end };
    d.with_fix(head, format!("var {} = reg {elem}[{extents}]", k.values[v].name))
}

/// Rule 10.
fn named(cx: &mut Cx<'_, '_>, v: Value, init: Expr) {
    let Some(Type::View(view)) = cx.type_of(init) else { return };
    match cx.types.resolve_view(init) {
        Some(r) if r.space(cx.k).has_bounds() => {}
        None if view.space.has_bounds() => copies::unresolved(cx, init),
        Some(_) => {
            let message = "only windows of global memory can be named";
            cx.error_at(
                codes::BAD_VIEW,
                init,
                message,
                "write the window where it is used, or copy it into a register tile",
            );
        }
        None => {
            let message = "this has no extents: it is arithmetic on windows only";
            let window = copies::windows(cx, init).into_iter().find(|&e| matches!(cx.k.exprs[e], ExprData::View(_)));
            let window = with_extents(cx.k, window.unwrap_or(init), view.rank);
            let note = format!("a window's extent is a number that the compiler knows: `{window}`");
            cx.error_at(codes::NO_EXTENTS, init, message, &note);
            cx.failed.insert(v);
        }
    }
}

/// Rule 9.
fn tile(cx: &mut Cx<'_, '_>, v: Value, t: &TileTy) {
    let k = cx.k;
    let span = k.values[v].span;
    if t.shape.len() > MAX_RANK {
        let message = format!("`{}` has {} dimensions, expected at most {MAX_RANK}", cx.name(v), t.shape.len());
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message));
    }
    let mut elems = Some(1u64);
    for &e in &t.shape {
        cx.index_over(e, "compile-time parameters and integers", is_const);
        match const_int(k, e) {
            Some(x) if x < 1 => {
                let message = format!("a tile extent must be at least 1, found {x}");
                let d = Diagnostic::error(codes::BAD_SHAPE, cx.k.expr_spans[e], message);
                cx.report(cx.with_number(d, e, 1));
                elems = Some(1);
            }
            Some(x) => elems = elems.and_then(|n| n.checked_mul(x.unsigned_abs())),
            None => {}
        }
    }
    if elems.is_none_or(|n| n > MAX_ELEMENTS) {
        let found = elems.map_or("more than 2^64".to_owned(), |n| n.to_string());
        let message = format!("tile `{}` has {found} elements, expected at most {MAX_ELEMENTS}", cx.name(v));
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message).with_note(
            "a tile is the part of a tensor that one thread block works on; use smaller extents and a larger grid",
        ));
    }
}

fn alloc(cx: &mut Cx<'_, '_>, v: Value) {
    let k = cx.k;
    let Some(t) = k.tile_ty(v) else { return };
    tile(cx, v, t);
    let span = k.values[v].span;
    if t.shape.is_empty() {
        let message = format!("`{}` in shared memory has no dimensions", cx.name(v));
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message).with_note("give it an extent: `smem f32[1]`"));
    }
    if t.elem == ElemRef::Known(Elem::Bool) {
        let message = format!("`{}` has Boolean elements, which live in registers only", cx.name(v));
        cx.report(Diagnostic::error(codes::BAD_SHAPE, span, message).with_note("use `u8`, and compare with 0"));
    }
    if let ValueDef::Channel { slots, .. } = k.values[v].def {
        cx.bounded(codes::BAD_CHANNEL, "the slots of a channel", slots, 1, MAX_SLOTS);
    }
}

/// A buffer can be `over` buffers with memory of their own, and names each of them once.
fn check_reuse(cx: &mut Cx<'_, '_>, s: Stmt, over: &[Value]) {
    let k = cx.k;
    let overlays = if over.is_empty() { Overlays::default() } else { Overlays::of(k) };
    for (i, &v) in over.iter().enumerate() {
        let message = if !k.values[v].def.space().is_of_block() {
            format!("`over` takes buffers and channels, and `{}` is none", cx.name(v))
        } else if over[..i].contains(&v) {
            format!("`over` names `{}` twice", cx.name(v))
        } else if !overlays.over(v).is_empty() {
            format!("`{}` is itself over others", cx.name(v))
        } else {
            continue;
        };
        let d = Diagnostic::error(codes::BAD_OVERLAY, k.stmt_spans[s], message)
            .with_place(k.values[v].span, "declared here")
            .with_note(
                "`let x = smem f32[64, 64] over a, b` takes the memory of `a` and `b`, which have some of their own",
            )
            .with_left_out(k.spot(k.stmt_spans[s], FixLocation::Over));
        cx.report(d);
    }
}

/// Rule 11: `src` as the new value of the variable `dst`.
fn assigned(cx: &mut Cx<'_, '_>, dst: Value, src: Expr) {
    let k = cx.k;
    let (Some(ty), Some(t)) = (cx.type_of(src), k.tile_ty(dst)) else { return };
    let storable = cx.types.storable(src, &ty, t.elem);
    if cx.ok(storable).is_none() {
        return;
    }
    let shape: Vec<Extent> = t.shape.iter().map(|&e| Extent::of(k, e)).collect();
    let fits = match &ty {
        Type::Index | Type::Float | Type::Bool | Type::Scalar(_) => true,
        Type::View(v) => v.rank == shape.len(),
        Type::Tile(t) => {
            t.shape.len() == shape.len()
                && t.shape.iter().zip(&shape).all(|(&x, &y)| x == Extent::Known(1) || x.same(k, y) != Some(false))
        }
    };
    if !fits {
        let message = format!("`{}` is {}, found {}", cx.name(dst), shape_text(k, &shape), ty.describe(k));
        let mut d = Diagnostic::error(codes::SHAPE_MISMATCH, k.expr_spans[src], message)
            .with_place(k.values[dst].span, "declared here");
        let reduced = "a reduction keeps its dimension, with extent 1: the sum over dimension 1 of [32, 64] is [32, 1]";
        let note = lacking(cx, src, &ty, shape.len()).or_else(|| reduces(k, src).then(|| reduced.to_owned()));
        if let Some(note) = note {
            d = d.with_note(note);
        }
        cx.report(d);
    }
}

/// Whether an expression contains a reduction.
fn reduces(k: &Kernel, e: Expr) -> bool {
    matches!(k.exprs[e], ExprData::Reduce { .. }) || k.children(e).into_iter().any(|e| reduces(k, e))
}

/// Rule 14 for `while` loops.
fn while_condition(cx: &mut Cx<'_, '_>, s: Stmt, end: Expr, cond: Option<Expr>, unroll: bool) {
    let k = cx.k;
    let Some(cond) = cond else {
        if k.exprs[end] == ExprData::Int(ENDLESS) {
            let d = Diagnostic::error(codes::BAD_LOOP, k.stmt_spans[s], "this loop does not end");
            cx.report(d.with_note("say how long it goes on: `while c { .. }`, or `for i in 0..inf while c`"));
        }
        return;
    };
    condition(cx, cond);
    if unroll || k.lanes[s].is_some() {
        let d =
            Diagnostic::error(codes::BAD_LOOP, k.stmt_spans[s], "a loop with `while` is neither `unroll` nor `spread`");
        cx.report(d.with_note("how often it runs, and by whom, is known only while it does"));
    }
    if let Some(e) = read_in_memory(k, cond) {
        let note = "it is asked in front of each iteration: copy the element into a variable, `var go = reg i32[] = 1`, and in the loop `copy G[0] -> go`";
        cx.error_at(codes::BAD_CONDITION, e, "the condition of a loop reads memory that may change".to_owned(), note);
    }
}

/// A window of memory that is not read as an index. Only constant values form an index.
fn read_in_memory(k: &Kernel, e: Expr) -> Option<Expr> {
    if matches!(k.exprs[e], ExprData::Index(_)) {
        return None;
    }
    let own = resolve_view(k, e).is_some_and(|view| view.space(k).is_memory());
    if own { Some(e) } else { k.children(e).into_iter().find_map(|child| read_in_memory(k, child)) }
}

/// Rule 14 for unrolled loops. Returns the number of copies of the body.
fn unrolled(cx: &mut Cx<'_, '_>, s: Stmt, bounds: [Expr; 3], copies: u64) -> u64 {
    let k = cx.k;
    let [start, end, step] = bounds.map(|e| const_int(k, e));
    let (Some(start), Some(end), Some(step)) = (start, end, step) else {
        for e in bounds {
            let mut known_late = None;
            mentions(k, e, &mut |at, v| {
                if !is_const(&k.values[v].def) {
                    known_late.get_or_insert((at, v));
                }
            });
            if let Some((at, v)) = known_late {
                let message =
                    format!("an unrolled loop needs compile-time bounds, and `{}` is known at run time", cx.name(v));
                let d = Diagnostic::error(codes::BAD_LOOP, k.expr_spans[at], message).with_note("remove `unroll`");
                cx.report(d.with_left_out(k.clause(k.stmt_spans[s], "unroll")));
            }
        }
        return copies;
    };
    // A step below 1 is refused elsewhere.
    let trips = index::trips(start, end, step.max(1)).unwrap_or(0);
    let total = trips.max(1).saturating_mul(copies);
    if total > MAX_UNROLL {
        let message = format!("unrolling lays out {total} copies of the body, expected at most {MAX_UNROLL}");
        cx.report(
            Diagnostic::error(codes::BAD_LOOP, k.stmt_spans[s], message)
                .with_note("remove `unroll`, or split the loop and unroll the inner one only")
                .with_left_out(k.clause(k.stmt_spans[s], "unroll")),
        );
        return 1;
    }
    total
}

//! `specialize-warps`: give the copies and the products of a loop to warps of their own.
//!
//! A loop that fills buffers by tensor copies and multiplies them by warpgroups becomes two, in roles that run side by side:
//!
//! ```text
//! role producer warps 4 registers 40 {
//!     for k in 0..K step 64 { acquire a, b; copy A[..] -> a.put tma; copy B[..] -> b.put tma; publish a, b }
//! }
//! role consumer warps 8 registers 232 {
//!     for k in 0..K step 64 { wait a, b; acc = mma<m64k16>(a.get, b.get, acc); await acc, 0; release a, b }
//!     ..
//! }
//! ```
//!
//! Both walk over the tiles of the output in the same order, as many blocks as there are multiprocessors sharing them out: the producer
//! fills slots for the next tile while the consumer stores this one.
//!
//! The buffers become channels of `stages` slots. One thread of the producer asks for the copies; it runs ahead of the consumer by
//! as many slices of the reduction as there are slots. While one warpgroup waits for its sums, another's products keep the tensor cores busy. Names
//! for indices and windows are repeated in both; everything else is the consumer's. If asked for, and where sums are promoted, products of a
//! step are pending while those of the next are issued ([`pending`]).
//!
//! Where the instruction keeps fewer bits of its sums than f32 has (8-bit floats), each slice is summed by itself and then added to the accumulator
//! (`promote` in the schedule):
//!
//! ```text
//! wait a, b; var part = reg f32[..] = 0; part = mma<m64k32_f8>(a.get, b.get, part); await part, 0; release a, b; acc = acc + part
//! ```
//!
//! Where the instruction's A comes from registers, the consumer copies it out of the slot in front of the products, and gives the slot back behind
//! them, as always.
//!
//! Needs: layouts that tensor copies and `wgmma` know, which `swizzle` has chosen. Switched off: `select-mma` chooses no products
//! of warpgroups.

mod pending;

use crate::analysis::facts::Facts;
use crate::analysis::uses::{for_each_ref, path_to, stmt_exprs};
use crate::rewrite::{Map, clone_stmt};
use crate::roles::{self, BARRIER_BYTES, PRODUCER_WARPS, consumer_warps, registers, replicas, role, shared_limit};
use crate::select_mma::warpgroup::{acc_elem, promoted_of};
use crate::tensor_copies::slot_bytes;
use crate::walk::{self, Walk, turns};
use crate::{Cx, thread_fills};
use pending::Part;
use std::collections::BTreeSet;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, CopyAttrs, ExprData, Kernel, Mechanism, Mma, Slot, StmtData, ValueDef, View};
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::Op;
use tilec_ir::target::WARP;
use tilec_ir::typing::resolve_view;

/// Slots that are tried when the schedule names none; fewer where they do not fit.
const SLOTS: u64 = 8;
pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if crate::schedule_loops::is_scheduled(k) {
        return Ok(());
    }
    let loops: Vec<Stmt> = k.blocks[k.body].iter().copied().filter(|&s| multiplies(k, s)).collect();
    match loops[..] {
        [] => nothing_asked(k, cx),
        [s] => split(k, cx, s),
        [_, second, ..] => Err(cx.report(
            Diagnostic::error(
                codes::NOT_LOWERED,
                k.stmt_spans[second],
                "not compiled yet: two loops with products of warpgroups in a kernel",
            )
            .with_note("make two kernels of it, or write `--disable-pass specialize-warps` for products of warps"),
        )),
    }
}

/// Of a kernel without products of warpgroups that roles are still to be made of: that nothing is asked of them.
fn nothing_asked(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let roles = k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    // Switched off, these make the plainest decisions, which lead elsewhere, and so does this.
    if roles || cx.options.missing_for_roles().is_some() {
        return Ok(());
    }
    let asked = |e: &Expr| k.as_int(*e) == Some(1);
    let none = "there are none of warpgroups";
    match (k.schedule.stream_k.filter(asked), k.schedule.pending.filter(asked), roles::ping_pong(k)) {
        (Some(e), _, _) => Err(walk::stream_refused(k, cx, e, none)),
        (None, Some(e), _) => Err(pending::refused(k, cx, e, none)),
        (None, None, Some(e)) => Err(turns::refused(k, cx, e, "there are no products of warpgroups")),
        (None, None, None) => Ok(()),
    }
}

/// Whether a loop ends with a product of warpgroups on buffers, or on one and registers.
pub(crate) fn multiplies(k: &Kernel, s: Stmt) -> bool {
    let StmtData::For { body, unroll: false, .. } = k.stmts[s] else { return false };
    k.blocks[body].iter().any(|&s| product(k, s).is_some_and(|(a, b)| [a, b].into_iter().any(|v| is_buffer(k, v))))
}

fn is_buffer(k: &Kernel, v: Value) -> bool {
    matches!(k.values[v].def, ValueDef::Smem(_))
}

/// The places that a product of warpgroups reads.
fn product(k: &Kernel, s: Stmt) -> Option<(Value, Value)> {
    let StmtData::Assign { src, .. } = k.stmts[s] else { return None };
    let ExprData::Mma(mma) = k.exprs[src] else { return None };
    let place = |e: Expr| match k.exprs[e] {
        ExprData::Ref(v) => Some(v),
        _ => None,
    };
    mma.atom.filter(|a| a.row().asynchronous())?;
    place(mma.a).zip(place(mma.b))
}

fn split(k: &mut Kernel, cx: &mut Cx<'_>, at: Stmt) -> Result<(), Reported> {
    let StmtData::For { var, start, end, step, body, .. } = k.stmts[at] else { return Ok(()) };
    let span = k.stmt_spans[at];
    let stmts = k.blocks[body].clone();
    let (fills, products): (Vec<Stmt>, Vec<Stmt>) =
        stmts.iter().partition(|&&s| filled(k, s).is_some_and(|v| is_buffer(k, v)));
    let buffers: Vec<Value> = fills.iter().filter_map(|&s| filled(k, s)).collect();
    let (slots, bytes) = slots(k, cx, &buffers, span)?;
    let facts = Facts::new(k);
    let by_threads: Vec<Stmt> =
        fills.iter().copied().filter(|&s| thread_fills::is_one(k, cx.options, &facts, s)).collect();
    for &v in &buffers {
        let ValueDef::Smem(tile) = k.values[v].def.clone() else { continue };
        let slots = k.int(slots as i64, span);
        k.values[v].def = ValueDef::Channel { tile, slots };
    }
    let list = k.blocks[k.body].clone();
    let index = path_to(k, at).and_then(|p| p.last().map(|&(_, i)| i)).unwrap_or(0);
    for &s in &products {
        read_slots(k, s, &buffers);
    }
    let warps = consumer_warps(k);
    let (few, many) = registers(k, warps, !by_threads.is_empty());
    turns::check(k, cx, warps)?;
    let turns = roles::ping_pong(k);
    let pending = pending::wanted(k, cx, &products, (slots, warps), span)?;
    // The producer's loop is a copy, with a variable of its own.
    let mut map = Map::default();
    let copy = |k: &mut Kernel, s: Stmt| if by_threads.contains(&s) { fill_by_threads(k, s) } else { fill(k, s) };
    let copies: Vec<Stmt> = fills.iter().map(|&s| copy(k, s)).collect();
    let mut tiles = Walk::new(k, cx, span);
    if let Some(tiles) = &mut tiles {
        let behind = list[index + 1..].iter().any(|&s| loads_what_it_stores(k, s, &buffers));
        tiles.share(k, cx, Ok(at), behind)?;
    }
    let shared = tiles.as_ref().filter(|t| t.shares());
    let (start, end) = match shared {
        Some(walk) => walk.bounds(k),
        None => (start, end),
    };
    let mut produced = vec![channel_op(k, ChannelOp::Acquire, &buffers, span)];
    produced.extend(copies);
    produced.push(channel_op(k, ChannelOp::Publish, &buffers, span));
    let fill = produced.clone();
    let produced = k.block(produced);
    let original = k.stmt(StmtData::For { var, start, end, step, unroll: false, body: produced }, span);
    let producer_loop = match &pending {
        Some(product) => pending::steps(k, original, Part::Fill(&fill), product.in_turns()),
        None => vec![clone_stmt(k, original, &mut map)],
    };
    let mut consumed = vec![channel_op(k, ChannelOp::Wait, &buffers, span)];
    let (products, additions) = promote(k, cx, &products);
    consumed.extend(products);
    consumed.push(channel_op(k, ChannelOp::Release, &buffers, span));
    consumed.extend(additions);
    k.blocks[body] = consumed;

    let (allocs, before): (Vec<Stmt>, Vec<Stmt>) =
        list[..index].iter().partition(|&&s| matches!(k.stmts[s], StmtData::Alloc { .. }));
    let (names, own): (Vec<Stmt>, Vec<Stmt>) = before.into_iter().partition(|&s| common(k, s));
    let mut asks = names.clone();
    asks.extend(producer_loop);
    let behind = asked_behind(k, &list[index + 1..], &buffers);
    if let Some(e) = turns.filter(|_| !behind.is_empty()) {
        return Err(turns::refused(k, cx, e, "what is stored comes through the slots of the main loop"));
    }
    match shared {
        Some(stream) if !behind.is_empty() => asks.push(stream.whole(k, behind)),
        _ => asks.extend(behind),
    }
    // What waits for the last store of a buffer does so once, behind all tiles: in front of the next one another does.
    let mut rest = vec![at];
    rest.extend(taken_behind(k, &list[index + 1..], &buffers));
    let stored = rest.len() - 1;
    let mut last = Vec::new();
    while let Some(&s) = rest.last().filter(|_| turns.is_none())
        && let StmtData::Await { value, .. } = k.stmts[s]
        && awaited_before(k, &rest, s, value)
    {
        last.extend(rest.pop());
    }
    if let Some(walk) = shared {
        let (start, end) = walk.bounds(k);
        k.stmts[at] = StmtData::For { var, start, end, step, unroll: false, body };
        // Whoever has the beginning of a tile's reduction has what is done with the whole sum.
        let finish = walk.finish(k, rest.split_off(1));
        rest.push(finish);
    }
    if let Some(product) = &pending {
        let steps = pending::steps(k, at, Part::Multiply(product, &buffers), product.in_turns());
        rest.splice(..1, steps);
    }
    if turns.is_some() {
        let behind = rest.split_off(rest.len() - stored);
        rest = turns::in_turns(k, rest, span);
        rest.extend(turns::stored_in_turns(k, behind, span));
    }
    let multiplies = [names, own, rest].concat();
    let (asks, multiplies) = match &tiles {
        Some(tiles) => {
            let (asks, multiplies) = (tiles.walk(k, &asks), tiles.walk(k, &multiplies));
            tiles.launch(k, cx);
            (asks, multiplies)
        }
        None => {
            let mut map = Map::default();
            (asks.into_iter().map(|s| clone_stmt(k, s, &mut map)).collect(), multiplies)
        }
    };
    let multiplies = [multiplies, last].concat();
    let producer = role(k, "producer", (PRODUCER_WARPS, 1), few, asks, span);
    let consumer = role(k, "consumer", (warps, replicas(k)), many, multiplies, span);
    let mut all = allocs;
    all.extend([producer, consumer]);
    let body = k.body;
    k.blocks[body] = all;
    plain_names(k);
    if let StmtData::Role { body, .. } = k.stmts[producer] {
        walk::multicast(k, cx, body);
    }
    let names: Vec<String> = buffers.iter().map(|&v| format!("`{}`", k.values[v].name)).collect();
    let own: Vec<String> = fills
        .iter()
        .filter(|s| by_threads.contains(s))
        .filter_map(|&s| filled(k, s))
        .map(|v| format!("`{}`", k.values[v].name))
        .collect();
    let how = match own.len() {
        0 => "tensor copies".to_owned(),
        n if n == fills.len() => "asynchronous copies of their threads".to_owned(),
        _ => format!("tensor copies, and {} by asynchronous copies of their threads,", own.join(", ")),
    };
    let budget = match few.zip(many) {
        Some((few, many)) => format!("{few} and {many} registers a thread"),
        None => "registers as they come".to_owned(),
    };
    let consumers = match turns {
        Some(_) => format!("two groups of {warps} that multiply, and take tiles in turns"),
        None => format!("the {warps} that multiply"),
    };
    cx.remark(
        span,
        format!(
            "{} become channels of {slots} slots, {bytes} bytes of shared memory, that {PRODUCER_WARPS} warps fill by {how} for \
             {consumers}; {budget}",
            names.join(", ")
        ),
    );
    Ok(())
}

/// Products whose sums the tensor core keeps too short for the whole reduction, as sums of their own; and the additions of these to the accumulators,
/// for which no slot is needed any more.
fn promote(k: &mut Kernel, cx: &mut Cx<'_>, products: &[Stmt]) -> (Vec<Stmt>, Vec<Stmt>) {
    let (mut sums, mut additions) = (Vec::new(), Vec::new());
    let mut parts: Vec<(Value, Value)> = Vec::new();
    for &s in products {
        let span = k.stmt_spans[s];
        match k.stmts[s] {
            StmtData::Assign { dst: acc, src } => {
                if let ExprData::Mma(mma) = k.exprs[src]
                    && let Some(atom) = mma.atom
                    && let Some(depth) = acc_elem(k, acc).and_then(|elem| promoted_of(k, atom, elem))
                    && let Some(tile) = k.tile_ty(acc).cloned()
                {
                    let part = k.value("part", span, ValueDef::Var(tile));
                    let (zero, c) = (k.int(0, span), k.value_ref(part, span));
                    sums.push(k.stmt(StmtData::Var { value: part, init: Some(zero) }, span));
                    k.exprs[src] = ExprData::Mma(Mma { c, ..mma });
                    k.stmts[s] = StmtData::Assign { dst: part, src };
                    let (whole, more) = (k.value_ref(acc, span), k.value_ref(part, span));
                    let sum = k.binary(Op::Add, whole, more, span);
                    additions.push(k.stmt(StmtData::Assign { dst: acc, src: sum }, span));
                    parts.push((acc, part));
                    let message = format!(
                        "`{}` keeps fewer bits than f32: sums of at most {depth} products are added to `{}`",
                        atom.row().name,
                        k.values[acc].name
                    );
                    cx.remark_note(span, message, "`promote 0` in the schedule leaves the sums to the instruction");
                }
            }
            StmtData::Await { value, pending, ref after } => {
                if let Some(&(_, part)) = parts.iter().find(|(acc, _)| *acc == value) {
                    let after = after.clone();
                    k.stmts[s] = StmtData::Await { value: part, pending, after };
                }
            }
            _ => {}
        }
        sums.push(s);
    }
    (sums, additions)
}

/// What is declared in the roles was copied, and named anew; where the original is gone its name is free again.
pub(crate) fn plain_names(k: &mut Kernel) {
    let mut declared: Vec<Value> = Vec::new();
    k.walk(k.body, &mut |k, _, s| match k.stmts[s] {
        StmtData::Let { value, .. } | StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => {
            declared.push(value)
        }
        StmtData::For { var, .. } => declared.push(var),
        _ => {}
    });
    let header: Vec<Value> = [&k.params, &k.sizes, &k.strides].into_iter().flatten().copied().collect();
    let header = header.into_iter().chain(k.grid.iter().map(|g| g.index));
    let mut taken: BTreeSet<String> = header.map(|v| k.values[v].name.clone()).collect();
    let gone: Vec<String> = k
        .values
        .iter()
        .filter(|(v, data)| !declared.contains(v) && !taken.contains(&data.name))
        .map(|(_, data)| data.name.clone())
        .collect();
    let live: BTreeSet<String> = declared.iter().map(|&v| k.values[v].name.clone()).collect();
    for v in declared {
        let name = k.values[v].name.clone();
        let free = |stem: &str| gone.iter().any(|g| g == stem) && !live.contains(stem) && !taken.contains(stem);
        let mut short = name.as_str();
        while let Some((stem, digits)) = short.rsplit_once('_')
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.is_empty()
        {
            short = stem;
            if free(short) {
                break;
            }
        }
        let new = if free(short) { short.to_owned() } else { name };
        taken.insert(new.clone());
        k.values[v].name = new;
    }
}

/// The buffer that a copy fills.
fn filled(k: &Kernel, s: Stmt) -> Option<Value> {
    let StmtData::Copy { dst, .. } = k.stmts[s] else { return None };
    match k.exprs[dst] {
        ExprData::Ref(v) => Some(v),
        _ => None,
    }
}

/// A tensor copy in place of a copy into a buffer.
fn fill(k: &mut Kernel, s: Stmt) -> Stmt {
    let StmtData::Copy { src, .. } = k.stmts[s] else { return s };
    let Some(dst) = slot_filled(k, s) else { return s };
    let attrs = CopyAttrs::tensor();
    k.stmt(StmtData::Copy { src, dst, attrs }, k.stmt_spans[s])
}

/// The slot in place of the buffer that a copy fills.
fn slot_filled(k: &mut Kernel, s: Stmt) -> Option<Expr> {
    let StmtData::Copy { dst, .. } = k.stmts[s] else { return None };
    let base = filled(k, s)?;
    Some(k.expr(ExprData::View(View { base, slot: Some(Slot::Put), ranges: Vec::new() }), k.expr_spans[dst]))
}

/// The same by the producer's threads: those that repeated what these have are not there any more.
fn fill_by_threads(k: &mut Kernel, s: Stmt) -> Stmt {
    let StmtData::Copy { src, ref attrs, .. } = k.stmts[s] else { return s };
    let layout = attrs.threads.as_ref().and_then(|l| {
        let own = l.thread().cols().get(..(PRODUCER_WARPS * WARP).ilog2() as usize)?.to_vec();
        RegLayout::new(l.value().cols().to_vec(), own, l.out_bits())
    });
    let attrs = CopyAttrs { threads: layout, mechanism: Mechanism::Asynchronous, ..attrs.clone() };
    let Some(dst) = slot_filled(k, s) else { return s };
    k.stmt(StmtData::Copy { src, dst, attrs }, k.stmt_spans[s])
}

/// What the producer does for statements behind the loop: copies into slots, on the same ways.
fn asked_behind(k: &mut Kernel, list: &[Stmt], buffers: &[Value]) -> Vec<Stmt> {
    let mut out = Vec::new();
    for &s in list {
        let span = k.stmt_spans[s];
        if fills(k, s, buffers) {
            out.push(channel_op(k, ChannelOp::Acquire, buffers, span));
            out.push(fill(k, s));
            out.push(channel_op(k, ChannelOp::Publish, buffers, span));
        } else if let StmtData::If { cond, then, otherwise } = k.stmts[s] {
            let side = |k: &mut Kernel, b: Block| {
                let list = k.blocks[b].clone();
                asked_behind(k, &list, buffers)
            };
            let then = side(k, then);
            let otherwise = otherwise.map_or_else(Vec::new, |b| side(k, b));
            if then.is_empty() && otherwise.is_empty() {
                continue;
            }
            let cond = k.clone_expr(cond, &mut |_, _| None);
            let (then, otherwise) = (k.block(then), k.block(otherwise));
            out.push(k.stmt(StmtData::If { cond, then, otherwise: Some(otherwise) }, span));
        }
    }
    out
}

/// What the consumer does instead: in place of a copy into a slot it waits for the slot, and gives it back behind the statement that reads it.
fn taken_behind(k: &mut Kernel, list: &[Stmt], buffers: &[Value]) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut taken = None;
    for &s in list {
        if fills(k, s, buffers) {
            let span = k.stmt_spans[s];
            out.push(channel_op(k, ChannelOp::Wait, buffers, span));
            taken = Some(span);
            continue;
        }
        if let StmtData::If { then, otherwise, .. } = k.stmts[s] {
            for b in [Some(then), otherwise].into_iter().flatten() {
                let inner = k.blocks[b].clone();
                k.blocks[b] = taken_behind(k, &inner, buffers);
            }
        }
        out.push(s);
        if let Some(span) = taken.take() {
            read_slots(k, s, buffers);
            out.push(channel_op(k, ChannelOp::Release, buffers, span));
        }
    }
    out
}

/// Whether a tensor that is loaded into slots behind the loop is also stored.
fn loads_what_it_stores(k: &Kernel, s: Stmt, buffers: &[Value]) -> bool {
    let mut loaded = Vec::new();
    let mut note = |k: &Kernel, s: Stmt| {
        if let StmtData::Copy { src, .. } = k.stmts[s]
            && fills(k, s, buffers)
        {
            loaded.extend(resolve_view(k, src).map(|v| v.base));
        }
    };
    note(k, s);
    for b in k.sub_blocks(s) {
        k.walk(b, &mut |k, _, s| note(k, s));
    }
    let stored = |v: &Value| {
        k.stmts.values().any(|s| match s {
            StmtData::Copy { dst, .. } => resolve_view(k, *dst).is_some_and(|view| view.base == *v),
            _ => false,
        })
    };
    loaded.iter().any(stored)
}

/// Whether a statement behind the loop copies into a buffer that is now a channel (`stage-stores`).
fn fills(k: &Kernel, s: Stmt, buffers: &[Value]) -> bool {
    filled(k, s).is_some_and(|v| buffers.contains(&v))
}

fn channel_op(k: &mut Kernel, op: ChannelOp, channels: &[Value], span: Span) -> Stmt {
    k.stmt(StmtData::Channel { op, channels: channels.to_vec(), pending: None }, span)
}

/// References to the buffers become references to the waited slots.
fn read_slots(k: &mut Kernel, s: Stmt, buffers: &[Value]) {
    let mut stack = stmt_exprs(k, s);
    while let Some(e) = stack.pop() {
        stack.extend(k.children(e));
        if let ExprData::Ref(v) = k.exprs[e]
            && buffers.contains(&v)
        {
            k.exprs[e] = ExprData::View(View { base: v, slot: Some(Slot::Get), ranges: Vec::new() });
        }
    }
}

/// Whether a statement in front of the loop is for both roles: names for what no variable changes.
fn common(k: &Kernel, s: Stmt) -> bool {
    match k.stmts[s] {
        StmtData::Let { init, .. } => {
            let mut pure = true;
            for_each_ref(k, init, &mut |v| pure &= !matches!(k.values[v].def, ValueDef::Var(_)));
            pure
        }
        _ => false,
    }
}

/// Whether a buffer is awaited under `list` by a statement other than `s`.
fn awaited_before(k: &Kernel, list: &[Stmt], s: Stmt, value: Value) -> bool {
    let mut found = false;
    for &top in list {
        let mut see = |t: Stmt| found |= t != s && matches!(k.stmts[t], StmtData::Await { value: v, .. } if v == value);
        see(top);
        for b in k.sub_blocks(top) {
            k.walk(b, &mut |_, _, t| see(t));
        }
    }
    found && is_buffer(k, value)
}

/// The slots of the channels, and the bytes they take.
fn slots(k: &Kernel, cx: &mut Cx<'_>, buffers: &[Value], span: Span) -> Result<(u64, u64), Reported> {
    let slot: u64 = buffers.iter().map(|&v| slot_bytes(k, v)).sum();
    // Buffers of the consumer, as they are aligned.
    let others = k.values.iter().filter(|(v, d)| matches!(d.def, ValueDef::Smem(_)) && !buffers.contains(v));
    let taken: u64 = others.map(|(v, _)| slot_bytes(k, v).next_multiple_of(1024)).sum();
    let limit = shared_limit(k, cx).saturating_sub(BARRIER_BYTES + taken);
    let asked = k.schedule.stages.and_then(|e| k.as_int(e));
    let slots = match asked {
        Some(n) => u64::try_from(n).unwrap_or(0).max(1),
        None => (limit / slot.max(1)).min(SLOTS),
    };
    if slots == 0 || slots * slot > limit {
        let message = format!("{} slots of {slot} bytes do not fit the {limit} bytes of shared memory", slots.max(1));
        let d = Diagnostic::error(codes::SMEM_LIMIT, span, message);
        return Err(cx.report(d.with_note("use smaller tiles or fewer stages")));
    }
    Ok((slots, slots * slot))
}

//! Rule 34: loops that take tile numbers from a work queue.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ChannelOp, ExprData, Kernel, Next, StmtData, ValueDef};
use crate::ops::Op;
use crate::types::{Elem, ElemRef, Scratch};
use crate::typing::{const_int, same_expr};
use crate::verify::context::Cx;

/// A loop over a work queue, and its block.
type Found = (Block, Stmt, Next);

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut found: Vec<Found> = Vec::new();
    k.walk(k.body, &mut |k, b, s| {
        if let StmtData::For { next: Some(next), .. } = k.stmts[s] {
            found.push((b, s, next));
        }
    });
    let mut said: Vec<(Stmt, String, &str)> = Vec::new();
    for &(b, s, next) in &found {
        said.extend(wrong(k, b, s, next).map(|(message, note)| (s, message, note)));
        said.extend(places(k, next).map(|message| (s, message, "the channel is `channel u32[1] slots 2`, the counter a parameter of the kernel: `drawn: gmem u32[1] strides (1) signals`")));
    }
    for (i, &(_, s, next)) in found.iter().enumerate() {
        let others = || found[..i].iter().map(|(_, t, other)| (*t, *other));
        let parted = |(_, other): (Stmt, Next)| (other.channel == next.channel) != (other.counter == next.counter);
        let again = |(t, other): (Stmt, Next)| other.channel == next.channel && side(k, t) == side(k, s);
        if others().any(parted) {
            let note = "give each channel a counter of its own";
            said.push((
                s,
                "two channels pass numbers of one counter, or one channel those of two counters".to_owned(),
                note,
            ));
        } else if others().any(again) {
            let note = "one role draws and publishes them, in one loop; another reads them, in one loop";
            said.push((s, "the numbers of a counter are drawn, or read, in two loops".to_owned(), note));
        }
    }
    for (s, message, note) in said {
        cx.report(Diagnostic::error(codes::BAD_LOOP, k.stmt_spans[s], message).with_note(note));
    }
}

/// The channel operation with which each iteration of a loop ends.
fn side(k: &Kernel, s: Stmt) -> Option<ChannelOp> {
    let StmtData::For { next: Some(next), body, .. } = k.stmts[s] else { return None };
    k.blocks[body].iter().rev().find_map(|&s| queue_slot_op(k, s, next.channel))
}

/// The operation of a statement on the numbers in a channel's slots: `publish` or `release`.
fn queue_slot_op(k: &Kernel, s: Stmt, channel: Value) -> Option<ChannelOp> {
    match &k.stmts[s] {
        StmtData::Channel { op: op @ (ChannelOp::Publish | ChannelOp::Release), channels, .. } => {
            channels.contains(&channel).then_some(*op)
        }
        _ => None,
    }
}

/// An error of a loop, and its fix.
fn wrong(k: &Kernel, block: Block, s: Stmt, next: Next) -> Option<(String, &'static str)> {
    let StmtData::For { start, end, step, cond, unroll, body, .. } = k.stmts[s] else { return None };
    let in_role = k.blocks[k.body]
        .iter()
        .any(|&s| matches!(k.stmts[s], StmtData::Role { replicas: None, body, .. } if body == block));
    if !in_role {
        return Some((
            "a loop draws its numbers outside of a role".to_owned(),
            "it stands in the body of a role without replicas",
        ));
    }
    if cond.is_some() || unroll || k.lanes[s].is_some() {
        return Some((
            "a loop that draws its numbers goes on as long as these are in front of its end".to_owned(),
            "it has no `while`, `unroll` or `spread`",
        ));
    }
    if !counted(k, [start, end, step]) {
        let note = "all blocks draw as often as there are numbers: `grid (cta: min(TILES, 132))`, and `for tile in cta..TILES step 132 next ..`";
        return Some((
            "the blocks of the launch do not begin with the first numbers of a loop that draws the others".to_owned(),
            note,
        ));
    }
    let mut all = 0;
    k.walk(body, &mut |k, _, s| all += usize::from(queue_slot_op(k, s, next.channel).is_some()));
    let own = k.blocks[body].iter().filter(|&&s| queue_slot_op(k, s, next.channel).is_some()).count();
    if (all, own) != (1, 1) {
        let name = &k.values[next.channel].name;
        return Some((
            format!("an iteration passes {all} numbers through `{name}`, expected one"),
            "end the body with `acquire c`, `publish c` where they are drawn, `wait c`, `release c` where they are read",
        ));
    }
    None
}

/// Whether a loop starts at the block's number, with as many blocks as its step or as tiles.
fn counted(k: &Kernel, [start, end, step]: [Expr; 3]) -> bool {
    let [axis] = &k.grid[..] else { return false };
    let own = matches!(k.exprs[start], ExprData::Ref(v) if v == axis.index);
    let ExprData::Op { op: Op::Min, args } = &k.exprs[axis.extent] else { return false };
    let [all, most] = args[..] else { return false };
    own && same_expr(k, all, end) && const_int(k, most).is_some_and(|n| const_int(k, step) == Some(n))
}

/// An error of the channel or of the counter.
fn places(k: &Kernel, next: Next) -> Option<String> {
    let name = |v: Value| &k.values[v].name;
    let channel = match &k.values[next.channel].def {
        ValueDef::Channel { tile, .. } => {
            tile.elem == ElemRef::Known(Elem::U32) && k.const_shape(&tile.shape).is_some_and(|shape| shape == [1])
        }
        _ => false,
    };
    if !channel {
        return Some(format!("`{}` passes no numbers", name(next.channel)));
    }
    let counter = k.tensor_ty(next.counter).is_some_and(|t| {
        t.scratch == Some(Scratch::Signals) && t.shape.len() == 1 && t.shape.iter().all(|&n| const_int(k, n) == Some(1))
    });
    if !counter {
        return Some(format!("`{}` is not a counter", name(next.counter)));
    }
    let used = k.expressions().into_iter().any(|e| match &k.exprs[e] {
        ExprData::Ref(v) => *v == next.channel,
        ExprData::View(view) => view.base == next.channel,
        _ => false,
    });
    used.then(|| format!("`{}` passes numbers of tiles between roles, and has another use", name(next.channel)))
}

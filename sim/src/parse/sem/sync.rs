//! Control flow and synchronisation (PTX 9.7.12, 9.7.13).

use super::forms::{addr, optional, pred, slot, two};
use super::memory::atomic;
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::mbarrier::{MBar, What};
use crate::program::types::R;
use crate::program::{Bar, Op, Shfl, Vote};
use crate::race::Scope;

/// `bra`.
pub(crate) fn bra(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    match args.first() {
        Some(Arg::Labels(targets)) if targets.len() == 1 => Ok(Op::Bra { target: targets[0], uni: m.has("uni") }),
        _ => m.error("`bra` needs a label"),
    }
}

/// `brx.idx`.
pub(crate) fn brx(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    match args.get(1) {
        Some(Arg::Labels(targets)) => {
            Ok(Op::BraIndexed { index: slot(args, 0), targets: targets.clone().into_boxed_slice() })
        }
        _ => m.error("`brx` needs a list of targets"),
    }
}

/// `ret` and `exit`: in a kernel they are the same.
pub(crate) fn exit(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::Exit)
}

/// `trap`.
pub(crate) fn trap(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::Trap)
}

/// Whether the number and the count of a barrier, where they are constants, are among those there are.
fn check_barrier(cx: &Cx<'_, '_>, m: &Mods<'_>, id: R, count: Option<R>) -> Result<()> {
    if let Some(id) = cx.known(id).filter(|id| *id > 15) {
        return m.error(format!("there is no barrier {id}: they are 0 to 15"));
    }
    match count.and_then(|count| cx.known(count)).filter(|count| count % 32 != 0) {
        Some(count) => m.error(format!("a barrier counts whole warps, {count} threads are none")),
        None => Ok(()),
    }
}

/// `bar.sync` and `bar.arrive`; `bar` is the aligned spelling of `barrier`.
pub(crate) fn bar(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let aligned = cx.opcode() == "bar" || m.has("aligned");
    let (id, count) = (slot(args, 0), optional(args, 1));
    check_barrier(cx, m, id, count)?;
    Ok(Op::Bar(Box::new(Bar { id, count, wait: m.has("sync"), aligned, red: None })))
}

/// `bar.red`.
pub(crate) fn bar_red(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let aligned = cx.opcode() == "bar" || m.has("aligned");
    let what = if m.has("popc") {
        Vote::Popc
    } else if m.has("and") {
        Vote::All
    } else {
        Vote::Any
    };
    let (p, negate) = pred(args, args.len().saturating_sub(1));
    check_barrier(cx, m, slot(args, 1), optional(args, 2))?;
    let red = Some((what, p, negate, slot(args, 0)));
    Ok(Op::Bar(Box::new(Bar { id: slot(args, 1), count: optional(args, 2), wait: true, aligned, red })))
}

/// `bar.warp.sync`.
pub(crate) fn bar_warp(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::BarWarp { mask: slot(args, 0) })
}

/// `griddepcontrol`: nothing is launched after a launch that is simulated.
pub(crate) fn grid_dependency(_: &mut Cx<'_, '_>, m: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(if m.has("wait") { Op::GridWait } else { Op::Nop })
}

/// `membar`, `fence`.
pub(crate) fn fence(_: &mut Cx<'_, '_>, m: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    let scope = match (m.has("cta"), m.has("cluster")) {
        (true, _) => Scope::Block,
        (_, true) => Scope::Cluster,
        _ => Scope::Wide,
    };
    Ok(Op::Fence { scope, acquire: !m.has("release"), release: !m.has("acquire") })
}

/// `shfl.sync`.
pub(crate) fn shfl(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let mode = if m.has("up") {
        Shfl::Up
    } else if m.has("down") {
        Shfl::Down
    } else if m.has("bfly") {
        Shfl::Bfly
    } else {
        Shfl::Idx
    };
    let (d, p) = two(args, 0);
    Ok(Op::Shfl { mode, d, p, a: slot(args, 1), b: slot(args, 2), c: slot(args, 3), mask: slot(args, 4) })
}

/// `vote.sync`.
pub(crate) fn vote(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let what = if m.has("ballot") {
        Vote::Ballot
    } else if m.has("all") {
        Vote::All
    } else if m.has("any") {
        Vote::Any
    } else {
        Vote::Uni
    };
    let (p, neg) = pred(args, 1);
    Ok(Op::Vote { what, d: slot(args, 0), p, neg, mask: slot(args, 2) })
}

/// `match.sync`.
pub(crate) fn match_sync(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let wide = m.ty()?.bytes() == 8;
    let (a, mask) = (slot(args, 1), slot(args, 2));
    if m.has("any") {
        return Ok(Op::MatchAny { d: slot(args, 0), a, wide, mask });
    }
    let (d, p) = two(args, 0);
    Ok(Op::MatchAll { d, p, a, wide, mask })
}

/// `activemask`.
pub(crate) fn active_mask(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::ActiveMask { d: slot(args, 0) })
}

/// `elect.sync`.
pub(crate) fn elect(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, p) = two(args, 0);
    Ok(Op::Elect { d, p, mask: slot(args, 1) })
}

/// `redux.sync`.
pub(crate) fn redux(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (op, _, signed) = atomic(m)?;
    Ok(Op::Redux { op, signed, d: slot(args, 0), a: slot(args, 1), mask: slot(args, 2) })
}

/// Everything on an mbarrier object.
pub(crate) fn mbarrier(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let last = |i| slot(args, i);
    let (what, memory) = match *m.words.first().unwrap_or(&"") {
        "init" => (What::Init { count: last(1) }, 0),
        "inval" => (What::Inval, 0),
        "expect_tx" => (What::ExpectTx { bytes: last(1) }, 0),
        "complete_tx" => (What::CompleteTx { bytes: last(1) }, 0),
        "test_wait" | "try_wait" => (What::Wait { p: slot(args, 0), state: last(2), parity: m.has("parity") }, 1),
        "async" => (What::Copies { counted: m.has("noinc") }, 0),
        op => {
            let (tx, value) = (m.has("expect_tx"), optional(args, 2));
            if value.is_some() && !tx && !m.has("noComplete") {
                cx.require((7, 8), 90);
            }
            let what = What::Arrive {
                state: slot(args, 0),
                count: value.filter(|_| !tx),
                expect: value.filter(|_| tx),
                drop: op == "arrive_drop",
                incomplete: m.has("noComplete"),
            };
            (what, 1)
        }
    };
    // An operation on bytes alone orders nothing (PTX 9.7.13.15.11).
    let relaxed = m.has("relaxed") || matches!(what, What::ExpectTx { .. } | What::CompleteTx { .. });
    Ok(Op::MBar(Box::new(MBar { what, area: m.area(), addr: addr(args, memory), relaxed })))
}

/// `mbarrier.pending_count`.
pub(crate) fn pending_count(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::PendingCount { d: slot(args, 0), state: slot(args, 1) })
}

//! Turns buffers that producer warps fill into channels.
//!
//! Adjacent copies whose tiles are first and last read by the same statements share their barriers: `acquire a, b`.
//! Slots are divided over the kernel: a channel that is filled once per tile has one; channels of loops have as many as shared memory
//! allows, or as `stages` says.

use crate::Cx;
use crate::analysis::reduction;
use crate::analysis::uses::{path_to, stmt_exprs};
use crate::place_shared::{Needs, TrialChannel};
use crate::producer_fills::{How, ProducerFill, index_tiles};
use crate::roles::slots_room;
use crate::tensor_copies::slot_bytes;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, CopyAttrs, ExprData, Kernel, Mechanism, Slot, StmtData, StmtPlan, ValueDef, View};
use tilec_ir::layout::RegLayout;
use tilec_ir::memory_reuse::Overlays;
use tilec_ir::missed_paths::FastPath;
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::WARP;
use tilec_ir::tensor_store::is_stored;

/// Most slots of a channel in a loop, if the schedule gives no number.
const SLOTS: u64 = 8;

/// Slots with which a loop hides the latency of loads, if each holds a tile of about a microsecond's work.
const ENOUGH: u64 = 2;

/// Copies and channels that are operated together.
struct Group {
    feeds: Vec<ProducerFill>,
    channels: Vec<Value>,
    first: Stmt,
    last: Stmt,
}

pub(super) fn make(k: &mut Kernel, cx: &mut Cx<'_>, feeds: &[ProducerFill]) -> Result<(), Reported> {
    let slots = slots(k, cx, feeds)?;
    for &(v, n) in &slots {
        let ValueDef::Smem(tile) = k.values[v].def.clone() else { unreachable!("fed buffers are in shared memory") };
        let span = k.values[v].span;
        let slots = k.int(n as i64, span);
        k.values[v].def = ValueDef::Channel { tile, slots };
    }
    let groups = groups(k, feeds);
    for feed in feeds {
        for &s in &feed.readers {
            read_slots(k, s, feed.buffer);
        }
    }
    for group in &groups {
        operate(k, group);
    }
    for feed in feeds {
        if let Some(refused) = &feed.refused {
            let what = format!("no TMA load fills `{}`", k.values[feed.buffer].name);
            refused.report(k, cx, &what, (FastPath::TensorLoads, vec![feed.fill]));
        }
    }
    let list: Vec<String> = slots.iter().map(|(v, n)| format!("`{}` {n}", k.values[*v].name)).collect();
    let by_threads = feeds.iter().any(|f| f.mechanism == How::Threads);
    let how = if by_threads { "TMA loads and `cp.async` of its threads" } else { "TMA loads" };
    let span = k.stmt_spans[feeds[0].fill];
    cx.remark(span, format!("{PRODUCER_WARPS} producer warps fill channels by {how}; slots: {}", list.join(", ")));
    Ok(())
}

/// Copies in program order, grouped where possible.
fn groups(k: &Kernel, feeds: &[ProducerFill]) -> Vec<Group> {
    let mut apart: Vec<(Value, Value)> = Vec::new();
    loop {
        let mut groups = neighbours(k, feeds, &apart);
        let Some((ring, group)) = inconsistent_groups(k, feeds, &groups) else {
            // Channels that share barriers in one place do so everywhere.
            let rings: Vec<Vec<Value>> = groups.iter().map(|g| g.channels.clone()).collect();
            for group in &mut groups {
                let whole = rings.iter().filter(|ring| group.channels.iter().all(|c| ring.contains(c)));
                group.channels = whole.max_by_key(|ring| ring.len()).unwrap_or(&group.channels).clone();
            }
            return groups;
        };
        let (ring, group) = (&groups[ring].channels, &groups[group].channels);
        let (own, others): (Vec<Value>, Vec<Value>) = ring.iter().partition(|c| group.contains(c));
        apart.extend(own.iter().flat_map(|&a| others.iter().map(move |&b| (a, b))));
    }
}

/// A group whose channels share barriers, and another group with only some of them, although the others are filled in
/// the same loop, too: their slots cannot be published empty there.
fn inconsistent_groups(k: &Kernel, feeds: &[ProducerFill], groups: &[Group]) -> Option<(usize, usize)> {
    let looped: Vec<bool> = groups.iter().map(|g| in_loop(k, g.feeds[0].block)).collect();
    let odd = |ring: &Group, at: usize| {
        let group = &groups[at];
        let filled = |c: &Value| feeds.iter().any(|f| f.buffer == *c && in_loop(k, f.block) == looped[at]);
        ring.channels.iter().any(|c| group.channels.contains(c))
            && ring.channels.iter().any(|c| !group.channels.contains(c) && filled(c))
    };
    groups.iter().enumerate().find_map(|(r, ring)| (0..groups.len()).find(|&g| odd(ring, g)).map(|g| (r, g)))
}

/// Groups of adjacent copies whose slots are held by the same statements, except channels that must be separate.
fn neighbours(k: &Kernel, feeds: &[ProducerFill], apart: &[(Value, Value)]) -> Vec<Group> {
    let kept_apart = |a: Value, b: Value| apart.contains(&(a, b)) || apart.contains(&(b, a));
    let mut groups: Vec<Group> = Vec::new();
    for feed in feeds {
        let (Some(&first), Some(&last)) = (feed.readers.first(), feed.readers.last()) else {
            unreachable!("what nobody reads is not fed")
        };
        // An operand that is loaded to registers is loaded directly in front of the product: all slots are held from
        // there to the product.
        let loaded = reduction::of(k, feed.block).ok().and_then(|step| Some((step.first_read()?, step.product)));
        let at = |s: Stmt| k.blocks[feed.block].iter().position(|&t| t == s);
        let within = |&(from, to): &(Stmt, Stmt)| at(from) <= at(first) && at(last) <= at(to);
        let (first, last) = loaded.filter(within).unwrap_or((first, last));
        let next_to = |g: &Group| {
            let Some(before) = g.feeds.last() else { return false };
            let list = &k.blocks[feed.block];
            let at = list.iter().position(|&s| s == before.fill);
            before.block == feed.block
                && at.is_some_and(|i| list.get(i + 1) == Some(&feed.fill))
                && (g.first, g.last) == (first, last)
                && may_share_barriers(k, feeds, before.buffer, feed.buffer)
                && g.feeds.iter().all(|f| f.buffer != feed.buffer && !kept_apart(f.buffer, feed.buffer))
        };
        match groups.last_mut().filter(|g| next_to(g)) {
            Some(group) => {
                group.feeds.push(feed.clone());
                group.channels.push(feed.buffer);
            }
            None => groups.push(Group { feeds: vec![feed.clone()], channels: vec![feed.buffer], first, last }),
        }
    }
    groups
}

/// Whether two channels can share barriers: they are filled equally often, or only one is filled after the loops, too;
/// then slots of the other one are published empty.
fn may_share_barriers(k: &Kernel, feeds: &[ProducerFill], a: Value, b: Value) -> bool {
    let count =
        |c: Value, looped: bool| feeds.iter().filter(|f| f.buffer == c && in_loop(k, f.block) == looped).count();
    let (inside, outside) = ([a, b].map(|c| count(c, true)), [a, b].map(|c| count(c, false)));
    inside[0] == inside[1] && (outside[0] == outside[1] || inside[0] > 0 && outside.contains(&0))
}

/// Writes the channel operations of a group around its copies and readers. If stages are written, each operation has
/// the stage of the statement that it serves.
fn operate(k: &mut Kernel, group: &Group) {
    let span = k.stmt_spans[group.feeds[0].fill];
    let channels = group.channels.clone();
    let (earliest, latest) = (group.feeds[0].fill, group.feeds[group.feeds.len() - 1].fill);
    let mut filled = vec![operation(k, ChannelOp::Acquire, &channels, span, (true, earliest))];
    for feed in &group.feeds {
        fill(k, feed);
        filled.push(feed.fill);
    }
    filled.push(operation(k, ChannelOp::Publish, &channels, span, (true, latest)));
    let wait = operation(k, ChannelOp::Wait, &channels, span, (false, group.first));
    let release = operation(k, ChannelOp::Release, &channels, span, (false, group.last));
    let block = group.feeds[0].block;
    let fills: Vec<Stmt> = group.feeds.iter().map(|f| f.fill).collect();
    let mut list = Vec::new();
    for s in k.blocks[block].clone() {
        if fills.contains(&s) {
            continue;
        }
        if s == group.first {
            // Slots are filled in the order in which they are waited for.
            list.append(&mut filled);
            list.push(wait);
        }
        list.push(s);
        list.extend((s == group.last).then_some(release));
    }
    k.blocks[block] = list;
}

fn operation(k: &mut Kernel, op: ChannelOp, channels: &[Value], span: Span, (producer, of): (bool, Stmt)) -> Stmt {
    let s = k.stmt(StmtData::Channel { op, channels: channels.to_vec(), pending: None }, span);
    let StmtPlan { stage, cycle, .. } = k.plans[of];
    k.plans[s] = StmtPlan { producer, stage, cycle, ..StmtPlan::default() };
    s
}

/// The copy to a slot, as the producer executes it.
fn fill(k: &mut Kernel, feed: &ProducerFill) {
    let StmtData::Copy { src, dst, attrs } = k.stmts[feed.fill].clone() else { unreachable!("a feed is a copy") };
    let slot = View { base: feed.buffer, slot: Some(Slot::Put), ranges: Vec::new() };
    let slot = k.expr(ExprData::View(slot), k.expr_spans[dst]);
    let attrs = match feed.mechanism {
        How::Tensor => CopyAttrs::tensor(),
        How::Threads => {
            for rows in index_tiles(k, src) {
                if let Some(tile) = k.tile_ty_mut(rows) {
                    tile.reg_layout = tile.reg_layout.as_ref().and_then(producers);
                }
            }
            let threads = attrs.threads.as_ref().and_then(producers);
            CopyAttrs { threads, mechanism: Mechanism::Asynchronous, ..attrs }
        }
    };
    k.stmts[feed.fill] = StmtData::Copy { src, dst: slot, attrs };
}

/// The layout of a copy over the producer's threads, which are fewer than the block's.
fn producers(layout: &RegLayout) -> Option<RegLayout> {
    let own = layout.thread().cols().get(..(PRODUCER_WARPS * WARP).ilog2() as usize)?.to_vec();
    RegLayout::new(layout.value().cols().to_vec(), own, layout.out_bits())
}

/// Replaces references to a buffer under `s` by references to the slot that was waited for.
fn read_slots(k: &mut Kernel, s: Stmt, buffer: Value) {
    let mut stmts = vec![s];
    for b in k.sub_blocks(s) {
        k.walk(b, &mut |_, _, s| stmts.push(s));
    }
    for s in stmts {
        let mut stack = stmt_exprs(k, s);
        while let Some(e) = stack.pop() {
            stack.extend(k.children(e));
            match &mut k.exprs[e] {
                ExprData::Ref(v) if *v == buffer => {
                    k.exprs[e] = ExprData::View(View { base: buffer, slot: Some(Slot::Get), ranges: Vec::new() });
                }
                ExprData::View(view) if view.base == buffer && view.slot.is_none() => view.slot = Some(Slot::Get),
                _ => {}
            }
        }
    }
}

/// The number of slots of each channel.
fn slots(k: &Kernel, cx: &mut Cx<'_>, feeds: &[ProducerFill]) -> Result<Vec<(Value, u64)>, Reported> {
    let mut channels: Vec<(Value, bool)> = Vec::new();
    for feed in feeds {
        let looped = in_loop(k, feed.block);
        match channels.iter_mut().find(|c| c.0 == feed.buffer) {
            Some(found) => found.1 |= looped,
            None => channels.push((feed.buffer, looped)),
        }
    }
    let limit = slots_room(k, cx.options.target);
    // The producer fills one channel while the consumer reads another: all of them are live all the time.
    let needs = Needs::of(k, cx.options);
    // A buffer of TMA stores is live until the next tile.
    let stored = k.values.keys().filter(|&v| matches!(k.values[v].def, ValueDef::Smem(_)) && is_stored(k, v));
    let stored: Vec<TrialChannel> = stored.map(|value| TrialChannel { value, slots: 1, within: None }).collect();
    let needed = |once: u64, looped: u64| {
        let supposed =
            |&(value, l): &(Value, bool)| TrialChannel { value, slots: if l { looped } else { once }, within: None };
        needs.bytes(limit, &channels.iter().map(supposed).chain(stored.iter().copied()).collect::<Vec<_>>())
    };
    let overlays = Overlays::of(k);
    let apart = channels.iter().filter(|&&(v, _)| overlays.over(v).is_empty());
    let bytes: Vec<(bool, u64)> = apart.map(|&(v, looped)| (looped, slot_bytes(k, v))).collect();
    let at_least = |once: u64, looped: u64| bytes.iter().map(|&(l, n)| n * if l { looped } else { once }).sum::<u64>();
    // First a cheap lower bound, then the exact need.
    let fits = |once: u64, looped: u64| at_least(once, looped) <= limit && needed(once, looped) <= limit;
    let asked = k.schedule.stages.and_then(|e| k.as_int(e)).and_then(|n| u64::try_from(n).ok());
    let room = |once: u64| (1..=SLOTS).rev().find(|&n| fits(once, n)).unwrap_or(0);
    // A channel that is filled once for an output tile has two slots, so that the next tile can be loaded ahead, if
    // loops still have enough.
    let ahead = room(2);
    let n = asked.unwrap_or(if ahead >= ENOUGH { ahead } else { room(1) }).max(1);
    if !fits(1, n) {
        let span = k.stmt_spans[feeds[0].fill];
        let message = format!(
            "{} bytes of shared memory are needed with {n} slot(s) of channels in loops; a block has {limit}",
            needed(1, n)
        );
        return Err(cx.report(
            Diagnostic::error(codes::SMEM_LIMIT, span, message)
                .with_note("use smaller tiles or fewer stages")
                .with_left_out(k.schedule_item("stages").filter(|_| room(1) > 0)),
        ));
    }
    let once = if fits(2, n) { 2 } else { 1 };
    Ok(channels.iter().map(|&(v, looped)| (v, if looped { n } else { once })).collect())
}

/// Whether a block runs several times for a tile of the output.
fn in_loop(k: &Kernel, block: Block) -> bool {
    let Some(&first) = k.blocks[block].first() else { return false };
    let path = path_to(k, first);
    path.iter().rev().skip(1).any(|&(b, i)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. }))
}

//! The mbarriers of channel slots: `channel f16[64, 64] slots 4 full 1 empty 2`, `publish a, b expect 8192, 4096`.
//!
//! A slot has two mbarriers. `full` completes a phase when all threads that fill it have arrived and the bytes of TMA
//! loads have landed; `empty` when all warps that release it have arrived. Channels that are operated together share
//! them. The arrival counts follow from the copies:
//!
//! * the lane that issues TMA loads arrives once for all of them, with their byte count;
//! * each thread that fills slots by `cp.async` or by stores arrives;
//! * the other threads of the role that issues TMA loads arrive too: a thread waits for the parity of the next phase,
//!   so it must not fall two phases behind;
//! * one lane of each consumer warp releases a slot, in all blocks of a cluster if the slot is filled by multicast.

use crate::cluster;
use crate::entities::{Block, Stmt, Value};
use crate::kernel::{ChannelOp, ExprData, Kernel, StmtData};
use crate::lanes::only_issues_tma_loads;
use crate::layout::hardware::boxes;
use crate::placement::slots;
use crate::target::WARP;
use crate::tensor_store::tensor_store;
use crate::types::{ArrivalCounts, ElemRef};
use crate::typing::const_int;
use std::collections::BTreeMap;

/// The threads that fill the channels of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Fill {
    /// TMA copies, requested by one lane.
    pub tensor: bool,
    /// Threads that fill by `cp.async`.
    pub asynchronous: u32,
    /// Threads that fill by stores.
    pub stored: u32,
    /// Threads of the producer that fill nothing, besides the lane that issues TMA loads.
    pub idle_threads: u32,
}

impl Fill {
    /// The threads that fill channels operated together; none without roles, where block barriers order the threads.
    pub fn of(k: &Kernel, channels: &[Value]) -> Fill {
        let mut fill = Fill::default();
        let mut apart = false;
        for &s in &k.blocks[k.body] {
            let StmtData::Role { body, .. } = k.stmts[s] else { continue };
            let publishes = channels.iter().any(|&c| operates(k, body, ChannelOp::Publish, c));
            apart |= publishes && !only_issues_tma_loads(k, body);
        }
        let mut threads = 0;
        for &c in channels {
            threads = operating_warps(k, ChannelOp::Publish, c) * WARP;
            fill.tensor |= k.fills_by_tensor_copies(c);
            if k.fills_asynchronously(c) {
                fill.asynchronous = threads;
            } else if k.is_work_queue(c) {
                // The lane that draws; if other threads run the role too, they wait for the number and arrive.
                fill.stored = if apart { threads } else { 1 };
            } else if k.fills_by_threads(c) {
                fill.stored = threads;
            }
        }
        if apart && fill.asynchronous + fill.stored == 0 {
            fill.idle_threads = threads;
        }
        fill
    }

    /// Arrivals that fill a slot.
    pub fn arrivals(self) -> u32 {
        u32::from(self.tensor) + self.asynchronous + self.stored + self.idle_threads
    }
}

/// The arrival counts of a channel that is operated together with `channels` (which include it); `None`: not between
/// roles.
pub fn handover(k: &Kernel, channel: Value, channels: &[Value]) -> Option<ArrivalCounts> {
    if !has_roles(k) {
        return None;
    }
    let full = Fill::of(k, channels).arrivals();
    let own = operating_warps(k, ChannelOp::Release, channel).max(1);
    let shared = shares_with_cluster(k) && channels.iter().any(|&c| cluster::fills_by_multicast(k, c));
    let blocks = if shared { u32::try_from(cluster::blocks(k)).unwrap_or(1) } else { 1 };
    (full > 0).then(|| ArrivalCounts { full, empty: own * blocks })
}

/// Whether blocks of a cluster have something to share.
pub fn shares_with_cluster(k: &Kernel) -> bool {
    let multicast = |s: &StmtData| matches!(s, StmtData::Copy { attrs, .. } if attrs.is_multicast());
    cluster::blocks(k) > 1 && (cluster::memory(k).next().is_some() || k.statement_data().any(multicast))
}

/// Whether a kernel has roles.
pub fn has_roles(k: &Kernel) -> bool {
    k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }))
}

/// For each `publish` in a role, the bytes that TMA loads bring to the slot of each channel since it was acquired;
/// entries without bytes are omitted. Both branches of an `if` bring the same, and a loop nothing: lowering rejects
/// other kernels.
pub fn expected(k: &Kernel) -> BTreeMap<Stmt, Vec<u64>> {
    let mut found = BTreeMap::new();
    for &s in &k.blocks[k.body] {
        if let StmtData::Role { body, .. } = k.stmts[s] {
            fills(k, body, &mut BTreeMap::new(), &mut found);
        }
    }
    found
}

fn fills(k: &Kernel, block: Block, filling: &mut BTreeMap<Value, u64>, found: &mut BTreeMap<Stmt, Vec<u64>>) {
    for &s in &k.blocks[block] {
        match &k.stmts[s] {
            StmtData::Copy { dst, attrs, .. } if attrs.is_tensor() && tensor_store(k, s).is_none() => {
                if let ExprData::View(view) = &k.exprs[*dst] {
                    *filling.entry(view.base).or_default() += slot_boxes(k, view.base).unwrap_or(0);
                }
            }
            StmtData::Channel { op: ChannelOp::Publish, channels, .. } => {
                let bytes: Vec<u64> = channels.iter().map(|c| filling.remove(c).unwrap_or(0)).collect();
                if bytes.iter().any(|&n| n > 0) {
                    found.insert(s, bytes);
                }
            }
            StmtData::If { then, otherwise, .. } => {
                let mut other = filling.clone();
                fills(k, *then, filling, found);
                otherwise.iter().for_each(|&b| fills(k, b, &mut other, found));
            }
            _ => k.sub_blocks(s).into_iter().for_each(|b| fills(k, b, filling, found)),
        }
    }
}

/// Bytes of the boxes that make up a slot.
fn slot_boxes(k: &Kernel, channel: Value) -> Option<u64> {
    let tile = k.tile_ty(channel)?;
    let ElemRef::Known(elem) = tile.elem else { return None };
    let (shape, layout) = (k.const_shape(&tile.shape)?, tile.smem_layout.as_ref()?);
    Some(boxes(layout, &shape, elem.size())?.bytes(elem.size()))
}

/// The channels operated by exactly the same statements as `v`, with the same `shape`, including `v`. In the order of
/// the text.
pub fn operated_alike<S: PartialEq>(k: &Kernel, v: Value, shape: &dyn Fn(Value) -> S) -> Vec<Value> {
    let mut sets: Vec<Vec<Value>> = Vec::new();
    let mut found = Vec::new();
    k.walk(k.body, &mut |k, _, s| match &k.stmts[s] {
        StmtData::Channel { channels, .. } => sets.push(channels.clone()),
        StmtData::Alloc { value, .. } => found.push(*value),
        _ => {}
    });
    let own = shape(v);
    found.retain(|&w| w == v || (shape(w) == own && sets.iter().all(|s| s.contains(&v) == s.contains(&w))));
    found
}

/// The ring of a channel: the channels operated together with it that have the same number of slots at the same
/// distance.
pub fn ring(k: &Kernel, channel: Value) -> Vec<Value> {
    let kind = |v: Value| k.tile_ty(v).is_some() && matches!(k.values[v].def, crate::kernel::ValueDef::Channel { .. });
    operated_alike(k, channel, &|v| (kind(v), slots(k, v), k.shared_places[v].and_then(|p| p.stride)))
}

/// The warps of a role; of one replica if it is replicated.
pub fn role_warps(k: &Kernel, s: Stmt) -> Option<u32> {
    match k.stmts[s] {
        StmtData::Role { warps, .. } => const_int(k, warps).and_then(|n| u32::try_from(n).ok()),
        _ => None,
    }
}

/// Warps of the roles that do `wanted` with a channel; of replicas one does.
fn operating_warps(k: &Kernel, wanted: ChannelOp, channel: Value) -> u32 {
    let mut warps = 0;
    for &s in &k.blocks[k.body] {
        let StmtData::Role { body, .. } = k.stmts[s] else { continue };
        if operates(k, body, wanted, channel) {
            warps += role_warps(k, s).unwrap_or(0);
        }
    }
    warps
}

/// Whether statements under `body` do `wanted` with a channel.
fn operates(k: &Kernel, body: Block, wanted: ChannelOp, channel: Value) -> bool {
    let mut found = false;
    k.walk(body, &mut |k, _, s| {
        found |= matches!(&k.stmts[s], StmtData::Channel { op, channels, .. } if *op == wanted && channels.contains(&channel));
    });
    found
}

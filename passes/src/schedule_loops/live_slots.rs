//! The number of slots of a channel that the consumer holds at once in a schedule.
//!
//! A product of stage 1 holds its slots for an iteration longer. If a channel is filled several times in an iteration,
//! these slots are held together. A wait for more slots than the channel has would never end.

use crate::analysis::access_width::slots_of;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData};

/// Whether a steady iteration in this order never holds more slots of a channel than it has. Prologue and drain hold no
/// more.
pub(super) fn slots_suffice(k: &Kernel, stmts: &[Stmt], order: &[usize], stages: &[u32]) -> bool {
    let mut channels: Vec<Value> = Vec::new();
    for &i in order {
        if let StmtData::Channel { op: ChannelOp::Wait, channels: list, .. } = &k.stmts[stmts[i]] {
            channels.extend(list);
        }
    }
    channels.into_iter().all(|channel| {
        let taken = |i: usize| match &k.stmts[stmts[i]] {
            StmtData::Channel { op: ChannelOp::Wait, channels, .. } if channels.contains(&channel) => 1,
            StmtData::Channel { op: ChannelOp::Release, channels, .. } if channels.contains(&channel) => -1,
            _ => 0,
        };
        let slots = i64::try_from(slots_of(k, channel)).expect("a count of slots");
        // Slots that earlier iterations still hold: their stage is the number of these iterations.
        let mut held: i64 = order.iter().map(|&i| -taken(i) * i64::from(stages[i])).sum();
        order.iter().all(|&i| {
            held += taken(i);
            held <= slots
        })
    })
}

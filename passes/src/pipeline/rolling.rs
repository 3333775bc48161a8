//! Asynchronous copies: the loop computes every tile, and fetches `slots - 1` tiles ahead.
//!
//! ```text
//! fill tiles 0 .. slots - 2; wait for tile 0; load its first fragments
//! for k in start..end {                                // k: the tile being multiplied
//!     fill tile k + slots - 1 into the slot that the last iteration released
//!     slices: load fragments one slice ahead, multiply
//!     before the last product: release, wait for the next tile, load its first fragments
//! }
//! release what was fetched past the end
//! ```
//!
//! Tiles past the end of the reduction are zeros that nobody multiplies, so neither the loop nor what follows it knows how
//! many tiles there are. One barrier per iteration: behind the wait, it shows this tile to all threads, and it stands
//! between the last reads of a slot and the copy into it in the next iteration. A tile is waited for by its own thread
//! with `slots - 2` later groups on their way (CUTLASS calls the shape "multistage").
//!
//! Buffers that `cp.async` cannot fill pass through registers: loaded where the others are filled, stored at the end. Tiles
//! of unaligned rows are stored in the next iteration instead, in front of the loads of the tile after them.

use super::build::{Build, Lane, PREFETCHED, Tile};
use crate::pipeline::planned::{Laid, Plan};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::ChannelOp;

type Pairs = [(Value, Value)];

pub(super) fn lay(build: &mut Build<'_>, plan: &Plan, pairs: &Pairs) -> Laid {
    let ahead = plan.stages - 1;
    let before = build.prologue(plan, pairs, ahead, ahead - 1);
    let body = iteration(build, plan, pairs);
    let mut after = vec![build.channel_op(ChannelOp::Release)];
    for d in 1..ahead {
        after.push(build.wait(ahead - 1 - d));
        after.push(build.channel_op(ChannelOp::Release));
    }
    Laid { before, start: build.offset(0), body, after }
}

fn iteration(build: &mut Build<'_>, plan: &Plan, pairs: &Pairs) -> Vec<Stmt> {
    let ahead = plan.stages - 1;
    let staged = build.lanes.iter().any(Lane::passing);
    let carried = build.lanes.iter().any(Lane::carried);
    // In front of the fragments of the next slice: fewer registers hold anything while tiles are shifted.
    let carry = |build: &mut Build<'_>| {
        let mut out = Vec::new();
        if carried {
            out.push(build.channel_op(ChannelOp::Acquire));
            out.extend(build.put(Lane::carried));
            out.extend(build.fetch(Tile::After(ahead + 1), Lane::carried));
            out.extend(build.prefetch(Tile::After(ahead + 1 + PREFETCHED)));
        }
        out
    };
    let fill = |build: &mut Build<'_>| {
        let mut out = build.fetch(Tile::After(ahead), Lane::passing);
        if !carried {
            out.push(build.channel_op(ChannelOp::Acquire));
        }
        out.extend(build.fill(Tile::After(ahead)));
        if !staged {
            out.push(build.channel_op(ChannelOp::Publish));
        }
        out
    };
    let turn = |build: &mut Build<'_>| {
        let mut out = Vec::new();
        if staged {
            out.extend(build.put(Lane::passing));
            out.push(build.channel_op(ChannelOp::Publish));
        }
        out.push(build.channel_op(ChannelOp::Release));
        out.push(build.wait(ahead - 1));
        out
    };
    let mut out = carry(build);
    let n = plan.slices.len();
    if !plan.double_buffered {
        out.extend(fill(build));
        out.extend(build.kept(&plan.rest));
        for slice in &plan.slices {
            out.extend(build.loads(slice, pairs, 0));
            out.extend(build.copy_all(&slice.products, pairs, 0));
        }
        out.extend(turn(build));
        return out;
    }
    for (i, slice) in plan.slices.iter().enumerate() {
        if i + 1 < n {
            out.extend(build.loads(&plan.slices[i + 1], pairs, (i + 1) % 2));
        } else {
            out.extend(turn(build));
            out.extend(build.loads(&plan.slices[0], pairs, 0));
        }
        if i == 0 {
            // Behind the fragments of the next slice, which the next products need first.
            out.extend(fill(build));
        }
        out.extend(build.copy_all(&slice.products, pairs, i % 2));
    }
    out
}

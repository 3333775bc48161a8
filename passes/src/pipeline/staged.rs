//! Tiles that pass through registers: two slots and one barrier per iteration (CUTLASS calls the shape "two-stage
//! pipelined").
//!
//! ```text
//! fetch tile 0; put it; wait                           // prologue
//! for k in STEP..end {                                 // k: the tile being fetched
//!     slices of the waited tile: load fragments one slice ahead, multiply
//!     before the last product: fetch tile k, put it, release, wait, load the first fragments of the next tile
//! }
//! slices of the last tile                              // drain
//! ```

use super::build::{Build, Lane, Tile};
use crate::pipeline::planned::{Laid, Plan};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::ChannelOp;

type Pairs = [(Value, Value)];

pub(super) fn lay(build: &mut Build<'_>, plan: &Plan, pairs: &Pairs) -> Laid {
    let ahead = plan.stages - 1;
    let before = build.prologue(plan, pairs, ahead, 0);
    let mut body = compute(build, plan, pairs, Next::Fetched);
    if !plan.double_buffered {
        body.extend(turn(build, Next::Fetched));
    }
    let mut after = Vec::new();
    for d in 0..ahead {
        let next = if d + 1 < ahead { Next::InSlot } else { Next::None };
        after.extend(compute(build, plan, pairs, next));
        if !plan.double_buffered {
            after.extend(turn(build, next));
        }
    }
    after.push(build.channel_op(ChannelOp::Release));
    Laid { before, start: build.offset(ahead), body, after }
}

/// Where the tile after the present one is.
#[derive(Copy, Clone)]
enum Next {
    /// It is fetched now.
    Fetched,
    /// It is in a slot already.
    InSlot,
    /// There is none.
    None,
}

/// Staging registers to the next free slot.
fn put(build: &mut Build<'_>) -> Vec<Stmt> {
    let mut out = vec![build.channel_op(ChannelOp::Acquire)];
    out.extend(build.put(Lane::any));
    out.push(build.channel_op(ChannelOp::Publish));
    out
}

/// Everything that happens between two tiles.
fn turn(build: &mut Build<'_>, next: Next) -> Vec<Stmt> {
    let mut out = Vec::new();
    match next {
        Next::None => return out,
        Next::InSlot => {}
        Next::Fetched => {
            out.extend(build.fetch(Tile::After(0), Lane::any));
            out.extend(put(build));
        }
    }
    out.push(build.channel_op(ChannelOp::Release));
    out.push(build.wait(0));
    out
}

/// The products of one tile, with loads one slice ahead.
fn compute(build: &mut Build<'_>, plan: &Plan, pairs: &Pairs, next: Next) -> Vec<Stmt> {
    let mut out = Vec::new();
    let n = plan.slices.len();
    for (i, slice) in plan.slices.iter().enumerate() {
        if !plan.double_buffered {
            out.extend(build.loads(slice, pairs, 0));
            out.extend(build.copy_all(&slice.products, pairs, 0));
            continue;
        }
        if i + 1 < n {
            out.extend(build.loads(&plan.slices[i + 1], pairs, (i + 1) % 2));
        } else if !matches!(next, Next::None) {
            out.extend(turn(build, next));
            out.extend(build.loads(&plan.slices[0], pairs, 0));
        }
        out.extend(build.copy_all(&slice.products, pairs, i % 2));
    }
    out
}

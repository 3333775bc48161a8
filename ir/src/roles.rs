//! Roles whose replicas take the iterations of a loop alternately.
//!
//! ```text
//! role consumer warps 4 replicas 2 {
//!     for tile in cta..tiles step 132 {        // the first replica takes the first, third, .. tile, the second the others
//!         var acc = reg f32[128, 128] = 0
//!         ordered { .. }                       // main loops one after the other, in the order of tiles
//!         ordered { .. }                       // and so what each does with a buffer that they share
//!     }
//! }
//! ```
//!
//! A program means what it would mean with one replica, which is how the interpreter runs it. `ordered` parts are done in that order: what one of
//! them needs to be after another is after it. Everything else of an iteration may overlap with other iterations, so it must not touch what they
//! touch: that is proved of channels and buffers (the pass `barriers`). Global memory is the author's: iterations are as independent as blocks of a grid.

use crate::entities::{Block, Stmt};
use crate::kernel::{Kernel, StmtData};
use crate::target::WARPGROUP;
use crate::typing::const_int;

/// Warps of the producer: a warpgroup, the unit in which registers are given away.
pub const PRODUCER_WARPS: u32 = WARPGROUP;

/// The largest `overlap` of a schedule: a producer requests the operands of two steps fewer before it waits for the launch in front.
pub const MAX_OVERLAP: i64 = 64;

/// How many replicas a role has; `None`: it is not a role, or their number is not known.
pub fn replicas(k: &Kernel, role: Stmt) -> Option<u32> {
    let StmtData::Role { replicas, .. } = k.stmts[role] else { return None };
    match replicas {
        Some(e) => const_int(k, e).and_then(|n| u32::try_from(n).ok()),
        None => Some(1),
    }
}

/// The warps of all replicas of a role.
pub fn all_warps(k: &Kernel, role: Stmt) -> Option<u32> {
    let StmtData::Role { warps, .. } = k.stmts[role] else { return None };
    const_int(k, warps).and_then(|n| u32::try_from(n).ok())?.checked_mul(replicas(k, role)?)
}

/// The warp of a block with which a role begins: roles have warps in the order in which they are written. `None`: it is not a role, or a number is not known.
pub fn first_warp(k: &Kernel, role: Stmt) -> Option<u32> {
    let body = &k.blocks[k.body];
    let at = body.iter().position(|&s| s == role)?;
    let roles = body[..at].iter().filter(|&&s| matches!(k.stmts[s], StmtData::Role { .. }));
    roles.map(|&s| all_warps(k, s)).sum()
}

/// The loop in the body of a role with replicas whose iterations they take. Otherwise the body has only names.
pub fn distributed_loop(k: &Kernel, body: Block) -> Option<Stmt> {
    let mut others = k.blocks[body].iter().copied().filter(|&s| !matches!(k.stmts[s], StmtData::Let { .. }));
    let only = others.next().filter(|_| others.next().is_none());
    only.filter(|&s| matches!(k.stmts[s], StmtData::For { unroll: false, .. }))
}

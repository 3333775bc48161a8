//! Dynamic tile scheduling: blocks take their tiles from a counter in memory.
//!
//! If the times of tiles are not known before the launch, such as those of sequences whose lengths are in memory, a block with short tiles takes more.
//! Tiles start in the order of the grid, so a program should list the longest first. Then all blocks end at about the same time.
//!
//! ```text
//! let turns = channel u32[1] slots 2
//! role producer {
//!     for tile in cta..tiles step 132 next turns from drawn {
//!         ..                                    // the loads of a tile
//!         acquire turns
//!         publish turns                         // draws the number of the next one
//!     }
//! }
//! role consumer {
//!     for tile in cta..tiles step 132 next turns from drawn {
//!         ..
//!         wait turns
//!         release turns                         // reads it
//!     }
//! }
//! ```
//!
//! The counter `drawn` is 0 before a launch and after it: see [`Next`].

use super::stream_k::tensor;
use crate::Cx;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ChannelOp, Kernel, Next, StmtData, ValueDef};
use tilec_ir::layout::SmemLayout;
use tilec_ir::types::{Elem, ElemRef, Order, Scratch, TileTy};

/// Slots of the channel: the producer takes the number of the tile after the next while the consumer computes this one.
const SLOTS: i64 = 2;

/// `queue 1` of a schedule.
pub(crate) fn scheduled(k: &Kernel) -> Option<Expr> {
    k.schedule.queue.filter(|&e| k.as_int(e) == Some(1))
}

/// The error that `queue 1` is not possible.
pub(crate) fn refused(k: &Kernel, cx: &mut Cx<'_>, e: Expr, why: &str) -> Reported {
    let message = format!("blocks cannot take their tiles from a counter here: {why}");
    let note = "`queue` is for wgmma products (sm_90a) whose blocks take whole tiles: without `ping_pong`, `stream_k` and `cluster`";
    cx.report(Diagnostic::error(codes::BAD_SCHEDULE, k.expr_spans[e], message).with_note(note))
}

/// Declarations for taking tile numbers in roles.
pub(crate) struct Queue {
    pub(super) next: Next,
    /// Declares the channel.
    pub(crate) declared: Stmt,
    span: Span,
}

impl Queue {
    pub(super) fn new(k: &mut Kernel, span: Span) -> Queue {
        let (one, slots) = (k.int(1, span), k.int(SLOTS, span));
        let tile = TileTy {
            order: Some(Order::Row),
            smem_layout: SmemLayout::natural(&[0], &[0]),
            ..TileTy::registers(ElemRef::Known(Elem::U32), vec![one], None)
        };
        let channel = k.value("turns", span, ValueDef::Channel { tile, slots });
        let counter = tensor(k, span, ("drawn", Elem::U32, Scratch::Signals), &[1], &[1]);
        let declared = k.stmt(StmtData::Alloc { value: channel, over: Vec::new() }, span);
        Queue { next: Next { channel, counter }, declared, span }
    }

    /// The channel operations of a role at the end of a tile.
    pub(crate) fn turn(&self, k: &mut Kernel, ops: [ChannelOp; 2]) -> Vec<Stmt> {
        let operate = |op| StmtData::Channel { op, channels: vec![self.next.channel], pending: None };
        ops.into_iter().map(|op| k.stmt(operate(op), self.span)).collect()
    }
}

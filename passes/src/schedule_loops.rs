//! `schedule-loops`: decides the stage and cycle of each statement of a loop, and which warps run it.
//!
//! Buffers that producer warps fill (`@(producer)` on their copies, from `select-mma`) become channels: the producer runs `acquire`, the copy and `publish`,
//! the consumer `wait` and `release`, in front of the first and after the last reader ([`channels`]). Then every statement of a
//! loop with wgmma gets a pipeline stage and a cycle ([`modulo`]):
//!
//! ```text
//! for j in 0..L step 128 {
//!     @(producer, stage 0, cycle 0) copy K[z, h, j.., 0..] -> k.put tma
//!     @(stage 0, cycle 0) wait k
//!     @(stage 0, cycle 0) s = mma<m64k16>(q.get, transpose(k.get), s)
//!     @(stage 1, cycle 10) o = mma<m64k16>(p, v.get, o)        // of the iteration before
//!     @(stage 0, cycle 520) let m_new = max(m, maximum(s, 1))
//!     ..
//! }
//! ```
//!
//! The text has the same meaning from top to bottom; `expand` makes prologue, steady state and roles. Written stages and cycles
//! are kept, and `expand` checks them against the dependences.
//!
//! Needs: layouts of buffers. Decides: slots, channels, stages, cycles. Switched off: `select-mma` marks no copies.

mod channels;
mod cost;
pub(crate) mod dependence_check;
pub(crate) mod lag;
mod live_slots;
pub(crate) mod modulo;
mod pressure;

use crate::Cx;
use crate::analysis::uses::all_stmts;
use crate::analysis::wgmma::is_product;
pub(crate) use crate::analysis::wgmma::is_scheduled;
use crate::producer_fills;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};

pub(crate) const NAME: &str = "schedule-loops";

pub(crate) use cost::{Cost, LATENCY, issue_clocks, of_warps, special_clocks, tensor_rate};

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    plan(k, cx).map(drop)
}

/// Schedules the loops, and returns the clocks of an iteration for each loop with a schedule; `choose` uses this.
pub(crate) fn plan(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Vec<(Block, u64)>, Reported> {
    let mut lengths = Vec::new();
    let mut buffers: Vec<Value> = Vec::new();
    for v in marked(k) {
        if !buffers.contains(&v) {
            buffers.push(v);
        }
    }
    if buffers.is_empty() {
        return Ok(lengths);
    }
    let feeds = producer_fills::plan(k, cx.options, &buffers)
        .unwrap_or_else(|refused| panic!("bug: `{}` marked copies that cannot be fed: {}", k.name, refused.why));
    channels::make(k, cx, &feeds)?;
    for body in loops_with_products(k) {
        let unplanned = k.blocks[body].iter().all(|&s| k.plans[s].stage.is_none());
        if unplanned {
            lengths.extend(modulo::schedule(k, cx, body)?.map(|length| (body, length)));
        }
    }
    Ok(lengths)
}

/// The buffers that copies of the producer fill.
fn marked(k: &Kernel) -> Vec<Value> {
    all_stmts(k, k.body)
        .into_iter()
        .filter(|&s| k.plans[s].producer)
        .filter_map(|s| match k.stmts[s] {
            StmtData::Copy { dst, .. } => match k.exprs[dst] {
                ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Smem(_)) => Some(v),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// The bodies of loops that contain a wgmma directly.
fn loops_with_products(k: &Kernel) -> Vec<Block> {
    let mut found = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::For { body, unroll: false, .. } = k.stmts[s]
            && k.blocks[body].iter().any(|&s| is_product(k, s))
        {
            found.push(body);
        }
    });
    found
}

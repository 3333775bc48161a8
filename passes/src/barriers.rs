//! `barriers`: places the barriers that shared memory needs, and proves that they suffice.
//!
//! All threads of a block access buffers and channel slots. A `barrier` (`bar.sync`) orders two
//! accesses that conflict. [`placement`] decides where barriers go. [`prove()`] then explores the
//! synchronisation of the result, independently of the placement. It reports errors: channel operations in the wrong
//! order, or races. The pass is the last one, so it checks what is lowered.
//!
//! If threads of a block load what other threads of it have stored to global memory, or store it again, a barrier is needed too ([`global`]).
//!
//! TMA stores and wgmma access shared memory through the async proxy. [`fences`] puts a `fence async` after the writes of threads, and
//! proves that none is missing.
//!
//! Keeps written barriers and fences. Roles synchronise only through channels, which they use in order ([`roles`]). A buffer belongs to one
//! role, whose threads barriers order as they do those of a block.
//!
//! Needs: bound compile-time parameters. Cannot be switched off.

mod accesses;
mod disjoint;
mod explained;
mod fences;
mod global;
mod hazard_kind;
mod kernel_proof;
mod placement;
mod prove;
mod roles;
#[cfg(test)]
mod tests;

use crate::Cx;
pub(crate) use disjoint::{StoredTwice, stored_twice_by_tiles};
use global::Conflicts;
pub use kernel_proof::prove;
pub(crate) use prove::uses::buffer_uses;
use tilec_ir::diag::{Reported, Severity, counted};
use tilec_ir::entities::Block;
use tilec_ir::index;
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};

pub(crate) const NAME: &str = "barriers";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    fences::place(k);
    let mut role = None;
    let mut shared = false;
    k.walk(k.body, &mut |k, _, s| match k.stmts[s] {
        StmtData::Role { .. } => role = role.or(Some(s)),
        StmtData::Alloc { value, .. } => {
            shared |= k.values[value].def.space().needs_barriers();
        }
        _ => {}
    });
    let buffers = k.values.values().any(|v| matches!(v.def, ValueDef::Smem(_)));
    if role.is_some() && !buffers && Conflicts::of(k).is_empty() {
        return proved(k, cx);
    }
    let placement = placement::place(k);
    explained::remarks(k, cx, &placement);
    if placement.cautious {
        cx.remark(k.name_span, "the kernel is too complex to minimise barriers: there is one before every access");
    }
    if !shared && placement.barriers.is_empty() {
        return Ok(());
    }
    placement::insert(k, &placement.barriers);
    let inner = innermost(k, k.body);
    let inner = inner.map_or(String::new(), |n| format!(", {n} per iteration of the innermost loop"));
    cx.remark(k.name_span, format!("{} placed{inner}", counted(placement.barriers.len(), "barrier")));
    proved(k, cx)
}

/// Reports the results of the proof.
fn proved(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut failed = Ok(());
    for diagnostic in prove(k) {
        match diagnostic.severity {
            Severity::Error => failed = Err(cx.report(diagnostic)),
            _ => cx.sink.push(diagnostic),
        }
    }
    failed
}

/// The most barriers that an iteration of an innermost run-time loop passes; `None` without such loops.
fn innermost(k: &Kernel, block: Block) -> Option<u64> {
    let mut most = None;
    k.walk(block, &mut |k, _, s| {
        if let StmtData::For { unroll: false, body, .. } = k.stmts[s] {
            let mut inner = false;
            k.walk(body, &mut |k, _, t| inner |= matches!(k.stmts[t], StmtData::For { unroll: false, .. }));
            if !inner {
                most = most.max(Some(passed(k, body)));
            }
        }
    });
    most
}

/// Barriers in a block, those of unrolled loops once per copy.
fn passed(k: &Kernel, block: Block) -> u64 {
    let count = |&s| match k.stmts[s] {
        StmtData::Barrier => 1,
        StmtData::For { start, end, step, body, .. } => {
            let copies = (|| index::trips(k.as_int(start)?, k.as_int(end)?, k.as_int(step)?))();
            passed(k, body).saturating_mul(copies.unwrap_or(1))
        }
        StmtData::If { then, otherwise, .. } => passed(k, then).max(otherwise.map_or(0, |b| passed(k, b))),
        _ => 0,
    };
    k.blocks[block].iter().map(count).fold(0, u64::saturating_add)
}

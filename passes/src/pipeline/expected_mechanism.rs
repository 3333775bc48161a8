//! The mechanism that `pipeline` will choose for a copy, as far as it is known before layouts and widths.

use crate::Options;
use crate::analysis::uses::path_to;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{Kernel, StmtData};

pub(crate) const NAME: &str = "pipeline";

/// Whether a copy from global memory to a buffer will be asynchronous, if `cp.async` can move elements of its size: it
/// is in a loop that is not unrolled, whose buffers have several slots.
pub(crate) fn asynchronous(k: &Kernel, options: &Options, s: Stmt) -> bool {
    let looped = |&(b, i): &(_, usize)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { unroll: false, .. });
    options.is_on(NAME)
        && options.target.has_asynchronous_copies()
        && k.schedule.stages.and_then(|e| k.as_int(e)) != Some(1)
        && path_to(k, s).iter().any(looped)
}

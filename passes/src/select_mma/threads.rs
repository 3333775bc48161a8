//! How many threads a kernel has: as it is written, or as its tiles are.

use super::in_roles;
use crate::Cx;
use crate::analysis::uses::all_stmts;
use crate::assign_layouts::Reduced;
use crate::roles::threads_of;
use tilec_ir::cluster;
use tilec_ir::codes;
use tilec_ir::ctas;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::kernel::{ExprData, Kernel, Slot, StmtData, StmtPlan, ValueDef};
use tilec_ir::target::{MAX_THREADS, WARP, WARPGROUP};
use tilec_ir::typing::resolve_view;

/// Layouts of roles are for the threads of each, and nothing here knows more than one number of threads: the role that holds
/// register tiles has as many as the schedule says.
pub(crate) fn no_roles(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let threads = k.schedule.threads.and_then(|e| k.as_int(e));
    let tensor_copies = cx.options.target.has_tensor_copies();
    for s in all_stmts(k, k.body) {
        let StmtPlan { producer, ordered, .. } = k.plans[s];
        if !tensor_copies && (producer || ordered) {
            let target = cx.options.target.name();
            let message = format!(
                "not compiled to PTX for {target}: producer warps, and warpgroups in turns, are for sm_90a alone"
            );
            let d = Diagnostic::error(codes::NOT_LOWERED, k.stmt_spans[s], message);
            return Err(cx.report(d.with_note(
                "leave `producer` and `ordered` out: below sm_90a the threads that compute fetch tiles, too, and loops are pipelined by the compiler",
            )));
        }
        if let StmtData::Copy { dst, ref attrs, .. } = k.stmts[s]
            && producer
            && resolve_view(k, dst).is_some_and(|to| to.slot == Some(Slot::Put))
            && !attrs.is_tensor()
            && attrs.threads.is_none()
        {
            let message = "nothing says how the producer's warps fill this slot".to_owned();
            let d = Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], message);
            return Err(cx.report(d.with_note(
                "write `tma` behind the copy, or `threads` and the layout of those that fill it; into a buffer (`let a = smem ..`) without \
                 `put` the compiler chooses",
            )));
        }
        if let StmtData::Role { .. } = k.stmts[s] {
            let holds = in_roles::holds_registers(k, s);
            let own = in_roles::threads_of(k, s);
            if tensor_copies && (!holds || own.is_some() && own == threads) {
                continue;
            }
            let why = match (tensor_copies, own, threads) {
                (false, ..) => "roles are compiled for sm_90a alone".to_owned(),
                (true, Some(own), Some(threads)) => format!(
                    "a role of {own} threads with register tiles, or copies through registers, beside a schedule of {threads} threads"
                ),
                (true, ..) => {
                    "a role with register tiles, or copies through registers, where the schedule says no `threads`"
                        .to_owned()
                }
            };
            return Err(cx.report(
                Diagnostic::error(
                    codes::NOT_LOWERED,
                    k.stmt_spans[s],
                    format!("not compiled to PTX for {} yet: {why}", cx.options.target.name()),
                )
                .with_note("write producer and consumer as one loop; the compiler overlaps them, in roles of its own on sm_90a")
                .with_note("the program is valid: `tilec run --device interp` runs it; `tilec explain E0501` lists what is compiled"),
            ));
        }
    }
    Ok(())
}

/// Without a scheduled thread count, that of the first layout in the text: it must be the same in all of them.
pub(crate) fn written_threads(k: &mut Kernel) {
    if k.schedule.threads.is_some() {
        return;
    }
    let of_tiles = k.values.values().find_map(|data| match &data.def {
        ValueDef::Var(t) if !t.shape.is_empty() => {
            let threads = t.reg_layout.as_ref()?.threads(&k.const_shape(&t.shape).expect("specialised"));
            Some((threads?, data.span))
        }
        _ => None,
    });
    let of_copies = || {
        all_stmts(k, k.body).into_iter().find_map(|s| match &k.stmts[s] {
            StmtData::Copy { attrs, .. } => Some((1 << attrs.threads.as_ref()?.thread_bits(), k.stmt_spans[s])),
            _ => None,
        })
    };
    let found = of_tiles.or_else(of_copies);
    if let Some((threads, span)) = found.and_then(|(n, span)| Some((i64::try_from(n).ok()?, span))) {
        let threads = threads / ctas::ctas(k);
        k.schedule.threads = Some(k.int(threads, span));
    }
}

/// Elements of what is reduced for each thread, of up to [`SHORT`] elements in all, and of more. Softmax on an H200, the share of a copy's rate: f32 and bf16 of 4096
/// elements 0.99 and 1.00 with 16 each, 0.74 and 0.48 with 4; of 8192 bf16 elements 0.99 with 32 each and 0.93 with 16; of 16384 0.98 and 0.94 with 32, 0.88 and 0.59 with 16.
const OF_ROW: [u64; 2] = [16, 32];
const SHORT: u64 = 4096;

/// Elements of what is reduced for each block where several can share a row, and the most blocks that do: those of a cluster.
const OF_BLOCK: u64 = 16384;
const MOST_BLOCKS: u64 = cluster::MAX_BLOCKS as u64;

/// Elements for each thread of blocks that share rows.
const OF_SHARED: u64 = 64;

/// Threads of a kernel that does no more than reduce rows, and the blocks that share them: fewer threads than usual of short ones, for warps would repeat what others
/// have, and more of long ones.
pub(crate) fn for_rows(k: &Kernel, cx: &mut Cx<'_>) -> Option<(i64, i64)> {
    let shares = |d: &ValueDef| d.space().is_of_block();
    let others = k.values.values().any(|d| shares(&d.def))
        || k.expressions().into_iter().map(|e| &k.exprs[e]).any(|e| matches!(e, ExprData::Mma(_)));
    let roles = k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    if !cx.enabled || others || roles {
        return None;
    }
    let reduced = Reduced::of(k);
    let (rows, elements) = (reduced.rows()?, reduced.elements()?);
    if rows > 2 && elements <= SHORT {
        return None;
    }
    let fewest = u64::from(WARP) * rows.clamp(1, 2);
    let each = OF_ROW[usize::from(elements > SHORT)];
    // Of rows that are scanned further warps would repeat what others have.
    let scanned = reduced.scanned_rows();
    let most = scanned.map_or(u64::MAX, |rows| (u64::from(WARP) * rows).next_power_of_two());
    let most = most.clamp(fewest, u64::from(MAX_THREADS));
    let ctas = match k.schedule.ctas {
        Some(_) => ctas::ctas(k).unsigned_abs(),
        None if cx.options.target.has_clusters() && scanned.is_none() => {
            (elements / OF_BLOCK).next_power_of_two().clamp(1, MOST_BLOCKS)
        }
        None => 1,
    };
    let each = if ctas > 1 { OF_SHARED } else { each };
    let threads = (elements / ctas / each).next_power_of_two().clamp(fewest, most);
    let all = ctas * threads;
    let mut message = format!("{threads} threads: {} elements of the rows that are reduced for each", elements / all);
    if ctas > 1 {
        message = format!("{ctas} blocks of a cluster share rows, of {message}");
    }
    cx.remark_note(k.name_span, message, "`threads` and `ctas` in the schedule say how many there are");
    Some((i64::try_from(threads).ok()?, i64::try_from(ctas).ok()?))
}

/// Whether a block may have so many threads. `warpgroups`: there are products of these.
pub(crate) fn is_count(threads: u64, warpgroups: bool) -> bool {
    let three = warpgroups && threads == u64::from(3 * WARPGROUP * WARP);
    (u64::from(WARP)..=u64::from(MAX_THREADS)).contains(&threads) && (threads.is_power_of_two() || three)
}

/// Threads of a kernel without products, where nothing is said.
pub(crate) const PLAIN: u32 = 128;

/// Kernels without products still need a thread count. `warpgroups`: there are products of these, of which three may share a tile.
pub(crate) fn default_threads(k: &mut Kernel, cx: &mut Cx<'_>, warpgroups: bool) -> Result<(), Reported> {
    let span = k.name_span;
    if k.schedule.threads.is_none() {
        let (threads, ctas) = for_rows(k, cx).unwrap_or((i64::from(PLAIN), 1));
        k.schedule.threads = Some(k.int(threads, span));
        if ctas > 1 {
            k.schedule.ctas = Some(k.int(ctas, span));
        }
    }
    let threads = threads_of(k);
    if !is_count(u64::from(threads), warpgroups) {
        return Err(cx.report(
            Diagnostic::error(
                codes::THREADS,
                k.schedule.threads.map_or(span, |e| k.expr_spans[e]),
                format!("{threads} threads per block"),
            )
            .with_note("the thread count is a power of two from 32 to 1024, or 384 where three warpgroups multiply"),
        ));
    }
    Ok(())
}

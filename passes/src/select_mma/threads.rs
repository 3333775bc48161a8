//! How many threads a kernel has: as it is written, or as its tiles are.

use super::in_roles;
use crate::Cx;
use crate::analysis::live;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::plain_var;
use crate::assign_layouts::Reduced;
use crate::roles::threads_of;
use tilec_ir::bits::Bits;
use tilec_ir::cluster;
use tilec_ir::codes;
use tilec_ir::ctas;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Expr;
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
            if tensor_copies && (!holds || own.is_some() && own == threads || in_roles::is_laid_out(k, s)) {
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

/// Elements of what is reduced for each thread, of up to [`SHORT`] elements of 4 bytes in all, half as many of 2 bytes, and of more. On an H200, the share of a copy's rate: softmax of 4096 f32 0.99
/// with 16 each, 0.74 with 4; of 8192 bf16 0.99 with 32 each, 0.93 with 16; layer norm of 4096 bf16 0.97 with 32 each, 0.79 with 16.
const OF_ROW: [u64; 2] = [16, 32];
const SHORT: u64 = 4096;

/// Elements that a block reduces, and that all of its tiles have where most live at once, above which several blocks share rows where a cluster can. Where elements have 2 bytes half as
/// many tiles: for memory's rate a multiprocessor needs several blocks, of which one loads while another reduces. On an H200: softmax of 16384 f32 0.97 in one block, of 32768 0.95 and 0.97 in two;
/// layer norm of 8192 f32 0.96, of 16384 0.86 and 0.95 in four; RMS norm of 16384 bf16 0.72 and 0.93 in two.
const ALONE: [u64; 2] = [16384, 40960];
/// Elements of a block that shares rows, where a thread holds up to three tiles of them, and more. Of one tile half as many blocks may have twice as many: softmax of 65536 bf16 0.78 in
/// four blocks, 0.68 in eight. Layer norm of 32768 f32 0.88 in eight blocks of 4096, 0.78 in four of 8192; cross entropy 0.61 and 0.77.
const OF_BLOCK: [u64; 2] = [8192, 4096];
/// Elements of all tiles for a thread of a block that has more, for want of blocks.
const OF_THREAD: u64 = 64;
/// Most blocks that share a row: those of a cluster.
const MOST_BLOCKS: u64 = cluster::MAX_BLOCKS as u64;

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
    if rows > 2 && elements <= SHORT && k.schedule.ctas.is_none() {
        return None;
    }
    let size = loaded(k, elements).map_or(u64::from(u32::BITS), |size| size.bytes_of(8).min(u64::from(u32::BITS)));
    // Of rows that are scanned further warps would repeat what others have.
    let scanned = reduced.scanned_rows();
    let fewest = u64::from(WARP) * rows.clamp(1, 2);
    let most = scanned.map_or(u64::MAX, |rows| (u64::from(WARP) * rows).next_power_of_two());
    let most = most.clamp(fewest, u64::from(MAX_THREADS));
    // Of the tiles that are as large; what is left of rows is small.
    let tiles = live::most_elements(k) / elements;
    let held = tiles * elements;
    let of_block = OF_BLOCK[usize::from(tiles > 3)];
    let ctas = match k.schedule.ctas {
        Some(_) => ctas::ctas(k).unsigned_abs(),
        None if cx.options.target.has_clusters()
            && scanned.is_none()
            && (elements > ALONE[0] || held > ALONE[1] * size / u64::from(u32::BITS)) =>
        {
            let few = (elements / of_block).min(if tiles > 1 { MOST_BLOCKS } else { MOST_BLOCKS / 2 });
            few.max(elements / ALONE[0]).next_power_of_two().clamp(1, MOST_BLOCKS)
        }
        None => 1,
    };
    let alone = elements / OF_ROW[usize::from(elements > SHORT * size / u64::from(u32::BITS))];
    let threads = match ctas {
        1 => alone.next_power_of_two(),
        // Wide elements of many tiles take a thread's registers.
        _ => {
            let each = OF_ROW[usize::from(tiles <= 3 || size < u64::from(u32::BITS))];
            match elements / ctas {
                own if own > of_block => (1 << (held / ctas / OF_THREAD).ilog2()).max(of_block / each),
                own => own / each,
            }
        }
    };
    let threads = threads.clamp(fewest, most);
    let all = ctas * threads;
    let mut message = format!("{threads} threads: {} elements of the rows that are reduced for each", elements / all);
    if ctas > 1 {
        message = format!("{ctas} blocks of a cluster share rows, of {message}");
    }
    cx.remark_note(k.name_span, message, "`threads` and `ctas` in the schedule say how many there are");
    Some((i64::try_from(threads).ok()?, i64::try_from(ctas).ok()?))
}

/// The smallest elements of which a kernel loads so many at once.
fn loaded(k: &Kernel, elements: u64) -> Option<Bits> {
    let tiles = k.statement_data().filter_map(|s| match *s {
        StmtData::Copy { src, dst, .. } if reads_tensor(k, src) => live::tile_of(k, plain_var(k, dst)?),
        _ => None,
    });
    tiles.filter(|tile| tile.shape.iter().product::<u64>() >= elements).map(|tile| tile.elem).min()
}

fn reads_tensor(k: &Kernel, src: Expr) -> bool {
    resolve_view(k, src).is_some_and(|from| k.tensor_ty(from.base).is_some())
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

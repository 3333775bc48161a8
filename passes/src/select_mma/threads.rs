//! The thread count of a kernel: written, or derived from its tiles.

use super::in_roles;
use super::row_loop::{LARGE, RowLoop};
use super::row_spread::{self, FEW_BLOCKS, Spread};
use super::rows_in_memory::{self, InMemory};
use super::vectors_ahead::Ahead;
use crate::Cx;
use crate::analysis::live_ranges;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{plain_var, reads_tensor};
use crate::assign_layouts::Reduced;
use crate::roles::threads_of;
use tilec_ir::bits::Bits;
use tilec_ir::codes;
use tilec_ir::combine::{How, component};
use tilec_ir::ctas;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::kernel::{ExprData, Kernel, Slot, StmtData, StmtPlan, ValueDef};
use tilec_ir::target::{MAX_THREADS, WARP, WARPGROUP};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::resolve_view;

/// Refuses roles without a thread count: layouts of a role are for its own threads, and this pass uses one thread
/// count, that of the schedule, for the role that holds register tiles.
pub(crate) fn no_roles(k: &Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let threads = k.schedule.threads.and_then(|e| k.as_int(e));
    let tensor_copies = cx.options.target.has_tensor_copies();
    for s in all_stmts(k, k.body) {
        let StmtPlan { producer, ordered, .. } = k.plans[s];
        if !tensor_copies && (producer || ordered) {
            let target = cx.options.target.name();
            let message = format!("{target} has no producer warps and no ping-pong of warpgroups; sm_90a has them");
            let d = Diagnostic::error(codes::TARGET_LACKS, k.stmt_spans[s], message);
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
                "write `tma` after the copy, or `threads` and the layout of those that fill it; into a buffer (`let a = smem ..`) without \
                 `put` the compiler chooses",
            )));
        }
        if let StmtData::Role { .. } = k.stmts[s] {
            let holds = in_roles::holds_registers(k, s);
            let own = in_roles::threads_of(k, s);
            if tensor_copies && (!holds || own.is_some() && own == threads || in_roles::has_written_layouts(k, s)) {
                continue;
            }
            let why = match (tensor_copies, own, threads) {
                (false, ..) => String::new(),
                (true, Some(own), Some(threads)) => format!(
                    "a role of {own} threads with register tiles, or copies through registers, with a schedule of {threads} threads"
                ),
                (true, ..) => {
                    "a role with register tiles, or copies through registers, where the schedule says no `threads`"
                        .to_owned()
                }
            };
            let one_loop =
                "or write producer and consumer as one loop: the compiler overlaps them, in roles of its own on sm_90a";
            let d = match tensor_copies {
                true => Diagnostic::error(codes::UNFIT, k.stmt_spans[s], why)
                    .with_note(
                        "`threads` of the schedule are those of each role that holds register tiles: write that number",
                    )
                    .with_note(one_loop),
                false => {
                    let message = format!("{} has no roles; sm_90a has them", cx.options.target.name());
                    let d = Diagnostic::error(codes::TARGET_LACKS, k.stmt_spans[s], message);
                    d.with_note("write producer and consumer as one loop: the compiler overlaps copies and products on every target")
                }
            };
            return Err(cx.report(d));
        }
    }
    Ok(())
}

/// Without a scheduled thread count, takes that of the first written layout: all layouts must have the same.
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

/// Elements of a reduced row for each thread: for rows of up to [`SHORT`] bytes, and for longer ones; counted in 4-byte
/// elements, twice as many of 2 bytes. On an H200, the share of a copy's rate: softmax of 4096 f32 0.99 with 16 each,
/// 0.74 with 4; of 8192 bf16 0.99 with 32 each, 0.93 with 16; layer norm of 4096 bf16 0.97 with 32 each, 0.79 with 16.
const OF_ROW: [u64; 2] = [16, 32];
const SHORT: u64 = 4096;
/// Most elements of a row in a single block, if there are no clusters.
const ALONE: u64 = 8192;
/// A longer row is distributed as [`Spread`] says if there are clusters.
const MODERATE: u64 = 4096;

/// Threads and blocks of a kernel that reduces rows.
pub(crate) struct Blocks {
    /// Threads of a block.
    threads: i64,
    /// Blocks of a cluster that share rows.
    ctas: i64,
    /// Blocks that share a multiprocessor, if the schedule should set it.
    resident_blocks: Option<i64>,
    /// A loop whose rows pass through shared memory.
    in_memory: Option<InMemory>,
    /// Vectors that are loaded in front of the reduction.
    ahead: Option<Ahead>,
}

/// Whether a kernel has neither products, roles nor memory of a block.
fn only_reduces(k: &Kernel) -> bool {
    let shares = |d: &ValueDef| d.space().is_of_block();
    let products = || k.expressions().into_iter().any(|e| matches!(k.exprs[e], ExprData::Mma(_)));
    let roles = || k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    !k.values.values().any(|d| shares(&d.def)) && !products() && !roles()
}

/// Blocks that share a multiprocessor, and vectors that are loaded in front of the reduction, for rows whose threads are
/// written in the schedule: as for threads that the compiler chooses.
fn of_written_threads(k: &Kernel, cx: &Cx<'_>) -> (Option<i64>, Option<Ahead>) {
    if !cx.enabled || !only_reduces(k) {
        return (None, None);
    }
    let reduced = Reduced::of(k);
    let Some(elements) = reduced.elements().filter(|_| reduced.rows().is_some()) else { return (None, None) };
    let (threads, ctas) = (u64::from(threads_of(k)), ctas::ctas(k).unsigned_abs());
    if threads == 0 || reduced.sorted_rows().is_some() || RowLoop::of(k, &reduced, elements).is_some() {
        return (None, None);
    }
    let each = elements / (ctas * threads);
    let ahead = Ahead::of(k, cx.options.target, elements);
    let ahead = ahead.filter(|ahead| row_spread::fits_schedule(k, cx.options.target, threads, each, ahead.bytes));
    let resident = match &ahead {
        Some(ahead) => row_spread::resident_with_vectors(cx.options.target, threads, each, ahead.bytes),
        None => {
            let tiles = live_ranges::most_elements(k) / elements;
            Spread::of(k, elements, tiles, &loaded(k, elements)).resident_blocks(threads, each)
        }
    };
    (resident, ahead)
}

/// Threads of a kernel that only reduces rows, and the blocks that share them: fewer threads than usual for short rows,
/// because warps would be replicas, and more for long ones.
pub(crate) fn for_rows(k: &Kernel, cx: &mut Cx<'_>) -> Option<Blocks> {
    if !cx.enabled || !only_reduces(k) {
        return None;
    }
    let reduced = Reduced::of(k);
    let (rows, elements) = (reduced.rows()?, reduced.elements()?);
    let turns = RowLoop::of(k, &reduced, elements);
    if rows > 2 && elements <= SHORT && k.schedule.ctas.is_none() && turns.is_none() {
        return None;
    }
    let sorted = reduced.sorted_rows();
    let fewest = u64::from(WARP) * rows.clamp(1, 2);
    let most = u64::from(MAX_THREADS);
    let loaded = loaded(k, elements);
    // Number of tiles of full size; reduced tiles are small.
    let tiles = live_ranges::most_elements(k) / elements;
    let spread = Spread::of(k, elements, tiles, &loaded);
    let longest = if rows == 1 { MODERATE } else { ALONE };
    let (mut resident, mut in_memory, mut row_loop) = (None, None, None);
    let mut ahead = match turns {
        None if sorted.is_none() => Ahead::of(k, cx.options.target, elements),
        _ => None,
    };
    let (ctas, threads) = match k.schedule.ctas {
        None if let Some(rows) = sorted => of_sorts(k, cx, rows, elements),
        None if let Some(turns) = turns => {
            let in_cluster = turns.in_cluster.filter(|_| cx.options.target.has_clusters());
            let room = cx.options.target.smem_per_block();
            let share = in_cluster.unwrap_or(turns.share);
            if in_cluster.is_none() && turns.crowded && cx.options.target.has_asynchronous_copies() {
                in_memory = InMemory::of_several(k, turns.at, elements, room);
            }
            if in_cluster.is_none() && in_memory.is_none() && elements > LARGE * share.each {
                in_memory = InMemory::of(k, turns.at, elements, room);
            }
            let threads = if in_memory.is_some() { rows_in_memory::THREADS } else { elements / share.each };
            let ctas = match in_cluster {
                Some(share) => share.blocks(threads),
                // Blocks of a cluster wait for each other in every iteration.
                None if cx.options.target.has_clusters() => threads.div_ceil(LARGE).max(1),
                None => 1,
            };
            row_loop = Some(share).filter(|_| in_memory.is_none());
            (ctas, threads / ctas)
        }
        Some(_) => {
            let ctas = ctas::ctas(k).unsigned_abs();
            (ctas, elements / ctas / spread.each)
        }
        None if cx.options.target.has_clusters() && elements > longest => {
            let with_vectors =
                ahead.as_ref().and_then(|ahead| row_spread::with_vectors(cx.options.target, elements, ahead.bytes));
            ahead = ahead.filter(|_| with_vectors.is_some());
            let (ctas, threads, blocks) = with_vectors.unwrap_or_else(|| spread.blocks(elements));
            resident = blocks;
            (ctas, threads)
        }
        None if elements > ALONE => (1, elements / spread.each),
        None => {
            let size =
                loaded.iter().min().map_or(u64::from(u32::BITS), |size| size.bytes_of(8).min(u64::from(u32::BITS)));
            (1, elements / OF_ROW[usize::from(elements > SHORT * size / u64::from(u32::BITS))])
        }
    };
    let (ctas, threads) = (ctas.next_power_of_two(), threads.next_power_of_two().clamp(fewest, most));
    resident = row_loop.map_or(resident, |share| share.resident_blocks(threads));
    let all = ctas * threads;
    let ahead =
        ahead.filter(|ahead| row_spread::fits_schedule(k, cx.options.target, threads, elements / all, ahead.bytes));
    let mut message = format!("{threads} threads: each has {} elements of the rows that are reduced", elements / all);
    if ctas > 1 {
        message = format!("{ctas} blocks of a cluster share rows, of {message}");
    }
    cx.remark_note(k.name_span, message, "`threads` and `ctas` in the schedule say how many there are");
    Some(Blocks {
        threads: i64::try_from(threads).ok()?,
        ctas: i64::try_from(ctas).ok()?,
        resident_blocks: resident,
        in_memory,
        ahead,
    })
}

/// Elements of sorted rows for each thread, and most threads of a block with that number. Comparisons between registers
/// of a thread are unrolled, those between lanes are loops: more registers mean longer code and fewer warps, fewer
/// registers more exchanges. On an H100, rows of 1024 f32 take 577 us with 8 elements each and 670 us with 16; rows of
/// 4096 take 914 us with 8, 810 us with 16 and 910 us with 32.
const OF_SORT: [(u64, u64); 2] = [(8, 128), (16, LARGE)];
/// Most registers of a thread for the tuples of such rows if a block has the maximum of threads: those of a comparison;
/// its results take as many.
const MOST_OF_SORT: u64 = 64;

/// Blocks that share sorted rows, and threads of each. A warp has a whole row if its lanes have room, because
/// comparisons within a warp need no shared memory.
fn of_sorts(k: &Kernel, cx: &Cx<'_>, rows: u64, elements: u64) -> (u64, u64) {
    let words = |e| match &k.exprs[e] {
        ExprData::Combine(combine) if matches!(combine.operation, How::Sort { .. }) => {
            let sizes = combine.first.iter().map(|&v| match component(k, v) {
                ElemRef::Known(elem) => elem.size().words(1),
                ElemRef::Param(_) => 2,
            });
            Some(sizes.sum::<u64>())
        }
        _ => None,
    };
    let words = k.expressions().into_iter().filter_map(words).max().unwrap_or(1).max(1);
    let most = 1u64 << (MOST_OF_SORT / words).max(1).ilog2();
    let with = |each: u64| (elements / each.min(most)).max(u64::from(WARP) * rows).next_power_of_two();
    let fits = |&&(each, threads): &&(u64, u64)| with(each) <= threads;
    let threads = with(OF_SORT.iter().find(fits).map_or(most, |&(each, _)| each));
    let ctas = if cx.options.target.has_clusters() && rows == 1 { threads.div_ceil(LARGE).min(FEW_BLOCKS) } else { 1 };
    (ctas, threads / ctas)
}

/// The element sizes of the tiles with `elements` elements that a kernel loads.
fn loaded(k: &Kernel, elements: u64) -> Vec<Bits> {
    let tiles = k.statement_data().filter_map(|s| match *s {
        StmtData::Copy { src, dst, .. } if reads_tensor(k, src) => live_ranges::tile_of(k, plain_var(k, dst)?),
        _ => None,
    });
    tiles.filter(|tile| tile.shape.iter().product::<u64>() >= elements).map(|tile| tile.elem).collect()
}

/// Whether a block may have this number of threads. `warpgroups`: there are wgmma products.
pub(crate) fn is_count(threads: u64, warpgroups: bool) -> bool {
    let three = warpgroups && threads == u64::from(3 * WARPGROUP * WARP);
    (u64::from(WARP)..=u64::from(MAX_THREADS)).contains(&threads) && (threads.is_power_of_two() || three)
}

/// Default thread count of a kernel without products.
pub(crate) const PLAIN: u32 = 128;

/// Sets the thread count of kernels without products. `warpgroups`: there are wgmma products, for which three
/// warpgroups may share a tile.
pub(crate) fn default_threads(k: &mut Kernel, cx: &mut Cx<'_>, warpgroups: bool) -> Result<(), Reported> {
    let span = k.name_span;
    if k.schedule.threads.is_none() {
        let plain = Blocks { threads: i64::from(PLAIN), ctas: 1, resident_blocks: None, in_memory: None, ahead: None };
        let Blocks { threads, ctas, resident_blocks, in_memory, ahead } = for_rows(k, cx).unwrap_or(plain);
        if let Some(in_memory) = in_memory {
            in_memory.write(k, cx);
        }
        if let Some(ahead) = ahead {
            ahead.write(k, cx);
        }
        k.schedule.threads = Some(k.int(threads, span));
        if let Some(blocks) = resident_blocks.filter(|_| k.schedule.min_ctas.is_none()) {
            k.schedule.min_ctas = Some(k.int(blocks, span));
        }
        if ctas > 1 {
            k.schedule.ctas = Some(k.int(ctas, span));
        }
    } else {
        let (resident_blocks, ahead) = of_written_threads(k, cx);
        if let Some(ahead) = ahead {
            ahead.write(k, cx);
        }
        if let Some(blocks) = resident_blocks.filter(|_| k.schedule.min_ctas.is_none()) {
            k.schedule.min_ctas = Some(k.int(blocks, span));
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
            .with_note("the thread count is a power of two from 32 to 1024, or 384 where three warpgroups multiply")
            .with_fix_of_item(
                k.schedule_item("threads"),
                format!("threads {}", threads.clamp(WARP, MAX_THREADS).next_power_of_two()),
            ),
        ));
    }
    Ok(())
}

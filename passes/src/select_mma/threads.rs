//! The thread count of a kernel: written, or derived from its tiles.

use super::in_roles;
use super::row_spread::{FEW_BLOCKS, Spread};
use super::rows_in_memory::{self, InMemory};
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
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Slot, StmtData, StmtPlan, ValueDef};
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_SM, WARP, WARPGROUP};
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
}

/// Whether a kernel has neither products, roles nor memory of a block.
fn only_reduces(k: &Kernel) -> bool {
    let shares = |d: &ValueDef| d.space().is_of_block();
    let products = || k.expressions().into_iter().any(|e| matches!(k.exprs[e], ExprData::Mma(_)));
    let roles = || k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    !k.values.values().any(|d| shares(&d.def)) && !products() && !roles()
}

/// Blocks that share a multiprocessor, for rows whose threads are written in the schedule: as for threads that the
/// compiler chooses.
fn resident_of_rows(k: &Kernel, cx: &Cx<'_>) -> Option<i64> {
    if !cx.enabled || !only_reduces(k) {
        return None;
    }
    let reduced = Reduced::of(k);
    let elements = reduced.elements().filter(|_| reduced.rows().is_some())?;
    if reduced.sorted_rows().is_some() || RowLoop::of(k, &reduced, elements).is_some() {
        return None;
    }
    let (threads, ctas) = (u64::from(threads_of(k)), ctas::ctas(k).unsigned_abs());
    let spread = Spread::of(k, elements, live_ranges::most_elements(k) / elements, &loaded(k, elements));
    (threads > 0).then(|| spread.resident_blocks(threads, elements / (ctas * threads)))?
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
            let (ctas, threads, blocks) = spread.blocks(elements);
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

/// Threads of a block in kernels that loop over rows, unless its rows need more registers than these threads have.
const LARGE: u64 = 512;
/// Most registers of a thread for its elements in a block that loops over rows: those of this iteration, of the next
/// one, and sums of all. On an H200, gradients of RMS norm of 4096 bf16 take 63 us with 8 and 16 elements for a thread
/// (28 and 56 registers). With 32, which spill, they take 90 us.
const ROW_LOOP_REGISTERS: u64 = 64;
/// The same limit if a row would otherwise need more threads than [`LARGE`].
const ROW_LOOP_REGISTERS_LONG: u64 = 80;

/// Threads of a block in which each thread can have the maximum of registers, and registers of a thread for its
/// elements there.
const FEW_THREADS: u64 = 256;
const ROW_LOOP_REGISTERS_FEW_THREADS: u64 = 200;

/// Most registers of a thread for its elements if an iteration has several rows, and fewest threads of a block then.
/// Sums and other values for all rows take fewer registers relative to the elements, and warps synchronise once for all
/// rows of an iteration. On an H100, with two rows, gradients of layer norm of 4096 bf16 reach 0.91 of a copy's rate
/// with 32 elements for a thread. With 16 they reach 0.89.
const SEVERAL_ROWS_REGISTERS: u64 = 104;
const FEWEST_OF_SEVERAL: u64 = 128;
/// The same limit if blocks of a cluster may share a row: a thread has 8 elements of 4 bytes, or 16 of 2 bytes, and
/// other blocks run while it waits for the cluster. With as many clusters as are resident at once, gradients of layer
/// norm and of RMS norm reach these shares of a copy's rate on an H200: rows of 16384 f32 0.89 and 0.90 in four blocks
/// of 512 threads, 0.76 and 0.87 in two; of 8192 f32 0.94 and 0.95 in two of 512, 0.93 in one of 256; of 8192 bf16 0.84
/// and 0.90 in two of 256, 0.82 and 0.88 in one of 512.
const IN_CLUSTER: u64 = 80;
/// Most rows of an iteration.
const MAX_ROWS_PER_ITERATION: u64 = 8;
/// Most blocks that share a multiprocessor.
const MAX_BLOCKS_PER_SM: u64 = 32;
/// Registers of a thread in addition to its elements.
const NON_TILE_REGISTERS: u64 = 40;

/// A loop over rows, with one or several rows in each iteration, that carries values.
struct RowLoop {
    at: Stmt,
    share: Share,
    /// Whether registers hardly hold two rows: then rows pass through shared memory if possible.
    crowded: bool,
    /// The share of a thread if blocks of a cluster may share a row and rows are loaded in the loop.
    in_cluster: Option<Share>,
}

/// A thread's share of the rows of an iteration.
#[derive(Clone, Copy)]
struct Share {
    /// Elements.
    each: u64,
    /// Registers, without addresses and the like, if rows are loaded in the loop.
    registers: Option<u64>,
}

impl RowLoop {
    /// The first such loop of a kernel, whose largest reduced tile has `elements` elements; `None`: there is none.
    fn of(k: &Kernel, reduced: &Reduced, elements: u64) -> Option<RowLoop> {
        let row = reduced.longest_of(elements).filter(|&row| row > 0 && elements <= MAX_ROWS_PER_ITERATION * row)?;
        let whole = |v| live_ranges::tile_of(k, v).filter(|tile| tile.shape.iter().product::<u64>() >= row);
        for at in all_stmts(k, k.body) {
            let StmtData::For { body, .. } = k.stmts[at] else { continue };
            let inside = all_stmts(k, body);
            let changed = |v| inside.iter().any(|&s| matches!(k.stmts[s], StmtData::Assign { dst, .. } if dst == v));
            let declared = |v| inside.iter().any(|&s| matches!(k.stmts[s], StmtData::Var { value, .. } if value == v));
            let vars = || k.values.keys().filter(|&v| matches!(k.values[v].def, ValueDef::Var(_)));
            let carries = vars().any(|v| whole(v).is_some() && changed(v) && !declared(v));
            if !carries || !inside.iter().any(|&s| matches!(k.stmts[s], StmtData::Let { .. })) {
                continue;
            }
            let bytes_of = |v| whole(v).map_or(0, |tile| tile.elem.bytes_of(tile.shape.iter().product()));
            let bytes: u64 = vars().map(|v| if declared(v) { 2 * bytes_of(v) } else { bytes_of(v) }).sum();
            let registers = |each: u64| (bytes * each).div_ceil(4 * elements);
            let fitting = |most: u64| (0..6).map(|bits| 1 << bits).rfind(|&each| registers(each) <= most).unwrap_or(1);
            // Blocks that share a multiprocessor load while others reduce, if the loop has loads.
            let loads = inside.iter().any(|&s| match k.stmts[s] {
                StmtData::Copy { src, dst, .. } => {
                    reads_tensor(k, src) && plain_var(k, dst).is_some_and(|v| declared(v) && whole(v).is_some())
                }
                _ => false,
            });
            if elements > row && !loads {
                continue;
            }
            let each = fitting(ROW_LOOP_REGISTERS).clamp(4, 32);
            // Narrow elements are converted, and at least one product of each thread's elements is held.
            let narrow = |v: &Value| declared(*v) && whole(*v).is_some_and(|tile| tile.elem.bytes_of(1) < 4);
            let computed = (vars().filter(narrow).count() as u64).max(1);
            let share =
                |each: u64, computed: u64| Share { each, registers: loads.then(|| registers(each) + computed * each) };
            // Rows that a cluster shares are converted one after another.
            let in_cluster = Some(share(fitting(IN_CLUSTER).clamp(4, 32), 1)).filter(|_| loads && elements == row);
            let found =
                |each: u64, crowded: bool| Some(RowLoop { at, share: share(each, computed), crowded, in_cluster });
            if elements > row {
                return found(fitting(SEVERAL_ROWS_REGISTERS).min((elements / FEWEST_OF_SEVERAL).max(4)), false);
            }
            // Half the threads, or fewer threads with the maximum of registers.
            let fewer = elements.div_ceil(FEW_THREADS);
            return match elements > LARGE * each {
                true if registers(2 * each) <= ROW_LOOP_REGISTERS_LONG => found(2 * each, loads),
                true if registers(fewer) <= ROW_LOOP_REGISTERS_FEW_THREADS => found(fewer, false),
                crowded => found(each, crowded && loads),
            };
        }
        None
    }
}

impl Share {
    /// Blocks of a cluster for `threads` threads in total. Of two clusters of two blocks on a multiprocessor, one loads
    /// while the other waits; a single block of as many threads cannot do this.
    fn blocks(&self, threads: u64) -> u64 {
        let halves = threads > FEW_THREADS
            && threads <= LARGE
            && self.resident_blocks(FEW_THREADS).is_some_and(|blocks| blocks > 1);
        if halves { 2 } else { threads.div_ceil(LARGE).max(1) }
    }

    /// Blocks of `threads` threads that share a multiprocessor.
    fn resident_blocks(&self, threads: u64) -> Option<i64> {
        let registers = (self.registers? + NON_TILE_REGISTERS).next_multiple_of(8);
        let blocks = u64::from(REGISTERS_PER_SM) / (threads * registers);
        i64::try_from(blocks.min(MAX_BLOCKS_PER_SM)).ok().filter(|&blocks| blocks > 0)
    }
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
        let plain = Blocks { threads: i64::from(PLAIN), ctas: 1, resident_blocks: None, in_memory: None };
        let Blocks { threads, ctas, resident_blocks, in_memory } = for_rows(k, cx).unwrap_or(plain);
        if let Some(in_memory) = in_memory {
            in_memory.write(k, cx);
        }
        k.schedule.threads = Some(k.int(threads, span));
        if let Some(blocks) = resident_blocks.filter(|_| k.schedule.min_ctas.is_none()) {
            k.schedule.min_ctas = Some(k.int(blocks, span));
        }
        if ctas > 1 {
            k.schedule.ctas = Some(k.int(ctas, span));
        }
    } else if let Some(blocks) = resident_of_rows(k, cx).filter(|_| k.schedule.min_ctas.is_none()) {
        k.schedule.min_ctas = Some(k.int(blocks, span));
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

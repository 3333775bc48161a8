//! Kernels that loop over rows and carry values: how much of a row a thread holds.

use crate::analysis::live_ranges;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{plain_var, reads_tensor};
use crate::assign_layouts::Reduced;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::target::REGISTERS_PER_SM;

/// Threads of a block in kernels that loop over rows, unless its rows need more registers than these threads have.
pub(super) const LARGE: u64 = 512;
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
pub(super) struct RowLoop {
    pub(super) at: Stmt,
    pub(super) share: Share,
    /// Whether registers hardly hold two rows: then rows pass through shared memory if possible.
    pub(super) crowded: bool,
    /// The share of a thread if blocks of a cluster may share a row and rows are loaded in the loop.
    pub(super) in_cluster: Option<Share>,
}

/// A thread's share of the rows of an iteration.
#[derive(Clone, Copy)]
pub(super) struct Share {
    /// Elements.
    pub(super) each: u64,
    /// Registers, without addresses and the like, if rows are loaded in the loop.
    registers: Option<u64>,
}

impl RowLoop {
    /// The first such loop of a kernel, whose largest reduced tile has `elements` elements; `None`: there is none.
    pub(super) fn of(k: &Kernel, reduced: &Reduced, elements: u64) -> Option<RowLoop> {
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
    pub(super) fn blocks(&self, threads: u64) -> u64 {
        let halves = threads > FEW_THREADS
            && threads <= LARGE
            && self.resident_blocks(FEW_THREADS).is_some_and(|blocks| blocks > 1);
        if halves { 2 } else { threads.div_ceil(LARGE).max(1) }
    }

    /// Blocks of `threads` threads that share a multiprocessor.
    pub(super) fn resident_blocks(&self, threads: u64) -> Option<i64> {
        let registers = (self.registers? + NON_TILE_REGISTERS).next_multiple_of(8);
        let blocks = u64::from(REGISTERS_PER_SM) / (threads * registers);
        i64::try_from(blocks.min(MAX_BLOCKS_PER_SM)).ok().filter(|&blocks| blocks > 0)
    }
}

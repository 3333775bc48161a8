//! Number of blocks that should be resident on a multiprocessor.
//!
//! `.minnctapersm` limits the registers per thread to `65536 / (threads · blocks)`, rounded down to 8. More resident
//! blocks hide more latency, but a limit below what the tiles need makes the assembler spill. Shared memory, warps and
//! blocks per multiprocessor limit the number too. The choice is the largest number of blocks that leaves room for the
//! register tiles and [`COMFORT`] registers of addresses, counters and predicates. One block more is chosen if the
//! limit still leaves [`LEAST`] registers for each operand whose shared-memory addresses the swizzle mixes (measured:
//! ptxas recomputes the rest without spilling). Narrow accesses each need a pointer or predicate, so with them only the
//! comfortable number is chosen.

use crate::Cx;
use crate::analysis::access_width::known_elem;
use crate::analysis::contiguous_dim::smem_window_dim;
use crate::analysis::functions::function_registers;
use crate::analysis::live_ranges::{self, Tile};
use crate::analysis::uses::all_stmts;
use crate::analysis::views::plain_var;
use crate::assign_layouts::Threads;
use crate::occupancy::Occupancy;
use crate::registers::overhead::{COMFORT, LEAST};
use crate::registers::thread;
use crate::roles::threads_of;
use cranelift_entity::EntitySet;
use tilec_ir::bits::Bits;
use tilec_ir::cluster::memory_bytes;
use tilec_ir::cluster::room;
use tilec_ir::combine::{How, component};
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{layout_of, layout_of_tuples, resolve_view, type_of};

/// Below this number of tile registers, a tight fit is not worth the risk: several blocks fit anyway.
const LARGE: u64 = 128;

/// The inputs of the occupancy decision.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Block {
    /// Threads.
    pub(crate) threads: u64,
    /// Registers of a thread that hold tiles.
    pub(crate) tiles: u64,
    /// Bytes of shared memory.
    pub(crate) shared: u64,
    /// Whether every access to global memory in a loop has the full hardware width.
    pub(crate) wide: bool,
    /// Operands of products whose shared-memory addresses the swizzle mixes.
    pub(crate) mixed: u64,
    /// Whether the kernel is the loop of a single product: for others, a tight fit was not measured.
    pub(crate) lone: bool,
    /// Registers in addition to tiles and addresses.
    pub(crate) other: u64,
}

impl Block {
    /// Most registers of a thread for this number of resident blocks.
    pub(crate) fn cap(&self, blocks: u64) -> u64 {
        thread::cap(self.threads, blocks)
    }

    /// The number of blocks that should be resident; at least 1.
    pub(crate) fn resident(&self, target: Target) -> u64 {
        let limit = self.limit(target);
        let comfort = if self.wide { COMFORT } else { 2 * COMFORT };
        let blocks = self.with_registers(self.tiles + self.other + comfort, target);
        let tight = self.tiles + self.other + LEAST * self.mixed.max(1);
        let one_more = self.lone && self.tiles >= LARGE && self.wide && blocks < limit && self.cap(blocks + 1) >= tight;
        blocks + u64::from(one_more)
    }

    /// The number of blocks that fit if a thread has this number of registers; at least 1.
    pub(crate) fn with_registers(&self, registers: u64, target: Target) -> u64 {
        Occupancy::new(target, self.threads, registers, self.shared).resident()
    }

    /// The number of blocks that shared memory, warps and block slots allow; at least 1.
    fn limit(&self, target: Target) -> u64 {
        Occupancy::new(target, self.threads, 1, self.shared).blocks_without_register_limit()
    }
}

/// Sets `min_ctas` if it is not written and should be more than one.
pub(super) fn choose(k: &mut Kernel, cx: &mut Cx<'_>) {
    if k.schedule.min_ctas.is_some() {
        return;
    }
    let block = Block {
        threads: u64::from(threads_of(k)),
        tiles: tile_registers(k, Threads::of(k).count()),
        shared: crate::place_shared::bytes(k, cx.options, room(k, cx.options.target), &[]) + memory_bytes(k),
        wide: wide_loads(k),
        mixed: mixed_operands(k),
        lone: single_accumulator(k),
        other: function_registers(k) + sorted(k) + unpacked_registers(k, Threads::of(k).count()),
    };
    let blocks = block.resident(cx.options.target);
    if blocks < 2 {
        return;
    }
    let span = k.name_span;
    let count = k.int(blocks as i64, span);
    k.schedule.min_ctas = Some(count);
    cx.remark(
        span,
        format!(
            "{blocks} blocks per multiprocessor: at most {} registers per thread, {} for tiles",
            block.cap(blocks),
            block.tiles
        ),
    );
}

/// 32-bit registers of the tiles of a thread. A tile that only takes over another tile's elements replaces it.
fn tile_registers(k: &Kernel, threads: u64) -> u64 {
    let taken = |s: &StmtData| match s {
        StmtData::Copy { src, dst, .. } => plain_var(k, *dst).filter(|_| plain_var(k, *src).is_some()),
        _ => None,
    };
    let mut taken_over: EntitySet<Value> = EntitySet::new();
    k.statement_data().filter_map(taken).for_each(|v| {
        taken_over.insert(v);
    });
    let mut sum = 0;
    for s in all_stmts(k, k.body) {
        let StmtData::Var { value: v, .. } = k.stmts[s] else { continue };
        let ValueDef::Var(t) = &k.values[v].def else { unreachable!("a `var` is declared") };
        let bits = match &t.reg_layout {
            Some(l) => 1u64 << l.value_bits().min(32),
            None => k.const_shape(&t.shape).map_or(0, |s| s.iter().product::<u64>() / threads),
        };
        if !taken_over.contains(v) {
            sum += known_elem(k, v).words(bits);
        }
    }
    // A `let` with elements takes registers next to accumulators, unless it is deferred.
    let deferred = Deferred::of(k);
    let products = k.expressions().into_iter().map(|e| &k.exprs[e]).any(|e| matches!(e, ExprData::Mma(_)));
    for s in all_stmts(k, k.body).into_iter().filter(|_| products) {
        let StmtData::Let { value, init } = k.stmts[s] else { continue };
        let (Some(layout), None) = (layout_of(k, init), deferred.init(value)) else { continue };
        sum += size_of(k, init).words(1 << layout.value_bits().min(32));
    }
    // Copies between two memories pass through registers of their own.
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, attrs, .. } = &k.stmts[s] else { continue };
        let (Some(layout), Some(view)) = (&attrs.threads, resolve_view(k, *src)) else { continue };
        if attrs.is_prefetch() {
            continue;
        }
        sum += known_elem(k, view.base).words(1 << layout.value_bits().min(32));
    }
    sum
}

/// Registers of narrow elements that are loaded one by one to a tile: each takes a register until two are packed. With
/// products, this happens a slice at a time.
fn unpacked_registers(k: &Kernel, threads: u64) -> u64 {
    if k.expressions().into_iter().any(|e| matches!(k.exprs[e], ExprData::Mma(_))) {
        return 0;
    }
    let more = |s: &StmtData| {
        let StmtData::Copy { src, dst, attrs } = s else { return None };
        let tile = plain_var(k, *dst)?;
        let from = resolve_view(k, *src).filter(|v| k.tensor_ty(v.base).is_some())?;
        let (elem, shape) = (known_elem(k, from.base), k.const_shape(&k.tile_ty(tile)?.shape)?);
        let own = Tile { shape, elem: Elem::U32.size() };
        let each = live_ranges::registers(k, tile, &own, threads);
        (attrs.vec.unwrap_or(1) < elem.per(4)).then(|| each - elem.bytes_of(each) / 4)
    };
    k.statement_data().filter_map(more).max().unwrap_or(0)
}

/// Registers of the tuples of sorted rows, and half as many for tuples of other lanes: 115 in total for 64 of tuples.
fn sorted(k: &Kernel) -> u64 {
    let of = |e: Expr| match &k.exprs[e] {
        ExprData::Combine(combine) if matches!(combine.operation, How::Sort { .. }) => {
            let each = 1u64 << layout_of_tuples(k, combine)?.value_bits().min(32);
            let words = combine.first.iter().map(|&v| match component(k, v) {
                ElemRef::Known(elem) => elem.size().words(each),
                ElemRef::Param(_) => 2 * each,
            });
            Some(words.sum::<u64>() * 3 / 2)
        }
        _ => None,
    };
    k.expressions().into_iter().filter_map(of).max().unwrap_or(0)
}

/// Size of an element of an expression.
fn size_of(k: &Kernel, e: Expr) -> Bits {
    match type_of(k, e).ok().and_then(|t| t.elem()) {
        Some(ElemRef::Known(elem)) => elem.size(),
        _ => Elem::U32.size(),
    }
}

/// Whether all products of a kernel add to one accumulator, in loops that no branch skips.
fn single_accumulator(k: &Kernel) -> bool {
    let accumulator = |&s: &Stmt| match k.stmts[s] {
        StmtData::Assign { dst, src } if matches!(k.exprs[src], ExprData::Mma(_)) => Some(dst),
        _ => None,
    };
    let within = |s: Stmt| k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
    let multiplies = |s: Stmt| {
        matches!(k.stmts[s], StmtData::For { unroll: false, .. }) && within(s).any(|s| accumulator(&s).is_some())
    };
    let stmts = all_stmts(k, k.body);
    let branched = stmts.iter().any(|&s| matches!(k.stmts[s], StmtData::If { .. }) && within(s).any(multiplies));
    let mut accumulators: Vec<Value> = stmts.iter().filter_map(accumulator).collect();
    accumulators.sort_unstable();
    accumulators.dedup();
    accumulators.len() == 1 && !branched
}

/// Whether every access to global memory in a loop has the full hardware width, and at most one copy loads unaligned
/// words.
fn wide_loads(k: &Kernel) -> bool {
    let mut shifted: Vec<Value> = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, attrs, .. } = &k.stmts[s] else { continue };
        let tensor = resolve_view(k, *src).map(|v| v.base).filter(|_| attrs.unaligned().is_some());
        shifted.extend(tensor.filter(|t| !shifted.contains(t)));
    }
    shifted.len() < 2
        && all_stmts(k, k.body).into_iter().all(|s| {
            let StmtData::Copy { src, attrs, .. } = &k.stmts[s] else { return true };
            if attrs.is_prefetch() {
                return true;
            }
            let Some(view) = resolve_view(k, *src).filter(|v| k.tensor_ty(v.base).is_some()) else { return true };
            attrs.vec.unwrap_or(1) >= known_elem(k, view.base).per(crate::analysis::access_width::MAX_ACCESS_BYTES)
        })
}

/// Number of operands that are contiguous along the reduction in shared memory: each slice has its own address.
fn mixed_operands(k: &Kernel) -> u64 {
    let mut found: Vec<Value> = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { src, .. } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        for (operand, k_dim) in [(mma.a, 1), (mma.b, 0)] {
            let Some(fragment) = plain_var(k, operand) else { continue };
            for c in all_stmts(k, k.body) {
                let StmtData::Copy { src, dst, .. } = k.stmts[c] else { continue };
                if plain_var(k, dst) != Some(fragment) {
                    continue;
                }
                let Some(view) = resolve_view(k, src) else { continue };
                let dim = smem_window_dim(k, &view);
                if dim == Some(k_dim) && !found.contains(&view.base) {
                    found.push(view.base);
                }
            }
        }
    }
    found.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_blocks_are_those_whose_cap_suffices() {
        for threads in [32, 64, 128, 256, 512, 1024] {
            let block = Block { threads, tiles: 0, shared: 1, wide: true, mixed: 0, lone: true, other: 0 };
            for registers in 1..=300 {
                let limit = block.limit(Target::Sm80);
                let searched = (1..=limit).rev().find(|&b| block.cap(b) >= registers).unwrap_or(1);
                assert_eq!(block.with_registers(registers, Target::Sm80), searched, "{threads} {registers}");
            }
        }
    }
}

//! Costs of layouts: memory accesses, and exchanges between layouts.
//!
//! The unit is an issue slot of a warp, summed over the warps of a block. An operation on an element costs one, a
//! memory access two (address and access). A wavefront of shared memory costs one, and so does a sector (32 bytes) of
//! global memory. A sector that other accesses touch too costs a quarter after the first time, because it comes from a
//! cache. A sector of 16-byte stores costs four each time, because caches pass stores on. On an H200, 8192x4096 bf16
//! are stored as f32 in 79 us if a warp writes half of each sector at a time. With whole sectors it takes 53 us. They
//! are added to rows of f32 in 137 and 102 us. Only proportions matter. An exchange through shared memory costs three
//! passes over its words and two barriers. An exchange by shuffles costs two for each word.

use super::graph::Access;
use super::{log2_shape, overlaps};
use crate::analysis::access_width::MAX_ACCESS_BYTES;
use crate::analysis::distribution::owned_run;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::bits::Bits;
use tilec_ir::layout::{Reach, RegLayout};
use tilec_ir::target::{REGISTERS_PER_THREAD, SECTOR_BYTES, WARP};

/// Bytes of a cache line.
const LINE: u32 = 128;
/// Bytes of all banks.
const BANKS: u64 = 128;
/// Issue slots of an access, without wavefronts or sectors.
const ACCESS: u64 = 2;
/// Cost of two barriers: issue slots that a warp loses while it waits.
const BARRIERS: u64 = 40;
/// Cost of storing part of a byte, which is refused: more than that of any other layout.
const PART_OF_A_BYTE: u64 = 1 << 40;
/// Cost of a tile of which a thread would have more elements than registers, which is refused.
const NO_REGISTERS: u64 = 1 << 40;
/// Most registers of another lane to select from, for which an exchange by shuffles is cheaper than one through shared
/// memory.
const MOST_CHOICES: u64 = 4;

/// Issue slots of an operation on all elements that the warps of a block hold, including replicas.
pub(super) fn elements(layout: &RegLayout) -> u64 {
    1 << (layout.value_bits() + layout.thread_bits().saturating_sub(WARP.ilog2()))
}

/// The cost of holding more elements than a thread has registers; 0 if they fit.
pub(super) fn registers(elem: Bits, layout: &RegLayout) -> u64 {
    let words = elem.words(1 << layout.value_bits());
    if words > u64::from(REGISTERS_PER_THREAD) { NO_REGISTERS } else { 0 }
}

/// The cost of accessing all elements of a tile in a layout.
pub(super) fn access(access: &Access, layout: &RegLayout, shape: &[u64]) -> u64 {
    let bits = log2_shape(shape);
    let run = access.dim.map_or(1, |dim| (1 << owned_run(layout, &bits, dim)).min(access.width)).max(1);
    let own = layout.value().cols().iter().filter(|&&c| c != 0).count() as u32;
    let all = (1u64 << own) / u64::from(run).min(1 << own);
    let accesses = if access.beside.is_empty() { all } else { overlaps::accesses(&access.beside, layout, shape, run) };
    let lanes = WARP.ilog2().min(layout.thread_bits());
    // One of several threads with the same element stores it.
    let warps = layout.thread().cols().iter().skip(lanes as usize).filter(|&&c| access.load || c != 0).count();
    if run < access.least() {
        return PART_OF_A_BYTE;
    }
    // In quarters of an issue slot.
    let passes = match access.global {
        true => sectors(access, layout, &bits, run),
        false => 4 * access.elem.bytes_of(u64::from(run * WARP)).div_ceil(BANKS),
    };
    ((access.weight * accesses * (4 * ACCESS + passes)) << warps) / 4
}

/// The cost of the sectors that the first access of a warp touches, in quarters. Rows are taken to be far apart. The
/// minimum number of sectors counts four each, further ones count one.
fn sectors(access: &Access, layout: &RegLayout, bits: &[u32], run: u32) -> u64 {
    let (base, extent) = match access.dim {
        Some(dim) => (bits[..dim].iter().sum::<u32>(), bits[dim]),
        None => (0, 0),
    };
    let mask = (1u64 << extent) - 1;
    let (mut touched, mut elements) = (BTreeSet::new(), BTreeSet::new());
    let sector = u64::from(access.elem.per(SECTOR_BYTES));
    for lane in 0..u64::from(WARP) {
        let index = layout.at(lane, 0);
        let row = index & !(mask << base);
        let first = (index >> base & mask) / sector;
        let last = ((index >> base & mask) + u64::from(run) - 1) / sector;
        touched.extend((first..=last).map(|at| (row, at)));
        elements.insert(index);
    }
    let enough = access.elem.bytes_of(elements.len() as u64 * u64::from(run)).div_ceil(SECTOR_BYTES.into());
    let touched = touched.len() as u64;
    // Overlapping windows were loaded before.
    if !access.beside.is_empty() {
        return touched;
    }
    let again = if access.whole_sectors { 3 * touched.saturating_sub(enough) } else { 0 };
    touched + 3 * enough + again
}

/// Whether a warp's access in a layout covers whole lines of global memory, so that wider accesses do not touch fewer
/// lines.
pub(super) fn covers_lines(layout: &RegLayout, shape: &[u64], dim: usize, run: u64, elem: Bits) -> bool {
    let bits = log2_shape(shape);
    let base: u32 = bits[..dim].iter().sum();
    let mask = (1u64 << bits[dim]) - 1;
    let line = u64::from(elem.per(LINE));
    let mut lines: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut elements = BTreeSet::new();
    for lane in 0..u64::from(WARP) {
        let index = layout.at(lane, 0);
        let at = (index & !(mask << base), (index >> base & mask) / line);
        if elements.insert(index) {
            *lines.entry(at).or_default() += run;
        }
    }
    lines.values().all(|&covered| covered == line)
}

/// Whether an exchange goes through shared memory: elements cross warps, or lanes would select from too many registers.
pub(super) fn through_memory(from: &RegLayout, to: &RegLayout) -> bool {
    from.swaps(to).is_none() && from.gather(to).is_none_or(|g| g.choices() > MOST_CHOICES)
}

/// The cost of an exchange through shared memory.
pub(super) fn by_memory(to: &RegLayout, elem: Bits) -> u64 {
    let words = elem.words(1 << to.value_bits());
    (3 * words + BARRIERS) << to.thread_bits().saturating_sub(WARP.ilog2())
}

/// The cost of an exchange of elements of size `elem`.
pub(super) fn exchange(from: &RegLayout, to: &RegLayout, elem: Bits) -> u64 {
    let words = elem.words(1 << to.value_bits());
    let warps = to.thread_bits().saturating_sub(WARP.ilog2());
    let gather = from.gather(to).filter(|_| !through_memory(from, to));
    let Some(gather) = gather else { return by_memory(to, elem) };
    let each = match (from.reach(to), from.swaps(to)) {
        (Reach::Thread, _) => gather.choices() - 1,
        // A shuffle and three selections for each pair of registers.
        (_, Some(swaps)) => 2 * swaps.len() as u64,
        (..) => 2 * gather.choices(),
    };
    (words * each) << warps
}

/// The cost of combining the parts that warps hold of shared rows, where `whole` is the layout of the combined tile:
/// each warp stores its parts, and every warp reads all of them.
pub(super) fn across_warps(whole: &RegLayout, parts: u32, elem: Bits) -> u64 {
    let (rows, parts) = (1u64 << whole.value_bits(), 1u64 << parts.count_ones());
    let loads = elem.bytes_of(parts * rows).div_ceil(MAX_ACCESS_BYTES.into()) * ACCESS;
    let warps = whole.thread_bits().saturating_sub(WARP.ilog2());
    (rows * ACCESS + loads + parts * rows + BARRIERS) << warps
}

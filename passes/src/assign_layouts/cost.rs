//! What layouts cost: accesses to memory, and exchanges between layouts.
//!
//! Units are issue slots of a warp, summed over the warps of a block. An operation on an element costs one, an access to memory two (address and access). A wavefront
//! of shared memory costs one, and so does a sector (32 bytes) of global memory. A sector that other accesses touch too costs a quarter after the first time, since it comes
//! from a cache. Layouts are compared by these numbers, so only their proportions matter: an exchange through shared memory is three passes over its words and two barriers, an exchange by shuffles two for each word.

use super::graph::Access;
use super::log2_shape;
use crate::analysis::distribution::owned_run;
use crate::analysis::width::MAX_ACCESS_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::bits::Bits;
use tilec_ir::layout::{Reach, RegLayout};
use tilec_ir::target::{SECTOR_BYTES, WARP};

/// Bytes of a line of the cache.
const LINE: u32 = 128;
/// Bytes of all banks.
const BANKS: u64 = 128;
/// Issue slots of an access by itself.
const ACCESS: u64 = 2;
/// Two barriers, in issue slots of a warp: what it does not issue while it waits.
const BARRIERS: u64 = 40;
/// More than any layout costs in which threads store whole bytes: what stores a part of one is refused.
const PART_OF_A_BYTE: u64 = 1 << 40;
/// Registers that are read of other lanes for one, up to which an exchange by shuffles is cheaper than one through shared memory.
const MOST_CHOICES: u64 = 4;

/// Elements that the warps of a block hold, by lane: issue slots of an operation on all of them.
pub(super) fn elements(layout: &RegLayout) -> u64 {
    1 << (layout.value_bits() + layout.thread_bits().saturating_sub(WARP.ilog2()))
}

/// Of an access of all elements of a tile in a layout.
pub(super) fn access(access: &Access, layout: &RegLayout, shape: &[u64]) -> u64 {
    let bits = log2_shape(shape);
    let run = access.dim.map_or(1, |dim| (1 << owned_run(layout, &bits, dim)).min(access.width)).max(1);
    let own = layout.value().cols().iter().filter(|&&c| c != 0).count() as u32;
    let accesses = (1u64 << own) / u64::from(run).min(1 << own);
    let lanes = WARP.ilog2().min(layout.thread_bits());
    // Of threads that hold the same element one stores it.
    let warps = layout.thread().cols().iter().skip(lanes as usize).filter(|&&c| access.load || c != 0).count();
    if run < access.least() {
        return PART_OF_A_BYTE;
    }
    // In quarters.
    let passes = match access.global {
        true => sectors(access, layout, &bits, run),
        false => 4 * access.elem.bytes_of(u64::from(run * WARP)).div_ceil(BANKS),
    };
    ((access.weight * accesses * (4 * ACCESS + passes)) << warps) / 4
}

/// Sectors that the first access of a warp touches, rows apart from one another, in quarters: those that would do count four, others one.
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
    touched.len() as u64 + 3 * enough
}

/// Whether an access of a warp in a layout covers lines of global memory as a whole, so that wider accesses of threads touch no less of it.
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

/// Whether an exchange goes through shared memory: elements cross warps, or lanes want so many registers that it is cheaper.
pub(super) fn through_memory(from: &RegLayout, to: &RegLayout) -> bool {
    from.swaps(to).is_none() && from.gather(to).is_none_or(|g| g.choices() > MOST_CHOICES)
}

/// Of an exchange through shared memory.
pub(super) fn by_memory(to: &RegLayout, elem: Bits) -> u64 {
    let words = elem.words(1 << to.value_bits());
    (3 * words + BARRIERS) << to.thread_bits().saturating_sub(WARP.ilog2())
}

/// Of an exchange of elements of this size.
pub(super) fn exchange(from: &RegLayout, to: &RegLayout, elem: Bits) -> u64 {
    let words = elem.words(1 << to.value_bits());
    let warps = to.thread_bits().saturating_sub(WARP.ilog2());
    let gather = from.gather(to).filter(|_| !through_memory(from, to));
    let Some(gather) = gather else { return by_memory(to, elem) };
    let each = match (from.reach(to), from.swaps(to)) {
        (Reach::Thread, _) => gather.choices() - 1,
        // A shuffle and three selections for two registers.
        (_, Some(swaps)) => 2 * swaps.len() as u64,
        (..) => 2 * gather.choices(),
    };
    (words * each) << warps
}

/// Of putting together what warps have of rows that they share, from which threads hold the whole in this layout: the parts of each warp are stored, and all are
/// read by every warp.
pub(super) fn across_warps(whole: &RegLayout, parts: u32, elem: Bits) -> u64 {
    let (rows, parts) = (1u64 << whole.value_bits(), 1u64 << parts.count_ones());
    let loads = elem.bytes_of(parts * rows).div_ceil(MAX_ACCESS_BYTES.into()) * ACCESS;
    let warps = whole.thread_bits().saturating_sub(WARP.ilog2());
    (rows * ACCESS + loads + parts * rows + BARRIERS) << warps
}

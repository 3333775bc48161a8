//! Counters of a profiler, for each instruction.
//!
//! Shared memory has 32 banks of 4 bytes. An access takes phases of 32 lanes (up to 4 bytes each), 16 (8 bytes) or 8
//! (16 bytes). A phase takes as many wavefronts as the fullest bank holds distinct words. Two phases of a load that
//! make up a warp (8 bytes) or half of one (16 bytes) are combined if lanes read in pairs: see [`paired`]. Global
//! memory is read in sectors of 32 bytes; a request is an executed instruction with at least one active lane.
//! [`copies`] has the cost of `cp.async`.

pub(crate) mod copies;

use crate::program::{Entry, Program};
use crate::report::Report;

/// Counts of one instruction, summed over warps and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Executions by a warp or a diverged part of one.
    pub executed: u64,
    /// Active lanes, summed over executions.
    pub lanes: u64,
    /// Shared memory: wavefronts.
    pub wavefronts: u64,
    /// Shared memory: wavefronts without bank conflicts, which is the number of phases with an active lane; for
    /// asynchronous copies, one for each line of the source.
    pub ideal_wavefronts: u64,
    /// Shared memory: additional wavefronts of asynchronous copies whose source line goes to several lines of shared
    /// memory. They are no bank conflicts.
    pub parted: u64,
    /// Global memory: requests.
    pub requests: u64,
    /// Global memory: sectors.
    pub sectors: u64,
    /// Global memory: the least number of sectors for the bytes of each request, if they were distinct and contiguous;
    /// at most [`Counts::sectors`].
    pub ideal_sectors: u64,
    /// Global memory: bytes accessed by active lanes.
    pub global_bytes: u64,
    /// Bytes of shared and global memory accessed by active lanes; a copy between the two counts twice.
    pub bytes: u64,
    /// Number of bulk copies, of boxes of tensors or of runs of bytes.
    pub boxes: u64,
    /// Bulk copies: bytes of shared memory, including those outside of tensors.
    pub bulk_bytes: u64,
    /// Asynchronous products, counted for each warp.
    pub products: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        self.executed += other.executed;
        self.lanes += other.lanes;
        self.wavefronts += other.wavefronts;
        self.ideal_wavefronts += other.ideal_wavefronts;
        self.parted += other.parted;
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
        self.global_bytes += other.global_bytes;
        self.bytes += other.bytes;
        self.boxes += other.boxes;
        self.bulk_bytes += other.bulk_bytes;
        self.products += other.products;
    }

    /// Subtracts counts that were added.
    pub(crate) fn subtract(&mut self, other: &Counts) {
        self.executed -= other.executed;
        self.lanes -= other.lanes;
        self.wavefronts -= other.wavefronts;
        self.ideal_wavefronts -= other.ideal_wavefronts;
        self.parted -= other.parted;
        self.requests -= other.requests;
        self.sectors -= other.sectors;
        self.ideal_sectors -= other.ideal_sectors;
        self.global_bytes -= other.global_bytes;
        self.bytes -= other.bytes;
        self.boxes -= other.boxes;
        self.bulk_bytes -= other.bulk_bytes;
        self.products -= other.products;
    }

    /// Wavefronts beyond the ideal because of bank conflicts.
    pub fn conflicts(&self) -> u64 {
        self.wavefronts - self.ideal_wavefronts - self.parted
    }
}

/// One instruction with its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Line in the PTX text.
    pub ptx_line: u32,
    /// Opcode with modifiers.
    pub instruction: String,
    /// File and line of `.loc`.
    pub source: Option<(String, u32)>,
    /// The counts.
    pub counts: Counts,
}

impl Row {
    /// Whether it is a matrix product.
    pub fn is_product(&self) -> bool {
        ["mma.", "wmma.mma.", "wgmma.mma_async."].iter().any(|name| self.instruction.starts_with(name))
    }

    /// Whether it is a barrier of the block.
    pub fn is_barrier(&self) -> bool {
        self.instruction.starts_with("bar.") && !self.instruction.starts_with("bar.warp")
            || self.instruction.starts_with("barrier.")
    }
}

/// The counts of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Every instruction of the kernel in order of the text.
    pub rows: Vec<Row>,
    /// Warp instructions executed.
    pub instructions: u64,
    /// Executions of `mma`, `wmma.mma` and `wgmma.mma_async`, by a warp each.
    pub mma: u64,
    /// Executions of `bar` and `barrier`.
    pub barriers: u64,
    /// Whether the launch exceeded the limits of the race check: a race on global memory may have been missed.
    pub races_partial: bool,
    /// Reports that the launch allowed ([`Options::allow`](crate::Options::allow)): one for each pair of instructions,
    /// from the block with the lowest number, in order of the text.
    pub allowed: Vec<Report>,
}

impl Counters {
    pub(crate) fn new(program: &Program, entry: &Entry, counts: &[Counts]) -> Counters {
        let mut out = Counters::default();
        for (inst, counts) in entry.code.iter().zip(counts) {
            let instruction = entry.names[inst.name as usize].clone();
            out.instructions += counts.executed;
            let row = Row { ptx_line: inst.line, instruction, source: program.source(inst.loc), counts: *counts };
            out.mma += if row.is_product() { counts.executed } else { 0 };
            out.barriers += if row.is_barrier() { counts.executed } else { 0 };
            out.rows.push(row);
        }
        out
    }

    /// Sums over the instructions whose opcode starts with `prefix`, such as `ld.shared`.
    pub fn sum(&self, prefix: &str) -> Counts {
        let mut out = Counts::default();
        for row in self.rows.iter().filter(|r| r.instruction.starts_with(prefix)) {
            out.add(&row.counts);
        }
        out
    }

    /// Sums by source line, in order of first appearance.
    pub fn by_source(&self) -> Vec<(Option<(String, u32)>, Counts)> {
        let mut out: Vec<(Option<(String, u32)>, Counts)> = Vec::new();
        for row in &self.rows {
            match out.iter_mut().find(|(s, _)| *s == row.source) {
                Some((_, counts)) => counts.add(&row.counts),
                None => out.push((row.source.clone(), row.counts)),
            }
        }
        out
    }
}

/// Adds counts of other blocks, instruction by instruction.
pub(crate) fn merge(into: &mut [Counts], from: &[Counts]) {
    for (a, b) in into.iter_mut().zip(from) {
        a.add(b);
    }
}

/// Wavefronts and phases of a shared access: `addresses` of the lanes in `mask`, `bytes` (1 to 16, a power of two) each.
///
/// An access is aligned to its size, so two of them share all their banks or none: banks are counted in columns of that size.
#[inline]
pub(crate) fn shared_wavefronts(addresses: &[u64; 32], mask: u32, bytes: u64, kind: Kind) -> (u64, u64) {
    let log2 = bytes.max(4).trailing_zeros();
    match (log2, kind) {
        (2, _) => phases::<32>(addresses, mask, log2),
        (3, Kind::Other) => phases::<16>(addresses, mask, log2),
        (_, Kind::Other) => phases::<8>(addresses, mask, log2),
        (3, Kind::Load) => joined::<16>(addresses, mask, log2),
        (_, Kind::Load) => joined::<8>(addresses, mask, log2),
    }
}

/// What accesses shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `ld`, whose phases may be joined.
    Load,
    /// Stores, atomics, `ldmatrix`.
    Other,
}

/// [`phases`] of a load, two of them in one where [`paired`] allows it.
fn joined<const LANES: usize>(addresses: &[u64; 32], mask: u32, log2: u32) -> (u64, u64) {
    let (mut wavefronts, mut count) = (0, 0);
    for start in (0..32).step_by(2 * LANES) {
        let pair = mask & (u32::MAX >> (32 - 2 * LANES) << start);
        if pair != 0 && paired(addresses, pair) {
            count += 1;
            wavefronts += depth::<LANES>(&addresses[start..start + 2 * LANES], pair >> start, log2);
        } else {
            let (w, n) = phases::<LANES>(addresses, pair, log2);
            wavefronts += w;
            count += n;
        }
    }
    (wavefronts, count)
}

/// Whether the lanes of `mask` read in pairs: each lane has the address of lane xor 1, or each has that of lane xor 2,
/// or the other lane is not active. Two phases then need no more data than one.
///
/// Measured on an H200 (sm_90): loads of 16 bytes at one address for each half warp take 2 wavefronts; if lanes `i` and
/// `i + 8` or `i + 16` share an address, they take 4. The launches named `loads` of `sim/tests/corpus/probes.rs` cover
/// lane xor 2, inactive lanes, and 8 bytes. Other architectures are assumed to be equal.
fn paired(addresses: &[u64; 32], mask: u32) -> bool {
    let same = |distance: usize| {
        (0..32).all(|lane| {
            let other = lane ^ distance;
            mask >> lane & 1 == 0 || mask >> other & 1 == 0 || addresses[lane] == addresses[other]
        })
    };
    same(1) || same(2)
}

/// Caches for each instruction the last address pattern and its cost, because loops repeat them.
#[derive(Debug)]
pub(crate) struct Banks(Vec<Option<Box<Pattern>>>);

#[derive(Debug)]
struct Pattern {
    mask: u32,
    /// The first address within the row of banks.
    base: u64,
    /// The other addresses, relative to it.
    offsets: [u32; 32],
    cost: (u64, u64),
}

impl Banks {
    pub(crate) fn new(instructions: usize) -> Banks {
        let mut all = Vec::new();
        all.resize_with(instructions, || None);
        Banks(all)
    }

    /// [`shared_wavefronts`] of the instruction at `pc`, whose size and kind never change.
    #[inline]
    pub(crate) fn wavefronts(
        &mut self,
        pc: usize,
        addresses: &[u64; 32],
        mask: u32,
        bytes: u64,
        kind: Kind,
    ) -> (u64, u64) {
        let base = addresses[0] % 128;
        let offsets: [u32; 32] = std::array::from_fn(|i| addresses[i].wrapping_sub(addresses[0]) as u32);
        let Some(slot) = self.0.get_mut(pc) else { return shared_wavefronts(addresses, mask, bytes, kind) };
        match slot {
            Some(known) if known.base == base && known.mask == mask && known.offsets == offsets => known.cost,
            _ => {
                let cost = shared_wavefronts(addresses, mask, bytes, kind);
                *slot = Some(Box::new(Pattern { mask, base, offsets, cost }));
                cost
            }
        }
    }
}

/// Phases of `LANES` lanes; there are as many columns as lanes to a phase.
#[inline(always)]
fn phases<const LANES: usize>(addresses: &[u64; 32], mask: u32, log2: u32) -> (u64, u64) {
    let (mut wavefronts, mut count) = (0, 0);
    for start in (0..32).step_by(LANES) {
        let active = (mask >> start) & (u32::MAX >> (32 - LANES));
        if active == 0 {
            continue;
        }
        count += 1;
        let mut first = [u32::MAX; LANES];
        let mut conflict = false;
        for lane in 0..LANES {
            if active >> lane & 1 != 0 {
                let unit = (addresses[start + lane] >> log2) as u32;
                let column = &mut first[unit as usize % LANES];
                conflict |= *column != u32::MAX && *column != unit;
                *column = unit;
            }
        }
        wavefronts += if conflict { depth::<LANES>(&addresses[start..start + LANES], active, log2) } else { 1 };
    }
    (wavefronts, count)
}

/// The largest number of distinct units in one column.
#[inline(never)]
fn depth<const LANES: usize>(addresses: &[u64], active: u32, log2: u32) -> u64 {
    let mut units = [0u32; 32];
    let mut n = 0;
    for (lane, address) in addresses.iter().enumerate() {
        let unit = (address >> log2) as u32;
        if active >> lane & 1 != 0 && !units[..n].contains(&unit) {
            units[n] = unit;
            n += 1;
        }
    }
    let mut height = [0u64; LANES];
    for unit in &units[..n] {
        height[*unit as usize % LANES] += 1;
    }
    height.iter().copied().max().unwrap_or(1)
}

/// The number of distinct 32-byte sectors of the lanes; an access never crosses a sector, because it is aligned to its
/// size.
pub(crate) fn sectors(addresses: &[u64; 32], mask: u32) -> u64 {
    let mut all = [0u64; 32];
    let mut n = 0;
    let mut left = mask;
    let mut sorted = true;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        left &= left - 1;
        let sector = addresses[lane] / 32;
        if n == 0 || all[n - 1] != sector {
            sorted &= n == 0 || all[n - 1] < sector;
            all[n] = sector;
            n += 1;
        }
    }
    if sorted {
        return n as u64;
    }
    all[..n].sort_unstable();
    1 + all[..n].windows(2).filter(|w| w[0] != w[1]).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(stride: u64) -> [u64; 32] {
        std::array::from_fn(|i| i as u64 * stride)
    }

    #[test]
    fn wavefronts_follow_the_phase_rule() {
        assert_eq!(shared_wavefronts(&strided(4), u32::MAX, 4, Kind::Other), (1, 1));
        assert_eq!(shared_wavefronts(&strided(8), u32::MAX, 4, Kind::Other), (2, 1));
        assert_eq!(shared_wavefronts(&strided(128), u32::MAX, 4, Kind::Other), (32, 1));
        assert_eq!(shared_wavefronts(&strided(0), u32::MAX, 4, Kind::Other), (1, 1));
        assert_eq!(shared_wavefronts(&strided(16), u32::MAX, 16, Kind::Other), (4, 4));
        // Published: 128-bit loads a row apart take 32 wavefronts, of which 28 are conflicts.
        assert_eq!(shared_wavefronts(&strided(128), u32::MAX, 16, Kind::Other), (32, 4));
        assert_eq!(shared_wavefronts(&strided(8), u32::MAX, 8, Kind::Other), (2, 2));
        assert_eq!(shared_wavefronts(&strided(2), u32::MAX, 2, Kind::Other), (1, 1));
        // Eight rows at pitch 80 bytes are conflict-free, at 64 bytes four-way.
        assert_eq!(shared_wavefronts(&strided(80), 0xFF, 16, Kind::Other), (1, 1));
        assert_eq!(shared_wavefronts(&strided(64), 0xFF, 16, Kind::Other), (4, 1));
    }

    #[test]
    fn loads_in_pairs_join_phases() {
        let cost = |bytes: u64, mask: u32, unit: fn(u64) -> u64| {
            shared_wavefronts(&std::array::from_fn(|i| unit(i as u64) * bytes), mask, bytes, Kind::Load)
        };
        let all = u32::MAX;
        // `gemm_blocked`: one address for each half warp; 16 consecutive addresses, twice.
        assert_eq!(cost(16, all, |i| i / 16), (2, 2));
        assert_eq!(cost(16, all, |i| i % 16), (4, 4));
        // `gemm_tiled`: the same, the halves 64 bytes apart.
        assert_eq!(cost(16, all, |i| i / 16 * 4), (2, 2));
        assert_eq!(cost(16, all, |i| i / 2), (2, 2));
        assert_eq!(cost(16, all, |i| i / 4 * 2 + i % 2), (2, 2));
        // Volta's fragments: lanes 8 apart share, or 4 apart.
        assert_eq!(cost(16, all, |i| i % 8 + i / 16 * 8), (4, 4));
        assert_eq!(cost(16, all, |i| i / 8 * 4 + i % 4), (4, 4));
        // Each half separately; conflicts between joined phases.
        assert_eq!(cost(16, all, |i| if i < 16 { i / 2 } else { i }), (3, 3));
        assert_eq!(cost(16, all, |i| i / 2 * 4), (8, 2));
        assert_eq!(cost(16, 0x5555_5555, |i| i / 2), (2, 2));
        assert_eq!(cost(16, 0xFF, |i| i), (1, 1));
        assert_eq!(cost(8, all, |i| i / 2), (1, 1));
        assert_eq!(cost(8, all, |i| i % 16), (2, 2));
        assert_eq!(cost(8, all, |i| if i < 16 { i / 2 } else { i }), (2, 2));
        assert_eq!(cost(4, all, |i| i / 2), (1, 1));
        assert_eq!(cost(16, 0, |i| i), (0, 0));
        let same = std::array::from_fn(|i| i as u64 / 16 * 16);
        assert_eq!(shared_wavefronts(&same, all, 16, Kind::Other), (4, 4));
    }

    #[test]
    fn patterns_are_remembered_only_for_themselves() {
        let mut banks = Banks::new(1);
        for (stride, start) in [(4, 0), (4, 256), (4, 4), (8, 0), (8, 64), (4, 0), (128, 0)] {
            for mask in [u32::MAX, 0xFFFF, 1] {
                let at = strided(stride).map(|a| a + start);
                for _ in 0..2 {
                    assert_eq!(
                        banks.wavefronts(0, &at, mask, 4, Kind::Other),
                        shared_wavefronts(&at, mask, 4, Kind::Other)
                    );
                }
            }
        }
    }

    #[test]
    fn sectors_are_distinct_and_order_free() {
        assert_eq!(sectors(&strided(4), u32::MAX), 4);
        assert_eq!(sectors(&strided(16), u32::MAX), 16);
        assert_eq!(sectors(&std::array::from_fn(|i| (31 - i as u64) * 4), u32::MAX), 4);
        assert_eq!(sectors(&std::array::from_fn(|i| (i as u64 % 2) * 32), u32::MAX), 2);
    }
}

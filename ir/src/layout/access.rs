//! Proofs about one warp-wide memory access: widest vector, and shared-memory wavefronts.
//!
//! Bank model: 32 banks of 4 bytes, `bank = (address >> 2) & 31`. A warp's access is served in phases:
//! up to 4 bytes a lane in one phase of 32 lanes, 8 bytes in two phases of 16, 16 bytes in four of
//! 8. Within a phase equal words are broadcast; different words in one bank are served one after the
//! other. A wavefront is one such pass.
//!
//! For F2-linear addresses the count is a rank: the lanes of a phase hit `2^rank(word columns)` words
//! spread evenly over `2^rank(bank columns)` banks. Other phases differ by a constant, which moves
//! nothing between ranks. [`wavefronts_by_enumeration`] counts the same from 32 addresses without any
//! algebra, and is what tests compare with.

use std::collections::BTreeSet;

use super::f2::{F2Map, rank};

/// Number of shared-memory banks.
pub const BANKS: u64 = 32;

/// Bytes of a bank word.
pub const BANK_BYTES: u64 = 4;

/// The cost of one warp-wide shared-memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wavefronts {
    /// Passes that the width alone needs.
    pub phases: u32,
    /// Passes in all.
    pub wavefronts: u32,
}

impl Wavefronts {
    /// Passes beyond those the width needs; zero means conflict-free.
    pub fn conflicts(self) -> u32 {
        self.wavefronts - self.phases
    }
}

/// Widest legal vector of an access, in log2 elements.
///
/// `value_to_offset` maps value bits to element-offset bits, `other_cols` are the contributions of
/// everything else (lanes, warps, slots). The answer is the largest `v` such that value bit `i`
/// is exactly offset bit `i` for all `i < v` and nothing else touches those offset bits.
pub fn widest_vector(value_to_offset: &F2Map, other_cols: &[u64]) -> u32 {
    let mut v = 0;
    while v < value_to_offset.in_bits() && value_to_offset.col(v) == 1 << v {
        v += 1;
    }
    // A narrower vector exempts a later value bit from being part of it, hence from bits below.
    while v > 0 {
        let later = (v..value_to_offset.in_bits()).map(|i| value_to_offset.col(i));
        let touched = later.chain(other_cols.iter().copied()).fold(0, |a, c| a | c);
        if touched.trailing_zeros() >= v {
            break;
        }
        v = touched.trailing_zeros();
    }
    v
}

/// Lane bits that vary within a phase: 5, 4 or 3 for up to 4, 8 or 16 bytes a lane.
pub fn phase_lane_bits(access_bytes: u32) -> u32 {
    match access_bytes {
        0..=4 => 5,
        5..=8 => 4,
        _ => 3,
    }
}

/// Address bits below the unit that a phase transfers per lane: a word, two, or four.
pub(crate) fn unit_shift(access_bytes: u32) -> u32 {
    7 - phase_lane_bits(access_bytes)
}

/// Wavefronts of an access whose byte address is F2-linear in the lane, by rank.
///
/// `lane_cols_bytes[i]` is the byte-address contribution of lane bit `i` (missing ones are zero).
/// Addresses are taken as aligned to `access_bytes` (at most 16), as the instruction demands.
pub fn wavefronts_by_rank(lane_cols_bytes: &[u64], access_bytes: u32) -> Wavefronts {
    let lane_bits = phase_lane_bits(access_bytes);
    let shift = unit_shift(access_bytes);
    // The unit's own words occupy whole banks, so the units of a phase collide as whole units.
    let n = lane_cols_bytes.len().min(lane_bits as usize);
    let units: Vec<u64> = lane_cols_bytes[..n].iter().map(|c| c >> shift).collect();
    let unit_banks = (BANKS * BANK_BYTES) >> shift;
    let banks: Vec<u64> = units.iter().map(|u| u & (unit_banks - 1)).collect();
    let phases = 1 << (5 - lane_bits);
    Wavefronts { phases, wavefronts: phases << (rank(&units) - rank(&banks)) }
}

/// Wavefronts of an access by counting: `offsets[lane]` is the byte address of each lane.
///
/// Works for any addresses; each access covers `access_bytes` (at most 16) from its offset.
pub fn wavefronts_by_enumeration(offsets: &[u64], access_bytes: u32) -> Wavefronts {
    let per_phase = 1usize << phase_lane_bits(access_bytes);
    let mut total = Wavefronts { phases: 0, wavefronts: 0 };
    for lanes in offsets.chunks(per_phase) {
        let mut words = BTreeSet::new();
        for &first in lanes {
            let last = first.saturating_add(u64::from(access_bytes.max(1) - 1));
            words.extend(first / BANK_BYTES..=last / BANK_BYTES);
        }
        let mut per_bank = [0u32; BANKS as usize];
        for w in words {
            per_bank[(w % BANKS) as usize] += 1;
        }
        total.phases += 1;
        total.wavefronts += per_bank.iter().copied().max().unwrap_or(1);
    }
    total
}

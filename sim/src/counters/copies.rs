//! What a `cp.async` costs (`LDGSTS`).
//!
//! Measured on an H200 (sm_90) with Nsight Compute, one warp a launch (`sim/tests/corpus/probes.rs`, `ldmatrix`), and assumed
//! for sm_80 to sm_89, whose instruction has the same name.
//!
//! | part | wavefronts | sectors |
//! |---|---|---|
//! | `.ca` of 4, 8 and 16 bytes | those of a store of the same bytes | those of a load of the same bytes |
//! | `.cg`: what moves together | one for each 128-byte line of the destination; where two sectors of different lines, or of one, share their place in a line, one for each sector | one for each sector |
//! | `.cg`, no lane reads | as from bytes that lie together | none, and no request |
//! | `.cg` that may read a part of its bytes (`LDGSTS.ZFILL`) | in addition those of a store of the same bytes | |
//!
//! The sectors (32 bytes) of one line of the source move together. A sector whose halves go to different sectors of the
//! destination is requested once for each. The second request moves with the second requests of the line's other
//! sectors. The order of sectors in a line and of halves in a sector does not matter. Lanes that write zeros move as
//! the others do, except that they request nothing.
//!
//! Not modelled:
//!
//! * several lanes that copy the same 16 bytes (64 wavefronts were counted for a warp, 36 expected);
//! * the time at which parts of a line of the destination arrive from several lines of the source. With many warps, products of
//!   64-byte rows took up to 6 % fewer or 12 % more, and not the same number in every launch.
//!
//! The counter of bank conflicts stays at zero in all rows.

use super::{Kind, sectors, shared_wavefronts};

/// The instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Bytes of a lane.
    pub(crate) bytes: u64,
    /// Whether it goes through the first-level cache (`.ca`).
    pub(crate) cached: bool,
    /// Whether it may read a part of its bytes.
    pub(crate) partial: bool,
}

/// Cost of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyCost {
    /// Writes of shared memory.
    pub(crate) wavefronts: u64,
    /// Wavefronts if the bytes of each line of the source went to one line.
    pub(crate) ideal: u64,
    /// Additional wavefronts because the bytes of a source line go to several lines; these are no bank conflicts.
    pub(crate) parted: u64,
    /// Sectors of global memory requested.
    pub(crate) sectors: u64,
}

/// The cost of copies in the lanes of `mask`, of which those in `reads` read their source.
pub(crate) fn cost(src: &[u64; 32], dst: &[u64; 32], mask: u32, reads: u32, form: Form) -> CopyCost {
    let reads = reads & mask;
    let (stored, phases) = shared_wavefronts(dst, mask, form.bytes, Kind::Other);
    if form.cached {
        let sectors = if reads == 0 { 0 } else { sectors(src, reads) };
        return CopyCost { wavefronts: stored, ideal: phases, parted: 0, sectors };
    }
    let contiguous: [u64; 32] = std::array::from_fn(|lane| lane as u64 * form.bytes);
    let from = if reads == 0 { &contiguous } else { src };
    let moved = Moves::new(from, dst, mask).wavefronts();
    let named = u64::from(mask.count_ones()) * form.bytes;
    let least = named.div_ceil(128).max(distinct(lanes(mask).map(|lane| from[lane] / 128)));
    let (zeroed, zero_phases) = if form.partial { (stored, phases) } else { (0, 0) };
    CopyCost {
        wavefronts: moved + zeroed,
        ideal: moved.min(least) + zero_phases,
        parted: moved.saturating_sub(least),
        sectors: Moves::new(src, dst, reads).len as u64,
    }
}

/// A sector of the source that moves to one of the destination.
#[derive(Clone, Copy, Default)]
struct Move {
    from: u64,
    to: u64,
    /// The number of earlier moves of the same sector.
    turn: u32,
    /// Halves of the source that lanes copy, as bits.
    halves: u8,
}

/// The moves of an instruction, at most one for each lane.
struct Moves {
    all: [Move; 32],
    len: usize,
}

impl Moves {
    fn new(src: &[u64; 32], dst: &[u64; 32], mask: u32) -> Moves {
        let mut moves = Moves { all: [Move::default(); 32], len: 0 };
        for lane in lanes(mask) {
            let (from, to) = (src[lane] / 32, dst[lane] / 32);
            let half = 1 << (src[lane] / 16 % 2);
            let known = &mut moves.all[..moves.len];
            let turn = known.iter().filter(|m| m.from == from).count() as u32;
            let free = |m: &&mut Move| (m.from, m.to) == (from, to) && m.halves & half == 0;
            match known.iter_mut().find(free) {
                Some(with) => with.halves |= half,
                None => {
                    moves.all[moves.len] = Move { from, to, turn, halves: half };
                    moves.len += 1;
                }
            }
        }
        moves
    }

    fn wavefronts(&self) -> u64 {
        let all = &self.all[..self.len];
        let group = |m: &Move| (m.from / 4, m.turn);
        let mut sum = 0;
        for (i, first) in all.iter().enumerate() {
            if all[..i].iter().any(|m| group(m) == group(first)) {
                continue;
            }
            let targets = || all.iter().filter(|m| group(m) == group(first)).map(|m| m.to);
            let sectors = distinct(targets());
            let apart = distinct(targets().map(|to| to % 4)) == sectors;
            sum += if apart { distinct(targets().map(|to| to / 4)) } else { sectors };
        }
        sum
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

/// The number of distinct values among at most 32.
fn distinct(values: impl Iterator<Item = u64>) -> u64 {
    let mut all = [0; 32];
    let mut n = 0;
    for value in values {
        if !all[..n].contains(&value) {
            all[n] = value;
            n += 1;
        }
    }
    n as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    fn at(f: impl Fn(u64) -> u64) -> [u64; 32] {
        std::array::from_fn(|lane| f(lane as u64))
    }

    fn costs(src: &[u64; 32], dst: &[u64; 32], mask: u32, reads: u32, form: Form) -> [u64; 3] {
        let c = cost(src, dst, mask, reads, form);
        [c.wavefronts, c.ideal, c.sectors]
    }

    const WHOLE: Form = Form { bytes: 16, cached: false, partial: false };
    const PARTIAL: Form = Form { partial: true, ..WHOLE };

    #[test]
    fn whole_copies_cost_what_was_measured() {
        let plain = at(|l| 16 * l);
        // `ldmatrix pitch 16`: plain; every other pitch splits the sectors.
        assert_eq!(costs(&plain, &plain, ALL, ALL, WHOLE), [4, 4, 16]);
        for pitch in [32, 64, 80, 128, 144] {
            assert_eq!(costs(&plain, &at(|l| pitch * l), ALL, ALL, WHOLE), [32, 4, 32], "pitch {pitch}");
        }
        // Each line permuted by its own xor.
        for by in 0..8 {
            let permuted = at(|l| l / 8 * 128 + ((l % 8) ^ ((l / 8 + by) % 8)) * 16);
            assert_eq!(costs(&plain, &permuted, ALL, ALL, WHOLE), [4, 4, 16], "xor {by}");
        }
        // Rows of 64 bytes, two to a line; zeros.
        let rows = at(|l| l / 8 * 128 + l / 4 % 2 * 64 + ((l % 4) ^ (l / 8)) * 16);
        for k in [0, 64] {
            assert_eq!(costs(&at(|l| l / 4 * 448 + l % 4 * 16 + k), &rows, ALL, ALL, WHOLE), [8, 8, 16], "at {k}");
        }
        assert_eq!(costs(&at(|l| l / 4 * 448), &rows, ALL, 0, WHOLE), [4, 4, 0]);
        assert_eq!(costs(&plain, &plain, 0, 0, WHOLE), [0, 0, 0]);
        assert_eq!(costs(&plain, &plain, 1 << 31, ALL, WHOLE), [1, 1, 1]);
    }

    /// The counts of the launches `copies copy16`.
    #[test]
    fn partial_copies_cost_what_was_measured() {
        type Place = fn(u64) -> (u64, u64);
        let measured: &[(&str, Place, u64, u64)] = &[
            ("plain", |l| (l * 16, l * 16), 8, 16),
            ("half rows", |l| (l / 4 * 448 + l % 4 * 16, l * 16), 12, 16),
            ("quarter rows", |l| (l / 2 * 160 + l % 2 * 16, l * 16), 20, 16),
            ("pieces exchanged in sectors", |l| (l * 16, (l ^ 1) * 16), 8, 16),
            ("rotated by a piece", |l| (l * 16, l / 8 * 128 + (l + 1) % 8 * 16), 12, 32),
            ("rotated by a sector", |l| (l * 16, l / 8 * 128 + (l + 2) % 8 * 16), 8, 16),
            ("reversed", |l| (l * 16, (31 - l) * 16), 8, 16),
            ("source off by 16", |l| (l * 16 + 16, l * 16), 16, 32),
            ("source off by 32", |l| (l * 16 + 32, l * 16), 12, 16),
            ("destination off by 32", |l| (l * 16, l * 16 + 32), 12, 16),
            ("sectors scattered", |l| (l * 16, l / 2 * 160 + l % 2 * 16), 20, 16),
            ("half rows scattered", |l| (l * 16, l / 4 * 192 + l % 4 * 16), 12, 16),
            ("first line split", |l| (l * 16, if l < 8 { l * 32 } else { 256 + l * 16 }), 16, 20),
            ("first sector split", |l| (l * 16, if l == 0 { 1024 } else { l * 16 }), 10, 17),
        ];
        for (name, place, wavefronts, sectors) in measured {
            let [got, _, asked] = costs(&at(|l| place(l).0), &at(|l| place(l).1), ALL, ALL, PARTIAL);
            assert_eq!([got, asked], [*wavefronts, *sectors], "{name}");
        }
        let plain = at(|l| 16 * l);
        assert_eq!(costs(&at(|_| 0), &plain, ALL, ALL, PARTIAL)[2], 32, "one source");
        assert_eq!(costs(&plain, &plain, 0xFFFF, ALL, PARTIAL), [4, 4, 8], "half a warp");
        assert_eq!(costs(&plain, &plain, 0x5555_5555, ALL, PARTIAL), [8, 8, 16], "even lanes");
        assert_eq!(costs(&plain, &plain, ALL, 0xFFFF, PARTIAL), [8, 8, 8], "half zeros");
        assert_eq!(costs(&plain, &plain, ALL, 0x3F3F_3F3F, PARTIAL), [8, 8, 12], "zeros in every line");
        assert_eq!(costs(&plain, &plain, ALL, 0, PARTIAL), [8, 8, 0], "all zeros");
        assert_eq!(costs(&plain, &at(|l| 32 * l), ALL, 0, PARTIAL), [40, 8, 0], "zeros scattered");
    }

    #[test]
    fn cached_copies_cost_a_load_and_a_store() {
        let cached = |bytes| Form { bytes, cached: true, partial: true };
        for (bytes, every_other) in [(4, 2), (8, 4)] {
            let plain = at(|l| bytes * l);
            let of = |dst: &[u64; 32], reads| costs(&plain, dst, ALL, reads, cached(bytes));
            let (ideal, sectors) = (bytes / 4, bytes);
            assert_eq!(of(&plain, ALL), [ideal, ideal, sectors]);
            assert_eq!(of(&at(|l| 2 * bytes * l), ALL), [every_other, ideal, sectors]);
            assert_eq!(of(&at(|l| l * (128 + bytes)), ALL), [ideal, ideal, sectors]);
            assert_eq!(of(&plain, 0), [ideal, ideal, 0]);
            let column = at(|l| 128 * l);
            assert_eq!(costs(&column, &column, ALL, ALL, cached(bytes)), [32, ideal, 32]);
        }
        assert_eq!(costs(&at(|l| 16 * l), &at(|l| 80 * l), ALL, ALL, cached(16)), [4, 4, 16]);
    }
}

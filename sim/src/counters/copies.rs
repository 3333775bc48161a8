//! What a `cp.async` costs (`LDGSTS`).
//!
//! Measured on an H200 (sm_90) with Nsight Compute; the rows marked so are assumed until measured, and all of them are assumed for
//! sm_80 to sm_89, whose instruction has the same name.
//!
//! | lanes of one 128-byte line of the source | wavefronts | sectors |
//! |---|---|---|
//! | every 32-byte sector goes whole to one sector of the destination | one for each 128-byte line of the destination, shared with other such lanes | one for each sector |
//! | some sector is split between sectors of the destination | one for each lane | one for each lane |
//! | lanes that read nothing and write zeros | one for each sector of the destination | none, and no request if there are no others |
//!
//! The order of the 16-byte pieces in a line does not matter: pieces and sectors permuted by xor cost as much as a plain copy.
//! Assumed: that one split line leaves the others of the instruction whole, that permutations other than xor are as good, that
//! copies of 4 and 8 bytes and `.ca` follow the same rows. The zeros rest on one sum of counts over three kinds of copies (64-byte
//! rows, the same with the halves of lines exchanged, zeros), which this split of it fits. The counter of bank conflicts stays at
//! zero in all rows.

/// Cost of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyCost {
    /// Writes of shared memory.
    pub(crate) wavefronts: u64,
    /// Wavefronts if the bytes lay together.
    pub(crate) ideal: u64,
    /// Sectors of global memory asked for.
    pub(crate) sectors: u64,
}

/// The cost of copies of `bytes` each in the lanes of `mask`, of which those in `reads` read their source.
pub(crate) fn cost(src: &[u64; 32], dst: &[u64; 32], mask: u32, reads: u32, bytes: u64) -> CopyCost {
    let reads = reads & mask;
    let named = u64::from(mask.count_ones()) * bytes;
    let mut split = 0;
    for lane in lanes(reads) {
        let parts = |other: &usize| src[*other] / 32 == src[lane] / 32 && dst[*other] / 32 != dst[lane] / 32;
        if lanes(reads).any(|other| parts(&other)) {
            split |= lanes(reads).filter(|l| src[*l] / 128 == src[lane] / 128).fold(0, |m, l| m | 1 << l);
        }
    }
    let whole = reads & !split;
    let apart = u64::from(split.count_ones());
    let wavefronts = distinct(dst, whole, 128) + apart + distinct(dst, mask & !reads, 32);
    CopyCost { wavefronts, ideal: wavefronts.min(named.div_ceil(128)), sectors: distinct(src, whole, 32) + apart }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

/// Distinct pieces of `size` bytes that the lanes name.
fn distinct(addresses: &[u64; 32], mask: u32, size: u64) -> u64 {
    let mut all = [0; 32];
    let mut n = 0;
    for lane in lanes(mask) {
        let piece = addresses[lane] / size;
        if !all[..n].contains(&piece) {
            all[n] = piece;
            n += 1;
        }
    }
    n as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(f: impl Fn(u64) -> u64) -> [u64; 32] {
        std::array::from_fn(|lane| f(lane as u64))
    }

    fn costs(src: &[u64; 32], dst: &[u64; 32], mask: u32, reads: u32, bytes: u64) -> [u64; 3] {
        let c = cost(src, dst, mask, reads, bytes);
        [c.wavefronts, c.ideal, c.sectors]
    }

    #[test]
    fn measured_copies_cost_what_was_measured() {
        let plain = at(|l| 16 * l);
        let all = u32::MAX;
        // `ldmatrix pitch 16`: plain; every other pitch splits the sectors.
        assert_eq!(costs(&plain, &plain, all, all, 16), [4, 4, 16]);
        for pitch in [32, 64, 80, 128, 144] {
            assert_eq!(costs(&plain, &at(|l| pitch * l), all, all, 16), [32, 4, 32], "pitch {pitch}");
        }
        // Lines permuted by xor, each by its own.
        for by in 0..8 {
            let permuted = at(|l| l / 8 * 128 + ((l % 8) ^ ((l / 8 + by) % 8)) * 16);
            assert_eq!(costs(&plain, &permuted, all, all, 16), [4, 4, 16], "xor {by}");
        }
        // `gemm_pipeline`: rows of 64 bytes, 448 apart, two to a line of the destination, in even and odd steps of k; zeros.
        let rows = at(|l| l / 8 * 128 + l / 4 % 2 * 64 + ((l % 4) ^ (l / 8)) * 16);
        let steps = [0, 64].map(|k| costs(&at(|l| l / 4 * 448 + l % 4 * 16 + k), &rows, all, all, 16));
        let zeros = costs(&plain, &rows, all, 0, 16);
        assert_eq!([steps[0], steps[1], zeros], [[4, 4, 16], [4, 4, 16], [16, 4, 0]]);
        // Two blocks of four warps, four copies to a step: 2432 wavefronts and 3584 sectors were counted.
        let sum = |i: usize| 32 * (4 * steps[0][i] + 3 * steps[1][i] + 3 * zeros[i]);
        assert_eq!([sum(0), sum(2)], [2432, 3584]);
    }

    #[test]
    fn lines_are_split_one_by_one() {
        let plain = at(|l| 16 * l);
        let last = at(|l| if l < 24 { 16 * l } else { 32 * l });
        assert_eq!(costs(&plain, &last, u32::MAX, u32::MAX, 16), [11, 4, 20]);
        assert_eq!(costs(&plain, &last, 0xFF_FFFF, u32::MAX, 16), [3, 3, 12]);
        // A lane alone has a sector for itself.
        assert_eq!(costs(&plain, &last, 1 << 31, u32::MAX, 16), [1, 1, 1]);
        assert_eq!(costs(&at(|l| 4 * l), &at(|l| 4 * l), u32::MAX, u32::MAX, 4), [1, 1, 4]);
        assert_eq!(costs(&plain, &plain, 0xFFFF, 0xFF, 16), [1 + 4, 2, 4]);
        assert_eq!(costs(&plain, &plain, 0, 0, 16), [0, 0, 0]);
    }
}

//! Wavefronts by rank against counting all lanes, and the published cases.

use super::cases;
use crate::layout::{F2Map, Wavefronts, wavefronts_by_enumeration, wavefronts_by_rank, widest_vector};

/// The 32 byte addresses with these lane columns, all xored with `base`.
fn addresses(cols: &[u64], base: u64) -> Vec<u64> {
    let map = F2Map::from_cols(cols.to_vec()).unwrap();
    (0..32).map(|lane| map.apply(lane) ^ base).collect()
}

#[test]
fn rank_agrees_with_enumeration() {
    cases(2000, |u| {
        let log2_bytes = u.int_in_range(0..=4u32)?;
        let top = u.int_in_range(log2_bytes..=12)?;
        let mut aligned = || Ok(u.int_in_range(0..=(1u64 << (top - log2_bytes)) - 1)? << log2_bytes);
        let cols: arbitrary::Result<Vec<u64>> = (0..5).map(|_| aligned()).collect();
        let (cols, base) = (cols?, aligned()?);
        let bytes = 1 << log2_bytes;
        assert_eq!(
            wavefronts_by_rank(&cols, bytes),
            wavefronts_by_enumeration(&addresses(&cols, base), bytes),
            "{cols:?} {bytes}"
        );
        Ok(())
    });
}

/// Eight rows at a pitch, 16 bytes each, four times over at consecutive 16-byte columns.
fn rows_at_pitch(pitch: u64) -> u32 {
    let offsets: Vec<u64> = (0..32).map(|l| l % 8 * pitch).collect();
    let w = wavefronts_by_enumeration(&offsets, 16);
    assert_eq!(w.phases, 4);
    w.wavefronts / w.phases
}

#[test]
fn rows_at_a_pitch_conflict_as_documented() {
    let cases = [(128, 8), (64, 4), (32, 2), (16, 1), (80, 1), (144, 1)];
    for (pitch, ways) in cases {
        assert_eq!(rows_at_pitch(pitch), ways, "pitch {pitch}");
        if pitch.is_power_of_two() {
            let cols = [pitch, 2 * pitch, 4 * pitch, 0, 0];
            assert_eq!(wavefronts_by_rank(&cols, 16).wavefronts, 4 * ways, "pitch {pitch}");
        }
    }
    // The matching xor swizzle: row bits into the 16-byte column.
    let swizzled = [128 ^ 16, 256 ^ 32, 512 ^ 64, 0, 0];
    assert_eq!(wavefronts_by_rank(&swizzled, 16).conflicts(), 0);
}

#[test]
fn every_width_has_its_phases() {
    for (bytes, phases) in [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)] {
        let contiguous: Vec<u64> = (0..5).map(|i| u64::from(bytes) << i).collect();
        let want = Wavefronts { phases, wavefronts: phases };
        assert_eq!(wavefronts_by_rank(&contiguous, bytes), want);
        assert_eq!(wavefronts_by_enumeration(&addresses(&contiguous, 0), bytes), want);
        assert_eq!(wavefronts_by_rank(&[0; 5], bytes), want, "broadcast");
    }
    // One bank, 32 words: serial.
    assert_eq!(wavefronts_by_rank(&[128, 256, 512, 1024, 2048], 4).conflicts(), 31);
}

#[test]
fn widest_vector_is_the_largest_clean_prefix() {
    cases(2000, |u| {
        let n = u.int_in_range(0..=5)?;
        let mut cols: Vec<u64> = (0..n).map(|i| 1 << i).collect();
        if u.arbitrary()? && n > 0 {
            let i = u.choose_index(n as usize)?;
            cols[i] = u.int_in_range(0..=31)?;
        }
        let other = [u.int_in_range(0..=31u64)? & !u.int_in_range(0..=31u64)?];
        let legal = |v: usize| {
            (0..v).all(|i| cols[i] == 1 << i) && cols[v..].iter().chain(&other).all(|c| c & ((1 << v) - 1) == 0)
        };
        let want = (0..=cols.len()).filter(|&v| legal(v)).max().unwrap();
        let map = F2Map::new(cols.clone(), 6).unwrap();
        assert_eq!(widest_vector(&map, &other), want as u32, "{cols:?} {other:?}");
        Ok(())
    });
}

//! Random numbers that a counter gives: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011).

/// The factors of the first and of the third word of a counter.
pub const FACTORS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What is added to the words of the key after each round.
pub const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds.
pub const ROUNDS: u32 = 10;

/// The four words of a counter under a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [a, b, c, d] = counter;
        let (x, y) = (u64::from(FACTORS[0]) * u64::from(a), u64::from(FACTORS[1]) * u64::from(c));
        counter = [(y >> 32) as u32 ^ b ^ key[0], y as u32, (x >> 32) as u32 ^ d ^ key[1], x as u32];
        key = [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])];
    }
    counter
}

/// `random(seed, place)`: word number `place` of the sequence of a seed. A counter gives four words; its upper half is
/// zero.
pub fn random(seed: u64, place: u64) -> u32 {
    let counter = place / 4;
    let words = philox([counter as u32, (counter >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32]);
    words[(place % 4) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kat_vectors` of Random123.
    #[test]
    fn words_are_those_that_were_published() {
        let ones = u32::MAX;
        let rows = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, words) in rows {
            assert_eq!(philox(counter, key), words);
        }
        assert_eq!((0..4).map(|place| random(0, place)).collect::<Vec<u32>>(), rows[0].2);
        assert_eq!(random(5 << 32 | 7, 9 << 34 | 6), philox([1, 9, 0, 0], [7, 5])[2]);
    }
}

//! A random number generator for the order in which ready warps run.

/// A small generator (xorshift64*): the scheduler needs variety, not quality.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64, block: u64) -> Rng {
        // Seeds are small numbers, and the first turns matter most: without mixing, the first warp would always start.
        let mut z =
            seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ block.wrapping_mul(0xD1B5_4A32_D192_ED03);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        Rng((z ^ z >> 31) | 1)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let r = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        (r % (n as u64).max(1)) as usize
    }
}

//! The contents of tensors, made fast: elements drawn from a table of encodings by many threads.

use crate::run::data::{self, Data, Random};
use tilec_ir::numerics::cast::has_negatives;
use tilec_ir::types::Elem;

/// Entries of a table: 16 random bits choose one.
const ENTRIES: usize = 1 << 16;
/// Bytes that one thread fills from one random stream, so that the result does not depend on the number of threads.
const CHUNK: usize = 1 << 20;

/// What tensors hold.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Contents {
    /// About normally distributed, variance 1; for integer types rounded, variance 16.
    Normal,
    /// Whole numbers up to `limit` in magnitude, a share of `density` of them not zero.
    Whole {
        /// Largest magnitude.
        limit: u32,
        /// Between 0 and 1.
        density: f64,
    },
}

impl Contents {
    /// Integers whose sums of `terms` products stay far below `exact_below` in magnitude.
    pub(super) fn whole(terms: u64, exact_below: f64) -> Contents {
        let limit = if exact_below <= 4096.0 { 2 } else { 4 };
        // A product that is not zero has at most limit², a quarter of that on average; half of the range is spare.
        let share = exact_below / 2.0 / (terms.max(1) as f64 * f64::from(limit * limit) / 4.0);
        Contents::Whole { limit, density: share.sqrt().min(1.0) }
    }
}

/// Encodings to draw elements from. It takes milliseconds to make, so that one is made for all tensors that hold the same.
pub(super) struct Table {
    elem: Elem,
    /// In little-endian bytes.
    encodings: Vec<[u8; 8]>,
}

impl Table {
    pub(super) fn new(elem: Elem, contents: Contents) -> Table {
        let mut random = Random::new(0, "table");
        let unsigned = !has_negatives(elem);
        let encodings = (0..ENTRIES).map(|i| {
            let x = match contents {
                Contents::Normal if elem.is_float() => random.number(Data::Normal, false),
                Contents::Normal => {
                    let x = (4.0 * random.number(Data::Normal, false)).round();
                    if unsigned { x.abs() } else { x }
                }
                Contents::Whole { limit, density } => {
                    let nonzero = (i as f64) < density * ENTRIES as f64;
                    if nonzero { random.number(Data::Int { limit }, unsigned) } else { 0.0 }
                }
            };
            let x = if elem == Elem::UE8M0 { data::scale_near(x) } else { x };
            data::encode(elem, x).to_le_bytes()
        });
        Table { elem, encodings: encodings.collect() }
    }

    /// `count` elements of the stream of `seed` and `name`, and `spare` zero bytes after them.
    pub(super) fn elements(&self, count: usize, spare: usize, seed: u64, name: &str) -> Vec<u8> {
        let all = self.elem.bytes_of(count as u64) as usize;
        let mut bytes = vec![0u8; all + spare];
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(32);
        let mut chunks: Vec<(usize, &mut [u8])> = bytes[..all].chunks_mut(CHUNK).enumerate().collect();
        let share = chunks.len().div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            while !chunks.is_empty() {
                let mine = chunks.split_off(chunks.len().saturating_sub(share));
                scope.spawn(move || {
                    for (i, chunk) in mine {
                        let random = Random::new(seed.wrapping_add(i as u64), name);
                        match self.elem.bits() {
                            4 => self.fill_nibbles(chunk, random),
                            8 => self.fill::<1>(chunk, random),
                            16 => self.fill::<2>(chunk, random),
                            32 => self.fill::<4>(chunk, random),
                            64 => self.fill::<8>(chunk, random),
                            bits => panic!("bug: elements of {bits} bits"),
                        }
                    }
                });
            }
        });
        bytes
    }

    fn fill_nibbles(&self, chunk: &mut [u8], mut random: Random) {
        let mut one = || self.encodings[random.below(self.encodings.len() as u64) as usize][0];
        chunk.iter_mut().for_each(|byte| *byte = one() & 15 | one() << 4);
    }

    fn fill<const WIDTH: usize>(&self, chunk: &mut [u8], mut random: Random) {
        let mut bits = 0u64;
        for (n, element) in chunk.chunks_exact_mut(WIDTH).enumerate() {
            bits = if n % 4 == 0 { random.next_u64() } else { bits >> 16 };
            let entry = usize::try_from(bits & 0xFFFF).expect("16 bits");
            element.copy_from_slice(&self.encodings[entry][..WIDTH]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(elem: Elem, count: usize, seed: u64, name: &str, contents: Contents) -> Vec<u8> {
        Table::new(elem, contents).elements(count, 0, seed, name)
    }

    fn values(elem: Elem, contents: Contents) -> Vec<f64> {
        let bytes = elements(elem, 20_000, 1, "A", contents);
        (0..20_000).map(|i| data::get(elem, &bytes, i)).collect()
    }

    #[test]
    fn normal_data_has_mean_0_and_variance_1() {
        for elem in [Elem::F16, Elem::BF16, Elem::F32, Elem::F64, Elem::E4M3, Elem::I8] {
            let all = values(elem, Contents::Normal);
            let mean = all.iter().sum::<f64>() / 20_000.0;
            let variance = all.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
            let scale = if elem.is_float() { 1.0 } else { 16.0 };
            assert!(mean.abs() < 0.2 && (variance / scale - 1.0).abs() < 0.05, "{}: {mean} {variance}", elem.name());
        }
    }

    #[test]
    fn whole_numbers_are_thin_where_sums_must_stay_small() {
        let dense = values(Elem::F16, Contents::whole(4096, 2f64.powi(24)));
        assert!(dense.iter().all(|x| x.abs() <= 4.0 && x.fract() == 0.0));
        assert!(dense.contains(&4.0) && dense.iter().filter(|x| **x == 0.0).count() < 4000);
        // In f16 the sums of 8192 products must stay below 2^11.
        let thin = Contents::whole(8192, 2f64.powi(11));
        let (a, b) = (values(Elem::F16, thin), elements(Elem::F16, 20_000, 2, "B", thin));
        let sum: f64 = (0..8192).map(|i| (a[i] * data::get(Elem::F16, &b, i)).abs()).sum();
        assert!(sum < 2048.0 && sum > 100.0, "{sum}");
    }

    #[test]
    fn contents_depend_on_seed_and_name_alone() {
        let some = |seed, name| elements(Elem::F32, 600_000, seed, name, Contents::Normal);
        assert!(some(1, "A") == some(1, "A") && some(1, "A") != some(2, "A") && some(1, "A") != some(1, "B"));
    }
}

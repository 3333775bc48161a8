//! Reproducible contents of tensors, and elements as bytes.

use crate::console::clock::Clock;
pub use crate::contract::encode::{decode, element, encode, encode_number, get, get_exact, set, set_exact, set_word};
pub(crate) use crate::contract::encode::{numbers, word};
use crate::run::bind::TensorPlan;
use tilec_ir::numerics::cast::has_negatives;
use tilec_ir::types::Elem;
pub(crate) use tilec_launch::simulator::PIECE;
pub use tilec_launch::simulator::POISON;

/// Bytes of poison after every tensor, so that a write past its end is seen.
pub const GUARD_BYTES: usize = 1024;

/// The contents of inputs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// Integers from `-limit` to `limit`: sums of products stay exact, so that results can be compared exactly.
    Int {
        /// Largest magnitude.
        limit: u32,
    },
    /// About normally distributed around 0 with variance 1, rounded to the element type.
    Normal,
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed and a name, so that tensors differ and none depends on the others.
    pub fn new(seed: u64, name: &str) -> Random {
        let mut random = Random(seed);
        for byte in name.bytes() {
            random.0 = random.next_u64() ^ u64::from(byte);
        }
        random
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`, all about equally likely.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        u64::try_from((u128::from(self.next_u64()) * u128::from(n)) >> 64).expect("less than n")
    }

    /// A random number of this kind that the type can represent; for scales, which have neither sign nor zero, one
    /// near 1.
    pub fn of_type(&mut self, elem: Elem, data: Data) -> f64 {
        let x = self.number(data, !has_negatives(elem));
        if elem == Elem::UE8M0 { scale_near(x) } else { x }
    }

    /// A number of the kind requested; `unsigned`: not negative.
    pub fn number(&mut self, data: Data, unsigned: bool) -> f64 {
        match data {
            Data::Int { limit } if unsigned => self.below(u64::from(limit) + 1) as f64,
            Data::Int { limit } => self.below(2 * u64::from(limit) + 1) as f64 - f64::from(limit),
            Data::Normal => {
                // Twelve uniform numbers have variance 1 together; their sum needs no function that differs between hosts.
                let sum: u64 = (0..12).map(|_| self.next_u64() >> 32).sum();
                sum as f64 / f64::from(u32::MAX) - 6.0
            }
        }
    }
}

/// The size of a number that was drawn as a scale, which is at least one where numbers are whole.
pub(crate) fn scale_near(x: f64) -> f64 {
    if x.fract() == 0.0 { x.abs().max(1.0) } else { x.abs().max(0.25) }
}

/// The memory of a tensor: every element random, gaps between them and the guard after them poison. If the clock has no time for it,
/// elements are poison too, or bytes are missing.
pub fn filled(plan: &TensorPlan, seed: u64, data: Data, clock: &mut Clock) -> Vec<u8> {
    let mut bytes = poisoned(plan, clock);
    if bytes.len() < length(plan) {
        return bytes;
    }
    let mut random = Random::new(seed, &plan.name);
    clock.begin(format!("filling `{}`", plan.name), plan.count());
    plan.while_each(|_, offset| {
        set(plan.elem, &mut bytes, offset, random.of_type(plan.elem, data));
        clock.more()
    });
    bytes
}

/// Bytes of a tensor with its guard.
fn length(plan: &TensorPlan) -> usize {
    usize::try_from(plan.bytes()).expect("the size was checked") + GUARD_BYTES
}

/// The memory of a tensor with its guard, all poison: as much of it as the clock has time for, since memory that is touched first takes a
/// second for each of a few gigabytes.
pub fn poisoned(plan: &TensorPlan, clock: &mut Clock) -> Vec<u8> {
    let all = length(plan);
    clock.begin(format!("making room for `{}`", plan.name), all as u64);
    let mut bytes = Vec::with_capacity(all);
    while bytes.len() < all {
        let piece = PIECE.min(all - bytes.len());
        if !clock.more_of(piece) {
            break;
        }
        bytes.resize(bytes.len() + piece, POISON);
    }
    bytes
}

/// The memory of a tensor whose elements are `packed`: raw bytes in row-major order of the index, without gaps. `None`: those
/// are not as many bytes as the elements have. If the clock has no time for it, elements or bytes are missing.
pub fn unpacked(plan: &TensorPlan, packed: &[u8], clock: &mut Clock) -> Option<Vec<u8>> {
    if u64::try_from(packed.len()).ok()? != plan.elem.bytes_of(plan.count()) {
        return None;
    }
    let mut bytes = poisoned(plan, clock);
    if bytes.len() < length(plan) {
        return Some(bytes);
    }
    let mut next = 0;
    clock.begin(format!("filling `{}`", plan.name), plan.count());
    plan.while_each(|_, offset| {
        set_word(plan.elem, &mut bytes, offset, word(plan.elem, packed, next));
        next += 1;
        clock.more()
    });
    Some(bytes)
}

/// The elements of a tensor in memory, in the form that [`unpacked`] takes.
pub fn packed(plan: &TensorPlan, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; plan.elem.bytes_of(plan.count()) as usize];
    let mut next = 0;
    plan.for_each(|_, offset| {
        set_word(plan.elem, &mut out, next, word(plan.elem, bytes, offset));
        next += 1;
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use tilec_ir::types::Elem;

    fn clock() -> Clock {
        Clock::new(std::time::Duration::from_secs(3600), false)
    }

    fn plan(elem: Elem) -> TensorPlan {
        TensorPlan {
            reads_gaps: false,
            name: "A".to_owned(),
            elem,
            access: Access::Read,
            shape: vec![8, 9],
            strides: vec![10, 1],
            modes: vec![1, 1],
            span: 79,
            pointers: false,
        }
    }

    #[test]
    fn values_come_back() {
        for &elem in Elem::ALL {
            let mut bytes = vec![0; 16];
            for x in if elem == Elem::UE8M0 { [0.5, 1.0, 4.0] } else { [0.0, 1.0, 3.0] } {
                set(elem, &mut bytes, 1, x);
                assert_eq!(get(elem, &bytes, 1), x, "{}", elem.name());
            }
            if has_negatives(elem) {
                set(elem, &mut bytes, 1, -2.0);
                assert_eq!(get(elem, &bytes, 1), -2.0, "{}", elem.name());
            }
        }
    }

    #[test]
    fn files_are_row_major_whatever_the_strides() {
        let by_columns = TensorPlan { shape: vec![2, 3], strides: vec![1, 4], span: 10, ..plan(Elem::U8) };
        let bytes = unpacked(&by_columns, &[1, 2, 3, 4, 5, 6], &mut clock()).expect("six elements");
        assert_eq!(bytes[..10], [1, 4, POISON, POISON, 2, 5, POISON, POISON, 3, 6]);
        assert_eq!(packed(&by_columns, &bytes), [1, 2, 3, 4, 5, 6]);
        let nibbles = TensorPlan { elem: Elem::U4, ..by_columns.clone() };
        let bytes = unpacked(&nibbles, &[0x21, 0x43, 0x65], &mut clock()).expect("six elements");
        assert_eq!(bytes[..5], [0x41, 0xff, 0x52, 0xff, 0x63]);
        assert_eq!(packed(&nibbles, &bytes), [0x21, 0x43, 0x65]);
        assert!(unpacked(&by_columns, &[0; 5], &mut clock()).is_none());
        assert!(unpacked(&by_columns, &[0; 7], &mut clock()).is_none());
    }

    #[test]
    fn poison_is_not_a_number() {
        for &elem in Elem::ALL.iter().filter(|e| e.is_float()) {
            let has_nan = tilec_ir::numerics::float_format(elem).is_some_and(|format| format.has_nan());
            assert_eq!(get(elem, &[POISON; 8], 0).is_nan(), has_nan, "{}", elem.name());
        }
    }

    #[test]
    fn contents_depend_on_seed_and_name_alone() {
        let data = Data::Int { limit: 4 };
        let a = filled(&plan(Elem::F16), 1, data, &mut clock());
        assert_eq!(a, filled(&plan(Elem::F16), 1, data, &mut clock()));
        assert_ne!(a, filled(&plan(Elem::F16), 2, data, &mut clock()));
        assert_ne!(a, filled(&TensorPlan { name: "B".to_owned(), ..plan(Elem::F16) }, 1, data, &mut clock()));
        assert!(get(Elem::F16, &a, 9).is_nan(), "gaps stay poison");
    }

    /// A file may declare more elements than anybody has time for, all at one address.
    #[test]
    fn filling_ends_with_the_time() {
        let many = TensorPlan { shape: vec![1 << 40, 1 << 20], strides: vec![0, 0], span: 1, ..plan(Elem::F32) };
        let mut clock = Clock::new(std::time::Duration::ZERO, false);
        assert_eq!(filled(&many, 1, Data::Int { limit: 4 }, &mut clock).len(), 4 + GUARD_BYTES);
        assert!(clock.check().is_err());
        // Of a large tensor no page is touched.
        let large =
            TensorPlan { shape: vec![1 << 28], strides: vec![1], modes: vec![1], span: 1 << 28, ..plan(Elem::F32) };
        let mut clock = Clock::new(std::time::Duration::ZERO, false);
        assert!(filled(&large, 1, Data::Normal, &mut clock).is_empty() && clock.check().is_err());
        assert!(poisoned(&large, &mut clock).is_empty());
    }

    #[test]
    fn data_has_the_range_it_says() {
        let mut random = Random::new(0, "x");
        let mut seen = [false; 9];
        for _ in 0..1000 {
            let x = random.number(Data::Int { limit: 4 }, false);
            assert!(x.abs() <= 4.0 && x.fract() == 0.0);
            seen[(x + 4.0) as usize] = true;
            assert!((0.0..=4.0).contains(&random.number(Data::Int { limit: 4 }, true)));
        }
        assert!(seen.iter().all(|s| *s));
        let normal: Vec<f64> = (0..4000).map(|_| random.number(Data::Normal, false)).collect();
        let mean = normal.iter().sum::<f64>() / 4000.0;
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / 4000.0;
        assert!(mean.abs() < 0.1 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }
}

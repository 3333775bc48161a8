//! Operands of matrix products, a class of data to a set.
//!
//! Accumulators, and the sizes of products, are chosen for the classes so that alignment, cancellation, rounding and
//! the ends of the formats decide results, which random bits hardly ever do.

use super::operand::{Elem, Float, Width};
use super::probe::{Probe, Product};
use super::values::{float, narrow};
use crate::problem::Random;

/// Classes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Sizes near one.
    Normal,
    /// Exponents far apart.
    Wide,
    /// Any bits: NaN, infinities, everything.
    Bits,
    /// Subnormal inputs, tiny accumulators.
    Subnormal,
    /// One operand subnormal, the other normal.
    HalfSubnormal,
    /// Products that cancel in pairs, exactly or but for the last bits.
    Cancel,
    /// Products and accumulators at the lower end of the accumulator's format.
    Tiny,
    /// The upper end.
    Huge,
    /// Mostly zeros of both signs.
    Zeros,
    /// Few bits set: ties where results are rounded.
    Ties,
    /// Small integers.
    Integers,
    /// Normal numbers with a NaN, an infinity or a largest number here and there.
    Specials,
    /// Few products that are not zero.
    Sparse,
    /// One exponent is large; the others are where bits are truncated.
    Cut,
}

/// Every class, with its name.
pub const CLASSES: [(Class, &str); 14] = [
    (Class::Normal, "normal"),
    (Class::Wide, "wide"),
    (Class::Bits, "bits"),
    (Class::Subnormal, "subnormal"),
    (Class::HalfSubnormal, "half-subnormal"),
    (Class::Cancel, "cancel"),
    (Class::Tiny, "tiny"),
    (Class::Huge, "huge"),
    (Class::Zeros, "zeros"),
    (Class::Ties, "ties"),
    (Class::Integers, "integers"),
    (Class::Specials, "specials"),
    (Class::Sparse, "sparse"),
    (Class::Cut, "cut"),
];

/// The class of a set.
pub fn class(set: u64) -> usize {
    (set % CLASSES.len() as u64) as usize
}

/// What the elements of one operand of one set are drawn from.
#[derive(Clone, Copy)]
struct Source {
    elem: Elem,
    class: Class,
    /// The middle of the exponents, and how far they go on either side.
    exponent: i64,
    spread: i64,
    /// One in so many elements is not zero.
    one_in: u64,
    /// The accumulator.
    sum: bool,
}

impl Source {
    fn draw(&self, random: &mut Random) -> u64 {
        match self.elem {
            Elem::Float(f) => self.float(f, random),
            Elem::Int(bits) => self.int(random) & (u64::MAX >> (64 - bits)),
            _ => self.int(random),
        }
    }

    fn float(&self, f: Float, random: &mut Random) -> u64 {
        let negative = random.below(2) == 1;
        if self.one_in > 1 && random.below(self.one_in) != 0 {
            let sign = if self.class == Class::Zeros { negative } else { random.below(8) == 0 };
            return f.make(sign, -5000, 0);
        }
        let exponent = self.exponent + random.between(-self.spread, self.spread);
        let fraction = match self.class {
            Class::Ties => 1u64 << random.below(u64::from(f.fraction)) & random.bits(),
            _ => random.bits(),
        };
        let ignored = if f.ignored > 0 { random.bits() & ((1 << f.ignored) - 1) } else { 0 };
        match self.class {
            Class::Bits => random.bits() & (u64::MAX >> (64 - f.bits())),
            Class::Integers => {
                let top = if self.sum { 2048 } else { 1i64 << f.fraction.min(7) };
                narrow(f, random.between(-top, top) as f64)
            }
            Class::Specials if random.below(30) == 0 => {
                let infinity = ((1u64 << f.exponent) - 1) << f.fraction;
                let sign = u64::from(negative) << (f.exponent + f.fraction);
                let special =
                    random.of(&[infinity, infinity, infinity | 1, infinity - 1, infinity + (1 << f.fraction) - 1]);
                (special | sign) << f.ignored
            }
            Class::Normal if self.sum && random.below(8) == 0 => float(f, random),
            _ => f.make(negative, exponent, fraction) | ignored,
        }
    }

    fn int(&self, random: &mut Random) -> u64 {
        let ends: &[u64] = if self.sum {
            &[0x7fff_ffff, 0x8000_0000, 0x7fff_fff0, 0x8000_0010, 0x7fff_0000, 0x8001_0000, 0, 0xffff_ffff]
        } else {
            &[0x80, 0x7f, 0xff, 0x81, 0, 1, 0xfe]
        };
        let bits = random.bits();
        let value = match self.class {
            Class::Huge | Class::Tiny | Class::Specials | Class::Cut => random.of(ends),
            Class::Zeros | Class::Sparse if random.below(4) != 0 => 0,
            Class::Integers | Class::Normal if self.sum => random.between(-100_000, 100_000) as u64,
            Class::Integers | Class::Normal => random.between(-4, 4) as u64,
            // Near an end, from either side.
            Class::Wide | Class::Ties if self.sum => {
                random.of(ends).wrapping_add_signed(random.between(-70_000, 70_000))
            }
            _ => bits,
        };
        value & if self.sum { 0xffff_ffff } else { 0xff }
    }
}

/// A, B and C of a set of this class.
fn sources(product: &Product, class: Class, random: &mut Random) -> [Source; 3] {
    let [a, b, c, _] = product.elems;
    let mut list = [a, b, c].map(|elem| Source { elem, class, exponent: 0, spread: 2, one_in: 1, sum: false });
    list[2].sum = true;
    let (Elem::Float(fa), Elem::Float(fb), Elem::Float(fc)) = (a, b, c) else { return list };
    let lowest = |f: Float| 1 - f.bias() - i64::from(f.fraction);
    // Exponents of A and B whose sum is near `product`.
    let split = |list: &mut [Source; 3], product: i64, random: &mut Random| {
        let (low, high) = (lowest(fa).max(product - fb.bias()), fa.bias().min(product - lowest(fb)));
        let middle = if low <= high { random.between(low, high) } else { product / 2 };
        (list[0].exponent, list[1].exponent) = (middle, product - middle);
    };
    // Results that matter end here.
    let floor = lowest(fc);
    let top = fc.bias();
    match class {
        Class::Normal | Class::Integers | Class::Specials | Class::Bits => {
            list[2].spread = 4;
        }
        Class::Wide => {
            list[0].spread = fa.bias().min(20);
            list[1].spread = fb.bias().min(20);
            list[2].spread = fc.bias().min(40);
        }
        Class::Subnormal => {
            (list[0].exponent, list[0].spread) = (-fa.bias() - i64::from(fa.fraction) / 2, i64::from(fa.fraction) / 2);
            (list[1].exponent, list[1].spread) = (-fb.bias() - i64::from(fb.fraction) / 2, i64::from(fb.fraction) / 2);
            let near = (list[0].exponent + list[1].exponent).max(floor);
            (list[2].exponent, list[2].spread) = (near, 12);
        }
        Class::HalfSubnormal => {
            let i = random.below(2) as usize;
            let f = if i == 0 { fa } else { fb };
            (list[i].exponent, list[i].spread) = (-f.bias() - i64::from(f.fraction) / 2, i64::from(f.fraction) / 2);
            (list[1 - i].exponent, list[1 - i].spread) = (random.between(-3, 6), 3);
            (list[2].exponent, list[2].spread) = (list[i].exponent + list[1 - i].exponent, 8);
        }
        Class::Cancel => {
            list[0].spread = random.between(0, 4);
            list[2].exponent = random.of(&[-5000, -30, -20, -12, -6, 0]);
        }
        Class::Tiny => {
            split(&mut list, random.between(floor - 10, floor + 30), random);
            list[0].spread = random.between(0, 3);
            list[1].spread = random.between(0, 3);
            (list[2].exponent, list[2].spread) = (random.between(floor - 1, floor + 30), random.between(0, 4));
            list[2].one_in = random.of(&[1, 1, 2, 1000]);
        }
        Class::Huge => {
            let reach = (fa.bias() + fb.bias()).min(top + 2);
            split(&mut list, random.between(reach - 6, reach), random);
            (list[0].spread, list[1].spread) = (1, 1);
            (list[2].exponent, list[2].spread) = (random.between(top - 4, top), 1);
        }
        Class::Zeros => {
            (list[0].one_in, list[1].one_in) = (random.of(&[3, 8, 1000]), random.of(&[1, 4, 1000]));
            list[2].one_in = random.of(&[4, 1000]);
        }
        Class::Ties => {
            list[2].exponent = random.between(0, i64::from(fc.fraction) + 3);
            list[2].spread = random.between(0, 2);
            list[0].spread = random.between(0, 3);
        }
        Class::Sparse => {
            (list[0].one_in, list[0].spread) = (product.shape[2] as u64 / 2, 6);
            list[2].exponent = random.between(-26, 26);
            list[2].one_in = random.of(&[1, 2, 1000]);
        }
        Class::Cut => {
            list[0].spread = fa.bias().min(14);
            list[1].spread = fb.bias().min(13);
            list[2].exponent = random.between(-30, 30);
            list[2].spread = 2;
        }
    }
    list
}

/// Fills one set.
pub fn fill(probe: &Probe, product: &Product, set: u64, random: &mut Random, words: &mut [u32]) {
    let class = CLASSES[class(set)].0;
    let sources = sources(product, class, random);
    let [a, b, _] = product.registers;
    let mut at = 0;
    // Pairs that cancel are neighbours in k: in the same register, or in the next lane.
    let in_lane = random.below(2) == 0;
    let exact = random.of(&[1u64, 4, 1000]);
    for (i, operand) in probe.inputs.iter().enumerate() {
        let which = if i < a { 0 } else { usize::from(i >= a + b) + 1 };
        let mut lanes = [0u64; 32];
        let bits = operand.elem_bits();
        for lane in 0..32 {
            for e in 0..operand.per {
                let mut value = sources[which].draw(random);
                if class == Class::Cancel && which < 2 {
                    let paired = if in_lane && operand.per > 1 {
                        (e % 2 == 1).then(|| lanes[lane] >> (bits * (e as u32 - 1)))
                    } else {
                        (lane % 2 == 1).then(|| lanes[lane - 1] >> (bits * e as u32))
                    };
                    if let Some(other) = paired {
                        value = other & (u64::MAX >> (64 - bits));
                        if which == 0 {
                            value = match operand.elem {
                                Elem::Float(_) => value ^ 1 << (bits - 1),
                                _ => 0u64.wrapping_sub(value) & 0xff,
                            };
                        }
                        if random.below(exact + 1) == 0 {
                            value ^= random.below(4) << if let Elem::Float(f) = operand.elem { f.ignored } else { 0 };
                        }
                    }
                }
                lanes[lane] |= value << (bits * e as u32);
            }
        }
        for (lane, value) in lanes.into_iter().enumerate() {
            if operand.width == Width::B64 {
                words[at + 2 * lane] = value as u32;
                words[at + 2 * lane + 1] = (value >> 32) as u32;
            } else {
                words[at + lane] = value as u32;
            }
        }
        at += 32 * operand.width.words();
    }
}

//! Bit patterns worth trying, alone and in combinations.

use super::operand::{Elem, Float, Operand, Width};
use super::probe::Probe;
use crate::problem::Random;

/// Combinations of edge values that are all tried; longer lists are thinned.
const COMBINATIONS: usize = 300_000;

/// The edges of a float format: zeros, ends of the subnormals and normals, one and its neighbours, ties of integers, ends of
/// the integer types, infinity and NaNs, each with both signs.
pub fn float_edges(f: Float) -> Vec<u64> {
    let (one, unit) = ((f.bias() as u64) << f.fraction, 1u64 << f.fraction);
    let infinity = ((1u64 << f.exponent) - 1) << f.fraction;
    let mut list = vec![0, 1, 2, 3, unit - 2, unit - 1, unit, unit + 1, 2 * unit];
    for near in [one - unit, one, one + unit] {
        list.extend([near - 1, near, near + 1]);
    }
    list.extend([one + unit / 2, one + unit + unit / 4, one - 2 * unit, one + 2 * unit + 1]);
    let at =
        |exponent: i64| (exponent > -f.bias() && exponent <= f.bias()).then(|| f.make(false, exponent, 0) >> f.ignored);
    for exponent in [7, 8, 15, 16, 31, 32, 63, 64, 126, 127, -14, -15, -24, -25, -6, -7, -9, -10, -16, -17, -126, -127]
    {
        list.extend(at(exponent).into_iter().flat_map(|x| [x - 1, x, x + 1]));
    }
    // Where integers end and halves begin.
    let whole = i64::from(f.fraction);
    list.extend([whole - 1, whole, whole + 1].into_iter().filter_map(at).flat_map(|x| [x - 1, x, x + 1, x + 3]));
    // Ends of the narrower formats.
    let narrow =
        [0x477f_e000u32, 0x477f_efff, 0x477f_f000, 0x43e0_0000, 0x43e8_0000, 0x4760_0000, 0x4770_0000, 0x7f7f_8000];
    if f == Float::F32 {
        list.extend(narrow.map(u64::from));
    } else if f == Float::F64 {
        list.extend(narrow.map(|x| f64::from(f32::from_bits(x)).to_bits()));
        list.extend([0x47ef_ffff_e000_0000, 0x47ef_ffff_f000_0000, 0x36a0_0000_0000_0000, 0x3690_0000_0000_0000]);
        // What rounds to the smallest normal f32, with and without a bound on exponents.
        for at in [0x380f_ffff_e000_0000, 0x380f_ffff_f000_0000, 0x3810_0000_0000_0000] {
            list.extend([at - 1, at, at + 1]);
        }
    }
    list.extend([infinity - unit, infinity - 2, infinity - 1, infinity, infinity + 1, infinity + unit / 2]);
    list.extend([infinity + unit / 2 + 1, infinity + unit - 1]);
    let sign = 1u64 << (f.exponent + f.fraction);
    let mut list: Vec<u64> = list.into_iter().flat_map(|x| [x, x | sign]).map(|x| x << f.ignored).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// The edges of integers of `bits` bits.
pub fn int_edges(bits: u32) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    let mut list: Vec<u64> = (0..=34).chain([63, 64, 65, 100, 127, 128, 129, 255, 256]).collect();
    for at in [8, 15, 16, 24, 31, 32, 53, 62, 63] {
        list.extend([(1u64 << at) - 1, 1 << at, (1 << at) + 1, 0u64.wrapping_sub(1 << at), !(1 << at)]);
    }
    list.extend([u64::MAX, u64::MAX - 1, u64::MAX / 3, u64::MAX / 3 * 2, 0x0123_4567_89ab_cdef, 0x8080_8080_8080_8080]);
    let mut list: Vec<u64> = list.into_iter().map(|x| x & mask).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// A number of any kind, specials rarely.
pub fn float(f: Float, random: &mut Random) -> u64 {
    let fraction = random.bits();
    let negative = random.below(2) == 1;
    let mid = i64::from(f.fraction);
    let low = -f.bias();
    let field = |exponent| f.make(negative, exponent, fraction);
    match random.below(16) {
        0..=2 => random.bits() & (u64::MAX >> (64 - f.bits())),
        3..=5 => field(random.between(-3, 3)),
        6 => field(random.between(-mid - 3, mid + 3)),
        7 => field(random.between(low - mid, low)),
        8 => field(random.between(low, low + mid + 4)),
        9 => field(random.between(f.bias() - 4, f.bias())),
        10 => {
            // Few bits set.
            let sparse = 1u64 << random.below(u64::from(f.fraction)) | 1u64 << random.below(u64::from(f.fraction));
            f.make(negative, random.between(-mid, mid), sparse)
        }
        11..=13 => {
            // At, or next to, the middle between two values of a shorter format.
            let cut = random.between(1, mid);
            let tail = (1u64 << (cut - 1)).wrapping_add_signed(random.between(-1, 1));
            let short = (fraction >> cut << cut) + tail;
            let exponent = if random.below(2) == 0 { random.between(-3, 20) } else { random.between(-30, 18) };
            f.make(negative, exponent, short)
        }
        14 => {
            // An integer, a half, a quarter.
            let bits = random.below(17).min(u64::from(f.fraction) + 1);
            let n = random.below(1 << bits);
            let quarters = f64::from(n as u32) / 4.0;
            narrow(f, if negative { -quarters } else { quarters })
        }
        _ => random.of(&[0, 1u64 << (f.exponent + f.fraction)]) << f.ignored,
    }
}

/// `x` in the format, cut off.
pub fn narrow(f: Float, x: f64) -> u64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64 - 1023;
    let fraction = (bits & ((1 << 52) - 1)) >> (52 - f.fraction);
    if x == 0.0 { f.make(x.is_sign_negative(), -5000, 0) } else { f.make(x.is_sign_negative(), exponent, fraction) }
}

/// The value of bits that are no special.
pub fn widen(f: Float, bits: u64) -> f64 {
    let bits = bits >> f.ignored;
    let fraction = bits & ((1 << f.fraction) - 1);
    let biased = (bits >> f.fraction & ((1 << f.exponent) - 1)) as i64;
    let sign = if bits >> (f.exponent + f.fraction) & 1 == 1 { -1.0 } else { 1.0 };
    if f.exponent == 11 {
        return f64::from_bits(bits);
    }
    let (significand, exponent) =
        if biased == 0 { (fraction, 1 - f.bias()) } else { (fraction | 1 << f.fraction, biased - f.bias()) };
    sign * significand as f64 * 2f64.powi((exponent - i64::from(f.fraction)) as i32)
}

/// An integer of any kind.
fn int(bits: u32, random: &mut Random) -> u64 {
    let x = random.bits();
    let value = match random.below(10) {
        0..=3 => x,
        4 | 5 => x % 80,
        6 => 0u64.wrapping_sub(x % 80),
        7 => 1u64.rotate_left(x as u32).wrapping_add_signed(random.between(-2, 2)),
        8 => x >> random.below(64),
        _ => x & random.bits() & random.bits(),
    };
    value & (u64::MAX >> (64 - bits))
}

fn element(elem: Elem, random: &mut Random) -> u64 {
    match elem {
        Elem::Int(bits) => int(bits, random),
        Elem::Float(f) => float(f, random),
        Elem::Few => random.of(&[0, 1, 0x8000_0000, 0x1_0000_0000]),
        Elem::Lane => random.below(64) | random.below(32) << 8,
        Elem::AllLanes => 0xffff_ffff,
        Elem::Members | Elem::Truth => random.below(2),
    }
}

/// Operands that belong together: sums and products that cancel, or equal values.
fn related(elems: &[Elem], random: &mut Random) -> Vec<u64> {
    let mut values: Vec<u64> = elems.iter().map(|e| element(*e, random)).collect();
    let shape = random.below(8);
    match elems {
        [Elem::Float(f), Elem::Float(g)] if f == g && shape < 3 => {
            let sign = 1u64 << (f.exponent + f.fraction) << f.ignored;
            values[1] = match shape {
                0 => values[0] ^ sign,
                1 => (values[0] ^ sign).wrapping_add_signed(random.between(-4, 4)) & (sign | (sign - 1)),
                _ => values[0],
            };
        }
        [Elem::Float(f), Elem::Float(g), Elem::Float(h)] if f == g && g == h && shape < 4 => {
            if shape < 2 {
                let near = |random: &mut Random| f.make(random.below(2) == 1, random.between(-6, 6), random.bits());
                (values[0], values[1]) = (near(random), near(random));
            }
            let product = -widen(*f, values[0]) * widen(*f, values[1]);
            if product.is_finite() {
                values[2] = narrow(*f, product).wrapping_add_signed(random.between(-1, 1) << f.ignored);
                values[2] &= u64::MAX >> (64 - f.bits());
            }
        }
        [Elem::Int(_), Elem::Int(_), ..] if shape == 0 => values[1] = values[0],
        _ => {}
    }
    values
}

/// The edge values of every input and the strides with which a counter runs through all combinations.
pub struct Edges {
    lists: Vec<Vec<u64>>,
    /// How many combinations there are.
    pub combinations: u64,
}

impl Edges {
    /// Those of a probe.
    pub fn of(probe: &Probe) -> Edges {
        let mut lists: Vec<Vec<u64>> = probe
            .inputs
            .iter()
            .map(|input| match input.elem {
                _ if probe.inputs.len() == 1 && input.width == Width::B16 => (0..0x1_0000).collect(),
                Elem::Float(f) => float_edges(f),
                Elem::Int(bits) => int_edges(bits),
                Elem::Truth => vec![0, 1],
                Elem::Few | Elem::Lane | Elem::AllLanes | Elem::Members => Vec::new(),
            })
            .collect();
        if probe.product.is_some() || lists.iter().any(Vec::is_empty) {
            return Edges { lists: Vec::new(), combinations: 0 };
        }
        let count = |lists: &[Vec<u64>]| lists.iter().map(Vec::len).product::<usize>();
        while count(&lists) > COMBINATIONS {
            // Every third value of the longest list goes.
            if let Some(longest) = lists.iter_mut().max_by_key(|l| l.len()) {
                let mut i = 0;
                longest.retain(|_| {
                    i += 1;
                    i % 3 != 2
                });
            }
        }
        let combinations = if lists.is_empty() { 0 } else { count(&lists) as u64 };
        Edges { lists, combinations }
    }

    fn get(&self, input: usize, number: u64) -> u64 {
        let stride: usize = self.lists[..input].iter().map(Vec::len).product();
        self.lists[input][number as usize / stride % self.lists[input].len()]
    }
}

/// Fills one set: 32 threads, of which the first of all sets run through the edges.
pub fn fill(probe: &Probe, edges: &Edges, set: u64, random: &mut Random, words: &mut [u32]) {
    let inputs = &probe.inputs;
    let parts = inputs.iter().map(|o| o.per).max().unwrap_or(1);
    let members = random.bits() as u32 | 1 << random.below(32);
    for lane in 0..32u64 {
        let number = 32 * set + lane;
        let mut values = vec![0u64; inputs.len()];
        for part in 0..parts {
            let elems: Vec<Elem> = inputs.iter().map(|o| o.elem).collect();
            let mut tuple = related(&elems, random);
            if part == 0 && number < edges.combinations {
                for (i, value) in tuple.iter_mut().enumerate() {
                    *value = edges.get(i, number);
                }
            }
            for (i, input) in inputs.iter().enumerate() {
                if part < input.per {
                    values[i] |= tuple[i] << (part as u32 * input.elem_bits() % 64);
                }
            }
        }
        place(inputs, &values, lane as usize, words, members);
    }
}

fn place(inputs: &[Operand], values: &[u64], lane: usize, words: &mut [u32], members: u32) {
    let mut at = 0;
    for (input, value) in inputs.iter().zip(values) {
        let value = if input.elem == Elem::Members { u64::from(members) } else { *value };
        match input.width {
            Width::B64 => {
                words[at + 2 * lane] = value as u32;
                words[at + 2 * lane + 1] = (value >> 32) as u32;
            }
            Width::Pred | Width::B16 | Width::B32 => words[at + lane] = value as u32,
        }
        at += 32 * input.width.words();
    }
}

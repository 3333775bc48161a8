//! `round_random`: the interpreter and compiled programs against the two neighbours of a number among all numbers of a type.

use crate::conversions::{TILE, interpreted, promise, simulated};
use crate::number::Format;
use crate::problem::Random;
use tilec::Target;
use tilec_ir::interp::Number;
use tilec_ir::numerics::philox;
use tilec_ir::types::Elem;

/// Numbers that are tried.
const COUNT: usize = 8 * TILE;
/// The parts of words, alternating: extremes, addends of halves, and random ones.
const WORDS: [u32; 4] = [0, u32::MAX, 1 << 31, (1 << 31) - 1];

/// The numbers of a type that are not below zero, in order, and one more as if it went on.
fn numbers(elem: Elem) -> Vec<f64> {
    let format = Format::from_name(elem.name()).unwrap();
    let encodings = match elem {
        Elem::TF32 => (0..1u32 << 18).map(|i| i << 13).collect::<Vec<u32>>(),
        _ => (0..1 << (elem.bits() - 1)).collect(),
    };
    let mut all: Vec<f64> =
        encodings.iter().map(|i| format.decode(&i.to_le_bytes())).filter(|x| x.is_finite()).collect();
    assert!(all.is_sorted() && all[0] == 0.0, "{}", elem.name());
    let [.., a, b] = all[..] else { panic!("{}", elem.name()) };
    all.push(b + (b - a));
    all
}

/// What a number becomes by a word.
fn rounded(elem: Elem, numbers: &[f64], x: f32, word: u32) -> f64 {
    let (size, end) = (f64::from(x).abs(), numbers[numbers.len() - 1]);
    let saturates = elem.bits() <= 8;
    if x.is_nan() {
        return if elem == Elem::E2M1 { 6.0 } else { f64::NAN };
    }
    let near = if size >= end {
        end
    } else {
        let above = numbers.partition_point(|&y| y <= size);
        let (low, high) = (numbers[above - 1], numbers[above]);
        let part = ((size - low) / (high - low) * 2f64.powi(32)).floor();
        if part + f64::from(word) >= 2f64.powi(32) { high } else { low }
    };
    let beyond = if saturates { numbers[numbers.len() - 2] } else { f64::INFINITY };
    (if near >= end { beyond } else { near }).copysign(f64::from(x))
}

/// Numbers at eighths between two neighbours, numbers of any bits, and special ones.
fn inputs(numbers: &[f64]) -> Vec<f32> {
    let mut random = Random(3);
    let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45];
    (0..COUNT)
        .map(|i| match i % 4 {
            0 => f32::from_bits(random.bits() as u32),
            1 if i < 4 * special.len() * WORDS.len() * 2 => special[i / 4 % special.len()],
            n => {
                let at = random.bits() as usize % (numbers.len() - 1);
                let eighth = (random.bits() % 8) as f64 / 8.0;
                let x = numbers[at] + (numbers[at + 1] - numbers[at]) * eighth;
                if n == 2 { x as f32 } else { -x as f32 }
            }
        })
        .collect()
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn numbers_become_one_of_their_neighbours_as_words_say() {
    for elem in [Elem::BF16, Elem::F16, Elem::TF32, Elem::E4M3, Elem::E5M2, Elem::E2M1] {
        let (t, promise) = (elem.name(), promise(elem));
        let source = format!(
            "kernel f(X: gmem f32[N], Y: gmem {t}[N]{promise}) grid (b: ceildiv(N, {TILE})) {{
                var x = reg f32[{TILE}]
                copy X[b * {TILE}..] -> x
                let p = b * {TILE} + iota(x, 0)
                let q = p % 7
                let ends = select(q == 0, {}, {})
                let halves = select(q == 2, {}, {})
                let w = select(q < 2, ends, select(q < 4, halves, random(5, p)))
                copy round_random<{t}>(x, w) -> Y[b * {TILE}..]
            }}",
            "cast<u32>(0)", "cast<u32>(4294967295)", "cast<u32>(2147483648)", "cast<u32>(2147483647)",
        );
        let numbers = numbers(elem);
        let xs = inputs(&numbers);
        let bits: Vec<u64> = xs.iter().map(|x| u64::from(x.to_bits())).collect();
        let word = |i: usize| WORDS.get(i % 7).copied().unwrap_or_else(|| philox::random(5, i as u64));
        let exact: Vec<f64> = xs.iter().enumerate().map(|(i, &x)| rounded(elem, &numbers, x, word(i))).collect();
        let check = |who: &str, got: &[Number]| {
            for (i, got) in got.iter().enumerate() {
                let (x, word) = (xs[i], word(i));
                assert!(same(got.to_f64(), exact[i]), "{who}, {t}: {x:e} by {word:#x} is {got}, not {:e}", exact[i]);
            }
        };
        check("the interpreter", &interpreted(&source, (Elem::F32, elem), &bits));
        for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
            check(target.name(), &simulated(&source, target, (Elem::F32, elem), &bits));
        }
    }
}

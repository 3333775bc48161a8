//! Functions of two numbers: powers against `f64`, and random words against their definition, in the interpreter and in compiled code on the simulator.

use crate::conversions::{TILE, interpreted, simulated};
use crate::problem::Random;
use tilec::{CompileOptions, Target};
use tilec_ir::interp::Number;
use tilec_ir::numerics::philox;
use tilec_ir::types::Elem;

const F32: (Elem, Elem) = (Elem::F32, Elem::F32);

/// `pow(x, y)` of pairs of numbers, which fill whole tiles.
fn powers(pairs: &[(f32, f32)], target: Option<Target>) -> Vec<f32> {
    let half = pairs.len().next_multiple_of(TILE);
    let at = |i: usize| pairs[i % pairs.len()];
    let all = (0..half).map(|i| at(i).0).chain((0..half).map(|i| at(i).1));
    let input: Vec<u64> = all.map(|x| x.to_bits().into()).collect();
    let source = format!(
        "kernel f(X: gmem f32[N], Y: gmem f32[N]) where N % {TILE} == 0 grid (b: N / {TILE}) {{
            var x = reg f32[{TILE}]
            var y = reg f32[{TILE}]
            copy X[b * {TILE}..] -> x
            copy X[(b * {TILE} + N / 2) % N..] -> y
            copy pow(x, y) -> Y[b * {TILE}..]
        }}"
    );
    let out = match target {
        Some(target) => simulated(&source, target, F32, &input),
        None => interpreted(&source, F32, &input),
    };
    out[..pairs.len()].iter().map(|x| x.to_f64() as f32).collect()
}

/// Units in the last place of an f32 near a number.
fn ulp(x: f64) -> f64 {
    f64::from(f32::from_bits((x.abs() as f32).to_bits() + 1)) - f64::from(x.abs() as f32)
}

#[test]
fn powers_are_within_the_documented_error() {
    let mut random = Random(3);
    let mut fraction = || (random.bits() >> 40) as f32 / (1u32 << 24) as f32;
    let mut pairs = Vec::new();
    // Bases of all exponents, near one among them, and exponents that leave a finite power; numbers below the normal ones on both sides.
    for i in -149..=127 {
        for _ in 0..24 {
            let x = 2f32.powi(i) * (1.0 + fraction());
            let most = 150.0 / f64::from(x).log2().abs().max(1e-6);
            pairs.push((x, (most as f32).min(1e30) * (2.0 * fraction() - 1.0)));
        }
    }
    for i in 1..=24 {
        for _ in 0..64 {
            let x = 1.0 + 2f32.powi(-i) * (2.0 * fraction() - 1.0);
            let most = 150.0 / f64::from(x).log2().abs().max(1e-9);
            pairs.push((x, most as f32 * (2.0 * fraction() - 1.0)));
        }
    }
    for y in [2.0, 3.0, 0.5, -0.5, 2.4, 1.0 / 2.4, 10.0, -1.0] {
        pairs.extend((0..256).map(|_| (4.0 * fraction(), y)));
    }
    for target in [Target::Sm70, Target::Sm90a] {
        let mut worst = (0.0, (0.0, 0.0));
        for (&(x, y), got) in pairs.iter().zip(powers(&pairs, Some(target))) {
            let exact = f64::from(x).powf(f64::from(y));
            if exact > f64::from(f32::MAX) {
                assert!(got == f32::INFINITY || got == f32::MAX, "{x} {y}: {got}");
                continue;
            }
            let error = (f64::from(got) - exact).abs() / ulp(exact);
            if error > worst.0 {
                worst = (error, (x, y));
            }
        }
        assert!(worst.0 <= 2.0, "{}: {worst:?}", target.name());
    }
}

#[test]
fn powers_of_what_is_special_are_those_of_ieee() {
    let values = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        1e-40,
        1e38,
        8_388_609.0,
        16_777_216.0,
        3e9,
        0.999_999_94,
        1.000_000_1,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    let values: Vec<f32> = values.into_iter().flat_map(|x: f32| [x, -x]).collect();
    let pairs: Vec<(f32, f32)> = values.iter().flat_map(|&x| values.iter().map(move |&y| (x, y))).collect();
    let exact = |x: f32, y: f32| f64::from(x).powf(f64::from(y)) as f32;
    for target in [None, Some(Target::Sm70), Some(Target::Sm90a)] {
        for (&(x, y), got) in pairs.iter().zip(powers(&pairs, target)) {
            let want = exact(x, y);
            let near = (f64::from(got) - f64::from(want)).abs() <= 2.0 * ulp(want.into());
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            let special = !want.is_finite() || want == 0.0 || want.abs() == 1.0;
            assert!(same || (!special && near && got.signum() == want.signum()), "pow({x}, {y}) is {got}, not {want}");
        }
    }
}

/// A sequence's words as `e` names them, for elements `i` of a tensor of u64 that holds `input`.
fn random_words(e: &str, input: &[u64], target: Option<Target>) -> Vec<Number> {
    let source = format!(
        "kernel f(X: gmem u64[N], Y: gmem u32[N]) grid (b: ceildiv(N, {TILE})) {{
            var x = reg u64[{TILE}]
            copy X[b * {TILE}..] -> x
            copy {e} -> Y[b * {TILE}..]
        }}"
    );
    match target {
        Some(target) => simulated(&source, target, (Elem::U64, Elem::U32), input),
        None => interpreted(&source, (Elem::U64, Elem::U32), input),
    }
}

#[test]
fn random_words_are_those_of_their_definition() {
    let mut random = Random(11);
    let mut input: Vec<u64> = (0..2 * TILE).map(|_| random.bits()).collect();
    input[..6].copy_from_slice(&[0, 1, 2, 3, u64::MAX, u64::MAX - 4]);
    type Of = fn(u64, u64) -> (u64, u64);
    let rows: &[(&str, Of)] = &[
        ("random(7, x)", |_, x| (7, x)),
        ("random(x, 3)", |_, x| (x, 3)),
        ("random(x, b * 1024 + iota(x, 0))", |i, x| (x, i)),
        ("random(1234567890123, b * 1024 + iota(x, 0))", |i, _| (1_234_567_890_123, i)),
        ("random(7, iota(x, 0) + (b * 1024 + 5))", |i, _| (7, i + 5)),
        ("random(7, cast<u64>(b * 1024 + iota(x, 0)) + 17179869188)", |i, _| (7, i + 17_179_869_188)),
        ("random(7, cast<u64>(b * 1024 + iota(x, 0)) - 3)", |i, _| (7, i.wrapping_sub(3))),
        ("random(7, 5 - cast<u64>(iota(x, 0)) * 3)", |i, _| (7, 5u64.wrapping_sub(i % 1024 * 3))),
        ("random(-1, cast<i64>(iota(x, 0)) * 8 + 6)", |i, _| (u64::MAX, i % 1024 * 8 + 6)),
        ("random(cast<i32>(-2), iota(x, 0) - 7)", |i, _| (u64::MAX - 1, (i % 1024).wrapping_sub(7))),
        ("random(cast<u32>(x), cast<u32>(x) + 1)", |_, x| {
            let x = x.min(u64::from(u32::MAX)) as u32;
            (x.into(), x.wrapping_add(1).into())
        }),
        ("select(x == x, random(1, 2), 0)", |_, _| (1, 2)),
    ];
    for (e, of) in rows {
        for target in [None, Some(Target::Sm70), Some(Target::Sm90a)] {
            for (i, got) in random_words(e, &input, target).into_iter().enumerate() {
                let (seed, place) = of(i as u64, input[i]);
                let want = philox::random(seed, place);
                assert_eq!(got.to_i128(), i128::from(want), "{e}: element {i}, {:?}", target.map(Target::name));
            }
        }
    }
}

/// Four neighbours of a thread are the words of one counter: 18 products of rounds, and one in the first.
#[test]
fn neighbours_share_a_counter() {
    for e in
        ["b * 1024 + iota(x, 0)", "cast<u64>(b) * 1024 + cast<u64>(iota(x, 0))", "cast<u64>(b * 1024 + iota(x, 0)) + n"]
    {
        let source = format!(
            "kernel f(X: gmem f32[N], n: u64, Y: gmem u32[N]) where N % 1024 == 0 grid (b: N / 1024) schedule {{ threads 128 }} {{
                var x = reg f32[1024]
                copy X[b * 1024..] -> x
                copy random(1, {e}) + cast<u32>(x) -> Y[b * 1024..]
            }}"
        );
        let done = tilec::compile(&source, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e:?}"));
        let products = done.ptx.matches("mul.wide.u32").count();
        let counters = if e.ends_with('n') { 8 } else { 2 };
        assert!((19 * counters..19 * counters + 6).contains(&products), "{e}: {products}");
    }
}

#[test]
fn bytes_are_permuted_as_their_selector_says() {
    let mut random = Random(5);
    let input: Vec<u64> = (0..2 * TILE).map(|_| random.bits() & 0xffff_ffff).collect();
    // Bytes of the result by name: a to d are those of `x`, e to h those of `y`, from the lowest, and capitals their signs.
    let rows = [
        ("0x3210", "abcd"),
        ("0x7654", "efgh"),
        ("0x123", "dcba"),
        ("0x5410", "abef"),
        ("0xba98", "ABCD"),
        ("0xf7e6", "gGhH"),
        ("0x12340000", "aaaa"),
        ("0xfffc8", "AEHH"),
    ];
    for (elem, selector, bytes) in [Elem::U32, Elem::I32].into_iter().flat_map(|e| rows.map(|(s, b)| (e, s, b))) {
        let name = elem.name();
        let source = format!(
            "kernel f(X: gmem {name}[N], Y: gmem {name}[N]) where N % {TILE} == 0 grid (b: N / {TILE}) {{
                var x = reg {name}[{TILE}]
                var y = reg {name}[{TILE}]
                copy X[b * {TILE}..] -> x
                copy X[(b * {TILE} + N / 2) % N..] -> y
                copy permute_bytes(x, y, {selector}) -> Y[b * {TILE}..]
            }}"
        );
        let byte = |i: usize, name: u8| {
            let at = usize::from(name.to_ascii_lowercase() - b'a');
            let word = input[(i + at / 4 * TILE) % input.len()] as u32;
            let byte = word.to_le_bytes()[at % 4];
            if name.is_ascii_lowercase() { byte } else { 0u8.wrapping_sub(byte >> 7) }
        };
        for target in [None, Some(Target::Sm70), Some(Target::Sm90a)] {
            let got = match target {
                Some(target) => simulated(&source, target, (elem, elem), &input),
                None => interpreted(&source, (elem, elem), &input),
            };
            for (i, got) in got.into_iter().enumerate() {
                let want: Vec<u8> = bytes.bytes().map(|name| byte(i, name)).collect();
                assert_eq!((got.to_i128() as u32).to_le_bytes().to_vec(), want, "{name} {selector}: element {i}");
            }
        }
    }
}

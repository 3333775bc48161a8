//! Arithmetic on pairs of 16-bit floats gives what f32 and one rounding give, of all numbers of the type.

use crate::conversions::{TILE, interpreted, simulated};
use crate::number::{e2m1_value, exponent_value};
use tilec::{CompileOptions, Target};
use tilec_ir::interp::Number;
use tilec_ir::types::Elem;

/// `e` of `x`, all numbers of the type, `z`, the same in another order, and `w`, whole numbers of `whole`.
fn program(elem: Elem, whole: &str, e: &str) -> String {
    let t = elem.name();
    // All numbers of the type.
    let (count, least) = match whole {
        "i4" => (16, -8),
        "u4" => (16, 0),
        "i8" => (256, -128),
        _ => (256, 0),
    };
    format!(
        "kernel f(X: gmem {t}[N], Y: gmem {t}[N]) where N % {TILE} == 0 grid (b: N / {TILE}) {{
            var x = reg {t}[{TILE}]
            var z = reg {t}[{TILE}]
            var y = reg {t}[{TILE}]
            copy X[b * {TILE}..] -> x
            copy X[(b * {TILE} * 37 + {TILE} * 11) % N..] -> z
            let w = cast<{whole}>(iota(x, 0) * 7 % {count} + {least})
            var v = reg {whole}[{TILE}] = w
            copy {e} -> y
            copy y -> Y[b * {TILE}..]
        }}"
    )
}

fn same(a: &Number, b: &Number) -> bool {
    let (a, b) = (a.to_f64(), b.to_f64());
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn pairs_are_rounded_as_numbers_are() {
    let input: Vec<u64> = (0..1 << 16).collect();
    let of_all = [
        "(cast<f32>(v) - 3.0) * x",
        "x * cast<f32>(v)",
        "x * (2.0 - cast<f32>(v) * 3.0)",
        "cast<f32>(v) + 5.0",
        "cast<f32>(v) - 201.0",
        "(cast<f32>(v) - 129.0) * x",
    ];
    for elem in [Elem::F16, Elem::BF16] {
        let products = if elem == Elem::F16 { &["x * z", "z * x"][..] } else { &[] };
        for (whole, e) in
            ["i4", "u4", "i8", "u8"].iter().flat_map(|w| of_all.iter().chain(products).map(move |e| (w, e)))
        {
            let source = program(elem, whole, e);
            let wanted = interpreted(&source, (elem, elem), &input);
            for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
                let got = simulated(&source, target, (elem, elem), &input);
                for (i, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
                    assert!(
                        same(got, wanted),
                        "{} {whole} {e} on {}: element {i} is {got:?}, not {wanted:?}",
                        elem.name(),
                        target.name()
                    );
                }
            }
        }
    }
}

/// Each float of four bits times each scale: exact in bf16, but for what is beyond it.
#[test]
fn elements_of_blocks_times_their_scales_are_exact() {
    let input: Vec<u64> = (0..16 * 256).map(|i| i % 256).collect();
    let source = format!(
        "kernel f(X: gmem ue8m0[N], Y: gmem bf16[N]) where N % {TILE} == 0 grid (b: N / {TILE}) {{
            var x = reg ue8m0[{TILE}]
            copy X[b * {TILE}..] -> x
            var w = reg e2m1[{TILE}] = bitcast<e2m1>(cast<u4>((b * {TILE} + iota(x, 0)) / 256))
            copy cast<bf16>(cast<f32>(w) * cast<f32>(x)) -> Y[b * {TILE}..]
        }}"
    );
    let exact = |i: usize| {
        let product = e2m1_value((i / 256) as u8) * exponent_value((i % 256) as u8);
        Number::Float(if product.abs() >= 2f64.powi(128) { product * f64::INFINITY } else { product })
    };
    let types = (Elem::UE8M0, Elem::BF16);
    let of_source = interpreted(&source, types, &input);
    for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
        for (i, got) in simulated(&source, target, types, &input).iter().enumerate() {
            assert!(same(got, &exact(i)), "{}: element {i} is {got:?}, not {:?}", target.name(), exact(i));
            assert!(same(&of_source[i], &exact(i)), "the interpreter has {:?} for element {i}", of_source[i]);
        }
    }
}

#[test]
fn what_pairs_would_round_twice_is_computed_in_f32() {
    let ptx = |elem: Elem, e: &str| {
        let options = CompileOptions { target: Target::Sm90a, ..CompileOptions::default() };
        tilec::compile(&program(elem, "i8", e), &options).expect("it compiles").ptx
    };
    for (elem, op) in [(Elem::F16, "mul.rn.f16x2"), (Elem::BF16, "fma.rn.bf16x2")] {
        assert!(ptx(elem, "(cast<f32>(v) - 3.0) * x").contains(op), "{}: pairs are not used", elem.name());
        // A sum is rounded to f32 first; a product of large whole numbers has more digits than the type.
        for e in ["x + z", "(cast<f32>(v) - 3.0) * x + z", "(cast<f32>(v) * 200.0 + 1.0) * x"] {
            assert!(!ptx(elem, e).contains(op), "{} {e}", elem.name());
        }
    }
    assert!(!ptx(Elem::BF16, "x * z").contains("fma.rn.bf16x2"), "exponents of a product of two bf16 leave f32");
}

//! Where results are rounded, and how far a device may be from them.

use super::{kernel, tensor};
use crate::interp::inputs::{Errors, Inputs, Options, Tensor};
use crate::interp::{SumAccuracy, run};
use crate::types::Elem;

/// `y = e` for eight elements `x`, and what a device may differ by.
fn of(from: &str, to: &str, e: &str, x: [f64; 8]) -> (Vec<f64>, Option<Errors>) {
    let source = format!(
        "kernel f(X: gmem {from}[8], Y: gmem {to}[8]) {{
            var x = reg {from}[8]
            copy X[0..] -> x
            copy {e} -> Y[0..]
        }}"
    );
    let elem = |name| Elem::ALL.iter().copied().find(|e| e.name() == name).unwrap();
    let mut inputs = Inputs::default()
        .tensor("X", Tensor { elem: elem(from), data: x.to_vec().into() })
        .tensor("Y", tensor(elem(to), 8));
    let accuracy = SumAccuracy::new(2f64.powi(24), 2f64.powi(-23));
    run(&kernel(&source), &mut inputs, &Options { accuracy: Some(accuracy), ..Options::default() }).unwrap();
    let data = inputs.tensors.remove("Y").unwrap().data;
    (data.floats().into_owned(), inputs.errors.remove("Y"))
}

#[test]
fn operations_round_in_the_type_they_are_computed_in() {
    let x = [50.0, 150.0, 250.0, 350.0, -50.0, 3.0, 1e9, -1e9];
    let (y, errors) = of("i32", "i8", "cast<i8>(0.01 * cast<f32>(x))", x);
    let scaled = |x: f64| (0.01f32 * x as f32).round_ties_even().clamp(-128.0, 127.0);
    assert_eq!(y, x.map(|x| f64::from(scaled(x))));
    assert_eq!(errors, None, "there is one result");

    let thirds = [1.0, 2.0, 5.0, 7.0, 10.0, 11.0, 13.0, 14.0];
    let (y, errors) = of("f32", "f32", "x / 3.0 - 0.1", thirds);
    assert_eq!(y, thirds.map(|x| f64::from(x as f32 / 3.0 - 0.1)));
    assert_eq!(errors, None);

    // Narrow floats are computed in f32: 2.1 is no f16, and the square of 255 none either.
    let (y, _) = of("f16", "f32", "x * x * 2.1", [255.0; 8]);
    assert_eq!(y[0], f64::from(255f32 * 255.0 * 2.1));
    let (y, _) = of("f64", "f64", "x / 3.0", thirds);
    assert_eq!(y, thirds.map(|x| x / 3.0));
}

#[test]
fn a_register_tile_of_16_bits_rounds() {
    let source = "kernel f(X: gmem f16[8], Y: gmem f32[8]) {
        var x = reg f16[8]
        copy X[0..] -> x
        var y = reg f16[8]
        y = x * 1.001
        copy cast<f32>(y) -> Y[0..]
    }";
    let mut inputs = Inputs::default()
        .tensor("X", Tensor { elem: Elem::F16, data: vec![3.0; 8].into() })
        .tensor("Y", tensor(Elem::F32, 8));
    run(&kernel(source), &mut inputs, &Options::default()).unwrap();
    assert_eq!(inputs.data("Y")[0], 3.0 + 2f64.powi(-9) * 2.0);
}

#[test]
fn operands_of_products_and_what_memory_adds_are_elements_of_their_types() {
    let source = "kernel f(X: gmem f16[8, 8], E: gmem f16[8, 8], Y: gmem f32[8, 8], Z: gmem f16[8, 8]) {
        let x = smem f16[8, 8]
        let e = smem f16[8, 8]
        copy X[0.., 0..] -> x
        copy E[0.., 0..] -> e
        var y = reg f32[8, 8] = 0.0
        y = mma(x * 1.001, e, y)
        copy y -> Y[0.., 0..]
        copy cast<f32>(x) * 1.0001 -> Z[0.., 0..] add
    }";
    let unit = |i: usize| f64::from(u8::from(i / 8 == i % 8));
    let mut inputs = Inputs::default()
        .tensor("X", Tensor { elem: Elem::F16, data: vec![2.0; 64].into() })
        .tensor("E", Tensor { elem: Elem::F16, data: (0..64).map(unit).collect::<Vec<_>>().into() })
        .tensor("Y", tensor(Elem::F32, 64))
        .tensor("Z", Tensor { elem: Elem::F16, data: vec![4096.0; 64].into() });
    run(&kernel(source), &mut inputs, &Options::default()).unwrap();
    assert_eq!(inputs.data("Y")[9], 2.0 + 2f64.powi(-9));
    // 2.0002 is 2 in f16, and 4098 a tie.
    assert_eq!(inputs.data("Z")[9], 4096.0);
}

#[test]
fn what_a_copy_fills_in_is_not_for_its_indices() {
    let source = "kernel f(X: gmem f32[8], I: gmem i32[1], m: i32, Y: gmem f32[8]) {
        var x = reg f32[8]
        copy X[I[m]..] -> x fill 0.5
        copy x -> Y[0..]
    }";
    let mut inputs = Inputs::default()
        .tensor("X", Tensor { elem: Elem::F32, data: (1..9).map(f64::from).collect::<Vec<_>>().into() })
        .tensor("I", Tensor { elem: Elem::I32, data: vec![6.0].into() })
        .tensor("Y", tensor(Elem::F32, 8))
        .scalar("m", 0.0);
    run(&kernel(source), &mut inputs, &Options::default()).unwrap();
    assert_eq!(inputs.data("Y")[..4], [7.0, 8.0, 0.5, 0.5]);
}

#[test]
fn only_a_number_next_to_a_tie_may_be_another_integer() {
    // exp(x) is near, not exact: 3.5 / e times e is next to a tie, 3 is not.
    let one = std::f64::consts::E;
    let x = [3.5, 3.0, -0.5, 127.5, 1000.0, 0.25, -2.5, 4.4];
    let (y, errors) = of("f64", "i8", "cast<i8>(cast<f32>(x) / 2.7182817 * exp(cast<f32>(x * 0.0 + 1.0)))", x);
    let errors = errors.unwrap().largest;
    assert_eq!(errors, [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0], "{one} {y:?}");
}

#[test]
fn approximate_functions_have_the_documented_bound() {
    let x = [-20.0, -1.0, -0.1, 0.0, 0.1, 1.0, 5.0, 40.0];
    let (y, errors) = of("f32", "f32", "x / (1.0 + exp(-x))", x);
    let errors = errors.unwrap().largest;
    for ((x, y), e) in x.iter().zip(y).zip(errors) {
        let exact = x / (1.0 + (-x).exp());
        assert!((y - exact).abs() <= e + exact.abs() * 2f64.powi(-22), "{x}: {y} {exact} {e}");
        assert!(e <= 1e-5 * exact.abs(), "{x}: {e}");
    }
}

#[test]
fn a_fused_multiply_and_add_is_within_the_bound() {
    let (y, errors) = of("f32", "f32", "0.1 * x + 3.0", [0.7; 8].map(|x: f64| f64::from(x as f32)));
    let fused = 0.1f32.mul_add(0.7, 3.0);
    let error = errors.map_or(0.0, |e| e.largest[0]);
    assert!((f64::from(fused) - y[0]).abs() <= error && error < 1e-6);
    // Whole numbers are multiplied exactly: there is nothing to fuse.
    assert_eq!(of("f32", "f32", "3.0 * x + 3.0", [5.0; 8]).1, None);
}

#[test]
fn an_explicit_fused_multiply_and_add_rounds_once() {
    let x = 0.7f32;
    let (y, errors) = of("f32", "f32", "fma(0.1, x, 3.0)", [f64::from(x); 8]);
    assert_eq!(y[0], f64::from(0.1f32.mul_add(x, 3.0)));
    assert_eq!(errors, None);
    // Rounded twice it would be zero: the square of 1 + 2^-12 is one of f32 but for 2^-24.
    let (z, _) = of("f32", "f32", "fma(x, x, -1.00048828125)", [1.0 + 2f64.powi(-12); 8]);
    assert_eq!(z[0], 2f64.powi(-24));
}

/// What it adds up may be on the other side of the border between two numbers.
#[test]
fn a_fused_multiply_and_add_of_what_is_off_is_within_the_bound() {
    let x = f64::from((-24.0 * std::f64::consts::LN_2) as f32);
    let (y, errors) = of("f32", "f32", "fma(exp(x), 1.0, 1.0)", [x; 8]);
    let error = errors.map_or(0.0, |e| e.largest[0]);
    for near in [2f64.powi(-24) * (1.0 - 1e-7), 2f64.powi(-24) * (1.0 + 1e-7)] {
        let fused = f64::from((near as f32).mul_add(1.0, 1.0));
        assert!((fused - y[0]).abs() <= error, "{fused} {} {error}", y[0]);
    }
    assert!(error <= 2f64.powi(-23), "{error}");
}

/// A product that is off by less than a last bit, and is added up before it is rounded.
#[test]
fn what_is_off_is_multiplied_and_added_within_the_bound() {
    let x = [0.1f64, 0.3, 0.7, 1.1, 1.3, 1.7, 1.9, 2.3].map(|x| f64::from(x as f32));
    let (y, errors) = of("f32", "f32", "(1.0 + 0.1 * x) * 0.7 - 0.7", x);
    let errors = errors.unwrap().largest;
    for i in 0..8 {
        let inner = 0.1f32.mul_add(x[i] as f32, 1.0);
        let fused = f64::from(inner.mul_add(0.7, -0.7));
        assert!((fused - y[i]).abs() <= errors[i], "{}: {fused} {} {}", x[i], y[i], errors[i]);
    }
}

#[test]
fn a_choice_between_near_numbers_is_open() {
    let (_, errors) =
        of("f32", "f32", "select(exp(x) < 2.7182817, 1.0 + x, x)", [1.0, 2.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0]);
    let errors = errors.unwrap().largest;
    assert!(errors[0] >= 1.0 && errors[1] == 0.0 && errors[2] == 0.0, "{errors:?}");
}

#[test]
fn integers_of_one_width_keep_their_bits_and_others_saturate() {
    let x = [-1.0, 5.0, 300.0, -300.0, 0.0, 1.0, 2.0, 3.0];
    assert_eq!(of("i32", "u32", "cast<u32>(x)", x).0[..4], [4294967295.0, 5.0, 300.0, 4294966996.0]);
    assert_eq!(of("i32", "i8", "cast<i8>(x)", x).0[..4], [-1.0, 5.0, 127.0, -128.0]);
    let nan = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.5, -2.5, 0.0, 0.0, 0.0];
    assert_eq!(of("f32", "i8", "cast<i8>(x)", nan).0[..5], [0.0, 127.0, -128.0, 2.0, -2.0]);
    assert_eq!(of("f32", "u8", "cast<u8>(x)", nan).0[..5], [0.0, 255.0, 0.0, 2.0, 0.0]);
    assert_eq!(of("f64", "i8", "cast<i8>(x)", nan).0[..5], [-128.0, 127.0, -128.0, 2.0, -2.0]);
}

#[test]
fn infinite_numbers_times_exact_ones_are_exact() {
    let x = [f64::NEG_INFINITY, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0];
    let (y, errors) = of("f32", "f32", "exp2(x * 1.442695 - 3.0)", x);
    let bound = errors.expect("an exponential is off").largest;
    assert_eq!(y[0], 0.0);
    assert!(bound.iter().all(|b| b.is_finite()), "{bound:?}");
}

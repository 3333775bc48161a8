//! `examples/gemm.tile` against three loops.

use super::{int, kernel, number, result, tensor};
use crate::interp::inputs::{Inputs, Options, Tensor};
use crate::interp::{PartAccuracy, SumAccuracy, run};
use crate::kernel::{ConstValue, Kernel};
use crate::types::{Elem, Order};

const GEMM: &str = include_str!("../../../../examples/gemm.tile");

/// The program with values for what the compiler would choose: they change nothing.
fn text() -> String {
    let tiles = [("BM", 128), ("BN", 128), ("BK", 32), ("WM", 64), ("WN", 64)];
    let values = tiles.into_iter().chain([("KW", 1), ("STAGES", 2), ("RASTER", 8)]);
    let chosen =
        |text: String, (name, x): (&str, i64)| text.replace(&format!("{name} = auto"), &format!("{name} = {x}"));
    values.fold(GEMM.to_owned(), chosen)
}

fn gemm() -> Kernel {
    kernel(&text())
}

/// Stride of rows and of columns, and elements of an allocation with the leading dimension `ld`.
fn strides(order: Order, [m, n]: [usize; 2], ld: usize) -> (usize, usize, usize) {
    match order {
        Order::Row => (ld, 1, (m - 1) * ld + n),
        Order::Col => (1, ld, (n - 1) * ld + m),
    }
}

/// Leading dimension: a little more than needed.
fn leading(order: Order, [m, n]: [usize; 2], extra: usize) -> usize {
    extra + if order == Order::Row { n } else { m }
}

fn check(size: [usize; 3], orders: [Order; 3], alpha: f64, beta: f64) {
    let [m, n, k] = size;
    let (a, b, c) = ([m, k], [k, n], [m, n]);
    let lds = [leading(orders[0], a, 3), leading(orders[1], b, 0), leading(orders[2], c, 5)];
    let (a0, a1, a_len) = strides(orders[0], a, lds[0]);
    let (b0, b1, b_len) = strides(orders[1], b, lds[1]);
    let (c0, c1, c_len) = strides(orders[2], c, lds[2]);
    let mut inputs = Inputs::default()
        .given("LA", ConstValue::Order(orders[0]))
        .given("LB", ConstValue::Order(orders[1]))
        .given("LC", ConstValue::Order(orders[2]))
        .size("M", m)
        .size("N", n)
        .size("K", k)
        .stride("A_ld", lds[0])
        .stride("B_ld", lds[1])
        .stride("C_ld", lds[2])
        .scalar("alpha", alpha)
        .scalar("beta", beta)
        .tensor("A", tensor(Elem::F16, a_len))
        .tensor("B", tensor(Elem::F16, b_len))
        .tensor("C", tensor(Elem::F32, c_len));
    for (name, x) in [("BM", 16), ("BN", 8), ("BK", 8), ("WM", 16), ("WN", 8), ("ALIGN", 1)] {
        inputs = inputs.given(name, int(x));
    }
    let mut expected: Vec<f64> = (0..c_len).map(number).collect();
    for i in 0..m {
        for j in 0..n {
            let product: f64 = (0..k).map(|l| number(i * a0 + l * a1) * number(l * b0 + j * b1)).sum();
            let at = i * c0 + j * c1;
            expected[at] = alpha * product + beta * expected[at];
        }
    }
    assert_eq!(result(&gemm(), inputs).data("C"), expected, "{size:?} {orders:?}");
}

#[test]
fn every_order_and_ragged_size() {
    let both = [Order::Row, Order::Col];
    for la in both {
        for lb in both {
            for lc in both {
                for size in [[1, 1, 1], [16, 8, 8], [17, 9, 7], [33, 23, 19], [5, 40, 64]] {
                    check(size, [la, lb, lc], 1.0, 0.0);
                    check(size, [la, lb, lc], 2.0, -3.0);
                }
            }
        }
    }
}

#[test]
fn default_tiles_on_the_reference_problem() {
    let (m, n, k) = (520, 264, 136);
    let inputs = Inputs::default()
        .size("M", m)
        .size("N", n)
        .size("K", k)
        .tensor("A", tensor(Elem::F16, m * k))
        .tensor("B", tensor(Elem::F16, k * n))
        .tensor("C", tensor(Elem::F32, m * n));
    let out = result(&gemm(), inputs);
    for (i, j) in [(0, 0), (m - 1, n - 1), (127, 128), (128, 127), (300, 200)] {
        let product: f64 = (0..k).map(|l| number(i * k + l) * number(l * n + j)).sum();
        assert_eq!(out.data("C")[i * n + j], product, "({i}, {j})");
    }
}

#[test]
fn preconditions_are_tested() {
    let inputs = Inputs::default()
        .size("M", 8)
        .size("N", 8)
        .size("K", 7)
        .tensor("A", tensor(Elem::F16, 56))
        .tensor("B", tensor(Elem::F16, 56))
        .tensor("C", tensor(Elem::F32, 64));
    let d = super::error(&gemm(), inputs);
    assert_eq!(d.code.0, "E0701");
    let text = text();
    assert_eq!(&text[d.span.start as usize..d.span.end as usize], "ALIGN_A");
}

#[test]
fn results_round_once_to_the_output_type() {
    // 1 + 2^-11 is in the middle between two f16 values: to even, once.
    let mut a = tensor(Elem::F16, 2);
    a.data = vec![1.0, 2f64.powi(-11)].into();
    let inputs = Inputs::default()
        .given("Acc", ConstValue::Elem(Elem::F16))
        .given("ALIGN", int(1))
        .size("M", 1)
        .size("N", 2)
        .size("K", 2)
        .tensor("A", a)
        .tensor("B", Tensor { elem: Elem::F16, data: vec![1.0, 3.0, 1.0, 3.0].into() })
        .tensor("C", tensor(Elem::F16, 2));
    let out = result(&gemm(), inputs);
    assert_eq!(out.data("C"), [1.0, 3.0 + 2f64.powi(-9)]);
}

#[test]
fn errors_follow_the_absolute_products() {
    let (m, n, k) = (5, 6, 9);
    let inputs = |scale: f64| {
        let scaled = |elem, n| Tensor {
            data: tensor(elem, n).data.floats().iter().map(|x| x * scale).collect::<Vec<f64>>().into(),
            elem,
        };
        Inputs::default()
            .given("ALIGN", int(1))
            .size("M", m)
            .size("N", n)
            .size("K", k)
            .scalar("alpha", -2.0)
            .scalar("beta", 0.0)
            .tensor("A", scaled(Elem::F16, m * k))
            .tensor("B", scaled(Elem::F16, k * n))
            .tensor("C", tensor(Elem::F32, m * n))
    };
    let accuracy = SumAccuracy::new(2f64.powi(24), 2f64.powi(-23));
    let opts = Options { accuracy: Some(accuracy), ..Options::default() };
    let mut whole = inputs(1.0);
    run(&gemm(), &mut whole, &opts).unwrap();
    assert!(whole.errors.is_empty(), "whole numbers are summed exactly");
    let mut parts = inputs(0.5);
    run(&gemm(), &mut parts, &opts).unwrap();
    assert!(!parts.errors["C"].drowned && !parts.errors.contains_key("A"));
    for i in 0..m {
        for j in 0..n {
            let s: f64 = (0..k).map(|l| (number(i * k + l) * number(l * n + j)).abs() / 4.0).sum();
            let bound = parts.errors["C"].largest[i * n + j];
            // The accumulator's zero is a term; the padding of the tile is none.
            let own = 2.0 * s * accuracy.per_term * (k + 1) as f64;
            assert!((0.9 * own..=3.0 * own + 1e-30).contains(&bound), "{i}, {j}: {bound} {own}");
        }
    }
}

/// The largest bound of `C` for a reduction of `k` ones times `x`, in tiles of 32, on a device that sums each of them to a few bits.
fn bound_of_parts(k: usize, x: f64) -> f64 {
    let ones = |n: usize, x: f64| Tensor { elem: Elem::F16, data: vec![x; n].into() };
    let mut inputs = Inputs::default()
        .given("ALIGN", int(1))
        .size("M", 1)
        .size("N", 1)
        .size("K", k)
        .scalar("alpha", 1.0)
        .scalar("beta", 0.0)
        .tensor("A", ones(k, 1.0))
        .tensor("B", ones(k, x))
        .tensor("C", tensor(Elem::F32, 1));
    let part = PartAccuracy { terms: 32.0, exact_below: 64.0, per_term: 2f64.powi(-7) };
    let accuracy = SumAccuracy { parts: Some(part), ..SumAccuracy::new(1024.0, 2f64.powi(-20)) };
    let opts = Options { accuracy: Some(accuracy), ..Options::default() };
    run(&gemm(), &mut inputs, &opts).unwrap();
    inputs.errors.get("C").map_or(0.0, |e| e.largest[0])
}

#[test]
fn sums_in_parts_are_as_exact_as_their_parts() {
    // Whole numbers: 32 in a part, and 512 in all.
    assert_eq!(bound_of_parts(512, 1.0), 0.0);
    // Parts are exact, and their sum is not.
    let sum = bound_of_parts(1024, 1.0);
    assert!(sum > 0.0 && sum < 1024.0 * 1026.0 * 2f64.powi(-19), "{sum}");
    // 64 in a part.
    let parts = bound_of_parts(64, 2.0);
    assert!((32.0..33.0).contains(&parts), "{parts}");
    // A longer reduction does not make parts less exact.
    let (short, long) = (bound_of_parts(64, 0.5) / 32.0, bound_of_parts(640, 0.5) / 320.0);
    assert!((0.25..0.26).contains(&short) && (0.25..0.26).contains(&long), "{short} {long}");
}

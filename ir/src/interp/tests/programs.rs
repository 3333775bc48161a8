//! Channels, roles, reductions, integers, views: what programs other than a plain product mean.

use super::{error, int, kernel, number, result, tensor};
use crate::interp::inputs::{Inputs, Tensor};
use crate::types::Elem;

/// A software-pipelined product, as the passes write it: staging registers, a ring of two slots, a peeled first step.
const PIPELINED: &str = "
kernel gemm(A: gmem f16[M, K], B: gmem f16[K, N] col, C: gmem f32[M, N])
    grid (bm: ceildiv(M, 16), bn: ceildiv(N, 16))
{
    let a = channel f16[16, 8] slots 2
    let b = channel f16[8, 16] slots 2
    var acc = reg f32[16, 16] = 0.0
    var sa = reg f16[16, 8] = 0.0
    var sb = reg f16[8, 16] = 0.0
    let r = K - (ceildiv(K, 8) - 1) * 8
    copy A[bm * 16.., 0..r] -> sa
    copy B[0..r, bn * 16..] -> sb
    acquire a, b
    copy sa -> a.put
    copy sb -> b.put
    publish a, b
    wait a, b
    for k in r..K step 8 {
        copy A[bm * 16.., k..] -> sa check (0) keep
        copy B[k.., bn * 16..] -> sb check (1) keep
        for kk in 0..8 step 4 {
            var fa = reg f16[16, 4]
            var fb = reg f16[4, 16]
            copy a.get[0.., kk..] -> fa
            copy b.get[kk.., 0..] -> fb
            acc = mma(fa, fb, acc)
        }
        acquire a, b
        copy sa -> a.put
        copy sb -> b.put
        publish a, b
        release a, b
        barrier
        wait a, b
    }
    acc = mma(a.get, b.get, acc)
    release a, b
    copy acc -> C[bm * 16.., bn * 16..]
}";

#[test]
fn pipelined_product_with_peeled_residue() {
    let k_ = kernel(PIPELINED);
    for (m, n, k) in [(16, 16, 8), (16, 16, 16), (17, 5, 30), (1, 1, 1), (40, 33, 25)] {
        let inputs = Inputs::default()
            .size("M", m)
            .size("N", n)
            .size("K", k)
            .tensor("A", tensor(Elem::F16, m * k))
            .tensor("B", tensor(Elem::F16, k * n))
            .tensor("C", tensor(Elem::F32, m * n));
        let out = result(&k_, inputs);
        for i in 0..m {
            for j in 0..n {
                let product: f64 = (0..k).map(|l| number(i * k + l) * number(j * k + l)).sum();
                assert_eq!(out.data("C")[i * n + j], product, "{m} {n} {k}: ({i}, {j})");
            }
        }
    }
}

#[test]
fn hopper_gemm_sketch() {
    let k_ = kernel(include_str!("../../../../docs/sketches/hopper_gemm.tile"));
    let (m, n, k) = (40, 24, 16);
    let mut inputs = Inputs::default()
        .size("M", m)
        .size("N", n)
        .size("K", k)
        .tensor("A", tensor(Elem::BF16, m * k))
        .tensor("B", tensor(Elem::BF16, k * n))
        .tensor("C", tensor(Elem::BF16, m * n));
    for (name, x) in [("BM", 16), ("BN", 16), ("BK", 8), ("CTAS", 4)] {
        inputs = inputs.given(name, int(x));
    }
    let out = result(&k_, inputs);
    for i in 0..m {
        for j in 0..n {
            let product: f64 = (0..k).map(|l| number(i * k + l) * number(l * n + j)).sum();
            // Small integers: exact in bf16 below 2^8.
            assert!(product.abs() <= 256.0);
            assert_eq!(out.data("C")[i * n + j], product, "({i}, {j})");
        }
    }
}

#[test]
fn flash_attention_sketch() {
    let k_ = kernel(include_str!("../../../../examples/flash_attention.tile"));
    let (z, h, l, d) = (2, 2, 21, 8);
    let n = z * h * l * d;
    let scale = f64::from(0.1f32);
    let data = |seed: usize| (0..n).map(|i| number(i * 3 + seed) / 4.0).collect::<Vec<_>>();
    let of = |seed| Tensor { elem: Elem::F16, data: data(seed).into() };
    let mut inputs = Inputs::default()
        .size("Z", z)
        .size("H", h)
        .size("L", l)
        .scalar("scale_log2", 0.1)
        .tensor("Q", of(1))
        .tensor("K", of(2))
        .tensor("V", of(3))
        .tensor("O", of(4));
    for (name, x) in [("BQ", 8), ("BKV", 8), ("D", 8)] {
        inputs = inputs.given(name, int(x));
    }
    let out = result(&k_, inputs);
    let (q, k, v) = (data(1), data(2), data(3));
    for head in 0..z * h {
        for i in 0..l {
            let row = (head * l + i) * d;
            let key = |j: usize| (head * l + j) * d;
            let scores: Vec<f64> = (0..l).map(|j| (0..d).map(|c| q[row + c] * k[key(j) + c]).sum()).collect();
            let top = scores.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
            let p: Vec<f64> = scores.iter().map(|s| ((s - top) * scale).exp2()).collect();
            for c in 0..d {
                let o = (0..l).map(|j| p[j] * v[key(j) + c]).sum::<f64>() / p.iter().sum::<f64>();
                let got = out.data("O")[row + c];
                // Weights and results are rounded to f16.
                assert!((got - o).abs() < 4e-3, "head {head} query {i} column {c}: {got} against {o}");
            }
        }
    }
}

#[test]
fn bytes_multiply_exactly_and_saturate_on_stores() {
    let k_ = kernel(
        "kernel q(A: gmem i8[16, K], B: gmem u8[K, 8], C: gmem i32[16, 8], D: gmem i8[16, 8]) grid (one: 1) {
            let a = smem i8[16, 32]
            let b = smem u8[32, 8]
            var acc = reg i32[16, 8] = 2147483000
            copy A[0.., 0..] -> a
            copy B[0.., 0..] -> b
            acc = mma(a, b, acc)
            copy acc -> C[0.., 0..]
            copy acc -> D[0.., 0..]
        }",
    );
    let inputs = Inputs::default()
        .size("K", 2)
        .tensor("A", Tensor { elem: Elem::I8, data: vec![127.0; 32].into() })
        .tensor("B", Tensor { elem: Elem::U8, data: vec![255.0; 16].into() })
        .tensor("C", Tensor { elem: Elem::I32, data: vec![0.0; 128].into() })
        .tensor("D", Tensor { elem: Elem::I8, data: vec![0.0; 128].into() });
    let out = result(&k_, inputs);
    let wrapped = 2_147_483_000_i64 + 2 * 127 * 255 - (1 << 32);
    assert_eq!(out.data("C"), vec![wrapped as f64; 128]);
    assert_eq!(out.data("D"), vec![-128.0; 128]);
}

#[test]
fn index_division_rounds_down() {
    let k_ = kernel(
        "kernel d(C: gmem i32[8]) grid (i: 8) {
            let x = i - 4
            copy x / 3 * 100 + x % 3 * 10 + ceildiv(x, 3) -> C[i]
        }",
    );
    let out = result(&k_, Inputs::default().tensor("C", tensor(Elem::I32, 8)));
    let expected: Vec<f64> =
        (-4_i64..4).map(|x| (x.div_euclid(3) * 100 + x.rem_euclid(3) * 10 + -(-x).div_euclid(3)) as f64).collect();
    assert_eq!(out.data("C"), expected);
}

#[test]
fn reductions_broadcasts_and_casts() {
    let k_ = kernel(
        "kernel s(X: gmem f32[M, N], Y: gmem f32[M, N], Z: gmem f16[N, M]) grid (one: 1) {
            let x = smem f32[4, 8]
            copy X[0.., 0..] -> x
            let masked = select(iota(x, 1) < N, x, -1000.0)
            let top = maximum(masked, 1)
            let mean = sum(x, 1) / N
            copy (x - mean) * 2.0 + top -> Y[0.., 0..]
            copy transpose(cast<f16>(x / 3.0)) -> Z[0.., 0..]
        }",
    );
    let (m, n) = (3, 5);
    let inputs = Inputs::default()
        .size("M", m)
        .size("N", n)
        .tensor("X", tensor(Elem::F32, m * n))
        .tensor("Y", tensor(Elem::F32, m * n))
        .tensor("Z", tensor(Elem::F16, m * n));
    let out = result(&k_, inputs);
    for i in 0..m {
        let row: Vec<f64> = (0..n).map(|j| number(i * n + j)).collect();
        let top = row.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
        let mean = row.iter().sum::<f64>() as f32 / n as f32;
        for (j, x) in row.iter().enumerate() {
            assert_eq!(out.data("Y")[i * n + j], f64::from((*x as f32 - mean) * 2.0 + top as f32));
            assert_eq!(out.data("Z")[j * m + i], half::f16::from_f64(x / 3.0).to_f64());
        }
    }
}

#[test]
fn literals_take_the_type_of_what_they_meet() {
    // 0.1 of an f32 scalar is 0.1 of a literal in the same expression, though neither is the number.
    let k_ = kernel("kernel l(Y: gmem f32[1], x: f32) grid (i: 1) { if x == 0.1 { copy 2.0 -> Y[i] } }");
    let out = result(&k_, Inputs::default().scalar("x", 0.1).tensor("Y", tensor(Elem::F32, 1)));
    assert_eq!(out.data("Y"), [2.0]);
}

#[test]
fn windows_take_the_extents_of_the_whole_expression() {
    // The column repeats, and the other operand `X` has all columns of `z`.
    let k_ = kernel(
        "kernel t(X: gmem f32[4, 8], Y: gmem f32[4, 8]) grid (one: 1) {
            var c = reg f32[4, 1] = 2.0
            var z = reg f32[4, 8] = 1.0
            copy c * X[0.., 0..] + z -> Y[0.., 0..]
        }",
    );
    let inputs = Inputs::default().tensor("X", tensor(Elem::F32, 32)).tensor("Y", tensor(Elem::F32, 32));
    let expected: Vec<f64> = (0..32).map(|i| 2.0 * number(i) + 1.0).collect();
    assert_eq!(result(&k_, inputs).data("Y"), expected);
}

#[test]
fn windows_may_be_transposed() {
    // Dimensions of the transposed window are counted as they are seen: the rows of `t` are the columns of `X`.
    let k_ = kernel(
        "kernel t(X: gmem f32[M, 4], Y: gmem f32[4, M], Z: gmem f32[4, M]) grid (one: 1) {
            let t = transpose(X[0.., 0..])
            var y = reg f32[4, 8]
            var z = reg f32[4, 8]
            copy t -> y check (1)
            copy transpose(X[0.., 0..]) -> z check (1)
            copy y -> Y[0.., 0..] check (1)
            copy z + 0.0 * t -> Z[0.., 0..] check (1)
        }",
    );
    let m = 5;
    let inputs = Inputs::default()
        .size("M", m)
        .tensor("X", tensor(Elem::F32, 4 * m))
        .tensor("Y", Tensor { elem: Elem::F32, data: vec![0.5; 4 * m].into() })
        .tensor("Z", Tensor { elem: Elem::F32, data: vec![0.5; 4 * m].into() });
    let out = result(&k_, inputs);
    let expected: Vec<f64> = (0..4 * m).map(|i| number(i % m * 4 + i / m)).collect();
    assert_eq!(out.data("Y"), expected);
    assert_eq!(out.data("Z"), expected);
}

#[test]
fn strides_may_repeat_and_overlap() {
    // Stride 0 repeats a row of biases; a stride of 1 in both dimensions makes overlapping windows.
    let k_ = kernel(
        "kernel t(X: gmem f32[4, 3] strides (1, 1), B: gmem f32[4, 3] strides (0, 1), Y: gmem f32[4, 3]) grid (one: 1) {
            var y = reg f32[4, 4]
            copy X[0.., 0..] -> y
            copy y + B[0.., 0..] -> Y[0.., 0..]
        }",
    );
    let inputs = Inputs::default()
        .tensor("X", tensor(Elem::F32, 6))
        .tensor("B", tensor(Elem::F32, 3))
        .tensor("Y", tensor(Elem::F32, 12));
    let out = result(&k_, inputs);
    let expected: Vec<f64> = (0..12).map(|i| number(i / 3 + i % 3) + number(i % 3)).collect();
    assert_eq!(out.data("Y"), expected);
}

#[test]
fn masked_elements_become_zero_or_stay() {
    let k_ = kernel(
        "kernel m(X: gmem f32[3], Y: gmem f32[4], Z: gmem f32[4], W: gmem f32[4]) grid (one: 1) {
            var y = reg f32[4] = 9.0
            var z = reg f32[4] = 9.0
            let w = smem f32[4]
            copy X[0..] -> y
            copy X[1..] -> z keep
            copy X[1..2] -> w
            copy y -> Y[0..]
            copy z -> Z[0..]
            copy w -> W[0..]
        }",
    );
    let inputs = Inputs::default()
        .tensor("X", Tensor { elem: Elem::F32, data: vec![1.0, 2.0, 3.0].into() })
        .tensor("Y", tensor(Elem::F32, 4))
        .tensor("Z", tensor(Elem::F32, 4))
        .tensor("W", tensor(Elem::F32, 4));
    let out = result(&k_, inputs);
    assert_eq!(out.data("Y"), [1.0, 2.0, 3.0, 0.0]);
    assert_eq!(out.data("Z"), [2.0, 3.0, 9.0, 9.0]);
    assert_eq!(out.data("W"), [2.0, 0.0, 0.0, 0.0]);
}

#[test]
fn atomic_addition_combines() {
    let k_ = kernel(
        "kernel r(X: gmem f32[8, 4], Y: gmem f32[4]) grid (i: 8) {
            var x = reg f32[4]
            copy X[i, 0..] -> x
            copy x -> Y[0..] add
        }",
    );
    let inputs = Inputs::default().tensor("X", tensor(Elem::F32, 32)).tensor("Y", tensor(Elem::F32, 4));
    let out = result(&k_, inputs);
    let expected: Vec<f64> = (0..4).map(|j| number(j) + (0..8).map(|i| number(i * 4 + j)).sum::<f64>()).collect();
    assert_eq!(out.data("Y"), expected);
}

#[test]
fn narrow_registers_round() {
    let k_ = kernel(
        "kernel r(X: gmem f32[4], Y: gmem f32[4], Z: gmem f32[4]) grid (one: 1) {
            var h = reg f16[4]
            copy X -> h
            copy h -> Y[0..]
            h = h * h
            var w = reg f32[8]
            let hh = h / 11.0
            copy hh -> w[0..]
            copy hh -> w[4..]
            copy w -> Z[0..]
        }",
    );
    let third = 1.0 / 3.0;
    let x = vec![f64::from(third as f32); 4];
    let inputs = Inputs::default()
        .tensor("X", Tensor { elem: Elem::F32, data: x.into() })
        .tensor("Y", tensor(Elem::F32, 4))
        .tensor("Z", tensor(Elem::F32, 4));
    let out = result(&k_, inputs);
    let rounded = half::f16::from_f64(third).to_f64();
    assert_eq!(out.data("Y"), [rounded; 4]);
    let square = half::f16::from_f64(rounded * rounded).to_f64();
    // A name has the type of what it names.
    assert_eq!(out.data("Z"), [half::f16::from_f64(square / 11.0).to_f64(); 4]);
}

#[test]
fn rows_are_zero_outside() {
    let program = |schedule: &str| {
        let body = "{ copy X[i - 1, 0..+2] + X[i + 1, 0..] -> Y[i, 0..] copy X[i, 0..+2] -> Z[i - 1, 0..] }";
        let head = "kernel r(X: gmem f32[M, 2], Y: gmem f32[M, 2], Z: gmem f32[M, 2]) grid (i: M)";
        kernel(&format!("{head} {schedule} {body}"))
    };
    let tensor = |first: f64| Tensor {
        elem: Elem::F32,
        data: (0..6).map(|x| first * f64::from(x)).collect::<Vec<f64>>().into(),
    };
    let inputs = || {
        let inputs = Inputs::default().size("M", 3).tensor("X", tensor(1.0)).tensor("Y", tensor(0.0));
        inputs.tensor("Z", tensor(-1.0))
    };
    let out = result(&program(""), inputs());
    assert_eq!(out.data("Y"), [2.0, 3.0, 4.0, 6.0, 2.0, 3.0]);
    assert_eq!(out.data("Z"), [2.0, 3.0, 4.0, 5.0, -4.0, -5.0]);
    // A text with decisions tests only the indices that it marks.
    assert_eq!(error(&program("schedule { target sm_80 }"), inputs()).code.0, "E0704");
}

#[test]
fn tables_are_zero_outside() {
    let k_ = kernel(
        "kernel r(X: gmem i8[6], Y: gmem f16[6], t: const f16[3] = (0.1, -2, inf)) grid (one: 1) {
            var x = reg i8[8]
            copy X[0..] -> x fill 2
            copy t[x] -> Y[0..]
        }",
    );
    let x = vec![0.0, 1.0, 2.0, 3.0, -1.0, 127.0];
    let inputs =
        Inputs::default().tensor("X", Tensor { elem: Elem::I8, data: x.into() }).tensor("Y", tensor(Elem::F16, 6));
    let out = result(&k_, inputs);
    let tenth = half::f16::from_f64(0.1).to_f64();
    assert_eq!(out.data("Y"), [tenth, -2.0, f64::INFINITY, 0.0, 0.0, 0.0]);
}

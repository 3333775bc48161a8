//! Products.

use super::case::{Case, Output, ptx};
use super::data::{Random, bf16, f16};

/// `A B` in f64 from row-major `a` (m x k) and column-major or row-major `b`; with every sum the sum of magnitudes.
fn product(a: &[f64], b: &[f64], [m, n, k]: [usize; 3], b_columns: bool) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(m * n);
    for i in 0..m {
        for j in 0..n {
            let terms = (0..k).map(|l| a[i * k + l] * b[if b_columns { j * k + l } else { l * n + j }]);
            out.push(terms.fold((0.0, 0.0), |(sum, all): (f64, f64), t| (sum + t, all + t.abs())));
        }
    }
    out
}

/// What fused multiply-adds give in the order of `k`.
fn fused(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let mut out = Vec::with_capacity(m * n);
    for i in 0..m {
        for j in 0..n {
            out.push((0..k).fold(0.0f32, |sum, l| a[i * k + l].mul_add(b[l * n + j], sum)));
        }
    }
    out
}

fn tiled([m, n, k]: [usize; 3]) -> Case {
    let mut random = Random::new(1);
    let (a, b) = (random.units(m * k), random.units(k * n));
    Case::new(format!("gemm_tiled {m}x{n}x{k}"), ptx!("gemm_tiled"), "gemm_tiled")
        .grid(n.div_ceil(16) as u32, m.div_ceil(16) as u32)
        .block(16, 16)
        .input(&a, f32::to_le_bytes)
        .input(&b, f32::to_le_bytes)
        .result(&fused(&a, &b, [m, n, k]), f32::to_le_bytes)
        .int(m as i32)
        .int(n as i32)
        .int(k as i32)
}

fn blocked([m, n, k]: [usize; 3]) -> Case {
    let mut random = Random::new(2);
    let (a, b) = (random.units(m * k), random.units(k * n));
    Case::new(format!("gemm_blocked {m}x{n}x{k}"), ptx!("gemm_blocked"), "gemm_blocked")
        .grid(n as u32 / 64, m as u32 / 64)
        .block(256, 1)
        .input(&a, f32::to_le_bytes)
        .input(&b, f32::to_le_bytes)
        .result(&fused(&a, &b, [m, n, k]), f32::to_le_bytes)
        .int(n as i32)
        .int(k as i32)
}

/// A kernel of f16 operands on the tensor cores.
struct Tensor {
    kernel: &'static str,
    ptx: &'static str,
    tile: u32,
    dynamic: u32,
    b_columns: bool,
}

/// Integers, whose sums are exact; or reals, for which f64 gives a bound and a GPU the bits.
fn tensor(t: &Tensor, size: [usize; 3], integers: bool) -> Case {
    let [m, n, k] = size;
    let mut random = Random::new(3 + k as u64);
    let mut values = |count: usize| -> Vec<f64> {
        let value = |_| {
            if integers {
                f64::from(random.int(-8, 8))
            } else {
                // Ten bits after the leading one over twelve binades: cancellation at every alignment.
                f64::from(random.int(1024, 2047)) * 2f64.powi(random.int(-16, -5)) * f64::from(random.int(0, 1) * 2 - 1)
            }
        };
        (0..count).map(value).collect()
    };
    let (a, b) = (values(m * k), values(k * n));
    let sums = product(&a, &b, size, t.b_columns);
    let case =
        Case::new(format!("{} {m}x{n}x{k} {}", t.kernel, if integers { "integers" } else { "reals" }), t.ptx, t.kernel)
            .grid(n as u32 / t.tile, m as u32 / t.tile)
            .block(128, 1)
            .dynamic(t.dynamic)
            .input(&a, |x| f16(x).to_le_bytes())
            .input(&b, |x| f16(x).to_le_bytes());
    let case = if integers {
        let exact: Vec<f32> = sums.iter().map(|(sum, _)| *sum as f32).collect();
        case.result(&exact, f32::to_le_bytes)
    } else {
        // Every step of 4 to 16 products cuts below 2^-23 of its largest term (Volta; later units keep more).
        case.near(sums.iter().map(|(sum, all)| (*sum, all * k as f64 * 2f64.powi(-22))).collect())
    };
    case.int(n as i32).int(k as i32)
}

/// bf16, tf32, int8 and f64 operands, the first three from the same words.
fn types() -> Case {
    let mut random = Random::new(9);
    let mut words = |n: usize| -> Vec<u32> {
        let half = |r: &mut Random| u32::from(bf16(f64::from(r.int(128, 255)) * 2f64.powi(r.int(-10, -5))));
        (0..n).map(|_| half(&mut random) | half(&mut random) << 16 | random.int(0, 1).unsigned_abs() << 31).collect()
    };
    let (a, b) = (words(128), words(64));
    let halves = |w: &[u32]| -> Vec<f64> {
        let one = |h: u32| f64::from(f32::from_bits(h << 16));
        w.iter().flat_map(|w| [one(w & 0xFFFF), one(w >> 16)]).collect()
    };
    let cut = |w: &[u32]| -> Vec<f64> { w.iter().map(|w| f64::from(f32::from_bits(w & !0x1FFF))).collect() };
    let sums16 = product(&halves(&a), &halves(&b), [16, 8, 16], true);
    let sums32 = product(&cut(&a), &cut(&b), [16, 8, 8], true);
    // The accumulators start as 1, 2, 3, 4: even and odd columns of the upper and the lower half.
    let start = |at: usize| (1 + at % 2 + at / 64 * 2) as f64;
    let mut floats: Vec<(f64, f64)> = Vec::new();
    for (at, (sum, all)) in sums16.iter().enumerate() {
        floats.push((start(at) + sum, (all + 4.0) * 2f64.powi(-20)));
    }
    for (at, (sum, all)) in sums32.iter().enumerate() {
        floats.push((floats[at].0 + sum, (sums16[at].1 + all + 4.0) * 2f64.powi(-20)));
    }
    let mut ints = vec![0i32; 128];
    for (at, out) in ints.iter_mut().enumerate() {
        let (row, col) = (at / 8, at % 8);
        *out = [-7, 5, 3, 0][at % 2 + at / 64 * 2];
        for l in 0..32 {
            let x = a[row * 8 + l / 4].to_le_bytes()[l % 4] as i8;
            *out += i32::from(x) * i32::from(b[col * 8 + l / 4].to_le_bytes()[l % 4]);
        }
    }
    let mut doubles = |n: usize| -> Vec<f64> { (0..n).map(|_| f64::from(random.int(-999, 999)) / 64.0).collect() };
    let (ad, bd) = (doubles(32), doubles(32));
    let d = product(&ad, &bd, [8, 8, 4], true);
    let d: Vec<f64> = d.iter().enumerate().map(|(at, (sum, _))| [0.5, -0.25][at % 2] + sum).collect();
    Case::new("mma_types", ptx!("mma_types"), "mma_types")
        .block(32, 1)
        .input(&a, u32::to_le_bytes)
        .input(&b, u32::to_le_bytes)
        .near(floats)
        .result(&ints, i32::to_le_bytes)
        .input(&ad, f64::to_le_bytes)
        .input(&bd, f64::to_le_bytes)
        .result(&d, f64::to_le_bytes)
}

/// Rings of asynchronous copies.
fn ring(n: i32) -> Case {
    let input: Vec<f32> = (0..n * 512).map(|i| i as f32).collect();
    let output: Vec<f32> = (0..n * 512).map(|i| (i ^ 4) as f32 + if i % 4 == 0 { 1.0 } else { 0.0 }).collect();
    Case::new(format!("ring {n}"), ptx!("ring"), "ring")
        .block(128, 1)
        .input(&input, f32::to_le_bytes)
        .result(&output, f32::to_le_bytes)
        .int(n)
}

/// A ring between warps, ordered by mbarriers.
fn mbarrier_ring(n: usize) -> Case {
    let mut random = Random::new(12);
    let a: Vec<u32> = (0..n * 96 * 4).map(|_| random.word()).collect();
    let out: Vec<u32> = (0..a.len()).map(|i| a[i / 384 * 384 + (95 - i / 4 % 96) * 4 + i % 4]).collect();
    Case::new(format!("mbarrier_ring {n}"), ptx!("mbarrier_ring"), "mbarrier_ring")
        .block(128, 1)
        .input(&a, u32::to_le_bytes)
        .result(&out, u32::to_le_bytes)
        .int(n as i32)
}

/// ldmatrix of rows at a pitch of `pitch` bytes.
fn ldmatrix(pitch: u32) -> Case {
    let mut random = Random::new(11);
    let a: Vec<[u32; 4]> = (0..64).map(|_| std::array::from_fn(|_| random.word())).collect();
    let mut out = Vec::new();
    let mut single = Vec::new();
    for t in 0..64usize {
        let (other, lane) = ((t / 32 * 32) ^ 32, t % 32);
        for matrix in 0..4 {
            out.push(a[other + matrix * 8 + lane / 4][lane % 4]);
        }
        // Transposed: a lane has two rows of one column.
        let element = |row: usize| {
            let column = lane / 4;
            a[other + row * 4][column / 2] >> (column % 2 * 16) & 0xFFFF
        };
        single.push(element(lane % 4 * 2) | element(lane % 4 * 2 + 1) << 16);
    }
    let bytes = super::data::bytes(&a, |v| std::array::from_fn::<u8, 16, _>(|i| v[i / 4].to_le_bytes()[i % 4]));
    let mut case = Case::new(format!("ldmatrix pitch {pitch}"), ptx!("ldmatrix"), "ldmatrix")
        .block(64, 1)
        .dynamic(63 * pitch + 16);
    case.params.push(super::Param::In(bytes));
    let out = super::data::bytes(&out, u32::to_le_bytes);
    case.output(vec![0xA5; out.len()], Output::Bits(out)).result(&single, u32::to_le_bytes).int(pitch as i32)
}

pub(super) fn cases() -> Vec<Case> {
    let wmma = Tensor { kernel: "gemm_wmma", ptx: ptx!("gemm_wmma"), tile: 32, dynamic: 0, b_columns: true };
    let mma = Tensor { kernel: "gemm_mma", ptx: ptx!("gemm_mma"), tile: 32, dynamic: 0, b_columns: false };
    let pipeline = Tensor {
        kernel: "gemm_pipeline",
        ptx: ptx!("gemm_pipeline"),
        tile: 64,
        dynamic: 4 * 2 * 64 * 64,
        b_columns: true,
    };
    let mut all = vec![tiled([40, 53, 37]), tiled([64, 64, 64]), blocked([128, 64, 40]), types()];
    for integers in [true, false] {
        all.push(tensor(&wmma, [64, 96, 96], integers));
        all.push(tensor(&mma, [64, 32, 192], integers));
        all.push(tensor(&pipeline, [64, 128, 224], integers));
        all.push(tensor(&pipeline, [128, 64, 32], integers));
    }
    all.extend([1, 2, 5, 11].map(ring));
    all.extend([3, 9].map(mbarrier_ring));
    all.extend([16, 32, 64, 80, 128, 144].map(ldmatrix));
    all
}

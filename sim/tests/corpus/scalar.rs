//! Arithmetic of single values: half precision, double precision, atomics, calls.

use super::case::{Case, Output, ptx};
use super::data::{Random, bf16, f16, rounded};

/// Eight results of each pair in a format with `fraction` stored bits; every intermediate value is exact in f64.
fn half_results(x: f64, y: f64, round: &dyn Fn(f64) -> f64, bf: bool, low: bool) -> [f64; 8] {
    let truth = f64::from(u8::from(x > y));
    // The low half takes its last result from x, the high half from y.
    let last = if low { f64::from(x as f32 / 3.0) } else { f64::from(y as f32 * 1e-4) };
    let difference = if bf { round(x - y) } else { round(x - y).clamp(0.0, 1.0) };
    let third = if bf { x } else { 0.75 };
    [round(x + y), round(x * y), round(x * y + third), x.max(y), (-x).min(y.abs()), difference, truth, round(last)]
}

fn half_math() -> Case {
    let n = 100usize;
    let mut random = Random::new(61);
    // `bits` after the leading one, over few binades: sums and products then fit f64 exactly.
    let mut values = |bits: i32| -> Vec<f64> {
        let mut value = || {
            let sign = f64::from(random.int(0, 1) * 2 - 1);
            sign * f64::from(random.int(1 << bits, (2 << bits) - 1)) * 2f64.powi(random.int(-4, 3) - bits)
        };
        (0..2 * n).map(|_| value()).collect()
    };
    let (a, b, c, d) = (values(10), values(10), values(7), values(7));
    let results = |x: &[f64], y: &[f64], bf: bool| -> Vec<f64> {
        let round = |v: f64| if bf { rounded(v, 7, -126) } else { rounded(v, 10, -14) };
        let mut out = vec![0.0; 16 * n];
        for i in 0..2 * n {
            let all = half_results(x[i], y[i], &round, bf, i % 2 == 0);
            all.into_iter().enumerate().for_each(|(k, v)| out[i / 2 * 16 + k * 2 + i % 2] = v);
        }
        out
    };
    Case::new("half_math", ptx!("half_math"), "half_math")
        .grid(2, 1)
        .block(64, 1)
        .input(&a, |v| f16(v).to_le_bytes())
        .input(&b, |v| f16(v).to_le_bytes())
        .result(&results(&a, &b, false), |v| f16(v).to_le_bytes())
        .input(&c, |v| bf16(v).to_le_bytes())
        .input(&d, |v| bf16(v).to_le_bytes())
        .result(&results(&c, &d, true), |v| bf16(v).to_le_bytes())
        .int(n as i32)
}

fn double_math() -> Case {
    let n = 200;
    let mut random = Random::new(62);
    let mut values = || -> Vec<f64> {
        let mut value =
            || (f64::from(random.unit()) + f64::from(random.unit()) * 2f64.powi(-30)) * 2f64.powi(random.int(-9, 9));
        (0..n).map(|_| value()).collect()
    };
    let (a, b) = (values(), values());
    let mut out = Vec::new();
    for (x, y) in a.iter().copied().zip(b.iter().copied()) {
        let mut r = x;
        for _ in 0..8 {
            // As the compiler contracts it.
            r -= (r * (r * r) - x.abs()) / (3.0 * r).mul_add(r, 1e-9);
        }
        let mixed = f64::from_bits(x.to_bits() >> 32 << 32 | y.to_bits() & 0xFFFF_FFFF);
        out.extend([
            x / y,
            x.abs().sqrt(),
            x.mul_add(y, -1.5),
            (x * 8.0).floor() + (y * 8.0).trunc(),
            f64::from(x as f32) + ((y * 1e6) as i64) as f64,
            x.min(y) - x.max(0.25),
            r,
            x.mul_add(y, mixed),
        ]);
    }
    Case::new("double_math", ptx!("double_math"), "double_math")
        .grid(4, 1)
        .block(64, 1)
        .input(&a, f64::to_le_bytes)
        .input(&b, f64::to_le_bytes)
        .result(&out, f64::to_le_bytes)
        .int(n)
}

fn atomics() -> Case {
    let n = 300;
    let a = Random::new(63).ints(n, -4000, 4000);
    let sum: i32 = a.iter().sum();
    let (top, least) = (a.iter().max().map_or(0, |v| *v), a.iter().min().map_or(0, |v| *v));
    let bits = a.iter().fold(0u32, |bits, v| bits | 1 << (v & 31));
    let odd = a.iter().fold(0, |x, v| x ^ v);
    let high = a.iter().map(|v| v & 0xFFFF).max().map_or(0, |v| v);
    // From 0 down: 41, 40 to 0, 41 again.
    let down = (42 - n as u32 % 42) % 42;
    let after =
        [top as u32, least as u32, bits, !bits, odd as u32, n as u32 % 100, down, (-sum) as u32, high as u32, 77];
    let before = [i32::MIN as u32, i32::MAX as u32, 0, u32::MAX, 0, 0, 0, 0, 0, 0];
    let squares: u64 = a.iter().map(|v| (*v as i64 * *v as i64) as u64).sum();
    let widest = a.iter().map(|v| u64::from(*v as u32) << 20).max().map_or(0, |v| v);
    let floats = [sum as f32, top as f32 * 0.5];
    let bits_of = |v: &[u32]| super::data::bytes(v, u32::to_le_bytes);
    Case::new("atomics", ptx!("atomics"), "atomics")
        .grid(4, 1)
        .block(96, 1)
        .input(&a, i32::to_le_bytes)
        .output(bits_of(&before), Output::Bits(bits_of(&after)))
        .output(vec![0; 8], Output::Bits(super::data::bytes(&floats, f32::to_le_bytes)))
        .output(vec![0; 16], Output::Bits(super::data::bytes(&[squares, widest], u64::to_le_bytes)))
        .int(n as i32)
}

fn device_call() -> Case {
    let a = Random::new(64).ints(100, 1, 60);
    let collatz = |mut v: i32| {
        let (mut steps, mut top) = (0, 0);
        while v != 1 {
            v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
            steps += 1;
            top = top.max(v);
        }
        [steps, top]
    };
    let out: Vec<i32> = a
        .iter()
        .flat_map(|v| {
            let [steps, top] = collatz(if v % 2 == 1 { *v } else { v + 1 });
            [if v % 2 == 1 { steps } else { -steps }, top]
        })
        .collect();
    Case::new("device_call", ptx!("device_call"), "device_call")
        .grid(2, 1)
        .block(64, 1)
        .input(&a, i32::to_le_bytes)
        .result(&out, i32::to_le_bytes)
        .int(100)
}

pub(super) fn cases() -> Vec<Case> {
    vec![half_math(), double_math(), atomics(), device_call()]
}

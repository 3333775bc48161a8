//! Reductions, scans and rows: over warps, blocks and the grid.

use super::case::{Agreement, Case, Output, ptx};
use super::data::Random;

/// The approximate functions are the manual's to some units in the last place, not a device's to the bit.
const EX2: &str = "ex2.approx";

fn reduce() -> Case {
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| (i % 17) as f32).collect();
    let sum: f32 = a.iter().sum();
    Case::new("reduce", ptx!("reduce"), "reduce")
        .grid(3, 1)
        .block(128, 1)
        .dynamic(16)
        .input(&a, f32::to_le_bytes)
        .output(vec![0; 4], Output::Bits(sum.to_le_bytes().to_vec()))
        .int(n)
}

fn scan() -> Case {
    let n = 200;
    let a = Random::new(21).ints(n, -50, 99);
    let mut sum = 0;
    let sums: Vec<i32> = a.iter().map(|v| (sum += v, sum).1).collect();
    Case::new("scan", ptx!("scan"), "scan")
        .block(256, 1)
        .input(&a, i32::to_le_bytes)
        .result(&sums, i32::to_le_bytes)
        .int(n as i32)
}

fn histogram() -> Case {
    let a: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
    let mut counts = [0u32; 256];
    a.iter().for_each(|v| counts[usize::from(*v)] += 1);
    let counts = super::data::bytes(&counts, u32::to_le_bytes);
    Case::new("histogram", ptx!("histogram"), "histogram")
        .grid(4, 1)
        .block(96, 1)
        .input(&a, u8::to_le_bytes)
        .output(vec![0; 1024], Output::Bits(counts))
        .int(1000)
}

/// Values of rows with what `e^(x - max)` gives, divided by the sum.
fn softmax_row(row: &[f64]) -> Vec<f64> {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
    row.iter().map(|x| (x - top).exp() / sum).collect()
}

fn softmax() -> Case {
    let n = 70;
    let a: Vec<f32> = (0..3 * n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 8.0).collect();
    let mut out = Vec::new();
    for row in a.chunks(n) {
        let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        out.extend(softmax_row(&row).into_iter().map(|v| (v, v * 1e-5)));
    }
    Case::new("softmax", ptx!("softmax"), "softmax")
        .grid(3, 1)
        .block(64, 1)
        .input(&a, f32::to_le_bytes)
        .near(out)
        .int(n as i32)
        .agreement(Agreement::Relative(4e-6, EX2))
}

fn online_softmax(keys: usize) -> Case {
    let mut random = Random::new(23);
    let queries = 8;
    let (q, k, v) = (random.units(queries * 32), random.units(keys * 32), random.units(keys * 32));
    let mut out = Vec::new();
    for query in q.chunks(32) {
        let score = |key: &[f32]| 0.25 * key.iter().zip(query).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
        let weights = softmax_row(&k.chunks(32).map(score).collect::<Vec<_>>());
        for column in 0..32 {
            let value = weights.iter().enumerate().map(|(i, w)| w * f64::from(v[i * 32 + column])).sum();
            out.push((value, 1e-5));
        }
    }
    Case::new(format!("online_softmax {keys}"), ptx!("online_softmax"), "online_softmax")
        .grid(2, 1)
        .block(128, 1)
        .input(&q, f32::to_le_bytes)
        .input(&k, f32::to_le_bytes)
        .input(&v, f32::to_le_bytes)
        .near(out)
        .int(keys as i32)
        .agreement(Agreement::OfLargest(4e-6, EX2))
}

fn layernorm() -> Case {
    let mut random = Random::new(24);
    let (rows, n) = (5, 77);
    let (a, scale, shift) = (random.units(rows * n), random.units(n), random.units(n));
    let mut out = Vec::new();
    for row in a.chunks(n) {
        let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / n as f64;
        let variance = row.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n as f64;
        let r = 1.0 / (variance + 1e-5).sqrt();
        for (i, x) in row.iter().enumerate() {
            out.push(((f64::from(*x) - mean) * r * f64::from(scale[i]) + f64::from(shift[i]), 1e-5));
        }
    }
    Case::new("layernorm", ptx!("layernorm"), "layernorm")
        .grid(2, 1)
        .block(96, 1)
        .input(&a, f32::to_le_bytes)
        .input(&scale, f32::to_le_bytes)
        .input(&shift, f32::to_le_bytes)
        .near(out)
        .int(rows as i32)
        .int(n as i32)
}

/// Adds as the butterfly and the downward shuffle of the kernel do, step by step.
fn shuffles() -> Case {
    let a = Random::new(25).units(128);
    let (mut out, mut wide) = (Vec::new(), Vec::new());
    for warp in a.chunks(32) {
        let (mut s, mut m) = (warp.to_vec(), warp.to_vec());
        let mut d: Vec<f64> = warp.iter().map(|x| f64::from(*x)).collect();
        for o in [16, 8, 4, 2, 1] {
            s = (0..32).map(|i| s[i] + s[i ^ o]).collect();
            d = (0..32).map(|i| d[i] + d[if i + o < 32 { i + o } else { i }]).collect();
        }
        for o in [4, 2, 1] {
            m = (0..32).map(|i| m[i].max(m[if i % 8 + o < 8 { i + o } else { i }])).collect();
        }
        for i in 0..32 {
            let turned = warp[(i + 1) % 32] - warp[i / 16 * 16 + 3];
            out.extend([s[i], m[i], turned, warp[if i < 5 { i } else { i - 5 }]]);
        }
        wide.push(d[0]);
    }
    Case::new("shuffles", ptx!("shuffles"), "shuffles")
        .grid(2, 1)
        .block(64, 1)
        .input(&a, f32::to_le_bytes)
        .result(&out, f32::to_le_bytes)
        .result(&wide, f64::to_le_bytes)
}

fn warp_collectives() -> Case {
    let n = 150;
    let mut random = Random::new(26);
    let a: Vec<u32> = (0..n).map(|i| random.word() % if i < 64 { 8192 } else { 4096 }).collect();
    let mut out = Vec::new();
    for warp in a.chunks(32) {
        let all = if warp.len() == 32 { u32::MAX } else { (1 << warp.len()) - 1 };
        let mask =
            |f: &dyn Fn(u32) -> bool| warp.iter().enumerate().map(|(i, v)| u32::from(f(*v)) << i).fold(0, |a, b| a | b);
        let fold = |start, f: fn(u32, u32) -> u32| warp.iter().copied().fold(start, f);
        let same = warp.iter().all(|v| v / 4096 == warp[0] / 4096);
        for (lane, v) in warp.iter().enumerate() {
            let even: u32 = warp.iter().step_by(2).sum();
            out.extend([
                fold(0, |a, b| a + b),
                fold(u32::MAX, u32::min),
                fold(0, u32::max) ^ fold(0, |a, b| a ^ b) & fold(0, |a, b| a | b),
                mask(&|u| u % 5 == v % 5),
                if same { all.wrapping_mul(2) + 1 } else { 0 },
                mask(&|u| u % 2 == 1)
                    .wrapping_add(u32::from(warp.iter().all(|u| *u < 4096)) << 1)
                    .wrapping_add(u32::from(warp.contains(&7))),
                if lane % 2 == 1 { *v } else { even },
                mask(&|u| u % 2 == v % 2).count_ones(),
            ]);
        }
    }
    Case::new("warp_collectives", ptx!("warp_collectives"), "warp_collectives")
        .grid(3, 1)
        .block(64, 1)
        .input(&a, u32::to_le_bytes)
        .result(&out, u32::to_le_bytes)
        .int(n)
}

fn compact() -> Case {
    let a = Random::new(27).ints(4 * 600, -40, 60);
    let kept: Vec<i32> = a.iter().copied().filter(|v| *v >= 0).collect();
    let mut after = super::data::bytes(&kept, i32::to_le_bytes);
    after.resize(4 * a.len(), 0xA5);
    Case::new("compact", ptx!("compact"), "compact")
        .block(256, 1)
        .input(&a, i32::to_le_bytes)
        .output(vec![0xA5; after.len()], Output::Bits(after))
        .result(&[kept.len() as i32], i32::to_le_bytes)
        .int(600)
}

fn last_block() -> Case {
    let n = 3000;
    let a = Random::new(28).ints(n, -1000, 1000);
    let (blocks, threads) = (5, 96);
    let mut parts = vec![0; blocks];
    a.iter().enumerate().for_each(|(i, v)| parts[i / threads % blocks] += v);
    Case::new("last_block", ptx!("last_block"), "last_block")
        .grid(blocks as u32, 1)
        .block(threads as u32, 1)
        .input(&a, i32::to_le_bytes)
        .result(&parts, i32::to_le_bytes)
        .result(&[a.iter().sum::<i32>()], i32::to_le_bytes)
        .int(n as i32)
}

fn lookback() -> Case {
    let (blocks, threads) = (11, 128);
    let n = blocks * threads - 37;
    let a = Random::new(30).ints(n, -1000, 1000);
    let mut sum = 0;
    let sums: Vec<i32> = a.iter().map(|v| (sum += v, sum).1).collect();
    // What the first block would have published as its own sum it publishes as that of everything.
    let own: Vec<i32> = a.chunks(threads).map(|part| part.iter().sum()).collect();
    let own = std::iter::once(-1).chain(own[1..].iter().copied()).collect::<Vec<i32>>();
    let totals: Vec<i32> = sums.chunks(threads).map(|part| part[part.len() - 1]).collect();
    let bits = |values: &[i32]| Output::Bits(values.iter().flat_map(|v| v.to_le_bytes()).collect());
    Case::new("lookback", ptx!("lookback"), "lookback")
        .grid(blocks as u32, 1)
        .block(threads as u32, 1)
        .input(&a, i32::to_le_bytes)
        .result(&sums, i32::to_le_bytes)
        .output(vec![0; 4 * blocks], bits(&vec![2; blocks]))
        .output(vec![0xFF; 4 * blocks], bits(&own))
        .result(&totals, i32::to_le_bytes)
        .int(n as i32)
}

fn split_turns() -> Case {
    let (rows, cols, parts) = (45, 150, 7);
    let a: Vec<f32> = Random::new(31).ints(rows * cols, -1000, 1000).iter().map(|v| *v as f32 / 7.0).collect();
    // In the order of the parts, as the blocks do.
    let sum = |col: usize| {
        let part = |part: usize| (part..rows).step_by(parts).fold(0f32, |sum, row| sum + a[row * cols + col]);
        (1..parts).fold(part(0), |sum, next| sum + part(next))
    };
    let sums: Vec<f32> = (0..cols).map(sum).collect();
    Case::new("split_turns", ptx!("split_turns"), "split_turns")
        .grid(3, parts as u32)
        .block(64, 1)
        .input(&a, f32::to_le_bytes)
        .result(&sums, f32::to_le_bytes)
        .output(vec![0; 12], Output::Bits(vec![0; 12]))
        .int(rows as i32)
        .int(cols as i32)
}

fn dot_int8() -> Case {
    let mut random = Random::new(29);
    let (rows, words) = (7, 50);
    let mut values = |n: usize| -> Vec<u32> { (0..n).map(|_| random.word()).collect() };
    let (a, x) = (values(rows * words), values(words));
    let dot = |row: &[u32], f: fn(u8) -> i32| -> i32 {
        row.iter()
            .zip(&x)
            .flat_map(|(a, x)| a.to_le_bytes().into_iter().zip(x.to_le_bytes()))
            .map(|(a, x)| f(a) * f(x))
            .sum()
    };
    let mut out: Vec<i32> = a.chunks(words).map(|row| dot(row, |v| i32::from(v as i8))).collect();
    out.extend(a.chunks(words).map(|row| dot(row, i32::from)));
    Case::new("dot_int8", ptx!("dot_int8"), "dot_int8")
        .grid(2, 1)
        .block(128, 1)
        .input(&a, u32::to_le_bytes)
        .input(&x, u32::to_le_bytes)
        .result(&out, i32::to_le_bytes)
        .int(rows as i32)
        .int(words as i32)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        reduce(),
        scan(),
        histogram(),
        softmax(),
        online_softmax(100),
        layernorm(),
        shuffles(),
        warp_collectives(),
        compact(),
        last_block(),
        lookback(),
        split_turns(),
        dot_int8(),
    ]
}

//! Kernels that move: transposes, stencils, sorting, accesses of every width.

use super::case::{Case, ptx};
use super::data::Random;

fn transpose(kernel: &'static str, ptx: &'static str, n: usize) -> Case {
    let a = Random::new(41).units(n * n);
    let out: Vec<f32> = (0..n * n).map(|i| a[i % n * n + i / n]).collect();
    let tiles = n.div_ceil(32) as u32;
    Case::new(format!("{kernel} {n}"), ptx, kernel)
        .grid(tiles, tiles)
        .block(32, 8)
        .input(&a, f32::to_le_bytes)
        .result(&out, f32::to_le_bytes)
        .int(n as i32)
}

fn stencil() -> Case {
    let (h, w) = (19, 70);
    let a = Random::new(42).units(h * w);
    let mut out = a.clone();
    for y in 1..h - 1 {
        for x in 1..w - 1 {
            let at = |y: usize, x: usize| a[y * w + x];
            let around = at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1);
            out[y * w + x] = 0.2f32.mul_add(around, 0.2 * at(y, x));
        }
    }
    Case::new("stencil", ptx!("stencil"), "stencil")
        .grid(3, 3)
        .block(32, 8)
        .input(&a, f32::to_le_bytes)
        .result(&out, f32::to_le_bytes)
        .int(h as i32)
        .int(w as i32)
}

fn bitonic() -> Case {
    let mut random = Random::new(43);
    let a: Vec<u32> = (0..1024).map(|i| if i < 512 { random.word() } else { random.word() % 100 }).collect();
    let mut out = a.clone();
    out.chunks_mut(512).for_each(<[u32]>::sort_unstable);
    Case::new("bitonic", ptx!("bitonic"), "bitonic")
        .grid(2, 1)
        .block(256, 1)
        .input(&a, u32::to_le_bytes)
        .result(&out, u32::to_le_bytes)
}

/// Elements of `size` bytes through shared memory at a stride, to the neighbour.
fn shared(entry: &'static str, size: usize, stride: u32, shift: u32) -> Case {
    let mut random = Random::new(44);
    let a: Vec<u8> = (0..128 * size).map(|_| random.word() as u8).collect();
    let out: Vec<u8> = (0..128 * size).map(|i| a[((i / size) ^ 1) * size + i % size]).collect();
    Case::new(format!("access {entry} stride {stride} shift {shift}"), ptx!("access"), entry)
        .block(128, 1)
        .dynamic((127 * stride + shift + 1) * size as u32)
        .input(&a, u8::to_le_bytes)
        .result(&out, u8::to_le_bytes)
        .int(stride as i32)
        .int(shift as i32)
}

/// Elements of `size` bytes loaded at a stride from global memory.
fn loads(entry: &'static str, size: usize, stride: usize, shift: usize) -> Case {
    let mut random = Random::new(45);
    let a: Vec<u8> = (0..(255 * stride + shift + 1) * size).map(|_| random.word() as u8).collect();
    let out: Vec<u8> = (0..256 * size).map(|i| a[(i / size * stride + shift) * size + i % size]).collect();
    Case::new(format!("access {entry} stride {stride} shift {shift}"), ptx!("access"), entry)
        .grid(2, 1)
        .block(128, 1)
        .input(&a, u8::to_le_bytes)
        .result(&out, u8::to_le_bytes)
        .int(stride as i32)
        .int(shift as i32)
}

fn stores(stride: usize, shift: usize) -> Case {
    let mut random = Random::new(46);
    let a: Vec<u32> = (0..256).map(|_| random.word()).collect();
    let mut out = vec![0xA5A5_A5A5u32; 255 * stride + shift + 1];
    a.iter().enumerate().for_each(|(i, v)| out[i * stride + shift] = *v);
    Case::new(format!("access global_store stride {stride} shift {shift}"), ptx!("access"), "global_store")
        .grid(2, 1)
        .block(128, 1)
        .input(&a, u32::to_le_bytes)
        .result(&out, u32::to_le_bytes)
        .int(stride as i32)
        .int(shift as i32)
}

pub(super) fn cases() -> Vec<Case> {
    let mut all = vec![
        transpose("transpose", ptx!("transpose"), 45),
        transpose("transpose", ptx!("transpose"), 96),
        transpose("transpose_xor", ptx!("transpose_xor"), 96),
        transpose("transpose_plain", ptx!("transpose_plain"), 96),
        stencil(),
        bitonic(),
    ];
    for (entry, size) in
        [("shared_u8", 1), ("shared_u16", 2), ("shared_u32", 4), ("shared_u64", 8), ("shared_u128", 16)]
    {
        all.extend([1, 2, 3, 8, 32].map(|stride| shared(entry, size, stride, stride - 1)));
    }
    for (stride, shift) in [(1, 0), (1, 3), (2, 0), (5, 1), (32, 0)] {
        all.push(loads("global_u8", 1, stride, shift));
        all.push(loads("global_u32", 4, stride, shift));
        all.push(loads("global_u128", 16, stride, shift));
        all.push(stores(stride, shift));
    }
    all
}

//! Launches that decide between rules of what an access costs: copies and loads of one warp between places of a table.

use super::case::{Case, Output, Param, ptx};
use super::data::{Random, bytes};

/// What a lane copies: byte offsets of source and destination, and the bytes read.
type Copy = Option<(usize, usize, usize)>;

/// `size` bytes a lane, by the kernel for them.
fn copies(name: &str, entry: &'static str, size: usize, lane: impl Fn(usize) -> Copy) -> Case {
    let lanes: Vec<Copy> = (0..32).map(lane).collect();
    let ends = |end: fn((usize, usize, usize)) -> usize| lanes.iter().flatten().map(|c| end(*c) + size).max();
    let (inputs, words) = (ends(|c| c.0).unwrap_or(size), ends(|c| c.1).unwrap_or(size).div_ceil(4));
    let mut random = Random::new(71);
    let a: Vec<u8> = (0..inputs.next_multiple_of(16)).map(|_| random.word() as u8).collect();
    let mut out = bytes(&vec![7u32; words], u32::to_le_bytes);
    let mut table: Vec<i32> = Vec::new();
    for copy in &lanes {
        let Some((from, to, read)) = *copy else {
            table.extend([0, -1, 0, 0]);
            continue;
        };
        table.extend([from as i32, to as i32, read as i32, 0]);
        out[to..to + size].fill(0);
        out[to..to + read].copy_from_slice(&a[from..from + read]);
    }
    let mut case = Case::new(format!("copies {entry} {name}"), ptx!("copies"), entry)
        .block(32, 1)
        .dynamic(4 * words as u32)
        .input(&a, u8::to_le_bytes)
        .input(&table, i32::to_le_bytes);
    case.params.push(Param::Out(vec![0xA5; out.len()]));
    case.expect = super::Expect::Outputs(vec![Output::Bits(out)]);
    case.int(words as i32)
}

/// Elements of `size` bytes of shared memory, by index.
fn loads(name: &str, size: usize, lane: impl Fn(usize) -> Option<usize>) -> Case {
    let lanes: Vec<Option<usize>> = (0..32).map(lane).collect();
    let n = lanes.iter().flatten().max().map_or(1, |at| at + 1);
    let mut random = Random::new(72);
    let a: Vec<u8> = (0..n * size).map(|_| random.word() as u8).collect();
    let table: Vec<i32> = lanes.iter().map(|at| at.map_or(-1, |at| at as i32)).collect();
    let mut out = vec![0xA5; 32 * size];
    for (lane, at) in lanes.iter().enumerate() {
        if let Some(at) = at {
            out[lane * size..(lane + 1) * size].copy_from_slice(&a[at * size..(at + 1) * size]);
        }
    }
    Case::new(format!("loads {size} bytes {name}"), ptx!("loads"), if size == 8 { "load8" } else { "load16" })
        .block(32, 1)
        .dynamic((n * size) as u32)
        .input(&a, u8::to_le_bytes)
        .input(&table, i32::to_le_bytes)
        .output(vec![0xA5; 32 * size], Output::Bits(out))
        .int(n as i32)
}

pub(super) fn cases() -> Vec<Case> {
    let wide = |name: &str, place: fn(usize) -> (usize, usize)| {
        copies(name, "copy16", 16, move |l| Some((place(l).0, place(l).1, 16)))
    };
    let mut all = vec![
        wide("plain", |l| (l * 16, l * 16)),
        wide("lines by xor", |l| (l * 16, l / 8 * 128 + ((l % 8) ^ (l / 8) ^ 5) * 16)),
        // Rows of 64 bytes, two to a line of the destination: the halves of the lines where they were, then exchanged.
        wide("half rows", |l| (l / 4 * 448 + l % 4 * 16, l * 16)),
        wide("half rows exchanged", |l| (l / 4 * 448 + l % 4 * 16 + 64, l * 16)),
        wide("half rows by xor", |l| (l / 4 * 448 + l % 4 * 16, l / 4 * 64 + ((l % 4) ^ (l / 8)) * 16)),
        wide("half rows exchanged by xor", |l| (l / 4 * 448 + l % 4 * 16 + 64, l / 4 * 64 + ((l % 4) ^ (l / 8)) * 16)),
        wide("quarter rows", |l| (l / 2 * 160 + l % 2 * 16, l * 16)),
        wide("pieces exchanged in sectors", |l| (l * 16, (l ^ 1) * 16)),
        wide("sectors exchanged", |l| (l * 16, (l ^ 2) * 16)),
        wide("halves exchanged", |l| (l * 16, (l ^ 4) * 16)),
        wide("lines exchanged", |l| (l * 16, (l ^ 8) * 16)),
        wide("rotated by a piece", |l| (l * 16, l / 8 * 128 + (l + 1) % 8 * 16)),
        wide("rotated by a sector", |l| (l * 16, l / 8 * 128 + (l + 2) % 8 * 16)),
        wide("reversed", |l| (l * 16, (31 - l) * 16)),
        wide("source off by 16", |l| (l * 16 + 16, l * 16)),
        wide("source off by 32", |l| (l * 16 + 32, l * 16)),
        wide("source off by 64", |l| (l * 16 + 64, l * 16)),
        wide("destination off by 32", |l| (l * 16, l * 16 + 32)),
        wide("sectors scattered", |l| (l * 16, l / 2 * 160 + l % 2 * 16)),
        wide("half rows scattered", |l| (l * 16, l / 4 * 192 + l % 4 * 16)),
        wide("first line split", |l| (l * 16, if l < 8 { l * 32 } else { 256 + l * 16 })),
        wide("first sector split", |l| (l * 16, if l == 0 { 1024 } else { l * 16 })),
        wide("one source", |l| (0, l * 16)),
        copies("half a warp", "copy16", 16, |l| (l < 16).then_some((l * 16, l * 16, 16))),
        copies("even lanes", "copy16", 16, |l| (l % 2 == 0).then_some((l * 16, l * 16, 16))),
        copies("all zeros", "copy16", 16, |l| Some((l * 16, l * 16, 0))),
        copies("zeros by xor", "copy16", 16, |l| Some((l * 16, l / 8 * 128 + ((l % 8) ^ (l / 8)) * 16, 0))),
        copies("zeros scattered", "copy16", 16, |l| Some((l * 16, l * 32, 0))),
        copies("half zeros", "copy16", 16, |l| Some((l * 16, l * 16, if l < 16 { 16 } else { 0 }))),
        copies("zeros in every line", "copy16", 16, |l| Some((l * 16, l * 16, if l % 8 < 6 { 16 } else { 0 }))),
        copies("parts", "copy16", 16, |l| Some((l * 16, l * 16, l % 4 * 4 + 4))),
        copies("plain", "copy16_whole", 16, |l| Some((l * 16, l * 16, 16))),
        copies("half rows exchanged", "copy16_whole", 16, |l| Some((l / 4 * 448 + l % 4 * 16 + 64, l * 16, 16))),
        copies("plain", "copy16_ca", 16, |l| Some((l * 16, l * 16, 16))),
        copies("rows apart", "copy16_ca", 16, |l| Some((l * 16, l * 80, 16))),
        copies("half rows exchanged", "copy16_ca", 16, |l| Some((l / 4 * 448 + l % 4 * 16 + 64, l * 16, 16))),
        copies("all zeros", "copy16_ca", 16, |l| Some((l * 16, l * 16, 0))),
    ];
    for (entry, size) in [("copy8", 8), ("copy4", 4)] {
        all.push(copies("plain", entry, size, move |l| Some((l * size, l * size, size))));
        all.push(copies("exchanged", entry, size, move |l| Some((l * size, (l ^ 1) * size, size))));
        all.push(copies("every other", entry, size, move |l| Some((l * size, 2 * l * size, size))));
        all.push(copies("rows apart", entry, size, move |l| Some((l * size, l * (128 + size), size))));
        all.push(copies("a column", entry, size, move |l| Some((l * 128, l * 128, size))));
        all.push(copies("all zeros", entry, size, move |l| Some((l * size, l * size, 0))));
    }
    for size in [8, 16] {
        let mut load = |name: &str, at: fn(usize) -> usize| all.push(loads(name, size, move |l| Some(at(l))));
        load("pairs", |l| l / 2);
        load("pairs two apart", |l| l / 4 * 2 + l % 2);
        load("pairs four apart", |l| l / 8 * 4 + l % 4);
        load("pairs eight apart", |l| l / 16 * 8 + l % 8);
        load("halves alike", |l| l % 16);
        load("fours", |l| l / 4);
        load("one", |_| 0);
        load("one for each half", |l| l / 16);
        load("both ways by turns", |l| if l < 16 { l / 2 } else { 8 + (l - 16) / 4 * 2 + l % 2 });
        load("pairs in one half", |l| if l < 16 { l / 2 } else { l });
        load("pairs in a quarter", |l| if l < 8 { l / 2 } else { l });
        load("pairs in conflict", |l| l / 2 * 32);
        all.push(loads("even lanes", size, |l| (l % 2 == 0).then_some(l / 2)));
        all.push(loads("first half", size, |l| (l < 16).then_some(l)));
        all.push(loads("two lanes of four", size, |l| (l % 4 < 2).then_some(l)));
        all.push(loads("pairs of some", size, |l| (l % 8 < 6).then_some(l / 2)));
    }
    all
}

//! Deliberately wrong kernels; all are `kernel(const int *in, int *out, int n)`.

use super::case::{Case, Expect, Param, ptx};
use tilec_sim::ReportKind::{self, Deadlock, Divergence, Misaligned, OutOfBounds, Race, Uninitialised};

struct Wrong {
    kernel: &'static str,
    ptx: &'static str,
    grid: u32,
    n: i32,
    kinds: &'static [ReportKind],
    /// Part of the report's text.
    says: &'static str,
}

/// A read may precede the write of the same word. Then it is a read of unwritten memory.
const UNORDERED: &[ReportKind] = &[Race, Uninitialised];

pub(super) fn cases() -> Vec<Case> {
    let wrong = |kernel, ptx, kinds, says| Wrong { kernel, ptx, grid: 1, n: 256, kinds, says };
    let all = [
        wrong("racy", ptx!("racy"), UNORDERED, "racy.cu:6"),
        wrong("warp_race", ptx!("warp_race"), UNORDERED, "warp_race.cu"),
        wrong("early_read", ptx!("early_read"), UNORDERED, "early_read.cu"),
        Wrong { grid: 2, n: 200, ..wrong("block_race", ptx!("block_race"), &[Race], "block_race.cu:4") },
        Wrong { n: 128, ..wrong("global_race", ptx!("global_race"), &[Race], "global_race.cu") },
        wrong("outside", ptx!("outside"), &[OutOfBounds], "outside.cu:4"),
        Wrong { n: 100, ..wrong("past_array", ptx!("past_array"), &[OutOfBounds], "past_array.cu:5") },
        wrong("misaligned", ptx!("misaligned"), &[Misaligned], "misaligned.cu:5"),
        wrong("unwritten", ptx!("unwritten"), &[Uninitialised], "unwritten.cu:7"),
        wrong("divergent_barrier", ptx!("divergent_barrier"), &[Divergence], "divergent_barrier.cu"),
        wrong("missing_warps", ptx!("missing_warps"), &[Deadlock], "barrier 1"),
    ];
    all.into_iter()
        .map(|w| {
            let input: Vec<i32> = (0..256).map(|i| if i % 7 == 3 { -1 } else { 300 + i }).collect();
            let mut case = Case::new(w.kernel, w.ptx, w.kernel).grid(w.grid, 1).block(256, 1).dynamic(400);
            match w.kernel {
                "past_array" => {}
                "global_race" => case = case.block(128, 1).dynamic(0),
                _ => case.dynamic = 0,
            }
            let mut case = case.input(&input, i32::to_le_bytes);
            case.params.push(Param::Out(vec![0; 1024]));
            case.expect = Expect::Report(w.kinds, w.says);
            case.int(w.n)
        })
        .collect()
}

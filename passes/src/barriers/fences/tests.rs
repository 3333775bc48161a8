//! Known programs, each of whose fences is necessary.

use super::prove;
use crate::Options;
use tilec_ir::codes;
use tilec_ir::diag::{Severity, Sink};
use tilec_ir::entities::Block;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::Target;

/// A buffer that a TMA store reads.
const STORED: &str = "kernel t(A: gmem f32[M, N], C: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 64)) {
    let s = smem f32[64, 32]
    for j in 0..N step 32 {
        await s, 0
        copy A[i * 64.., j..] -> s
        copy s -> C[i * 64.., j..] tma
    }
    await s, 0
}";

/// Slots that threads fill by stores or by asynchronous copies.
const SLOTS: &str = "kernel t(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f32[M, N])
    grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) schedule { threads 128 warp_tile (64, 64) } {
    let a = channel f16[64, 64] slots 4
    let b = channel f16[64, 64] slots 2
    role producer warps 4 {
        for k in 0..K step 64 {
            acquire a
            copy A[i * 64.., k..] -> a.put
            publish a
            acquire b
            copy B[k.., j * 64..] -> b.put tma
            publish b
        }
    }
    role consumer warps 4 {
        var acc = reg f32[64, 64] = 0.0
        for k in 0..K step 64 {
            wait a
            wait b
            acc = mma<m64k16>(a.get, b.get, acc)
            await acc, 0
            release a
            release b
        }
        copy acc -> C[i * 64.., j * 64..]
    }
}";

/// A buffer that products read.
const MULTIPLIED: &str = include_str!("../../../../tests/files/pass/buffer_operand.tile");

fn compiled(source: &str) -> Kernel {
    let mut sink = Sink::new();
    let mut k = tilec_ir::parser::parse(source, &mut sink).map(|m| m.kernels[0].clone()).expect("parses");
    let result = crate::run(&mut k, &Options::new(Target::Sm90a), &mut sink, &mut |_, _| {});
    assert!(result.is_ok(), "{:#?}", sink.diagnostics());
    k
}

fn fences(k: &Kernel) -> Vec<(Block, usize)> {
    let mut out = Vec::new();
    k.walk(k.body, &mut |k, b, s| {
        if matches!(k.stmts[s], StmtData::Fence) {
            out.push((b, k.blocks[b].iter().position(|t| *t == s).expect("walked in its block")));
        }
    });
    out
}

#[test]
fn each_fence_is_needed() {
    let asynchronous = SLOTS.replace("a.put", "a.put async");
    for (source, count) in [(STORED, 1), (SLOTS, 1), (&asynchronous, 1), (MULTIPLIED, 2)] {
        let k = compiled(source);
        let text = tilec_ir::print::print(&k);
        assert_eq!(fences(&k).len(), count, "{text}");
        assert_eq!(prove(&k), [], "{text}");
        for (b, at) in fences(&k) {
            let mut less = k.clone();
            less.blocks[b].remove(at);
            let found = prove(&less);
            let refused = found.iter().any(|d| d.severity == Severity::Error && d.code == codes::HAZARD);
            assert!(
                refused,
                "a fence can be left out, and the proof does not mind:\n{}",
                tilec_ir::print::print(&less)
            );
        }
    }
}

#[test]
fn a_fence_stands_anywhere_between() {
    let mut k = compiled(STORED);
    let (b, at) = fences(&k)[0];
    // Also after the barrier: then the thread that issues the store fences what the barrier made visible to it.
    k.blocks[b].swap(at, at + 1);
    assert!(matches!(k.stmts[k.blocks[b][at]], StmtData::Barrier), "{}", tilec_ir::print::print(&k));
    assert_eq!(prove(&k), []);
    // Not after the read.
    k.blocks[b].swap(at + 1, at + 2);
    assert_eq!(prove(&k).len(), 1);
}

#[test]
fn a_second_run_places_nothing() {
    let k = compiled(SLOTS);
    let again = compiled(&tilec_ir::print::print(&k));
    assert_eq!(fences(&k).len(), fences(&again).len());
}

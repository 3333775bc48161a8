//! Hostile text: the parser and the executor must report it, and not panic, hang or exhaust memory.
#![allow(clippy::unwrap_used, reason = "tests")]

use arbitrary::Unstructured;
use tilec_sim::{Device, Landing, Launch, Options, Order, Program};

const SEEDS: [&str; 6] = [
    include_str!("data/gemm_rr_f32.ptx"),
    include_str!("data/gemm_cc_f16_unaligned.ptx"),
    SMALL,
    PHASES,
    CALLS,
    HOPPER,
];

const HOPPER: &str = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n.maxntid 64\n.minnctapersm 1\n\
    .reqnctapercluster 2, 1, 1\n{\n.reg .pred %p<4>;\n.reg .b16 %h;\n.reg .b32 %r<12>;\n.reg .b64 %rd<5>;\n.reg .f32 %f<4>;\n\
    .shared .align 8 .b64 b;\n.shared .align 1024 .b8 x[2048];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, b;\nmov.u32 %r2, x;\n\
    ld.param.u64 %rd0, [p];\nsetp.eq.u32 %p0, %r0, 0;\nmov.u32 %r5, %cluster_ctarank;\nmov.b16 %h, 3;\n\
    @%p0 mbarrier.init.shared.b64 [%r1], 1;\n@%p0 fence.mbarrier_init.release.cluster;\n\
    @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 32;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
    setp.eq.and.u32 %p1, %r5, 0, %p0;\n@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \
    [%r2], [%rd0], 32, [%r1], %h;\nL:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;\n@!%p2 bra L;\n\
    @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd0, {%r0, 1}], [%r1];\n\
    @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 16;\n@%p0 cp.async.bulk.commit_group;\n\
    @%p0 cp.async.bulk.wait_group.read 0;\nmapa.shared::cluster.u32 %r3, %r2, %r0;\nld.shared::cluster.u32 %r4, [%r3];\n\
    setmaxnreg.dec.sync.aligned.u32 40;\nfence.proxy.async;\nwgmma.fence.sync.aligned;\n\
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd0, 0, 1, 1, 0, 0;\n\
    wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nret;\n}\n";

const PHASES: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>;\n\
    .reg .b32 %r<9>;\n.reg .b64 %rd<5>;\n.shared .b64 b;\n.shared .b32 x[64];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, b;\n\
    shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\nld.param.u64 %rd0, [p];\nsetp.eq.u32 %p0, %r0, 0;\n\
    @%p0 mbarrier.init.shared.b64 [%r1], 128;\nbar.sync 0;\ncp.async.ca.shared.global [%r3+8], [%rd0], 4;\n\
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\nmbarrier.arrive.shared.b64 %rd1, [%r1];\n\
    L:\nmbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;\n@!%p1 bra L;\nld.shared.u32 %r4, [%r3+8];\n\
    mbarrier.arrive.noComplete.shared.b64 %rd2, [%r1], 1;\nmbarrier.pending_count.b64 %r5, %rd2;\n\
    mbarrier.arrive_drop.expect_tx.shared.b64 _, [%r1], 16;\nmbarrier.complete_tx.shared.b64 [%r1], 16;\nret;\n}\n";

const CALLS: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.func (.param .b32 r) f(.param .b32 x)\n{\n\
    .reg .pred %p;\n.reg .b32 %a<3>;\n.shared .b32 s;\nld.param.b32 %a0, [x];\nsetp.lt.u32 %p, %a0, 3;\n@%p bra L;\n\
    st.param.b32 [r], 7;\nret;\nL:\nst.param.b32 [r+0], %a0;\n}\n.func g(.reg .b32 y)\n{\n.reg .b32 %a<3>;\n\
    call.uni (%a0), f, (y);\ncall (%a1), f, (%a0);\n}\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p;\n.reg .b32 %r<60>;\n\
    .reg .b64 %rd<4>;\nmov.u32 %r0, %tid.x;\ncall g, (%r0);\n\
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0;\ncall (b), f, (a);\nld.param.b32 %r1, [b]; }\n\
    ld.param.u64 %rd0, [p];\n\
    wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r2, %r3}, [%rd0], 16;\n\
    wmma.load.b.sync.aligned.col.m16n16k16.global.s8 {%r4, %r5}, [%rd0+256];\n\
    wmma.load.c.sync.aligned.row.m16n16k16.s32 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%rd0], 16;\n\
    wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, {%r2, %r3},\n\
    {%r4, %r5}, {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17};\n\
    wmma.store.d.sync.aligned.col.m16n16k16.global.s32 [%rd0], {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, 32;\nret;\n}\n";

const SMALL: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.global .b32 g[4] = {1, 2, -3, 4};\n\
    .extern .shared .align 16 .b8 dyn[];\n.visible .entry k(.param .u64 p, .param .align 8 .b8 s[24])\n.maxntid 64\n{\n\
    .reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<5>;\n.shared .b32 x[64];\nmov.u32 %r0, %tid.x;\n\
    mov.u32 %r1, x;\nshl.b32 %r2, %r0, 2;\nadd.u32 %r1, %r1, %r2;\nst.shared.u32 [%r1], %r0;\nbar.sync 0;\n\
    ld.shared.u32 %r3, [%r1];\nsetp.lt.u32 %p0, %r3, 5;\n@%p0 bra L;\nshfl.sync.bfly.b32 %r4|%p1, %r3, 1, 31, -1;\nL:\n\
    ld.param.u64 %rd0, [p];\ncvta.to.global.u64 %rd0, %rd0;\nld.global.u32 %r5, [g+4];\n{ .reg .b32 t; mov.b32 t, %r5; }\n\
    atom.global.add.u32 %r6, [%rd0], 1;\ncp.async.ca.shared.global [dyn], [%rd0], 4;\ncp.async.wait_all;\nret;\n}\n";

/// Pieces that make mutants of valid text reach further than random bytes do.
const PIECES: [&str; 30] = [
    "%r0",
    "%p1",
    "4294967295",
    "-1",
    "0x7fffffffffffffff",
    "bar.sync 1;",
    "@!%p0",
    "{",
    "}",
    "[%rd0+8]",
    "ret;",
    ".b32",
    ".v4",
    "bra L;",
    "bar.warp.sync 3;",
    "exit;",
    "trap;",
    "ld.shared.u32 %r0, [%r1+100000];",
    ".reg .b64 q<4294967295>;",
    "\u{fe}",
    "0f",
    "st.local.u8 [4], 1;",
    "/*",
    "vote.sync.all.pred %p0, %p1, 15;",
    "call g, (%r0);",
    "mbarrier.init.shared.b64 [%r1], 1;",
    "mbarrier.inval.shared.b64 [%r1];",
    "mbarrier.arrive.shared.b64 %rd1, [%r1];",
    "cp.async.mbarrier.arrive.shared.b64 [%r1];",
    ".func h { call h; }",
];

fn mutate(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let mut text = (*u.choose(&SEEDS)?).to_owned();
    // Most of the long kernels is repetition.
    let edits = u.int_in_range(1..=6)?;
    for _ in 0..edits {
        let lines = text.lines().count().max(1);
        let line = u.choose_index(lines)?;
        let start: usize = text.lines().take(line).map(|l| l.len() + 1).sum();
        let start = start.min(text.len());
        let end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        let mut at = start + u.choose_index((end - start).max(1))?;
        while !text.is_char_boundary(at.min(text.len())) {
            at += 1;
        }
        let at = at.min(text.len());
        match u.int_in_range(0..=4)? {
            0 => text.replace_range(start..end, ""),
            1 => text.insert_str(at, u.choose(&PIECES)?),
            2 => text.insert(at, char::from(u.int_in_range(32u8..=126)?)),
            3 if at < end => {
                text.remove(at);
            }
            _ => {
                let line = text[start..end].to_owned() + "\n";
                text.insert_str(start, &line);
            }
        }
    }
    Ok(text)
}

/// Tries `property` on `runs` inputs of up to `most` bytes of randomness, the same in every run of the tests.
/// `TILEC_FUZZ_SEED=N` tries others.
fn repeat(runs: u64, most: u32, mut property: impl FnMut(&mut Unstructured<'_>) -> arbitrary::Result<()>) {
    let first: u64 = std::env::var("TILEC_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let mut done = 0;
    for run in 0..runs {
        // The upper half is the seed, the lower one the number of bytes: few at first, for small examples.
        let size = 32u64.saturating_mul(1 << (run / 8).min(20)).min(u64::from(most));
        let seed = (first << 20 | run).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 << 32;
        arbtest::arbtest(|u: &mut Unstructured<'_>| {
            done += u64::from(property(u).is_ok());
            Ok(())
        })
        .seed(seed | size)
        .run();
    }
    assert!(2 * done > runs, "{done} of {runs} inputs suffice");
}

#[test]
fn mutants_of_programs_do_no_harm() {
    repeat(400, 1 << 12, |u| {
        let text = mutate(u)?;
        let Ok(program) = Program::parse(&text) else { return Ok(()) };
        let mut device = Device::new();
        let memory = device.alloc(4096).unwrap();
        device.upload(memory, &[0; 4096]).unwrap();
        let entry = program.entries().next().unwrap_or("k").to_owned();
        let sizes = program.params(&entry).unwrap_or_default();
        let fill = |bytes: &u64| match bytes {
            8 => memory.to_le_bytes().to_vec(),
            n => vec![8; *n as usize],
        };
        let params = sizes.iter().map(fill).collect();
        let launch = Launch { entry, grid: [2, 1, 1], block: [64, 1, 1], dynamic_smem: 64, params };
        let landing = *u.choose(&Landing::ALL)?;
        let order = if u.arbitrary()? { Order::Reverse } else { Order::Seeded };
        let options = Options { fuel: 5_000, seed: u.arbitrary()?, landing, order, ..Options::default() };
        if let Err(report) = device.run(&program, &launch, &options) {
            assert!(!report.to_string().is_empty());
        }
        Ok(())
    });
}

#[test]
fn seeds_run() {
    for text in [SMALL, PHASES, CALLS, HOPPER] {
        let program = Program::parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(program.entries().count(), 1);
    }
}

#[test]
fn bytes_do_no_harm() {
    repeat(300, 1 << 16, |u| {
        let bytes: Vec<u8> = u.arbitrary()?;
        let _ = Program::parse(&String::from_utf8_lossy(&bytes));
        Ok(())
    });
}

//! Small kernels, each about one rule: what must be reported is, and what is right is not.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Counters, Device, Landing, Launch, Options, Program, Report, ReportKind};

/// Wraps a body that gets `%out`, a pointer to `words` words of zeros, and `%t`, the thread.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .f32 %f<8>;\n.reg .b64 %rd<16>;\n\
         .reg .b32 %t;\n.reg .b64 %out, %mine;\n.shared .align 16 .b8 sm[1024];\n\
         ld.param.u64 %out, [out];\ncvta.to.global.u64 %out, %out;\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %mine, %t, 4;\nadd.s64 %mine, %out, %mine;\n{body}\nret;\n}}\n"
    )
}

fn run_with(body: &str, threads: u32, options: &Options) -> Result<(Vec<u32>, Counters), Box<Report>> {
    let text = kernel(body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(4 * 256).unwrap();
    device.upload(out, &[0; 4 * 256]).unwrap();
    let launch = Launch {
        entry: "k".into(),
        grid: [1, 1, 1],
        block: [threads, 1, 1],
        dynamic_smem: 0,
        params: vec![out.to_le_bytes().to_vec()],
    };
    let counters = device.run(&program, &launch, options)?;
    let bytes = device.download(out, 4 * 256).unwrap();
    Ok((bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect(), counters))
}

#[track_caller]
fn good(body: &str, threads: u32) -> Vec<u32> {
    let mut out = None;
    for seed in 0..4 {
        let got = run_with(body, threads, &Options { seed, ..Options::default() }).unwrap_or_else(|r| panic!("{r}")).0;
        assert!(out.is_none() || out.as_ref() == Some(&got), "the seed changes the result");
        out = Some(got);
    }
    out.unwrap()
}

#[track_caller]
fn bad(body: &str, threads: u32, kind: ReportKind) -> Report {
    let mut last = None;
    for seed in 0..4 {
        let options = Options { seed, fuel: 100_000, ..Options::default() };
        match run_with(body, threads, &options) {
            Ok(_) => panic!("seed {seed}: no report"),
            Err(report) => {
                assert_eq!(report.kind, kind, "seed {seed}: {report}");
                last = Some(*report);
            }
        }
    }
    last.unwrap()
}

const STORE: &str = "st.global.u32 [%mine], %r0;";

#[test]
fn arithmetic_stores_its_result() {
    let out = good(&format!("mad.lo.u32 %r0, %t, 3, 7; {STORE}"), 64);
    assert!(out[..64].iter().enumerate().all(|(i, v)| *v == i as u32 * 3 + 7));
}

#[test]
fn integers_follow_the_manual() {
    let cases: &[(&str, u32)] = &[
        ("mov.b32 %r1, 0x80000001; bfe.s32 %r0, %r1, 28, 8;", 0xFFFF_FFF8),
        ("mov.b32 %r1, 0x80000001; bfe.u32 %r0, %r1, 28, 8;", 8),
        ("mov.b32 %r1, 0xF; mov.b32 %r2, 0; bfi.b32 %r0, %r1, %r2, 30, 4;", 0xC000_0000),
        ("mov.b32 %r1, 0x03020100; mov.b32 %r2, 0x07060504; prmt.b32 %r0, %r1, %r2, 0x7410;", 0x0704_0100),
        ("mov.b32 %r1, 0x80; prmt.b32 %r0, %r1, 0, 0x8;", 0x8080_80FF),
        ("mov.b32 %r1, 1; mov.b32 %r2, 0x80000000; shf.l.wrap.b32 %r0, %r2, %r1, 1;", 3),
        ("mov.b32 %r1, 1; mov.b32 %r2, 2; shf.r.clamp.b32 %r0, %r1, %r2, 40;", 2),
        ("mov.b32 %r1, 5; shl.b32 %r0, %r1, 32;", 0),
        ("mov.b32 %r1, -5; shr.s32 %r0, %r1, 40;", u32::MAX),
        ("mov.b32 %r1, -7; mov.b32 %r2, 2; div.s32 %r0, %r1, %r2;", -3i32 as u32),
        ("mov.b32 %r1, -7; mov.b32 %r2, 2; rem.s32 %r0, %r1, %r2;", u32::MAX),
        ("mov.b32 %r1, 0xF0F0; mov.b32 %r2, 0xFF00; mov.b32 %r3, 0xAAAA; lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 0xA55A),
        ("mov.b32 %r1, -1; add.cc.u32 %r2, %r1, 1; addc.u32 %r0, 5, 6;", 12),
        ("mov.b32 %r1, 0x1FF; cvt.u32.u8 %r0, %r1;", 0xFF),
        ("mov.b32 %r1, 0x1FF; cvt.s32.s8 %r0, %r1;", u32::MAX),
        ("mov.b32 %r1, 300; cvt.sat.u8.s32 %r0, %r1;", 255),
        ("mov.b32 %r1, 0x00100000; bfind.u32 %r0, %r1;", 20),
        ("mov.b32 %r1, 0x00100000; clz.b32 %r0, %r1;", 11),
        ("mov.f32 %f0, 0f3FC00000; cvt.rni.s32.f32 %r0, %f0;", 2),
        ("mov.f32 %f0, 0f3FC00000; mul.f32 %f0, %f0, %f0; mov.b32 %r0, %f0;", 0x4010_0000),
        ("mov.b32 %r1, 0x01020304; mov.b32 %r2, 0x01010101; dp4a.u32.u32 %r0, %r1, %r2, 100;", 110),
        ("mov.b32 {%h0, %h1}, 0x00020001; mov.b32 %r0, {%h1, %h0};", 0x0001_0002),
        ("{ .reg .b32 %r0; mov.u32 %r0, 9; } mov.u32 %r0, 4;", 4),
        ("mov.u32 %r0, 1; bra.uni L; mov.u32 %r0, 2; L: add.u32 %r0, %r0, 1;", 2),
    ];
    for (body, want) in cases {
        assert_eq!(good(&format!("{body} {STORE}"), 1)[0], *want, "{body}");
    }
}

#[test]
fn lanes_diverge_and_meet_at_the_barrier() {
    let body = "setp.lt.u32 %p0, %t, 16; @%p0 bra A; mov.u32 %r0, 2; bra B; A: mov.u32 %r0, 1;\n\
                B: bar.sync 0; st.global.u32 [%mine], %r0;";
    let out = good(body, 64);
    assert!((0..64).all(|i| out[i] == if i < 16 { 1 } else { 2 }));
}

#[test]
fn a_loop_with_a_different_count_in_each_lane_ends() {
    let body = "mov.u32 %r0, 0; mov.u32 %r1, 0; L: setp.ge.u32 %p0, %r1, %t; @%p0 bra E;\n\
                add.u32 %r0, %r0, %r1; add.u32 %r1, %r1, 1; bra L; E: st.global.u32 [%mine], %r0;";
    let out = good(body, 40);
    assert!((0..40u32).all(|i| out[i as usize] == i * i.saturating_sub(1) / 2));
}

#[test]
fn atomic_sums_flush_subnormals_in_global_memory_only() {
    let sum = |place: &str| {
        format!(
            "mov.u32 %r1, sm; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2; mov.b32 %r0, 1; st.shared.u32 [%r1], %r0;\n\
             st.global.u32 [%mine], %r0; mov.b32 %f0, 0f00000002; {place}"
        )
    };
    let global = good(&sum("atom.global.add.f32 %f1, [%mine], %f0;"), 32);
    assert!(global[..32].iter().all(|v| *v == 0), "{global:?}");
    let shared = "atom.shared.add.f32 %f1, [%r1], %f0; ld.shared.u32 %r0, [%r1]; st.global.u32 [%mine], %r0;";
    assert!(good(&sum(shared), 32)[..32].iter().all(|v| *v == 3));
}

/// A lock: taken by a relaxed atomic with a fence after it, returned by one with a fence before it.
const LOCKED: &str = "mov.u32 %r1, sm; setp.ne.u32 %p0, %t, 0; @%p0 bra W; mov.b32 %r0, 0; st.shared.u32 [%r1], %r0;\n\
    st.shared.u32 [%r1+4], %r0; W: bar.sync 0; T: atom.shared.cas.b32 %r2, [%r1], 0, 1; setp.ne.u32 %p1, %r2, 0;\n\
    @%p1 bra T; membar.cta; ld.shared.u32 %r3, [%r1+4]; add.u32 %r3, %r3, 1; st.shared.u32 [%r1+4], %r3; membar.cta;\n\
    atom.shared.exch.b32 %r4, [%r1], 0; bar.sync 0; ld.shared.u32 %r5, [%r1+4]; st.global.u32 [%mine], %r5;";

#[test]
fn fences_make_a_lock_of_relaxed_atomics() {
    assert!(good(LOCKED, 64)[..64].iter().all(|v| *v == 64));
    bad(&LOCKED.replacen("membar.cta;", "", 2), 64, ReportKind::Race);
}

#[test]
fn a_guard_may_not_divide_an_instruction_of_the_whole_warp() {
    bad("setp.lt.u32 %p0, %t, 16; @%p0 bar.sync 0;", 64, ReportKind::Divergence);
    // Warp by warp it may differ, as long as the counts are right; and a warp may leave early.
    good("setp.lt.u32 %p0, %t, 32; @%p0 bar.sync 1, 32; bar.sync 0; st.global.u32 [%mine], %t;", 64);
    good("st.global.u32 [%mine], %t; setp.ge.u32 %p0, %t, 40; @%p0 bra E; bar.sync 0; E: ret;", 64);
}

#[test]
fn a_matrix_product_in_part_of_a_warp_is_divergence() {
    let body = "setp.lt.u32 %p0, %t, 16; @%p0 bra E; mov.b32 %r1, 0;\n\
                movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1; E: ret;";
    bad(body, 32, ReportKind::Divergence);
    bad(
        "setp.lt.u32 %p0, %t, 16; @%p0 bra E; bar.sync 0; E: add.u32 %r1, %t, 1; bar.sync 0;",
        32,
        ReportKind::Divergence,
    );
}

#[test]
fn barriers_that_miss_threads_are_deadlocks() {
    let report =
        bad("setp.lt.u32 %p0, %t, 32; @%p0 bra E; bar.sync 1, 64; E: bar.sync 2, 64;", 64, ReportKind::Deadlock);
    assert!(report.message.contains("barrier 1") && report.message.contains("barrier 2"), "{report}");
    // Threads that have exited are not waited for.
    good("setp.lt.u32 %p0, %t, 32; @%p0 ret; bar.sync 0;", 64);
}

#[test]
fn producers_arrive_and_consumers_wait() {
    let body = "setp.ge.u32 %p0, %t, 32; mov.u32 %r1, sm; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;\n\
                @%p0 bra C; st.shared.u32 [%r1], %t; bar.arrive 3, 64; ret;\n\
                C: bar.sync 3, 64; ld.shared.u32 %r0, [%r1+-128]; st.global.u32 [%mine], %r0;";
    let out = good(body, 64);
    assert!((32..64).all(|i| out[i] == i as u32 - 32));
    let racy = body.replace("bar.arrive 3, 64;", "bar.arrive 3, 32;").replace("bar.sync 3, 64;", "bar.sync 4, 32;");
    let kinds: Vec<_> = (0..4)
        .map(|seed| run_with(&racy, 64, &Options { seed, ..Options::default() }).expect_err("unordered").kind)
        .collect();
    assert!(kinds.iter().all(|k| matches!(k, ReportKind::Race | ReportKind::Uninitialised)), "{kinds:?}");
}

#[test]
fn barriers_reduce() {
    for count in ["", " 64,"] {
        let popc = format!("setp.lt.u32 %p0, %t, 37; bar.red.popc.u32 %r0, 1,{count} %p0; {STORE}");
        assert!(good(&popc, 64)[..64].iter().all(|v| *v == 37));
        for (op, limit, want) in [("and", 64, 1), ("and", 63, 0), ("or", 1, 1), ("or", 0, 0)] {
            let body = format!(
                "setp.lt.u32 %p0, %t, {limit}; barrier.cta.red.{op}.aligned.pred %p1, 1,{count} %p0; selp.u32 %r0, 1, 0, %p1; {STORE}"
            );
            assert!(good(&body, 64)[..64].iter().all(|v| *v == want), "{op} {limit}");
        }
    }
    bad("setp.lt.u32 %p0, %t, 3; bar.red.popc.u32 %r0, 1, 128, %p0;", 96, ReportKind::Deadlock);
}

#[test]
fn races_name_both_sides() {
    let body = "mov.u32 %r1, sm; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %t; bar.sync 0;\n\
                xor.b32 %r3, %r1, 128; ld.shared.u32 %r0, [%r3];\n\
                st.shared.u32 [%r1], %r0; st.global.u32 [%mine], %r0;";
    let report = bad(body, 64, ReportKind::Race);
    let (one, other) = (report.place.unwrap(), report.other.unwrap());
    assert_eq!(one.thread[0] ^ 32, other.thread[0]);
    assert!(one.ptx_line > 0 && one.ptx_line != other.ptx_line);
    good(&body.replace("st.shared.u32 [%r1], %r0;", "bar.sync 0; st.shared.u32 [%r1], %r0;"), 64);
}

#[test]
fn lanes_need_a_warp_barrier_between_them() {
    let body = "mov.u32 %r1, sm; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %t;\n\
                bar.warp.sync -1; xor.b32 %r3, %r1, 4; ld.shared.u32 %r0, [%r3]; st.global.u32 [%mine], %r0;";
    let out = good(body, 64);
    assert!((0..64).all(|i| out[i] == i as u32 ^ 1));
    // One fragment runs the warp in lockstep, so the value is there; the order is not.
    bad(&body.replace("bar.warp.sync -1;", ""), 64, ReportKind::Race);
    bad("st.shared.u32 [sm], %t;", 32, ReportKind::Race);
    good("st.shared.u32 [sm], 5;", 32);
}

#[test]
fn halves_of_a_word_belong_to_different_threads() {
    let body = "mov.u32 %r1, sm; shl.b32 %r2, %t, 1; add.u32 %r1, %r1, %r2; cvt.u16.u32 %h0, %t;\n\
                st.shared.b16 [%r1], %h0; bar.sync 0; shl.b32 %r2, %t, 2; and.b32 %r2, %r2, 124; mov.u32 %r1, sm;\n\
                add.u32 %r1, %r1, %r2; ld.shared.u32 %r0, [%r1]; st.global.u32 [%mine], %r0;";
    let out = good(body, 64);
    assert!((0..32u32).all(|i| out[i as usize] == (2 * i) | (2 * i + 1) << 16));
}

#[test]
fn memory_is_checked() {
    bad("ld.global.u32 %r0, [%mine+1024]; st.global.u32 [%mine], %r0;", 32, ReportKind::OutOfBounds);
    bad("ld.global.u32 %r0, [%out+-4];", 1, ReportKind::OutOfBounds);
    bad("mov.b64 %rd0, 0; st.global.u32 [%rd0], 1;", 1, ReportKind::OutOfBounds);
    bad("ld.global.v2.u32 {%r0, %r1}, [%mine+4];", 32, ReportKind::Misaligned);
    bad("ld.shared.u32 %r0, [sm+1024];", 1, ReportKind::OutOfBounds);
    bad("ld.shared.u32 %r0, [sm+2];", 1, ReportKind::Misaligned);
    bad("ld.shared.u32 %r0, [sm];", 1, ReportKind::Uninitialised);
    bad("st.shared.u16 [sm], 1; ld.shared.u32 %r0, [sm];", 1, ReportKind::Uninitialised);
    bad("ld.param.u64 %rd0, [out+8];", 1, ReportKind::OutOfBounds);
    bad("ld.param.u32 %r0, [out+2];", 1, ReportKind::Misaligned);
    bad("mov.b64 %rd0, out; add.s64 %rd0, %rd0, 1; ld.param.u16 %h0, [%rd0];", 1, ReportKind::Misaligned);
    for access in ["st.local.u32 [depot+2], 1;", "ld.local.u16 %h0, [depot+1];", "st.local.v2.u32 [depot+4], {1, 1};"] {
        bad(&format!("{{ .local .align 8 .b8 depot[16]; {access} }}"), 1, ReportKind::Misaligned);
    }
    for access in ["st.local.u32 [depot+16], 1;", "ld.local.u16 %h0, [depot+-2];"] {
        bad(&format!("{{ .local .align 8 .b8 depot[16]; {access} }}"), 1, ReportKind::OutOfBounds);
    }
}

#[test]
fn undefined_values_matter_where_they_are_used() {
    bad("st.global.u32 [%mine], %r9;", 1, ReportKind::Undefined);
    bad("add.s64 %rd0, %out, %rd1; ld.global.u32 %r0, [%rd0];", 1, ReportKind::Undefined);
    bad("setp.eq.u32 %p0, %r9, 0; @%p0 bra E; E: ret;", 1, ReportKind::Undefined);
    for atomic in [
        "atom.global.add.u32 %r0, [%out], %r9;",
        "red.global.add.u32 [%out], %r9;",
        "atom.global.exch.b32 _, [%out], %r9;",
        "atom.global.cas.b32 %r0, [%out], %r9, 1;",
        "atom.global.cas.b32 %r0, [%out], 0, %r9;",
        "atom.global.add.u64 %rd0, [%out], %rd1;",
        "st.shared.u32 [sm], 0; atom.shared.max.s32 %r0, [sm], %r9;",
    ] {
        let report = bad(atomic, 1, ReportKind::Undefined);
        assert!(report.message.starts_with("the operand of an atomic is undefined: `%r"), "{report}");
    }
    // Computed and not used, or not chosen by a selection, it does no harm.
    let out = good(&format!("add.u32 %r1, %r9, 1; setp.eq.u32 %p0, %t, 0; selp.b32 %r0, 3, %r1, %p0; {STORE}"), 1);
    assert_eq!(out[0], 3);
    let report = bad(&format!("setp.eq.u32 %p0, %t, 0; selp.b32 %r0, 3, %r9, %p0; {STORE}"), 2, ReportKind::Undefined);
    assert_eq!(report.place.unwrap().thread, [1, 0, 0]);
}

#[test]
fn fuel_ends_endless_loops() {
    bad("L: bra L;", 32, ReportKind::Fuel);
}

/// A turn of the scheduler is 2^14 instructions: kernels that are over with it, shortly before and shortly after.
#[test]
fn kernels_end_anywhere_in_a_turn() {
    for turns in 5440..5470 {
        for rest in 0..3 {
            let body = format!(
                "mov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {turns};\n@%p1 bra L;\n{}",
                "mov.u32 %r2, 0;\n".repeat(rest)
            );
            good(&body, 32);
        }
    }
}

#[test]
fn shuffles_read_their_lane() {
    for (form, want) in [
        ("bfly.b32 %r0, %t, 1, 31", (|i| i ^ 1) as fn(u32) -> u32),
        ("down.b32 %r0, %t, 4, 31", |i| if i + 4 < 32 { i + 4 } else { i }),
        ("up.b32 %r0, %t, 3, 0", |i| if i >= 3 { i - 3 } else { i }),
        ("idx.b32 %r0, %t, 5, 31", |_| 5),
        // Segments of eight lanes.
        ("idx.b32 %r0, %t, 1, 6175", |i| (i & 24) + 1),
    ] {
        let out = good(&format!("shfl.sync.{form}, -1; {STORE}"), 32);
        assert!((0..32).all(|i| out[i as usize] == want(i)), "{form}: {out:?}");
    }
    // Reading a lane that is not there.
    bad(
        &format!("setp.lt.u32 %p0, %t, 16; @!%p0 ret; shfl.sync.bfly.b32 %r0, %t, 16, 31, 0xFFFF; {STORE}"),
        32,
        ReportKind::Undefined,
    );
    bad(
        "setp.lt.u32 %p0, %t, 16; @!%p0 bra E; shfl.sync.bfly.b32 %r0, %t, 1, 31, -1; E: bar.sync 0;",
        32,
        ReportKind::Divergence,
    );
}

#[test]
fn votes_and_matches_see_their_members() {
    let out = good(&format!("setp.lt.u32 %p0, %t, 5; vote.sync.ballot.b32 %r0, %p0, -1; {STORE}"), 32);
    assert_eq!(out[7], 31);
    let out = good(&format!("and.b32 %r1, %t, 1; match.any.sync.b32 %r0, %r1, -1; {STORE}"), 32);
    assert_eq!((out[0], out[1]), (0x5555_5555, 0xAAAA_AAAA));
    let out = good(&format!("redux.sync.add.u32 %r0, %t, -1; {STORE}"), 32);
    assert_eq!(out[3], 496);
}

#[test]
fn atomics_do_not_race_with_each_other() {
    let body = "setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [sm], 0; bar.sync 0; atom.shared.add.u32 %r1, [sm], %t;\n\
                bar.sync 0; ld.shared.u32 %r0, [sm]; st.global.u32 [%mine], %r0;";
    assert_eq!(good(body, 64)[63], 2016);
    bad(&body.replacen("bar.sync 0; ld", "ld", 1), 64, ReportKind::Race);
    assert_eq!(good("red.global.add.u32 [%out], 2;", 96)[0], 192);
    assert_eq!(good("mov.u32 %r1, 3; red.global.max.u32 [%out], %t;", 64)[0], 63);
}

/// A double-buffered copy through shared memory by `cp.async`.
const PIPELINE: &str = "shl.b32 %r2, %t, 4; mov.u32 %r1, sm; add.u32 %r1, %r1, %r2; mul.wide.u32 %rd0, %t, 16;\n\
    add.s64 %rd1, %out, %rd0; cp.async.cg.shared.global [%r1], [%rd1], 16; cp.async.commit_group;\n\
    cp.async.ca.shared.global [%r1+512], [%rd1], 4; cp.async.commit_group;\n\
    cp.async.wait_group 1; bar.sync 0; xor.b32 %r3, %r1, 16; ld.shared.u32 %r0, [%r3];\n\
    cp.async.wait_group 0; bar.sync 0; ld.shared.u32 %r4, [%r3+512]; add.u32 %r0, %r0, %r4; st.global.u32 [%mine], %r0;";

#[test]
fn copies_land_when_waited_for() {
    for landing in Landing::ALL {
        let run = |body: &str| run_with(body, 32, &Options { landing, ..Options::default() });
        run(PIPELINE).unwrap_or_else(|r| panic!("{landing:?}: {r}"));
        for (cut, with) in [
            ("cp.async.wait_group 1; bar.sync 0;", "bar.sync 0;"),
            ("cp.async.wait_group 1; bar.sync 0;", "cp.async.wait_group 2; bar.sync 0;"),
            ("cp.async.wait_group 0;", ""),
            ("cp.async.wait_group 1; bar.sync 0;", "cp.async.wait_group 1;"),
        ] {
            let mutant = PIPELINE.replacen(cut, with, 1);
            assert_ne!(mutant, PIPELINE);
            let kind = run(&mutant).map(|_| ()).expect_err("a copy is read too early").kind;
            assert!(matches!(kind, ReportKind::Race | ReportKind::Uninitialised), "{landing:?} {cut}: {kind:?}");
        }
    }
}

#[test]
fn local_memory_and_generic_addresses_work() {
    let body = "{ .local .align 8 .b8 depot[16]; mov.b64 %rd0, depot; cvta.local.u64 %rd1, %rd0; st.u32 [%rd1+4], %t;\n\
                ld.local.u32 %r0, [%rd0+4]; } mov.b64 %rd2, sm; cvta.shared.u64 %rd3, %rd2; mul.wide.u32 %rd4, %t, 4;\n\
                add.s64 %rd3, %rd3, %rd4; st.u32 [%rd3], %r0; ld.u32 %r0, [%rd3]; st.u32 [%mine], %r0;";
    assert_eq!(good(body, 40)[39], 39);
    bad("{ .local .align 8 .b8 depot[16]; ld.local.u32 %r0, [depot]; }", 1, ReportKind::Uninitialised);
}

#[test]
fn launches_must_fit() {
    let program = Program::parse(&kernel("")).unwrap();
    let mut device = Device::new();
    let good = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params: vec![vec![0; 8]] };
    device.run(&program, &good, &Options::default()).unwrap();
    for bad in [
        Launch { entry: "j".into(), ..good.clone() },
        Launch { grid: [0, 1, 1], ..good.clone() },
        Launch { block: [1025, 1, 1], ..good.clone() },
        Launch { dynamic_smem: 1 << 20, ..good.clone() },
        Launch { params: vec![vec![0; 4]], ..good.clone() },
        Launch { params: vec![], ..good.clone() },
    ] {
        assert_eq!(device.run(&program, &bad, &Options::default()).unwrap_err().kind, ReportKind::Launch);
    }
}

#[test]
fn what_is_not_ptx_is_refused_at_its_place() {
    for (body, needle) in [
        ("frobnicate.b32 %r0, %r1;", "unknown instruction"),
        ("add.f8 %r0, %r1, %r2;", "does not fit"),
        ("add.u32 %r0, %r1;", "lacks an operand"),
        ("add.u32 %r0, %r1, %r2, %r3;", "fewer operands"),
        ("add.u32 %r0, %r1, %r40;", "unknown name"),
        ("add.u32 %rd0, %rd1, %rd2;", "works on"),
        ("add.u32 5, %r1, %r2;", "must be a register"),
        ("add.f32 %f0, %f1, 1;", "float is needed"),
        ("bra NOWHERE;", "unknown label"),
        ("L: L: ret;", "defined twice"),
        ("cp.async.cg.shared.global [%r0], [%rd0], 8;", "cannot copy"),
        ("ld.global.v4.u32 {%r0, %r1}, [%rd0];", "expected 4"),
        ("ld.global.v2.u32 {_, _}, [%rd0];", "a vector needs a register"),
        ("atom.global.v2.f32.add {_, _}, [%rd0], {%f0, %f0};", "a vector needs a register"),
        ("ld.global.v4.b64 {%rd0, %rd1, %rd2, %rd3}, [%rd0];", "at most 16 bytes"),
        ("st.shared.v4.b64 [%r0], {%rd0, %rd1, %rd2, %rd3};", "at most 16 bytes"),
        ("setp.lt.b32 %p0, %r0, %r1;", "does not fit"),
        (".align 4;", "unknown directive"),
    ] {
        let error = Program::parse(&kernel(body)).map(|_| ()).expect_err(body);
        assert!(error.message.contains(needle), "{body}: {error}");
        assert_eq!(error.line, 19, "{body}: {error}");
    }
}

/// Element (row, column) of an 8x8 matrix of halves is `8 row + column`, stored by rows of 16 bytes.
const MATRIX: &str = "mov.u32 %r1, sm; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2; shl.b32 %r3, %t, 1; add.u32 %r4, %r3, 1;\n\
    shl.b32 %r4, %r4, 16; or.b32 %r3, %r3, %r4; st.shared.u32 [%r1], %r3; bar.sync 0;\n\
    and.b32 %r5, %t, 7; shl.b32 %r5, %r5, 4; mov.u32 %r6, sm; add.u32 %r5, %r5, %r6;";

#[test]
fn matrices_are_spread_over_the_warp() {
    let out = good(&format!("{MATRIX} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r0}}, [%r5]; {STORE}"), 32);
    assert!((0..32u32).all(|l| out[l as usize] == (2 * l) | (2 * l + 1) << 16), "{out:x?}");
    let transposed = |l: u32| (l % 4 * 16 + l / 4) | (l % 4 * 16 + 8 + l / 4) << 16;
    let out = good(&format!("{MATRIX} ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {{%r0}}, [%r5]; {STORE}"), 32);
    assert!((0..32u32).all(|l| out[l as usize] == transposed(l)), "{out:x?}");
    let out = good(
        &format!(
            "{MATRIX} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r7}}, [%r5];\n\
             movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r7; {STORE}"
        ),
        32,
    );
    assert!((0..32u32).all(|l| out[l as usize] == transposed(l)), "{out:x?}");
    let late = MATRIX.replace("bar.sync 0;", "");
    bad(&format!("{late} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r0}}, [%r5];"), 32, ReportKind::Race);
}

#[test]
fn matrices_are_exchanged_between_lanes() {
    // Each lane stores the row whose address it gives, but others get its elements.
    let row =
        "mov.u32 %r1, sm; shl.b32 %r2, %t, 4; add.u32 %r1, %r1, %r2; st.shared.v4.u32 [%r1], {%t, %t, %t, %t}; SYNC";
    for trans in ["", ".trans"] {
        let load = format!("{row} ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r1];");
        good(&load.replace("SYNC", "bar.warp.sync -1;"), 32);
        bad(&load.replace("SYNC", ""), 32, ReportKind::Race);
        let over = format!("{load} LATER st.shared.u32 [%r1], %t;").replace("SYNC", "bar.warp.sync -1;");
        good(&over.replace("LATER", "bar.warp.sync -1;"), 32);
        bad(&over.replace("LATER", ""), 32, ReportKind::Race);
    }
    // Lanes above the seventh give addresses that are not used: anything, but up to sm_75 addresses.
    let stray = format!(
        "{row} setp.lt.u32 %p0, %t, 8; selp.b32 %r1, %r1, 0x7ffffff0, %p0;\n\
         ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%r1];"
    )
    .replace("SYNC", "bar.warp.sync -1;");
    good(&stray, 32);
    let text = kernel(&stray).replace("sm_80", "sm_75");
    let mut device = Device::new();
    let params = vec![device.alloc(1024).unwrap().to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    let report = device.run(&Program::parse(&text).unwrap(), &launch, &Options::default()).unwrap_err();
    assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
}

#[test]
fn products_use_the_fragments_of_the_manual() {
    // A is 1 at (3, 2) only, B(k, n) = k + 10 n: row 3 of the product is row 2 of B.
    let half = "cvt.rn.f16.u32 %h0, %r3; cvt.rn.f16.u32 %h1, %r4;";
    let body = format!(
        "mov.b32 %r1, 0; mov.b32 %r2, 0; setp.eq.u32 %p0, %t, 13; selp.b32 %r1, 0x3C00, 0, %p0;\n\
         shr.u32 %r6, %t, 2; and.b32 %r7, %t, 3; shl.b32 %r3, %r7, 1; mad.lo.u32 %r3, %r6, 10, %r3; add.u32 %r4, %r3, 1;\n\
         {half} mov.b32 %r5, {{%h0, %h1}}; mov.f32 %f0, 0f00000000;\n\
         mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}}, {{%r1, %r2}}, {{%r5}}, {{%f0, %f0, %f0, %f0}};\n\
         add.f32 %f1, %f1, %f3; add.f32 %f1, %f1, %f4; shl.b32 %r8, %r7, 0; cvt.rzi.u32.f32 %r0, %f1;\n\
         cvt.rzi.u32.f32 %r9, %f2; shl.b32 %r9, %r9, 16; or.b32 %r0, %r0, %r9; {STORE}"
    );
    let out = good(&body, 32);
    for lane in 0..32u32 {
        let column = 2 * (lane % 4);
        let want = if lane / 4 == 3 { (2 + 10 * column) | (12 + 10 * column) << 16 } else { 0 };
        assert_eq!(out[lane as usize], want, "lane {lane}");
    }
}

#[test]
fn lanes_come_to_the_barriers_that_they_name() {
    // Each half of a warp synchronises with the same half of the other warp at its own barrier.
    let halves = "and.b32 %r1, %t, 31;\nshr.u32 %r1, %r1, 4;\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%mine], %t;\nbarrier.sync %r1, 32;\n\
        xor.b32 %r2, %t, 32;\nmul.wide.u32 %rd1, %r2, 4;\nadd.s64 %rd1, %out, %rd1;\nld.global.u32 %r3, [%rd1];\nbarrier.sync 0;\nst.global.u32 [%mine], %r3;";
    let got = good(halves, 64);
    assert!((0..64).all(|t| got[t as usize] == t ^ 32), "{got:?}");
    // Where all have to execute an instruction as one, they cannot; and half of the threads are not all.
    let named = "and.b32 %r1, %t, 1;\nBARRIER;";
    bad(&named.replace("BARRIER", "bar.sync %r1"), 64, ReportKind::Divergence);
    bad(&named.replace("BARRIER", "barrier.sync %r1"), 64, ReportKind::Deadlock);
    let counted = "and.b32 %r1, %t, 1;\nshl.b32 %r1, %r1, 5;\nadd.u32 %r1, %r1, 32;\nbar.sync 1, %r1;";
    bad(counted, 64, ReportKind::Divergence);
}

#[test]
fn operands_of_barriers_are_what_they_may_be() {
    bad("bar.sync %r1;", 32, ReportKind::Undefined);
    bad("bar.sync 1, %r1;", 32, ReportKind::Undefined);
    bad("bar.red.popc.u32 %r1, 0, %p1;", 32, ReportKind::Undefined);
    bad("mov.u32 %r1, 16;\nbar.sync %r1;", 32, ReportKind::Invalid);
    bad("mov.u32 %r1, 33;\nbar.sync 1, %r1;", 64, ReportKind::Invalid);
    bad("bar.warp.sync %r1;", 32, ReportKind::Undefined);
    // Two warps for a barrier of one.
    bad("setp.lt.u32 %p1, %t, 32;\n@%p1 bar.arrive 1, 64;\n@!%p1 bar.arrive 1, 32;", 64, ReportKind::Invalid);
    bad("atom.global.add.u32 %r1, [%mine], %r2;", 32, ReportKind::Undefined);
}

#[test]
fn what_waits_for_other_lanes_is_executed_once() {
    let parted = "mov.u32 %r1, 1;\nsetp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\nmov.u32 %r1, 2;\nA:\n";
    for inst in ["bar.sync 0;", "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;"] {
        let (_, counters) =
            run_with(&format!("{parted}{inst}"), 32, &Options::default()).unwrap_or_else(|r| panic!("{r}"));
        // In front of the last instruction, `ret`.
        assert_eq!(counters.rows.iter().rev().nth(1).map(|r| r.counts.executed), Some(1), "{inst}");
    }
}

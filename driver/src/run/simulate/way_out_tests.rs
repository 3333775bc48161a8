//! The notes for each cause.

use super::Allowance;
use super::tests::{LAUNCH, run, small};

/// A launch of which every word of `b` may be stored to, one after the other.
fn dense() -> String {
    LAUNCH.replace(", \"strides\": [3, 2]", "")
}

#[track_caller]
fn reported(body: &str, needles: &[&str]) {
    let result = run(&small(body), &dense(), &[("n", 64)], |o| o.sim.fuel = 10_000).map(|r| r.to_string());
    let text = result.expect_err(body);
    for needle in needles {
        assert!(text.contains(needle), "no `{needle}` in\n{text}");
    }
}

/// The same kernel for sm_90a, and its launch in blocks of 128.
fn for_hopper(body: &str) -> String {
    small(body).replace(".version 7.4\n.target sm_80", ".version 8.0\n.target sm_90a")
}

fn of_128() -> String {
    dense().replace("\"block\": 64", "\"block\": 128").replace("[\"n\", 2]", "[128, 2]")
}

/// The report of the same kernel for sm_90a, in blocks of 128.
#[track_caller]
fn hopper(body: &str, needles: &[&str]) -> String {
    let text = run(&for_hopper(body), &of_128(), &[("n", 128)], |o| o.sim.fuel = 10_000)
        .map(|r| r.to_string())
        .expect_err(body);
    for needle in needles {
        assert!(text.contains(needle), "no `{needle}` in\n{text}");
    }
    text
}

/// Thread 0 copies 64 bytes of `a` to the start of `tile`, counted by the mbarrier after it.
const LOAD: &str = "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r3, tile;\n@%p1 mbarrier.init.shared.b64 [%r3+512], 1;\nINIT\nbar.sync 0;\n\
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3+512], 64;\n\
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 64, [%r3+512];";

/// One thread writes and stores 64 bytes of `tile` to `b`.
const STORE: &str = "setp.eq.u32 %p1, %r1, 0;\nst.shared.u32 [%r2], %r1;\nFENCE\nbar.sync 0;\n\
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 16;\n@%p1 cp.async.bulk.commit_group;";

#[test]
fn a_race_with_a_copy_asks_for_its_wait() {
    let copy = "cp.async.ca.shared.global [%r2], [%rd1], 4;\ncp.async.commit_group;\n";
    let wait = "wait in front of the access for the copy: `cp.async.wait_group`";
    reported(&format!("{copy}ld.shared.u32 %r3, [%r2];"), &["E0805", wait]);
    // A thread that has waited needs a barrier next.
    let other = "cp.async.wait_group 0;\nBARRIER\nxor.b32 %r2, %r2, 128;\nld.shared.u32 %r3, [%r2];";
    let both = ["E0805", wait, "and a `bar.sync` after it"];
    reported(&format!("{copy}{}", other.replace("BARRIER", "")), &both);
    reported(&format!("{copy}{}", other.replace("cp.async.wait_group 0;\nBARRIER", "bar.sync 0;")), &both);
    let load = LOAD.replace("INIT", "fence.mbarrier_init.release.cluster;");
    let text =
        hopper(&format!("{load}\n@%p1 ld.shared.u32 %r4, [%r3];"), &["E0805", "until the phase of the mbarrier"]);
    assert!(!text.contains("bar.sync` between"), "{text}");
    let store = STORE.replace("FENCE", "fence.proxy.async;");
    hopper(&format!("{store}\n@%p1 st.shared.u32 [%r2], %r1;"), &["E0805", "`cp.async.bulk.wait_group` (with `.read`"]);
}

/// Whether a copy or an access that nothing orders comes first is chance, and the advice is the same.
#[test]
fn advice_does_not_depend_on_who_came_first() {
    let copy = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra C;\nxor.b32 %r2, %r2, 128;\nst.shared.u32 [%r2], %r1;\nret;\n\
        C:\ncp.async.ca.shared.global [%r2], [%rd1], 4;\n";
    let copies = [copy.to_owned(), format!("{copy}cp.async.wait_all;")];
    let load = format!(
        "{}\nxor.b32 %r3, %r2, 128;\nst.shared.u32 [%r3], %r1;",
        LOAD.replace("INIT", "fence.mbarrier_init.release.cluster;")
    );
    let waits = [
        (&copies[0], "wait in front of the access for the copy: `cp.async.wait_group`", false),
        (&copies[1], "wait in front of the access for the copy: `cp.async.wait_group`", false),
        (&load, "wait in front of the access for the copy: `mbarrier.try_wait`", true),
    ];
    for (body, wait, is_hopper) in waits {
        let (mut first, mut later) = (false, false);
        for seed in 0..8 {
            let ptx = small(body);
            let ptx = if is_hopper {
                ptx.replace(".version 7.4\n.target sm_80", ".version 8.0\n.target sm_90a")
            } else {
                ptx
            };
            let text = run(&ptx, &dense(), &[("n", 64)], |o| o.sim.seed = seed).map(|r| r.to_string()).expect_err(body);
            assert!(text.contains(wait) && text.contains("if the access must come first"), "{text}");
            (first, later) = (
                first | text.contains("an asynchronous copy after"),
                later | text.contains("after an asynchronous copy"),
            );
        }
        assert!(is_hopper || (first && later), "both orders");
    }
    let both = "mov.u32 %r3, tile;\ncp.async.ca.shared.global [%r3], [%rd1], 4;\ncp.async.wait_all;";
    reported(both, &["E0805", "several threads wrote to one address by one instruction"]);
}

#[test]
fn a_missing_fence_is_no_missing_barrier() {
    let store = STORE.replace("FENCE", "");
    let init = LOAD.replace("INIT", "");
    let product = "mov.u64 %rd5, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd5, %rd5, 0, 1, 1, 0, 0;";
    let product = format!(".reg .f32 %f<4>;\n{product}");
    for (body, needles) in [
        (
            store,
            ["no `fence.proxy.async` follows its ordinary write", "put a `fence.proxy.async` after the ordinary write"],
        ),
        (
            init,
            ["no `fence.mbarrier_init` or `fence.proxy.async` follows", "put a `fence.mbarrier_init.release.cluster`"],
        ),
        (product, ["no `wgmma.fence` comes before the first wgmma", "put a `wgmma.fence` in front of the product"]),
    ] {
        let text = hopper(&body, &["E0805", needles[0], needles[1]]);
        assert!(!text.contains("bar.sync` between") && !text.contains("came first was chance"), "{text}");
    }
    let step = "st.shared.u32 [%r2], %r1;\nst.shared.u32 [%r2+512], %r1;\nbar.sync 0;\nld.volatile.shared.u32 %r3, [%r2+4];\nst.volatile.shared.u32 [%r2], %r1;\nld.volatile.shared.u32 %r3, [%r2+64];";
    reported(step, &["count on lanes running in step", "put `bar.warp.sync` (`__syncwarp()`)"]);
}

#[test]
fn a_product_is_waited_for_before_its_registers_are_used() {
    let body = ".reg .f32 %f<4>;\nmov.u64 %rd5, 64;\nst.shared.u32 [%r2], %r1;\nst.shared.u32 [%r2+512], %r1;\nfence.proxy.async;\nbar.sync 0;\n\
        wgmma.fence.sync.aligned;\n\
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd5, %rd5, 0, 1, 1, 0, 0;\n\
        wgmma.commit_group.sync.aligned;\nadd.f32 %f0, %f0, %f0;";
    hopper(body, &["E0805", "`wgmma.commit_group` and `wgmma.wait_group`"]);
}

#[test]
fn who_has_exited_is_to_stay() {
    let body = "st.shared.u32 [%r2], %r1;\nsetp.ge.u32 %p1, %r1, 48;\n@%p1 ret;\nbar.sync 0;\nxor.b32 %r2, %r2, 64;\nld.shared.u32 %r3, [%r2];";
    reported(body, &["E0805", "let the other thread stay until a barrier that both reach"]);
    let counted = "setp.ge.u32 %p1, %r1, 48;\n@%p1 ret;\nbar.sync 1, 64;";
    reported(counted, &["E0806", "let all lanes of the warp stay until after this instruction"]);
}

#[test]
fn what_nobody_comes_to_depends_on_what_it_is() {
    reported("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 96;", &["E0807", "every thread that a barrier counts"]);
    let phase = "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r3, tile;\n@%p1 mbarrier.init.shared.b64 [%r3+512], 2;\nbar.sync 0;\n\
        @%p1 mbarrier.arrive.shared.b64 %rd5, [%r3+512];\nL:\nmbarrier.test_wait.parity.shared.b64 %p2, [%r3+512], 0;\n@!%p2 bra L;";
    reported(phase, &["E0807", "a phase ends with the last of the arrivals"]);
    let shuffle = "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;";
    let mask =
        format!("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\n{shuffle}\nL:\nadd.u32 %r4, %r1, 1;\n{shuffle}\n{shuffle}");
    reported(&mask, &["E0807", "every lane of the membermask"]);
    reported("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra.uni L;\nL:", &["E0806", "leave `.uni` out"]);
    let text =
        run(&small("ld.shared.u64 %rd5, [%r2+4];"), LAUNCH, &[("n", 64)], |_| ()).map(|_| ()).expect_err("misaligned");
    assert!(text.contains("E0802") && !text.contains("launch contract"), "{text}");
}

#[test]
fn another_device_helps_only_against_limits() {
    let text = |body: &str| run(&small(body), LAUNCH, &[("n", 64)], |_| ()).map(|_| ()).expect_err(body);
    for (body, limit) in [
        ("tex.2d.v4.f32.f32 {%r3, %r4, %r5, %r6}, [t, {%r1, %r1}];", true),
        ("frobnicate.u32 %r1;", true),
        ("mov.b128 %r1, %r2;", true),
        ("add.u32 %r3, %r4;", false),
        ("add.u32 %r3, %r4, %r99;", false),
        ("add.u32 %r3, %r4, %r5", false),
        ("bra NOWHERE;", false),
        ("cvt.rna.tf32.f32 %r3, %r4", false),
        ("mbarrier.try_wait.shared.b64 %p1, [%r2], %rd1;", false),
    ] {
        let text = text(body);
        assert!(text.contains("E0812"), "{text}");
        assert_eq!(text.contains("`--device cuda`"), limit, "{body}\n{text}");
    }
}

#[test]
fn undefined_registers_are_named_with_what_made_them() {
    reported(
        "st.global.u32 [%rd2], %r5;",
        &["the value stored is undefined: `%r5`", "nothing in the kernel writes `%r5`"],
    );
    reported(
        "setp.lt.u32 %p1, %r1, 40;\n@%p1 mov.u32 %r4, 1;\nadd.u32 %r5, %r4, %r1;\nmov.u32 %r6, %r5;\nst.global.u32 [%rd2], %r6;",
        &[
            "E0804",
            ": `%r6`",
            "by thread (40, 0, 0)",
            "`%r6` comes from `%r5`, by `mov.u32` at PTX line 21",
            "`%r5` comes from `%r4`, by `add.u32` at PTX line 20",
            "of what writes `%r4` (PTX line 19) this thread has executed nothing",
        ],
    );
    reported(
        "L:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 9;\n@%p1 bra L;",
        &["`%p1`", "what writes `%r5` (PTX line 19) reads it, too"],
    );
    let vectors = ".reg .v2 .b32 %v<2>;\nmov.u32 %v1.x, 1;\nst.global.u32 [%rd2], %v1.y;";
    reported(vectors, &["E0804", ": `%v1.y`"]);
    reported("@%p3 st.global.u32 [%rd2], %r1;", &["the predicate of this instruction is undefined: `%p3`"]);
}

#[test]
fn a_shuffle_from_nowhere_says_so() {
    let shuffle = "shfl.sync.down.b32 %r5, %r1, 8, 31, MASK;\nst.global.u32 [%rd2], %r5;";
    let low = format!("setp.lt.u32 %p1, %r1, 16;\n@!%p1 LEAVE;\n{shuffle}\nE:");
    reported(
        &low.replace("LEAVE", "bra E").replace("MASK", "0xFFFF"),
        &[
            "E0804",
            "`%r5` comes from lane 16, which is not in the membermask 0x0000ffff, by `shfl.sync.down.b32` at PTX line 20",
        ],
    );
    reported(
        &low.replace("LEAVE", "ret").replace("MASK", "-1"),
        &["E0804", "`%r5` comes from lane 16, which has exited, by `shfl"],
    );
    let other = "setp.lt.u32 %p1, %r1, 16;\n@%p1 mov.u32 %r4, 1;\nshfl.sync.idx.b32 %r5, %r4, 20, 31, -1;\nst.global.u32 [%rd2], %r5;";
    reported(other, &["`%r5` comes from `%r4` of thread (20, 0, 0), by `shfl.sync.idx.b32`", "of what writes `%r4`"]);
    let mask = "setp.lt.u32 %p1, %r1, 16;\n@%p1 mov.u32 %r4, -1;\nshfl.sync.idx.b32 %r5, %r6, 0, 31, %r4;";
    reported(mask, &["the membermask is undefined: `%r4`"]);
}

#[test]
fn an_error_that_is_allowed_is_a_warning() {
    let body = ".reg .f32 %f<4>;\nmov.u64 %rd5, 64;\ncp.async.ca.shared.global [%r2], [%rd1], 4;\n\
        cp.async.ca.shared.global [%r2+512], [%rd1], 4;\ncp.async.wait_all;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n\
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd5, %rd5, 0, 1, 1, 0, 0;\n\
        wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nst.global.f32 [%rd2], %f0;";
    let text = hopper(
        body,
        &["E0805", "no `fence.proxy.async` follows the `cp.async` that wrote it", "`--allow cp-async-proxy`"],
    );
    assert!(!text.contains("bar.sync` between"), "{text}");
    let allowed = |body: &str| {
        let run = run(&for_hopper(body), &of_128(), &[("n", 128)], |o| o.sim.allow = vec![Allowance::CopyProxy]);
        run.map(|report| report.warnings)
    };
    let warnings = allowed(body).expect("it passes");
    assert!(!warnings.is_empty() && warnings.iter().all(|w| w.code.0 == "W0801"), "{warnings:?}");
    assert!(warnings[0].message.contains("no `fence.proxy.async` follows the `cp.async`"), "{warnings:?}");
    // It is allowed already.
    assert!(warnings.iter().all(|w| w.notes.iter().all(|n| !n.contains("--allow"))), "{warnings:?}");
    let fenced = body.replace("bar.sync 0;", "fence.proxy.async;\nbar.sync 0;");
    assert_eq!(allowed(&fenced), Ok(Vec::new()));
}

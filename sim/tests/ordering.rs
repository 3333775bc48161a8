//! What orders threads of a block and what does not: release and acquire patterns, warp barriers, named barriers.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program, Report, ReportKind};

/// `%out` is 1024 bytes of zeros, `%t` the thread, `%at` the thread's word of `sm`, which holds zeros after a barrier.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<32>, %t, %at;\n.reg .b64 %rd<8>, %out;\n.shared .align 16 .b8 sm[1024];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %at, sm;\nshl.b32 %r31, %t, 2;\nadd.u32 %at, %at, %r31;\n\
         mov.u32 %r30, 0;\nst.shared.u32 [%at], %r30;\nbar.sync 0;\n{body}\nret;\n}}\n"
    )
}

fn run(body: &str, threads: u32, seed: u64) -> Result<Vec<u8>, Box<Report>> {
    let text = kernel(body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(1024).unwrap();
    device.upload(out, &[0; 1024]).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1, 1, 1], block: [threads, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options { seed, fuel: 200_000, ..Options::default() })?;
    Ok(device.download(out, 1024).unwrap())
}

#[track_caller]
fn good(body: &str, threads: u32) {
    for seed in 0..4 {
        run(body, threads, seed).unwrap_or_else(|r| panic!("seed {seed}: {r}"));
    }
}

#[track_caller]
fn bad(body: &str, threads: u32, kind: ReportKind) -> Report {
    let mut last = None;
    for seed in 0..4 {
        match run(body, threads, seed) {
            Ok(_) => panic!("seed {seed}: no report: {body}"),
            Err(report) => {
                assert_eq!(report.kind, kind, "seed {seed}: {report}");
                last = Some(*report);
            }
        }
    }
    last.unwrap()
}

/// Thread 0 writes a word and then a flag; thread 32 waits for the flag and reads the word.
fn flag([before, write, read, after]: [&str; 4]) -> String {
    format!(
        "setp.ge.u32 %p1, %t, 32; @%p1 bra C; setp.ne.u32 %p2, %t, 0; @%p2 ret;\n\
         st.DATA.u32 [DATUM], 7; {before} {write} ret;\n\
         C: setp.ne.u32 %p2, %t, 32; @%p2 ret; L: {read} setp.ne.u32 %p3, %r4, 1; @%p3 bra L; {after}\n\
         ld.DATA.u32 %r5, [DATUM]; st.global.u32 [%out+64], %r5;"
    )
}

/// The same through shared and through global memory.
fn places(text: &str) -> [String; 2] {
    [
        text.replace("DATA", "shared").replace("DATUM", "sm").replace("FLAG", "sm+4"),
        text.replace("DATA", "global").replace("DATUM", "%out").replace("FLAG", "%out+4"),
    ]
}

#[test]
fn flags_need_a_fence_on_both_sides() {
    let fences = ["fence.acq_rel.cta;", "fence.sc.gpu;", "membar.cta;", "membar.gl;"];
    let relaxed = ("st.relaxed.cta.DATA.u32 [FLAG], 1;", "ld.relaxed.cta.DATA.u32 %r4, [FLAG];");
    let volatile = ("st.volatile.DATA.u32 [FLAG], 1;", "ld.volatile.DATA.u32 %r4, [FLAG];");
    let atomic = ("atom.DATA.exch.b32 %r9, [FLAG], 1;", "atom.DATA.add.u32 %r4, [FLAG], 0;");
    for (write, read) in [relaxed, volatile, atomic] {
        for fence in fences {
            for text in places(&flag([fence, write, read, fence])) {
                good(&text, 64);
            }
            for (before, after) in [("", ""), (fence, ""), ("", fence)] {
                for text in places(&flag([before, write, read, after])) {
                    bad(&text, 64, ReportKind::Race);
                }
            }
        }
    }
}

#[test]
fn accesses_that_release_and_acquire_need_no_fence() {
    let (release, acquire) = ("st.release.cta.DATA.u32 [FLAG], 1;", "ld.acquire.gpu.DATA.u32 %r4, [FLAG];");
    let (relaxed, seen) = ("st.relaxed.cta.DATA.u32 [FLAG], 1;", "ld.relaxed.cta.DATA.u32 %r4, [FLAG];");
    let (add, update) = ("red.release.gpu.DATA.add.u32 [FLAG], 1;", "atom.acquire.gpu.DATA.add.u32 %r4, [FLAG], 0;");
    for (right, text) in [
        (true, flag(["", release, acquire, ""])),
        (true, flag(["", add, update, ""])),
        (true, flag(["", add, acquire, ""])),
        (true, flag(["", release, seen, "fence.acquire.cta;"])),
        (true, flag(["fence.release.cta;", relaxed, acquire, ""])),
        (false, flag(["", release, seen, ""])),
        (false, flag(["", relaxed, acquire, ""])),
        (false, flag(["", release, seen, "fence.release.cta;"])),
        (false, flag(["fence.acquire.cta;", relaxed, acquire, ""])),
    ] {
        for text in places(&text) {
            if right { good(&text, 64) } else { drop(bad(&text, 64, ReportKind::Race)) }
        }
    }
}

#[test]
fn fences_count_for_what_is_before_them() {
    // A fence long ago, and one after the flag.
    let (write, read) = ("atom.DATA.exch.b32 %r9, [FLAG], 1;", "atom.DATA.add.u32 %r4, [FLAG], 0;");
    let early = flag(["", write, read, "membar.cta;"]);
    for text in places(&early) {
        bad(&format!("membar.cta; bar.sync 0; {text}"), 64, ReportKind::Race);
    }
    for text in places(&flag(["", &format!("{write} membar.cta;"), read, "membar.cta;"])) {
        bad(&text, 64, ReportKind::Race);
    }
    // An update by a third party between the two keeps the chain, a store does not.
    let third = |between: &str| {
        format!(
            "setp.ge.u32 %p1, %t, 32; @%p1 bra C; setp.ne.u32 %p2, %t, 0; @%p2 ret; st.shared.u32 [sm], 7; membar.cta;\n\
             st.volatile.shared.u32 [sm+4], 1; ret; C: setp.ge.u32 %p1, %t, 64; @%p1 bra D; setp.ne.u32 %p2, %t, 32; @%p2 ret;\n\
             L: ld.volatile.shared.u32 %r4, [sm+4]; setp.ne.u32 %p3, %r4, 1; @%p3 bra L; {between}\n\
             st.volatile.shared.u32 [sm+8], 1; ret;\n\
             D: setp.ne.u32 %p2, %t, 64; @%p2 ret; M: ld.volatile.shared.u32 %r4, [sm+8]; setp.ne.u32 %p3, %r4, 1; @%p3 bra M;\n\
             ld.volatile.shared.u32 %r4, [sm+4]; membar.cta; ld.shared.u32 %r5, [sm];"
        )
    };
    good(&third("atom.shared.add.u32 %r9, [sm+4], 1;"), 96);
    bad(&third("st.volatile.shared.u32 [sm+4], 2;"), 96, ReportKind::Race);
    good(&third("membar.cta; st.volatile.shared.u32 [sm+4], 2;"), 96);
}

#[test]
fn fences_count_across_barriers() {
    // All threads fence, meet, and one of them tells; one sees it, all meet and fence.
    let body = "setp.ge.u32 %p1, %t, 64; @%p1 bra C; st.global.u32 [%rd1], %t; BEFORE bar.sync 1, 64;\n\
        setp.ne.u32 %p2, %t, 0; @%p2 ret; st.volatile.global.u32 [%out+1000], 1; ret;\n\
        C: setp.ne.u32 %p2, %t, 64; @%p2 bra E; L: ld.volatile.global.u32 %r4, [%out+1000]; setp.ne.u32 %p3, %r4, 1;\n\
        @%p3 bra L; E: bar.sync 2, 64; AFTER ld.global.u32 %r5, [%rd1+-256];";
    let body = format!("mul.wide.u32 %rd1, %t, 4; add.s64 %rd1, %out, %rd1; {body}");
    let with = |before, after| body.replace("BEFORE", before).replace("AFTER", after);
    good(&with("membar.gl;", "membar.gl;"), 128);
    bad(&with("", "membar.gl;"), 128, ReportKind::Race);
    bad(&with("membar.gl;", ""), 128, ReportKind::Race);
    // Before there were ordered loads a flag was read past the first-level cache, with a barrier after it.
    good(&with("membar.gl;", "").replace("ld.volatile.global", "ld.global.cg"), 128);
    bad(&with("", "").replace("ld.volatile.global", "ld.global.cg"), 128, ReportKind::Race);
}

#[test]
fn a_lane_publishes_what_it_knows() {
    // Every lane of the warp has fenced, but lane 0 has not met the others.
    let body = "setp.ge.u32 %p1, %t, 32; @%p1 bra C; st.shared.u32 [%at], 7; membar.cta; MEET setp.ne.u32 %p2, %t, 0;\n\
        @%p2 bra E; st.volatile.shared.u32 [sm+512], 1; E: bar.warp.sync -1; ret;\n\
        C: L: ld.volatile.shared.u32 %r4, [sm+512]; setp.ne.u32 %p3, %r4, 1; @%p3 bra L; membar.cta; ld.shared.u32 %r5, [%at+-128];";
    let body = format!("setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [sm+512], 0; bar.sync 0; {body}");
    good(&body.replace("MEET", "bar.warp.sync -1;"), 64);
    bad(&body.replace("MEET", ""), 64, ReportKind::Race);
}

#[test]
fn the_first_read_of_a_swap_loop_is_no_race() {
    let body = "ld.DATA.u32 %r1, [DATUM]; L: add.u32 %r2, %r1, 1; atom.DATA.cas.b32 %r3, [DATUM], %r1, %r2;\n\
        setp.ne.u32 %p0, %r1, %r3; mov.u32 %r1, %r3; @%p0 bra L;";
    for text in places(body) {
        good(&text, 96);
        // Two others read as plainly as they update: the places are those of the load and of an update.
        let plain = text.replacen("[sm]", "[%at]", 1).replacen("[%out]", "[%rd1]", 1);
        let plain = format!("add.u64 %rd1, %out, 0; sub.u32 %at, %at, %r31; {plain}");
        let report = bad(&plain, 96, ReportKind::Race);
        let places = [report.place.unwrap().instruction, report.other.unwrap().instruction];
        assert!(
            places.iter().any(|p| p.starts_with("ld.")) && places.iter().any(|p| p.starts_with("atom.")),
            "{places:?}"
        );
    }
    // A plain write is a race as ever.
    bad(&places(&format!("setp.eq.u32 %p1, %t, 40; @%p1 st.DATA.u32 [DATUM], 3; {body}"))[0], 96, ReportKind::Race);
}

#[test]
fn warp_barriers_join_the_lanes_of_a_mask() {
    let tiles = "st.shared.u32 [%at], %t; and.b32 %r1, %t, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1; bar.warp.sync %r2;\n\
        xor.b32 %r3, %r31, OTHER; mov.u32 %r4, sm; add.u32 %r3, %r3, %r4; ld.shared.u32 %r5, [%r3];";
    good(&tiles.replace("OTHER", "4"), 32);
    bad(&tiles.replace("OTHER", "32"), 32, ReportKind::Race);
    // At different places.
    let places = "setp.lt.u32 %p0, %t, 16; st.shared.u32 [%at], %t; @%p0 bra A; bar.warp.sync 0xFFFF0000; bra B;\n\
        A: bar.warp.sync 0xFFFF; B: xor.b32 %r3, %r31, OTHER; mov.u32 %r4, sm; add.u32 %r3, %r3, %r4; ld.shared.u32 %r5, [%r3];";
    good(&places.replace("OTHER", "32"), 32);
    bad(&places.replace("OTHER", "64"), 32, ReportKind::Race);
    // Masks that overlap.
    let differ = "setp.lt.u32 %p0, %t, 16; selp.b32 %r1, -1, 0xFFFF0000, %p0;";
    let report = bad(&format!("{differ} bar.warp.sync %r1;"), 32, ReportKind::Invalid);
    assert!(report.message.contains("names lane 16, whose membermask is 0xffff0000"), "{report}");
    bad(&format!("{differ} shfl.sync.idx.b32 %r2, %t, 20, 31, %r1;"), 32, ReportKind::Invalid);
    bad(
        "setp.lt.u32 %p0, %t, 16; @%p0 bra A; bar.warp.sync 0xFFFF0000; bra B; A: bar.warp.sync -1; B: bar.sync 0;",
        32,
        ReportKind::Divergence,
    );
}

#[test]
fn every_lane_that_read_counts() {
    // Lanes 0 to 31 read a word; lane 0 tells, reads again and tells again. The others have not been waited for.
    let body = "mov.u32 %r1, sm; setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared.b64 [sm+768], 1;\n\
        @%p0 mbarrier.init.shared.b64 [sm+776], 1; bar.sync 0; setp.ge.u32 %p1, %t, 32; @%p1 bra C; ld.shared.u32 %r2, [sm+4]; MEET\n\
        @!%p0 bra E; mbarrier.arrive.shared.b64 %rd1, [sm+768]; ld.shared.u32 %r3, [sm+4]; mbarrier.arrive.shared.b64 %rd1, [sm+776];\n\
        E: bar.warp.sync -1; ret;\n\
        C: W: mbarrier.test_wait.parity.shared.b64 %p2, [sm+776], 0; @!%p2 bra W; setp.eq.u32 %p3, %t, 32; @%p3 st.shared.u32 [sm+4], 7;";
    good(&body.replace("MEET", "bar.warp.sync -1;"), 64);
    bad(&body.replace("MEET", ""), 64, ReportKind::Race);
}

#[test]
fn barriers_are_counted_exactly() {
    // A warp that arrives twice replaces one that has not arrived.
    let twice = "setp.ge.u32 %p1, %t, 32; @%p1 bra C; bar.sync 1, 96; ret; C: setp.ge.u32 %p1, %t, 64; @%p1 bra D;\n\
        bar.arrive 1, 96; MORE ret; D: LATE";
    good(&twice.replace("MORE", "").replace("LATE", "bar.arrive 1, 96;"), 96);
    bad(&twice.replace("MORE", "bar.arrive 1, 96;").replace("LATE", ""), 96, ReportKind::Invalid);
    // Arrivals for which no thread waits.
    let report = bad("bar.arrive 1, 128;", 64, ReportKind::Invalid);
    assert!(report.message.contains("64 arrivals at barrier 1, which waits for 128"), "{report}");
    // All threads are a count like any other, and no other count.
    let mixed = "setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0, COUNT; B:";
    good(&mixed.replace("COUNT", "96"), 96);
    good(&mixed.replace("COUNT", "96"), 80);
    bad(&mixed.replace("COUNT", "64"), 96, ReportKind::Invalid);
}

#[test]
fn shared_variables_do_not_touch() {
    // Each variable is followed by a gap, for any size and kind of the next variable.
    let past = ".shared .b8 a[128]; .shared .b8 b[128]; mov.u32 %r1, VAR; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;\n\
        st.shared.u32 [%r1+PLUS], %t;";
    for var in ["a", "b"] {
        good(&past.replace("VAR", var).replace("PLUS", "0"), 32);
        let report = bad(&past.replace("VAR", var).replace("PLUS", "4"), 32, ReportKind::OutOfBounds);
        assert_eq!(report.place.as_ref().unwrap().thread, [31, 0, 0], "{report}");
    }
    let report = bad(&past.replace("VAR", "a").replace("PLUS", "4"), 32, ReportKind::OutOfBounds);
    assert!(report.message.contains("`a` ends at"), "{report}");
    // Parts of words, vectors, atomics and copies.
    let odd = ".shared .align 4 .b8 a[6]; .shared .align 16 .b8 b[32]; ";
    good(&format!("{odd} @!%p1 bra E; E: setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u8 [a+5], %r30; @%p0 st.shared.u64 [b+24], %rd7;")
        .replace("@!%p1 bra E; E:", "mov.u64 %rd7, 1;"), 32);
    for access in [
        "st.shared.u8 [a+6], %r30;",
        "st.shared.u32 [a+4], %r30;",
        "st.shared.v4.u32 [b+32], {%r30, %r30, %r30, %r30};",
        "red.shared.add.u32 [b+32], 1;",
        "ld.shared.u32 %r1, [b+-4];",
        "cp.async.ca.shared.global [b+32], [%out], 4;",
    ] {
        bad(&format!("{odd} setp.eq.u32 %p0, %t, 0; @%p0 {access}"), 32, ReportKind::OutOfBounds);
    }
}

#[test]
fn arrivals_behind_copies_are_found_at_once() {
    // With a list that is searched from its start this takes a minute.
    let body = "setp.ne.u32 %p0, %t, 0; @%p0 ret; mbarrier.init.shared.b64 [sm+512], 1000000; mov.u32 %r1, 0;\n\
        L: cp.async.ca.shared.global [sm], [%out], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [sm+512]; cp.async.wait_all;\n\
        add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 200000; @%p1 bra L;";
    let text = kernel(body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(1024).unwrap();
    device.upload(out, &[0; 1024]).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1, 1, 1], block: [32, 1, 1], dynamic_smem: 0, params };
    let options = Options { landing: tilec_sim::Landing::Latest, ..Options::default() };
    device.run(&program, &launch, &options).unwrap_or_else(|r| panic!("{r}"));
}

#[test]
fn plain_accesses_do_not_hide_behind_strong_ones() {
    // Thread 0 has a plain access and then a strong one, as all others have.
    for (space, at) in [("shared", "sm"), ("global", "%out")] {
        let all = format!("atom.{space}.add.u32 %r0, [{at}], 1;");
        for (plain, strong) in [
            (format!("st.{space}.u32 [{at}], 1;"), all.clone()),
            (format!("ld.{space}.u32 %r1, [{at}];"), all.clone()),
            (format!("mov.b16 %h, 1; st.{space}.u8 [{at}+1], %h;"), all.clone()),
            (format!("ld.{space}.u32 %r1, [{at}]; atom.{space}.add.u32 %r0, [{at}], 1;"), all.clone()),
            (
                format!("st.{space}.u32 [{at}], 1; st.volatile.{space}.u32 [{at}], 1;"),
                format!("ld.volatile.{space}.u32 %r0, [{at}];"),
            ),
        ] {
            let guarded = plain.split_inclusive(';').map(|one| format!("@%p0 {one}")).collect::<String>();
            let body = |barrier: &str| {
                format!(".reg .b16 %h; setp.eq.u32 %p0, %t, 0; {guarded} {barrier} {strong}").replace("@%p0 \n", "")
            };
            for threads in [32, 64] {
                good(&body("bar.sync 0;"), threads);
                bad(&body(""), threads, ReportKind::Race);
            }
        }
        // Adjacent bytes are not affected.
        let beside = format!(
            ".reg .b16 %h; mov.b16 %h, 1; setp.eq.u32 %p0, %t, 0; @%p0 st.{space}.u8 [{at}+2], %h;\n\
             atom.{space}.cas.b16 %h, [{at}], 0, 1; {all}"
        );
        good(&beside.replace(&all, ""), 64);
        bad(&beside, 64, ReportKind::Race);
    }
}

/// Threads from 48 on, half a warp, leave; the others go on to a barrier.
const LEAVE: &str = "setp.ge.u32 %p1, %t, 48; @%p1 ret;";

#[test]
fn who_has_exited_is_at_no_barrier() {
    let own = "setp.eq.u32 %p1, %t, 0; mul.wide.u32 %rd0, %t, 4; add.s64 %rd0, %rd0, %out; xor.b32 %r1, %at, 64; xor.b32 %r2, %t, 16;\n\
        mul.wide.u32 %rd1, %r2, 4; add.s64 %rd1, %rd1, %out;";
    // The other half of the warp, or the other warp, has the word at `THEIRS`.
    let places = [("shared", "[%at]", "[%r1]"), ("global", "[%rd0]", "[%rd1]")];
    let barriers = [
        "bar.sync 0;",
        "barrier.sync.aligned 0;",
        "barrier.sync 0;",
        "bar.red.popc.u32 %r9, 0, %p1;",
        "bar.warp.sync -1;",
    ];
    for ((space, mine, theirs), barrier) in places.iter().flat_map(|p| barriers.map(|b| (*p, b))) {
        let (store, load) = (format!("st.{space}.u32 {mine}, 7;"), format!("ld.{space}.u32 %r3, {theirs};"));
        let write = format!("st.{space}.u32 {theirs}, 7;");
        for (before, after) in [(&store, &load), (&load, &store), (&store, &write)] {
            let report = bad(&format!("{own} {before} {LEAVE} {barrier} {after}"), 64, ReportKind::Race);
            assert!(report.message.contains("that thread has exited"), "{barrier}: {report}");
            // A barrier that they have been at is one for them.
            good(&format!("{own} {before} {barrier} {LEAVE} {barrier} {after}"), 64);
        }
    }
}

#[test]
fn threads_may_leave_before_a_barrier_of_all() {
    for barrier in ["bar.sync 0;", "barrier.sync.aligned 0;", "barrier.sync 0;", "bar.red.popc.u32 %r9, 0, %p1;"] {
        let body = format!(
            "{LEAVE} st.shared.u32 [%at], %t; {barrier} xor.b32 %r1, %at, 32; ld.shared.u32 %r3, [%r1]; {barrier}\n\
             st.shared.u32 [%r1], %r3; st.shared.u32 [%at+512], %t; bar.warp.sync -1; ld.shared.u32 %r3, [%r1+512];\n\
             mbarrier.init.shared.b64 [sm+768], 1;"
        );
        good(&body.replace("mbarrier", "setp.eq.u32 %p2, %t, 0; @%p2 mbarrier"), 64);
    }
    // One that counts whole warps has none of this one, unless its lanes arrive one by one.
    for barrier in ["bar.sync 1, 64;", "barrier.sync.aligned 1, 64;", "bar.red.popc.u32 %r9, 1, 64, %p1;"] {
        let report = bad(&format!("{LEAVE} {barrier}"), 64, ReportKind::Divergence);
        assert!(report.message.contains("lanes 0xffff0000 have exited"), "{report}");
        assert_eq!(report.place.unwrap().thread, [32, 0, 0]);
    }
    let arrive = "setp.lt.u32 %p2, %t, 32; @%p2 bra A; bar.arrive 1, 64; bra B; A: bar.sync 1, 64; B:";
    good(arrive, 64);
    bad(&format!("{LEAVE} {arrive}"), 64, ReportKind::Divergence);
    bad(&format!("{LEAVE} barrier.sync 1, 64;"), 64, ReportKind::Deadlock);
    // Threads that are not there at all are not missed.
    good("bar.sync 1, 64; bar.sync 0;", 48);
}

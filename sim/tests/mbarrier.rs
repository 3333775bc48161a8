//! mbarrier objects: phases, counts, what they order, what deadlocks on them; and their misuse.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Landing, Launch, Options, Program, Report, ReportKind};

/// `%b` is the address of an object, `%s` that of the thread's word, `%t` the thread, `%mine` its output.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<16>, %t, %b, %s;\n.reg .b64 %rd<8>, %out, %mine;\n.shared .align 8 .b64 bar[4];\n\
         .shared .align 16 .b8 sm[1024];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %mine, %t, 4;\n\
         add.s64 %mine, %out, %mine;\nmov.u32 %b, bar;\nmov.u32 %s, sm;\nshl.b32 %r15, %t, 2;\nadd.u32 %s, %s, %r15;\n\
         setp.eq.u32 %p7, %t, 0;\n{body}\nret;\n}}\n"
    )
}

fn run_with(body: &str, threads: u32, options: &Options) -> Result<Vec<u32>, Box<Report>> {
    let text = kernel(body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(1024).unwrap();
    device.upload(out, &(0..1024).map(|i| i as u8).collect::<Vec<_>>()).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [threads, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, options)?;
    Ok(device.download(out, 1024).unwrap().chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect())
}

fn modes() -> impl Iterator<Item = Options> {
    let seeds = |landing| (0..4).map(move |seed| Options { seed, landing, fuel: 1_000_000, ..Options::default() });
    Landing::ALL.into_iter().flat_map(seeds)
}

#[track_caller]
fn good(body: &str, threads: u32) -> Vec<u32> {
    let mut all = modes().map(|o| run_with(body, threads, &o).unwrap_or_else(|r| panic!("{o:?}: {r}")));
    let first = all.next().unwrap();
    assert!(all.all(|out| out == first), "the mode changes the result");
    first
}

/// The last of the reports; all are of the kind.
#[track_caller]
fn bad(body: &str, threads: u32, kinds: &[ReportKind]) -> Report {
    let mut last = None;
    for options in modes() {
        let report = run_with(body, threads, &options).map(|_| ()).expect_err("no report");
        assert!(kinds.contains(&report.kind), "{options:?}: {report}");
        last = Some(*report);
    }
    last.unwrap()
}

const RACE: &[ReportKind] = &[ReportKind::Race, ReportKind::Uninitialised];
const INVALID: &[ReportKind] = &[ReportKind::Invalid];

/// A wait may fail any number of times during its phase. A thread that tries a few times and then continues reads too
/// early, with any seed.
#[test]
fn a_wait_that_gives_up_waits_for_nothing() {
    let (label, wait) = (
        "L: mbarrier.test_wait.shared.b64 %p0, [%b], %rd0; @!%p0 bra L;",
        "mbarrier.test_wait.shared.b64 %p0, [%b], %rd0;",
    );
    for wait in [
        wait,
        "mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0;",
        "mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0, 1000000;",
    ] {
        for tries in [1, 2, 3, 8, 20] {
            let turns = format!(
                "mov.u32 %r9, 0; L: {wait} @%p0 bra D; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, {tries}; @%p1 bra L; D:"
            );
            bad(&EXCHANGE.replace(label, &turns), 64, RACE);
            let row = format!("{wait} @%p0 bra D;").repeat(tries) + "D:";
            bad(&EXCHANGE.replace(label, &row), 64, RACE);
        }
        // A thread that only continues after the phase is correct with any form of wait.
        good(&EXCHANGE.replace(label, &format!("L: {wait} @%p0 bra D; nanosleep.u32 20; bra L; D:")), 64);
    }
}

/// A thread that ignores the result of `test_wait` is wrong in every order, even if the phase was complete.
#[test]
fn an_answer_that_nobody_looks_at_says_nothing() {
    // Warp 0 writes and arrives, warp 1 tests and reads what warp 0 wrote.
    let hand_over = "@%p7 mbarrier.init.shared.b64 [%b], 32; bar.sync 0; setp.lt.u32 %p1, %t, 32; @%p1 bra W; mov.u32 %r9, 0;\n\
        ASK xor.b32 %r0, %r15, 128; mov.u32 %r1, sm; add.u32 %r0, %r0, %r1; ld.shared.u32 %r2, [%r0]; st.global.u32 [%mine], %r2; ret;\n\
        W: st.shared.u32 [%s], %t; mbarrier.arrive.shared.b64 _, [%b];";
    for wait in
        ["mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0;", "mbarrier.test_wait.parity.shared.b64 %p0, [%b], 0;"]
    {
        for ignored in [
            wait.to_owned(),
            format!("{wait} @!%p0 add.u32 %r9, %r9, 1;"),
            format!("{wait} @%p0 bra D; nanosleep.u32 100; D:"),
            format!("L: {wait} @%p0 bra D; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 20; @%p2 bra L; D:"),
        ] {
            bad(&hand_over.replace("ASK", &ignored), 64, RACE);
        }
        good(&hand_over.replace("ASK", &format!("L: {wait} @!%p0 bra L;")), 64);
        // A first look, and a wait where it is in vain.
        good(&hand_over.replace("ASK", &format!("{wait} @%p0 bra D; L: {wait} @!%p0 bra L; D:")), 64);
    }
}

/// If other synchronisation orders a thread after the phase, its test succeeds at once.
#[test]
fn who_knows_that_a_phase_is_over_asks_once() {
    let ask = "mbarrier.test_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 trap;";
    let all = "@%p7 mbarrier.init.shared.b64 [%b], 64; bar.sync 0; mbarrier.arrive.shared.b64 %rd0, [%b];";
    good(&format!("{all} bar.sync 0; {ask}"), 64);
    good(&format!("{all} L: mbarrier.try_wait.shared.b64 %p0, [%b], %rd0; @!%p0 bra L; {ask}"), 64);
    // One thread's own arrival, and the phase before the first.
    let one = "@%p7 mbarrier.init.shared.b64 [%b], 1; bar.sync 0; @!%p7 ret; mbarrier.arrive.shared.b64 %rd0, [%b];";
    good(&format!("{one} {ask}"), 64);
    good(&format!("mbarrier.init.shared.b64 [%b], 1; mbarrier.arrive.shared.b64 %rd0, [%b]; {ask}"), 1);
    let fresh = "@%p7 mbarrier.init.shared.b64 [%b], 1; bar.sync 0; mbarrier.try_wait.parity.shared.b64 %p0, [%b], 1; @!%p0 trap;";
    good(fresh, 64);
    // Not who arrives last of several: the others may come after the question.
    bad(&format!("{all} {ask}"), 64, &[ReportKind::Trap]);
}

/// Each thread writes its word, arrives, waits, reads its neighbour's warp's word.
const EXCHANGE: &str = "@%p7 mbarrier.init.shared.b64 [%b], 64; bar.sync 0; st.shared.u32 [%s], %t;\n\
    mbarrier.arrive.shared.b64 %rd0, [%b];\n\
    L: mbarrier.test_wait.shared.b64 %p0, [%b], %rd0; @!%p0 bra L;\n\
    xor.b32 %r0, %r15, 128; mov.u32 %r1, sm; add.u32 %r0, %r0, %r1; ld.shared.u32 %r2, [%r0]; st.global.u32 [%mine], %r2;";

#[test]
fn arrivals_order_what_was_before() {
    let out = good(EXCHANGE, 64);
    assert!((0..64).all(|i| out[i] == i as u32 ^ 32));
    // Generic addresses, parity, and the suspending wait.
    let other = EXCHANGE
        .replace(
            "mbarrier.test_wait.shared.b64 %p0, [%b], %rd0",
            "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [%b], 0, 1000",
        )
        .replace(
            "mbarrier.arrive.shared.b64 %rd0, [%b]",
            "mov.u64 %rd1, bar; cvta.shared.u64 %rd1, %rd1; mbarrier.arrive.release.cta.b64 _, [%rd1]",
        );
    assert_eq!(good(&other, 64), out);
    bad(&EXCHANGE.replace("L: mbarrier.test_wait.shared.b64 %p0, [%b], %rd0; @!%p0 bra L;", ""), 64, RACE);
    bad(&EXCHANGE.replace("@!%p0 bra L;", ""), 64, RACE);
    bad(&EXCHANGE.replace("arrive.shared", "arrive.relaxed.cta.shared"), 64, RACE);
    bad(&EXCHANGE.replace("test_wait.shared", "test_wait.relaxed.cta.shared"), 64, RACE);
    // Nobody may arrive before the object is there.
    bad(&EXCHANGE.replace("bar.sync 0;", ""), 64, &[ReportKind::Race, ReportKind::Invalid]);
    // The wait is for phase 0, not for the one before.
    let parity = EXCHANGE.replace("test_wait.shared.b64 %p0, [%b], %rd0", "test_wait.parity.shared.b64 %p0, [%b], 1");
    bad(&parity, 64, RACE);
}

/// Warp 0 fills two slots in turn, warp 1 empties them: full and empty objects for each slot; `n` items.
fn ring(n: u32) -> String {
    format!(
        "@%p7 mbarrier.init.shared.b64 [%b], 1; @%p7 mbarrier.init.shared.b64 [%b+8], 1;\n\
         @%p7 mbarrier.init.shared.b64 [%b+16], 32; @%p7 mbarrier.init.shared.b64 [%b+24], 32; bar.sync 0;\n\
         mov.u32 %r0, 0; mov.u32 %r9, 0; mov.u32 %r1, 0; and.b32 %r14, %t, 31; setp.eq.u32 %p6, %r14, 0;\n\
         shl.b32 %r14, %r14, 2; mov.u32 %r13, sm; add.u32 %r13, %r13, %r14;\n\
         setp.ge.u32 %p5, %t, 32; @%p5 bra C;\n\
         P: and.b32 %r2, %r0, 1; shl.b32 %r3, %r2, 3; add.u32 %r4, %b, %r3; shl.b32 %r5, %r2, 7; add.u32 %r5, %r13, %r5;\n\
         shr.u32 %r6, %r0, 1; and.b32 %r6, %r6, 1; xor.b32 %r6, %r6, 1;\n\
         PW: mbarrier.try_wait.parity.shared.b64 %p0, [%r4+16], %r6; @!%p0 bra PW;\n\
         add.u32 %r7, %r0, %t; st.shared.u32 [%r5], %r7; bar.warp.sync -1; @%p6 mbarrier.arrive.shared.b64 %rd0, [%r4];\n\
         add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, {n}; @%p1 bra P; ret;\n\
         C: and.b32 %r2, %r0, 1; shl.b32 %r3, %r2, 3; add.u32 %r4, %b, %r3; shl.b32 %r5, %r2, 7; add.u32 %r5, %r13, %r5;\n\
         shr.u32 %r6, %r0, 1; and.b32 %r6, %r6, 1; xor.b32 %r5, %r5, 4;\n\
         CW: mbarrier.try_wait.parity.shared.b64 %p0, [%r4], %r6; @!%p0 bra CW;\n\
         ld.shared.u32 %r7, [%r5]; add.u32 %r9, %r9, %r7; mbarrier.arrive.shared.b64 %rd0, [%r4+16];\n\
         add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, {n}; @%p1 bra C; st.global.u32 [%mine], %r9;"
    )
}

#[test]
fn rings_turn() {
    for n in [1, 2, 3, 7] {
        let out = good(&ring(n), 64);
        assert!((32..64u32).all(|i| out[i as usize] == n * ((i - 32) ^ 1) + n * (n - 1) / 2), "{n}");
    }
    let ring = ring(7);
    for (cut, with) in [
        // One lane speaks for the warp only after the warp has waited for itself.
        ("bar.warp.sync -1; @%p6", "@%p6"),
        // The producer overtakes the consumer.
        ("@!%p0 bra PW;", ""),
        ("xor.b32 %r6, %r6, 1;", ""),
        ("@!%p0 bra CW;", ""),
        ("mbarrier.arrive.shared.b64 %rd0, [%r4+16];", ""),
        ("@%p6 mbarrier.arrive.shared.b64 %rd0, [%r4];", ""),
    ] {
        let mutant = ring.replacen(cut, with, 1);
        assert_ne!(mutant, ring);
        bad(&mutant, 64, &[ReportKind::Race, ReportKind::Uninitialised, ReportKind::Deadlock, ReportKind::Invalid]);
    }
}

#[test]
fn waiting_for_ever_names_the_objects() {
    let report = bad(
        "@%p7 mbarrier.init.shared.b64 [%b], 3; bar.sync 0; @%p7 mbarrier.arrive.shared.b64 %rd0, [%b];\n\
         L: mbarrier.test_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;",
        64,
        &[ReportKind::Deadlock],
    );
    for part in ["warp 0", "warp 1", "0x400", "parity 0", "phase 0", "2 of 3 arrivals"] {
        assert!(report.message.contains(part), "{part}: {report}");
    }
}

/// One thread.
const INIT: &str = "mbarrier.init.shared.b64 [%b], 3;";

#[test]
fn counts_are_exact() {
    let pending = "mbarrier.arrive.noComplete.shared.b64 %rd0, [%b], 2; mbarrier.pending_count.b64 %r0, %rd0;\n\
        st.global.u32 [%mine], %r0;";
    assert_eq!(good(&format!("{INIT} {pending}"), 1)[0], 3);
    // Two of three leave for good: the next phase takes one arrival.
    let drops = "mbarrier.arrive_drop.shared.b64 %rd0, [%b], 2; mbarrier.arrive.shared.b64 %rd0, [%b];\n\
        mbarrier.test_wait.shared.b64 %p0, [%b], %rd0; mbarrier.arrive.shared.b64 %rd1, [%b];\n\
        mbarrier.test_wait.and.shared.b64 %p1, [%b], %rd1; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%mine], %r0;"
        .replace(".and", "");
    assert_eq!(good(&format!("{INIT} {drops}"), 1)[0], 1);
    // Bytes hold the phase open.
    let bytes = "mbarrier.arrive.expect_tx.shared.b64 %rd0, [%b], 64; mbarrier.arrive.shared.b64 %rd1, [%b], 2;\n\
        mbarrier.test_wait.shared.b64 %p0, [%b], %rd0; mbarrier.complete_tx.shared.b64 [%b], 64;\n\
        mbarrier.test_wait.shared.b64 %p1, [%b], %rd0; selp.u32 %r0, 2, 0, %p0; selp.u32 %r1, 1, 0, %p1;\n\
        add.u32 %r0, %r0, %r1; st.global.u32 [%mine], %r0;";
    assert_eq!(good(&format!("{INIT} {bytes}"), 1)[0], 1);
    good(
        &format!("{INIT} mbarrier.inval.shared.b64 [%b]; st.shared.u64 [%b], 0; {INIT}")
            .replace(&format!("0; {INIT}"), "0;"),
        1,
    );
    good(&format!("{INIT} mbarrier.inval.shared.b64 [%b]; {INIT}"), 1);
}

#[test]
fn misuse_is_reported() {
    for body in [
        "mbarrier.arrive.shared.b64 %rd0, [%b];",
        "mbarrier.init.shared.b64 [%b], 0;",
        "mbarrier.init.shared.b64 [%b], 1048576;",
        "INIT INIT",
        "INIT mbarrier.inval.shared.b64 [%b]; mbarrier.arrive.shared.b64 %rd0, [%b];",
        "INIT mbarrier.arrive.shared.b64 %rd0, [%b], 4;",
        "INIT mbarrier.arrive.shared.b64 %rd0, [%b], 0;",
        "INIT mbarrier.arrive.noComplete.shared.b64 %rd0, [%b], 3;",
        "INIT mbarrier.arrive.shared.b64 %rd0, [%b]; mbarrier.pending_count.b64 %r0, %rd0;",
        "INIT mov.u64 %rd0, 7; mbarrier.test_wait.shared.b64 %p0, [%b], %rd0;",
        "INIT mbarrier.init.shared.b64 [%b+8], 1; mbarrier.arrive.shared.b64 %rd0, [%b+8]; mbarrier.test_wait.shared.b64 %p0, [%b], %rd0;",
        "INIT mbarrier.arrive.shared.b64 %rd0, [%b], 3; mbarrier.arrive.shared.b64 %rd1, [%b], 3; mbarrier.test_wait.shared.b64 %p0, [%b], %rd0;",
        "INIT mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 1048576;",
        "INIT ld.shared.u32 %r0, [%b+4];",
        "INIT st.shared.u8 [%b+7], 1;",
        "INIT st.shared.u32 [%b], 1;",
        "INIT atom.shared.add.u32 %r0, [%b], 1;",
        "INIT cp.async.ca.shared.global [%b], [%out], 8;",
    ] {
        bad(&body.replace("INIT", INIT), 1, INVALID);
    }
    bad("mbarrier.init.shared.b64 [%b+4], 1;", 1, &[ReportKind::Misaligned]);
    bad("mbarrier.init.shared.b64 [%b+8192], 1;", 1, &[ReportKind::OutOfBounds]);
    bad(
        "INIT mbarrier.test_wait.shared.b64 %p0, [%b], %rd0;".replace("INIT", INIT).as_str(),
        1,
        &[ReportKind::Undefined],
    );
    // Taken away while another thread may still use it.
    let taken = format!("{EXCHANGE} @%p7 mbarrier.inval.shared.b64 [%b];");
    bad(&taken, 64, &[ReportKind::Race, ReportKind::Invalid]);
    good(&taken.replace("@%p7 mbarrier.inval", "bar.sync 0; @%p7 mbarrier.inval"), 64);
}

/// Copies whose landing an object counts: each thread copies its word and arrives when it is there.
const COPIES: &str = "@%p7 mbarrier.init.shared.b64 [%b], COUNT; bar.sync 0;\n\
    cp.async.ca.shared.global [%s], [%mine], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%b];\n\
    L: mbarrier.test_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;\n\
    xor.b32 %r0, %r15, 132; mov.u32 %r1, sm; add.u32 %r0, %r0, %r1; ld.shared.u32 %r2, [%r0]; bar.sync 0;\n\
    st.global.u32 [%mine], %r2;";

#[test]
fn copies_arrive_when_they_have_landed() {
    let word = |i: u32| u32::from_le_bytes(std::array::from_fn(|b| (4 * i + b as u32) as u8));
    let noinc = COPIES.replace("COUNT", "64");
    let out = good(&noinc, 64);
    assert!((0..64u32).all(|i| out[i as usize] == word(i ^ 33)));
    // Without `.noinc` the arrival counts for itself, and the thread arrives besides.
    let inc = noinc.replace("arrive.noinc", "arrive").replace("L: mb", "mbarrier.arrive.shared.b64 _, [%b]; L: mb");
    assert_eq!(good(&inc, 64), out);
    bad(&noinc.replace("@!%p0 bra L;", ""), 64, RACE);
    // The copy comes after the arrival.
    let (copy, arrive) =
        ("cp.async.ca.shared.global [%s], [%mine], 4;", "cp.async.mbarrier.arrive.noinc.shared.b64 [%b];");
    bad(&noinc.replace(&format!("{copy} {arrive}"), &format!("{arrive} {copy}")), 64, RACE);
    bad(&COPIES.replace("COUNT", "65"), 64, &[ReportKind::Deadlock]);
    bad(
        &COPIES.replace("COUNT", "63"),
        64,
        &[ReportKind::Race, ReportKind::Uninitialised, ReportKind::Invalid, ReportKind::Deadlock],
    );
    // What the object orders is the copies, not what the thread itself has written.
    let own = noinc.replace(
        "cp.async.ca.shared.global [%s], [%mine], 4;",
        "cp.async.ca.shared.global [%s], [%mine], 4; st.shared.u32 [%s+512], %t;",
    );
    good(&own, 64);
    bad(&own.replace("ld.shared.u32 %r2, [%r0];", "ld.shared.u32 %r2, [%r0+512];"), 64, RACE);
    // Waiting for all copies oneself is enough for oneself.
    good(
        "@%p7 mbarrier.init.shared.b64 [%b], 64; bar.sync 0; cp.async.ca.shared.global [%s], [%mine], 4;\n\
          cp.async.mbarrier.arrive.noinc.shared.b64 [%b]; cp.async.wait_all; ld.shared.u32 %r2, [%s];",
        64,
    );
}

#[test]
fn a_deadlock_says_who_has_come_and_who_has_gone() {
    let wait = "L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;";
    let says = |body: &str, parts: &[&str]| {
        for options in modes() {
            let report = run_with(body, 96, &options).unwrap_err();
            assert_eq!(report.kind, ReportKind::Deadlock, "{report}");
            for part in parts {
                assert!(report.message.contains(part), "no `{part}` in {report}");
            }
        }
    };
    let init = "@%p7 mbarrier.init.shared.b64 [%b], 96; bar.sync 0; setp.eq.u32 %p1, %t, 37; @%p1 ret;";
    says(
        &format!("{init} mbarrier.arrive.shared.b64 _, [%b]; {wait}"),
        &[
            "in phase 0 with 1 of 96 arrivals pending",
            "31 by lanes 0 to 4, 6 to 31 of warp 1 (`mbarrier.arrive.shared.b64` at PTX line 20)",
            "32 by warp 2 (",
            "exited: lane 5 of warp 1",
        ],
    );
    says(
        &format!("@%p7 mbarrier.init.shared.b64 [%b], 1; bar.sync 0; setp.ge.u32 %p1, %t, 32; @%p1 ret; {wait}"),
        &["nobody has arrived at the mbarrier at ", "exited: warps 1, 2"],
    );
    // In the second phase warp 0 does not come.
    let turns = format!(
        "@%p7 mbarrier.init.shared.b64 [%b], 96; bar.sync 0; mov.u32 %r1, 0; setp.lt.u32 %p2, %t, 32;\n\
         N: setp.eq.u32 %p3, %r1, 1; and.pred %p3, %p3, %p2; @!%p3 mbarrier.arrive.shared.b64 _, [%b];\n{}\n\
         add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 2; @%p4 bra N;",
        wait.replace("], 0;", "], %r1;")
    );
    says(&turns, &["in phase 1 with 32 of 96 arrivals pending", "in the phase before there came also warp 0"]);
    let named = "setp.lt.u32 %p1, %t, 64; @%p1 bra A; bar.sync 2, 64; bra E; A: bar.sync 1, 96; E:";
    says(named, &["barrier 1 has been reached by warps 0, 1", "barrier 2 has been reached by warp 2"]);
    says(
        "setp.lt.u32 %p1, %t, 64; @%p1 ret; bar.sync 1, 96;",
        &["barrier 1 has been reached by warp 2", "exited: warps 0, 1"],
    );
}

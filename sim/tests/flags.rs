//! Blocks that communicate through flags in global memory: the order that flags give, for any order of the blocks.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Order, Program, Report, ReportKind};

/// `%a` is 64 KiB of zeros, `%t` the thread, `%b` the block, `%w` the word of the block, `%p7` whether this is thread 0.
fn left(body: &str, blocks: u32, options: &Options) -> Result<Vec<u8>, Box<Report>> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<16>, %t, %b;\n.reg .b64 %rd<8>, %a, %w;\n.shared .align 16 .b8 sm[1024];\n\
         ld.param.u64 %a, [p];\nmov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\nmul.wide.u32 %w, %b, 4;\nadd.s64 %w, %a, %w;\n\
         setp.eq.u32 %p7, %t, 0;\n{body}\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let a = device.alloc(1 << 16).unwrap();
    device.upload(a, &[0; 1 << 16]).unwrap();
    let params = vec![a.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [blocks, 1, 1], block: [64, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, options).map(|counters| assert!(!counters.races_partial))?;
    device.download(a, 1 << 16)
}

fn run(body: &str, blocks: u32, options: &Options) -> Result<(), Box<Report>> {
    left(body, blocks, options).map(|_| ())
}

const ANY: &[Order] = &[Order::Forward, Order::Reverse, Order::Seeded];

/// The orders, and with `threads` the shuffled one on several host threads too.
fn ways(orders: &[Order], threads: bool) -> impl Iterator<Item = Options> {
    let threads = |order: &Order| if *order == Order::Seeded && threads { vec![1, 3] } else { vec![1] };
    let all: Vec<(Order, usize)> = orders.iter().flat_map(|o| threads(o).into_iter().map(|t| (*o, t))).collect();
    all.into_iter().map(|(order, threads)| Options { order, threads, seed: 3, fuel: 1 << 20, ..Options::default() })
}

#[track_caller]
fn good(body: &str, blocks: u32, orders: &[Order]) {
    for options in ways(orders, true) {
        run(body, blocks, &options).unwrap_or_else(|r| panic!("{options:?}: {r}\n{body}"));
    }
}

#[track_caller]
fn bad_as(body: &str, blocks: u32, orders: &[Order], kind: ReportKind) {
    bad_in(body, blocks, ways(orders, true), kind);
}

/// A race whose report is the same in every order and with every number of host threads.
#[track_caller]
fn bad_alike(body: &str, blocks: u32) {
    let mut first: Option<Report> = None;
    for threads in [1, 1, 2, 4, 4, 4] {
        for order in ANY {
            let options = Options { order: *order, threads, seed: 3, fuel: 1 << 20, ..Options::default() };
            let report = *run(body, blocks, &options).expect_err("no report");
            assert_eq!(report.kind, ReportKind::Race, "{options:?}: {report}\n{body}");
            assert!(first.as_ref().is_none_or(|f| *f == report), "{options:?}: {report}\n{}", first.unwrap());
            first = Some(report);
        }
    }
}

#[track_caller]
fn bad_in(body: &str, blocks: u32, ways: impl Iterator<Item = Options>, kind: ReportKind) {
    for options in ways {
        match run(body, blocks, &options) {
            Ok(()) => panic!("{options:?}: no report: {body}"),
            Err(report) => assert_eq!(report.kind, kind, "{options:?}: {report}\n{body}"),
        }
    }
}

#[track_caller]
fn bad(body: &str, blocks: u32, orders: &[Order]) {
    bad_as(body, blocks, orders, ReportKind::Race);
}

/// Every block stores a word; the last to take a ticket at `[%a+4096]` reads all of them and sets the tickets back.
const LAST: &str = "@!%p7 bra E; st.global.u32 [%w], %b; RELEASE atom.global.inc.u32 %r0, [%a+4096], 8; setp.ne.u32 %p0, %r0, 3;\n\
    @%p0 bra E; ACQUIRE ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a]; st.global.u32 [%a+4096], 0; E:";

fn last(release: &str, acquire: &str) -> String {
    LAST.replace("RELEASE", release).replace("ACQUIRE", acquire)
}

#[test]
fn the_last_block_knows_all_others() {
    good(&last("membar.gl;", "membar.gl;"), 4, ANY);
    good(&last("", "").replace("atom.global", "atom.acq_rel.gpu.global"), 4, ANY);
    for (release, acquire) in [("", ""), ("membar.gl;", ""), ("", "membar.gl;"), ("membar.gl;", "membar.cta;")] {
        bad(&last(release, acquire), 4, ANY);
    }
    bad(&last("", "").replace("atom.global", "atom.acq_rel.cta.global"), 4, ANY);
    // All threads fence, meet, and one of them takes the ticket; all meet again and fence.
    let whole = "mul.wide.u32 %rd0, %t, 4; mul.wide.u32 %rd1, %b, 256; add.s64 %rd1, %rd1, %rd0; add.s64 %rd1, %a, %rd1;\n\
        add.s64 %rd0, %a, %rd0; st.global.u32 [%rd1], %t; FIRST bar.sync 0; mov.u32 %r0, 0; @!%p7 bra M; atom.global.inc.u32 %r0, [%a+4096], 8;\n\
        M: setp.eq.u32 %p0, %r0, 3; bar.red.or.pred %p1, 0, %p0; @!%p1 bra E; SECOND ld.global.u32 %r1, [%rd0]; ld.global.u32 %r2, [%rd0+256];\n\
        ld.global.u32 %r3, [%rd0+512]; ld.global.u32 %r4, [%rd0+768]; E:";
    good(&whole.replace("FIRST", "membar.gl;").replace("SECOND", "membar.gl;"), 4, ANY);
    bad(&whole.replace("FIRST", "membar.gl;").replace("SECOND", ""), 4, ANY);
    bad(&whole.replace("FIRST", "").replace("SECOND", "membar.gl;"), 4, ANY);
    // The warp that takes the ticket has not met the other.
    bad(&whole.replace("FIRST bar.sync 0;", "membar.gl;").replace("SECOND", "membar.gl;"), 4, ANY);
}

#[test]
fn flags_order_only_who_uses_them() {
    // Both fence and update something, but not the same.
    let body = "@!%p7 bra E; setp.ne.u32 %p0, %b, 0; @%p0 bra R; st.global.u32 [%a], 7; membar.gl; red.global.add.u32 [%a+4096], 1; bra E;\n\
        R: atom.global.add.u32 %r0, [%a+FLAG], 0; membar.gl; ld.global.u32 %r1, [%a]; E:";
    good(&body.replace("FLAG", "4096"), 2, &[Order::Forward]);
    bad(&body.replace("FLAG", "8192"), 2, ANY);
    // A flag tells nothing of what comes after it.
    let after = "@!%p7 bra E; setp.ne.u32 %p0, %b, 0; @%p0 bra R; membar.gl; red.global.add.u32 [%a+4096], 1; st.global.u32 [%a], 7; bra E;\n\
        R: atom.global.add.u32 %r0, [%a+4096], 0; membar.gl; ld.global.u32 %r1, [%a]; E:";
    bad(after, 2, ANY);
    // Nor does an old fence tell of what comes after that, however often blocks have spoken.
    let often = "@!%p7 bra E; mov.u32 %r2, 0; L: membar.gl; atom.global.add.u32 %r0, [%a+4096], 1; add.u32 %r2, %r2, 1;\n\
        setp.lt.u32 %p0, %r2, 400; @%p0 bra L; st.global.u32 [%a], %b; atom.global.add.u32 %r0, [%a+4096], 1; E:";
    bad(often, 3, ANY);
    good(&often.replace("[%a], %b", "[%w], %b"), 3, ANY);
}

#[test]
fn knowledge_is_handed_on() {
    // Each block waits for the previous block's flag, and reads what the first block wrote.
    let chain = "@!%p7 bra E; setp.eq.u32 %p0, %b, 0; @%p0 bra F; L: ld.acquire.gpu.global.u32 %r0, [%w+4092]; setp.eq.u32 %p1, %r0, 0;\n\
        @%p1 bra L; ld.global.u32 %r1, [%a]; bra G; F: st.global.u32 [%a], 7; G: st.release.gpu.global.u32 [%w+4096], 1; E:";
    good(chain, 5, ANY);
    bad(&chain.replace("st.release.gpu", "st.relaxed.gpu"), 5, ANY);
    bad(&chain.replace("ld.acquire.gpu", "ld.relaxed.gpu"), 5, ANY);
    bad(&chain.replace("ld.acquire.gpu", "ld.acquire.cta"), 5, ANY);
    // Look-back: a value and then its flag, volatile, with fences.
    let back = "@!%p7 bra E; mov.u32 %r2, 0; setp.eq.u32 %p0, %b, 0; @%p0 bra F; L: ld.volatile.global.u32 %r0, [%w+4092];\n\
        setp.eq.u32 %p1, %r0, 0; @%p1 bra L; membar.gl; ld.global.u32 %r2, [%w+-4]; F: add.u32 %r2, %r2, 1; st.global.u32 [%w], %r2;\n\
        membar.gl; st.volatile.global.u32 [%w+4096], 1; E:";
    good(back, 5, ANY);
    for (at, _) in back.match_indices("membar.gl;") {
        bad(&format!("{}{}", &back[..at], &back[at + 10..]), 5, ANY);
    }
    // A semaphore: blocks add to one word in turn; an acquiring load with a barrier after it, a barrier and a releasing add.
    let turn = "W: ld.global.acquire.gpu.b32 %r0, [%a+4096]; setp.ne.u32 %p1, %r0, %b; bar.red.or.pred %p2, 0, %p1; @%p2 bra W;\n\
        mul.wide.u32 %rd0, %t, 4; add.s64 %rd0, %a, %rd0; ld.global.u32 %r1, [%rd0]; add.u32 %r1, %r1, 1; st.global.u32 [%rd0], %r1;\n\
        bar.sync 0; @%p7 red.release.gpu.global.add.s32 [%a+4096], 1;"
        .replace("ld.global.acquire.gpu", "ld.acquire.gpu.global");
    good(&turn, 4, ANY);
    bad(&turn.replace("bar.sync 0; @%p7", "@%p7"), 4, ANY);
    bad(&turn.replace("red.release.gpu", "red.relaxed.gpu"), 4, ANY);
    let older = turn
        .replace("ld.acquire.gpu.global", "ld.global.cg")
        .replace("@%p7 red.release.gpu", "membar.gl; @%p7 red.relaxed.gpu");
    good(&older, 4, ANY);
    // A lock.
    let lock = "@!%p7 bra E; L: atom.global.cas.b32 %r0, [%a+4096], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra L; membar.gl;\n\
        ld.global.u32 %r1, [%a]; add.u32 %r1, %r1, 1; st.global.u32 [%a], %r1; membar.gl; atom.global.exch.b32 %r0, [%a+4096], 0; E:";
    good(lock, 6, ANY);
    for (at, _) in lock.match_indices("membar.gl;") {
        bad(&format!("{}{}", &lock[..at], &lock[at + 10..]), 6, ANY);
    }
}

#[test]
fn blocks_that_wait_for_all_meet() {
    // A barrier of the grid, as cooperative groups have it; every block needs a thread of the host.
    let grid = "st.global.u32 [%w], %b; bar.sync 0; @!%p7 bra M; membar.gl; atom.global.add.u32 %r0, [%a+4096], 1;\n\
        L: ld.volatile.global.u32 %r0, [%a+4096]; setp.lt.u32 %p0, %r0, 4; @%p0 bra L; membar.gl; M: bar.sync 0;\n\
        @%p7 ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a];"
        .replacen("st.global", "@%p7 st.global", 1);
    let options = Options { threads: 4, ..Options::default() };
    run(&grid, 4, &options).unwrap_or_else(|r| panic!("{r}"));
    for (at, _) in grid.match_indices("membar.gl;") {
        let kind =
            run(&format!("{}{}", &grid[..at], &grid[at + 10..]), 4, &options).expect_err("a fence is missing").kind;
        assert_eq!(kind, ReportKind::Race);
    }
}

#[test]
fn atomics_hide_no_other_access_of_their_block() {
    bad("@!%p7 bra E; st.global.u32 [%a], %b; atom.global.add.u32 %r0, [%a], 1; E:", 3, ANY);
    bad("@%p7 st.global.u32 [%a], 0; bar.sync 0; atom.global.add.u32 %r0, [%a], 1;", 3, ANY);
    bad("@!%p7 bra E; ld.global.u32 %r1, [%a]; st.volatile.global.u32 [%a], %r1; E:", 3, ANY);
    bad(
        "@!%p7 bra E; setp.eq.u32 %p0, %b, 1; @%p0 st.global.u32 [%a], 0; atom.global.add.u32 %r0, [%a], 1; E:",
        3,
        ANY,
    );
    // Within one warp, with nothing between.
    bad("@%p7 st.global.u32 [%a], 0; atom.global.add.u32 %r0, [%a], 1;", 1, ANY);
    // Who sets a counter back before the others have come.
    bad_alike("@!%p7 bra E; atom.global.add.u32 %r0, [%a], 1; st.global.u32 [%a], 0; E:", 3);
    bad_alike("@!%p7 bra E; atom.global.add.u32 %r0, [%a], 1; ld.global.u32 %r1, [%a]; E:", 3);
    // The scope of an atomic must have the others in it.
    good("red.relaxed.gpu.global.add.u32 [%a], 1;", 3, ANY);
    bad("red.relaxed.cta.global.add.u32 [%a], 1;", 3, ANY);
    good("red.relaxed.cta.global.add.u32 [%w], 1;", 3, ANY);
}

#[test]
fn strong_accesses_are_ordered_by_their_moments() {
    // The block that sets the counter back has not the last ticket: another adds to it afterwards. Much happens in between, so that
    // blocks run at the same time where there are threads for them.
    let early = "@!%p7 bra E; atom.global.inc.u32 %r0, [%a+4096], 99; mov.u32 %r2, 0; W: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 500;\n\
        @%p1 bra W; setp.ne.u32 %p0, %r0, TICKET; @%p0 bra E; ACCESS E:";
    let early = |ticket: &str, access: &str| early.replace("TICKET", ticket).replace("ACCESS", access);
    let every = |blocks: u32, body: &str, wrong: bool| {
        for threads in [1, 2, 3, 8] {
            for order in ANY {
                let options = Options { order: *order, threads, seed: 3, fuel: 1 << 20, ..Options::default() };
                let kind = run(body, blocks, &options).err().map(|report| report.kind);
                assert_eq!(kind, wrong.then_some(ReportKind::Race), "{options:?}: {body}");
            }
        }
    };
    for access in ["st.global.u32 [%a+4096], 0;", "ld.global.u32 %r1, [%a+4096];"] {
        every(8, &early("7", access), false);
        every(8, &early("6", access), true);
        every(8, &early("3", access), true);
        every(8, &early("0", access), true);
        // What was written before nothing was read is ordered by nothing.
        every(8, &early("7", access).replace("atom.global.inc", "st.global.u32 [%a+4096], 0; atom.global.inc"), true);
    }
    // It has the last ticket of those before, then all take another one.
    let again = "@!%p7 bra E; atom.global.add.u32 %r0, [%a+4096], 1; setp.ne.u32 %p0, %r0, 7; @%p0 bra E; st.global.u32 [%a+4096], 0;\n\
        atom.global.add.u32 %r0, [%a+4096], 1; st.global.u32 [%a+4096], 0; E:";
    every(8, again, false);
    every(9, &again.replace("%r0, 7;", "%r0, 6;"), true);
    // `red` returns nothing to its thread. Without fences, the last ticket of another counter orders nothing here.
    let sum = "@!%p7 bra E; red.global.add.u32 [%a], 3; FENCE atom.global.add.u32 %r0, [%a+4096], 1; setp.ne.u32 %p0, %r0, 3;\n\
        @%p0 bra E; FENCE ld.global.u32 %r1, [%a]; E:";
    every(4, &sum.replace("FENCE", "fence.acq_rel.gpu;"), false);
    every(4, &sum.replace("FENCE", ""), true);
    // A strong store sees nothing.
    let blind = "@!%p7 bra E; setp.eq.u32 %p0, %b, 1; @%p0 st.relaxed.gpu.global.u32 [%a], 1; @%p0 st.global.u32 [%a], 2;\n\
        @!%p0 st.relaxed.gpu.global.u32 [%a], 3; E:";
    bad_alike(blind, 3);
}

#[test]
fn constants_are_not_written() {
    let one =
        "setp.eq.u32 %p0, %t, 0; @%p0 ld.global.nc.u32 %r0, [%a+64]; bar.sync 0; @%p0 st.global.u32 [%a+PLACE], 7;";
    good(&one.replace("PLACE", "68"), 1, ANY);
    bad_as(&one.replace("PLACE", "64"), 1, ANY, ReportKind::Invalid);
    let other = "@%p7 st.global.u32 [%a+64], 7; bar.sync 0; ld.global.nc.u32 %r0, [%a+PLACE];";
    good(&other.replace("PLACE", "68"), 1, ANY);
    bad_as(&other.replace("PLACE", "64"), 1, ANY, ReportKind::Invalid);
    // Another block, even one that has published it.
    let blocks = last("membar.gl;", "membar.gl;");
    bad_as(
        &blocks
            .replace("ld.global.v4", "ld.global.nc.v4")
            .replace("[%w], %b", "[%w+64], %b")
            .replace("}, [%a]", "}, [%a+64]"),
        4,
        ANY,
        ReportKind::Invalid,
    );
    good("ld.global.nc.u32 %r0, [%a]; @%p7 st.global.u32 [%w+64], %r0;", 4, ANY);
}

/// What blocks leave that take tickets, exchange words, see flags or sum floats depends on their order, never on the host.
#[test]
fn the_host_decides_nothing() {
    let ticket = "@%p7 atom.global.add.u32 %r0, [%a], 1;\n@%p7 st.global.u32 [%w+64], %r0;";
    let exchange = "@%p7 atom.global.exch.b32 %r0, [%a], %b;\n@%p7 st.global.u32 [%w+64], %r0;";
    let floats =
        "cvt.rn.f32.u32 %r0, %b;\nrcp.rn.f32 %r0, %r0;\nmin.f32 %r0, %r0, 0f3F400000;\nred.global.add.f32 [%a], %r0;";
    let last = "st.relaxed.gpu.global.u32 [%a], %b;";
    let seen = "@%p7 st.relaxed.gpu.global.u32 [%a], %b;\n@%p7 ld.relaxed.gpu.global.u32 %r0, [%a+0];\n\
                @%p7 st.global.u32 [%w+64], %r0;";
    for body in [ticket, exchange, floats, last, seen] {
        for order in ANY {
            let of = |threads| left(body, 300, &Options { order: *order, threads, seed: 3, ..Options::default() });
            let one = of(1).unwrap_or_else(|r| panic!("{r}\n{body}"));
            for threads in [2, 4, 4, 4] {
                assert!(of(threads).unwrap() == one, "{order:?} {threads}\n{body}");
            }
        }
    }
}

#[test]
fn one_of_the_lanes_that_met_publishes_what_all_of_them_did() {
    // The odd lanes of a warp store and meet, and one of them arrives; the even lanes wait for that. So `cuda::barrier` counts before sm_80.
    let parted = "mov.u32 %r2, sm; @%p7 st.shared.u32 [sm+512], 0; bar.sync 0; setp.gt.u32 %p0, %t, 31; @%p0 bra E; and.b32 %r0, %t, 1;\n\
        setp.eq.u32 %p1, %r0, 0; mul.lo.u32 %r1, %t, 4; add.u32 %r2, %r2, %r1; @%p1 bra R; st.shared.u32 [%r2], %t; bar.warp.sync 0xAAAAAAAA;\n\
        setp.ne.u32 %p2, %t, 1; @%p2 bra E; atom.add.acq_rel.cta.shared.u32 %r4, [sm+512], 1; bra E;\n\
        R: ld.acquire.cta.shared.u32 %r5, [sm+512]; setp.eq.u32 %p3, %r5, 0; @%p3 bra R; ld.shared.u32 %r6, [sm+124]; E:";
    good(parted, 1, ANY);
    bad(&parted.replace("bar.warp.sync 0xAAAAAAAA;", ""), 1, ANY);
    bad(&parted.replace("atom.add.acq_rel", "atom.add.relaxed"), 1, ANY);
    bad(&parted.replace("ld.acquire", "ld.relaxed"), 1, ANY);
}

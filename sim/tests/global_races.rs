//! Races on global memory within a block, as on shared memory, and between blocks, for any order of the blocks.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Counters, Device, Landing, Launch, Options, Order, Program, Report, ReportKind};

/// `%a` is 4096 bytes of zeros, `%t` the thread, `%b` the block, `%n` threads of a block, `%w` the thread's word in the grid.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .b32 flag;\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h;\n.reg .b32 %r<16>, %t, %b, %n;\n.reg .b64 %rd<8>, %a, %w;\n\
         .shared .align 16 .b8 sm[1024];\nld.param.u64 %a, [p];\nmov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\n\
         mov.u32 %n, %ntid.x;\nmad.lo.u32 %r15, %b, %n, %t;\nmul.wide.u32 %w, %r15, 4;\nadd.s64 %w, %a, %w;\n\
         setp.eq.u32 %p7, %t, 0;\n{body}\nret;\n}}\n"
    )
}

fn run(body: &str, blocks: u32, options: &Options) -> Result<(Vec<u8>, Counters), Box<Report>> {
    let text = kernel(body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let a = device.alloc(4096).unwrap();
    device.upload(a, &[0; 4096]).unwrap();
    let params = vec![a.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [blocks, 1, 1], block: [64, 1, 1], dynamic_smem: 0, params };
    let counters = device.run(&program, &launch, options)?;
    Ok((device.download(a, 4096).unwrap(), counters))
}

fn modes() -> impl Iterator<Item = Options> {
    [(Order::Forward, 1), (Order::Reverse, 1), (Order::Seeded, 1), (Order::Forward, 2), (Order::Seeded, 3)]
        .into_iter()
        .enumerate()
        .map(|(i, (order, threads))| Options { order, threads, seed: i as u64, fuel: 100_000, ..Options::default() })
}

#[track_caller]
fn good(body: &str, blocks: u32) {
    for options in modes() {
        run(body, blocks, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
    }
}

/// The report of a race between blocks, the same in every order.
#[track_caller]
fn bad(body: &str, blocks: u32) -> Report {
    let mut first: Option<Report> = None;
    for options in modes() {
        // The schedule within a block is the same everywhere.
        let options = Options { seed: 1, ..options };
        let report = *run(body, blocks, &options).map(|_| ()).expect_err("no report");
        assert_eq!(report.kind, ReportKind::Race, "{options:?}: {report}");
        assert!(first.as_ref().is_none_or(|f| *f == report), "{options:?}: {report}\n{}", first.unwrap());
        first = Some(report);
    }
    first.unwrap()
}

/// Each thread stores its word and loads that of the other warp.
const EXCHANGE: &str = "st.global.u32 [%w], %t; bar.sync 0; xor.b32 %r0, %r15, 32; mul.wide.u32 %rd0, %r0, 4;\n\
    add.s64 %rd0, %a, %rd0; ld.global.u32 %r1, [%rd0]; bar.sync 0; st.global.u32 [%w], %r1;";

#[test]
fn barriers_order_global_memory_within_a_block() {
    good(EXCHANGE, 2);
    for (at, _) in EXCHANGE.match_indices("bar.sync 0;") {
        let mutant = format!("{}{}", &EXCHANGE[..at], &EXCHANGE[at + 11..]);
        let report = bad(&mutant, 1);
        assert!(report.other.is_some() && report.message.contains("barrier"), "{report}");
    }
    // Lanes of a warp, halves of a word, generic addresses.
    let lanes = EXCHANGE.replace("32;", "1;").replace("bar.sync 0;", "bar.warp.sync -1;");
    good(&lanes, 1);
    bad(&lanes.replacen("bar.warp.sync -1;", "", 1), 1);
    let halves = "mul.wide.u32 %rd0, %t, 2; add.s64 %rd0, %a, %rd0; cvt.u16.u32 %h, %t; st.u16 [%rd0], %h;";
    good(halves, 1);
    bad(&format!("{halves} ld.u32 %r0, [%a];"), 1);
    good(&format!("{halves} bar.sync 0; ld.u32 %r0, [%a];"), 1);
}

#[test]
fn flags_order_threads_of_a_block() {
    let flag = "setp.lt.u32 %p0, %t, 32; @!%p0 bra R; st.global.u32 [%w], 7; bar.warp.sync -1; membar.gl;\n\
        @%p7 st.volatile.global.u32 [flag], 1; ret;\n\
        R: ld.volatile.global.u32 %r0, [flag]; setp.eq.u32 %p1, %r0, 0; @%p1 bra R; membar.gl; ld.global.u32 %r1, [%w+-128];";
    good(flag, 1);
    bad(&flag.replace("@%p1 bra R;", ""), 1);
    bad(&flag.replace("bar.warp.sync -1;", ""), 1);
    bad(&flag.replace("st.volatile.global.u32 [flag]", "st.global.u32 [flag]"), 1);
}

#[test]
fn copies_read_their_source_until_they_are_waited_for() {
    let body = "shl.b32 %r0, %t, 2; mov.u32 %r1, sm; add.u32 %r1, %r1, %r0; cp.async.ca.shared.global [%r1], [%w], 4;\n\
        cp.async.wait_all; st.global.u32 [%w], 1;";
    for landing in Landing::ALL {
        let options = Options { landing, ..Options::default() };
        run(body, 1, &options).unwrap_or_else(|r| panic!("{landing:?}: {r}"));
        let early = body.replace("cp.async.wait_all;", "");
        let report = run(&early, 1, &options).map(|_| ()).expect_err("the source is overwritten");
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        // Another thread needs a barrier after the wait.
        let other = body.replace("st.global.u32 [%w], 1;", "bar.sync 0; xor.b32 %r2, %r0, 128; mul.wide.u32 %rd1, %r2, 1; add.s64 %rd1, %a, %rd1; st.global.u32 [%rd1], 1;");
        run(&other, 1, &options).unwrap_or_else(|r| panic!("{landing:?}: {r}"));
        let report =
            run(&other.replace("bar.sync 0;", ""), 1, &options).map(|_| ()).expect_err("another thread's source");
        assert_eq!(report.kind, ReportKind::Race, "{report}");
    }
}

#[test]
fn blocks_may_not_meet() {
    // Words of their own, and words that all read.
    good("st.global.u32 [%w], 1; ld.global.u32 %r0, [%w]; ld.global.u32 %r1, [%a+4000];", 5);
    let report = bad("@%p7 st.global.u32 [%a], %b;", 3);
    assert_eq!((report.block, report.address.is_some()), ([1, 0, 0], true));
    assert!(report.message.contains("block (0, 0, 0)") && report.other.is_some(), "{report}");
    bad("ld.global.u32 %r0, [%w]; ld.global.u32 %r1, [%w+256]; st.global.u32 [%w], 1;", 3);
    // One reads what another writes, whichever runs first.
    let one = |writer: u32, reader: u32| {
        format!(
            "setp.eq.and.u32 %p0, %b, {writer}, %p7; setp.eq.and.u32 %p1, %b, {reader}, %p7; @%p0 st.global.u32 [%a+8], 1;\n\
             @%p1 ld.global.u32 %r0, [%a+8];"
        )
    };
    for (writer, reader) in [(0, 2), (2, 0)] {
        let report = bad(&one(writer, reader), 3);
        assert_eq!(report.block, [2, 0, 0], "{report}");
        assert_eq!(report.message.starts_with("this write"), writer == 2, "{report}");
    }
    // Halves of a word are apart, bytes of a half are not.
    let halves = "mul.wide.u32 %rd0, %b, STRIDE; add.s64 %rd0, %a, %rd0; mov.u16 %h, 1; @%p7 st.global.u16 [%rd0], %h;";
    good(&halves.replace("STRIDE", "2"), 4);
    bad(&format!("{} @%p7 st.global.u8 [%a+3], %h;", halves.replace("STRIDE", "2")), 2);
    // A whole word of one block against a byte of another.
    bad(
        "setp.eq.u32 %p0, %b, 0; @%p0 st.global.v4.u32 [%w], {%t, %t, %t, %t};"
            .replace("[%w]", "[%a]")
            .replace("@%p0 st", "setp.eq.and.u32 %p1, %b, 0, %p7; mov.u16 %h, 3; @%p1 st")
            .as_str()
            .replace(
                "{%t, %t, %t, %t};",
                "{%t, %t, %t, %t}; setp.eq.and.u32 %p2, %b, 1, %p7; @%p2 st.global.u8 [%a+7], %h;",
            )
            .as_str(),
        2,
    );
}

#[test]
fn atomics_do_not_race_with_each_other() {
    good("red.global.add.u32 [%a], 1; atom.global.max.u32 %r0, [%a+4], %t;", 4);
    bad("red.global.add.u32 [%a], 1; setp.eq.and.u32 %p0, %b, 2, %p7; @%p0 ld.global.u32 %r0, [%a];", 4);
    bad("setp.eq.and.u32 %p0, %b, 0, %p7; @%p0 st.global.u32 [%a], 0; red.global.add.u32 [%a], 1;", 4);
}

/// Every block stores a word; the last to take a ticket reads all of them.
const LAST: &str = "@!%p7 bra E; mul.wide.u32 %rd0, %b, 4; add.s64 %rd1, %a, %rd0; st.global.u32 [%rd1], %b; membar.gl;\n\
    atom.global.inc.u32 %r0, [flag], 3; setp.ne.u32 %p0, %r0, 3; @%p0 bra E; membar.gl;\n\
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a]; add.u32 %r1, %r1, %r2; add.u32 %r3, %r3, %r4; add.u32 %r1, %r1, %r3;\n\
    st.global.u32 [%a+64], %r1; E:";

#[test]
fn tickets_order_blocks() {
    for options in modes() {
        let (out, _) = run(LAST, 4, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
        assert_eq!(out[64], 6);
    }
    // The ticket orders nothing if a fence is missing, or if fences only reach the block. It does not order later
    // accesses either.
    let (first, second) = (LAST.find("membar.gl;").unwrap(), LAST.rfind("membar.gl;").unwrap());
    for mutant in [
        LAST.replace("membar.gl;", ""),
        format!("{}{}", &LAST[..first], &LAST[first + 10..]),
        format!("{}{}", &LAST[..second], &LAST[second + 10..]),
        LAST.replacen("membar.gl;", "membar.cta;", 1),
        format!("{}membar.cta;{}", &LAST[..second], &LAST[second + 10..]),
        LAST.replace("setp.ne.u32 %p0, %r0, 3;", "st.global.u32 [%rd1], %b; setp.ne.u32 %p0, %r0, 3;"),
    ] {
        for options in modes() {
            let report = run(&mutant, 4, &options).map(|_| ()).expect_err("not ordered");
            assert_eq!(report.kind, ReportKind::Race, "{report}");
        }
    }
    good(&LAST.replace("membar.gl;", "").replace("atom.global", "atom.acq_rel.gpu.global"), 4);
    good(&LAST.replace("membar.gl;", "fence.acq_rel.gpu;"), 4);
}

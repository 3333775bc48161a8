//! Blocks that wait for other blocks of their launch: in every order, with every seed and number of host threads the results, the
//! counts and the reports are the same.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Counters, Device, Landing, Launch, Options, Order, Program, Report, ReportKind};

const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Seeded];

/// Orders, seeds and host threads.
fn ways() -> impl Iterator<Item = Options> {
    let all = ORDERS.into_iter().flat_map(|order| [(order, 0, 1), (order, 1, 3), (order, 7, 1)]);
    all.map(|(order, seed, threads)| Options { order, seed, threads, fuel: 1 << 20, ..Options::default() })
}

/// A kernel: its text, blocks and threads of a block.
struct Kernel {
    text: String,
    blocks: u32,
    threads: u32,
    smem: u32,
}

const HEAD: &str = ".address_size 64\n.file 1 \"fixup.tile\"\n.visible .entry k(.param .u64 p)\n{\n\
    .reg .pred %p<8>;\n.reg .b32 %r<16>, %t, %b;\n.reg .b64 %rd<12>, %a;\n.shared .align 128 .b8 sm[1024];\n\
    ld.param.u64 %a, [p];\nmov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\n";

impl Kernel {
    fn new(target: &str, body: &str, blocks: u32, threads: u32) -> Kernel {
        let version = if target == "sm_90a" { "8.0" } else { "6.4" };
        Kernel {
            text: format!(".version {version}\n.target {target}\n{HEAD}{body}\nret;\n}}\n"),
            blocks,
            threads,
            smem: 0,
        }
    }

    fn without(&self, line: &str) -> Kernel {
        self.with(line, "")
    }

    #[track_caller]
    fn with(&self, from: &str, to: &str) -> Kernel {
        assert_eq!(self.text.matches(from).count(), 1, "{from}");
        Kernel { text: self.text.replace(from, to), ..*self }
    }

    /// Launches the kernel several times on the same memory, whose first `zeros` bytes are zero.
    fn launch(&self, times: usize, zeros: usize, options: &Options) -> Result<(Vec<u8>, Counters), Box<Report>> {
        let program = Program::parse(&self.text).unwrap_or_else(|e| panic!("{e}\n{}", self.text));
        let mut device = Device::new();
        let a = device.alloc(1 << 16).unwrap();
        device.upload(a, &vec![0; zeros]).unwrap();
        let params = vec![a.to_le_bytes().to_vec()];
        let grid = [self.blocks, 1, 1];
        let launch = Launch { entry: "k".into(), grid, block: [self.threads, 1, 1], dynamic_smem: self.smem, params };
        let mut last = Counters::default();
        for _ in 0..times {
            last = device.run(&program, &launch, options)?;
            assert!(!last.races_partial);
        }
        Ok((device.download(a, 4096).unwrap(), last))
    }

    /// It ends well, leaves the same everywhere, and counts the same.
    #[track_caller]
    fn good(&self) -> (Vec<u8>, Counters) {
        let mut first = None;
        for options in ways() {
            let got = self.launch(2, 4096, &options).unwrap_or_else(|r| panic!("{options:?}: {r}\n{}", self.text));
            assert!(first.as_ref().is_none_or(|f| *f == got), "{options:?}: another result\n{}", self.text);
            first = Some(got);
        }
        first.unwrap()
    }

    /// A race for any contents of memory.
    #[track_caller]
    fn races(&self) {
        for options in ways() {
            for zeros in [4096, 1 << 16] {
                match self.launch(1, zeros, &options).map(|_| ()) {
                    Ok(()) => panic!("{options:?}: no report\n{}", self.text),
                    // A read of memory that is not written yet is also too early.
                    Err(r) if zeros == 4096 && r.kind == ReportKind::Uninitialised => {}
                    Err(r) => assert_eq!(r.kind, ReportKind::Race, "{options:?}: {r}\n{}", self.text),
                }
            }
        }
    }

    /// The same report everywhere.
    #[track_caller]
    fn report(&self) -> Report {
        let mut first: Option<Report> = None;
        for options in ways() {
            let report = *self.launch(1, 1 << 16, &options).map(|_| ()).expect_err("no report");
            assert!(first.as_ref().is_none_or(|f| *f == report), "{options:?}: {report}\n{}", first.unwrap());
            first = Some(report);
        }
        first.unwrap()
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Tiles of three blocks each: two store partial sums, one, at place OWNER of the three, adds them to its own. Flags are at `%a`, one for
/// each block, results after 1 KiB, partial sums after 4.
const FIXUP: &str = "
rem.u32 %r0, %b, 3; div.u32 %r1, %b, 3;
mul.wide.u32 %rd0, %b, 4; add.s64 %rd0, %a, %rd0;
mul.wide.u32 %rd1, %t, 4; add.s64 %rd1, %a, %rd1;
mul.wide.u32 %rd2, %b, 512; add.s64 %rd2, %rd1, %rd2;
mad.lo.u32 %r2, %b, 1000, %t;
setp.eq.u32 %p7, %t, 0;
setp.eq.u32 %p0, %r0, OWNER;
@%p0 bra OWN;
@EARLY st.release.gpu.global.u32 [%rd0], 1;
st.global.u32 [%rd2+4096], %r2;
bar.sync 1, 64;
@%p7 st.release.gpu.global.u32 [%rd0], 1;
bra DONE;
OWN: mov.u32 %r3, 0; mul.wide.u32 %rd3, %r1, 12; add.s64 %rd3, %a, %rd3; mul.wide.u32 %rd4, %r1, 1536; add.s64 %rd4, %rd1, %rd4;
NEXT: setp.eq.u32 %p1, %r3, OWNER;
@%p1 bra SKIP;
@!%p7 bra READ;
.loc 1 17 0
LOOK: ld.acquire.gpu.global.u32 %r4, [%rd3];
setp.eq.u32 %p2, %r4, 0;
@%p2 bra LOOK;
st.relaxed.gpu.global.u32 [%rd3], 0;
READ: bar.sync 2, 64;
ld.global.u32 %r5, [%rd4+4096];
add.u32 %r2, %r2, %r5;
SKIP: add.s64 %rd3, %rd3, 4; add.s64 %rd4, %rd4, 512; add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 3;
@%p3 bra NEXT;
mul.wide.u32 %rd5, %r1, 256; add.s64 %rd5, %rd1, %rd5;
st.global.u32 [%rd5+1024], %r2;
DONE:";

fn fixup(target: &str, owner: u32, tiles: u32) -> Kernel {
    let body = FIXUP.replace("OWNER", &owner.to_string()).replace("@EARLY st.release.gpu.global.u32 [%rd0], 1;\n", "");
    Kernel::new(target, &body, 3 * tiles, 64)
}

#[test]
fn partial_sums_are_added_in_every_order() {
    for target in ["sm_70", "sm_90a"] {
        for owner in 0..3 {
            let (memory, counters) = fixup(target, owner, 5).good();
            let out = words(&memory);
            for tile in 0..5 {
                for t in 0..64 {
                    let want = 3 * t + 1000 * (9 * tile + 3);
                    assert_eq!(out[(256 + 64 * tile + t) as usize], want, "tile {tile}, thread {t}, owner {owner}");
                }
            }
            assert!(out[..15].iter().all(|flag| *flag == 0), "the next launch finds the flags as the first did");
            // Who looks in vain does not count.
            assert_eq!(counters.sum("ld.acquire").executed, 10);
        }
    }
}

#[test]
fn every_part_of_the_protocol_is_needed() {
    for target in ["sm_70", "sm_90a"] {
        for owner in [0, 2] {
            let right = fixup(target, owner, 2);
            right.with("@%p7 st.release.gpu", "@%p7 st.relaxed.gpu").races();
            right.with("@%p7 st.release.gpu", "@%p7 st.release.cta").races();
            right.with("@%p7 st.release.gpu.global.u32", "@%p7 st.global.u32").races();
            right.with("ld.acquire.gpu", "ld.relaxed.gpu").races();
            right.with("ld.acquire.gpu", "ld.acquire.cta").races();
            right.with("ld.acquire.gpu.global.u32", "ld.global.u32").races();
            right.without("bar.sync 1, 64;").races();
            right.without("bar.sync 2, 64;").races();
            right
                .without("LOOK: ld.acquire.gpu.global.u32 %r4, [%rd3];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra LOOK;")
                .races();
            // Who looks once and does not wait is lucky in some orders.
            let hasty = right.without("@%p2 bra LOOK;");
            let verdict = |order| {
                let options = Options { order, ..Options::default() };
                hasty.launch(1, 1 << 16, &options).map(|_| ()).map_err(|r| r.kind)
            };
            let early = if owner == 0 { Order::Forward } else { Order::Reverse };
            assert_eq!(verdict(early), Err(ReportKind::Race));
            right
                .without("@%p7 st.release.gpu.global.u32 [%rd0], 1;\n")
                .with(
                    "st.global.u32 [%rd2+4096]",
                    "@%p7 st.release.gpu.global.u32 [%rd0], 1;\nst.global.u32 [%rd2+4096]",
                )
                .races();
            // The reset may be anything that comes after the look, and nothing that comes before.
            right.with("st.relaxed.gpu.global.u32 [%rd3], 0;", "st.global.u32 [%rd3], 0;").good();
        }
    }
}

#[test]
fn nobody_waits_for_ever_without_a_report() {
    for owner in [0, 2] {
        let report = fixup("sm_90a", owner, 2).without("@%p7 st.release.gpu.global.u32 [%rd0], 1;").report();
        assert_eq!(report.kind, ReportKind::Deadlock, "{report}");
        let place = report.place.clone().unwrap();
        let first = if owner == 0 { 4 } else { 0 };
        assert_eq!((report.block, place.thread), ([owner, 0, 0], [0, 0, 0]), "{report}");
        assert_eq!(report.address.unwrap() & 0xFF, first, "{report}");
        assert_eq!(place.source, Some(("fixup.tile".to_owned(), 17)), "{report}");
        assert_eq!(place.instruction, "ld.acquire.gpu.global.u32");
        let text = report.to_string();
        let line = format!("PTX line {} (fixup.tile:17)", place.ptx_line);
        for part in ["nobody sets the flag", "which holds 0", &line, "block (", "barrier 2"] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }
    // Without the reset the second launch continues too early.
    let stale = fixup("sm_70", 0, 2).without("st.relaxed.gpu.global.u32 [%rd3], 0;");
    for options in ways().filter(|o| o.order == Order::Forward) {
        let report = stale.launch(2, 4096, &options).map(|_| ()).expect_err("no report");
        assert_eq!(report.kind, ReportKind::Race, "{report}");
    }
    // One block, no other.
    let alone = "setp.eq.u32 %p7, %t, 0; @!%p7 bra M; L: ld.volatile.global.u32 %r0, [%a]; setp.ne.u32 %p0, %r0, 5; @%p0 bra L; M: bar.sync 0;";
    let report = Kernel::new("sm_70", alone, 1, 64).report();
    assert_eq!(report.kind, ReportKind::Deadlock, "{report}");
    // A compare and swap, an exchange, an addition of nothing.
    for look in
        ["atom.global.cas.b32 %r0, [%a], 5, 5", "atom.global.exch.b32 %r0, [%a], 0", "atom.global.add.u32 %r0, [%a], 0"]
    {
        let report = Kernel::new("sm_70", &alone.replace("ld.volatile.global.u32 %r0, [%a]", look), 3, 64).report();
        assert_eq!(report.kind, ReportKind::Deadlock, "{report}");
    }
}

#[test]
fn whole_blocks_wait_in_turn() {
    // As CUTLASS does: one lane looks, and all threads of the block hear of it at a barrier.
    let turns = "setp.eq.u32 %p7, %t, 0; mul.wide.u32 %rd1, %t, 4; add.s64 %rd1, %a, %rd1; mov.u32 %r0, 4294967295;\n\
        LOOK: @!%p7 bra ALL; ld.acquire.gpu.global.u32 %r0, [%a];\n\
        ALL: setp.ne.u32 %p0, %r0, %b; or.pred %p0, %p0, !%p7; bar.red.and.pred %p1, 0, %p0;\n\
        @%p1 bra LOOK;\n\
        ld.global.u32 %r2, [%rd1+1024]; mad.lo.u32 %r2, %r2, 3, %b; st.global.u32 [%rd1+1024], %r2; bar.sync 0;\n\
        add.u32 %r3, %b, 1; rem.u32 %r3, %r3, %nctaid.x;\n\
        @%p7 st.release.gpu.global.u32 [%a], %r3;"
        .replace("%nctaid.x", "6");
    let right = Kernel::new("sm_70", &turns, 6, 96);
    for options in ways() {
        let (memory, _) = right.launch(1, 4096, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
        let want = (0..6).fold(0, |sum, b| sum * 3 + b);
        assert_eq!(words(&memory)[256..352], [want; 96], "{options:?}");
        let kind = |kernel: &Kernel| kernel.launch(1, 4096, &options).expect_err(&kernel.text).kind;
        assert_eq!(kind(&right.with("@%p7 st.release.gpu", "@%p7 st.relaxed.gpu")), ReportKind::Race);
        assert_eq!(kind(&right.with("ld.acquire.gpu", "ld.relaxed.gpu")), ReportKind::Race);
        assert_eq!(kind(&right.without("bar.sync 0;")), ReportKind::Race);
        assert_eq!(kind(&right.without("@%p7 st.release.gpu.global.u32 [%a], %r3;")), ReportKind::Deadlock);
    }
}

/// Block `b` waits for block `b + STEP`. The last block of each chain does not wait.
const CHAIN: &str = "
setp.eq.u32 %p7, %t, 0; mul.wide.u32 %rd0, %b, 4; add.s64 %rd0, %a, %rd0;
setp.eq.u32 %p0, %b, END;
mov.u32 %r1, 0;
@%p0 bra FIRST;
@!%p7 bra MEET;
LOOK: ld.acquire.gpu.global.u32 %r0, [%rd0+STEP];
setp.eq.u32 %p1, %r0, 0;
@%p1 bra LOOK;
MEET: bar.sync 0;
ld.global.u32 %r1, [%rd0+BACK];
FIRST: add.u32 %r1, %r1, 1;
bar.sync 0;
@%p7 st.global.u32 [%rd0+1024], %r1;
@%p7 st.release.gpu.global.u32 [%rd0], 1;";

fn chain(up: bool, blocks: u32) -> Kernel {
    let (step, back, end) = if up { ("4", "1028", blocks - 1) } else { ("-4", "1020", 0) };
    let body = CHAIN.replace("STEP", step).replace("BACK", back).replace("END", &end.to_string());
    Kernel::new("sm_80", &body, blocks, 64)
}

#[test]
fn blocks_wait_only_for_those_that_are_resident() {
    for up in [false, true] {
        for options in ways() {
            let (memory, _) = chain(up, 40).launch(1, 4096, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
            let want = |i: usize| if up { 40 - i } else { i + 1 } as u32;
            assert!(words(&memory)[256..296].iter().enumerate().all(|(i, v)| *v == want(i)), "{options:?}");
        }
    }
    for order in ORDERS {
        for resident in [1, 2, 7, 39, 40, 41] {
            let options = Options { order, resident: Some(resident), seed: 3, fuel: 1 << 20, ..Options::default() };
            chain(false, 40).launch(1, 4096, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
            let up = chain(true, 40).launch(1, 4096, &options).map(|_| ());
            if resident >= 40 {
                up.unwrap_or_else(|r| panic!("{options:?}: {r}"));
                continue;
            }
            let report = up.expect_err("the last block cannot begin");
            let text = report.to_string();
            assert_eq!((report.kind, report.block), (ReportKind::Deadlock, [0, 0, 0]), "{text}");
            assert!(text.contains(&format!("{} blocks have not begun", 40 - resident)), "{text}");
        }
    }
    // What the usual chip has room for: 132 multiprocessors with 227 KiB of shared memory each, 80 with 96, or 2048 threads.
    for (target, blocks, threads, smem) in
        [("sm_90a", 132, 64, 200 << 10), ("sm_70", 80, 64, 90 << 10), ("sm_70", 160, 1024, 0), ("sm_80", 216, 1024, 0)]
    {
        for (blocks, fits) in [(blocks, true), (blocks + 1, false)] {
            let text = chain(true, blocks)
                .text
                .replace(".version 6.4\n.target sm_80", &format!(".version 8.0\n.target {target}"));
            let kernel = Kernel { text, blocks, threads, smem };
            let kind = kernel.launch(1, 4096, &Options::default()).err().map(|r| r.kind);
            assert_eq!(kind, (!fits).then_some(ReportKind::Deadlock), "{target}, {blocks} blocks");
        }
    }
}

/// Everybody adds to a counter and waits for the others, three times; between that, words of neighbours are read and written.
const BARRIER: &str = "
setp.eq.u32 %p7, %t, 0; mov.u32 %r9, 0; mad.lo.u32 %r8, %b, 64, %t; mov.u32 %r7, %nctaid.x;
mul.wide.u32 %rd0, %r8, 4; add.s64 %rd0, %a, %rd0;
add.u32 %r1, %b, 1; rem.u32 %r1, %r1, %r7; mad.lo.u32 %r1, %r1, 64, %t; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd1, %a, %rd1;
st.global.u32 [%rd0+1024], %b;
ROUND: bar.sync 0;
@!%p7 bra MEET;
add.u32 %r9, %r9, 1; mul.lo.u32 %r10, %r9, %r7; ONCE
atom.add.release.gpu.global.u32 %r2, [%a], 1;
LOOK: ld.acquire.gpu.global.u32 %r3, [%a];
setp.lt.u32 %p0, %r3, %r10;
BACKOFF
@%p0 bra LOOK;
MEET: bar.sync 0;
ld.global.u32 %r4, [%rd1+1024];
HALF
add.u32 %r4, %r4, 1;
st.global.u32 [%rd0+1024], %r4;
add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 3;
@%p1 bra ROUND;";

fn barrier(target: &str, backoff: &str) -> Kernel {
    let body = format!("mov.u32 %r6, 0;\n{BARRIER}");
    // Between reading the neighbour's word and writing the own one there is one more.
    let second = "bar.sync 0; @!%p7 bra AGAIN; add.u32 %r9, %r9, 1; mul.lo.u32 %r10, %r9, %r7; atom.add.release.gpu.global.u32 %r2, [%a], 1;\n\
        WAIT: ld.acquire.gpu.global.u32 %r3, [%a]; setp.lt.u32 %p0, %r3, %r10; @%p0 bra WAIT; AGAIN: bar.sync 0;";
    let body = body.replace("ONCE", "").replace("HALF", second).replace("BACKOFF", backoff);
    Kernel::new(target, &body, 12, 64)
}

#[test]
fn all_blocks_meet() {
    for target in ["sm_70", "sm_90a"] {
        let right = barrier(target, "");
        for options in ways() {
            let (memory, counters) = right.launch(1, 1 << 16, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
            let words = words(&memory);
            for b in 0..12u32 {
                assert_eq!(words[(256 + 64 * b) as usize], (b + 3) % 12 + 3, "{options:?}");
            }
            assert_eq!(counters.sum("ld.acquire").executed, 12 * 6, "{options:?}");
        }
        // A counter of looks, which is no reason to give up.
        let restless = barrier(target, "add.u32 %r11, %r11, 1;");
        let restless =
            Kernel { text: restless.text.replace("mov.u32 %r6, 0;", "mov.u32 %r6, 0; mov.u32 %r11, 0;"), ..restless };
        for options in ways() {
            restless.launch(1, 1 << 16, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
        }
        for (from, to) in [
            ("LOOK: ld.acquire", "LOOK: ld.relaxed"),
            ("WAIT: ld.acquire", "WAIT: ld.relaxed"),
            ("[%a], 1;\nLOOK", "[%a], 0;\nLOOK"),
            ("MEET: bar.sync 0;", "MEET:"),
            ("ROUND: bar.sync 0;", "ROUND:"),
        ] {
            for options in ways() {
                let report = right.with(from, to).launch(1, 1 << 16, &options).map(|_| ()).expect_err(to);
                let kind = if to.contains(", 0;") { ReportKind::Deadlock } else { ReportKind::Race };
                assert_eq!(report.kind, kind, "{options:?}, {to}: {report}");
            }
        }
        let relaxed = Kernel { text: right.text.replace("atom.add.release", "atom.add.relaxed"), ..right };
        relaxed.races();
    }
}

/// Warp 1 loads a tile when warp 0 has signalled a free slot. Warp 0 signals when the next block has signalled. Both
/// poll.
const ROLES: &str = "
.shared .align 8 .b64 bar[2];
mov.u32 %r0, bar; mov.u32 %r1, sm; setp.eq.u32 %p7, %t, 0; setp.ge.u32 %p6, %t, 32; mov.u32 %r9, %nctaid.x; sub.u32 %r9, %r9, 1;
@%p7 mbarrier.init.shared.b64 [%r0], 1; @%p7 mbarrier.init.shared.b64 [%r0+8], 1; @%p7 fence.mbarrier_init.release.cluster;
mul.wide.u32 %rd0, %b, 4; add.s64 %rd0, %a, %rd0; mul.wide.u32 %rd1, %t, 4; add.s64 %rd1, %a, %rd1;
mul.wide.u32 %rd4, %b, 128; add.s64 %rd4, %rd1, %rd4;
bar.sync 0;
@%p6 bra PRODUCER;
setp.eq.u32 %p5, %b, %r9; @%p5 bra GO; @!%p7 bra MEET;
LOOK: ld.acquire.gpu.global.u32 %r2, [%rd0+4]; setp.eq.u32 %p0, %r2, 0; @%p0 bra LOOK;
st.relaxed.gpu.global.u32 [%rd0+4], 0;
MEET: bar.sync 1, 32;
GO: @%p7 mbarrier.arrive.shared.b64 %rd2, [%r0+8];
FULL: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra FULL;
mad.lo.u32 %r3, %t, 4, %r1; ld.shared.u32 %r4, [%r3];
@%p5 bra ADD; ld.global.u32 %r5, [%rd4+1152]; add.u32 %r4, %r4, %r5; ADD:
st.global.u32 [%rd4+1024], %r4;
bar.sync 1, 32;
setp.eq.u32 %p4, %b, 0; @%p4 bra DONE;
@%p7 st.release.gpu.global.u32 [%rd0], 1;
bra DONE;
PRODUCER: setp.ne.u32 %p3, %t, 32; @%p3 bra DONE;
ROOM: mbarrier.try_wait.parity.shared.b64 %p2, [%r0+8], 0; @!%p2 bra ROOM;
mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r0], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a+8192], 128, [%r0];
DONE:";

#[test]
fn a_producer_and_a_consumer_spin_at_the_same_time() {
    let kernel = |cluster: &str| {
        let right = Kernel::new("sm_90a", ROLES, 8, 64);
        let text = right.text.replace("(.param .u64 p)\n{", &format!("(.param .u64 p)\n{cluster}\n{{"));
        Kernel { text, ..right }
    };
    let run = |kernel: &Kernel, options: &Options| {
        let program = Program::parse(&kernel.text).unwrap_or_else(|e| panic!("{e}\n{}", kernel.text));
        let mut device = Device::new();
        let a = device.alloc(1 << 16).unwrap();
        device.upload(a, &[0; 4096]).unwrap();
        device.upload(a + 8192, &(0..32).flat_map(|i: u32| (100 + i).to_le_bytes()).collect::<Vec<_>>()).unwrap();
        let params = vec![a.to_le_bytes().to_vec()];
        let launch = Launch { entry: "k".into(), grid: [8, 1, 1], block: [64, 1, 1], dynamic_smem: 0, params };
        for _ in 0..2 {
            device.run(&program, &launch, options)?;
        }
        Ok::<_, Box<Report>>(words(&device.download(a, 4096).unwrap()))
    };
    for cluster in ["", ".reqnctapercluster 2, 1, 1"] {
        for landing in Landing::ALL {
            for order in ORDERS {
                let options = Options { order, landing, seed: 3, fuel: 1 << 20, ..Options::default() };
                let right = kernel(cluster);
                let out = run(&right, &options).unwrap_or_else(|r| panic!("{options:?}: {r}"));
                for (i, word) in out[256..512].iter().enumerate() {
                    assert_eq!(*word as usize, (8 - i / 32) * (100 + i % 32), "{options:?}");
                }
                let kind = |from: &str, to: &str| run(&right.with(from, to), &options).expect_err(to);
                let silent = kind("@%p7 st.release.gpu.global.u32 [%rd0], 1;", "");
                assert_eq!(silent.kind, ReportKind::Deadlock, "{silent}");
                assert!(silent.message.contains("mbarrier") && silent.message.contains("global address"), "{silent}");
                if cluster.is_empty() {
                    assert_eq!(kind("st.release.gpu", "st.relaxed.gpu").kind, ReportKind::Race, "{options:?}");
                    assert_eq!(kind("ld.acquire.gpu", "ld.relaxed.gpu").kind, ReportKind::Race, "{options:?}");
                    // The mbarriers say the rest to the other lanes.
                    assert!(run(&right.with("MEET: bar.sync 1, 32;", "MEET:"), &options).is_ok(), "{options:?}");
                }
            }
        }
    }
}

#[test]
fn a_loop_that_looks_at_one_word_waits_for_nothing() {
    // Every turn does something else, though it reads the same.
    let sum = "mov.u32 %r0, 0; mov.u32 %r1, 0; L: ld.volatile.global.u32 %r2, [%a]; add.u32 %r1, %r1, 3; add.u32 %r0, %r0, 1;\n\
        setp.lt.u32 %p0, %r0, 2000; @%p0 bra L; mul.wide.u32 %rd0, %b, 4; add.s64 %rd0, %a, %rd0; setp.eq.u32 %p1, %t, 0;\n\
        @%p1 st.global.u32 [%rd0+1024], %r1;";
    let (memory, counters) = Kernel::new("sm_70", sum, 3, 32).good();
    assert_eq!(words(&memory)[256..259], [6000; 3]);
    assert_eq!(counters.sum("ld.volatile").executed, 6000);
}

/// Turns at a flag in shared memory, which the block's other warp sets after a while, are counted: they depend on the order of the warps.
#[test]
fn turns_at_a_flag_of_the_own_block() {
    let turns = |work: u32| {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .pred %p<4>;\n.reg .b32 %r<4>, %t;\n.shared .b32 flag;\n\
             mov.u32 %t, %tid.x;\nsetp.eq.u32 %p0, %t, 0;\n@%p0 st.shared.u32 [flag], 0;\nbar.sync 0;\n\
             @%p0 bra POLL;\nsetp.ne.u32 %p1, %t, 32;\n@%p1 bra END;\nmov.u32 %r1, {work};\n\
             BUSY: sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra BUSY;\n\
             st.volatile.shared.u32 [flag], 1;\nbra END;\n\
             POLL: ld.volatile.shared.u32 %r2, [flag];\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra POLL;\nEND: ret;\n}}\n"
        );
        let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let launch = Launch { entry: "k".into(), grid: [1; 3], block: [64, 1, 1], dynamic_smem: 0, params: Vec::new() };
        let counters = Device::new().run(&program, &launch, &Options::default()).unwrap();
        counters.sum("ld.volatile").executed
    };
    assert!(turns(10_000) > 1000 + turns(10));
}

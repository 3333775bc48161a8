//! Clusters: barriers, each other's shared memory, multicasts; blocks that end too early; launches.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Counters, Device, Landing, Launch, Options, Order, Program, Report, ReportKind};

/// `%t` is the thread, `%rank` the block in the cluster, `%peer` its neighbour there. `%s` is the thread's word of
/// shared memory, `%b` the address of an mbarrier, `%mine` the thread's word of the output. `SYNC` is a barrier of the
/// cluster.
fn kernel(directives: &str, body: &str) -> String {
    let body = body.replace("SYNC", "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;");
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{directives}\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<32>, %t, %b, %s, %rank, %peer;\n.reg .b64 %rd<16>, %out, %mine;\n\
         .shared .align 1024 .b8 sm[1024];\n.shared .align 8 .b64 bar[2];\nld.param.u64 %out, [out];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nxor.b32 %peer, %rank, 1;\nmov.u32 %b, bar;\nmov.u32 %s, sm;\n\
         shl.b32 %r31, %t, 2;\nadd.u32 %s, %s, %r31;\nmov.u32 %r30, %ctaid.x;\nmov.u32 %r29, %ntid.x;\n\
         mad.lo.u32 %r30, %r30, %r29, %t;\nmul.wide.u32 %mine, %r30, 4;\nadd.s64 %mine, %out, %mine;\n\
         setp.eq.u32 %p7, %t, 0;\n{body}\nret;\n}}\n"
    )
}

const PAIR: &str = ".reqnctapercluster 2, 1, 1";

fn launch(grid: [u32; 3], threads: u32) -> Launch {
    Launch { entry: "k".into(), grid, block: [threads, 1, 1], dynamic_smem: 0, params: Vec::new() }
}

type Done = (Vec<u32>, Counters);

fn run_with(text: &str, launch: &Launch, options: &Options) -> Result<Done, Box<Report>> {
    let program = Program::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(4096).unwrap();
    device.upload(out, &(0..1024u32).flat_map(|i| (i + 1000).to_le_bytes()).collect::<Vec<_>>()).unwrap();
    let launch = Launch { params: vec![out.to_le_bytes().to_vec()], ..launch.clone() };
    let counters = device.run(&program, &launch, options)?;
    let words =
        device.download(out, 4096).unwrap().chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
    Ok((words, counters))
}

fn modes() -> impl Iterator<Item = Options> {
    let seeds = |landing| (0..3).map(move |seed| Options { seed, landing, fuel: 1_000_000, ..Options::default() });
    Landing::ALL.into_iter().flat_map(seeds)
}

#[track_caller]
fn good(body: &str) -> Vec<u32> {
    let text = kernel(PAIR, body);
    let launch = launch([4, 1, 1], 64);
    let mut all = modes().map(|o| run_with(&text, &launch, &o).unwrap_or_else(|r| panic!("{o:?}: {r}\n{body}")));
    let first = all.next().unwrap();
    // How often a loop looks at an mbarrier is up to the mode.
    assert!(all.all(|done| done.0 == first.0), "the mode changes the result");
    let threads = Options { threads: 3, order: Order::Reverse, ..Options::default() };
    assert_eq!(run_with(&text, &launch, &threads).unwrap(), first);
    first.0
}

#[track_caller]
fn bad(body: &str, kinds: &[ReportKind]) {
    let text = kernel(PAIR, body);
    for options in modes() {
        let report = run_with(&text, &launch([4, 1, 1], 64), &options).map(|_| ()).expect_err(body);
        assert!(kinds.contains(&report.kind), "{options:?}: {report}\n{body}");
    }
}

const RACE: &[ReportKind] = &[ReportKind::Race, ReportKind::Uninitialised, ReportKind::OutOfBounds];

/// Each block writes its memory and reads its neighbour's.
const EXCHANGE: &str = "mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, 100, %t; st.shared.u32 [%s], %r0; SYNC\n\
    mapa.shared::cluster.u32 %r1, %s, %peer; ld.shared::cluster.u32 %r2, [%r1]; st.global.u32 [%mine], %r2; SYNC";

#[test]
fn blocks_read_each_other() {
    let out = good(EXCHANGE);
    assert!((0..256).all(|i| out[i] == ((i as u32 / 64) ^ 1) * 100 + i as u32 % 64));
    // The same through generic addresses, atomics, and stores that push.
    let generic = EXCHANGE.replace(
        "mapa.shared::cluster.u32 %r1, %s, %peer; ld.shared::cluster.u32 %r2, [%r1];",
        "cvt.u64.u32 %rd0, %s; cvta.shared.u64 %rd0, %rd0; mapa.u64 %rd1, %rd0, %peer; ld.u32 %r2, [%rd1];\n\
         isspacep.shared::cta %p0, %rd1; @%p0 trap; isspacep.shared::cluster %p0, %rd1; @!%p0 trap;\n\
         getctarank.u64 %r9, %rd1; setp.ne.u32 %p0, %r9, %peer; @%p0 trap;",
    );
    assert_eq!(good(&generic), out);
    let push = "mapa.shared::cluster.u32 %r1, %s, %peer; mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, 100, %t; SYNC\n\
        st.shared::cluster.u32 [%r1], %r0; SYNC ld.shared.u32 %r2, [%s]; st.global.u32 [%mine], %r2;";
    assert_eq!(good(push), out);
    let sum = "mov.u32 %r0, 0; st.shared.u32 [%s], %r0; SYNC mapa.shared::cluster.u32 %r1, %s, 0;\n\
        atom.shared::cluster.add.u32 %r2, [%r1], %t; SYNC ld.shared.u32 %r2, [%s]; st.global.u32 [%mine], %r2;";
    assert!((0..64).all(|i| good(sum)[i] == 2 * i as u32));
}

#[test]
fn what_nothing_orders_is_reported() {
    bad(&EXCHANGE.replacen("SYNC", "", 1), RACE);
    bad(&EXCHANGE.replacen("SYNC", "bar.sync 0;", 1), RACE);
    bad(&EXCHANGE.replacen("SYNC", "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", 1), RACE);
    // The neighbour may have ended.
    let early = EXCHANGE.rsplit_once("SYNC").unwrap().0;
    bad(early, &[ReportKind::Race, ReportKind::OutOfBounds]);
    // An address of another block needs the space of the cluster.
    bad(&EXCHANGE.replace("ld.shared::cluster", "ld.shared"), &[ReportKind::OutOfBounds]);
    bad(&EXCHANGE.replace("%s, %peer", "%s, 2"), &[ReportKind::Invalid]);
    // After the memory of a block there is nothing, not the next block.
    bad("SYNC mov.u32 %r0, sm; ld.shared::cluster.u32 %r1, [%r0+1200]; SYNC", &[ReportKind::OutOfBounds]);
}

#[test]
fn the_barrier_is_counted() {
    let invalid = &[ReportKind::Invalid][..];
    bad("barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;", invalid);
    bad("barrier.cluster.wait.aligned;", invalid);
    bad("setp.eq.u32 %p0, %rank, 0; @%p0 bra E; L: bra L; E: SYNC", &[ReportKind::Fuel]);
    bad("setp.lt.u32 %p0, %t, 7; @%p0 barrier.cluster.arrive.aligned;", &[ReportKind::Divergence]);
    // Threads that have exited count as there.
    good("setp.lt.u32 %p0, %t, 32; @%p0 bra E; SYNC E:");
    // Nothing publishes their accesses.
    let left = "st.shared.u32 [%s], %t; WHEN setp.lt.u32 %p0, %t, 16; @%p0 bra E; SYNC xor.b32 %r0, %s, 64; ld.shared.u32 %r1, [%r0]; E:";
    good(&left.replace("WHEN", "bar.sync 0;"));
    bad(&left.replace("WHEN", ""), RACE);
    // Part of a warp at a time.
    good(
        "setp.lt.u32 %p0, %t, 7; @%p0 bra E; barrier.cluster.arrive; bra F; E: barrier.cluster.arrive; F: barrier.cluster.wait;",
    );
}

#[test]
fn who_waits_is_listed_under_its_block() {
    // Two warps of each block, of which the second one's first waits; the cluster at (2, 0, 0) runs last.
    let last = "mov.u32 %r0, %ctaid.x; setp.lt.u32 %p0, %r0, 2; @%p0 bra E; setp.eq.u32 %p1, %r0, 3; setp.lt.u32 %p2, %t, 32;\n\
        and.pred %p1, %p1, %p2; @%p1 bra E; bar.sync 1, 96; E:";
    let report = run_with(&kernel(PAIR, last), &launch([4, 1, 1], 64), &Options::default()).unwrap_err();
    assert_eq!((report.kind, report.block), (ReportKind::Deadlock, [2, 0, 0]), "{report}");
    let lines: Vec<&str> = report.message.lines().skip(1).map(|l| l.split(" lanes").next().unwrap().trim()).collect();
    assert_eq!(lines[..5], ["block (2, 0, 0):", "warp 0", "warp 1", "block (3, 0, 0):", "warp 1"], "{report}");
    let come = ["by warps 0, 1 of block (2, 0, 0)", "by warp 1 of block (3, 0, 0)"]
        .map(|b| format!("barrier 1 has been reached {b}"));
    assert_eq!(lines[5..], [&*come[0], &*come[1], "exited: warp 0 of block (3, 0, 0)"], "{report}");
    // The report is about who is named first, in whichever block.
    let second = last.replace("setp.lt.u32 %p0, %r0, 2", "setp.lt.u32 %p0, %r0, 3");
    let report = run_with(&kernel(PAIR, &second), &launch([4, 1, 1], 64), &Options::default()).unwrap_err();
    assert_eq!((report.block, report.place.as_ref().unwrap().thread), ([3, 0, 0], [32, 0, 0]), "{report}");
    assert!(report.message.lines().nth(1).is_some_and(|l| l.trim() == "block (3, 0, 0):"), "{report}");
}

/// Thread 0 of each block tells the other's mbarrier that its word is written.
const TOLD: &str = "@%p7 mbarrier.init.shared.b64 [%b], 64; @%p7 fence.mbarrier_init.release.cluster; SYNC\n\
    mapa.shared::cluster.u32 %r1, %s, %peer; mapa.shared::cluster.u32 %r3, %b, %peer; st.shared::cluster.u32 [%r1], %t;\n\
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\n\
    L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [%b], 0; @!%p0 bra L;\n\
    xor.b32 %r4, %s, 128; ld.shared.u32 %r2, [%r4]; st.global.u32 [%mine], %r2; SYNC";

#[test]
fn blocks_arrive_at_each_others_mbarriers() {
    let out = good(TOLD);
    assert!((0..256).all(|i| out[i] == (i as u32 % 64) ^ 32));
    bad(&TOLD.replace("arrive.release", "arrive.relaxed"), RACE);
    bad(
        &TOLD.replace("L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [%b], 0; @!%p0 bra L;", ""),
        RACE,
    );
    // A thread that has observed all arrivals knows that no other follows.
    good(TOLD.rsplit_once("SYNC").unwrap().0);
    bad(&TOLD.replace("[%b], 64", "[%b], 65"), &[ReportKind::Deadlock]);
    bad(&TOLD.replacen("SYNC", "bar.sync 0;", 1), &[ReportKind::Race, ReportKind::Invalid, ReportKind::OutOfBounds]);
}

const RELAXED: &str = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;";
const INITS: &str = "fence.mbarrier_init.release.cluster;";

#[test]
fn relaxed_arrivals_publish_what_was_fenced() {
    // Of initialised mbarriers a fence for these, which the initialising thread executes.
    let told = TOLD.replacen("SYNC", RELAXED, 1);
    assert_eq!(good(&told), good(TOLD));
    let fence = format!("@%p7 {INITS}");
    let report = run_with(&kernel(PAIR, &told.replace(&fence, "")), &launch([4, 1, 1], 64), &Options::default());
    assert!(report.unwrap_err().message.contains("behind `fence.mbarrier_init.release.cluster`"));
    for missing in [
        "",
        "fence.proxy.async;",
        "fence.acq_rel.cta;",
        "bar.sync 0; setp.eq.u32 %p6, %t, 1; @%p6 fence.mbarrier_init.release.cluster;",
    ] {
        bad(&told.replace(&fence, missing), RACE);
    }
    bad(
        &told.replace(&fence, "").replacen(
            "@%p7 mbarrier",
            "@%p7 fence.mbarrier_init.release.cluster; @%p7 mbarrier",
            1,
        ),
        RACE,
    );
    good(&told.replace(&fence, "fence.acq_rel.cluster;"));
    let multicast = MULTICAST.replacen("SYNC", RELAXED, 1);
    assert_eq!(good(&multicast), good(MULTICAST));
    bad(&multicast.replace(&fence, ""), RACE);
    // Of ordinary memory a fence of the cluster.
    let exchange = |fence: &str| EXCHANGE.replacen("SYNC", &format!("{fence} {RELAXED}"), 1);
    for fence in ["", INITS, "fence.proxy.async;", "fence.acq_rel.cta;", "@%p7 fence.acq_rel.cluster;"] {
        bad(&exchange(fence), RACE);
    }
    for fence in ["fence.acq_rel.cluster;", "fence.sc.cluster;", "fence.acq_rel.gpu;"] {
        assert_eq!(good(&exchange(fence)), good(EXCHANGE));
    }
    bad(&EXCHANGE.replacen("SYNC", &format!("fence.acq_rel.cluster; st.shared.u32 [%s], %r0; {RELAXED}"), 1), RACE);
}

#[test]
fn relaxed_arrivals_hold_blocks_until_loads_have_ended() {
    let early = EXCHANGE.rsplit_once("SYNC").unwrap().0;
    good(&format!("{early} {RELAXED}"));
    bad(&format!("{early} barrier.cluster.arrive.relaxed.aligned;"), RACE);
    bad(&format!("{RELAXED} {early}"), RACE);
    // Operations that nobody has awaited may complete later.
    let push = "SYNC mapa.shared::cluster.u32 %r1, %s, %peer; st.shared::cluster.u32 [%r1], %t;";
    bad(&format!("{push} {RELAXED}"), RACE);
    good(&format!("{push} fence.acq_rel.cluster; {RELAXED}"));
    good(&format!("{push} SYNC"));
    let tell = "@%p7 mbarrier.init.shared.b64 [%b], 64; SYNC mapa.shared::cluster.u32 %r3, %b, %peer;\n\
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];";
    bad(&format!("{tell} {RELAXED}"), RACE);
    good(&format!("{tell} SYNC"));
    let wait = "L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [%b], 0; @!%p0 bra L;";
    good(&format!("{tell} {wait} {RELAXED}"));
}

/// The first block loads 256 bytes for both.
const MULTICAST: &str = "@%p7 mbarrier.init.shared.b64 [%b], 1; @%p7 fence.mbarrier_init.release.cluster;\n\
    @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], 256; SYNC\n\
    mov.u32 %r0, sm; setp.eq.and.u32 %p1, %rank, 0, %p7; mov.b16 %h0, 3; add.s64 %rd0, %out, 2048;\n\
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r0], [%rd0], 256, [%b], %h0;\n\
    L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;\n\
    ld.shared.u32 %r2, [%s]; st.global.u32 [%mine], %r2; SYNC";

#[test]
fn one_block_loads_for_all() {
    let out = good(MULTICAST);
    assert!((0..256).all(|i| out[i] == 1000 + 512 + i as u32 % 64));
    bad(&MULTICAST.replace("%h0, 3;", "%h0, 1;"), &[ReportKind::Deadlock]);
    bad(&MULTICAST.replace("%h0, 3;", "%h0, 7;"), &[ReportKind::Invalid]);
    bad(&MULTICAST.replace("setp.eq.and.u32 %p1, %rank, 0, %p7;", "mov.pred %p1, %p7;"), RACE);
    // From one block's memory to the other's.
    let between = "@%p7 mbarrier.init.shared.b64 [%b], 1; @%p7 fence.mbarrier_init.release.cluster;\n\
        @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], 256; st.shared.u32 [%s+256], %t; fence.proxy.async; bar.sync 0; SYNC\n\
        mov.u32 %r0, sm; mapa.shared::cluster.u32 %r1, %r0, %peer; mapa.shared::cluster.u32 %r3, %b, %peer;\n\
        @%p7 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r0+256], 256, [%r3];\n\
        L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;\n\
        ld.shared.u32 %r2, [%s]; st.global.u32 [%mine], %r2; SYNC";
    let out = good(between);
    assert!((0..256).all(|i| out[i] == i as u32 % 64));
    bad(&between.replace("fence.proxy.async;", ""), RACE);
    bad(&between.replace("[%r3];", "[%b];"), &[ReportKind::Invalid]);
}

/// Each thread sends its neighbour in the other block a word, which an mbarrier there counts.
const SEND: &str = "@%p7 mbarrier.init.shared.b64 [%b], 1; @%p7 fence.mbarrier_init.release.cluster;\n\
    @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], 256; SYNC\n\
    mapa.shared::cluster.u32 %r1, %s, %peer; mapa.shared::cluster.u32 %r3, %b, %peer; mad.lo.u32 %r0, %rank, 1000, %t;\n\
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r0, [%r3];\n\
    L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [%b], 0; @!%p0 bra L;\n\
    ld.shared.u32 %r2, [%s]; st.global.u32 [%mine], %r2; SYNC";

#[test]
fn threads_send_words_to_other_blocks() {
    let out = good(SEND);
    assert!((0..256).all(|i| out[i] == 1000 * ((i as u32 / 64 % 2) ^ 1) + i as u32 % 64));
    // What a block has waited for is no longer under way when it ends.
    let ends = SEND.strip_suffix("SYNC").expect("it ends with a barrier");
    assert_eq!(good(ends), out);
    bad(&ends.replace("@!%p0 bra L;", "").replace("L: mbarrier.try_wait", "mbarrier.test_wait"), RACE);
    // Through generic addresses, and four words at a time.
    let generic = SEND
        .replace(
            "mad.lo.u32",
            "cvt.u64.u32 %rd0, %r1; cvta.shared::cluster.u64 %rd0, %rd0; cvt.u64.u32 %rd1, %r3; \
            cvta.shared::cluster.u64 %rd1, %rd1; mad.lo.u32",
        )
        .replace("shared::cluster.mbarrier", "mbarrier")
        .replace("[%r1], %r0, [%r3]", "[%rd0], %r0, [%rd1]");
    assert_eq!(good(&generic), out);
    let wide = SEND
        .replace("mad.lo.u32", "sub.u32 %r1, %r1, %r31; mad.lo.u32 %r1, %t, 16, %r1; mad.lo.u32")
        .replace("[%b], 256", "[%b], 1024")
        .replace("bytes.u32 [%r1], %r0,", "bytes.v4.u32 [%r1], {%r0, %r0, 7, %t},");
    let out = good(&wide.replace("ld.shared.u32 %r2, [%s]", "ld.shared.u32 %r2, [%s+192]"));
    let want = |i: u32| [1000 * ((i / 64 % 2) ^ 1) + 12 + i % 64 / 4, 7, 12 + i % 64 / 4];
    assert!((0..256).all(|i| out[i as usize] == want(i)[[0, 0, 1, 2][i as usize % 4]]));
    let wait = "L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [%b], 0; @!%p0 bra L;";
    for (cut, with, kinds) in [
        (wait, "", RACE),
        ("[%b], 256;", "[%b], 512;", &[ReportKind::Deadlock][..]),
        ("%r0, [%r3];", "%r0, [%b];", &[ReportKind::Invalid]),
        ("%r0, [%r3];", "%r0, [%r3+8];", &[ReportKind::Invalid]),
        ("%r0, [%r3];", "%r0, [%r3+4];", &[ReportKind::Misaligned]),
        ("[%r1], %r0,", "[%r1+2], %r0,", &[ReportKind::Misaligned]),
        ("[%r1], %r0,", "[%r1+1024], %r0,", &[ReportKind::Invalid, ReportKind::OutOfBounds]),
        ("[%r1], %r0,", "[%r1], %r5,", &[ReportKind::Undefined]),
        ("mapa.shared::cluster.u32 %r1, %s", "mov.u32 %s, sm; mapa.shared::cluster.u32 %r1, %s", &[ReportKind::Race]),
        // What the destination held may still be read.
        ("mad.lo.u32", "@%p7 st.shared.u32 [%s], 5; mad.lo.u32", &[ReportKind::Race]),
    ] {
        assert!(SEND.contains(cut), "{cut}");
        bad(&SEND.replacen(cut, with, 1), kinds);
    }
}

#[test]
fn threads_add_to_words_of_other_blocks() {
    let sum = SEND
        .replacen("SYNC", "@%p7 st.shared.b64 [%s], 5; SYNC", 1)
        .replace("mapa.shared::cluster.u32 %r1, %s", "mov.u32 %s, sm; mapa.shared::cluster.u32 %r1, %s")
        .replace("st.async.weak", "red.async.relaxed.cluster")
        .replace("bytes.u32 [%r1], %r0,", "bytes.add.u32 [%r1], %t,");
    assert!(good(&sum)[..256].iter().all(|v| *v == 5 + 63 * 32));
    for (op, value, bytes, want) in [
        ("add.s32", "-1", 256, 5u32.wrapping_sub(64)),
        ("min.s32", "-7", 256, 7u32.wrapping_neg()),
        ("min.u32", "-7", 256, 5),
        ("max.u32", "%t", 256, 63),
        ("inc.u32", "8", 256, 69 % 9),
        ("dec.u32", "8", 256, 4),
        ("xor.b32", "%t", 256, 5),
        ("or.b32", "%t", 256, 63),
        ("and.b32", "4", 256, 4),
        ("add.u64", "%rd5", 512, 5u32.wrapping_sub(64)),
    ] {
        let other = sum
            .replace("bytes.add.u32 [%r1], %t,", &format!("bytes.{op} [%r1], {value},"))
            .replace("[%b], 256", &format!("[%b], {bytes}"))
            .replace("mad.lo.u32", "mov.b64 %rd5, -1; mad.lo.u32");
        assert!(good(&other)[..256].iter().all(|v| *v == want), "{op}");
    }
    bad(&sum.replace("@%p7 st.shared.b64 [%s], 5;", ""), &[ReportKind::Uninitialised]);
    bad(&sum.replace("mad.lo.u32", "@%p7 st.shared.u32 [%s], 5; mad.lo.u32"), &[ReportKind::Race]);
}

#[test]
fn copies_add_to_the_memory_of_other_blocks() {
    let add = "@%p7 mbarrier.init.shared.b64 [%b], 1; @%p7 fence.mbarrier_init.release.cluster; setp.lt.u32 %p1, %t, 2;\n\
        @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], 512; st.shared.u32 [%s], 100; st.shared.u32 [%s+256], %t;\n\
        fence.proxy.async; SYNC\n\
        mov.u32 %r0, sm; mapa.shared::cluster.u32 %r1, %r0, %peer; mapa.shared::cluster.u32 %r3, %b, %peer;\n\
        @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1], [%r0+256], 256, [%r3];\n\
        L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;\n\
        ld.shared.u32 %r2, [%s]; st.global.u32 [%mine], %r2; SYNC";
    let out = good(add);
    assert!((0..256).all(|i| out[i] == 100 + 2 * (i as u32 % 64)));
    let out = good(&add.replace("add.u32 [", "max.s32 [").replace("100;", "-1;"));
    assert!((0..256).all(|i| out[i] == i as u32 % 64));
    let wide = add.replace("add.u32 [", "add.u64 [").replace("[%s], 100", "[%s], -1");
    let out = good(&wide);
    // Two words are one number: the lower one carries into the upper one.
    let want = |i: u32| if i % 2 == 1 { 2 * i } else { (2 * i).wrapping_sub(1) };
    assert!((0..256).all(|i| out[i] == want(i as u32 % 64).wrapping_sub(u32::from(i % 64 == 1))), "{:?}", &out[..8]);
    bad(&add.replace("fence.proxy.async;", ""), RACE);
    bad(&add.replace("st.shared.u32 [%s], 100;", ""), &[ReportKind::Uninitialised]);
    bad(&add.replace("], 512;", "], 256;"), &[ReportKind::Deadlock, ReportKind::Race, ReportKind::Invalid]);
    bad(&add.replace("[%r3];", "[%b];"), &[ReportKind::Invalid]);
    bad(&add.replace(".add.u32 [", " [").replace("cp.reduce", "cp"), &[ReportKind::Race]);
}

#[test]
fn registers_tell_where_a_block_is() {
    let body = "mov.u32 %r0, %clusterid.x; mov.u32 %r1, %nclusterid.x; mov.u32 %r2, %cluster_ctaid.x;\n\
        mov.u32 %r3, %cluster_nctaid.x; mov.u32 %r4, %cluster_nctarank; mov.pred %p0, %is_explicit_cluster; selp.u32 %r5, 1, 0, %p0;\n\
        shl.b32 %r1, %r1, 4; shl.b32 %r2, %r2, 8; shl.b32 %r3, %r3, 12; shl.b32 %r4, %r4, 16; shl.b32 %r5, %r5, 20;\n\
        or.b32 %r0, %r0, %r1; or.b32 %r2, %r2, %r3; or.b32 %r4, %r4, %r5; or.b32 %r0, %r0, %r2; or.b32 %r0, %r0, %r4;\n\
        st.global.u32 [%mine], %r0;";
    let out = good(body);
    let want = |block: u32| (block / 2) | 2 << 4 | (block % 2) << 8 | 2 << 12 | 2 << 16 | 1 << 20;
    assert!((0..4).all(|block| out[64 * block as usize] == want(block)));
    let alone = run_with(&kernel("", body), &launch([4, 1, 1], 64), &Options::default()).unwrap().0;
    assert!((0..4).all(|block| alone[64 * block as usize] == block | 4 << 4 | 1 << 12 | 1 << 16));
    // Two axes: ranks count along x first.
    let body = "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mad.lo.u32 %r0, %r1, 4, %r0; mul.wide.u32 %rd0, %r0, 4;\n\
        add.s64 %rd0, %out, %rd0; @%p7 st.global.u32 [%rd0], %rank;";
    let options = Options { cluster: Some([2, 2, 1]), ..Options::default() };
    let out = run_with(&kernel("", body), &launch([4, 2, 1], 32), &options).unwrap().0;
    assert_eq!(&out[..8], &[0, 1, 0, 1, 2, 3, 2, 3]);
}

#[test]
fn launches_are_checked() {
    let refused = |directives: &str, grid: [u32; 3], threads: u32, cluster: Option<[u32; 3]>, says: &str| {
        let options = Options { cluster, ..Options::default() };
        let report = run_with(&kernel(directives, ""), &launch(grid, threads), &options).unwrap_err();
        assert!(report.kind == ReportKind::Launch && report.message.contains(says), "{report}");
    };
    refused(PAIR, [3, 1, 1], 64, None, "divided");
    refused(PAIR, [4, 1, 1], 64, Some([4, 1, 1]), "needs clusters");
    refused(".maxclusterrank 2", [4, 1, 1], 64, Some([4, 1, 1]), "at most 2");
    refused(".explicitcluster", [4, 1, 1], 64, None, "how large");
    refused("", [32, 1, 1], 32, Some([32, 1, 1]), "1 to 16");
    let options = Options { cluster: Some([16, 1, 1]), ..Options::default() };
    let large = kernel("", ".local .b8 stack[300000];");
    let report = run_with(&large, &launch([16, 1, 1], 64), &options).map(drop).unwrap_err();
    assert!(report.message.contains("the threads of a cluster would need"), "{report}");
    let report = run_with(
        &kernel("", "").replace("sm_90", "sm_89").replace("%cluster_ctarank", "0"),
        &launch([2, 1, 1], 32),
        &Options { cluster: Some([2, 1, 1]), ..Options::default() },
    );
    assert!(report.unwrap_err().message.contains("sm_90"));
}

/// Every thread reads the word of the same thread in the next block. `says` is where the last thread of each block
/// signals that it has read.
const RING: &str = "mov.u32 %r10, %cluster_nctarank; add.u32 %peer, %rank, 1; rem.u32 %peer, %peer, %r10;\n\
    shl.b32 %r0, %rank, 16; or.b32 %r0, %r0, %t; st.shared.u32 [%s], %r0; SYNC mapa.shared::cluster.u32 %r1, %s, %peer;\n\
    ld.shared::cluster.u32 %r2, [%r1]; shl.b32 %r3, %peer, 16; or.b32 %r3, %r3, %t; setp.ne.u32 %p0, %r2, %r3; @%p0 trap;\n\
    add.u32 %r4, %t, 1; setp.eq.u32 %p1, %r4, %r29; mul.wide.u32 %rd0, %rank, 4; add.s64 %rd0, %out, %rd0; @%p1 st.global.u32 [%rd0], %r2; SYNC";

#[test]
fn as_many_warps_as_there_can_be() {
    for (blocks, threads) in [(2, 640), (16, 1024)] {
        let run = |body: &str| {
            let text = kernel("", body).replace("sm[1024]", "sm[4096]");
            let options = Options { cluster: Some([blocks, 1, 1]), ..Options::default() };
            run_with(&text, &launch([blocks, 1, 1], threads), &options)
        };
        let out = run(RING).unwrap().0;
        assert!((0..blocks).all(|rank| out[rank as usize] == ((rank + 1) % blocks) << 16 | (threads - 1)));
        for worse in [RING.replacen("SYNC", "", 1), RING.replacen("SYNC", "bar.sync 0;", 1)] {
            assert!(RACE.contains(&run(&worse).unwrap_err().kind));
        }
        // Two threads that are not ordered, in whichever of the many warps they are; both have names.
        let (low, high) = (threads - 640, threads - 1);
        let write = format!(
            "setp.eq.u32 %p0, %t, {low}; setp.eq.and.u32 %p0, %rank, 0, %p0; setp.eq.u32 %p1, %t, {high};\n\
             setp.eq.and.u32 %p1, %rank, {}, %p1; or.pred %p0, %p0, %p1; mapa.shared::cluster.u32 %r1, %s, 1;\n\
             mov.u32 %r1, sm; mapa.shared::cluster.u32 %r1, %r1, 1; SYNC @%p0 st.shared::cluster.u32 [%r1], %t; SYNC",
            blocks - 1
        );
        let report = run(&write).unwrap_err();
        let mut threads = [report.place.unwrap().thread, report.other.unwrap().thread];
        threads.sort_unstable();
        assert_eq!((report.kind, threads), (ReportKind::Race, [[low, 0, 0], [high, 0, 0]]));
        run(&write.replace("or.pred %p0, %p0, %p1;", "")).unwrap();
    }
}

#[test]
fn threads_of_large_clusters_are_named() {
    let body = "setp.eq.u32 %p0, %t, 1000; setp.eq.and.u32 %p0, %rank, 15, %p0; @%p0 st.global.u32 [%out], %r30;";
    let options = Options { cluster: Some([16, 1, 1]), ..Options::default() };
    let report = run_with(&kernel("", body), &launch([32, 1, 1], 1024), &options).unwrap_err();
    let mut blocks = [report.block, report.other_block.unwrap()];
    blocks.sort_unstable();
    assert_eq!((report.kind, blocks), (ReportKind::Race, [[15, 0, 0], [31, 0, 0]]));
    assert_eq!([report.place.unwrap().thread, report.other.unwrap().thread], [[1000, 0, 0]; 2]);
}

#[test]
fn blocks_of_a_cluster_are_named() {
    let text = kernel(PAIR, "SYNC setp.eq.u32 %p0, %r30, 200; @%p0 trap; SYNC");
    let report = run_with(&text, &launch([4, 1, 1], 64), &Options::default()).unwrap_err();
    assert_eq!((report.kind, report.block, report.place.unwrap().thread), (ReportKind::Trap, [3, 0, 0], [8, 0, 0]));
    // A race between clusters names the blocks, not the first ones of their clusters.
    let text = kernel(PAIR, "setp.eq.and.u32 %p0, %rank, 1, %p7; @%p0 st.global.u32 [%out], %r30;");
    let report = run_with(&text, &launch([4, 1, 1], 64), &Options::default()).unwrap_err();
    let mut blocks = [report.block, report.other_block.unwrap()];
    blocks.sort_unstable();
    assert_eq!((report.kind, blocks), (ReportKind::Race, [[1, 0, 0], [3, 0, 0]]));
}

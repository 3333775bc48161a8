//! Instructions of sm_90 and sm_90a one by one: bulk copies, proxies, limits of registers, asynchronous products.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{
    Allowance, Cause, Counters, Device, Landing, Launch, Options, Outside, Program, Report, ReportKind, Swizzle,
    TensorElement, TensorMap,
};

/// `%t` is the thread, `%b` the address of an mbarrier (initialised to one arrival). `%s` is the address of 4096 bytes
/// of shared memory, `%out` of 4096 bytes of global memory, where byte `i` is `i`. `%map` is the generic address of the
/// parameter `map`.
fn kernel(directives: &str, body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128])\n\
         {directives}\n{{\n.reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<64>, %t, %b, %s;\n.reg .b64 %rd<16>, %out, %map;\n\
         .reg .f32 %f<64>;\n.shared .align 1024 .b8 sm[4096];\n.shared .align 8 .b64 bar[2];\nld.param.u64 %out, [out];\n\
         mov.b64 %map, map;\ncvta.param.u64 %map, %map;\nmov.u32 %t, %tid.x;\nmov.u32 %b, bar;\nmov.u32 %s, sm;\n\
         setp.eq.u32 %p7, %t, 0;\n@%p7 mbarrier.init.shared.b64 [%b], 1;\n@%p7 fence.mbarrier_init.release.cluster;\n\
         bar.sync 0;\n{body}\nret;\n}}\n"
    )
}

type Output = Vec<u8>;

struct Case<'a> {
    directives: &'a str,
    body: &'a str,
    threads: u32,
    map: Option<&'a dyn Fn(u64) -> TensorMap>,
    programmatic: bool,
}

fn run(case: &Case<'_>, landing: Landing) -> Result<Output, Box<Report>> {
    run_with(case, Options { landing, ..Options::default() }).map(|(out, _)| out)
}

fn run_with(case: &Case<'_>, options: Options) -> Result<(Output, Counters), Box<Report>> {
    let text = kernel(case.directives, case.body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(4096).unwrap();
    device.upload(out, &(0..4096).map(|i| i as u8).collect::<Vec<_>>()).unwrap();
    let map = case.map.map_or([0; 128], |map| map(out).encode().unwrap());
    let params = vec![out.to_le_bytes().to_vec(), map.to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [case.threads, 1, 1], dynamic_smem: 0, params };
    let options = Options { fuel: 1_000_000, programmatic: case.programmatic, ..options };
    let counters = device.run(&program, &launch, &options)?;
    Ok((device.download(out, 4096).unwrap(), counters))
}

#[track_caller]
fn good(case: Case<'_>) -> Output {
    let mut all = Landing::ALL.into_iter().map(|l| run(&case, l).unwrap_or_else(|r| panic!("{l:?}: {r}")));
    let first = all.next().unwrap();
    assert!(all.all(|out| out == first), "the mode changes the result");
    first
}

#[track_caller]
fn bad(case: Case<'_>, kind: ReportKind, says: &str) {
    for landing in Landing::ALL {
        let report = run(&case, landing).map(|_| ()).expect_err(case.body);
        assert!(report.kind == kind && report.message.contains(says), "{landing:?}: {report}\n{}", case.body);
    }
}

fn plain(body: &str, threads: u32) -> Case<'_> {
    Case { directives: "", body, threads, map: None, programmatic: false }
}

/// A load of the second kilobyte, which all threads wait for and write back a kilobyte further.
const LOAD: &str = "add.s64 %rd0, %out, 1024;\n\
    @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], 1024;\n\
    @%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%rd0], 1024, [%b];\n\
    L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;\n\
    shl.b32 %r0, %t, 4; add.u32 %r1, %s, %r0; ld.shared.v4.u32 {%r2,%r3,%r4,%r5}, [%r1];\n\
    cvt.u64.u32 %rd1, %r0; add.s64 %rd1, %rd1, %out; st.global.v4.u32 [%rd1+2048], {%r2,%r3,%r4,%r5};";

#[test]
fn runs_of_bytes_are_loaded() {
    let out = good(plain(LOAD, 64));
    assert!((2048..3072).all(|i| out[i] == i as u8));
    for (cut, with, kind, says) in [
        ("L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;", "", ReportKind::Race, "shared address"),
        ("_, [%b], 1024", "_, [%b], 2048", ReportKind::Deadlock, "1024 of 2048 bytes pending"),
        ("[%rd0], 1024,", "[%rd0], 1020,", ReportKind::Invalid, "multiple of 16"),
        ("[%rd0], 1024,", "[%rd0+8], 1024,", ReportKind::Misaligned, "16"),
        ("[%s], [%rd0], 1024", "[%s+3584], [%rd0], 1024", ReportKind::OutOfBounds, "shared memory"),
        ("[%rd0], 1024, [%b]", "[%rd0], 1024, [%b+8]", ReportKind::Invalid, "no mbarrier"),
        ("[%rd0], 1024, [%b]", "[%rd0], 1024, [%b+4]", ReportKind::Misaligned, "8"),
        ("add.s64 %rd0, %out, 1024;", "add.s64 %rd0, %out, 3584;", ReportKind::OutOfBounds, "allocation"),
        ("@%p7 cp.async.bulk", "cp.async.bulk", ReportKind::Race, "copy"),
    ] {
        assert!(LOAD.contains(cut), "{cut}");
        bad(plain(&LOAD.replacen(cut, with, 1), 64), kind, says);
    }
    // Ordinary writes of the destination before need a fence of proxies, too; ordinary reads do not.
    let fenced = |fence: &str| {
        format!("shl.b32 %r9, %t, 4; add.u32 %r9, %r9, %s; st.shared.u32 [%r9], %t; {fence} bar.sync 0; {LOAD}")
    };
    good(plain(&fenced("fence.proxy.async;"), 64));
    bad(plain(&fenced(""), 64), ReportKind::Race, "fence.proxy.async");
}

/// Who does not look at the answer of a wait is found wherever copies do not land at once, and `tilec run` tries all ways.
#[test]
fn an_answer_about_a_load_is_looked_at() {
    for wait in [
        "mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0;",
        "setp.ne.u32 %p1, %t, 99; @%p1 mbarrier.test_wait.parity.shared.b64 %p0, [%b], 0;",
    ] {
        let body = LOAD.replace("L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;", wait);
        assert_ne!(body, LOAD);
        for landing in Landing::ALL.into_iter().filter(|l| *l != Landing::Early) {
            let report = run(&plain(&body, 64), landing).map(|_| ()).expect_err(&body);
            assert_eq!(report.kind, ReportKind::Race, "{landing:?}: {report}");
        }
    }
}

#[test]
fn no_load_outlives_its_block() {
    // Asked for and forgotten: a copy that lands at once is not on its way any more.
    let (forgotten, _) = LOAD.split_once("L:").unwrap();
    for landing in [Landing::Late, Landing::LateReads, Landing::Latest] {
        let report = run(&plain(forgotten, 64), landing).expect_err("nobody waits");
        let says = "the block ends while this copy may still write to its shared memory";
        assert!(report.kind == ReportKind::Invalid && report.message.contains(says), "{landing:?}: {report}");
    }
    // Whoever waits, one is enough.
    good(plain(
        &format!("{forgotten} @!%p7 bra E; L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L; E:"),
        64,
    ));
}

/// No variable is at the beginning of shared memory, which belongs to the system since sm_90.
#[test]
fn the_first_kilobyte_is_reserved() {
    let out = good(plain("st.global.u32 [%out], %s; st.global.u32 [%out+4], %b;", 1));
    let word = |i: usize| u32::from_le_bytes(out[i..i + 4].try_into().unwrap());
    assert!(word(0) == 1024 && word(4) > 1024 + 4096, "{:#x} {:#x}", word(0), word(4));
    bad(plain("mov.u32 %r0, 512; st.shared.u32 [%r0], %t;", 1), ReportKind::OutOfBounds, "shared");
}

/// Fences, commits and waits of products are legal without any.
#[test]
fn groups_of_products_may_be_empty() {
    good(plain("wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;", 128));
}

/// Each thread writes a word, and thread 0 stores them.
const STORE: &str = "shl.b32 %r0, %t, 2; add.u32 %r1, %s, %r0; st.shared.u32 [%r1], %t;\n\
    fence.proxy.async.shared::cta; bar.sync 0;\n\
    @%p7 cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 256;\n\
    @%p7 cp.async.bulk.commit_group; @%p7 cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.u32 [%r1], 7;";

#[test]
fn groups_of_stores_are_waited_for() {
    let words = |out: &Output| out.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect::<Vec<_>>();
    assert!(words(&good(plain(STORE, 64))).iter().take(64).enumerate().all(|(i, v)| *v == i as u32));
    let race = ReportKind::Race;
    for (cut, with, kind, says) in [
        ("fence.proxy.async.shared::cta;", "", race, "fence.proxy.async"),
        ("fence.proxy.async.shared::cta; bar.sync 0;", "bar.sync 0;", race, "fence.proxy.async"),
        ("@%p7 cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.u32 [%r1], 7;", "", ReportKind::Invalid, "group"),
        ("@%p7 cp.async.bulk.wait_group.read 0;", "", race, "shared address"),
        ("wait_group.read 0", "wait_group.read 1", race, "shared address"),
        ("@%p7 cp.async.bulk.commit_group;", "", race, "shared address"),
    ] {
        assert!(STORE.contains(cut), "{cut}");
        bad(plain(&STORE.replacen(cut, with, 1), 64), kind, says);
    }
    // The thread that observes the write may execute the fence instead of the writer.
    let reader = STORE.replace("fence.proxy.async.shared::cta; bar.sync 0;", "bar.sync 0; fence.proxy.async;");
    good(plain(&reader, 64));
    // What was stored is there after a full wait.
    let after = format!("{STORE} @%p7 ld.global.u32 %r5, [%out+4];");
    bad(plain(&after, 64), race, "global address");
    good(plain(&after.replace("wait_group.read", "wait_group"), 64));
}

#[test]
fn elements_are_reduced() {
    let reduce = |op: &str| {
        STORE
            .replace(
                "cp.async.bulk.global.shared::cta.bulk_group",
                &format!("cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}"),
            )
            .replace("[%s], 256", "[%s], 16")
    };
    let first = |op: &str| {
        let out = good(plain(&reduce(op), 64));
        u32::from_le_bytes(out[4..8].try_into().unwrap())
    };
    let old = 0x0706_0504;
    assert_eq!(first("add.u32"), old + 1);
    assert_eq!(first("min.s32"), 1);
    assert_eq!(first("xor.b32"), old ^ 1);
    assert_eq!(first("inc.u32"), 0);
    let wide = good(plain(&reduce("add.u64"), 64));
    assert_eq!(u64::from_le_bytes(wide[..8].try_into().unwrap()), 0x0706_0504_0302_0100 + (1 << 32));
    // Two of them at a time are no race.
    let twice = reduce("add.u32").replace(
        "@%p7 cp.async.bulk.commit_group;",
        "@%p7 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%s], 16; @%p7 cp.async.bulk.commit_group;",
    );
    assert_eq!(u32::from_le_bytes(good(plain(&twice, 64))[4..8].try_into().unwrap()), old + 2);
}

fn tensor<'a>(body: &'a str, map: &'a dyn Fn(u64) -> TensorMap) -> Case<'a> {
    Case { directives: "", body, threads: 32, map: Some(map), programmatic: false }
}

/// A tensor of one to five dimensions is loaded at `at`, and its first words written back.
fn load(rank: usize, at: &str, bytes: u32) -> String {
    format!(
        "prefetch.tensormap [%map]; cp.async.bulk.prefetch.tensor.{rank}d.L2.global [%map, {{{at}}}];\n\
         @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], {bytes};\n\
         @%p7 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [%map, {{{at}}}], [%b];\n\
         L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;\n\
         shl.b32 %r0, %t, 2; add.u32 %r1, %s, %r0; setp.lt.u32 %p1, %r0, {bytes}; @%p1 ld.shared.u32 %r2, [%r1]; cvt.u64.u32 %rd1, %r0; add.s64 %rd1, %rd1, %out;\n\
         @%p1 st.global.u32 [%rd1+2048], %r2;"
    )
}

#[test]
fn boxes_are_loaded_and_padded() {
    // 13 columns of 2 bytes are 26 of 32 bytes; three rows, of which the last box holds one.
    let map = |at| TensorMap { strides: vec![32], ..TensorMap::packed(TensorElement::U16, at, &[13, 3], &[16, 4]) };
    let out = good(tensor(&load(2, "8, 2", 128), &map));
    let half = |i: usize| u16::from_le_bytes([out[2048 + 2 * i], out[2049 + 2 * i]]);
    let at = |row: usize, column: usize| {
        u16::from_le_bytes([(32 * row + 2 * column) as u8, (32 * row + 2 * column + 1) as u8])
    };
    assert!((0..16).all(|i| half(i) == if i < 5 { at(2, i + 8) } else { 0 }));
    assert!((16..64).all(|i| half(i) == 0));
    // Before the first column, and NaN outside.
    let floats = |at| TensorMap { element: TensorElement::F16, outside: Outside::Nan, ..map(at) };
    let out = good(tensor(&load(2, "-8, 0", 128), &floats));
    let half = |i: usize| u16::from_le_bytes([out[2048 + 2 * i], out[2049 + 2 * i]]);
    let found = [half(0), half(7), half(8), half(15), half(16), half(24), half(56)];
    assert_eq!(found, [0x7FF7, 0x7FF7, at(0, 0), at(0, 7), 0x7FF7, at(1, 0), 0x7FF7]);
    // The bytes that count are those of the whole box.
    bad(tensor(&load(2, "8, 2", 8), &map), ReportKind::Deadlock, "120 bytes more than were announced");
    // Boxes begin at multiples of 16 bytes of a row.
    for start in ["1", "-1", "12"] {
        bad(tensor(&load(2, &format!("{start}, 2"), 128), &map), ReportKind::Invalid, "a multiple of 16");
    }
}

#[test]
fn tensors_have_one_to_five_dimensions() {
    for rank in 1..=5 {
        let map = |at| {
            let (dims, sizes) = ([8, 2, 2, 2, 2], [4, 1, 2, 1, 1]);
            TensorMap::packed(TensorElement::U32, at, &dims[..rank], &sizes[..rank])
        };
        let at = ["4", "1", "0", "1", "1"][..rank].join(", ");
        let out = good(tensor(&load(rank, &at, if rank < 3 { 16 } else { 32 }), &map));
        let word = |i: usize| u32::from_le_bytes(out[2048 + 4 * i..2052 + 4 * i].try_into().unwrap());
        let source = [0, 1, 0, 1, 1][..rank].iter().enumerate().map(|(d, c)| c * (8 << d >> 1)).sum::<usize>() + 4;
        let want = |i: usize| u32::from_le_bytes(std::array::from_fn(|b| (4 * (source + i) + b) as u8));
        assert!((0..4).all(|i| word(i) == want(i)), "{rank}");
    }
}

#[test]
fn maps_and_places_are_checked() {
    let map = |at| TensorMap::packed(TensorElement::U32, at, &[16, 16], &[8, 8]);
    let text = load(2, "0, 0", 256);
    good(tensor(&text, &map));
    bad(plain(&text, 32), ReportKind::Invalid, "nobody who makes maps");
    bad(
        tensor(&text.replacen("[%map, {0, 0}], [%b]", "[%map+32, {0, 0}], [%b]", 1), &map),
        ReportKind::Misaligned,
        "64",
    );
    bad(tensor(&format!("mov.b64 %map, map; {text}"), &map), ReportKind::Invalid, "cvta.param");
    bad(tensor(&load(3, "0, 0, 0", 256), &map), ReportKind::Invalid, "dimensions");
    bad(tensor(&text.replacen("bytes [%s],", "bytes [%s+64],", 1), &map), ReportKind::Misaligned, "128");
    let store = "@%p7 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {0, -1}], [%s];";
    bad(tensor(store, &map), ReportKind::Invalid, "coordinate 1");
}

#[test]
fn stores_stay_inside_and_undo_the_swizzle() {
    for swizzle in [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128] {
        let map = move |at| TensorMap {
            swizzle,
            strides: vec![64],
            ..TensorMap::packed(TensorElement::U32, at, &[6, 5], &[8, 8])
        };
        let body = format!(
            "{} bar.sync 0; add.s64 %rd9, %map, 0;\n\
             @%p7 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {{4, 3}}], [%s];\n\
             @%p7 cp.async.bulk.commit_group; @%p7 cp.async.bulk.wait_group 0;",
            load(2, "0, 0", 256).replace("@%p1 st.global.u32 [%rd1+2048], %r2;", "")
        );
        let out = good(tensor(&body, &map));
        for (row, column) in (0..8).flat_map(|r| (0..8).map(move |c| (r, c))) {
            let at = 64 * row + 4 * column;
            let stored = (3..5).contains(&row) && (4..6).contains(&column);
            let from = if stored { 64 * (row - 3) + 4 * (column - 4) } else { at };
            assert_eq!(out[at], from as u8, "{swizzle:?} {row} {column}");
        }
        let askew = body.replace("{4, 3}", "{2, 3}");
        bad(tensor(&askew, &map), ReportKind::Invalid, "a box begins 8 bytes into its row");
    }
}

fn roles<'a>(directives: &'a str, body: &'a str) -> Case<'a> {
    Case { directives, body, threads: 384, map: None, programmatic: false }
}

const ROLES: &str = ".maxntid 384, 1, 1\n.minnctapersm 1";

#[test]
fn registers_are_given_back_and_taken() {
    // 168 registers at the start; two groups of four warps take what the first gives.
    let body = "setp.lt.u32 %p1, %t, 128; @%p1 bra A; setmaxnreg.inc.sync.aligned.u32 240; bra B;\n\
        A: setmaxnreg.dec.sync.aligned.u32 24; B:";
    good(roles(ROLES, body));
    good(roles(".maxnreg 168", body));
    bad(roles(ROLES, &body.replace("240", "248")), ReportKind::Deadlock, "registers");
    bad(
        roles(ROLES, &body.replace("dec.sync.aligned.u32 24", "dec.sync.aligned.u32 32")),
        ReportKind::Deadlock,
        "free",
    );
    bad(
        roles(ROLES, &body.replace("dec.sync.aligned.u32 24", "dec.sync.aligned.u32 176")),
        ReportKind::Invalid,
        "lowered",
    );
    bad(roles(ROLES, &body.replace("240", "160")), ReportKind::Invalid, "raised");
    bad(roles("", body), ReportKind::Invalid, "ignores");
    bad(roles(".maxntid 384, 1, 1", body), ReportKind::Invalid, "ignores");
    let case = Case {
        directives: ROLES,
        body: "setmaxnreg.dec.sync.aligned.u32 24;",
        threads: 96,
        map: None,
        programmatic: false,
    };
    bad(case, ReportKind::Invalid, "four warps");
}

/// `m64n8k16` of ones in shared memory; added to ones; the accumulators come to the output.
const PRODUCT: &str = "shl.b32 %r0, %t, 4; add.u32 %r1, %s, %r0; mov.u32 %r2, 0x3c003c00; st.shared.v4.u32 [%r1], {%r2,%r2,%r2,%r2};\n\
    st.shared.v4.u32 [%r1+2048], {%r2,%r2,%r2,%r2};\n\
    fence.proxy.async; bar.sync 0; shr.u32 %r3, %s, 4; cvt.u64.u32 %rd0, %r3; or.b64 %rd0, %rd0, 0x0000002000080000;\n\
    add.s64 %rd1, %rd0, 128; mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n\
    wgmma.fence.sync.aligned;\n\
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1, 0, 0;\n\
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n\
    cvt.u64.u32 %rd1, %r0; add.s64 %rd1, %rd1, %out; st.global.v4.f32 [%rd1], {%f0,%f1,%f2,%f3};";

fn product(body: &str) -> Case<'_> {
    plain(body, 128)
}

/// [`PRODUCT`] of what `cp.async` copies, with nothing but its wait and a barrier in front.
fn copied_product(fence: &str) -> String {
    let stores = "st.shared.v4.u32 [%r1], {%r2,%r2,%r2,%r2};\nst.shared.v4.u32 [%r1+2048], {%r2,%r2,%r2,%r2};\n";
    let copies = "cvt.u64.u32 %rd1, %r0; add.s64 %rd1, %rd1, %out; cp.async.ca.shared.global [%r1], [%rd1], 16;\n\
        cp.async.ca.shared.global [%r1+2048], [%rd1], 16; cp.async.commit_group; cp.async.wait_group 0;\n";
    assert!(PRODUCT.contains(stores));
    PRODUCT.replace(stores, copies).replace("fence.proxy.async;", fence)
}

#[test]
fn products_of_copies_without_a_proxy_fence_pass_where_they_are_allowed() {
    let (with, without) = (copied_product("fence.proxy.async;"), copied_product(""));
    let fenced = good(product(&with));
    bad(product(&without), ReportKind::Race, "`cp.async` that wrote it");
    let allowing = |body: &str, allow: &[Allowance]| {
        let options = Options { allow: allow.to_vec(), ..Options::default() };
        run_with(&product(body), options)
    };
    assert_eq!(allowing(&without, &[]).unwrap_err().cause, Some(Cause::CopyProxy));
    let (out, counters) = allowing(&without, &[Allowance::CopyProxy]).unwrap();
    assert_eq!(out, fenced);
    // A pair for each of the two copies, however many words each wrote.
    let places: Vec<_> =
        counters.allowed.iter().map(|r| (r.place.as_ref().unwrap(), r.other.as_ref().unwrap())).collect();
    assert_eq!(places.len(), 2, "{places:?}");
    assert!(places.iter().all(|(this, other)| {
        this.instruction.starts_with("wgmma.mma_async") && other.instruction.starts_with("cp.async")
    }));
    assert_eq!(allowing(&with, &[Allowance::CopyProxy]).unwrap().1.allowed, []);
    // Other accesses are not ordered: neither ordinary stores nor operations that nobody has awaited.
    let stores = PRODUCT.replace("fence.proxy.async;", "");
    assert_eq!(allowing(&stores, &[Allowance::CopyProxy]).unwrap_err().cause, Some(Cause::ProxyFence));
    for cut in ["cp.async.wait_group 0;", "bar.sync 0;"] {
        let report = allowing(&without.replace(cut, ""), &[Allowance::CopyProxy]).unwrap_err();
        assert_eq!(report.kind, ReportKind::Race, "{report}");
    }
}

#[test]
fn products_and_their_registers() {
    let floats =
        |out: Output| out.chunks(4).take(512).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect::<Vec<_>>();
    assert!(floats(good(product(PRODUCT))).iter().all(|v| *v == 17.0));
    let with = |cut: &str, with: &str| {
        assert!(PRODUCT.contains(cut), "{cut}");
        PRODUCT.replacen(cut, with, 1)
    };
    assert!(floats(good(product(&with("%rd1, 1, 1, 1,", "%rd1, 0, 1, 1,")))).iter().all(|v| *v == 16.0));
    assert!(floats(good(product(&with("%rd1, 1, 1, 1,", "%rd1, 1, -1, 1,")))).iter().all(|v| *v == -15.0));
    let (race, invalid) = (ReportKind::Race, ReportKind::Invalid);
    bad(product(&with("wgmma.fence.sync.aligned;", "")), race, "before the first wgmma");
    let late = with("mov.f32 %f3, %f0;\nwgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned; mov.f32 %f3, %f0;");
    bad(product(&late), race, "since the last `wgmma.fence`");
    bad(product(&with("wgmma.wait_group.sync.aligned 0;", "")), race, "wait_group");
    bad(
        product(&with("wgmma.wait_group.sync.aligned 0;", "mov.f32 %f3, 0f00000000; wgmma.wait_group.sync.aligned 0;")),
        race,
        "accumulator",
    );
    bad(product(&with("wgmma.commit_group.sync.aligned;", "")), invalid, "no committed group");
    let left = with("wgmma.wait_group.sync.aligned 0;\n", "").split("cvt.u64.u32 %rd1, %r0").next().unwrap().to_owned();
    bad(product(&left), invalid, "on its way");
    bad(product(&with("fence.proxy.async;", "")), race, "fence.proxy.async");
    // A thread that reads before the write may observe unwritten memory.
    let early = with("fence.proxy.async; bar.sync 0;", "fence.proxy.async;");
    for landing in Landing::ALL {
        let report = run(&product(&early), landing).unwrap_err();
        assert!(matches!(report.kind, ReportKind::Race | ReportKind::Uninitialised), "{report}");
    }
    bad(plain(PRODUCT, 96), invalid, "four warps");
    // The four warps must agree.
    let other = with(
        "wgmma.fence.sync.aligned;",
        "setp.lt.u32 %p1, %t, 32; selp.b64 %rd2, 1, 0, %p1; add.s64 %rd1, %rd1, %rd2; wgmma.fence.sync.aligned;",
    );
    bad(product(&other), ReportKind::Divergence, "other operands");
    // Overwriting what a product may still read, and not.
    let over = with("wgmma.wait_group.sync.aligned 0;", "st.shared.u32 [%r1], 0; wgmma.wait_group.sync.aligned 0;");
    bad(product(&over), race, "shared address");
    good(product(&with(
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 0; bar.sync 0; st.shared.u32 [%r1], 0;",
    )));
    // A second product on the same accumulator needs no fence; another shape does.
    let first = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1, 0, 0;";
    let chain = with(first, &format!("{first}\n{first}"));
    assert!(floats(good(product(&chain))).iter().all(|v| *v == 33.0));
    let wider = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %rd0, %rd0, 0, 1, 1, 0, 0;";
    bad(product(&with(first, &format!("{first}\n{wider}"))), race, "shape");
}

#[test]
fn a_in_registers() {
    let first = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1, 0, 0;";
    let registers =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r2,%r2,%r2,%r2}, %rd1, 1, 1, 1, 0;";
    let body = PRODUCT.replacen(first, registers, 1);
    let out = good(product(&body));
    assert!(out.chunks(4).take(512).all(|c| f32::from_le_bytes(c.try_into().unwrap()) == 17.0));
    bad(
        product(&body.replacen("wgmma.commit_group", "mov.u32 %r2, 0; wgmma.commit_group", 1)),
        ReportKind::Race,
        "in the matrix A",
    );
}

/// A launch that may overlap others touches global memory after its wait.
#[test]
fn dependent_launches() {
    fn overlapping(body: &str) -> Case<'_> {
        Case { programmatic: true, ..plain(body, 64) }
    }
    good(plain("@%p7 st.global.u32 [%out], 7;", 64));
    good(overlapping("griddepcontrol.launch_dependents; griddepcontrol.wait; @%p7 st.global.u32 [%out], 7;"));
    // One thread may wait for all.
    good(overlapping("@%p7 griddepcontrol.wait; bar.sync 0; @%p7 st.global.u32 [%out], 7;"));
    for early in [
        "ld.global.u32 %r0, [%out];",
        "griddepcontrol.launch_dependents; ld.global.u32 %r0, [%out];",
        "ld.global.u32 %r0, [%out]; griddepcontrol.wait;",
        "@%p7 red.global.add.u32 [%out], 1; griddepcontrol.wait;",
        "@%p7 st.shared.v4.u32 [%s], {%t, %t, %t, %t}; fence.proxy.async; bar.sync 0; @%p7 cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 16; \
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; griddepcontrol.wait;",
        "@%p7 mbarrier.arrive.expect_tx.shared.b64 %rd0, [%b], 16; @%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes \
         [%s], [%out], 16, [%b]; L: mbarrier.try_wait.parity.shared.b64 %p1, [%b], 0; @!%p1 bra L; griddepcontrol.wait;",
    ] {
        bad(overlapping(early), ReportKind::Race, "griddepcontrol.wait");
    }
}

/// Elements of a vector are updated one by one, in every lane.
#[test]
fn atomics_on_vectors_update_each_element() {
    let words =
        |out: &Output| -> Vec<f32> { out.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect() };
    let zero = "setp.eq.u32 %p0, %t, 0; mov.f32 %f0, 0f00000000; @%p0 st.global.v4.f32 [%out], {%f0, %f0, %f0, %f0};\n\
                @%p0 st.global.v4.f32 [%out+16], {%f0, %f0, %f0, %f0}; bar.sync 0; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;\n";
    let sums = good(plain(
        &format!(
            "{zero} red.global.add.v4.f32 [%out], {{%f1, %f2, %f1, %f0}}; red.global.v2.f32.add [%out+16], {{%f2, %f1}};"
        ),
        32,
    ));
    assert_eq!(words(&sums)[..8], [32.0, 64.0, 32.0, 0.0, 64.0, 32.0, 0.0, 0.0]);
    // Each lane gets what was there before its own addition.
    let old = good(plain(
        &format!(
            "{zero} atom.global.add.v2.f32 {{%f3, %f4}}, [%out], {{%f1, %f2}}; mul.wide.u32 %rd0, %t, 8; add.s64 %rd0, %rd0, %out;\n\
         bar.sync 0; st.global.v2.f32 [%rd0+64], {{%f3, %f4}};"
        ),
        32,
    ));
    let mut first: Vec<f32> = words(&old)[16..80].chunks(2).map(|pair| pair[0]).collect();
    first.sort_by(f32::total_cmp);
    assert_eq!(first, (0..32).map(|i| i as f32).collect::<Vec<_>>());
    // 1.0 and 2.0 in f16; pairs, and halves by themselves.
    let pairs = format!("{zero} mov.b32 %r0, 0x40003C00; red.global.add.noftz.v2.f16x2 [%out], {{%r0, %r0}};");
    assert_eq!(good(plain(&pairs, 32))[..8], [0x00, 0x50, 0x00, 0x54, 0x00, 0x50, 0x00, 0x54]);
    let halves =
        format!("{zero} mov.b16 %h0, 0x3C00; mov.b16 %h1, 0xBC00; red.global.max.noftz.v2.f16 [%out], {{%h0, %h1}};");
    assert_eq!(good(plain(&halves, 32))[..4], [0x00, 0x3C, 0x00, 0x00]);
    bad(
        plain(&format!("{zero} red.global.add.v4.f32 [%out+8], {{%f1, %f1, %f1, %f1}};"), 32),
        ReportKind::Misaligned,
        "16 bytes",
    );
}

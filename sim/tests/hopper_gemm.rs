//! A hand-written product for sm_90a: TMA copies into a ring of three stages, one producer warp, four warps that
//! multiply, and a tensor store. It is correct for ragged sizes in every mode. If any single part is removed, the
//! simulator reports it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use tilec_sim::{
    Counters, Device, Landing, Launch, Options, Order, Program, Report, ReportKind, Swizzle, TensorElement, TensorMap,
};

const TILE: u32 = 64;
const STAGES: u32 = 3;
/// Bytes of a stage: 64 rows of 128 bytes of A, and of B.
const STAGE: u32 = 2 * 64 * 128;

fn kernel() -> String {
    [head(), producer(), consumer(), epilogue()].concat()
}

/// Up to the elected thread of the producer.
fn head() -> String {
    ".version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .align 64 .b8 mc[128], .param .u32 steps)
.maxntid 160, 1, 1
.minnctapersm 1
{
.reg .pred %p<8>;
.reg .b32 %r<40>;
.reg .b64 %rd<16>;
.reg .f32 %f<32>;
.shared .align 8 .b64 full[3];
.shared .align 8 .b64 empty[3];
mov.u32 %r0, %tid.x;
shr.u32 %r1, %r0, 5;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [full+16], 1;
mbarrier.init.shared.b64 [empty], 128;
mbarrier.init.shared.b64 [empty+8], 128;
mbarrier.init.shared.b64 [empty+16], 128;
fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
ld.param.u32 %r2, [steps];
mov.u32 %r3, dyn;
mov.u32 %r4, full;
mov.u32 %r5, empty;
mov.u32 %r6, %ctaid.y;
shl.b32 %r6, %r6, 6;
mov.u32 %r7, %ctaid.x;
shl.b32 %r7, %r7, 6;
mov.u32 %r8, 0;
mov.u32 %r9, 0;
mov.u32 %r10, 0;
setp.eq.u32 %p2, %r1, 4;
@!%p2 bra CONSUMER;
elect.sync _|%p3, -1;
@!%p3 bra END;
"
    .to_owned()
}

/// The ring is filled.
fn producer() -> String {
    format!(
        "mov.b64 %rd0, ma;
cvta.param.u64 %rd0, %rd0;
mov.b64 %rd1, mb;
cvta.param.u64 %rd1, %rd1;
PRODUCE: shl.b32 %r11, %r9, 3;
add.u32 %r12, %r4, %r11;
add.u32 %r13, %r5, %r11;
xor.b32 %r14, %r10, 1;
PWAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r13], %r14;
@!%p4 bra PWAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [%r12], {STAGE};
mad.lo.u32 %r15, %r9, {STAGE}, %r3;
shl.b32 %r16, %r8, 6;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r15], [%rd0, {{%r16, %r6}}], [%r12];
add.u32 %r17, %r15, 8192;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r17], [%rd1, {{%r16, %r7}}], [%r12];
add.u32 %r9, %r9, 1;
setp.eq.u32 %p5, %r9, {STAGES};
selp.b32 %r9, 0, %r9, %p5;
selp.b32 %r18, 1, 0, %p5;
xor.b32 %r10, %r10, %r18;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p6, %r8, %r2;
@%p6 bra PRODUCE;
bra END;
"
    )
}

/// What is in the ring is multiplied.
fn consumer() -> String {
    let mut products = String::new();
    let list: Vec<String> = (0..32).map(|i| format!("%f{i}")).collect();
    for step in 0..4 {
        let add = if step == 0 { "%p1" } else { "1" };
        writeln!(
            products,
            "add.s64 %rd5, %rd3, {o}; add.s64 %rd6, %rd4, {o};\n\
             wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{}}}, %rd5, %rd6, {add}, 1, 1, 0, 0;",
            list.join(","),
            o = 2 * step
        )
        .unwrap();
    }
    format!(
        "CONSUMER: shl.b32 %r11, %r9, 3;
add.u32 %r12, %r4, %r11;
add.u32 %r13, %r5, %r11;
CWAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r12], %r10;
@!%p4 bra CWAIT;
mad.lo.u32 %r15, %r9, {STAGE}, %r3;
shr.u32 %r16, %r15, 4;
and.b32 %r16, %r16, 0x3FFF;
cvt.u64.u32 %rd3, %r16;
or.b64 %rd3, %rd3, 0x4000004000010000;
add.s64 %rd4, %rd3, 512;
setp.ne.u32 %p1, %r8, 0;
wgmma.fence.sync.aligned;
{products}wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mbarrier.arrive.shared.b64 _, [%r13];
add.u32 %r9, %r9, 1;
setp.eq.u32 %p5, %r9, {STAGES};
selp.b32 %r9, 0, %r9, %p5;
selp.b32 %r18, 1, 0, %p5;
xor.b32 %r10, %r10, %r18;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p6, %r8, %r2;
@%p6 bra CONSUMER;
"
    )
}

/// The sums go out.
fn epilogue() -> String {
    let mut stores = String::new();
    for i in (0..32).step_by(2) {
        let at = 256 * 8 * (i >> 1 & 1) + 32 * (i >> 2);
        writeln!(stores, "st.shared.v2.f32 [%r20+{at}], {{%f{i}, %f{}}};", i + 1).unwrap();
    }
    format!(
        "bar.sync 1, 128;
and.b32 %r19, %r0, 31;
shr.u32 %r20, %r19, 2;
and.b32 %r21, %r19, 3;
shl.b32 %r22, %r1, 4;
add.u32 %r20, %r20, %r22;
shl.b32 %r20, %r20, 8;
shl.b32 %r21, %r21, 3;
add.u32 %r20, %r20, %r21;
add.u32 %r20, %r20, %r3;
{stores}fence.proxy.async.shared::cta;
bar.sync 2, 128;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra END;
mov.b64 %rd2, mc;
cvta.param.u64 %rd2, %rd2;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {{%r7, %r6}}], [%r3];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END: ret;
}}
"
    )
}

/// An f16 that holds a small integer.
fn half(v: i32) -> u16 {
    if v == 0 {
        return 0;
    }
    let (sign, m) = if v < 0 { (0x8000, v.unsigned_abs()) } else { (0, v.unsigned_abs()) };
    let e = m.ilog2();
    (sign | ((e + 15) << 10) | ((m << (10 - e)) & 0x3FF)) as u16
}

fn a(i: usize, k: usize) -> i32 {
    ((i * 7 + k * 3) % 5) as i32 - 2
}

fn b(j: usize, k: usize) -> i32 {
    ((k * 5 + j * 11) % 7) as i32 - 3
}

/// Runs a kernel; whether C is right, and the counts.
fn run(text: &str, [m, n, k]: [usize; 3], options: &Options) -> Result<(bool, Counters), Box<Report>> {
    let program = Program::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let mut put = |data: Vec<u8>| {
        let at = device.alloc(data.len() as u64).unwrap();
        device.upload(at, &data).unwrap();
        at
    };
    let pack = |rows: usize, f: fn(usize, usize) -> i32| -> Vec<u8> {
        (0..rows * k).flat_map(|x| half(f(x / k, x % k)).to_le_bytes()).collect()
    };
    let (da, db, dc) = (put(pack(m, a)), put(pack(n, b)), put(vec![0xFF; m * n * 4]));
    let operand = |at, rows: usize| TensorMap {
        swizzle: Swizzle::Bytes128,
        ..TensorMap::packed(TensorElement::F16, at, &[k as u64, rows as u64], &[TILE, TILE])
    };
    let c = TensorMap::packed(TensorElement::F32, dc, &[n as u64, m as u64], &[TILE, TILE]);
    let maps = [operand(da, m), operand(db, n), c];
    let mut params: Vec<Vec<u8>> = maps.iter().map(|map| map.encode().unwrap().to_vec()).collect();
    params.push((k as u32).div_ceil(TILE).to_le_bytes().to_vec());
    // A cluster has two blocks above each other.
    let rows = if text.contains("reqnctapercluster") { 2 } else { 1 };
    let grid = [(n as u32).div_ceil(TILE), (m as u32).div_ceil(TILE).next_multiple_of(rows), 1];
    let launch = Launch { entry: "k".into(), grid, block: [160, 1, 1], dynamic_smem: STAGES * STAGE, params };
    let counters = device.run(&program, &launch, options)?;
    let out = device.download(dc, m * n * 4).unwrap();
    let right = out.chunks(4).enumerate().all(|(x, bytes)| {
        let want: i32 = (0..k).map(|k| a(x / n, k) * b(x % n, k)).sum();
        f32::from_le_bytes(bytes.try_into().unwrap()) == want as f32
    });
    Ok((right, counters))
}

fn modes() -> impl Iterator<Item = Options> {
    let options = |landing| (0..2).map(move |seed| Options { seed, landing, fuel: 10_000_000, ..Options::default() });
    Landing::ALL.into_iter().flat_map(options)
}

#[test]
fn right_at_ragged_sizes_in_every_mode() {
    for size in [[64, 64, 64], [70, 100, 136], [64, 128, 520]] {
        for options in modes() {
            let (right, counters) =
                run(&kernel(), size, &options).unwrap_or_else(|r| panic!("{size:?} {options:?}: {r}"));
            assert!(right, "{size:?} {options:?}");
            let [m, n, k] = size.map(|s| s.div_ceil(64) as u64);
            assert_eq!(counters.mma, m * n * k * 4 * 4, "four warps, four steps");
            let loads = counters.sum("cp.async.bulk.tensor.2d.shared::cluster");
            assert_eq!((loads.boxes, loads.bulk_bytes), (2 * m * n * k, 16384 * m * n * k));
            let stores = counters.sum("cp.async.bulk.tensor.2d.global");
            assert_eq!((stores.boxes, stores.bulk_bytes), (m * n, 16384 * m * n));
        }
    }
}

#[test]
fn host_threads_and_the_order_of_blocks_do_not_matter() {
    let one = run(&kernel(), [70, 200, 72], &Options::default()).unwrap();
    let other = Options { threads: 3, order: Order::Reverse, ..Options::default() };
    assert_eq!(run(&kernel(), [70, 200, 72], &other).unwrap(), one);
}

/// The removed text, its replacement, and the possible kinds of reports. In every mode there is a report, or C is wrong
/// (`None`: also allowed).
const MUTANTS: &[(&str, &str, &[ReportKind])] = {
    use ReportKind::{Deadlock, Divergence, Invalid, Misaligned, OutOfBounds, Race, Undefined, Uninitialised};
    &[
        (
            "arrive.expect_tx.shared.b64 _, [%r12], 16384",
            "arrive.shared.b64 _, [%r12]",
            &[Deadlock, Race, Uninitialised],
        ),
        ("_, [%r12], 16384", "_, [%r12], 16368", &[Deadlock, Invalid, Race]),
        ("_, [%r12], 16384", "_, [%r12], 8192", &[Deadlock, Race, Uninitialised, Invalid]),
        ("_, [%r12], 16384", "_, [%r12], 24576", &[Deadlock]),
        // Parities: of the producer, of the consumer, and rings that never turn.
        ("xor.b32 %r14, %r10, 1;", "mov.b32 %r14, %r10;", &[Deadlock]),
        ("[%r12], %r10;", "[%r12], %r14;", &[Undefined, Race, Uninitialised, Deadlock]),
        ("PWAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r13], %r14;\n@!%p4 bra PWAIT;", "", &[Race, Invalid]),
        ("CWAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r12], %r10;\n@!%p4 bra CWAIT;", "", &[Race, Uninitialised]),
        ("mbarrier.arrive.shared.b64 _, [%r13];", "", &[Deadlock]),
        // One warp of the four may come late.
        ("[empty], 128", "[empty], 96", &[Invalid, Race, Deadlock]),
        ("fence.mbarrier_init.release.cluster;", "", &[Race]),
        ("READY: bar.sync 0;", "READY:", &[Race, Invalid, Deadlock]),
        ("wgmma.fence.sync.aligned;", "", &[Race]),
        ("wgmma.commit_group.sync.aligned;", "", &[Invalid]),
        ("wgmma.wait_group.sync.aligned 0;", "", &[Race, Invalid]),
        ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", &[Race, Invalid]),
        ("fence.proxy.async.shared::cta;", "", &[Race]),
        ("fence.proxy.async.shared::cta;", "fence.proxy.async.global;", &[Race]),
        (
            "fence.proxy.async.shared::cta;\nbar.sync 2, 128;",
            "bar.sync 2, 128;\nfence.mbarrier_init.release.cluster;",
            &[Race],
        ),
        ("bar.sync 2, 128;", "", &[Race, Uninitialised]),
        ("bar.sync 1, 128;", "", &[Race]),
        ("cp.async.bulk.wait_group.read 0;", "", &[Invalid]),
        ("cp.async.bulk.commit_group;", "", &[Invalid]),
        // Offsets of the descriptors: the stride by 64 and by 16 bytes too small, the leading one without a meaning.
        ("0x4000004000010000", "0x4000003C00010000", &[]),
        ("0x4000004000010000", "0x4000002000010000", &[]),
        ("0x4000004000010000", "0x8000004000010000", &[]),
        ("0x4000004000010000", "0x4000004000014000", &[Invalid]),
        ("elect.sync _|%p3, -1;\n@!%p3 bra END;", "", &[Invalid, Race, Deadlock]),
        ("cvta.param.u64 %rd0, %rd0;", "", &[Invalid, OutOfBounds]),
        ("add.u32 %r17, %r15, 8192;", "add.u32 %r17, %r15, 8208;", &[Misaligned]),
        ("add.u32 %r17, %r15, 8192;", "add.u32 %r17, %r15, 8064;", &[Race]),
        (
            "@!%p2 bra CONSUMER;",
            "setp.eq.u32 %p3, %r1, 3;\n@%p3 bra END;\n@!%p2 bra CONSUMER;",
            &[Deadlock, Divergence],
        ),
        ("and.b32 %r16, %r16, 0x3FFF;", "add.u32 %r16, %r16, %r19;", &[Undefined]),
    ]
};

#[test]
fn mutants_are_reported() {
    let (text, mut wrong) = (kernel(), Vec::new());
    for (cut, with, kinds) in MUTANTS {
        let mutant = text.replacen(cut, with, 1);
        assert_ne!(mutant, text, "{cut}");
        for Options { seed, landing, .. } in modes() {
            let options = Options { seed, landing, fuel: 10_000_000, ..Options::default() };
            match run(&mutant, [64, 64, 520], &options) {
                Err(report) if kinds.contains(&report.kind) => {}
                Ok((false, _)) if kinds.is_empty() => {}
                Err(report) => wrong.push(format!("{cut} -> {with}: {landing:?} {seed}: {report}")),
                Ok(_) => wrong.push(format!("{cut} -> {with}: {landing:?} {seed}: no report")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same in clusters of two blocks, the first of which loads B for both.
fn clustered() -> String {
    let sync = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;";
    let mut text = kernel();
    for (from, to) in [
        (".minnctapersm 1\n", ".minnctapersm 1\n.reqnctapercluster 1, 2, 1\n"),
        (
            ".reg .f32 %f<32>;",
            ".reg .f32 %f<32>;\n.reg .b16 %h<2>;\nmov.u32 %r30, %cluster_ctarank;\nsetp.eq.u32 %p7, %r30, 0;\n\
          selp.b32 %r31, 256, 128, %p7;\nmov.b16 %h0, 3;",
        ),
        ("[empty], 128", "[empty], %r31"),
        ("[empty+8], 128", "[empty+8], %r31"),
        ("[empty+16], 128", "[empty+16], %r31"),
        ("READY: bar.sync 0;", &format!("READY: {sync}")),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r17], [%rd1, {%r16, %r7}], [%r12];",
            "@%p7 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster \
          [%r17], [%rd1, {%r16, %r7}], [%r12], %h0;",
        ),
        (
            "mbarrier.arrive.shared.b64 _, [%r13];",
            "mbarrier.arrive.shared.b64 _, [%r13];\nmapa.shared::cluster.u32 %r32, %r13, 0;\n\
          @!%p7 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r32];",
        ),
        ("END: ret;", &format!("END: {sync}\nret;")),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

#[test]
fn clusters_share_a_load() {
    for size in [[128, 64, 64], [70, 100, 392], [150, 64, 136]] {
        for options in modes() {
            let (right, counters) =
                run(&clustered(), size, &options).unwrap_or_else(|r| panic!("{size:?} {options:?}: {r}"));
            assert!(right, "{size:?} {options:?}");
            let [m, n, k] = size.map(|s| s.div_ceil(64) as u64);
            let m = m.next_multiple_of(2);
            let loads = counters.sum("cp.async.bulk.tensor.2d.shared::cluster");
            assert_eq!(loads.boxes, m * n * k + m / 2 * n * k, "half of the loads of B");
        }
    }
    let text = clustered();
    // Initialised mbarriers are all that is published there.
    let relaxed = text.replacen("READY: barrier.cluster.arrive.release", "READY: barrier.cluster.arrive.relaxed", 1);
    assert_ne!(relaxed, text);
    for options in modes() {
        assert!(run(&relaxed, [128, 64, 392], &options).unwrap_or_else(|r| panic!("{options:?}: {r}")).0);
    }
    for (cut, with) in [
        // The first block overtakes the consumers of the second.
        ("@!%p7 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r32];", ""),
        ("selp.b32 %r31, 256, 128, %p7;", "mov.u32 %r31, 128;"),
        ("mov.b16 %h0, 3;", "mov.b16 %h0, 1;"),
        ("mov.b16 %h0, 3;", "mov.b16 %h0, 2;"),
        ("@%p7 cp.async.bulk", "cp.async.bulk"),
        (
            "fence.mbarrier_init.release.cluster;\nREADY: barrier.cluster.arrive.release",
            "READY: barrier.cluster.arrive.relaxed",
        ),
        // Arrivals at mbarriers of the other block may be under way.
        ("END: barrier.cluster.arrive.release", "END: barrier.cluster.arrive.relaxed"),
        ("END: barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;", "END:"),
    ] {
        let mutant = text.replacen(cut, with, 1);
        assert_ne!(mutant, text, "{cut}");
        for options in modes() {
            let ended = run(&mutant, [128, 64, 392], &options).map(|(right, _)| right);
            assert!(ended.is_err(), "{cut} -> {with}: {options:?}: {ended:?}");
        }
    }
}

#[test]
fn a_deadlock_names_what_is_missing() {
    let mutant = kernel().replacen("_, [%r12], 16384", "_, [%r12], 24576", 1);
    let report = run(&mutant, [64, 64, 64], &Options::default()).unwrap_err();
    for part in ["phase 0", "0 of 1 arrivals pending", "8192 of 24576 bytes pending", "parity 0"] {
        assert!(report.message.contains(part), "{part}: {report}");
    }
}

//! The results of the operators on fences, mbarriers, named barriers, TMA copies and wgmma, word for word.

use super::edit::Unit;
use super::operators::OPERATORS;
use super::slice::Slices;
use super::text;

/// All changes of the last statement of `body` as `operator/variant: text`.
fn changes(body: &str) -> Vec<String> {
    changes_in_clusters(body, 2)
}

fn changes_in_clusters(body: &str, blocks: u32) -> Vec<String> {
    let ptx = format!(".visible .entry k()\n{{\n{body}\n}}\n");
    let body = text::body(&ptx);
    let unit = Unit { slices: Slices::new(&body.statements), threads: 96, blocks, partial_barriers: true };
    let s = body.statements.last().unwrap();
    let all = OPERATORS.iter().flat_map(|o| (o.edits)(&unit, s).into_iter().map(move |e| (o.name, e)));
    all.map(|(name, e)| format!("{name}/{}: {}", e.variant, e.text.trim_end_matches(';').trim_end())).collect()
}

#[test]
fn fences_are_deleted_and_narrowed() {
    assert_eq!(changes("membar.gl;"), ["fence/delete: ", "fence/smaller scope: membar.cta"]);
    assert_eq!(changes("membar.sys;"), ["fence/delete: ", "fence/smaller scope: membar.cta"]);
    assert_eq!(changes("fence.acq_rel.gpu;"), ["fence/delete: ", "fence/smaller scope: fence.acq_rel.cta"]);
    assert_eq!(changes("membar.cta;"), ["fence/delete: "]);
}

#[test]
fn phases_arrivals_and_counts_are_changed() {
    assert_eq!(
        changes("mbarrier.init.shared.b64 [%r1], 32;"),
        [
            "mbarrier/delete: ",
            "mbarrier/count +1: mbarrier.init.shared.b64 [%r1], 33",
            "mbarrier/count -1: mbarrier.init.shared.b64 [%r1], 31"
        ]
    );
    assert_eq!(changes("mbarrier.init.shared.b64 [%r1], %r2;"), ["mbarrier/delete: "]);
    assert_eq!(
        changes("mbarrier.arrive.shared.b64 %rd1, [%r1];"),
        ["mbarrier/delete: ", "mbarrier/other barrier: mbarrier.arrive.shared.b64 %rd1, [%r1+8]"]
    );
    assert_eq!(
        changes("mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1+8], 512;"),
        [
            "mbarrier/delete: ",
            "mbarrier/other barrier: mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1+16], 512",
            "mbarrier/bytes +16: mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1+8], 528",
            "mbarrier/bytes -16: mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1+8], 496",
            "mbarrier/half of the bytes: mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1+8], 256",
            "mbarrier/no bytes: mbarrier.arrive.shared.b64 %rd1, [%r1+8]"
        ]
    );
    assert_eq!(
        changes("cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];")[..2],
        ["mbarrier/delete: ", "mbarrier/with increment: cp.async.mbarrier.arrive.shared.b64 [%r1]"]
    );
}

#[test]
fn clusters_meet_less_or_elsewhere() {
    assert_eq!(
        changes("barrier.cluster.arrive.release.aligned;"),
        ["cluster/delete: ", "cluster/relaxed: barrier.cluster.arrive.relaxed.aligned"]
    );
    assert_eq!(changes("barrier.cluster.arrive.relaxed.aligned;"), ["cluster/delete: "]);
    assert_eq!(changes("barrier.cluster.wait.acquire.aligned;"), ["cluster/delete: "]);
    assert_eq!(
        changes("mapa.shared::cluster.u32 %r1, %r2, %r3;"),
        [
            "cluster/own block: mov.u32 %r1, %r2",
            "cluster/first block: mapa.shared::cluster.u32 %r1, %r2, 0",
            "cluster/other block: { .reg .b32 %mutant; xor.b32 %mutant, %r3, 1; mapa.shared::cluster.u32 %r1, %r2, %mutant; }"
        ]
    );
    assert_eq!(
        changes("mov.u32 %r1, %cluster_ctarank;"),
        [
            "cluster/first rank: mov.b32 %r1, 0",
            "cluster/other rank: { mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1; }"
        ]
    );
    let copy = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r2, %r3}], [%r4], ";
    let masks: Vec<String> = changes(&format!("{copy}5;")).into_iter().filter(|c| c.starts_with("cluster")).collect();
    let want = [("not the first", 4), ("not the last", 1), ("one more", 15)];
    assert_eq!(masks, want.map(|(name, mask)| format!("cluster/{name}: {copy}{mask}")));
    // Masks of a row or a column of four blocks.
    let masks: Vec<String> =
        changes_in_clusters(&format!("{copy}%h0;"), 4).into_iter().filter(|c| c.starts_with("cluster")).collect();
    let with = |how: &str| format!("{{ .reg .b16 %mutant; {how} {copy}%mutant; }}");
    let highest = ".reg .b32 %mutant1; cvt.u32.u16 %mutant1, %h0; bfind.u32 %mutant1, %mutant1; shl.b32 %mutant1, 1, %mutant1; \
                   cvt.u16.u32 %mutant, %mutant1; xor.b16 %mutant, %mutant, %h0;";
    let want = [
        ("not the first", with("sub.s16 %mutant, %h0, 1; and.b16 %mutant, %mutant, %h0;")),
        ("not the last", with(highest)),
        ("the others", with("xor.b16 %mutant, %h0, 15;")),
        ("all blocks", format!("{copy}15")),
    ];
    assert_eq!(masks, want.map(|(name, text)| format!("cluster/{name}: {text}")));
    let ranks = changes_in_clusters("mov.u32 %r1, %cluster_ctarank;", 4);
    assert_eq!(ranks[2..], ["cluster/rank 2 further: { mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 2; }"]);
    let waits = changes("cp.async.bulk.wait_group 0;");
    assert_eq!(waits[2], "wait/sources only: cp.async.bulk.wait_group.read 0");
}

#[test]
fn parities_are_flipped_and_waits_pass_at_once() {
    assert_eq!(
        changes("mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;"),
        [
            "mbarrier/parity: mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 1",
            "mbarrier/wait gone: setp.eq.b32 %p1, 0, 0",
            "mbarrier/other barrier: mbarrier.test_wait.parity.shared.b64 %p1, [%r1+8], 0"
        ]
    );
    let changed = changes("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 1000;");
    assert!(
        changed[0].contains("xor.b32 %mutant, %r2, 1;") && changed[0].contains("[%r1], %mutant, 1000;"),
        "{changed:?}"
    );
    assert_eq!(changed.len(), 3, "{changed:?}");
    // The initial phase of a wait, and no other value that a move sets.
    let wait = "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;\n";
    assert_eq!(changes(&format!("{wait} mov.b32 %r2, 1;")), ["mbarrier/first phase: mov.b32 %r2, 0"]);
    assert_eq!(changes(&format!("{wait} mov.b32 %r3, 1;")), [""; 0]);
}

#[test]
fn tensor_copies_go_elsewhere() {
    let copy = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";
    let moved = |variant: &str, operands: &str| format!("tensor/{variant}: {copy} {operands}");
    let added = |n: usize, register: &str, operands: &str| {
        let add = format!("{{ .reg .b32 %mutant; add.s32 %mutant, {register}, 1;");
        format!("tensor/coordinate {n} +1: {add} {copy} {operands}; }}")
    };
    assert_eq!(
        changes(&format!("{copy} [%r1], [%rd1, {{%r2, %r3}}], [%r4+8];")),
        [
            "tensor/delete: ".to_owned(),
            moved("shared memory +128", "[%r1+128], [%rd1, {%r2, %r3}], [%r4+8]"),
            added(0, "%r2", "[%r1], [%rd1, {%mutant, %r3}], [%r4+8]"),
            added(1, "%r3", "[%r1], [%rd1, {%r2, %mutant}], [%r4+8]"),
            moved("coordinates turned", "[%r1], [%rd1, {%r3, %r2}], [%r4+8]"),
            moved("other barrier", "[%r1], [%rd1, {%r2, %r3}], [%r4+16]"),
        ]
    );
}

#[test]
fn fields_of_descriptors_are_changed() {
    // Leading offset 2, stride 64, swizzle of 128 bytes.
    let bits = |leading: u64, stride: u64, mode: u64| (leading << 16 | stride << 32 | mode << 62) as i64;
    let product =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %p1, 1, 1, 0, 1;";
    let or = |value: i64| format!("or.b64 %rd1, %rd3, {value}");
    let changed = changes(&format!("{product} {};", or(bits(2, 64, 1))));
    let want = [
        ("leading offset +16", bits(3, 64, 1)),
        ("leading offset doubled", bits(4, 64, 1)),
        ("stride +16", bits(2, 65, 1)),
        ("stride doubled", bits(2, 128, 1)),
        ("strides exchanged", bits(64, 2, 1)),
        ("base offset", bits(2, 64, 1) | 1 << 49),
        ("swizzle none", bits(2, 64, 0)),
        ("swizzle 64 bytes", bits(2, 64, 2)),
        ("swizzle 32 bytes", bits(2, 64, 3)),
    ];
    assert_eq!(changed, want.map(|(name, value)| format!("descriptor/{name}: {}", or(value))));
    // A step of a descriptor is a stride.
    assert_eq!(
        changes(&format!("{product} add.s64 %rd2, %rd3, 2;")),
        ["stride/2 to 3: add.s64 %rd2, %rd3, 3", "stride/2 to 4: add.s64 %rd2, %rd3, 4"]
    );
}

#[test]
fn products_of_warpgroups_are_changed() {
    let product =
        |sums: &str, rest: &str| format!("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{sums}}}, {rest}");
    let changed = changes(&format!("{};", product("%f0, %f1, %f2, %f3", "%rd1, %rd2, %p1, 1, 1, 0, 1")));
    let anew = product("%f0, %f1, %f2, %f3", "%rd1, %rd2, %mutant, 1, 1, 0, 1");
    let want = [
        ("delete", String::new()),
        ("first two sums", product("%f1, %f0, %f2, %f3", "%rd1, %rd2, %p1, 1, 1, 0, 1")),
        ("last two sums", product("%f0, %f1, %f3, %f2", "%rd1, %rd2, %p1, 1, 1, 0, 1")),
        ("operands exchanged", product("%f0, %f1, %f2, %f3", "%rd2, %rd1, %p1, 1, 1, 0, 1")),
        ("sums anew", format!("{{ .reg .pred %mutant; setp.ne.b32 %mutant, 0, 0; {anew}; }}")),
        ("sign of a", product("%f0, %f1, %f2, %f3", "%rd1, %rd2, %p1, -1, 1, 0, 1")),
        ("sign of b", product("%f0, %f1, %f2, %f3", "%rd1, %rd2, %p1, 1, -1, 0, 1")),
        ("order of a", product("%f0, %f1, %f2, %f3", "%rd1, %rd2, %p1, 1, 1, 1, 1")),
        ("order of b", product("%f0, %f1, %f2, %f3", "%rd1, %rd2, %p1, 1, 1, 0, 0")),
    ];
    assert_eq!(changed, want.map(|(name, text)| format!("product/{name}: {text}")));
    // An accumulator is read as well as written: its initial value matters.
    let sums = product("%f0", "%rd1, %rd2, %p1");
    let text = format!(".visible .entry k()\n{{\nmov.f32 %f0, 0f00000000;\n{sums};\nst.global.f32 [%rd3], %f0;\n}}\n");
    let body = text::body(&text);
    assert_eq!(super::liveness::needed(&body), [true; 3]);
}

#[test]
fn other_grids_are_waited_for() {
    assert_eq!(changes("griddepcontrol.wait;"), ["wait/delete: "]);
    assert!(changes("griddepcontrol.launch_dependents;").is_empty());
}

#[test]
fn registers_are_kept_or_asked_for() {
    assert_eq!(
        changes("setmaxnreg.inc.sync.aligned.u32 232;"),
        ["registers/delete: ", "registers/+8: setmaxnreg.inc.sync.aligned.u32 240"]
    );
}

#[test]
fn named_barriers_change_their_number_and_count() {
    assert_eq!(
        changes("bar.sync 1, 96;"),
        [
            "barrier/delete: ",
            "barrier/warp only: bar.warp.sync 0xffffffff",
            "barrier/arrive only: bar.arrive 1, 96",
            "barrier/fewer threads: bar.sync 1, 64",
            "barrier/other barrier: bar.sync 2, 96"
        ]
    );
    assert_eq!(changes("bar.arrive 15, 96;"), ["barrier/delete: ", "barrier/other barrier: bar.arrive 0, 96"]);
}

#[test]
fn matrices_are_stored_elsewhere_and_turned() {
    let plain = "stmatrix.sync.aligned.m8n8.x2.shared.b16";
    assert_eq!(
        changes(&format!("{plain} [%r1+32], {{%r2, %r3}};")),
        [
            format!("offset/destination +1: {plain} [%r1+48], {{%r2, %r3}}"),
            format!("fragment/first two: {plain} [%r1+32], {{%r3, %r2}}"),
            "transpose/transposed: stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r1+32], {%r2, %r3}".to_owned(),
        ]
    );
    // The stored value and the address are read, not written: the statements that compute them are needed.
    let body = text::body(&format!("k()\n{{\n{plain} [%r1+32], {{%r2, %r3}};\n}}\n"));
    let s = &body.statements[0];
    assert_eq!((s.writes(), s.reads()), (vec![], vec!["%r1", "%r2", "%r3"]));
}

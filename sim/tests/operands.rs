//! Legal operands: each rule is broken once, with the text of its report, next to a similar legal operand.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program, Report, ReportKind};

/// `%out`: 1024 bytes of the host; `%s`: shared memory, `%b`: an mbarrier for one arrival; `%t`: the thread, `%p7`: it is the first; `%u`, `%U`, `%f9`, `%h9`
/// and `%p6` have no value.
fn run(body: &str, threads: u32) -> Result<(), Box<Report>> {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.const .align 4 .b32 fixed[4] = {{1, 2, 3, 4}};\n\
         .visible .entry k(.param .u64 out, .param .align 64 .b8 map[128])\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<10>;\n.reg .b32 %r<32>, %t, %b, %s, %u;\n.reg .b64 %rd<16>, %out, %U;\n.reg .f32 %f<10>;\n\
         .shared .align 128 .b8 sm[4096];\n.shared .align 8 .b64 bar[2];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %b, bar;\nmov.u32 %s, sm;\nsetp.eq.u32 %p7, %t, 0;\n@%p7 mbarrier.init.shared.b64 [%b], 1;\n\
         fence.proxy.async;\nbar.sync 0;\n{body}\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(1024).unwrap();
    device.upload(out, &[0; 1024]).unwrap();
    let params = vec![out.to_le_bytes().to_vec(), vec![0; 128]];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [threads, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options { fuel: 100_000, ..Options::default() }).map(|_| ())
}

#[track_caller]
fn bad(body: &str, threads: u32, kind: ReportKind, says: &str) {
    let report = run(body, threads).expect_err(body);
    assert!(report.kind == kind && report.message.contains(says), "{body}\n{report}");
}

#[track_caller]
fn good(body: &str, threads: u32) {
    run(body, threads).unwrap_or_else(|r| panic!("{body}\n{r}"));
}

/// The body with each of these in place of `X`, of which the first is right.
#[track_caller]
fn broken(body: &str, threads: u32, right: &str, wrong: &[(&str, ReportKind, &str)]) {
    good(&body.replace('X', right), threads);
    for (wrong, kind, says) in wrong {
        bad(&body.replace('X', wrong), threads, *kind, says);
    }
}

use ReportKind::{Divergence, Invalid, OutOfBounds, Undefined, Uninitialised};

#[test]
fn addresses_are_of_the_memory_that_the_instruction_takes() {
    let generic = "mov.u64 %rd1, bar; cvta.shared.u64 %rd1, %rd1; mbarrier.arrive.b64 %rd0, [X];";
    broken(generic, 1, "%rd1", &[("%out", OutOfBounds, "is no address of shared memory")]);
    let atomic = "{ .local .align 8 .b8 l[8]; mov.u64 %rd1, l; cvta.local.u64 %rd1, %rd1; atom.add.u32 %r0, [X], 1; }";
    broken(atomic, 1, "%out", &[("%rd1", OutOfBounds, "outside memory that atomics work on")]);
    let store = "mov.u64 %rd1, fixed; cvta.const.u64 %rd1, %rd1; st.u32 [X], %t;";
    broken(store, 1, "%out", &[("%rd1", OutOfBounds, "this is a constant")]);
    let parameter = "mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; st.u32 [X], %t;";
    broken(parameter, 1, "%out", &[("%rd1", OutOfBounds, "outside writable memory")]);
    let discard = "mov.u64 %rd1, sm; cvta.shared.u64 %rd1, %rd1; discard.L2 [X], 128;";
    broken(discard, 1, "%out", &[("%rd1", OutOfBounds, "global memory, which alone is discarded")]);
    let map = "mov.u64 %rd1, sm; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, X, 0;";
    broken(
        map,
        1,
        "%rd1",
        &[("%out", OutOfBounds, "outside shared memory"), ("%U", Undefined, "an operand is undefined")],
    );
    broken(
        "mapa.shared::cluster.u32 %r0, %s, X;",
        1,
        "0",
        &[("%u", Undefined, "an operand"), ("1", Invalid, "block 1 of a cluster of 1")],
    );
    broken("getctarank.shared::cluster.u32 %r0, X;", 1, "%s", &[("%u", Undefined, "an operand is undefined")]);
    broken(
        "getctarank.shared::cluster.u32 %r0, X;",
        1,
        "%s",
        &[("0x80000000", OutOfBounds, "outside the shared memory of the cluster")],
    );
}

#[test]
fn what_says_where_to_go_has_a_value() {
    let index = "T: .branchtargets A, B; brx.idx X, T; A: mov.u32 %r1, 1; B:";
    broken(
        index,
        32,
        "1",
        &[("%u", Undefined, "the index of a branch is undefined"), ("%t", Invalid, "has no target")],
    );
    let shuffle = "shfl.sync.idx.b32 %r0, %t, X, -1;";
    broken(
        shuffle,
        32,
        "3, 31",
        &[("%u, 31", Undefined, "the lane to read from"), ("3, %u", Undefined, "the lane to read from")],
    );
}

#[test]
fn sizes_and_sources_of_copies_have_values() {
    let copy = "mov.u32 %r1, 12; cp.async.ca.shared.global [%s], [%out], 8, X; cp.async.wait_all;";
    broken(
        copy,
        1,
        "4",
        &[("%u", Undefined, "the size of a copy"), ("%r1", Invalid, "a copy of 8 bytes cannot read 12")],
    );
    let ignored = "setp.eq.u32 %p5, %t, 0; cp.async.ca.shared.global [%s], [%out], 8, X; cp.async.wait_all;";
    broken(ignored, 1, "%p5", &[("%p6", Undefined, "the predicate that ignores the source")]);
    let load = "mbarrier.arrive.expect_tx.shared.b64 _, [%b], 64; mov.u32 %r1, 64;\n\
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%out], X, [%b];\n\
        L: mbarrier.try_wait.parity.shared.b64 %p0, [%b], 0; @!%p0 bra L;";
    broken(load, 1, "%r1", &[("%u", Undefined, "the size of a bulk copy"), ("0", Invalid, "a bulk copy of 0 bytes")]);
    let over = format!("mbarrier.init.shared.b64 [%s+16], 1; fence.proxy.async; {}", load.replace('X', "64"));
    bad(&over, 1, Invalid, "touch an mbarrier");
    let store = "FILL st.shared.v4.u32 [%s+16], {%t, %t, %t, %t}; fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 32;\n\
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
    good(&store.replace("FILL", "st.shared.v4.u32 [%s], {%t, %t, %t, %t};"), 1);
    bad(&store.replace("FILL", ""), 1, Uninitialised, "was never written");
}

#[test]
fn registers_of_matrices_have_values() {
    let store = "mov.u32 %r0, %laneid; shl.b32 %r0, %r0, 4; add.u32 %r0, %r0, %s; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r0], {X};";
    broken(store, 32, "%t", &[("%u", Undefined, "a register of `stmatrix`")]);
    let sum = "mov.f32 %f0, 0f00000000; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%out], {%f0, %f0, %f0, %f0, %f0, %f0, %f0, X}, 16;";
    broken(sum, 32, "%f0", &[("%f9", Undefined, "an element stored is undefined")]);
    bad(
        "mov.f32 %f0, 0f00000000; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%out], {%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0}, 16;",
        16,
        Divergence,
        "the block has fewer",
    );
    let fence = "mov.u32 %r0, 0; mov.u32 %r1, 64; setp.eq.u32 %p5, %r0, 0; mov.u64 %rd5, 64; shr.u32 %r9, %t, 5; cvt.u64.u32 %rd6, %r9; add.s64 %rd6, %rd6, 64; and.b32 %r8, %t, 1;\n\
        cvt.u64.u32 %rd7, %r8; setp.eq.u32 %p4, %r8, 0;\n\
        shl.b32 %r7, %t, 4; add.u32 %r7, %r7, %s; st.shared.v4.u32 [%r7], {%r0, %r0, %r0, %r0}; st.shared.v4.u32 [%r7+2048], {%r0, %r0, %r0, %r0};\n\
        fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;\n";
    let end = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";
    let product = format!(
        "{fence} wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, X, 1, 1, 0, 0;\n{end}"
    )
    .replace("{%f0", "{%f0");
    let product = product.replace(
        "wgmma.fence",
        "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; wgmma.fence",
    );
    broken(
        &product,
        128,
        "%rd5, %rd5, %p5",
        &[
            ("%rd5, %rd5, %p4", Divergence, "the predicate that says whether to add differs"),
            ("%rd5, %rd5, %p6", Divergence, "or is undefined"),
            ("%rd7, %rd5, %p5", Divergence, "the descriptor of A is 0x0 in lane 0 and 0x1 in lane 1"),
            ("%U, %rd5, %p5", Undefined, "the descriptor of A is undefined"),
            ("%rd5, %U, %p5", Undefined, "the descriptor of B is undefined"),
            ("%rd6, %rd5, %p5", Divergence, "with other operands"),
        ],
    );
    let registers = product.replace("X, 1, 1, 0, 0", "{%r0, %r0, %r0, X}, %rd5, %p5, 1, 1, 0");
    broken(&registers, 128, "%r1", &[("%u", Undefined, "a register of A is undefined")]);
    // One warp of the four has more products than the others, or fewer.
    let once_more = product.replace("X", "%rd5, %rd5, %p5");
    let again = format!(
        "{once_more} setp.ne.u32 %p3, %r9, 2; @!%p3 bra E; wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; E:"
    );
    bad(&again, 128, Divergence, "as the others of its group of four have");
    let far = "setp.eq.u32 %p3, %t, 999; shr.u32 %r9, %t, 5; setp.eq.u32 %p3, %r9, 2; @!%p3 bra E; mov.u32 %r10, 0; M: wgmma.fence.sync.aligned; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 5000; @%p2 bra M; E:";
    bad(far, 128, Divergence, "group of four");
}

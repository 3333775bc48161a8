//! Which byte a report names: the first that raced, or is outside, or was never written, not the first of the access.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program, Report, ReportKind};

/// `%out` has 1000 bytes of zeros, `%t` is the thread. `sm` has 1000 bytes that are zero after a barrier, `raw` has 24
/// unwritten bytes.
fn run(body: &str, seed: u64) -> Box<Report> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<32>, %t;\n.reg .b64 %rd<8>, %out;\n\
         .shared .align 16 .b8 sm[1000];\n.shared .align 16 .b8 raw[24];\n.local .align 16 .b8 loc[24];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.b16 %h1, 7;\nmov.b32 %r30, 0;\nmov.u32 %r31, sm;\n\
         mad.lo.u32 %r31, %t, 8, %r31;\nsetp.lt.u32 %p6, %t, 125;\n@%p6 st.shared.v2.u32 [%r31], {{%r30, %r30}};\nbar.sync 0;\n\
         setp.eq.u32 %p0, %t, 0;\nsetp.eq.u32 %p1, %t, 32;\n{body}\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(1000).unwrap();
    device.upload(out, &[0; 992]).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1, 1, 1], block: [128, 1, 1], dynamic_smem: 0, params };
    let mut report = device.run(&program, &launch, &Options { seed, ..Options::default() }).expect_err(body);
    // Global addresses count from `out`.
    report.address = report.address.map(|address| address.checked_sub(out).unwrap_or(address));
    report
}

#[track_caller]
fn at(body: &str, kind: ReportKind, byte: u64) {
    for seed in 0..4 {
        let report = run(body, seed);
        assert_eq!((report.kind, report.address), (kind, Some(byte)), "{body}\n{report}");
    }
}

#[test]
fn races_name_the_byte_that_both_touch() {
    for (space, base) in [("shared", "sm"), ("global", "%out")] {
        let read = format!("@%p1 ld.{space}.v4.u32 {{%r0, %r1, %r2, %r3}}, [{base}+16];");
        let word = format!("@%p1 ld.{space}.u32 %r0, [{base}+24];");
        let write = format!("@%p1 st.{space}.u32 [{base}+24], %r30;");
        for theirs in [&read, &word, &write] {
            for (mine, byte) in [("u8", 27), ("u16", 26)] {
                at(&format!("@%p0 st.{space}.{mine} [{base}+{byte}], %h1; {theirs}"), ReportKind::Race, byte);
            }
        }
        // Two bytes of one word, of which one is ordered.
        let both =
            format!("@%p0 st.{space}.u8 [{base}+25], %h1; bar.sync 0; @%p0 st.{space}.u8 [{base}+26], %h1; {word}");
        at(&both, ReportKind::Race, 26);
        at(&format!("@%p0 st.{space}.u32 [{base}+24], %r30; {read}"), ReportKind::Race, 24);
        // After strong accesses, too.
        let strong = format!(
            "@%p0 st.{space}.u8 [{base}+26], %h1; @%p0 st.volatile.{space}.u32 [{base}+24], %r30; bar.warp.sync -1;\n\
             @%p1 ld.volatile.{space}.u32 %r0, [{base}+24];"
        );
        at(&strong, ReportKind::Race, 26);
    }
    let copied = "@%p0 cp.async.cg.shared.global [sm+16], [%out], 16; @%p0 st.shared.u16 [sm+30], %h1;";
    at(copied, ReportKind::Race, 30);
    at("@%p0 st.global.u8 [%out+27], %h1; bar.sync 0; @%p1 ld.global.nc.u32 %r0, [%out+24];", ReportKind::Invalid, 27);
    at("@%p0 st.global.u8 [%out+27], %h1; bar.sync 0; @%p1 ldu.global.u32 %r0, [%out+24];", ReportKind::Invalid, 27);
}

#[test]
fn what_is_outside_begins_where_the_memory_ends() {
    let vector = "{%r0, %r1, %r2, %r3}";
    for (area, end) in [("global", 1000), ("shared", 1000)] {
        let base = if area == "global" { "%out" } else { "sm" };
        at(&format!("ld.{area}.v4.u32 {vector}, [{base}+992];"), ReportKind::OutOfBounds, end);
        at(&format!("st.{area}.v4.u32 [{base}+992], {{%r30, %r30, %r30, %r30}};"), ReportKind::OutOfBounds, end);
        at(&format!("ld.{area}.v4.u32 {vector}, [{base}+1008];"), ReportKind::OutOfBounds, 1008);
    }
    at("cp.async.cg.shared.global [sm], [%out+992], 16;", ReportKind::OutOfBounds, 1000);
    at("cp.async.cg.shared.global [sm+992], [%out], 16;", ReportKind::OutOfBounds, 1000);
    at(&format!("ld.local.v4.u32 {vector}, [loc+16];"), ReportKind::OutOfBounds, 24);
    at("ld.global.u32 %r0, [%out+-4];", ReportKind::OutOfBounds, (1 << 36) + 256 - 4);
}

#[test]
fn what_was_never_written_is_named_by_its_first_byte() {
    let report = run("@%p0 st.shared.u16 [raw], %h1; @%p0 ld.shared.u32 %r0, [raw];", 0);
    let raw = run("@%p0 ld.shared.u32 %r0, [raw];", 0).address.unwrap();
    assert_eq!((report.kind, report.address), (ReportKind::Uninitialised, Some(raw + 2)), "{report}");
    at(
        "@%p0 st.global.u8 [%out+992], %h1; @%p0 ld.global.v2.u32 {%r0, %r1}, [%out+992];",
        ReportKind::Uninitialised,
        993,
    );
}

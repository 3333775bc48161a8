//! A read that runs ahead of the write it needs is reported as the race it is.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program, Report, ReportKind};

/// Threads write their own word (if `writes`), and read the word of the thread half a block further.
fn run(writes: &str, seed: u64) -> Box<Report> {
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n\
         .shared .b32 s[128];\nmov.u32 %r0, %tid.x;\nshl.b32 %r1, %r0, 2;\nmov.u32 %r2, s;\nadd.u32 %r1, %r1, %r2;\n\
         {writes}\nxor.b32 %r1, %r1, 256;\nld.shared.u32 %r3, [%r1];\nret;\n}}\n"
    );
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [128, 1, 1], dynamic_smem: 0, params: Vec::new() };
    let program = Program::parse(&text).unwrap();
    Device::new().run(&program, &launch, &Options { seed, ..Options::default() }).unwrap_err()
}

#[test]
fn who_writes_later_is_named() {
    for seed in 0..8 {
        let report = run("st.shared.u32 [%r1], %r0;", seed);
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        let (late, early) = (report.place.unwrap(), report.other.unwrap());
        assert_eq!((late.ptx_line, early.ptx_line), (13, 15));
        assert_eq!(late.thread[0] ^ 64, early.thread[0]);
    }
}

#[test]
fn a_word_that_nobody_writes_stays_that() {
    for seed in 0..8 {
        let report = run("", seed);
        assert_eq!(report.kind, ReportKind::Uninitialised, "{report}");
        let report = run("setp.lt.u32 %p0, %r0, 64; @%p0 bra L; L2: bra L2; L:", seed);
        assert_eq!(report.kind, ReportKind::Uninitialised, "others that spin are not waited for: {report}");
    }
}

//! Warps that exchange values through volatile shared memory: what counts on lanes in step, and what does not.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Launch, Options, Program, Report, ReportKind};

/// The sum of a warp's lane numbers. For each distance, `body` adds the value at `%a + %d` to the one at `%a`.
fn run(body: &str) -> Result<u32, Box<Report>> {
    let text = format!(
        ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p, %q;\n\
         .reg .b32 %t, %a, %n, %x, %y, %d;\n.reg .b64 %out;\n.shared .align 4 .b32 s[64];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nshl.b32 %a, %t, 2;\nmov.u32 %x, s;\nadd.u32 %a, %a, %x;\n\
         mov.u32 %y, 0;\nst.shared.u32 [%a], %t;\nst.shared.u32 [%a + 128], %y;\nbar.warp.sync 0xffffffff;\n{body}\n\
         setp.eq.u32 %p, %t, 0;\n@%p st.global.u32 [%out], %x;\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(256).unwrap();
    device.upload(out, &[0; 256]).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options { fuel: 1 << 16, ..Options::default() })?;
    Ok(u32::from_le_bytes(device.download(out, 4).unwrap().try_into().unwrap()))
}

/// `s[t] += s[t + d]` for d = 16, 8, 4, 2, 1, with something between the reads and the write, and after it.
fn sum(kind: &str, between: &str, behind: &str) -> String {
    let step = |d: u32| {
        format!(
            "ld{kind}.shared.u32 %x, [%a];\nld{kind}.shared.u32 %y, [%a + {}];\nadd.u32 %x, %x, %y;\n{between}\n\
             st{kind}.shared.u32 [%a], %x;\n{behind}\n",
            4 * d
        )
    };
    [16, 8, 4, 2, 1].map(step).concat()
}

const SYNC: &str = "bar.warp.sync 0xffffffff;";

#[track_caller]
fn counts_on_step(body: &str, against: &str) {
    let report = run(body).unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    let text = report.to_string();
    assert_eq!(report.cause, Some(tilec_sim::Cause::Lockstep));
    for part in ["running in step", "sm_70", against] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_volatile_sum_of_a_warp_counts_on_lanes_in_step() {
    counts_on_step(&sum(".volatile", "", ""), "against `ld.volatile.shared.u32`");
    // The fence in old code publishes, but waits for no other thread.
    counts_on_step(&sum(".volatile", "", "membar.cta;"), "against `ld.volatile.shared.u32`");
    counts_on_step(&sum(".relaxed.cta", "", ""), "against `ld.relaxed.cta.shared.u32`");
    // Half of it is not enough.
    counts_on_step(&sum(".volatile", "", SYNC), "against `ld.volatile.shared.u32`");
    counts_on_step(&sum(".volatile", SYNC, ""), "against `st.volatile.shared.u32`");
    for kind in [".volatile", "", ".relaxed.cta"] {
        assert_eq!(run(&sum(kind, SYNC, SYNC)), Ok(496), "{kind}");
    }
}

#[test]
fn plain_accesses_are_reported_as_ever() {
    let report = run(&sum("", "", "")).unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    assert!(report.message.contains("not ordered by any barrier"), "{report}");
}

#[test]
fn lanes_may_wait_for_flags_of_others() {
    // Each raises its own flag and waits for that of its neighbour.
    let pair = "mov.u32 %y, 1;\nst.volatile.shared.u32 [%a + 128], %y;\nxor.b32 %n, %a, 4;\n\
                L:\nld.volatile.shared.u32 %x, [%n + 128];\nsetp.eq.u32 %q, %x, 0;\n@%q bra L;";
    assert_eq!(run(pair), Ok(1));
    // One lane signals the others, in a divergent branch.
    let one = "setp.ne.u32 %q, %t, 5;\n@%q bra W;\nmov.u32 %y, 7;\nst.volatile.shared.u32 [s + 128], %y;\n\
               W:\nld.volatile.shared.u32 %x, [s + 128];\nsetp.eq.u32 %q, %x, 0;\n@%q bra W;";
    assert_eq!(run(one), Ok(7));
}

#[test]
fn lanes_that_wait_for_each_other_or_for_themselves_do_not() {
    // Each lane counts in its own place and waits for its neighbour's count.
    let handshake: String = (1..4)
        .map(|i| {
            format!(
                "mov.u32 %n, {i};\nst.volatile.shared.u32 [%a], %n;\nspin{i}:\nxor.b32 %d, %a, 4;\n\
                 ld.volatile.shared.u32 %y, [%d];\nsetp.lo.u32 %q, %y, %n;\n@%q bra spin{i};\n"
            )
        })
        .collect();
    assert_eq!(run(&format!("st.shared.u32 [%a], 0;\n{SYNC}\n{handshake}mov.u32 %x, 1;")), Ok(1));
    // All write one place, and each has written it.
    assert_eq!(run("mov.u32 %d, s;\nst.volatile.shared.u32 [%d], 7;\nld.volatile.shared.u32 %x, [%d];"), Ok(7));
}

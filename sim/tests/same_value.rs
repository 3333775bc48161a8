//! One value in one place from several threads: no race among lanes of a warp in one instruction, together or apart; a race otherwise.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Device, Landing, Launch, Options, Program, Report, ReportKind};

/// `%out`: 1024 bytes that count up; `%s`: 1024 bytes of shared memory, `%t`: the thread, `%r5`: 7.
fn run(body: &str, threads: u32, seed: u64, landing: Landing) -> Result<Vec<u8>, Box<Report>> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<32>, %t, %s;\n.reg .b64 %rd<8>, %out;\n.shared .align 16 .b8 sm[1024];\nld.param.u64 %out, [out];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %s, sm;\nmov.u32 %r5, 7;\nand.b32 %r0, %t, 31;\n{body}\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(1024).unwrap();
    device.upload(out, &(0..1024).map(|i| i as u8).collect::<Vec<_>>()).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [threads, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options { seed, landing, fuel: 200_000, ..Options::default() })?;
    Ok(device.download(out, 1024).unwrap())
}

fn modes() -> impl Iterator<Item = (u64, Landing)> {
    Landing::ALL.into_iter().flat_map(|landing| (0..3).map(move |seed| (seed, landing)))
}

#[track_caller]
fn good(body: &str, threads: u32) -> Vec<u8> {
    let mut all = modes().map(|(seed, l)| run(body, threads, seed, l).unwrap_or_else(|r| panic!("{body}\n{r}")));
    let first = all.next().unwrap();
    assert!(all.all(|out| out == first), "{body}");
    first
}

#[track_caller]
fn race(body: &str, threads: u32) {
    for (seed, landing) in modes() {
        let report = run(body, threads, seed, landing).expect_err(body);
        assert_eq!(report.kind, ReportKind::Race, "{body}\n{report}");
    }
}

/// Ways in which the lanes of a warp come to an instruction.
const WAYS: [&str; 4] = [
    "",
    "setp.lt.u32 %p2, %r0, 5; @%p2 bra A; add.u32 %r6, %r0, 1; A:",
    "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r0; @%p1 bra L;",
    "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r0; @%p1 bra L; bar.warp.sync -1;",
];

#[test]
fn lanes_of_a_warp_may_store_one_value_together_or_apart() {
    for way in WAYS {
        for store in [
            "st.shared.u32 [%s], V;",
            "st.global.u32 [%out], V;",
            "st.shared.v2.u32 [%s], {V, V};",
            "st.global.u8 [%out+3], V;",
        ] {
            let value = |v: &str| format!("{way} {}", store.replace('V', v));
            good(&value("%r5"), 32);
            race(&value("%r0"), 32);
            // Of two warps one may come before the other's write is read, and another instruction is another.
            race(&value("%r5"), 64);
            race(&format!("setp.lt.u32 %p3, %r0, 9; {way} @%p3 {0} @!%p3 {0}", store.replace('V', "%r5")), 32);
        }
    }
}

#[test]
fn lanes_of_a_warp_may_copy_the_same_bytes_to_one_place() {
    let tail = "cp.async.commit_group; WAIT bar.sync 0; ld.shared.u32 %r4, [%s+16]; mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %out, %rd1;\n\
                st.global.u32 [%rd1+256], %r4;";
    let copy = "cp.async.cg.shared.global [%s+16], [%out+32], 16;";
    let with = |way: &str, copy: &str, wait: &str| format!("{way} {copy} {}", tail.replace("WAIT", wait));
    for way in WAYS {
        let out = good(&with(way, copy, "cp.async.wait_group 0;"), 32);
        assert!(out[256..384].chunks(4).all(|word| word == [32, 33, 34, 35]), "{way}");
        race(&with(way, copy, ""), 32);
        race(&with(way, copy, "cp.async.wait_group 1;"), 32);
        race(&with(way, copy, "cp.async.wait_group 0;"), 64);
        // Other bytes, fewer of them, or another place that overlaps.
        let other = |from: &str, to: &str| with(way, &copy.replace(from, to), "cp.async.wait_group 0;");
        let sources = format!(
            "and.b32 %r7, %t, 1; mul.wide.u32 %rd2, %r7, 16; add.u64 %rd2, %rd2, %out; {}",
            other("%out", "%rd2")
        );
        race(&sources, 32);
        let sizes = format!("and.b32 %r7, %t, 12; {}", other("16;", "16, %r7;"));
        race(&sizes, 32);
    }
    // The copy of one lane is not ordered after copies of others.
    let alone = "setp.eq.u32 %p4, %r0, 31; @%p4 cp.async.wait_group 0;";
    let one = "setp.eq.u32 %p4, %r0, 0; @%p4 cp.async.wait_group 0;";
    race(&with("", copy, one), 32);
    good(&with("", copy, alone), 32);
    // Once more without a wait.
    race(
        &with(
            "",
            &format!(
                "mov.u32 %r9, 0; M: {copy} cp.async.commit_group; add.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 2; @%p5 bra M;"
            ),
            "cp.async.wait_group 0;",
        ),
        32,
    );
}

//! Vector loads of which a part was never written: an error is who uses that part.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{Cause, Device, Launch, Options, Program, Report, ReportKind};

/// `%out`: 512 bytes that the host has not written; `sm` of 512 bytes, `loc` of 16; `%t`: the thread; `%p0`: it is the first.
fn run(body: &str, threads: u32, seed: u64) -> Result<Vec<u8>, Box<Report>> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b16 %h<8>;\n\
         .reg .b32 %r<16>, %t, %s;\n.reg .b64 %rd<8>, %out;\n.reg .f64 %d<4>;\n.shared .align 16 .b8 sm[512];\n.local .align 16 .b8 loc[16];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nsetp.eq.u32 %p0, %t, 0;\nshl.b32 %s, %t, 4;\nmov.u32 %r15, sm;\n\
         add.u32 %s, %s, %r15;\ncvt.u16.u32 %h0, %t;\nmov.u32 %r9, 7;\n{body}\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let out = device.alloc(512).unwrap();
    let params = vec![out.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [threads, 1, 1], dynamic_smem: 0, params };
    device.run(&program, &launch, &Options { seed, fuel: 100_000, ..Options::default() })?;
    Ok(device.download(out, 512).unwrap())
}

/// Stores of the first of `of` elements in each kind of memory, and the address of the vector.
const PLACES: [(&str, &str); 4] = [("shared", "sm"), ("local", "loc"), ("global", "%out"), ("shared", "%s")];

const FOUR: &str = "{%r0, %r1, %r2, %r3}";

#[test]
fn an_element_that_nobody_uses_may_be_unwritten() {
    for (space, base) in PLACES {
        let strong = if space == "local" { "" } else { ".volatile" };
        for volatile in ["", strong] {
            let three = format!("st.{space}.v2.u32 [{base}], {{%r9, %r9}}; st.{space}.u32 [{base}+8], %r9;");
            for vector in [FOUR, "{%r0, %r1, %r2, _}"] {
                let body = format!(
                    "{three} ld{volatile}.{space}.v4.u32 {vector}, [{base}]; add.u32 %r4, %r2, 1; st.global.u32 [%out+256], %r4;"
                );
                assert_eq!(run(&body, 1, 0).unwrap_or_else(|r| panic!("{body}\n{r}"))[256..260], [8, 0, 0, 0]);
            }
            // Written before it is used.
            let body = format!(
                "{three} ld{volatile}.{space}.v4.u32 {FOUR}, [{base}]; mov.u32 %r3, 1; st.global.u32 [%out+256], %r3;"
            );
            run(&body, 1, 0).unwrap_or_else(|r| panic!("{body}\n{r}"));
            // Used, or part of what is used.
            for user in
                ["st.global.u32 [%out+256], %r3;", "add.u32 %r4, %r3, %r0; setp.eq.u32 %p1, %r4, 0; @%p1 bra E; E:"]
            {
                let body = format!("{three} ld{volatile}.{space}.v4.u32 {FOUR}, [{base}]; {user}");
                let report = run(&body, 1, 0).unwrap_err();
                assert_eq!((report.kind, report.cause), (ReportKind::Undefined, Some(Cause::Unwritten)), "{report}");
                assert!(report.message.contains(&format!("`%r3` comes from {space} address ")), "{report}");
                assert!(report.message.contains("which nobody had written"), "{report}");
            }
        }
    }
}

#[test]
fn elements_of_every_size_are_apart() {
    for (space, base) in PLACES {
        for (size, vector, store) in [
            ("u8", "v4.u8 {%h1, %h2, %h3, %h4}", "st.global.u8 [%out+256], "),
            ("u16", "v2.u16 {%h1, %h2}", "st.global.u16 [%out+256], "),
            ("u16", "v4.u16 {%h1, %h2, %h3, %h4}", "st.global.u16 [%out+256], "),
            ("u64", "v2.u64 {%rd1, %rd2}", "st.global.u64 [%out+256], "),
        ] {
            let bytes: usize = size[1..].parse::<usize>().unwrap() / 8;
            let (r, value) = if bytes == 8 { ("%rd", "%rd7") } else { ("%h", "%h7") };
            let n = vector.matches('%').count();
            for written in 1..=n {
                let head = format!(
                    "mov.u64 %rd7, 5; mov.u16 %h7, 5; st.{space}.{size} [{base}+{}], {value};",
                    (written - 1) * bytes
                );
                for used in 1..=n {
                    let body = format!("{head} ld.{space}.{vector}, [{base}]; {store}{r}{used};");
                    match run(&body, 1, 0) {
                        Ok(out) => assert!(used == written && out[256] == 5, "{body}"),
                        Err(r) => assert!(used != written && r.kind == ReportKind::Undefined, "{body}\n{r}"),
                    }
                }
            }
        }
    }
}

#[test]
fn a_vector_of_which_nothing_was_written_is_reported_where_it_is_read() {
    for (space, base) in PLACES {
        let nothing = format!("ld.{space}.v4.u32 {FOUR}, [{base}];");
        assert_eq!(run(&nothing, 1, 0).unwrap_err().kind, ReportKind::Uninitialised, "{nothing}");
        let nothing_used =
            format!("st.{space}.u32 [{base}+12], %r9; ld.{space}.v4.u32 {{%r0, %r1, %r2, _}}, [{base}];");
        assert_eq!(run(&nothing_used, 1, 0).unwrap_err().kind, ReportKind::Uninitialised, "{nothing_used}");
        let scalar = format!("st.{space}.u16 [{base}], %h0; ld.{space}.u32 %r0, [{base}];");
        assert_eq!(run(&scalar, 1, 0).unwrap_err().kind, ReportKind::Uninitialised, "{scalar}");
        // Of two halves of a word one is not enough.
        let half = format!(
            "st.{space}.v2.u32 [{base}], {{%r9, %r9}}; st.{space}.u16 [{base}+8], %h0; ld.{space}.v4.u32 {FOUR}, [{base}]; st.global.u32 [%out+256], %r2;"
        );
        assert_eq!(run(&half, 1, 0).unwrap_err().kind, ReportKind::Undefined, "{half}");
    }
}

/// Without the barrier, a vector may be read when half of it is written. This is reported as a race, in any order.
#[test]
fn a_vector_read_too_early_is_a_race() {
    let body = "setp.lt.u32 %p1, %t, 32; and.b32 %r0, %t, 31; shl.b32 %r0, %r0, 4; add.u32 %r0, %r0, %r15;\n\
                @%p1 st.shared.v2.u32 [%r0], {%r9, %r9}; @!%p1 st.shared.v2.u32 [%r0+8], {%r9, %r9}; BARRIER\n\
                ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r0]; add.u32 %r5, %r2, %r3; shl.b32 %r6, %t, 2; cvt.u64.u32 %rd0, %r6;\n\
                add.u64 %rd0, %rd0, %out; st.global.u32 [%rd0], %r5;";
    for seed in 0..8 {
        let out = run(&body.replace("BARRIER", "bar.sync 0;"), 64, seed).unwrap_or_else(|r| panic!("{r}"));
        assert!(out[..256].chunks(4).all(|word| word == [14, 0, 0, 0]));
        let report = run(&body.replace("BARRIER", ""), 64, seed).unwrap_err();
        assert_eq!(report.kind, ReportKind::Race, "seed {seed}: {report}");
    }
}

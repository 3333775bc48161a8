//! Accesses to allocated memory without permission: gaps between rows, tensors that the contract declares read-only or
//! write-only.

use super::*;

/// Thread `i` takes the address of `b[i, 0]` into `%rd4`.
fn rows(body: &str) -> String {
    format!(
        "mul.wide.u32 %rd4, %r1, 12;\nsub.s64 %rd2, %rd2, %rd3;\nadd.s64 %rd4, %rd2, %rd4;\nmov.u32 %r3, 0;\n{body}"
    )
}

fn with(launch: &str, body: &str) -> Result<String, String> {
    run(&small(&rows(body)), launch, &[("n", 64)], |_| ()).map(|r| r.to_string())
}

#[track_caller]
fn found(launch: &str, body: &str, needles: &[&str]) {
    let text = with(launch, body).expect_err(body);
    let line = format!("k.ptx:{}", small(&rows(body)).lines().count() - 2);
    for needle in needles.iter().chain(&[line.as_str()]) {
        assert!(text.contains(needle), "no `{needle}` in\n{text}");
    }
}

#[test]
fn gaps_are_neither_written_nor_read() {
    with(LAUNCH, "st.global.u32 [%rd4+8], %r3;").expect("an element");
    let behind =
        "outside every tensor, 1 element after `b[0, 0]`, in a gap between elements of f32 [64, 2] with strides [3, 2]";
    let both = LAUNCH.replace("\"write\"", "\"read_write\"");
    for launch in [LAUNCH, &both] {
        found(launch, "st.global.u32 [%rd4+4], %r3;", &["E0801", "a write", behind, "by thread (0, 0, 0)"]);
        found(
            launch,
            "ld.global.u32 %r4, [%rd4+4];",
            &["E0801", "a read", behind, "by thread (0, 0, 0)", "reads_gaps"],
        );
        found(launch, "red.global.add.u32 [%rd4+4], %r3;", &["E0801", "an atomic update", behind]);
    }
    let second = "setp.eq.u32 %p1, %r1, 2;\n@%p1 st.global.u8 [%rd4+7], %r3;";
    found(LAUNCH, second, &["E0801", "1 element after `b[2, 0]`, in a gap", "by thread (2, 0, 0)"]);
    found(LAUNCH, "st.global.u32 [%rd2+-4], %r3;", &["E0801", "4 bytes in front of `b`"]);
    found(&both, "ld.global.u32 %r4, [%rd2+-4];", &["E0801", "4 bytes in front of `b`"]);
    // If an access begins with an element, the first byte after it is named.
    let wide = both
        .replace("[3, 2]", "[4, 1]")
        .replace("\"access\": \"read_write\"", "\"align\": 16, \"access\": \"read_write\"");
    let four = "mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd4, %rd2, %rd4;\nst.global.v4.u32 [%rd4], {%r3, %r3, %r3, %r3};";
    found(&wide, four, &["E0801", "1 element after `b[0, 1]`, in a gap"]);
    let last = "mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd4, %rd2, %rd4;\nsetp.eq.u32 %p1, %r1, 63;\n@%p1 ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4];";
    found(&wide, last, &["E0801", "right after the end of `b`", "by thread (63, 0, 0)"]);
}

/// A contract may permit that word loads read gaps, not that anything is stored there.
#[test]
fn gaps_that_a_contract_lets_be_read_are() {
    let padded = LAUNCH.replace("\"write\"", "\"read_write\", \"reads_gaps\": true");
    with(&padded, "ld.global.u32 %r4, [%rd4];\nsetp.lt.u32 %p1, %r1, 63;\n@%p1 ld.global.u32 %r5, [%rd4+4];\nst.global.u32 [%rd4], %r4;")
        .expect("a gap that may be read");
    found(&padded, "st.global.u32 [%rd4+4], %r3;", &["E0801", "in a gap"]);
    let read = padded.replace("\"read_write\"", "\"read\"");
    with(&read, "ld.global.u32 %r4, [%rd4+4];").expect("a gap that may be read");
}

#[test]
fn tensors_that_are_only_read_are_not_written() {
    let only = "to memory that the kernel only reads by its launch contract: `a[0]` of f32 [64]";
    found(
        LAUNCH,
        "st.global.u32 [%rd1], %r3;",
        &["E0801", "a write", only, "by thread (0, 0, 0)", "`access` in the launch contract"],
    );
    found(LAUNCH, "red.global.add.u32 [%rd1], %r3;", &["E0801", "an atomic update", only]);
    let pointers = LAUNCH.replace("\"write\"", "\"write\", \"kind\": \"pointers\"").replace("[3, 2]", "[1]");
    let table = "setp.eq.u32 %p1, %r1, 3;\n@%p1 st.global.u64 [%rd2], %rd1;";
    let eight = "add.s64 %rd2, %rd2, %rd3;\n";
    found(
        &pointers,
        &format!("{eight}{eight}{table}"),
        &["E0801", "address 3 of the 64 in the array `b`", "by thread (3, 0, 0)"],
    );
}

#[test]
fn tensors_that_are_only_written_hold_nothing_before() {
    let nothing = "a read of uninitialised memory: `b[0, 0]` of f32 [64, 2]";
    let why = "by its launch contract the kernel does not read `b`";
    found(LAUNCH, "ld.global.u32 %r4, [%rd4];", &["E0803", nothing, why, "by thread (0, 0, 0)"]);
    found(LAUNCH, "atom.global.add.u32 %r4, [%rd4], %r3;", &["E0803", why]);
    with(LAUNCH, "st.global.u32 [%rd4], %r3;\nld.global.u32 %r4, [%rd4];").expect("its own");
    with(&LAUNCH.replace("\"write\"", "\"read_write\""), "ld.global.u32 %r4, [%rd4];").expect("it is an input");
}

/// A tensor that the first launch of a program writes may be read-only in the second.
#[test]
fn permissions_are_those_of_a_launch() {
    let program = |more: &str| {
        let first = small(&rows("ld.global.u32 %r4, [%rd1];\nst.global.u32 [%rd4], %r4;"));
        let row = "sub.s64 %rd1, %rd1, %rd3;\nmul.wide.u32 %rd4, %r1, 12;\nadd.s64 %rd1, %rd1, %rd4;";
        let second = small(&format!("{row}\nld.global.u32 %r4, [%rd1];\n{more}")).replace(" k(", " j(");
        let ptx = first + second.split_once(".address_size 64\n").expect("a head").1;
        let json = r#"{"kernels": [
            {"entry": "k", "block": 64, "grid": 1, "params": [
                {"name": "a", "type": "f32", "shape": ["n"], "access": "read"},
                {"name": "b", "type": "f32", "shape": ["n", 2], "strides": [3, 2], "access": "write"},
                {"name": "n", "kind": "size"}]},
            {"entry": "j", "block": 64, "grid": 1, "params": [
                {"name": "b", "type": "f32", "shape": ["n", 2], "strides": [3, 2], "access": "read"},
                {"name": "c", "type": "f32", "shape": ["n"], "access": "write"},
                {"name": "n", "kind": "size"}]}]}"#;
        let file = contracts(json, &ptx).expect("a launch description");
        run_with(&ptx, file.kernels, &[("n", 64)], |_| ()).map(|r| r.to_string())
    };
    program("st.global.u32 [%rd2], %r4;").expect("each its own");
    let text = program("st.global.u32 [%rd1], %r4;").expect_err("`b` is only read");
    assert!(text.contains("E0801") && text.contains("only reads") && text.contains("`b[0, 0]`"), "{text}");
}

/// A tensor that is only read may be written under the name of one that is on it.
#[test]
fn permissions_are_those_of_all_names() {
    let a = r#"{"name": "a", "type": "f32", "shape": ["n", 2], "strides": [3, 2], "access": "read"}"#;
    let b =
        r#"{"name": "b", "type": "f32", "shape": ["n", 2], "strides": [3, 2], "access": "write", "may_alias": ["a"]}"#;
    let launch = format!(r#"{{"block": 64, "grid": 1, "params": [{a}, {b}, {{"name": "n", "kind": "size"}}]}}"#);
    let on = |aliases: &[(&str, &str)], body: &str| {
        let aliases = aliases.iter().map(|(over, under)| ((*over).to_owned(), (*under).to_owned())).collect();
        run(&small(&rows(body)), &launch, &[("n", 64)], |o| o.aliases = aliases).map(|r| r.to_string())
    };
    let in_place = "ld.global.u32 %r4, [%rd4];\nst.global.u32 [%rd4], %r4;";
    on(&[("b", "a")], in_place).expect("`a` holds what it reads");
    let text = on(&[], in_place).expect_err("`b` alone holds nothing");
    assert!(text.contains("E0803"), "{text}");
    let text = on(&[("b", "a")], "st.global.u32 [%rd4+4], %r3;").expect_err("a gap");
    assert!(text.contains("E0801") && text.contains("in a gap"), "{text}");
}

/// A tile program that violates its promise about bounds: the line that writes between the rows, and the one that reads
/// there.
#[test]
fn gaps_point_into_tile_programs() {
    let source = "kernel k(A: gmem f32[M, N], C: gmem f32[M, N]) grid (i: ceildiv(M, 8)) {\n    \
                  var x = reg f32[8, 32]\n    copy A[i * 8.., 0..] -> x CHECK_A\n    copy x -> C[i * 8.., 0..] CHECK_C\n}\n";
    let report = |a: &str, c: &str| {
        let source = source.replace("CHECK_A", a).replace("CHECK_C", c);
        let options = CompileOptions { source_name: "k.tile".to_owned(), ..CompileOptions::default() };
        let program = crate::compile(&source, &options).expect("compiles");
        report_of(&program, program.ptx.clone(), &[("M", 8), ("N", 20), ("A_ld", 40), ("C_ld", 40)])
    };
    let text = report("check (0, 1)", "check (0)");
    let line = "4 |     copy x -> C[i * 8.., 0..] check (0)";
    assert!(text.contains("a write outside every tensor") && text.contains(line), "{text}");
    assert!(text.contains("after `C[") && text.contains(", 19]`, in a gap") && text.contains("thread ("), "{text}");
    let text = report("check (0)", "check (0, 1)");
    let line = "3 |     copy A[i * 8.., 0..] -> x check (0)";
    assert!(text.contains("a read outside every tensor") && text.contains(line), "{text}");
    assert!(text.contains("after `A[") && text.contains(", 19]`, in a gap"), "{text}");
}

//! What the assembler accepts and refuses, by a table of single lines that ptxas confirms (`scripts/check_sim_table.sh`).
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::Program;

const TABLE: &str = include_str!("data/verdicts.txt");
const KERNEL: &str = include_str!("data/probe.ptx");

/// The module of a line of the table.
fn module(target: &str, version: &str, line: &str) -> String {
    let body = match line.strip_prefix("module ") {
        Some(text) => text.replace("\\n", "\n"),
        None => KERNEL.replace("//LINE", line),
    };
    format!(".version {version}\n.target {target}\n.address_size 64\n{body}\n")
}

#[test]
fn verdicts_are_those_of_the_assembler() {
    let mut wrong = Vec::new();
    let mut seen = [0; 3];
    for probe in TABLE.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let mut words = probe.splitn(4, ' ');
        let [target, version, verdict, line] = std::array::from_fn(|_| words.next().unwrap());
        let kind = ["ok", "no", "limit"].iter().position(|v| *v == verdict).unwrap();
        seen[kind] += 1;
        match (Program::parse(&module(target, version, line)), verdict) {
            (Err(error), "ok") => wrong.push(format!("refused: {line}: {error}")),
            (Ok(_), "no" | "limit") => wrong.push(format!("accepted: {line} ({target}, PTX {version})")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.iter().all(|n| *n > 10), "the table has probes of each verdict: {seen:?}");
}

#[test]
fn what_a_module_lacks_is_named() {
    let refused = |target, version, line| Program::parse(&module(target, version, line)).unwrap_err().message;
    let copy = refused("sm_70", "6.4", "cp.async.ca.shared.global [sm], [%l0], 16;");
    assert!(copy.contains("needs sm_80 (this is sm_70) and PTX 7.0 (this is 6.4)"), "{copy}");
    let object = refused("sm_70", "7.8", "mbarrier.init.shared.b64 [sm], 1;");
    assert!(object.contains("needs sm_80 (this is sm_70)") && !object.contains("PTX"), "{object}");
    let narrow = refused("sm_80", "7.8", "ld.global.u32 %r0, [%r1];");
    assert!(narrow.contains("`%r1` has 32 bits: a global address has 64"), "{narrow}");
    let elsewhere = refused("sm_80", "7.8", "ld.global.u32 %r0, [sm];");
    assert!(elsewhere.contains("`sm` is in Shared memory, the instruction accesses Global"), "{elsewhere}");
    for (line, column, says) in [
        ("mov.u32 %r0, %envreg3;", 14, "`%envreg3` cannot be read here: the driver alone knows"),
        ("istypep.texref %p0, %l0;", 1, "`istypep.texref` cannot be executed here: there are no textures"),
        (".reg .b128 %q; mov.b128 %q, {%l0, %l1};", 16, "`mov.b128` cannot be executed here: 128-bit registers"),
        (".reg .b128 %q; ld.global.b128 %q, [%l0];", 16, "`ld.global.b128` cannot be executed here: 128-bit registers"),
        ("tensormap.replace.tile.rank.global.b1024.b32 [%l0], 2;", 1, "maps of tensors cannot be changed"),
    ] {
        let error = Program::parse(&module("sm_90", "8.7", line)).unwrap_err();
        assert!(error.message.contains(says), "{line}: {error}");
        assert_eq!((error.line, error.col), (23, column), "{line}: {error}");
    }
    let unknown = refused("sm_90", "8.7", "mov.u32 %r0, %envreg32;");
    assert!(unknown.contains("unknown name `%envreg32`"), "{unknown}");
    let twice = refused("sm_80", "7.8", "module .visible .entry k() { ret; }\\n.visible .entry k() { ret; }");
    assert!(twice.contains("`k` is defined twice"), "{twice}");
}

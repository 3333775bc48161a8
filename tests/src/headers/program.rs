//! The test program: makes the arguments of each problem for the header, and launches.

use super::expected::{SIGNALS, WORKSPACE, addresses, param_bytes};
use super::problems::{Problem, contracts};
use std::fmt::Write as _;
use tilec::Number;
use tilec::c_header::Image;
use tilec::contract::{ParamKind, Scratch};
use tilec_ir::types::Elem;

/// The text of the program.
pub(super) fn text(stem: &str, images: &[Image<'_>], problems: &[Vec<Problem>]) -> String {
    let kernels = format!("{stem}_kernels");
    let mut out = String::from(
        // Macros of the standard headers are names that a program of the language may have.
        "#include <complex.h>\n#include <errno.h>\n#include <math.h>\n#include <stdio.h>\n#include \"driver.h\"\n#include \"kernels.h\"\n\n",
    );
    let mut entries = String::from("const test_entry test_entries[] = {\n");
    for image in images {
        for (i, contract) in image.file.kernels.iter().enumerate() {
            let name = format!("sizes_{}_{i}", image.target.name());
            let sizes: Vec<String> = contract.params.iter().map(|p| param_bytes(&p.kind).to_string()).collect();
            let _ =
                writeln!(out, "static const int {name}[] = {{{}}};", [sizes, vec!["0".to_owned()]].concat().join(", "));
            let _ = writeln!(entries, "    {{{}, \"{}\", {name}}},", image.target.cc(), contract.entry);
        }
    }
    let _ = writeln!(out, "{entries}    {{0, NULL, NULL}}\n}};\n");
    let _ = writeln!(
        out,
        "static void said(int code)\n{{\n    if (code != 0 && {kernels}_message(code)[0] == 0)\n        printf(\"no words\\n\");\n    if ({kernels}_kind(code) == TILEC_TARGET)\n        printf(\"no target\\n\");\n    else\n        printf(code == 0 ? \"fine\\n\" : \"refused\\n\");\n}}\n"
    );
    let mut main = String::from("int main(void)\n{\n");
    let _ = writeln!(main, "    static {kernels} k;");
    // Zeros are nothing loaded.
    for i in 0..problems.first().map_or(0, Vec::len) {
        let _ = writeln!(main, "    problem_0_{i}(&k);");
    }
    for (at, (image, problems)) in images.iter().zip(problems).enumerate() {
        let _ = writeln!(main, "    test_cc = {};\n    printf(\"cc %d\\n\", test_cc);", image.target.cc());
        let _ = writeln!(main, "    if ({kernels}_load(&k, NULL, 0) != 0)\n        return 1;");
        for (i, problem) in problems.iter().enumerate() {
            let _ = writeln!(out, "{}", function(image, problem, &format!("problem_{at}_{i}"), &kernels));
            let _ = writeln!(main, "    problem_{at}_{i}(&k);");
        }
        let _ = writeln!(main, "    {kernels}_unload(&k);");
        for i in 0..problems.len() {
            let _ = writeln!(main, "    problem_{at}_{i}(&k);");
        }
    }
    // Without a device that runs any of it, and without anything loaded, there is a message.
    let _ = writeln!(main, "    test_cc = 30;\n    said({kernels}_load(&k, NULL, 0));\n    return 0;\n}}");
    out + &main
}

/// The function of one problem.
fn function(image: &Image<'_>, problem: &Problem, symbol: &str, kernels: &str) -> String {
    let name = &problem.name;
    let contracts = contracts(image, name);
    let temporary = |param: &str| {
        image.file.programs.iter().any(|p| p.name == *name && p.temporaries.iter().any(|t| t.name == param))
    };
    let addresses = addresses(image, name);
    let address = |param: &str| addresses.iter().find(|(n, _)| n == param).map_or(0, |(_, at)| *at);
    let mut seen = Vec::new();
    let (mut made, mut set) = (Vec::new(), String::new());
    let (mut workspace, mut signals) = (false, false);
    for param in contracts.iter().flat_map(|c| &c.params) {
        match param.kind.tensor().and_then(|t| t.scratch) {
            Some(Scratch::Elements) => workspace = true,
            Some(Scratch::Signals) => signals = true,
            None => {}
        }
        if temporary(&param.name) {
            workspace = true;
            continue;
        }
        if seen.contains(&&param.name) {
            continue;
        }
        seen.push(&param.name);
        let value = problem.args.get(&param.name).copied();
        // A parameter with a default in some launch needs no value.
        let has_default = contracts.iter().filter_map(|c| c.param(&param.name)).any(|p| match &p.kind {
            ParamKind::Scalar { default, .. } => default.is_some(),
            ParamKind::Stride { packed, .. } => packed.is_some(),
            _ => false,
        });
        let number = match &param.kind {
            ParamKind::Tensor(t) | ParamKind::Pointers(t) if t.scratch.is_none() => {
                Some(format!("{:#x}ull", address(&param.name)))
            }
            ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) => continue,
            ParamKind::Size { .. } | ParamKind::Stride { .. } => value.map(|x| format!("INT64_C({x})")),
            ParamKind::Scalar { elem, .. } => value.map(|x| scalar(*elem, x)),
        };
        match number {
            Some(number) if has_default => _ = writeln!(set, "    a.{} = {number};", param.name),
            Some(number) => made.push(number),
            None => assert!(has_default, "the problem has a value for {}", param.name),
        }
    }
    let mut out = format!(
        "static void {symbol}(const {kernels} *k)\n{{\n    {name}_args a = {name}_make({});\n{set}",
        made.join(", ")
    );
    if workspace || signals {
        let _ = writeln!(
            out,
            "    size_t w, s;\n    if ({name}_scratch(k, &a, &w, &s) == 0)\n        printf(\"scratch %lu %lu\\n\", (unsigned long)w, (unsigned long)s);"
        );
    }
    if workspace {
        let _ = write!(out, "    a.workspace = {WORKSPACE:#x}ull;\n    a.workspace_bytes = w;\n");
    }
    if signals {
        let _ = write!(out, "    a.signals = {SIGNALS:#x}ull;\n    a.signals_bytes = s;\n");
    }
    let _ = writeln!(out, "    said({name}_launch(k, NULL, &a));\n}}");
    out
}

fn scalar(elem: Elem, x: Number) -> String {
    match elem.is_float() {
        true if elem == Elem::F64 => format!("{:?}", x.to_f64()),
        true => format!("{:?}f", x.to_f64()),
        false => x.to_string(),
    }
}

//! The program that launches the same problems out of a bundle, by its launch table.

use super::expected::{SIGNALS, WORKSPACE, addresses, has_scratch, param_bytes};
use super::problems::{Problem, contracts};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tilec::c_header::Image;
use tilec::contract::encode::encode_number;
use tilec::contract::{Dimension, ParamKind, TensorParam};
use tilec::{Args, Number, expr};
use tilec_ir::types::Elem;

/// A tensor with its extents and strides.
struct Given<'a> {
    name: &'a str,
    tensor: &'a TensorParam,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// Values of scalars by name, with their types.
type Values = BTreeMap<String, (Elem, Number)>;

/// The tensors of a problem, if all have extents and strides; values of what follows from none of them go to the map.
fn given<'a>(image: &Image<'a>, problem: &Problem) -> Option<(Vec<Given<'a>>, Values)> {
    let contracts = contracts(image, &problem.name);
    let program = image.file.programs.iter().find(|p| p.name == problem.name);
    let temporary = |name: &str| program.is_some_and(|p| p.temporaries.iter().any(|t| t.name == name));
    let params = || contracts.iter().flat_map(|c| &c.params);
    let mut values = problem.args.clone();
    for param in params() {
        if let ParamKind::Stride { packed: Some(packed), .. } = &param.kind {
            let known = |name: &str| problem.args.get(name).and_then(|v| v.to_i64());
            let x = expr::integer(packed, &known).ok()?;
            values.entry(param.name.clone()).or_insert(Number::Int(x));
        }
    }
    let value = |text: &String| expr::integer(text, &|name| values.get(name).and_then(|v| v.to_i64())).ok();
    let (mut all, mut follows): (Vec<Given<'a>>, Vec<String>) = (Vec::new(), Vec::new());
    for param in params() {
        let Some(tensor) = param.kind.tensor().filter(|t| t.scratch.is_none() && !temporary(&param.name)) else {
            continue;
        };
        if matches!(param.kind, ParamKind::Pointers(_)) || all.iter().any(|one| one.name == param.name) {
            continue;
        }
        let parts = |dims: &'a [Dimension]| dims.iter().flat_map(Dimension::parts);
        let list = |dims: &'a [Dimension]| parts(dims).map(value).collect::<Option<Vec<i64>>>();
        follows.extend(parts(&tensor.shape).chain(parts(&tensor.strides)).cloned());
        let (shape, strides) = (list(&tensor.shape)?, list(&tensor.strides)?);
        all.push(Given { name: &param.name, tensor, shape, strides });
    }
    let mut others = BTreeMap::new();
    for param in params().filter(|p| p.kind.is_value() && !follows.contains(&p.name)) {
        let elem = match param.kind {
            ParamKind::Scalar { elem, .. } => elem,
            ParamKind::Stride { packed: Some(_), .. } => continue,
            _ => Elem::I64,
        };
        if let Some(x) = problem.args.get(&param.name) {
            others.insert(param.name.clone(), (elem, *x));
        }
    }
    Some((all, others))
}

/// The problem as the library binds it. A stride of dimensions of extent 1 is that of packed tensors. `None`: a bundle
/// cannot be tested with it.
pub(super) fn asked(image: &Image<'_>, problem: &Problem) -> Option<Problem> {
    let (tensors, _) = given(image, problem)?;
    let mut args: Args = problem.args.clone();
    for param in contracts(image, &problem.name).iter().flat_map(|c| &c.params) {
        let ParamKind::Stride { packed: Some(_), .. } = &param.kind else { continue };
        let steps = |one: &Given<'_>| {
            let names = one.tensor.strides.iter().flat_map(Dimension::parts).zip(&one.shape);
            names.into_iter().any(|(text, n)| *text == param.name && *n != 1)
        };
        if !tensors.iter().any(steps) {
            args.remove(&param.name);
        }
    }
    Some(Problem { name: problem.name.clone(), args })
}

/// The text of the program; the bundle is its first argument.
pub(super) fn text(images: &[Image<'_>], problems: &[Vec<Problem>]) -> String {
    let mut out = String::from("#include \"driver.h\"\n#include \"tilec_bundle.h\"\n#include <stdio.h>\n\n");
    let mut entries = String::from("const test_entry test_entries[] = {\n");
    for image in images {
        for (i, contract) in image.file.kernels.iter().enumerate() {
            let name = format!("sizes_{}_{i}", image.target.name());
            let sizes: Vec<String> = contract.params.iter().map(|p| param_bytes(&p.kind).to_string()).collect();
            let sizes = [sizes, vec!["0".to_owned()]].concat().join(", ");
            let _ = writeln!(out, "static const int {name}[] = {{{sizes}}};");
            let _ = writeln!(entries, "    {{{}, \"{}\", {name}}},", image.target.cc(), contract.entry);
        }
    }
    let _ = writeln!(out, "{entries}    {{0, NULL, NULL}}\n}};\n\nstatic char words[400];\n");
    out.push_str(
        "static void said(int code)\n{\n    if (code < 0 && words[0] == 0)\n        printf(\"no words\\n\");\n    printf(code == 0 ? \"fine\\n\" : \"refused\\n\");\n    words[0] = 0;\n}\n\n",
    );
    let mut main = String::from(
        "int main(int count, char **names)\n{\n    tilec_bundle b;\n    if (count != 2)\n        return 2;\n",
    );
    for (at, (image, problems)) in images.iter().zip(problems).enumerate() {
        let _ = writeln!(main, "    test_cc = {};\n    printf(\"cc %d\\n\", test_cc);", image.target.cc());
        main.push_str("    if (tilec_bundle_open(&b, names[1], words, sizeof words) != 0) {\n        puts(words);\n        return 1;\n    }\n");
        for (i, problem) in problems.iter().enumerate() {
            out.push_str(&function(image, problem, &format!("problem_{at}_{i}")));
            let _ = writeln!(main, "    problem_{at}_{i}(&b);");
        }
        main.push_str("    tilec_bundle_close(&b);\n");
    }
    main.push_str(
        "    test_cc = 30;\n    said(tilec_bundle_open(&b, names[1], words, sizeof words));\n    return 0;\n}\n",
    );
    out + &main
}

/// The function of one problem.
fn function(image: &Image<'_>, problem: &Problem, symbol: &str) -> String {
    let (tensors, values) = given(image, problem).expect("it was asked for");
    let at = addresses(image, &problem.name);
    let address = |name: &str| at.iter().find(|(n, _)| n == name).map_or(0, |(_, at)| *at);
    let numbers = |list: &[i64]| list.iter().map(|n| format!("INT64_C({n})")).collect::<Vec<_>>().join(", ");
    let mut out = format!("static void {symbol}(const tilec_bundle *b)\n{{\n    tilec_bundle_args a;\n");
    let _ = write!(
        out,
        "    tilec_bundle_tensor t[{}];\n    tilec_bundle_value v[{}];\n",
        tensors.len().max(1),
        values.len().max(1)
    );
    out.push_str("    memset(&a, 0, sizeof a);\n    memset(t, 0, sizeof t);\n    memset(v, 0, sizeof v);\n");
    for (i, Given { name, tensor, shape, strides }) in tensors.iter().enumerate() {
        let elem = tensor.elem.name();
        let _ = write!(
            out,
            "    {{\n        const int64_t shape[] = {{{}}}, strides[] = {{{}}};\n        t[{i}] = tilec_bundle_packed(\"{name}\", \"{elem}\", {:#x}ull, {}, shape);\n        memcpy(t[{i}].strides, strides, {} * sizeof strides[0]);\n    }}\n",
            numbers(&[shape.as_slice(), &[0]].concat()),
            numbers(&[strides.as_slice(), &[0]].concat()),
            address(name),
            shape.len(),
            shape.len(),
        );
    }
    for (i, (name, (elem, x))) in values.iter().enumerate() {
        let made = match *x {
            x if matches!(elem, Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0) => {
                format!("integer(\"{name}\", {})", encode_number(*elem, x))
            }
            x if elem.is_float() => format!("real(\"{name}\", {:?})", x.to_f64()),
            Number::Large(x) => format!("unsigned(\"{name}\", UINT64_C({x}))"),
            x => format!("integer(\"{name}\", INT64_C({x}))"),
        };
        let _ = writeln!(out, "    v[{i}] = tilec_bundle_{made};");
    }
    let _ = write!(
        out,
        "    a.tensors = t;\n    a.tensor_count = {};\n    a.values = v;\n    a.value_count = {};\n",
        tensors.len(),
        values.len()
    );
    let name = &problem.name;
    if has_scratch(image, name) {
        let _ = write!(
            out,
            "    if (tilec_bundle_scratch(b, \"{name}\", &a, &a.workspace_bytes, &a.signals_bytes, words, sizeof words) == 0)\n        printf(\"scratch %lu %lu\\n\", (unsigned long)a.workspace_bytes, (unsigned long)a.signals_bytes);\n    a.workspace = {WORKSPACE:#x}ull;\n    a.signals = {SIGNALS:#x}ull;\n"
        );
    }
    let _ = write!(out, "    said(tilec_bundle_launch(b, \"{name}\", NULL, &a, words, sizeof words));\n}}\n\n");
    out
}

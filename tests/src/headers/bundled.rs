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

/// Reads the tables of problems. With a function for each problem, gcc would take most of the time of the test.
const LAUNCH: &str = "typedef struct test_tensor {
    const char *name, *type;
    CUdeviceptr address;
    int rank;
    int64_t shape[TILEC_MODES], strides[TILEC_MODES];
} test_tensor;

typedef struct test_problem {
    const char *name;
    int scratch, first_tensor, tensors, first_value, values;
} test_problem;

static char words[400];

static void said(int code)
{
    if (code < 0 && words[0] == 0)
        printf(\"no words\\n\");
    printf(code == 0 ? \"fine\\n\" : \"refused\\n\");
    words[0] = 0;
}

static void launch(const tilec_bundle *b, const test_problem *p, const test_tensor *tensors, const tilec_bundle_value *values)
{
    tilec_bundle_args a;
    tilec_bundle_tensor t[MOST_TENSORS];
    tilec_bundle_value v[MOST_VALUES];
    int i;
    memset(&a, 0, sizeof a);
    for (i = 0; i < p->tensors; i++) {
        const test_tensor *x = &tensors[p->first_tensor + i];
        t[i] = tilec_bundle_packed(x->name, x->type, x->address, x->rank, x->shape);
        memcpy(t[i].strides, x->strides, sizeof x->strides);
    }
    for (i = 0; i < p->values; i++) {
        const tilec_bundle_value *x = &values[p->first_value + i];
        v[i] = x->kind == TILEC_REAL ? tilec_bundle_real(x->name, x->real)
            : x->kind == TILEC_UNSIGNED ? tilec_bundle_unsigned(x->name, x->large)
                                        : tilec_bundle_integer(x->name, x->integer);
    }
    a.tensors = t;
    a.tensor_count = p->tensors;
    a.values = v;
    a.value_count = p->values;
    if (p->scratch) {
        if (tilec_bundle_scratch(b, p->name, &a, &a.workspace_bytes, &a.signals_bytes, words, sizeof words) == 0)
            printf(\"scratch %lu %lu\\n\", (unsigned long)a.workspace_bytes, (unsigned long)a.signals_bytes);
        a.workspace = WORKSPACE;
        a.signals = SIGNALS;
    }
    said(tilec_bundle_launch(b, p->name, NULL, &a, words, sizeof words));
}

";

/// The text of the program; the bundle is its first argument.
pub(super) fn text(images: &[Image<'_>], problems: &[Vec<Problem>]) -> String {
    let mut entries = String::from("const test_entry test_entries[] = {\n");
    let mut sizes = String::new();
    for image in images {
        for (i, contract) in image.file.kernels.iter().enumerate() {
            let name = format!("sizes_{}_{i}", image.target.name());
            let bytes: Vec<String> = contract.params.iter().map(|p| param_bytes(&p.kind).to_string()).collect();
            let bytes = [bytes, vec!["0".to_owned()]].concat().join(", ");
            let _ = writeln!(sizes, "static const int {name}[] = {{{bytes}}};");
            let _ = writeln!(entries, "    {{{}, \"{}\", {name}}},", image.target.cc(), contract.entry);
        }
    }
    let mut tables = Tables::default();
    let mut main = String::from(
        "int main(int count, char **names)\n{\n    tilec_bundle b;\n    int i;\n    if (count != 2)\n        return 2;\n",
    );
    for (image, problems) in images.iter().zip(problems) {
        let first = tables.problems.len();
        problems.iter().for_each(|problem| tables.add(image, problem));
        let _ = writeln!(main, "    test_cc = {};\n    printf(\"cc %d\\n\", test_cc);", image.target.cc());
        main.push_str("    if (tilec_bundle_open(&b, names[1], words, sizeof words) != 0) {\n        puts(words);\n        return 1;\n    }\n");
        let end = tables.problems.len();
        let _ =
            writeln!(main, "    for (i = {first}; i < {end}; i++)\n        launch(&b, &problems[i], tensors, values);");
        main.push_str("    tilec_bundle_close(&b);\n");
    }
    main.push_str(
        "    test_cc = 30;\n    said(tilec_bundle_open(&b, names[1], words, sizeof words));\n    return 0;\n}\n",
    );
    let (most_tensors, most_values) = (tables.most_tensors.max(1), tables.most_values.max(1));
    let constants = format!(
        "#define MOST_TENSORS {most_tensors}\n#define MOST_VALUES {most_values}\n#define WORKSPACE {WORKSPACE:#x}ull\n#define SIGNALS {SIGNALS:#x}ull\n\n"
    );
    let includes = "#include \"driver.h\"\n#include \"tilec_bundle.h\"\n#include <stdio.h>\n\n";
    // No table may be empty.
    let table = |kind: &str, name: &str, rows: &[String]| {
        format!("static const {kind} {name}[] = {{\n    {}{{0}}\n}};\n\n", rows.concat())
    };
    let tables = [
        table("test_tensor", "tensors", &tables.tensors),
        table("tilec_bundle_value", "values", &tables.values),
        table("test_problem", "problems", &tables.problems),
    ];
    format!("{includes}{constants}{sizes}{entries}    {{0, NULL, NULL}}\n}};\n\n{LAUNCH}{}{main}", tables.concat())
}

/// The rows of the tables that the program reads.
#[derive(Default)]
struct Tables {
    tensors: Vec<String>,
    values: Vec<String>,
    problems: Vec<String>,
    most_tensors: usize,
    most_values: usize,
}

impl Tables {
    /// Adds the rows of one problem.
    fn add(&mut self, image: &Image<'_>, problem: &Problem) {
        let (tensors, values) = given(image, problem).expect("it was asked for");
        let at = addresses(image, &problem.name);
        let address = |name: &str| at.iter().find(|(n, _)| n == name).map_or(0, |(_, at)| *at);
        let numbers = |list: &[i64]| match list {
            [] => "0".to_owned(),
            _ => list.iter().map(|n| format!("INT64_C({n})")).collect::<Vec<_>>().join(", "),
        };
        self.most_tensors = self.most_tensors.max(tensors.len());
        self.most_values = self.most_values.max(values.len());
        self.problems.push(format!(
            "{{\"{}\", {}, {}, {}, {}, {}}},\n    ",
            problem.name,
            u8::from(has_scratch(image, &problem.name)),
            self.tensors.len(),
            tensors.len(),
            self.values.len(),
            values.len()
        ));
        for Given { name, tensor, shape, strides } in &tensors {
            self.tensors.push(format!(
                "{{\"{name}\", \"{}\", {:#x}ull, {}, {{{}}}, {{{}}}}},\n    ",
                tensor.elem.name(),
                address(name),
                shape.len(),
                numbers(shape),
                numbers(strides)
            ));
        }
        for (name, (elem, x)) in &values {
            let made = match *x {
                x if matches!(elem, Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0) => {
                    format!("TILEC_INTEGER, {}, 0, 0.0", encode_number(*elem, x))
                }
                x if elem.is_float() => format!("TILEC_REAL, 0, 0, {:?}", x.to_f64()),
                Number::Large(x) => format!("TILEC_UNSIGNED, 0, UINT64_C({x}), 0.0"),
                x => format!("TILEC_INTEGER, INT64_C({x}), 0, 0.0"),
            };
            self.values.push(format!("{{\"{name}\", {made}}},\n    "));
        }
    }
}

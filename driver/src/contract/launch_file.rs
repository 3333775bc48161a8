//! Launch descriptions written by hand: contracts in which much may be left out (`docs/launch-contract.md`).
//!
//! What is missing is filled in as JSON, and the result is read as a [`Contract`]; so whatever the compiler wrote is accepted
//! as it is, and a description by hand means what its completed form says. Unknown fields are errors: they are misspelt.

mod error;
mod facts;
mod field_kinds;

pub use error::LaunchFileError;

use crate::contract::json;
use crate::contract::launch_file::error::field;
use crate::contract::{
    Contract, Dimension, LaunchFile, MAP_ADDRESS_BYTES, ParamKind, SCHEMA, SCHEMA_ENDED, TensorMapParam, TensorParam,
};
use facts::Facts;
pub(crate) use facts::disagreement;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tilec_sim::ParseError;

/// Alignment of a tensor without a given one: that of `cudaMalloc`.
pub const DEFAULT_ALIGN: u32 = 256;

/// Largest alignment: a page of memory.
const MAX_ALIGN: u32 = 4096;

const FIELDS: &[&str] = &[
    "schema",
    "entry",
    "target",
    "ptx_version",
    "id",
    "block",
    "cluster",
    "programmatic",
    "dynamic_smem_bytes",
    "grid",
    "params",
    "requires",
];
const PROGRAM_FIELDS: &[&str] = &["name", "launches", "temporaries"];
const PARAM_FIELDS: &[&str] = &[
    "name",
    "kind",
    "type",
    "align",
    "access",
    "shape",
    "strides",
    "reads_gaps",
    "constant",
    "scratch",
    "may_alias",
    "packed",
    "default",
    "tensor",
    "dims",
    "box",
    "swizzle",
    "ended",
    "im2col",
];

/// Parses a launch description of `ptx`: kernels and programs, in order.
///
/// # Errors
/// If the text is not JSON, lacks a required value, or has values that a contract cannot have.
pub fn contracts(text: &str, ptx: &str) -> Result<LaunchFile, LaunchFileError> {
    let mut value: Value = json::parse(text).map_err(|e| LaunchFileError::Syntax {
        line: e.line(),
        column: e.column(),
        message: e.to_string().split(" at line ").next().unwrap_or("").to_owned(),
    })?;
    let facts = Facts::of(ptx);
    let top = value.as_object_mut().ok_or_else(|| field("a launch description is an object: `{\"block\": .., ..}`"))?;
    default_schema(top);
    match top.get_mut("kernels") {
        Some(kernels) => {
            let kernels = kernels.as_array_mut().ok_or_else(|| field("`kernels` is not an array"))?;
            for (i, kernel) in kernels.iter_mut().enumerate() {
                let kernel = kernel.as_object_mut().ok_or_else(|| field(format!("`kernels[{i}]` is not an object")))?;
                default_schema(kernel);
                complete(kernel, &facts)?;
            }
        }
        None => complete(top, &facts)?,
    }
    let programs = match value.as_object_mut().and_then(|top| top.remove("programs")) {
        Some(programs) => programs_by_name(&programs)?,
        None => Vec::new(),
    };
    let mut file = LaunchFile::from_json(&value.to_string())?;
    file.kernels.iter().try_for_each(validate)?;
    for (name, launches) in programs {
        if file.names().contains(&name.as_str()) || file.contract(&name).is_some() {
            return Err(field(format!("two kernels or programs are called `{name}`")));
        }
        let program = file.program(&name, &launches).map_err(|misfits| field(misfits.join("; ")))?;
        file.programs.push(program);
    }
    Ok(file)
}

/// Names of programs and of the kernels that they launch. Temporaries between kernels are derived.
fn programs_by_name(programs: &Value) -> Result<Vec<(String, Vec<String>)>, LaunchFileError> {
    let one = |(i, program): (usize, &Value)| {
        let what = format!("`programs[{i}]`");
        let program = program.as_object().ok_or_else(|| field(format!("{what} is not an object")))?;
        known(program, PROGRAM_FIELDS, &what)?;
        let name = program.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| field(format!("{what} has no `name`")))?;
        let launches = program.get("launches").and_then(Value::as_array).filter(|l| !l.is_empty());
        let launches = launches.ok_or_else(|| field(format!("{what} has no `launches`: entries in order")))?;
        let entry = |e: &Value| e.as_str().map(str::to_owned);
        let launches = launches.iter().map(entry).collect::<Option<_>>();
        Ok((name.to_owned(), launches.ok_or_else(|| field(format!("the launches of {what} are not names")))?))
    };
    programs.as_array().ok_or_else(|| field("`programs` is not an array"))?.iter().enumerate().map(one).collect()
}

fn known(object: &Map<String, Value>, fields: &[&str], of: &str) -> Result<(), LaunchFileError> {
    match object.keys().find(|k| !fields.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => {
            let near = tilec_ir::spelling::nearest(key, fields.iter().copied(), |field| field);
            let hint =
                near.map_or_else(|| format!("there are {}", fields.join(", ")), |n| format!("did you mean `{n}`?"));
            Err(field(format!("{of} has no field `{key}`; {hint}")))
        }
    }
}

/// The default schema: the one for windows that end before their tensor, if there are such tensor maps.
fn default_schema(of: &mut Map<String, Value>) {
    let params = of.get("params").and_then(Value::as_array);
    let ended = params.is_some_and(|all| all.iter().any(|p| p.get("ended").is_some()));
    of.entry("schema").or_insert_with(|| json!(if ended { SCHEMA_ENDED } else { SCHEMA }));
}

/// Fills in what is missing of a contract.
fn complete(kernel: &mut Map<String, Value>, facts: &Facts) -> Result<(), LaunchFileError> {
    known(kernel, FIELDS, "a launch description")?;
    if !kernel.contains_key("entry") {
        let [only] = facts.entries.as_slice() else {
            let names: Vec<String> = facts.entries.iter().map(|e| format!("`{}`", e.name)).collect();
            return Err(match names.len() {
                0 if let Some(ParseError { line, col, message, .. }) = &facts.broken => {
                    LaunchFileError::Ptx { line: *line as usize, column: *col as usize, message: message.clone() }
                }
                0 => field("the PTX has no `.entry`: there is no kernel to launch"),
                _ => field(format!("`entry` is missing, and the PTX has several: {}", names.join(", "))),
            });
        };
        kernel.insert("entry".to_owned(), json!(only.name));
    }
    let mut default = |name: &str, value: Value| {
        kernel.entry(name).or_insert(value);
    };
    default("target", json!(facts.target.as_deref().unwrap_or("sm_70")));
    default("ptx_version", json!(facts.version.as_deref().unwrap_or("6.0")));
    default("cluster", json!([1, 1, 1]));
    default("dynamic_smem_bytes", json!(0));
    default("requires", json!([]));
    for name in ["block", "cluster"] {
        let axes = axes(kernel, name)?;
        kernel.insert(name.to_owned(), Value::Array(axes));
    }
    field_kinds::of_kernel(kernel)?;
    let grid = axes(kernel, "grid")?;
    kernel.insert("grid".to_owned(), expressions(&grid, "`grid`")?);
    let params = kernel.get_mut("params").ok_or_else(|| field("`params` is missing: the parameters in order"))?;
    let params = params.as_array_mut().ok_or_else(|| field("`params` is not an array"))?;
    for (i, param) in params.iter_mut().enumerate() {
        let what = format!("`params[{i}]`");
        let param = param.as_object_mut().ok_or_else(|| field(format!("{what} is not an object")))?;
        complete_param(param, &what)?;
    }
    Ok(())
}

/// `n`, `[n]`, `[n, m]` or `[n, m, k]` as three numbers or expressions.
fn axes(kernel: &Map<String, Value>, name: &str) -> Result<Vec<Value>, LaunchFileError> {
    let mut axes = match kernel.get(name) {
        None => return Err(field(format!("`{name}` is missing"))),
        Some(Value::Array(axes)) if (1..=3).contains(&axes.len()) => axes.clone(),
        Some(one @ (Value::Number(_) | Value::String(_))) => vec![one.clone()],
        Some(_) => return Err(field(format!("`{name}` is not one to three numbers"))),
    };
    axes.resize(3, json!(1));
    Ok(axes)
}

/// Numbers and strings, and lists of them, as expressions.
fn expressions(list: &[Value], what: &str) -> Result<Value, LaunchFileError> {
    let one = |v: &Value| match v {
        Value::String(text) => Ok(json!(text)),
        Value::Number(n) => Ok(json!(n.to_string())),
        Value::Array(modes) if !modes.is_empty() && !modes.iter().any(Value::is_array) => expressions(modes, what),
        _ => Err(field(format!("{what} has something that is neither a number nor an expression in quotes"))),
    };
    list.iter().map(one).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// Fills in what is missing of a parameter.
fn complete_param(param: &mut Map<String, Value>, what: &str) -> Result<(), LaunchFileError> {
    known(param, PARAM_FIELDS, what)?;
    field_kinds::of_param(param, what)?;
    if !param.contains_key("name") {
        return Err(field(format!("{what} has no `name`")));
    }
    let kind = match param.get("kind") {
        Some(kind) => kind.as_str().unwrap_or("").to_owned(),
        None if param.contains_key("tensor") => "tensor_map".to_owned(),
        None if param.contains_key("shape") => "tensor".to_owned(),
        None if param.contains_key("type") => "scalar".to_owned(),
        None => return Err(field(format!("{what} needs a `shape` (a tensor), a `type` (a scalar), or a `kind`"))),
    };
    match kind.as_str() {
        "tensor" => complete_tensor(param, what, 0)?,
        "pointers" => complete_tensor(param, what, 1)?,
        "size" | "stride" => {
            param.entry("type").or_insert(json!(if kind == "size" { "u32" } else { "i64" }));
        }
        "scalar" => {}
        "tensor_map" => {
            for name in ["tensor", "dims", "box", "swizzle"] {
                if !param.contains_key(name) {
                    return Err(field(format!("{what} is a tensor map and has no `{name}`")));
                }
            }
        }
        other => {
            return Err(field(format!(
                "{what} has the kind `{other}`; there are tensor, pointers, size, stride, scalar and tensor_map"
            )));
        }
    }
    if kind != "tensor_map" && !param.contains_key("type") {
        return Err(field(format!("{what} has no `type`")));
    }
    param.insert("kind".to_owned(), json!(kind));
    Ok(())
}

/// `unstrided`: number of dimensions before those with strides.
fn complete_tensor(param: &mut Map<String, Value>, what: &str, unstrided: usize) -> Result<(), LaunchFileError> {
    let list = |v: Option<&Value>| match v {
        Some(Value::Array(list)) => Some(list.clone()),
        Some(one @ (Value::Number(_) | Value::String(_))) => Some(vec![one.clone()]),
        _ => None,
    };
    let shape = list(param.get("shape")).ok_or_else(|| field(format!("{what} is a tensor and has no `shape`")))?;
    let shape = expressions(&shape, &format!("the shape of {what}"))?;
    let strides = match param.get("strides") {
        None => packed(&shape, unstrided),
        given => {
            let given = list(given).ok_or_else(|| field(format!("the strides of {what} are not a list")))?;
            expressions(&given, &format!("the strides of {what}"))?
        }
    };
    param.insert("shape".to_owned(), shape);
    param.insert("strides".to_owned(), strides);
    param.entry("align").or_insert(json!(DEFAULT_ALIGN));
    param.entry("access").or_insert(json!("read_write"));
    Ok(())
}

/// The strides of a row-major tensor without gaps, grouped as its extents are, but for the first dimensions that have none.
fn packed(shape: &Value, unstrided: usize) -> Value {
    let dims = || shape.as_array().into_iter().flatten().skip(unstrided);
    let all = dims().flat_map(|dim| dim.as_array().map_or(std::slice::from_ref(dim), Vec::as_slice));
    let extents: Vec<String> = all.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut next = 0;
    let mut stride = || {
        next += 1;
        json!(product(extents.get(next..).unwrap_or(&[])))
    };
    let group = |dim: &Value| match dim {
        Value::Array(modes) => Value::Array(modes.iter().map(|_| stride()).collect()),
        _ => stride(),
    };
    Value::Array(dims().map(group).collect())
}

/// The product of expressions, as one.
fn product(factors: &[String]) -> String {
    match factors {
        [] => "1".to_owned(),
        [one] => one.clone(),
        _ => factors.iter().map(|f| format!("({f})")).collect::<Vec<_>>().join(" * "),
    }
}

/// Checks what the types of a contract do not exclude.
fn validate(contract: &Contract) -> Result<(), LaunchFileError> {
    let mut names = BTreeSet::new();
    for param in &contract.params {
        let name = &param.name;
        if !names.insert(name.as_str()) {
            return Err(field(format!("two parameters are called `{name}`")));
        }
        if let Some(TensorParam { align, shape, strides, .. }) = param.kind.tensor() {
            if !align.is_power_of_two() || *align > MAX_ALIGN {
                let message =
                    format!("the alignment of `{name}` is {align}, expected a power of two up to {MAX_ALIGN}");
                return Err(field(message));
            }
            let (n, m) = (shape.len(), strides.len());
            match param.kind {
                ParamKind::Pointers(_) if n != m + 1 || n < 2 => {
                    let message = format!(
                        "`{name}` has {n} extents and {m} strides; the first dimension counts addresses and has no stride"
                    );
                    return Err(field(message));
                }
                ParamKind::Tensor(_) if n != m || n == 0 => {
                    return Err(field(format!("`{name}` has {n} extents and {m} strides")));
                }
                _ => {}
            }
            if shape.iter().zip(strides).any(|(e, s)| e.parts().len() != s.parts().len()) {
                return Err(field(format!("the strides of `{name}` are not grouped as its extents are")));
            }
        }
        if let ParamKind::TensorMap(map) = &param.kind {
            validate_map(contract, map).map_err(|wrong| field(format!("the tensor map `{name}` {wrong}")))?;
        }
    }
    Ok(())
}

/// Checks, as far as sizes do not matter, that a tensor map describes a tensor of the contract in a form
/// `cuTensorMapEncodeTiled` accepts.
fn validate_map(contract: &Contract, map: &TensorMapParam) -> Result<(), String> {
    let described = contract.params.iter().find(|p| p.name == map.tensor);
    let Some(ParamKind::Tensor(tensor)) = described.map(|p| &p.kind) else {
        return Err(format!("describes `{}`, which is not a tensor among the parameters", map.tensor));
    };
    if u64::from(tensor.align) < MAP_ADDRESS_BYTES {
        return Err(format!("needs `align` {MAP_ADDRESS_BYTES} of `{}`, which has {}", map.tensor, tensor.align));
    }
    let mut seen = BTreeSet::new();
    for &dim in &map.dims {
        let stride = tensor.strides.get(dim as usize);
        if !seen.insert(dim) || stride.is_none_or(|s| matches!(s, Dimension::Modes(_))) {
            return Err(format!("has {dim} among `dims`, which is no plain dimension of `{}`, or twice", map.tensor));
        }
    }
    let first = map.dims.first().and_then(|&dim| tensor.strides.get(dim as usize));
    if first.is_some_and(|s| *s != Dimension::from("1")) {
        return Err(format!("begins with a dimension of `{}` whose stride is not 1", map.tensor));
    }
    if map.ended.is_some_and(|i| i == 0 || i as usize >= map.dims.len() || map.im2col.is_some()) {
        return Err("has an `ended` that is not an index of `dims` after the first, or is in im2col mode".to_owned());
    }
    if let Some(of) = &map.im2col {
        let places = map.dims.len().saturating_sub(2);
        let counts = [of.lower.len(), of.upper.len(), of.steps.len()];
        if counts != [places; 3] || map.extents.len() != 2 {
            return Err(format!("in im2col mode has a `box` of channels and pixels, and {places} corners and steps"));
        }
    }
    map.check(tensor.elem).map_err(|rule| format!("cannot be made: {rule}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Access, to_json};
    use pretty_assertions::assert_eq;
    use tilec_ir::types::Elem;

    const PTX: &str = ".version 7.4\n.target sm_80\n.address_size 64\n// .entry not_this\n.visible .entry saxpy(\n";

    fn one(json: &str) -> Result<Contract, String> {
        match contracts(json, PTX).map_err(|e| e.to_string())?.kernels.as_slice() {
            [one] => Ok(one.clone()),
            several => Err(format!("{} contracts", several.len())),
        }
    }

    #[test]
    fn what_the_compiler_wrote_is_read_as_it_is() {
        let one = crate::contract::tests::gemm();
        let mut other = one.clone();
        other.entry = "other".to_owned();
        for all in [vec![one.clone()], vec![one, other]] {
            assert_eq!(contracts(&to_json(&all), PTX).expect("complete").kernels, all);
        }
    }

    #[test]
    fn little_has_to_be_written_by_hand() {
        let contract = one(r#"{"block": 256, "grid": "ceildiv(n, 256)", "params": [
                {"name": "n", "type": "i32"}, {"name": "a", "type": "f32", "default": 2},
                {"name": "x", "type": "f32", "shape": ["n", 3, "m"], "access": "read"},
                {"name": "y", "type": "f16", "shape": "n", "align": 4}, {"name": "m", "kind": "size"}]}"#)
        .expect("complete");
        assert_eq!((contract.entry.as_str(), contract.target.as_str()), ("saxpy", "sm_80"));
        assert_eq!(contract.ptx_version, "7.4");
        assert_eq!((contract.block, contract.cluster, contract.dynamic_smem_bytes), ([256, 1, 1], [1, 1, 1], 0));
        assert_eq!(contract.grid, ["ceildiv(n, 256)", "1", "1"]);
        assert_eq!(contract.params[0].kind, ParamKind::Scalar { elem: Elem::I32, default: None });
        let strings = |list: &[&str]| list.iter().map(|s| Dimension::from(*s)).collect::<Vec<_>>();
        assert_eq!(
            contract.params[2].kind,
            ParamKind::Tensor(TensorParam {
                elem: Elem::F32,
                align: DEFAULT_ALIGN,
                access: Access::Read,
                shape: strings(&["n", "3", "m"]),
                strides: strings(&["(3) * (m)", "m", "1"]),
                reads_gaps: false,
                constant: false,
                scratch: None,
                may_alias: Vec::new(),
            })
        );
        let last = contract.params[3].kind.tensor().expect("a tensor");
        assert_eq!((last.align, &last.strides[..]), (4, &[Dimension::from("1")][..]));
    }

    #[test]
    fn dimensions_may_have_several_modes() {
        let nested = r#"{"block": 1, "grid": 1, "params": [
            {"name": "x", "type": "f32", "shape": [["b", 4], "c"]},
            {"name": "y", "type": "f32", "shape": [["b", 4], "c"], "strides": [["c * 4", 1], 4]}]}"#;
        let contract = one(nested).expect("complete");
        let modes = |list: &[&str]| Dimension::Modes(list.iter().map(|s| (*s).to_owned()).collect());
        for (i, strides) in
            [[modes(&["(4) * (c)", "c"]), "1".into()], [modes(&["c * 4", "1"]), "4".into()]].iter().enumerate()
        {
            let Some(TensorParam { shape, strides: s, .. }) = contract.params[i].kind.tensor() else {
                panic!("a tensor")
            };
            assert_eq!((shape, s), (&vec![modes(&["b", "4"]), "c".into()], &strides.to_vec()));
        }
        assert_eq!(contracts(&to_json(std::slice::from_ref(&contract)), PTX).expect("complete").kernels, [contract]);
    }

    #[test]
    fn arrays_of_pointers_have_no_first_stride() {
        let text = r#"{"block": 1, "grid": 1, "params": [{"name": "x", "kind": "pointers", "type": "f32", "shape": ["z", 4, "c"]}]}"#;
        let contract = one(text).expect("complete");
        let x = contract.params[0].kind.tensor().expect("a tensor");
        assert_eq!(x.strides, ["c".into(), "1".into()]);
        let wrong = text.replace("\"c\"]", "\"c\"], \"strides\": [1, 1, 1]");
        assert!(one(&wrong).expect_err("a stride too many").contains("counts addresses and has no stride"));
    }

    const MODE: &str = r#", "swizzle": "128B""#;

    /// A contract with a tensor map of a tensor of 5 rows of 64.
    fn map(dims: &str, extents: &str, more: &str) -> String {
        format!(
            r#"{{"block": 1, "grid": 1, "params": [{{"name": "x", "type": "f16", "shape": [5, 64]}},
                {{"name": "m", "tensor": "x", "dims": {dims}, "box": {extents}{more}}}]}}"#
        )
    }

    #[test]
    fn tensor_maps_are_read() {
        let contract = one(&map("[1, 0]", "[64, 5]", MODE)).expect("complete");
        let ParamKind::TensorMap(of_x) = &contract.params[1].kind else { panic!("{:?}", contract.params[1]) };
        assert_eq!((of_x.tensor.as_str(), &of_x.dims[..], &of_x.extents[..]), ("x", &[1, 0][..], &[64, 5][..]));
        assert_eq!(contracts(&to_json(std::slice::from_ref(&contract)), PTX).expect("complete").kernels, [contract]);
    }

    #[test]
    fn a_map_for_windows_with_an_end_of_their_own_has_a_schema_of_its_own() {
        let ended = |place: &str| map("[1, 0]", "[64, 1]", &format!("{MODE}, \"ended\": {place}"));
        let contract = one(&ended("1")).expect("complete");
        assert_eq!(contract.schema, "tilec.launch/3");
        assert_eq!(contracts(&to_json(std::slice::from_ref(&contract)), PTX).expect("complete").kernels, [contract]);
        for place in ["0", "2"] {
            assert!(one(&ended(place)).expect_err("no such place").contains("has an `ended` that is"), "{place}");
        }
        let known = ended("1").replacen('{', r#"{"schema": "tilec.launch/1", "#, 1);
        assert!(one(&known).expect_err("an old host would not see it").contains("not the schema `tilec.launch/3`"));
    }

    #[test]
    fn mistakes_are_named() {
        let with = |param: &str| format!(r#"{{"block": 1, "grid": 1, "params": [{param}]}}"#);
        for (text, needle) in [
            ("{".to_owned(), "not JSON"),
            ("[]".to_owned(), "is an object"),
            ("{}".to_owned(), "`block` is missing"),
            (r#"{"block": 1, "grid": 1}"#.to_owned(), "`params` is missing"),
            (r#"{"block": [], "grid": 1, "params": []}"#.to_owned(), "`block` is not"),
            (r#"{"block": 1, "grid": {}, "params": []}"#.to_owned(), "`grid` is not"),
            (r#"{"block": 1, "grids": 1, "params": []}"#.to_owned(), "did you mean `grid`"),
            (r#"{"schema": "x", "block": 1, "grid": 1, "params": []}"#.to_owned(), "unknown schema"),
            (with("3"), "`params[0]` is not an object"),
            (with(r#"{"type": "f32"}"#), "has no `name`"),
            (with(r#"{"name": "a"}"#), "needs a `shape`"),
            (with(r#"{"name": "a", "kind": "pointer"}"#), "the kind `pointer`"),
            (with(r#"{"name": "a", "kind": "scalar"}"#), "has no `type`"),
            (with(r#"{"name": "a", "shape": [1], "acess": "read", "type": "f32"}"#), "did you mean `access`"),
            (with(r#"{"name": "a", "shape": [[]], "type": "f32"}"#), "neither a number nor"),
            (with(r#"{"name": "a", "shape": [1], "strides": [1, 2], "type": "f32"}"#), "1 extents and 2 strides"),
            (with(r#"{"name": "a", "shape": [[1, 2]], "strides": [1], "type": "f32"}"#), "not grouped"),
            (with(r#"{"name": "a", "shape": [1], "align": 3, "type": "f32"}"#), "a power of two up to"),
            (with(r#"{"name": "a", "shape": [1], "align": 8192, "type": "f32"}"#), "a power of two up to"),
            (with(r#"{"name": "a", "type": "f31"}"#), "f31"),
            (map("[1, 0]", "[8, 8]", ""), "has no `swizzle`"),
            (map("[1, 0]", "[8, 8]", r#", "swizzle": "16B""#), "unknown swizzling mode `16B`"),
            (map("[1, 0]", "[8]", MODE), "2 box sizes"),
            (map("[]", "[]", MODE), "a tensor of 0 dimensions"),
            (map("[1, 2]", "[8, 8]", MODE), "has 2 among `dims`"),
            (map("[1, 1]", "[8, 8]", MODE), "or twice"),
            (map("[0, 1]", "[8, 8]", MODE), "whose stride is not 1"),
            (map("[1, 0]", "[8, 257]", MODE), "a box of 257 elements"),
            (map("[1, 0]", "[4, 8]", MODE), "has 8 bytes, no multiple of 16"),
            (map("[1, 0]", "[128, 8]", MODE), "has 256 bytes, the swizzle takes 128"),
            (
                map("[1, 0]", "[8, 8]", MODE).replace("\"tensor\": \"x\"", "\"tensor\": \"y\""),
                "`y`, which is not a tensor",
            ),
            (map("[1, 0]", "[8, 8]", MODE).replace("\"shape\"", "\"align\": 2, \"shape\""), "needs `align` 16"),
            (with(r#"{"name": "a", "type": "f32"}, {"name": "a", "type": "f32"}"#), "two parameters"),
        ] {
            let error = one(&text).expect_err(&text);
            assert!(error.contains(needle), "{text}: {error}");
        }
        let several = PTX.to_owned() + ".visible .entry b()\n";
        let error =
            contracts(r#"{"block": 1, "grid": 1, "params": []}"#, &several).expect_err("two entries").to_string();
        assert!(error.contains("`saxpy`, `b`"), "{error}");
    }

    #[test]
    fn entries_are_found_wherever_they_stand() {
        let head = ".version 7.4\n.target sm_80\n.address_size 64\n";
        let launch = r#"{"block": 1, "grid": 1, "params": []}"#;
        for text in [
            ".global .b32 q;.visible .entry k(){ret;}",
            ".visible\n.entry\nk\n() { ret; }",
            "/* .visible .entry z( */ .visible .entry k() { ret; } // .entry y(",
            ".file 1 \"a .entry b\"\n.entry k() { ret; }",
        ] {
            let file = contracts(launch, &format!("{head}{text}")).expect(text);
            assert_eq!(file.kernels[0].entry, "k", "{text}");
        }
        for text in ["/* .entry k() { ret; }", ".file 1 \"a\n.entry k() { ret; }", ".bogus"] {
            let error = contracts(launch, &format!("{head}{text}")).expect_err(text);
            assert!(matches!(error, LaunchFileError::Ptx { line: 4.., .. }), "{text:?}: {error:?}");
        }
    }

    #[test]
    fn a_wrong_kind_of_value_names_its_field() {
        let top = |field: &str| format!("{{{field}, \"grid\": 1, \"params\": []}}");
        let param = |field: &str| {
            format!(
                "{{\"block\": 1, \"grid\": 1, \"params\": [{{\"name\": \"x\", \"type\": \"f32\", \"shape\": 1, {field}}}]}}"
            )
        };
        for (text, said) in [
            (top("\"block\": [\"64\"]"), "`block` is [\"64\", 1, 1], expected whole numbers"),
            (top("\"block\": -1"), "`block` is [-1, 1, 1]"),
            (top("\"block\": 1.5"), "`block` is [1.5, 1, 1]"),
            (top("\"block\": 1, \"cluster\": \"2\""), "`cluster` is [\"2\", 1, 1], expected whole numbers"),
            (
                top("\"block\": 1, \"dynamic_smem_bytes\": \"1024\""),
                "`dynamic_smem_bytes` is the string \"1024\", expected a whole number",
            ),
            (top("\"block\": 1, \"programmatic\": 1"), "`programmatic` is 1, expected true or false"),
            (top("\"block\": 1, \"entry\": 3"), "`entry` is 3, expected a string"),
            (
                top("\"block\": 1, \"requires\": \"n > 1\""),
                "`requires` is the string \"n > 1\", expected a list of strings",
            ),
            (param("\"align\": \"16\""), "`align` of `params[0]` is the string \"16\", expected a whole number"),
            (
                param("\"access\": \"readwrite\""),
                "`access` of `params[0]` is the string \"readwrite\", expected one of read, write, read_write",
            ),
            (param("\"may_alias\": \"y\""), "`may_alias` of `params[0]`"),
            (param("\"reads_gaps\": 0"), "`reads_gaps` of `params[0]` is 0, expected true or false"),
            (param("\"kind\": 1"), "`kind` of `params[0]` is 1, expected a string"),
        ] {
            let error = one(&text).expect_err(&text);
            assert!(error.contains(said), "{error}");
        }
        // Numbers of the grid are expressions, in quotes or not: contracts of the compiler have quotes.
        let quoted = one("{\"block\": 1, \"grid\": [\"1\"], \"params\": []}").expect("a grid");
        assert_eq!(quoted.grid, one("{\"block\": 1, \"grid\": 1, \"params\": []}").expect("a grid").grid);
    }
}

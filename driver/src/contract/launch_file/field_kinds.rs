//! Which kind of value each field of a launch description takes, so that a wrong one is reported by the name of its field.

use crate::contract::launch_file::error::{LaunchFileError, field};
use serde_json::{Map, Value};
use tilec_ir::types::Elem;

/// The kind of value a field takes. Expressions, and values with a form of their own, are checked elsewhere.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    /// A whole number of 32 bits, one or a list.
    Count,
    Counts,
    /// Any number, or the name of one that JSON lacks.
    Number,
    Texts,
    /// The name of an element type.
    Element,
    /// One of these words.
    Word(&'static [&'static str]),
}

const TOP: &[(&str, Kind)] = &[
    ("schema", Kind::Text),
    ("entry", Kind::Text),
    ("target", Kind::Text),
    ("ptx_version", Kind::Text),
    ("id", Kind::Text),
    ("block", Kind::Counts),
    ("cluster", Kind::Counts),
    ("programmatic", Kind::Flag),
    ("dynamic_smem_bytes", Kind::Count),
    ("requires", Kind::Texts),
];

const PARAM: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("kind", Kind::Text),
    ("type", Kind::Element),
    ("align", Kind::Count),
    ("access", Kind::Word(&["read", "write", "read_write"])),
    ("reads_gaps", Kind::Flag),
    ("constant", Kind::Flag),
    ("scratch", Kind::Word(&["elements", "signals"])),
    ("may_alias", Kind::Texts),
    ("packed", Kind::Text),
    ("default", Kind::Number),
    ("tensor", Kind::Text),
    ("dims", Kind::Counts),
    ("box", Kind::Counts),
    ("swizzle", Kind::Text),
];

/// The fields of a kernel, completed.
pub(super) fn of_kernel(kernel: &Map<String, Value>) -> Result<(), LaunchFileError> {
    check(kernel, TOP, "")
}

/// Those of a parameter, which is called `what`.
pub(super) fn of_param(param: &Map<String, Value>, what: &str) -> Result<(), LaunchFileError> {
    check(param, PARAM, &format!(" of {what}"))
}

fn check(object: &Map<String, Value>, fields: &[(&str, Kind)], of: &str) -> Result<(), LaunchFileError> {
    for (name, kind) in fields {
        // `null` is what is left out.
        let Some(value) = object.get(*name).filter(|value| !value.is_null()) else { continue };
        if let Some(expected) = mismatch(value, *kind) {
            return Err(field(format!("`{name}`{of} is {}, expected {expected}", shown(value))));
        }
    }
    Ok(())
}

/// The expected kind, if the value has another one.
fn mismatch(value: &Value, kind: Kind) -> Option<String> {
    let is_count = |v: &Value| v.as_u64().is_some_and(|n| u32::try_from(n).is_ok());
    let all = |is: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(is));
    let (fits, expected) = match kind {
        Kind::Text => (value.is_string(), "a string"),
        Kind::Flag => (value.is_boolean(), "true or false"),
        Kind::Count => (is_count(value), "a whole number"),
        Kind::Counts => (value.as_array().is_some_and(|list| list.iter().all(is_count)), "whole numbers"),
        Kind::Number => (value.is_number() || value.is_string(), "a number"),
        Kind::Element => {
            let fits = value.as_str().is_some_and(|name| Elem::from_name(name).is_some());
            let names: Vec<&str> = Elem::ALL.iter().map(|e| e.name()).collect();
            return (!fits).then(|| format!("an element type: {} (`i64` for any word of 64 bits)", names.join(", ")));
        }
        Kind::Texts => (all(Value::is_string), "a list of strings"),
        Kind::Word(words) => {
            let fits = value.as_str().is_some_and(|word| words.contains(&word));
            return (!fits).then(|| format!("one of {}", words.join(", ")));
        }
    };
    (!fits).then(|| expected.to_owned())
}

/// A value as it was written, with what it is where that does not show.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string \"{}\"", text.escape_default()),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().take(3).map(ToString::to_string).collect();
            format!("[{}{}]", items.join(", "), if list.len() > 3 { ", .." } else { "" })
        }
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

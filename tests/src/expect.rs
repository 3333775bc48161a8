//! A small expression language over JSON, for expectations on reports and instruction counts.
//!
//! ```text
//! expectation = value OP literal
//! value       = path | FUNCTION "(" path ")"            FUNCTION: sum, count, min, max
//! path        = name { "[" filter "]" } { "." path }
//! filter      = name | name "=" text                    of the objects of an array
//! OP          = "==" | "!=" | "<=" | ">=" | "<" | ">" | "~"
//! literal     = number | "true" | "false" | '"' text '"'
//! ```
//!
//! A path through an array goes through each of its elements, so it can have several values; all must satisfy the
//! comparison, and there must be at least one. The filter `[A]` keeps the objects in which a text mentions the name
//! `A`; `[loop]` those in a loop; `[access=store]` those whose field has that value. `~` asks whether a text contains
//! another. A missing field is an error, so that a misspelt expectation fails.

use serde_json::Value;

/// Checks one expectation.
///
/// # Errors
/// It does not hold, or makes no sense; the text says what was found.
pub fn holds(text: &str, json: &Value) -> Result<(), String> {
    let failed = |why: String| format!("expected {text}: {why}");
    let (left, op, right) = split(text).ok_or_else(|| failed("not of the form `path == value`".to_owned()))?;
    let literal: Value = serde_json::from_str(right).map_err(|_| failed(format!("`{right}` is not a value")))?;
    let found = values(left, json).map_err(failed)?;
    if found.is_empty() {
        return Err(failed("the report has no such thing".to_owned()));
    }
    for value in &found {
        if !compare(value, op, &literal).ok_or_else(|| failed(format!("cannot compare {value}")))? {
            return Err(failed(format!("found {}", found.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))));
        }
    }
    Ok(())
}

/// Left side, operator, right side.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let mut depth = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                let op = ["==", "!=", "<=", ">=", "<", ">", "~"].into_iter().find(|op| text[i..].starts_with(op));
                if let Some(op) = op {
                    return Some((text[..i].trim(), op, text[i + op.len()..].trim()));
                }
            }
            _ => {}
        }
    }
    None
}

fn compare(value: &Value, op: &str, literal: &Value) -> Option<bool> {
    if let (Some(a), Some(b)) = (value.as_f64(), literal.as_f64()) {
        return Some(match op {
            "==" => a == b,
            "!=" => a != b,
            "<" => a < b,
            "<=" => a <= b,
            ">" => a > b,
            ">=" => a >= b,
            _ => return None,
        });
    }
    match op {
        "==" => Some(value == literal),
        "!=" => Some(value != literal),
        "~" => Some(value.as_str()?.contains(literal.as_str()?)),
        _ => None,
    }
}

fn values(text: &str, json: &Value) -> Result<Vec<Value>, String> {
    let Some((function, path)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) else {
        return Ok(walk(text, json)?.into_iter().cloned().collect());
    };
    let found = walk(path, json)?;
    if function == "count" {
        return Ok(vec![Value::from(found.len())]);
    }
    let numbers: Option<Vec<f64>> = found.iter().map(|v| v.as_f64()).collect();
    let numbers = numbers.ok_or_else(|| format!("`{path}` has values that are no numbers"))?;
    match function {
        "sum" => Ok(vec![Value::from(numbers.iter().sum::<f64>())]),
        "min" => Ok(numbers.into_iter().reduce(f64::min).map(Value::from).into_iter().collect()),
        "max" => Ok(numbers.into_iter().reduce(f64::max).map(Value::from).into_iter().collect()),
        _ => Err(format!("no function `{function}`")),
    }
}

/// The values that a path leads to.
fn walk<'a>(path: &str, json: &'a Value) -> Result<Vec<&'a Value>, String> {
    let mut found = vec![json];
    for segment in segments(path) {
        let (name, filters) = segment.split_once('[').map_or((segment, ""), |(n, f)| (n, f));
        let mut next = Vec::new();
        for value in found {
            let field = value.get(name).ok_or_else(|| format!("there is no `{name}`"))?;
            match field {
                Value::Array(items) => next.extend(items),
                other => next.push(other),
            }
        }
        for filter in filters.split('[').map(|f| f.trim_end_matches(']')).filter(|f| !f.is_empty()) {
            next.retain(|v| matches(v, filter));
        }
        found = next;
    }
    Ok(found)
}

/// A path cut at the dots outside brackets.
fn segments(path: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (i, c) in path.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => {
                parts.push(path[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(path[start..].trim());
    parts
}

fn matches(value: &Value, filter: &str) -> bool {
    let Some(fields) = value.as_object() else { return false };
    if filter == "loop" {
        return fields.get("in_loop") == Some(&Value::Bool(true));
    }
    match filter.split_once('=') {
        Some((key, wanted)) => fields.get(key).is_some_and(|v| {
            let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
            text == wanted
        }),
        None => fields.iter().filter(|(k, _)| *k != "why").filter_map(|(_, v)| v.as_str()).any(|s| mentions(s, filter)),
    }
}

/// Whether `name` is a whole word of `text`.
fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Value {
        serde_json::json!({
            "barriers_in_loop": 1,
            "entry": "gemm",
            "copies": [
                {"src": "A[bm * 128.., k..]", "dst": "sa", "global_bytes": 16, "in_loop": true, "why": "B"},
                {"src": "B[k.., bn * 128..]", "dst": "sb", "global_bytes": 4, "in_loop": true, "why": "N is odd"},
                {"src": "acc", "dst": "c", "global_bytes": 16, "in_loop": false, "why": ""},
            ],
            "none": [],
        })
    }

    #[test]
    fn true_expectations_hold() {
        for text in [
            "barriers_in_loop == 1",
            "entry == \"gemm\"",
            "copies[A].global_bytes == 16",
            "copies[B].why ~ \"odd\"",
            "copies[src=acc].in_loop == false",
            "copies[loop][dst=sb].global_bytes <= 4",
            "sum(copies[loop].global_bytes) == 20",
            "count(copies) == 3",
            "count(none) == 0",
            "min(copies.global_bytes) >= 4",
            "max(copies.global_bytes) != 4",
        ] {
            holds(text, &report()).unwrap();
        }
    }

    #[test]
    fn false_or_senseless_expectations_fail() {
        for text in [
            "barriers_in_loop == 2",
            "barriers == 1",
            "copies.global_bytes == 16",
            "copies[C].global_bytes == 16",
            "copies[bm].dst == sa",
            "entry < \"h\"",
            "entry",
            "avg(copies.global_bytes) == 3",
            "sum(copies.dst) == 3",
            "none.x == 3",
        ] {
            assert!(holds(text, &report()).is_err(), "{text}");
        }
    }
}

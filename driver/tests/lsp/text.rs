//! Places in texts as a client counts them, and edits.

use serde_json::{Value, json};

/// The place of a byte, counted here once more.
pub(crate) fn place(text: &str, byte: usize) -> Value {
    let line = text[..byte].matches('\n').count();
    let start = text[..byte].rfind('\n').map_or(0, |i| i + 1);
    json!({ "line": line, "character": text[start..byte].chars().map(char::len_utf16).sum::<usize>() })
}

/// The byte of a place.
pub(crate) fn byte(text: &str, place: &Value) -> usize {
    let line = place["line"].as_u64().expect("a line") as usize;
    let mut units = place["character"].as_u64().expect("a column") as usize;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut at = start;
    for c in text[start..].chars() {
        if units == 0 {
            break;
        }
        units -= c.len_utf16();
        at += c.len_utf8();
    }
    at
}

/// The text of a range.
pub(crate) fn slice<'t>(text: &'t str, range: &Value) -> &'t str {
    &text[byte(text, &range["start"])..byte(text, &range["end"])]
}

/// The text after edits that do not overlap.
pub(crate) fn edited(text: &str, edits: &[Value]) -> String {
    let mut edits: Vec<_> = edits
        .iter()
        .map(|e| {
            let new = e["newText"].as_str().expect("a text");
            (byte(text, &e["range"]["start"]), byte(text, &e["range"]["end"]), new)
        })
        .collect();
    edits.sort_unstable();
    let mut out = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        out.replace_range(start..end, new);
    }
    out
}

/// The parameters of a request about the `nth` (from 0) occurrence of a text.
pub(crate) fn at(uri: &str, text: &str, what: &str, nth: usize) -> Value {
    let (byte, _) = text.match_indices(what).nth(nth).unwrap_or_else(|| panic!("`{what}` is in the text"));
    json!({ "textDocument": { "uri": uri }, "position": place(text, byte) })
}

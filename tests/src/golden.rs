//! Comparing with what a file expects, rewriting it on request, and skipping loudly.

use crate::test_file::TestFile;
use pretty_assertions::StrComparison;
use std::io::Write;

/// Whether expectations are rewritten instead of compared.
pub fn blessing() -> bool {
    std::env::var_os("TILEC_BLESS").is_some_and(|v| v == "1")
}

/// Compares the outputs of a file, name by name, or rewrites them.
///
/// # Errors
/// They differ; the text shows how.
pub fn check(file: &TestFile, actual: &[(String, String)]) -> Result<(), String> {
    // As the file can hold them: no spaces at ends of lines, a line end at the end.
    let actual: Vec<(String, String)> = actual.iter().map(|(n, t)| (n.clone(), tidy(t))).collect();
    if blessing() {
        let text = file.with_outputs(&actual);
        if text != file.text {
            std::fs::write(&file.path, text).map_err(|e| format!("cannot write {}: {e}", file.path.display()))?;
        }
        return Ok(());
    }
    let mut wrong = String::new();
    for (name, text) in &actual {
        let expected = file.outputs.iter().find(|(n, _)| n == name).map_or("", |(_, t)| t.as_str());
        if expected != text {
            wrong += &format!("output `{name}`, {}\n", differs(expected, text));
        }
    }
    for (name, _) in &file.outputs {
        if !actual.iter().any(|(n, _)| n == name) {
            wrong += &format!("output `{name}` is expected, and there is none\n");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong}TILEC_BLESS=1 rewrites what is expected")) }
}

fn tidy(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

/// Texts of more lines than this are shown from their first difference on.
const SHOWN: usize = 60;

/// The difference between two texts, for a message.
pub fn differs(expected: &str, actual: &str) -> String {
    let long = expected.lines().count().max(actual.lines().count()) > SHOWN;
    let same = expected.lines().zip(actual.lines()).take_while(|(e, a)| e == a).count();
    let start = if long { same.saturating_sub(3) } else { 0 };
    let near = |text: &str| -> String {
        let lines = text.lines().skip(start).take(if long { SHOWN / 2 } else { SHOWN });
        lines.fold(String::new(), |all, line| all + line + "\n")
    };
    let from = if long { format!(" from line {} on", start + 1) } else { String::new() };
    format!("expected (<) and actual (>){from}:\n{}", StrComparison::new(&near(expected), &near(actual)))
}

/// Says that `what` was not tested, in the form that `scripts/test.sh` collects.
pub fn skip(what: &str, why: &str) {
    let line = format!("\nskipped: {what}: {why}\n");
    // A test cannot do anything about a closed standard error.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

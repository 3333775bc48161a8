//! Checks that several kinds use.

use crate::golden;
use crate::test_file::TestFile;
use tilec::{CompileOptions, Compiled};

/// Compiles the program of a file; errors as people see them.
pub(super) fn compile(file: &TestFile, options: &CompileOptions) -> Result<Compiled, String> {
    let (name, text) = file.program()?;
    let options = CompileOptions { source_name: name, ..options.clone() };
    tilec::compile(&text, &options).map_err(|e| e.to_string())
}

/// Refuses words that are neither options nor known to the kind.
pub(super) fn no_more(words: &[String], known: &[&str]) -> Result<(), String> {
    match words.iter().find(|w| !known.contains(&w.as_str())) {
        None => Ok(()),
        Some(word) => Err(format!("unknown argument `{word}`")),
    }
}

/// The keys `check` and `not`: texts that must and must not occur. `false`: the file has none.
pub(super) fn checks(file: &TestFile, text: &str) -> Result<bool, String> {
    let missing = file.values("check").filter(|c| !text.contains(c)).map(|c| format!("missing: {c}"));
    let unwanted = file.values("not").filter(|c| text.contains(c)).map(|c| format!("unwanted: {c}"));
    let wrong: Vec<String> = missing.chain(unwanted).collect();
    match wrong.is_empty() {
        true => Ok(file.value("check").is_some() || file.value("not").is_some()),
        false => Err(format!("{}\nin:\n{text}", wrong.join("\n"))),
    }
}

/// Checks `text` by the file's `check` and `not` keys if it has any, else as its only output.
pub(super) fn golden_or_checks(file: &TestFile, text: String) -> Result<(), String> {
    if checks(file, &text)? { golden::check(file, &[]) } else { golden::check(file, &[(String::new(), text)]) }
}

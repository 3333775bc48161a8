//! What each kind of test file checks.

pub mod assembled;
pub mod command;
pub mod diagnostics;
pub mod interpreted;
pub mod passes;
pub mod reported;
pub mod text;

use crate::golden;
use crate::test_file::TestFile;
use tilec::{CompileOptions, Compiled};

/// Runs the test that `file` is.
///
/// # Errors
/// What does not hold.
pub fn run(file: &TestFile) -> Result<(), String> {
    match file.kind.as_str() {
        "parse" => text::run(file),
        "verify" => diagnostics::verify(file),
        "diag" => diagnostics::compile(file),
        "pass" => passes::run(file),
        "ptx" => assembled::ptx(file),
        "sass" => assembled::sass(file),
        "interp" => interpreted::run(file),
        "report" => reported::run(file),
        "cli" => command::run(file),
        other => {
            Err(format!("no kind `{other}`; there are parse, verify, diag, pass, ptx, sass, interp, report and cli"))
        }
    }
}

/// Compiles the program of a file; errors as people see them.
fn compile(file: &TestFile, options: &CompileOptions) -> Result<Compiled, String> {
    let (name, text) = file.program()?;
    let options = CompileOptions { source_name: name, ..options.clone() };
    tilec::compile(&text, &options).map_err(|e| e.to_string())
}

/// Refuses words that are neither options nor known to the kind.
fn no_more(words: &[String], known: &[&str]) -> Result<(), String> {
    match words.iter().find(|w| !known.contains(&w.as_str())) {
        None => Ok(()),
        Some(word) => Err(format!("unknown argument `{word}`")),
    }
}

/// The keys `check` and `not`: texts that must and must not occur. `false`: the file has none.
fn checks(file: &TestFile, text: &str) -> Result<bool, String> {
    let missing = file.values("check").filter(|c| !text.contains(c)).map(|c| format!("missing: {c}"));
    let unwanted = file.values("not").filter(|c| text.contains(c)).map(|c| format!("unwanted: {c}"));
    let wrong: Vec<String> = missing.chain(unwanted).collect();
    match wrong.is_empty() {
        true => Ok(file.value("check").is_some() || file.value("not").is_some()),
        false => Err(format!("{}\nin:\n{text}", wrong.join("\n"))),
    }
}

/// Checks `text` by the file's `check` and `not` keys if it has any, else as its only output.
fn golden_or_checks(file: &TestFile, text: String) -> Result<(), String> {
    if checks(file, &text)? { golden::check(file, &[]) } else { golden::check(file, &[(String::new(), text)]) }
}

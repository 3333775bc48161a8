//! The kinds of test files, and their checks.

pub mod assembled;
mod checks;
pub mod command;
pub mod diagnostics;
pub mod interpreted;
pub mod passes;
pub mod reported;
pub mod text;

use crate::test_file::TestFile;

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

//! `parse`: the text form both ways. The file parses and verifies, its canonical text is the expected output, and that text
//! prints to itself. `parse only` leaves out the verifier.

use super::checks::no_more;
use crate::golden;
use crate::oracle;
use crate::test_file::TestFile;
use tilec_ir::diag::Sink;
use tilec_ir::kernel::Module;
use tilec_ir::print::print_module;

pub(super) fn run(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["source"])?;
    no_more(&file.args, &["only"])?;
    let parse = |text: &str| if file.flag("only") { unverified(text) } else { oracle::parse(text) };
    let printed = round_trip(&file.program()?.1, parse)?;
    golden::check(file, &[(String::new(), printed)])
}

/// The canonical text of `text`. The canonical text of the result must be the same.
///
/// # Errors
/// One of them does not parse, or they differ.
pub fn round_trip(text: &str, parse: impl Fn(&str) -> Result<Module, String>) -> Result<String, String> {
    let printed = print_module(&parse(text)?);
    let again = parse(&printed).map_err(|e| format!("the printed text is refused: {e}\n{printed}"))?;
    let again = print_module(&again);
    if again == printed {
        Ok(printed)
    } else {
        Err(format!("the printed text prints differently, {}", golden::differs(&printed, &again)))
    }
}

fn unverified(text: &str) -> Result<Module, String> {
    let mut sink = Sink::new();
    tilec_ir::parser::parse(text, &mut sink)
        .map_err(|_| sink.diagnostics().iter().map(oracle::one_line).collect::<Vec<_>>().join("\n"))
}

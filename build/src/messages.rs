//! Compiler messages in a build: they name options of the command, which are replaced by those of a build script.

use tilec::Diagnostics;
use tilec::render::{self, Style};

/// Options of the command, and what a build script has for them.
const OPTIONS: &[(&str, &str)] = &[
    ("-D NAME=VALUE", "`.define(\"NAME\", \"VALUE\")`"),
    ("--for N=4096", "`.sizes(&[(\"N\", 4096)])`"),
    ("--variant NAME=A/B", "`.variant(\"NAME=A/B\")`"),
    ("--target sm_80", "`.targets(&[\"sm_80\"])`"),
];

/// The code of a parameter that a kernel lacks.
const NO_PARAMETER: &str = "E0401";

/// The errors, with where more is said of them, and how a build script spells the options that they name.
pub(crate) fn errors(diagnostics: &Diagnostics) -> String {
    let list: Vec<_> = diagnostics.list.iter().filter(|d| d.severity.name() == "error").cloned().collect();
    let mut text = render::human(&diagnostics.source, &list, diagnostics.errors, Style::default());
    let mut codes: Vec<&str> = list.iter().map(|d| d.code.0).collect();
    codes.dedup();
    let explained: Vec<String> = codes.iter().map(|code| format!("`tilec explain {code}`")).collect();
    text += &format!("{} says more, and so does docs/diagnostics.md\n", explained.join(", "));
    let said: Vec<&String> = list.iter().flat_map(|d| std::iter::once(&d.message).chain(&d.notes)).collect();
    for (option, here) in OPTIONS {
        let word = option.split(' ').next().unwrap_or(option);
        if said.iter().any(|text| text.contains(&format!("`{word}"))) {
            text += &format!("`{option}` is {here} of `Build`, for all files, or of `Settings`, for one\n");
        }
    }
    if codes.contains(&NO_PARAMETER) {
        text +=
            "a parameter of another file is set for that file alone: `.file(\"NAME\", Settings::new().define(..))`\n";
    }
    text
}

/// The warnings among the diagnostics.
pub(crate) fn warnings(diagnostics: &Diagnostics) -> String {
    let list: Vec<_> = diagnostics.list.iter().filter(|d| d.severity.name() == "warning").cloned().collect();
    render::human(&diagnostics.source, &list, 0, Style::default())
}

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

/// The page of all codes.
const DIAGNOSTICS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/diagnostics.md");

/// Further sentences of an explanation are on that page.
const LONGEST_MEANING: usize = 240;

/// The code of a parameter that a kernel lacks.
const NO_PARAMETER: &str = "E0401";

/// The errors, with where more is said of them, and how a build script spells the options that they name.
pub(crate) fn errors(diagnostics: &Diagnostics) -> String {
    let list: Vec<_> = diagnostics.list.iter().filter(|d| d.severity.name() == "error").cloned().collect();
    let mut text = render::human(&diagnostics.source, &list, diagnostics.errors, Style::default());
    let mut codes: Vec<&str> = list.iter().map(|d| d.code.0).collect();
    codes.sort_unstable();
    codes.dedup();
    for code in &codes {
        text += &explained(code);
    }
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

/// What a code means, and the address of the page with the rest: a crate need not have the command and the documents.
fn explained(code: &str) -> String {
    let Some((title, meaning)) = tilec::explain::meaning(code) else { return String::new() };
    let mut said = String::new();
    for sentence in meaning.split_inclusive(". ").filter(|sentence| !sentence.contains("`tilec ")) {
        if !said.is_empty() && said.len() + sentence.len() > LONGEST_MEANING {
            break;
        }
        said += sentence;
    }
    format!("{code}: {title}. {} More: {}#{}\n", said.trim(), DIAGNOSTICS, anchor(code, title))
}

/// The anchor of a code's heading, `### E0203: no function has this name`.
fn anchor(code: &str, title: &str) -> String {
    let heading = format!("{code} {title}").to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The warnings among the diagnostics.
pub(crate) fn warnings(diagnostics: &Diagnostics) -> String {
    let list: Vec<_> = diagnostics.list.iter().filter(|d| d.severity.name() == "warning").cloned().collect();
    render::human(&diagnostics.source, &list, 0, Style::default())
}

//! Every code of a diagnostic has a fix that mends a program, or a reason for having none.

use super::client::Client;
use super::text::{edited, place};
use crate::common::Dir;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tilec::{CompileOptions, Target, compile};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Edit, Severity};

/// What is said of a program.
fn said(program: &str, target: Target) -> Vec<Diagnostic> {
    let options = CompileOptions { target, ..CompileOptions::default() };
    match compile(program, &options) {
        Ok(compiled) => compiled.diagnostics,
        Err(refused) => refused.list,
    }
}

/// What is said with a code, but as a remark.
fn of_code<'d>(said: &'d [Diagnostic], code: &str) -> impl Iterator<Item = &'d Diagnostic> {
    said.iter().filter(move |d| d.code.0 == code && d.severity != Severity::Remark)
}

/// A program after a change.
fn changed(program: &str, fix: &Edit) -> String {
    let (start, end) = (fix.span.start as usize, fix.span.end as usize);
    format!("{}{}{}", &program[..start], fix.new_text(program), &program[end..])
}

/// The programs: of each code one that its fix mends. They have no other error.
fn programs() -> Vec<(&'static str, Target, String)> {
    let text = include_str!("quick_fixes.txt");
    let cases = text.split("\n=== ").skip(1).map(|case| {
        let (head, program) = case.split_once('\n').expect("a head and a program");
        let (code, target) = head.split_once(' ').expect("a code and a target");
        (code, Target::from_name(target).expect("a target"), program.to_owned())
    });
    cases.collect()
}

#[test]
fn every_code_has_a_fix_or_a_reason() {
    let programs = programs();
    for (code, ..) in codes::ALL {
        let fixed = programs.iter().any(|(of, ..)| *of == code.0);
        let without = WITHOUT.iter().filter(|(of, _)| *of == code.0).count();
        assert_eq!(usize::from(fixed) + without, 1, "{code} has a fix, or one reason for having none");
    }
}

#[test]
fn every_fix_mends_its_program() {
    let wrong: Vec<String> = programs().iter().filter_map(|case| mended(case).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Applies the fixes of a code, one after the other: it is no longer said then, and no error is.
fn mended((code, target, program): &(&'static str, Target, String)) -> Result<(), String> {
    let before = said(program, *target);
    let others: Vec<_> = before.iter().filter(|d| d.severity == Severity::Error && d.code.0 != *code).collect();
    if !others.is_empty() {
        return Err(format!("{code}: other errors: {others:#?}"));
    }
    let mut text = program.clone();
    for _ in 0..4 {
        let now = said(&text, *target);
        let Some(d) = of_code(&now, code).next() else {
            let errors: Vec<_> = now.iter().filter(|d| d.severity == Severity::Error).collect();
            if text == *program {
                return Err(format!("{code} is not said: {now:#?}"));
            }
            return if errors.is_empty() { Ok(()) } else { Err(format!("{code}: {text}\n{errors:#?}")) };
        };
        let Some(fix) = &d.fix else { return Err(format!("{code} has no fix here: {text}\n{d:#?}")) };
        text = changed(&text, fix);
    }
    Err(format!("{code} stays:\n{text}"))
}

/// The server offers what the diagnostics carry.
#[test]
fn every_fix_is_offered() {
    let mut clients: BTreeMap<&str, Client> = BTreeMap::new();
    // An editor compiles a text for the target that it names.
    for (code, target, program) in programs().into_iter().filter(|(code, ..)| *code != "E0405") {
        let now = said(&program, target);
        let fix = of_code(&now, code).find_map(|d| d.fix.clone()).unwrap_or_else(|| panic!("{code} has a fix"));
        let client = clients.entry(target.name()).or_insert_with(|| Client::new(json!({ "target": target.name() })));
        // A file of its own: what is said of another program is not taken for what is said of this one.
        let uri = &format!("file:///{code}.tile");
        client.open(uri, &program);
        let everything = json!({ "start": place(&program, 0), "end": place(&program, program.len()) });
        let ask = json!({ "textDocument": { "uri": uri }, "range": everything, "context": { "diagnostics": [] } });
        let offers = |actions: &Value| {
            let actions = actions.as_array().expect("a list");
            let edits = actions.iter().map(|a| a["edit"]["changes"][uri].as_array().expect("edits"));
            edits.into_iter().any(|edits| edited(&program, edits) == changed(&program, &fix))
        };
        // What the passes find is published later, and what only demands find after that.
        while !offers(&client.request("textDocument/codeAction", ask.clone())) {
            assert!(client.publishes(uri), "{code}: {fix:?} is not offered");
        }
    }
}

/// Statements that are put in front stand as the one after them does.
#[test]
fn what_is_put_in_front_is_indented() {
    let dir = Dir::new("mended");
    let (_, target, program) = programs().into_iter().find(|(of, ..)| *of == "E0413").expect("a case");
    let now = said(&program, target);
    let fix = of_code(&now, "E0413").find_map(|d| d.fix.clone()).expect("a fix");
    dir.file("k.tile", changed(&program, &fix).as_bytes());
    let run = dir.tilec(&["fmt", "--check", "k.tile"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
}

const MEANING: &str = "two parts of the program disagree, and which of them is meant stands nowhere";
const NAME: &str = "a name is the author's to choose, and what uses it has to change with it";
const COMMAND: &str = "it is about the command line, not about the text";
const MACHINE: &str = "it is about the machine, or about a second file";
const RUN: &str = "it is said of a run, and an editor runs nothing";
const BUG: &str = "no program is known that is refused with it";
const DESIGN: &str = "smaller tiles, or another way to compute the same, are a decision about the whole kernel";

/// Codes whose diagnostics have no fix, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("E0246", "a sum begins at 0, a maximum at -inf and a product at 1"),
    ("W0416", "which values are fastest is measured, not known"),
    ("W0415", "of indices `/` is meant, of floats `floor(x / y)`"),
    ("E0103", NAME),
    ("E0104", "what is too long has to be split by hand"),
    ("E0106", "where a layout ends that cannot be read is not known"),
    ("E0107", NAME),
    ("E0202", NAME),
    ("E0225", "how many elements are meant stands nowhere"),
    ("E0230", BUG),
    ("E0232", BUG),
    ("E0237", "axes that are combined are told apart in the body"),
    ("E0242", "which role is to do it stands nowhere"),
    ("E0245", MEANING),
    ("E0306", "the layouts of all operands would go, which are in several statements"),
    ("E0401", COMMAND),
    ("E0402", COMMAND),
    ("E0404", MEANING),
    ("E0407", DESIGN),
    ("E0411", "a layout is an author's decision where nothing determines it"),
    ("E0415", DESIGN),
    ("E0416", "which divisor is meant stands nowhere"),
    ("E0430", "which value is meant stands nowhere"),
    ("E0431", DESIGN),
    ("E0432", COMMAND),
    ("E0433", COMMAND),
    ("E0434", COMMAND),
    ("E0435", "the value decides the result, so it is the author's"),
    ("E0501", BUG),
    ("E0503", BUG),
    ("E0505", DESIGN),
    ("E0506", DESIGN),
    ("E0601", MACHINE),
    ("E0602", MACHINE),
    ("E0603", MACHINE),
    ("E0604", MACHINE),
    ("E0605", BUG),
    ("E0606", MACHINE),
    ("E0607", COMMAND),
    ("E0608", COMMAND),
    ("E0609", COMMAND),
    ("E0610", COMMAND),
    ("E0611", MACHINE),
    ("E0612", MACHINE),
    ("E0613", RUN),
    ("E0615", MACHINE),
    ("E0616", MACHINE),
    ("E0617", COMMAND),
    ("E0618", MACHINE),
    ("E0701", RUN),
    ("E0702", RUN),
    ("E0703", RUN),
    ("E0704", RUN),
    ("E0705", RUN),
    ("E0706", RUN),
    ("E0707", RUN),
    ("E0708", RUN),
    ("E0709", RUN),
    ("E0710", RUN),
    ("E0801", RUN),
    ("E0802", RUN),
    ("E0803", RUN),
    ("E0804", RUN),
    ("E0805", RUN),
    ("E0806", RUN),
    ("E0807", RUN),
    ("E0808", RUN),
    ("E0809", RUN),
    ("E0810", RUN),
    ("E0811", RUN),
    ("E0812", RUN),
    ("E0813", RUN),
    ("W0401", "another element type changes what is computed"),
    ("W0402", COMMAND),
    ("W0403", COMMAND),
    ("W0406", DESIGN),
    ("W0407", DESIGN),
    ("W0408", DESIGN),
    ("W0410", DESIGN),
    ("W0601", BUG),
    ("W0602", MACHINE),
    ("W0801", RUN),
];

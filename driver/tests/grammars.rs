//! Word lists of the grammars of editors are those of the language.

use pretty_assertions::assert_eq;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use tilec_ir::functions;
use tilec_ir::outline::clause_words;
use tilec_ir::parser::reserved_words;
use tilec_ir::target::Target;
use tilec_ir::types::Elem;

fn read(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/vscode").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// The words of `\b(a|b|c)\b..`.
fn words<'g>(grammar: &'g Value, rule: &str) -> BTreeSet<&'g str> {
    let text = grammar["repository"][rule]["match"].as_str().expect("an expression");
    let list = text.strip_prefix("\\b(").and_then(|rest| rest.split_once(")\\b")).expect("a list of words").0;
    list.split('|').collect()
}

#[test]
fn words_are_those_of_the_language() {
    let grammar = read("syntaxes/tile.tmLanguage.json");
    let types: BTreeSet<&str> = Elem::ALL.iter().map(|e| e.name()).collect();
    let functions: BTreeSet<&str> = functions::all().into_iter().map(|f| f.name).collect();
    assert_eq!(words(&grammar, "type"), types);
    assert_eq!(words(&grammar, "function"), functions);
    let all: BTreeSet<&str> = reserved_words().into_iter().chain(clause_words()).collect();
    let keywords = all.into_iter().filter(|w| !types.contains(w) && !functions.contains(w)).collect();
    assert_eq!(words(&grammar, "keyword"), keywords);
}

/// The words of a rule of the grammar of tree-sitter.
fn choices<'g>(grammar: &'g Value, rule: &str) -> BTreeSet<&'g str> {
    let members = grammar["rules"][rule]["members"].as_array().expect("a choice");
    members.iter().map(|m| m["value"].as_str().expect("a word")).collect()
}

#[test]
fn words_of_tree_sitter_are_those_of_the_language() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/tree-sitter/src/grammar.json");
    let grammar: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON");
    assert_eq!(choices(&grammar, "type"), Elem::ALL.iter().map(|e| e.name()).collect());
    let reserved: BTreeSet<&str> = reserved_words().into_iter().collect();
    let forms = ["cast", "bitcast", "round_random", "mma"];
    let plain = functions::all().into_iter().map(|f| f.name).filter(|f| reserved.contains(f) && !forms.contains(f));
    assert_eq!(choices(&grammar, "function"), plain.collect());
    // Every other reserved word stands somewhere.
    let text = grammar.to_string();
    let lost = reserved.iter().find(|word| !text.contains(&format!("\"{word}\"")));
    assert_eq!(lost, None);
}

#[test]
fn targets_are_those_of_the_compiler() {
    let package = read("package.json");
    let targets = &package["contributes"]["configuration"]["properties"]["tilec.target"]["enum"];
    let names: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
    assert_eq!(*targets, serde_json::json!(names));
}

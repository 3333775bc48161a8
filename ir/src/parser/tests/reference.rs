//! The language reference tells the truth.

use super::parsed;
use crate::lexer::reserved_words;
use crate::print::print_module;
use crate::structural_equality::same_module;

const REFERENCE: &str = include_str!("../../../../docs/language.md");

#[test]
fn every_snippet_parses() {
    let mut found = 0;
    for piece in REFERENCE.split("```tile\n").skip(1) {
        let snippet = piece.split("```").next().unwrap();
        let module = parsed(snippet);
        assert_eq!(same_module(&module, &parsed(&print_module(&module))), Ok(()), "{snippet}");
        found += 1;
    }
    assert!(found >= 9, "only {found} snippets: has the fence changed?");
}

#[test]
fn reserved_words_are_listed() {
    let list = REFERENCE.split("<!-- reserved words begin -->").nth(1).unwrap();
    let list = list.split("<!-- reserved words end -->").next().unwrap();
    let listed: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    assert_eq!(listed, reserved_words());
}

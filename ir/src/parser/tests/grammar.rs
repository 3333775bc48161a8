//! `docs/grammar.md` and the parser say the same, of every program of the repository and of texts one token away from these.

use super::SAMPLES;
use crate::atomics::Combining;
use crate::codes;
use crate::demands::{FIGURES, PROPERTIES};
use crate::diag::Sink;
use crate::lexer::{Tok, Token, is_reserved, lex};
use crate::mechanism::Mechanism;
use crate::ops::{Form, Op, ReduceOp};
use crate::parser::{AFTER_SHAPE, SCHEDULE_ITEMS, parse};
use crate::types::Elem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../docs/grammar.md");

/// A part of a rule.
#[derive(Debug)]
enum Part {
    /// A literal word or sign.
    Quoted(String),
    /// A token of a kind: `NAME`.
    Class(String),
    Rule(String),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    Optional(Box<Part>),
    Repeated(Box<Part>),
}

/// The rules of the page by name.
struct Grammar {
    rules: BTreeMap<String, Part>,
    /// The words that rules quote.
    words: BTreeSet<String>,
}

/// The words of EBNF: names, quoted texts and signs.
fn ebnf_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => rest[1..].find('"').expect("a quoted text ends") + 2,
            _ if first.is_alphabetic() => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
            _ => 1,
        };
        words.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    words
}

impl Grammar {
    fn of_page() -> Grammar {
        let mut rules = BTreeMap::new();
        for block in PAGE.split("```ebnf\n").skip(1) {
            let words = ebnf_words(block.split("```").next().expect("a block ends"));
            let mut at = 0;
            while at < words.len() {
                assert_eq!(words[at + 1], "=", "rule `{}`", words[at]);
                let name = words[at].clone();
                at += 2;
                let part = choice(&words, &mut at);
                assert_eq!(words[at], ";", "rule `{name}`");
                at += 1;
                assert!(rules.insert(name.clone(), part).is_none(), "`{name}` stands twice");
            }
        }
        let mut words = BTreeSet::new();
        rules.values().for_each(|part| Self::quoted(part, &mut words));
        Grammar { rules, words }
    }

    /// The rules that a part names.
    fn named<'p>(part: &'p Part, found: &mut BTreeSet<&'p str>) {
        match part {
            Part::Rule(name) => {
                found.insert(name);
            }
            Part::Sequence(parts) | Part::Choice(parts) => parts.iter().for_each(|p| Self::named(p, found)),
            Part::Optional(p) | Part::Repeated(p) => Self::named(p, found),
            Part::Quoted(_) | Part::Class(_) => {}
        }
    }

    fn quoted(part: &Part, found: &mut BTreeSet<String>) {
        match part {
            Part::Quoted(text) => {
                found.insert(text.clone());
            }
            Part::Sequence(parts) | Part::Choice(parts) => parts.iter().for_each(|p| Self::quoted(p, found)),
            Part::Optional(p) | Part::Repeated(p) => Self::quoted(p, found),
            Part::Rule(_) | Part::Class(_) => {}
        }
    }

    /// Whether a list of tokens is a file; `strictly`: without names that are words of rules.
    fn derives(&self, tokens: &[Token<'_>], strictly: bool) -> bool {
        let tokens = &tokens[..tokens.len() - 1];
        let mut reader = Reader { grammar: self, tokens, strictly, known: vec![BTreeMap::new(); tokens.len() + 1] };
        reader.rule("file", 0).contains(&tokens.len())
    }
}

fn choice(words: &[String], at: &mut usize) -> Part {
    let mut parts = vec![sequence(words, at)];
    while words[*at] == "|" {
        *at += 1;
        parts.push(sequence(words, at));
    }
    if parts.len() == 1 { parts.remove(0) } else { Part::Choice(parts) }
}

fn sequence(words: &[String], at: &mut usize) -> Part {
    let mut parts = Vec::new();
    while !matches!(words[*at].as_str(), ")" | "]" | "}" | "|" | ";") {
        let word = &words[*at];
        *at += 1;
        let close = match word.as_str() {
            "(" => ")",
            "[" => "]",
            "{" => "}",
            _ => {
                parts.push(match word.strip_prefix('"') {
                    Some(quoted) => Part::Quoted(quoted.trim_end_matches('"').to_owned()),
                    None if word.chars().all(char::is_uppercase) => Part::Class(word.clone()),
                    None => Part::Rule(word.clone()),
                });
                continue;
            }
        };
        let inside = choice(words, at);
        assert_eq!(words[*at], close);
        *at += 1;
        parts.push(match close {
            ")" => inside,
            "]" => Part::Optional(Box::new(inside)),
            _ => Part::Repeated(Box::new(inside)),
        });
    }
    Part::Sequence(parts)
}

/// Finds all derivations at once: of each rule at each token, where it may end.
struct Reader<'g, 't, 's> {
    grammar: &'g Grammar,
    tokens: &'t [Token<'s>],
    strictly: bool,
    known: Vec<BTreeMap<&'g str, Vec<usize>>>,
}

impl<'g> Reader<'g, '_, '_> {
    fn rule(&mut self, name: &'g str, at: usize) -> Vec<usize> {
        if let Some(known) = self.known[at].get(name) {
            return known.clone();
        }
        let part = self.grammar.rules.get(name).unwrap_or_else(|| panic!("there is no rule `{name}`"));
        let mut ends = Vec::new();
        self.ends(part, at, &mut ends);
        self.known[at].insert(name, ends.clone());
        ends
    }

    /// Adds to `found` where a part that begins at a token may end.
    fn ends(&mut self, part: &'g Part, at: usize, found: &mut Vec<usize>) {
        match part {
            Part::Quoted(text) => match self.tokens.get(at).map(|token| token.tok) {
                Some(Tok::Word(t)) if t == text => add(found, at + 1),
                Some(Tok::Sign(t)) if t == text => add(found, at + 1),
                _ => {}
            },
            Part::Class(class) => match self.tokens.get(at).map(|token| token.tok) {
                Some(Tok::Word(word)) if class == "NAME" && self.strictly && self.grammar.words.contains(word) => {}
                Some(tok) if is_a(class, tok) => add(found, at + 1),
                _ => {}
            },
            Part::Rule(name) => self.rule(name, at).into_iter().for_each(|end| add(found, end)),
            Part::Sequence(parts) => {
                let mut starts = vec![at];
                for part in parts {
                    let mut next = Vec::new();
                    starts.into_iter().for_each(|at| self.ends(part, at, &mut next));
                    starts = next;
                }
                starts.into_iter().for_each(|end| add(found, end));
            }
            Part::Choice(parts) => parts.iter().for_each(|part| self.ends(part, at, found)),
            Part::Optional(part) => {
                add(found, at);
                self.ends(part, at, found);
            }
            Part::Repeated(part) => {
                let mut ends = vec![at];
                let mut seen = 0;
                while seen < ends.len() {
                    let from = ends[seen];
                    self.ends(part, from, &mut ends);
                    seen += 1;
                }
                ends.into_iter().for_each(|end| add(found, end));
            }
        }
    }
}

fn add(found: &mut Vec<usize>, end: usize) {
    if !found.contains(&end) {
        found.push(end);
    }
}

/// Whether a token is one of a kind.
fn is_a(class: &str, tok: Tok<'_>) -> bool {
    match (class, tok) {
        ("NAME", Tok::Word(word)) => word != "_" && !is_reserved(word),
        ("INT", Tok::Int(_)) | ("FLOAT", Tok::Float(_)) => true,
        ("TYPE", Tok::Word(word)) => Elem::from_name(word).is_some(),
        ("FUNCTION", Tok::Word(word)) => Op::from_call(word).is_some(),
        ("REDUCTION", Tok::Word(word)) => ReduceOp::from_token(word).is_some(),
        ("SCAN", Tok::Word(word)) => ReduceOp::from_scan_token(word).is_some(),
        ("INFIX", Tok::Sign(sign)) => Op::from_infix(sign).is_some(),
        ("NAME" | "INT" | "FLOAT" | "TYPE" | "FUNCTION" | "REDUCTION" | "SCAN" | "INFIX", _) => false,
        _ => panic!("there is no kind of token `{class}`"),
    }
}

/// Holds the grammar and the parser to each other: whether the parser accepts the text, or where they differ.
fn compare(grammar: &Grammar, source: &str) -> Result<bool, String> {
    let mut sink = Sink::new();
    let tokens = lex(source, &mut sink);
    if sink.error_count() > 0 {
        return Ok(false);
    }
    let accepted = parse(source, &mut sink).is_ok();
    let unexpected = sink.diagnostics().iter().find(|d| [codes::EXPECTED, codes::RESERVED].contains(&d.code));
    match unexpected {
        _ if accepted && !grammar.derives(&tokens, false) => {
            Err(format!("the parser accepts what the grammar does not have:\n{source}"))
        }
        // Where a clause and a name are both possible, the parser reads the clause.
        Some(d) if grammar.derives(&tokens, true) => {
            let line = source[..d.span.start as usize].lines().count();
            Err(format!("the grammar has what the parser refuses, line {line}: {}\n{source}", d.message))
        }
        _ => Ok(accepted),
    }
}

/// The texts in which one token, or two neighbours, are not as in `source`: left out, written twice, exchanged.
fn changed(source: &str, token: usize, tokens: &[Token<'_>]) -> [String; 3] {
    let place = |at: usize| tokens[at].span.start as usize..tokens[at].span.end as usize;
    let (here, next) = (place(token), place((token + 1).min(tokens.len() - 1)));
    let (text, after) = (&source[here.clone()], &source[next.clone()]);
    let (front, between, rest) =
        (&source[..here.start], &source[here.end..next.start.max(here.end)], &source[next.end..]);
    [
        format!("{front} {}", &source[here.end..]),
        format!("{front}{text} {text}{}", &source[here.end..]),
        format!("{front}{after} {between}{text} {rest}"),
    ]
}

/// Files of programs below a folder, and the snippets of documents there.
fn programs(folder: &Path, found: &mut Vec<String>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            programs(&path, found);
            continue;
        }
        match path.extension().and_then(|e| e.to_str()) {
            Some("tile") => found.push(std::fs::read_to_string(path).unwrap()),
            Some("md") => {
                let text = std::fs::read_to_string(path).unwrap();
                let snippets = text.split("```tile\n").skip(1).map(|s| s.split("```").next().unwrap().to_owned());
                found.extend(snippets);
            }
            _ => {}
        }
    }
}

#[test]
fn every_rule_is_used() {
    let grammar = Grammar::of_page();
    let mut named = BTreeSet::from(["file"]);
    grammar.rules.values().for_each(|part| Grammar::named(part, &mut named));
    let rules: BTreeSet<&str> = grammar.rules.keys().map(String::as_str).collect();
    assert_eq!(rules, named);
}

/// The grammar has every word of the parser's lists, whether or not a program of the repository uses it.
#[test]
fn every_word_of_a_list_is_in_the_grammar() {
    let grammar = Grammar::of_page();
    let mut texts: Vec<String> = Vec::new();
    for (property, _) in PROPERTIES {
        texts.push(format!("kernel k() require {property} {{}}"));
    }
    for (figure, _, unit) in FIGURES {
        for sign in ["<=", ">="] {
            texts.push(format!("kernel k() require {figure} {sign} 2 {unit} {{}}"));
        }
    }
    for item in SCHEDULE_ITEMS {
        let value = match *item {
            "target" => "sm_80",
            "warp_tile" => "(64, 64)",
            "cluster" => "(2)",
            _ => "2",
        };
        texts.push(format!("kernel k() schedule {{ {item} {value} }} {{}}"));
    }
    for word in AFTER_SHAPE {
        let rest = match *word {
            "strides" => "strides (s)",
            "padded" => "strides (s) padded (p: 2 behind M)",
            "multiple" => "multiple 8",
            "align" => "align 16",
            word => word,
        };
        texts.push(format!("kernel k(A: gmem f32[M] {rest}) {{}}"));
    }
    let attributes =
        ["vec 4", "unaligned 1", "threads 32:1", "check (0)", "when i < 2", "keep", "fill 0", "old x", "apart"];
    let mechanisms = Mechanism::NAMED.iter().filter_map(|m| m.word()).filter(|word| *word != "unaligned");
    for attribute in attributes.into_iter().chain(mechanisms).chain(Combining::WORDS.iter().map(|(word, _)| *word)) {
        texts.push(format!(
            "kernel k(A: gmem f32[M], B: gmem f32[M]) grid (i: M) {{ copy A[i..] -> B[i..] {attribute} }}"
        ));
    }
    let refused = |text: &&String| {
        let tokens = lex(text, &mut Sink::new());
        !grammar.derives(&tokens, false)
    };
    let refused: Vec<&String> = texts.iter().filter(refused).collect();
    assert!(refused.is_empty(), "the grammar does not have these:\n{refused:#?}");
}

#[test]
fn operators_are_listed_by_strength() {
    let row = PAGE.lines().find(|line| line.starts_with("| `INFIX`")).unwrap().replace("\\|", "|");
    let listed: Vec<BTreeSet<&str>> = row
        .split_once("weakest first:")
        .unwrap()
        .1
        .split(';')
        .map(|group| group.split('`').skip(1).step_by(2).collect())
        .collect();
    let mut groups: BTreeMap<u8, BTreeSet<&str>> = BTreeMap::new();
    for op in Op::ALL {
        if let Form::Infix(strength) = op.form() {
            groups.entry(strength).or_default().insert(op.token());
        }
    }
    assert_eq!(listed, groups.into_values().collect::<Vec<_>>());
}

#[test]
fn every_program_of_the_repository_agrees() {
    let grammar = Grammar::of_page();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut texts = Vec::new();
    for folder in ["docs", "examples", "tests/files"] {
        programs(&root.join(folder), &mut texts);
    }
    let mut accepted = 0;
    for (number, text) in texts.iter().enumerate() {
        accepted += usize::from(compare(&grammar, text).unwrap_or_else(|e| panic!("{e}")));
        // Another token of each kind, for other errors.
        let tokens = lex(text, &mut Sink::new());
        let other = &changed(text, number * 7919 % tokens.len(), &tokens)[number % 3];
        compare(&grammar, other).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(accepted > 800, "{accepted} programs");
}

#[test]
fn samples_with_a_token_changed_agree() {
    let grammar = Grammar::of_page();
    for (_, sample) in &SAMPLES[1..] {
        let tokens = lex(sample, &mut Sink::new());
        for token in 0..tokens.len() - 1 {
            let text = &changed(sample, token, &tokens)[token % 3];
            compare(&grammar, text).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

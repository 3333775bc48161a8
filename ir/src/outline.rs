//! Information for editors on a text, even if it is no valid program: its words, its names, and the scopes of their
//! meanings.

use crate::diag::{Sink, Span};
use crate::entities::Value;
use crate::format::comments_of;
use crate::functions;
use crate::kernel::Module;
use crate::lexer::{Tok, is_reserved, lex};
use crate::parser::{AFTER_SHAPE, BEGINNINGS, CLAUSES, HEADER_CLAUSES, SCHEDULE_ITEMS, parse_both};
pub use crate::parser::{Declaration, Mention};
use crate::types::Elem;
use std::collections::{BTreeMap, HashSet};

/// A file as far as it can be read.
#[derive(Debug, Default)]
pub struct Outline {
    /// Kernels and sequences. Where there are mistakes nothing but names, places and declarations may be read off them.
    pub module: Module,
    /// The text of each kernel.
    pub kernels: Vec<Span>,
    /// Names that are declared, by place.
    pub declarations: Vec<Declaration>,
    /// Names that are used, by place.
    pub mentions: Vec<Mention>,
}

/// Reads a file. What is wrong with it is in `sink`, as of [`parse`](crate::parser::parse).
pub fn outline(source: &str, sink: &mut Sink) -> Outline {
    let Ok((module, marks)) = parse_both(source, sink) else { return Outline::default() };
    let (mut declarations, mut mentions) = (marks.declarations, marks.mentions);
    declarations.sort_by_key(|d| d.span);
    declarations.dedup_by_key(|d| d.span);
    let ends: BTreeMap<(usize, Value), u32> = marks.ends.into_iter().collect();
    for d in &mut declarations {
        let kernel = marks.kernels.get(d.kernel).map_or(u32::MAX, |k| k.end);
        d.visible.end = ends.get(&(d.kernel, d.value)).copied().unwrap_or(kernel);
    }
    mentions.sort_by_key(|m| m.span);
    mentions.dedup_by_key(|m| m.span);
    Outline { module, kernels: marks.kernels, declarations, mentions }
}

/// The lexical kind of a word.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WordKind {
    /// A name, or a word that is one elsewhere (`grid`, `step`).
    Name,
    /// A reserved word.
    Keyword,
    /// An element type.
    Type,
    /// A function.
    Function,
    /// A number.
    Number,
    /// An operator or a bracket.
    Sign,
    /// A comment, which may go over several lines.
    Comment,
}

/// A word of the text and its place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// What it is.
    pub kind: WordKind,
    /// Where.
    pub span: Span,
}

/// The words, numbers, signs and comments of a text, in order.
pub fn words(source: &str) -> Vec<Word> {
    let tokens = lex(source, &mut Sink::new());
    let functions: HashSet<&str> = functions::all().into_iter().map(|f| f.name).collect();
    let mut all: Vec<Word> = tokens
        .iter()
        .enumerate()
        .filter_map(|(i, token)| {
            let called = || tokens.get(i + 1).is_some_and(|next| matches!(next.tok, Tok::Sign("(" | "<")));
            let kind = match token.tok {
                Tok::Word(word) if functions.contains(word) && called() => WordKind::Function,
                Tok::Word(word) if Elem::from_name(word).is_some() => WordKind::Type,
                Tok::Word(word) if is_reserved(word) => WordKind::Keyword,
                Tok::Word(_) => WordKind::Name,
                Tok::Int(_) | Tok::Float(_) => WordKind::Number,
                Tok::Sign(_) => WordKind::Sign,
                Tok::End => return None,
            };
            Some(Word { kind, span: token.span })
        })
        .collect();
    all.extend(comments_of(source, &tokens).into_iter().map(|span| Word { kind: WordKind::Comment, span }));
    all.sort_by_key(|word| word.span);
    all
}

/// Whether a word can be declared.
pub fn may_be_name(word: &str) -> bool {
    matches!(lex(word, &mut Sink::new())[..], [token, _] if token.span == Span::new(0, word.len()) && matches!(token.tok, Tok::Word(_)))
        && !is_reserved(word)
        && word != "_"
}

/// Words that begin statements.
pub fn statement_words() -> &'static [&'static str] {
    BEGINNINGS
}

/// Words that begin the clauses of a header.
pub fn header_words() -> &'static [&'static str] {
    HEADER_CLAUSES
}

/// The words of schedule items.
pub fn schedule_words() -> &'static [&'static str] {
    SCHEDULE_ITEMS
}

/// The words that may follow the shape of a tensor.
pub fn tensor_words() -> &'static [&'static str] {
    AFTER_SHAPE
}

/// The words that may follow the operands of a statement or of a `let`'s initialiser, by its first word.
const BEHIND: &[(&str, &[&str])] = &[
    (
        "copy",
        &[
            "vec",
            "unaligned",
            "threads",
            "check",
            "when",
            "keep",
            "fill",
            "apart",
            "held",
            "matrix",
            "async",
            "tma",
            "multicast",
            "fragment",
            "prefetch",
            "add",
            "min",
            "max",
            "exchange",
            "old",
        ],
    ),
    ("for", &["step", "while", "next", "unroll", "recompute"]),
    ("if", &["recompute"]),
    ("role", &["warps", "replicas", "registers"]),
    ("smem", &["row", "col", "layout", "over", "at"]),
    ("reg", &["layout", "partial"]),
    ("channel", &["slots", "row", "col", "layout"]),
    ("publish", &["expect"]),
    ("wait", &["pending"]),
    ("await", &["after"]),
];

/// The words that may follow the operands of a statement with this first word: for `copy` its attributes, for `for` the
/// clauses after the range.
pub fn words_behind(beginning: &str) -> &'static [&'static str] {
    BEHIND.iter().find(|(word, _)| *word == beginning).map_or(&[], |(_, behind)| behind)
}

/// Every word that means something at a place, and may be a name elsewhere.
pub fn clause_words() -> Vec<&'static str> {
    let mut all = [CLAUSES, SCHEDULE_ITEMS, AFTER_SHAPE, BEGINNINGS].concat();
    all.retain(|word| !is_reserved(word));
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words are those of the grammar, which a test compares with the parser.
    #[test]
    fn words_behind_operands_are_those_of_the_grammar() {
        let page = include_str!("../../docs/grammar.md");
        let quoted = |rule: &str| -> Vec<&str> {
            let (_, text) = page.split_once(&format!("\n{rule} = ")).expect("a rule");
            let (text, _) = text.split_once(" ;").expect("its end");
            text.split('"').skip(1).step_by(2).collect()
        };
        let rules: &[(&str, &[&str])] = &[
            ("copy", &["attribute"]),
            ("for", &["for"]),
            ("if", &["if"]),
            ("role", &["role"]),
            ("smem", &["buffer", "tile"]),
            ("reg", &["registers"]),
            ("channel", &["channel", "tile"]),
            ("publish", &["handover"]),
            ("wait", &["handover"]),
            ("await", &["await"]),
        ];
        for ((word, behind), (same, rules)) in BEHIND.iter().zip(rules) {
            assert_eq!(word, same);
            let all: Vec<&str> = rules.iter().flat_map(|rule| quoted(rule)).collect();
            assert!(behind.iter().all(|w| all.contains(w)), "{word}: {all:?}");
        }
        let attributes: Vec<&str> =
            quoted("attribute").into_iter().filter(|w| w.chars().all(char::is_alphabetic)).collect();
        let mut own = words_behind("copy").to_vec();
        assert!(attributes.iter().all(|word| own.contains(word)) && own.len() == attributes.len(), "{attributes:?}");
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), attributes.len());
    }
}

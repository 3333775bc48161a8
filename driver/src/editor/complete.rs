//! Completion: what may be at a place.

use super::analysis::Analysis;
use super::hover;
use tilec_ir::demands::{FIGURES, PROPERTIES};
use tilec_ir::functions;
use tilec_ir::outline::{self, Word, WordKind};
use tilec_ir::types::Elem;

/// A proposal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// The word.
    pub word: String,
    /// What it is.
    pub kind: ProposalKind,
    /// The same in few words, or how it is called.
    pub detail: String,
    /// More about it; may be empty.
    pub doc: String,
}

/// What is proposed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ProposalKind {
    /// A word of the language.
    Keyword,
    /// An element type.
    Type,
    /// A function.
    Function,
    /// A name.
    Name,
}

/// Where in a program a place is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Region {
    /// Outside of kernels.
    Top,
    /// Between the parameters of a kernel and its body.
    Clauses,
    /// In the list of compile-time parameters.
    ConstParams,
    /// In the list of parameters.
    Params,
    /// In `schedule { .. }`.
    Schedule,
    /// In a body.
    Body,
}

/// What may be at a byte, which may be after the beginning of a word; nothing in comments.
pub fn complete(a: &Analysis, byte: usize) -> Vec<Proposal> {
    let inside = |w: &&Word| (w.span.start as usize) < byte && byte <= w.span.end as usize;
    let prefix = a.words().iter().find(inside).filter(|w| !matches!(w.kind, WordKind::Sign));
    if prefix.is_some_and(|w| matches!(w.kind, WordKind::Comment | WordKind::Number)) {
        return Vec::new();
    }
    let start = prefix.map_or(byte, |w| w.span.start as usize);
    let before: Vec<&str> = a
        .words()
        .iter()
        .filter(|w| w.kind != WordKind::Comment && w.span.end as usize <= start)
        .map(|w| a.slice(w.span))
        .collect();
    let region = region(&before);
    let last = before.last().copied().unwrap_or("");
    let types = || elems().chain(names(a, start).filter(|p| p.detail == CONST_PARAM)).collect();
    match (region, last) {
        (_, "gmem" | "smem" | "reg" | "channel" | "const") => types(),
        (Region::Body, "<") if ["cast", "bitcast", "round_random"].iter().any(|&f| before.ends_with(&[f, "<"])) => {
            types()
        }
        (Region::Top, _) => keywords(&["kernel", "sequence"]).collect(),
        (Region::Clauses, "require") => demands().collect(),
        (Region::Clauses, ",") if requires(&before) => demands().collect(),
        (Region::Clauses, ")" | "}" | "]") => keywords(outline::header_words()).collect(),
        (Region::Schedule, _) if !last.ends_with(['(', ',']) => {
            keywords(outline::schedule_words()).chain(names(a, start)).collect()
        }
        (Region::ConstParams, ":") => keywords(&["int", "type", "layout"]).chain(elems()).collect(),
        (Region::ConstParams, "=") => keywords(&["auto", "row", "col"]).chain(elems()).chain(names(a, start)).collect(),
        (Region::ConstParams, "|") => elems().collect(),
        (Region::Params, ":") => keywords(&["gmem", "const"]).chain(types()).collect(),
        (Region::Params, "]") => keywords(outline::tensor_words()).chain(keywords(&["row", "col"])).collect(),
        (Region::Body, "=") if declares(&before) => {
            keywords(&["reg", "smem", "channel", "copy"]).chain(expressions(a, start)).collect()
        }
        (Region::Body, _) if begins_line(a, start) || matches!(last, "{" | "}") => {
            keywords(outline::statement_words()).chain(names(a, start)).collect()
        }
        _ => expressions(a, start).collect(),
    }
}

/// Whether the clause that one is in is `require`.
fn requires(before: &[&str]) -> bool {
    let clause = before.iter().rev().find(|w| outline::header_words().contains(w));
    clause.is_some_and(|w| *w == "require")
}

/// What `require` demands: properties, and figures with a sign after.
fn demands() -> impl Iterator<Item = Proposal> {
    let properties = PROPERTIES.iter().map(|(word, _)| proposal(word, ProposalKind::Keyword, "property", ""));
    let figure = |(word, _, unit): &(&str, _, &str)| {
        let form = format!("{word} <= NUMBER {unit}");
        proposal(word, ProposalKind::Keyword, form.trim_end(), "")
    };
    properties.chain(FIGURES.iter().map(figure))
}

/// After `let x =` or `var x =`.
fn declares(before: &[&str]) -> bool {
    before.len() >= 3 && matches!(before[before.len() - 3], "let" | "var")
}

/// Whether nothing but space is in front of a byte in its line.
fn begins_line(a: &Analysis, byte: usize) -> bool {
    a.text[..byte].rsplit(['\n', '\r']).next().is_some_and(|line| line.trim().is_empty())
}

/// Where one is after these words.
fn region(before: &[&str]) -> Region {
    let mut region = Region::Top;
    let (mut depth, mut listed) = (0usize, false);
    let mut last = "";
    for &word in before {
        region = match (region, word) {
            (_, "kernel") => {
                (depth, listed) = (0, false);
                Region::Clauses
            }
            (Region::Clauses, "<") if !listed => Region::ConstParams,
            (Region::ConstParams, ">") => Region::Clauses,
            (Region::Clauses, "(") if !listed => {
                (depth, listed) = (1, true);
                Region::Params
            }
            (Region::Params, "(") => {
                depth += 1;
                Region::Params
            }
            (Region::Params, ")") => {
                depth -= 1;
                if depth == 0 { Region::Clauses } else { Region::Params }
            }
            (Region::Clauses, "{") if last == "schedule" => Region::Schedule,
            (Region::Schedule, "}") => Region::Clauses,
            (Region::Clauses, "{") => {
                depth = 1;
                Region::Body
            }
            (Region::Body, "{") => {
                depth += 1;
                Region::Body
            }
            (Region::Body, "}") => {
                depth -= 1;
                if depth == 0 { Region::Top } else { Region::Body }
            }
            (region, _) => region,
        };
        last = word;
    }
    region
}

fn keywords(words: &'static [&'static str]) -> impl Iterator<Item = Proposal> {
    words.iter().map(|&word| proposal(word, ProposalKind::Keyword, "", ""))
}

fn elems() -> impl Iterator<Item = Proposal> {
    Elem::ALL.iter().map(|e| proposal(e.name(), ProposalKind::Type, "element type", ""))
}

fn proposal(word: &str, kind: ProposalKind, detail: &str, doc: &str) -> Proposal {
    Proposal { word: word.to_owned(), kind, detail: detail.to_owned(), doc: doc.to_owned() }
}

/// What [`hover::kind`] says of compile-time parameters.
const CONST_PARAM: &str = "compile-time parameter";

/// Names that are visible at a byte.
fn names(a: &Analysis, byte: usize) -> impl Iterator<Item = Proposal> + '_ {
    let here = move |start: u32, end: u32| start as usize <= byte && byte <= end as usize;
    let visible = a.outline.declarations.iter().filter(move |d| here(d.visible.start, d.visible.end));
    visible.map(|d| proposal(&d.name, ProposalKind::Name, hover::kind(&a.value(d.kernel, d.value).def), ""))
}

/// What expressions are made of.
fn expressions(a: &Analysis, byte: usize) -> impl Iterator<Item = Proposal> + '_ {
    let functions = functions::all().into_iter().map(|f| proposal(f.name, ProposalKind::Function, &f.form, &f.doc));
    names(a, byte).chain(functions).chain(keywords(&["inf", "nan", "true", "false"]))
}

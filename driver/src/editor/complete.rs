//! Completion proposals.

use super::analysis::Analysis;
use super::hover;
use tilec_ir::atoms::Atom;
use tilec_ir::demands::{FIGURES, PROPERTIES};
use tilec_ir::functions;
use tilec_ir::outline::{self, Word, WordKind};
use tilec_ir::target::Target;
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

/// The syntactic region of a position.
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
    /// In `sequence NAME { .. }`.
    Sequence,
}

/// What may be at a byte, which may be after the beginning of a word; nothing in comments. Instructions are those of the target that the text names, else of `target`.
pub fn complete(a: &Analysis, byte: usize, target: Target) -> Vec<Proposal> {
    let inside = |w: &&Word| (w.span.start as usize) < byte && byte <= w.span.end as usize;
    let prefix = a.words().iter().find(inside).filter(|w| !matches!(w.kind, WordKind::Sign));
    let front = a.words().iter().rfind(|w| (w.span.start as usize) < byte);
    let commented = front.is_some_and(|w| {
        let end = w.span.end as usize;
        // A line comment extends to the end of its line, spaces included.
        let line = a.slice(w.span).starts_with("//") && !a.text.get(end..byte).unwrap_or("").contains(['\n', '\r']);
        w.kind == WordKind::Comment && (byte < end || line)
    });
    if commented || prefix.is_some_and(|w| w.kind == WordKind::Number) {
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
    let ends = ends_operand(a, start);
    let types = || elems().chain(names(a, start).filter(|p| p.detail == CONST_PARAM)).collect();
    match (region, last) {
        (_, "gmem" | "dsmem" | "smem" | "reg" | "channel" | "const") => types(),
        (Region::Body, "<") if ["cast", "bitcast", "round_random"].iter().any(|&f| before.ends_with(&[f, "<"])) => {
            types()
        }
        (Region::Body, "<") if before.ends_with(&["mma", "<"]) => instructions(a, target),
        (Region::Body, ",") if names_instruction(&before) => keywords(&["swap"]).collect(),
        (Region::Sequence, "{" | ",") => kernels(a).collect(),
        (Region::Sequence, _) => Vec::new(),
        (Region::Schedule, "target") => {
            Target::ALL.iter().map(|t| proposal(t.name(), ProposalKind::Keyword, "target", t.doc().trim())).collect()
        }
        (Region::Top, _) => keywords(&["kernel", "sequence"]).collect(),
        (Region::Body, ".") => of_channel(a, start),
        (Region::Clauses, _) => in_clause(a, start, &before, ends),
        (Region::Schedule, _) if !last.ends_with(['(', ',']) => {
            keywords(outline::schedule_words()).chain(names(a, start)).collect()
        }
        (Region::ConstParams, ":") => keywords(&["int", "type", "layout"]).chain(elems()).collect(),
        (Region::ConstParams, "=") => keywords(&["auto", "row", "col"]).chain(elems()).chain(names(a, start)).collect(),
        (Region::ConstParams, "|") => elems().collect(),
        (Region::Params, ":") => keywords(&["gmem", "dsmem", "const"]).chain(types()).collect(),
        (Region::Params, "]") => keywords(outline::tensor_words()).chain(keywords(&["row", "col"])).collect(),
        (Region::Body, "=") if declares(&before) => {
            keywords(&["reg", "smem", "channel", "copy"]).chain(expressions(a, start)).collect()
        }
        (Region::Body, _) if begins_line(a, start) || matches!(last, "{" | "}") => {
            keywords(outline::statement_words()).chain(names(a, start)).collect()
        }
        (Region::Body, _) if ends && !assigns(a, start) => keywords(behind(&before)).collect(),
        (Region::Body, _) if ends => Vec::new(),
        _ => expressions(a, start).collect(),
    }
}

/// The kernels of the file.
fn kernels(a: &Analysis) -> impl Iterator<Item = Proposal> {
    let named = a.outline.module.kernels.iter().filter(|k| !k.name.is_empty());
    named.map(|k| proposal(&k.name, ProposalKind::Function, "kernel", ""))
}

/// The instructions for `mma` on the text's target, as completions.
fn instructions(a: &Analysis, target: Target) -> Vec<Proposal> {
    let own = a.outline.module.kernels.iter().find_map(|k| k.schedule.target);
    let has = |atom: &Atom| own.unwrap_or(target).at_least(atom.row().first);
    let all = Atom::all().filter(has).map(|atom| {
        let row = atom.row();
        let types = row.types.iter().map(|t| format!("{} -> {}", t.inputs, t.acc.name())).collect::<Vec<_>>();
        proposal(row.name, ProposalKind::Keyword, &types.join(", "), "")
    });
    all.chain(keywords(&["swap"])).collect()
}

/// Behind `mma<m16n8k16,`.
fn names_instruction(before: &[&str]) -> bool {
    matches!(before, [.., "mma", "<", atom, ","] if Atom::from_name(atom).is_some())
}

/// Whether an operand ends in front of a byte: a name, a number or a closing bracket is there.
fn ends_operand(a: &Analysis, byte: usize) -> bool {
    let last = a.words().iter().rfind(|w| w.kind != WordKind::Comment && w.span.end as usize <= byte);
    last.is_some_and(|w| match w.kind {
        WordKind::Name | WordKind::Number => !outline::clause_words().contains(&a.slice(w.span)),
        WordKind::Sign => matches!(a.slice(w.span), ")" | "]"),
        _ => false,
    })
}

/// The words that may follow the operands of the current statement or place.
fn behind(before: &[&str]) -> &'static [&'static str] {
    let begins = |w: &&&str| {
        outline::statement_words().contains(*w) || !outline::words_behind(w).is_empty() || ["{", "}"].contains(*w)
    };
    before.iter().rev().find(begins).map_or(&[], |word| outline::words_behind(word))
}

/// Whether the line before a byte begins an assignment, which takes no further words.
fn assigns(a: &Analysis, byte: usize) -> bool {
    let begin = a.text[..byte].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let of_line = |w: &&Word| w.kind != WordKind::Comment && (begin..byte).contains(&(w.span.start as usize));
    let mut words = a.words().iter().filter(of_line).map(|w| a.slice(w.span));
    words.next().is_some_and(|first| !outline::statement_words().contains(&first)) && words.next() == Some("=")
}

/// The ends of a channel after its name and a dot.
fn of_channel(a: &Analysis, byte: usize) -> Vec<Proposal> {
    let mut words = a.words().iter().filter(|w| w.kind != WordKind::Comment && w.span.end as usize <= byte).rev();
    let name = words.nth(1).map_or("", |w| a.slice(w.span));
    let channel = names(a, byte).find(|p| p.word == name).is_none_or(|p| p.detail == CHANNEL);
    if channel { keywords(&["put", "get"]).collect() } else { Vec::new() }
}

/// In a clause of a header, or where one may begin.
fn in_clause(a: &Analysis, byte: usize, before: &[&str], ends: bool) -> Vec<Proposal> {
    let at = before.iter().rposition(|w| outline::header_words().contains(w));
    let clause = at.map_or("", |at| before[at]);
    let inside = &before[at.map_or(before.len(), |at| at + 1)..];
    let last = before.last().copied().unwrap_or("");
    let next = || keywords(outline::header_words()).filter(|p| at.is_none() || p.word != clause).collect();
    // In brackets something is still to come.
    let count = |signs: [&str; 2]| inside.iter().filter(|w| signs.contains(w)).count();
    let depth = count(["(", "["]).saturating_sub(count([")", "]"]));
    let open = depth > 0;
    match clause {
        "require" => {
            let demand = inside.rsplit(|w| *w == ",").next().unwrap_or(&[]);
            let proposals = demanded(demand);
            if proposals.is_empty() { next() } else { proposals }
        }
        // A new name.
        "grid" if depth == 1 && matches!(last, "(" | ",") => Vec::new(),
        "grid" if depth == 1 && ends => keywords(&["over"]).collect(),
        "where" | "grid" if open || !ends && !inside.is_empty() || clause == "where" && inside.is_empty() => match ends
        {
            true => Vec::new(),
            false => names(a, byte).chain(functions().filter(|f| functions::is_of_index(&f.word))).collect(),
        },
        "grid" if inside.is_empty() => Vec::new(),
        _ => next(),
    }
}

/// Continuations of a requirement: properties, and figures with a sign and a number.
fn demanded(begun: &[&str]) -> Vec<Proposal> {
    let written = begun.join(" ");
    // For names of several words, the remaining ones.
    let rest = |word: &'static str| match written.is_empty() {
        true => Some(word),
        false => word.strip_prefix(&*written)?.strip_prefix(' '),
    };
    let properties =
        PROPERTIES.iter().filter_map(|(word, _)| Some(proposal(rest(word)?, ProposalKind::Keyword, "property", "")));
    let figures = FIGURES.iter().filter_map(|(word, _, unit)| {
        let form = format!("{word} <= NUMBER {unit}");
        Some(proposal(rest(word)?, ProposalKind::Keyword, form.trim_end(), ""))
    });
    let mut all: Vec<Proposal> = properties.chain(figures).collect();
    // Behind the number its unit.
    if let Some((_, _, unit)) =
        FIGURES.iter().find(|(word, ..)| written.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')))
        && begun.last().is_some_and(|w| w.parse::<f64>().is_ok() || *w == "*")
        && !unit.is_empty()
    {
        all.push(proposal(unit, ProposalKind::Keyword, "", ""));
    }
    all
}

/// After `let x =` or `var x =`.
fn declares(before: &[&str]) -> bool {
    before.len() >= 3 && matches!(before[before.len() - 3], "let" | "var")
}

/// Whether nothing but space is in front of a byte in its line.
fn begins_line(a: &Analysis, byte: usize) -> bool {
    a.text[..byte].rsplit(['\n', '\r']).next().is_some_and(|line| line.trim().is_empty())
}

/// The region after these words.
fn region(before: &[&str]) -> Region {
    let mut region = Region::Top;
    let (mut depth, mut listed) = (0usize, false);
    let (mut last, mut last_but_one) = ("", "");
    for &word in before {
        region = match (region, word) {
            (_, "kernel") => {
                (depth, listed) = (0, false);
                Region::Clauses
            }
            (Region::Top, "{") if last_but_one == "sequence" => Region::Sequence,
            (Region::Sequence, "}") => Region::Top,
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
        (last_but_one, last) = (last, word);
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

/// The text of [`hover::kind`] for compile-time parameters.
const CONST_PARAM: &str = "compile-time parameter";
/// The text of [`hover::kind`] for channels.
const CHANNEL: &str = "channel: a ring of slots in shared memory";

/// Names that are visible at a byte.
fn names(a: &Analysis, byte: usize) -> impl Iterator<Item = Proposal> + '_ {
    let here = move |start: u32, end: u32| start as usize <= byte && byte <= end as usize;
    let visible = a.outline.declarations.iter().filter(move |d| here(d.visible.start, d.visible.end));
    visible.map(|d| proposal(&d.name, ProposalKind::Name, hover::kind(&a.value(d.kernel, d.value).def), ""))
}

fn functions() -> impl Iterator<Item = Proposal> {
    functions::all().into_iter().map(|f| proposal(f.name, ProposalKind::Function, &f.form, &f.doc))
}

/// Proposals for expressions.
fn expressions(a: &Analysis, byte: usize) -> impl Iterator<Item = Proposal> + '_ {
    names(a, byte).chain(functions()).chain(keywords(&["inf", "nan", "true", "false"]))
}

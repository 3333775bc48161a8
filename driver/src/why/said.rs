//! What passes said, and where.

use super::answer::{Decision, Known, Says};
use crate::compile::explain;
use crate::compile::unrepeated::unrepeated;
use crate::console::render::SourceFile;
use tilec_ir::diag::{Diagnostic, Span};

/// The first and the last line of a place in the source.
pub(super) type Lines = (usize, usize);

/// The lines of a part of the source.
pub(super) fn lines(source: &SourceFile, span: Span) -> Lines {
    let text = source.text().get(span.start as usize..span.end as usize).unwrap_or("");
    let end = span.start as usize + text.trim_end().len().saturating_sub(1);
    (source.position(span.start as usize).line, source.position(end).line)
}

/// What a pass said, as a decision.
pub(super) fn decision(known: &Known<'_>, by: &'static str, said: &[&Diagnostic]) -> Decision {
    // A message and its places, once: what remains of a repeated one would seem to belong to the message in front of it.
    let mut groups: Vec<Vec<Says>> = Vec::new();
    for d in said {
        let mut message = d.message.clone();
        // Of what was not done notes are ways out; of what was done they say more of it.
        if is_not_done(d) {
            d.cost.iter().for_each(|cost| message.push_str(&format!("; {cost}")));
        } else {
            d.notes.iter().for_each(|n| message.push_str(&format!("; {n}")));
        }
        let mut says = vec![Says { message, ..place(known, d.span) }];
        // The places of a loss are what would be faster; they are no premise.
        says.extend(
            d.labels
                .iter()
                .filter(|l| !l.text.is_empty() && d.loss.is_none())
                .map(|l| Says { message: l.text.clone(), ..place(known, l.span) }),
        );
        if !groups.contains(&says) {
            groups.push(says);
        }
    }
    let says = groups.into_iter().flatten().collect();
    let rule = explain::about_pass(by).to_owned();
    Decision { by, rule, before: Vec::new(), after: Vec::new(), says, change: Vec::new() }
}

/// Whether a message says what a pass has not done.
pub(super) fn is_not_done(d: &Diagnostic) -> bool {
    d.why.is_some() || d.loss.is_some()
}

/// A place of the source, of which nothing is said yet.
pub(super) fn place(known: &Known<'_>, span: Span) -> Says {
    if span.is_none() {
        return Says { message: String::new(), at: String::new(), source: String::new() };
    }
    let source = &known.program.source;
    let (line, _) = lines(source, span);
    let text = source.text().lines().nth(line - 1).unwrap_or("").trim().to_owned();
    Says { message: String::new(), at: format!("{}:{line}", source.name()), source: text }
}

/// Places of the source, each with its line and what is there.
pub(super) fn places_of(known: &Known<'_>, places: &[(Span, String)]) -> Vec<String> {
    let mut facts = Vec::new();
    for (span, text) in places {
        let label = Diagnostic::remark("", *span, text.clone());
        let says = decision(known, "", &[&label]).says;
        facts.extend(says.into_iter().map(|s| match s.message.is_empty() {
            true => format!("{}: {}", s.at, s.source),
            false => format!("{}: {} ({})", s.at, s.source, s.message),
        }));
    }
    unrepeated(&mut facts);
    facts
}

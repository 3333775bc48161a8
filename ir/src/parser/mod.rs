//! Text to IR: recursive descent that fills the tables of a [`Kernel`](crate::kernel::Kernel) and resolves names on the way.
//!
//! One token of lookahead, two in a few places (`align 32`, `x =`). A mistake is reported where it is noticed and parsing
//! goes on at the next list item, statement or kernel, so one run reports several; a module comes back only if there was
//! none. `docs/grammar.md` is the grammar for people, and a test compares both.
//!
//! Bounds, so that no text can exhaust stack, memory or patience: [`MAX_SOURCE`] bytes, [`MAX_STMTS`] statements per
//! kernel, [`MAX_DEPTH`] open constructs at every point of recursion, and expression trees no higher than [`MAX_DEPTH`].
//! Everything the parser does is linear in the text, but for names: a few suggestions over a bounded list.

mod aliases;
mod broadcast;
mod broadcast_vectors;
mod combine;
mod comments;
mod demands;
mod dimension_order;
mod elements;
mod expr;
mod fill_values;
mod foreign_syntax;
mod gathered_registers;
mod header;
mod implicit_tiles;
mod inferred_extents;
mod layout;
mod loop_conditions;
mod mistaken_tokens;
mod names;
mod old_values;
mod output_operands;
mod persistent_axes;
mod reader;
mod scope;
mod sequence;
mod sizes;
mod source_map;
mod stmt;
mod strided;
mod types;
mod window_notes;

#[cfg(test)]
pub(crate) mod tests;

use crate::codes;
use crate::demands::Demand;
use crate::diag::{Diagnostic, Reported, Severity, Sink, Span};
use crate::kernel::Module;
use crate::lexer::Tok;

pub use crate::lexer::reserved_words;
pub use header::HEADER_CLAUSES;
pub(crate) use header::SCHEDULE_ITEMS;
pub(crate) use reader::CLAUSES;
use reader::Parser;
pub use reader::{MAX_DEPTH, MAX_SOURCE, MAX_STMTS};
pub(crate) use source_map::Marks;
pub use source_map::{Declaration, Mention};
pub(crate) use stmt::BEGINNINGS;
pub(crate) use types::AFTER_SHAPE;

/// Parses a file.
///
/// # Errors
/// Everything found wrong is in `sink`: text that is not of the grammar (E01..) and names that do not resolve (E02..).
pub fn parse(source: &str, sink: &mut Sink) -> Result<Module, Reported> {
    let before = sink.error_count();
    let (module, _) = parse_both(source, sink)?;
    if sink.error_count() > before {
        sink.check()?
    }
    Ok(module)
}

/// Parses a list of requirements, as on a command line.
///
/// # Errors
/// If the text is not such a list; `sink` has the errors, with spans in `source`.
pub fn parse_demands(source: &str, sink: &mut Sink) -> Result<Vec<Demand>, Reported> {
    let before = sink.error_count();
    let mut parser = Parser::new(source, sink);
    let demands = parser.demands()?;
    if parser.peek() != Tok::End {
        return Err(parser.expected("`,` or the end"));
    }
    // A character that is none of the language.
    if sink.error_count() > before {
        sink.check()?;
    }
    Ok(demands)
}

/// Parses a file for what [`Marks`] has: as text alone, in which names may be unknown, and shapes and types wrong. There may be nothing in it.
///
/// # Errors
/// Text that the grammar does not have; `sink` has the mistakes.
pub(crate) fn parse_marked(source: &str, sink: &mut Sink) -> Result<Marks, Reported> {
    check_size(source, sink)?;
    let mut own = Sink::new();
    let mut parser = Parser::new(source, &mut own);
    parser.text_alone = true;
    if parser.peek() != Tok::End {
        parser.module();
    }
    let mut marks = parser.marks;
    let of_text = |d: &Diagnostic| d.severity == Severity::Error && codes::is_of_text(d.code);
    // More errors than the limit: the text is hardly a program.
    if own.diagnostics().iter().any(of_text) || own.error_count() > own.diagnostics().len() {
        sink.append(own);
        sink.check()?;
    }
    marks.sort();
    Ok(marks)
}

/// Refuses a text that is too large.
fn check_size(source: &str, sink: &mut Sink) -> Result<(), Reported> {
    if source.len() <= MAX_SOURCE {
        return Ok(());
    }
    let message = format!("the source has {} bytes, at most {MAX_SOURCE} are allowed", source.len());
    Err(sink.report(Diagnostic::error(codes::TOO_LARGE, Span::default(), message)))
}

/// Parses a file as far as it can be read: what [`parse`] gives, and [`Marks`]. A module with mistakes is not whole: nothing but names and
/// declarations may be read off it.
pub(crate) fn parse_both(source: &str, sink: &mut Sink) -> Result<(Module, Marks), Reported> {
    check_size(source, sink)?;
    let mut parser = Parser::new(source, sink);
    let module = parser.module();
    Ok((module, parser.marks))
}

//! Text to IR: recursive descent that fills the tables of a [`Kernel`] and resolves names on the way.
//!
//! One token of lookahead, two in a few places (`align 32`, `x =`). A mistake is reported where it is noticed and parsing
//! goes on at the next list item, statement or kernel, so one run reports several; a module comes back only if there was
//! none. `docs/language.md` is the grammar for people.
//!
//! Bounds, so that no text can exhaust stack, memory or patience: [`MAX_SOURCE`] bytes, [`MAX_STMTS`] statements per
//! kernel, [`MAX_DEPTH`] open constructs at every point of recursion, and expression trees no higher than [`MAX_DEPTH`].
//! Everything the parser does is linear in the text, but for names: a few suggestions over a bounded list.

mod combine;
mod expr;
mod filled;
mod header;
mod layout;
mod marks;
mod names;
mod old_values;
mod reader;
mod said;
mod scope;
mod sequence;
mod stmt;
mod strided;
mod types;
mod unnamed;
mod vectors;
mod walks;

#[cfg(test)]
pub(crate) mod tests;

use crate::codes;
use crate::diag::{Diagnostic, Reported, Sink, Span};
use crate::kernel::{Kernel, Module};
use crate::lexer::{Tok, lex};
use crate::parser::scope::Names;
use cranelift_entity::SecondaryMap;

pub use crate::lexer::reserved_words;
pub(crate) use marks::Marks;
use reader::Parser;
pub use reader::{MAX_DEPTH, MAX_SOURCE, MAX_STMTS};

/// Parses a file.
///
/// # Errors
/// Everything found wrong is in `sink`: text that is not of the grammar (E01..) and names that do not resolve (E02..).
pub fn parse(source: &str, sink: &mut Sink) -> Result<Module, Reported> {
    parse_both(source, sink).map(|(module, _)| module)
}

/// Parses a file for what [`Marks`] has.
pub(crate) fn parse_marked(source: &str, sink: &mut Sink) -> Result<Marks, Reported> {
    let mut marks = parse_both(source, sink).map(|(_, marks)| marks)?;
    marks.sort();
    Ok(marks)
}

fn parse_both(source: &str, sink: &mut Sink) -> Result<(Module, Marks), Reported> {
    if source.len() > MAX_SOURCE {
        let message = format!("the source has {} bytes, at most {MAX_SOURCE} are allowed", source.len());
        return Err(sink.report(Diagnostic::error(codes::TOO_LARGE, Span::default(), message)));
    }
    let before = sink.error_count();
    let tokens = lex(source, sink);
    let words = tokens.iter().filter_map(|t| if let Tok::Word(w) = t.tok { Some(w) } else { None }).collect();
    let mut parser = Parser {
        source,
        tokens,
        pos: 0,
        sink,
        depth: 0,
        kernel: Kernel::new(""),
        heights: SecondaryMap::new(),
        said: Default::default(),
        walks: Vec::new(),
        names: Names::new(words),
        n_stmts: 0,
        marks: Marks::default(),
        suggestions: 0,
        hopeless: None,
    };
    let module = parser.module();
    let marks = parser.marks;
    if sink.error_count() > before {
        return sink.check().map(|()| (module, marks));
    }
    Ok((module, marks))
}

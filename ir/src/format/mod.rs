//! The layout of source text: `tilec fmt`.
//!
//! Line breaks are kept; the layout of a line follows from its tokens alone. Indentation is four columns per block and
//! four more for a line that continues a statement; inside an open bracket it is the column after the bracket. Spaces
//! between tokens follow `spacing`. Comments are kept; those at the ends of consecutive lines of a head, of its clauses
//! or of a body are aligned. At most one empty line separates two lines. Formatting is idempotent.

mod lexemes;
mod lines;
mod spacing;

use crate::diag::{Reported, Sink, Span};
use crate::lexer::{Tok, Token, lex};
use crate::parser::parse_marked;
use lexemes::{Piece, pieces};

/// The formatted text, with the tokens and comments of `source`.
///
/// # Errors
/// Text outside the grammar is not formatted; `sink` has the errors, as from [`parse`](crate::parser::parse). Names,
/// shapes and types may be wrong, and the text may consist of comments only.
///
/// # Panics
/// If a token or a comment was lost or invented, which is a bug.
pub fn format(source: &str, sink: &mut Sink) -> Result<String, Reported> {
    let marks = parse_marked(source, sink)?;
    // Ends of lines are one character everywhere, within comments too.
    if source.contains("\r\n") {
        return format(&source.replace("\r\n", "\n"), sink);
    }
    let tokens = lex(source, &mut Sink::new());
    let all = pieces(source, &tokens);
    let text = lines::layout_lines(&all, &marks);
    let again = lex(&text, &mut Sink::new());
    let kept = tokens.iter().map(|t| t.tok).eq(again.iter().map(|t| t.tok));
    assert!(kept && comments(&all) == comments(&pieces(&text, &again)), "formatting has changed the program:\n{text}");
    Ok(text)
}

/// The spans of the comments of a text with these tokens, in order.
pub(crate) fn comments_of(source: &str, tokens: &[Token<'_>]) -> Vec<Span> {
    let all = pieces(source, tokens);
    all.iter().filter(|p| p.is_comment()).map(|p| Span::new(p.at as usize, p.at as usize + p.text.len())).collect()
}

/// The texts of the comments, in order.
fn comments<'s>(all: &[Piece<'s>]) -> Vec<&'s str> {
    all.iter().filter(|p| p.tok == Tok::End).map(|p| p.text).collect()
}

#[cfg(test)]
mod tests;

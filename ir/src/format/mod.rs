//! The layout of source text: `tilec fmt`.
//!
//! Lines stay where their author ended them; what a line looks like follows from its tokens alone. Indentation is four
//! columns a block, four more for a line that continues a statement, and the column after an open bracket inside of it.
//! Spaces between tokens follow `spacing`. Comments stay; those at the ends of consecutive lines begin in one column. No
//! more than one empty line is between two lines. The result is a fixed point.

mod lines;
mod pieces;
mod spacing;

use crate::diag::{Reported, Sink, Span};
use crate::lexer::{Tok, Token, lex};
use crate::parser::parse_marked;
use pieces::{Piece, pieces};

/// The text as it should stand. Its tokens and comments are those of `source`.
///
/// # Errors
/// Text that the grammar does not have is not formatted; `sink` has the mistakes, as of [`parse`](crate::parser::parse). Names, shapes and types may be
/// wrong, and there may be nothing but comments.
///
/// # Panics
/// A token or a comment was lost or made up, which is a bug.
pub fn format(source: &str, sink: &mut Sink) -> Result<String, Reported> {
    let marks = parse_marked(source, sink)?;
    // Ends of lines are one character everywhere, within comments too.
    if source.contains("\r\n") {
        return format(&source.replace("\r\n", "\n"), sink);
    }
    let tokens = lex(source, &mut Sink::new());
    let all = pieces(source, &tokens);
    let text = lines::laid_out(&all, &marks);
    let again = lex(&text, &mut Sink::new());
    let kept = tokens.iter().map(|t| t.tok).eq(again.iter().map(|t| t.tok));
    assert!(kept && comments(&all) == comments(&pieces(&text, &again)), "formatting has changed the program:\n{text}");
    Ok(text)
}

/// The places of the comments of a text that was split into these tokens, in order.
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

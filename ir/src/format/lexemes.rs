//! Tokens and comments in order, with what stood in front of each.

use crate::lexer::{Tok, Token};

/// A token or a comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'s> {
    /// Its token; [`Tok::End`] for a comment.
    pub(super) tok: Tok<'s>,
    /// As it is written, without white space at its end.
    pub(super) text: &'s str,
    /// Its position in the source.
    pub(super) at: u32,
    /// Ends of lines in front of it, since the piece before.
    pub(super) newlines: usize,
    /// Whether white space is in front of it.
    pub(super) spaced: bool,
}

impl Piece<'_> {
    pub(super) fn is_comment(&self) -> bool {
        self.tok == Tok::End
    }

    /// Whether it is a comment that extends to the end of its line.
    pub(super) fn ends_line(&self) -> bool {
        self.is_comment() && self.text.starts_with("//")
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.tok, Tok::Sign(s) if s == sign)
    }
}

/// The pieces of a text with these tokens.
pub(super) fn pieces<'s>(source: &'s str, tokens: &[Token<'s>]) -> Vec<Piece<'s>> {
    let mut out = Vec::new();
    let mut at = 0;
    for token in tokens {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        let gap = between(source, at, start, &mut out);
        if token.tok != Tok::End {
            out.push(gap.piece(token.tok, &source[start..end], start));
        }
        at = end;
    }
    out
}

/// White space in front of a piece.
#[derive(Default)]
struct Gap {
    newlines: usize,
    spaced: bool,
}

impl Gap {
    fn piece<'s>(self, tok: Tok<'s>, text: &'s str, at: usize) -> Piece<'s> {
        Piece { tok, text, at: at as u32, newlines: self.newlines, spaced: self.spaced }
    }
}

/// The comments between two tokens; what is in front of the second.
fn between<'s>(source: &'s str, mut at: usize, end: usize, out: &mut Vec<Piece<'s>>) -> Gap {
    let mut gap = Gap::default();
    while at < end {
        let rest = &source[at..end];
        if rest.starts_with("//") {
            let n = rest.find('\n').unwrap_or(rest.len());
            let gap = std::mem::take(&mut gap);
            out.push(gap.piece(Tok::End, rest[..n].trim_end(), at));
            at += n;
        } else if rest.starts_with("/*") {
            let n = block_comment(rest);
            let gap = std::mem::take(&mut gap);
            out.push(gap.piece(Tok::End, &rest[..n], at));
            at += n;
        } else {
            let c = rest.chars().next().unwrap_or(' ');
            gap.newlines += usize::from(c == '\n');
            gap.spaced = true;
            at += c.len_utf8();
        }
    }
    gap
}

/// The length of the comment, possibly with nested ones, at the start of a text.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0usize);
    loop {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => depth += 1,
            [b'*', b'/', ..] => depth -= 1,
            [] => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
}

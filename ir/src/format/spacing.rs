//! Which tokens of a line have a space in between.

use super::lexemes::Piece;
use crate::lexer::{Tok, is_reserved};
use crate::ops::Op;
use crate::parser::Marks;
use crate::types::Elem;

/// The role of a sign, where its spelling does not determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It follows from that.
    Plain,
    /// An operator with one operand, which follows.
    Unary,
    /// Opens a list of compile-time parameters, or the type of a cast.
    Opens,
    /// Closes one.
    Closes,
}

/// The roles of all tokens; `pieces` are all of a file.
pub(super) fn roles(pieces: &[Piece<'_>]) -> Vec<Role> {
    let mut out = vec![Role::Plain; pieces.len()];
    // The open brackets; `<` only where it is a bracket.
    let mut open: Vec<&str> = Vec::new();
    let mut before: [Option<usize>; 2] = [None, None];
    for (i, piece) in pieces.iter().enumerate() {
        let Tok::Sign(sign) = piece.tok else {
            if !piece.is_comment() {
                before = [before[1], Some(i)];
            }
            continue;
        };
        let [second, first] = before.map(|at| at.map(|at| &pieces[at]));
        match sign {
            "<" if opens(first, second) => {
                out[i] = Role::Opens;
                open.push(sign);
            }
            ">" if open.last() == Some(&"<") => {
                out[i] = Role::Closes;
                open.pop();
            }
            "(" | "[" | "{" => open.push(sign),
            ")" | "]" | "}" => {
                open.pop();
            }
            "-" | "+" | "!" | "~" if is_unary(first, piece, pieces.get(i + 1)) => out[i] = Role::Unary,
            _ => {}
        }
        before = [before[1], Some(i)];
    }
    out
}

/// Whether a `<` after these two tokens is a bracket.
fn opens(first: Option<&Piece<'_>>, second: Option<&Piece<'_>>) -> bool {
    let [first, second] = [first, second].map(|p| p.map(|p| p.tok));
    matches!(first, Some(Tok::Word("cast" | "bitcast" | "mma" | "swizzle")))
        || matches!((first, second), (Some(Tok::Word(_)), Some(Tok::Word("kernel"))))
}

/// Whether an operator after this token has no operand in front of it.
fn is_unary(before: Option<&Piece<'_>>, sign: &Piece<'_>, next: Option<&Piece<'_>>) -> bool {
    match before.map(|p| p.tok) {
        Some(Tok::Sign(s)) => !matches!(s, ")" | "]" | "}"),
        Some(Tok::Word(word)) if is_reserved(word) => !ends_operand(word),
        // It may be the name of a number, or a word of a clause: `step -1`.
        Some(Tok::Word(_)) => sign.spaced && next.is_some_and(|n| !n.spaced),
        Some(Tok::Int(_) | Tok::Float(_)) => false,
        Some(Tok::End) | None => true,
    }
}

/// Whether a reserved word can be the end of an operand.
fn ends_operand(word: &str) -> bool {
    matches!(word, "inf" | "nan" | "true" | "false" | "row" | "col" | "auto") || Elem::from_name(word).is_some()
}

/// Whether a bracket after this word belongs to it, as of a call.
fn calls(word: &str) -> bool {
    matches!(word, "cast" | "bitcast" | "mma" | "transpose" | "iota") || Op::from_call(word).is_some()
}

/// Whether a space is between two tokens of a line.
pub(super) fn spaced(marks: &Marks, (a, role_a): (&Piece<'_>, Role), (b, role_b): (&Piece<'_>, Role)) -> bool {
    if a.is_comment() || b.is_comment() {
        return true;
    }
    let in_layout = marks.layouts.iter().any(|l| l.start <= a.at && b.at < l.end);
    let sign = |p: &Piece<'_>| if let Tok::Sign(s) = p.tok { s } else { "" };
    match (sign(a), sign(b)) {
        ("{", "}") => false,
        ("(" | "[" | "." | "@", _) | (_, ")" | "]" | "," | ";" | ".") => false,
        ("," | ":", _) => !in_layout || b.spaced,
        (_, ":") => false,
        ("{" | "}", _) | (_, "{" | "}") => true,
        _ if role_a == Role::Unary || role_a == Role::Opens => false,
        _ if role_b == Role::Opens || role_b == Role::Closes => false,
        ("..", _) => matches!(b.tok, Tok::Word("step")) && b.spaced,
        (_, "..") => false,
        (_, "(") => bracket(a, role_a, b),
        (_, "[") => match a.tok {
            Tok::Word(word) => is_reserved(word) && Elem::from_name(word).is_none() && b.spaced,
            Tok::Sign(s) => !matches!(s, ")" | "]"),
            _ => b.spaced,
        },
        _ => true,
    }
}

/// Whether a space is in front of a parenthesis.
fn bracket(a: &Piece<'_>, role: Role, b: &Piece<'_>) -> bool {
    match a.tok {
        Tok::Word("if" | "while" | "for" | "in" | "when" | "grid" | "copy" | "with" | "let" | "give" | "over") => true,
        Tok::Word(word) if calls(word) => false,
        Tok::Sign("]") => false,
        Tok::Sign(_) => role != Role::Closes,
        // A call, or a clause with parentheses: as its author has it.
        _ => b.spaced,
    }
}

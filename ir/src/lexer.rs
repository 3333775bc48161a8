//! Text to tokens.
//!
//! One forward walk over the bytes, no recursion, no allocation but the token list. Bad characters and bad numbers are
//! reported and skipped, so that the parser sees the rest. Comments are `// ..` to the end of the line and `/* .. */`, which
//! nest. Line ends mean nothing.
//!
//! The list always ends with [`Tok::End`]; every token's span is not empty except that one's.

use crate::codes;
use crate::diag::{Diagnostic, Sink, Span};
use crate::ops::{Form, Op, ReduceOp};
use crate::types::Elem;
use std::collections::HashSet;
use std::sync::LazyLock;

/// What a token is.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Tok<'s> {
    /// A name or a word of the language.
    Word(&'s str),
    /// An integer without sign.
    Int(u64),
    /// A number with a fraction or an exponent, finite.
    Float(f64),
    /// An operator, a bracket, or a separator.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Token<'s> {
    /// What.
    pub(crate) tok: Tok<'s>,
    /// Where.
    pub(crate) span: Span,
}

/// The byte order mark with which some editors begin UTF-8 files.
const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Characters that show nothing, besides white space.
const INVISIBLE: &[char] =
    &[BYTE_ORDER_MARK, '\u{AD}', '\u{200B}', '\u{200C}', '\u{200D}', '\u{200E}', '\u{200F}', '\u{2060}'];

/// Longest name, in bytes.
const MAX_NAME: usize = 255;

/// Signs, longer ones first.
const SIGNS: &[&str] = &[
    "->", "..", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "(", ")", "[", "]", "{", "}", "<", ">", ",", ":", "=",
    ".", "|", "&", "^", "~", "+", "-", "*", "/", "%", "!", ";", "@",
];

/// Words that are not operators, types or functions and still cannot be names.
const WORDS: &[&str] = &[
    "kernel",
    "gmem",
    "dsmem",
    "smem",
    "const",
    "reg",
    "channel",
    "let",
    "var",
    "copy",
    "for",
    "while",
    "in",
    "if",
    "else",
    "role",
    "ordered",
    "barrier",
    "await",
    "signal",
    "acquire",
    "publish",
    "wait",
    "release",
    "vec",
    "unaligned",
    "prefetch",
    "threads",
    "check",
    "keep",
    "fill",
    "matrix",
    "async",
    "tma",
    "multicast",
    "fragment",
    "when",
    "add",
    "auto",
    "layout",
    "slots",
    "over",
    "row",
    "col",
    "cast",
    "bitcast",
    "round_random",
    "mma",
    "transpose",
    "iota",
    "inf",
    "nan",
    "true",
    "false",
];

/// Whether `word` belongs to the language and cannot name anything.
pub(crate) fn is_reserved(word: &str) -> bool {
    static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| reserved_words().into_iter().collect());
    ALL.contains(word)
}

/// Every reserved word, for the language reference and its test.
pub fn reserved_words() -> Vec<&'static str> {
    let mut all: Vec<&'static str> = WORDS.to_vec();
    all.extend(Elem::ALL.iter().map(|e| e.name()));
    all.extend(ReduceOp::ALL.iter().filter(|op| op.is_reserved()).map(|op| op.token()));
    all.extend(Op::ALL.iter().filter(|op| op.form() == Form::Call).map(|op| op.token()));
    all
}

/// Splits `source` into tokens.
pub(crate) fn lex<'s>(source: &'s str, sink: &mut Sink) -> Vec<Token<'s>> {
    // A byte order mark in front of everything belongs to the file, not to the program.
    let at = if source.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let mut lexer = Lexer { source, bytes: source.as_bytes(), at, sink };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        tokens.push(token);
    }
    tokens.push(Token { tok: Tok::End, span: Span::new(source.len(), source.len()) });
    tokens
}

struct Lexer<'s, 'd> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    sink: &'d mut Sink,
}

fn word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

impl<'s> Lexer<'s, '_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, f: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|&b| f(b)) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<Token<'s>> {
        loop {
            self.skip_blank();
            let start = self.at;
            let first = *self.bytes.get(start)?;
            let tok = if first.is_ascii_alphabetic() || first == b'_' {
                self.word()
            } else if first.is_ascii_digit() {
                self.number()
            } else if let Some(&sign) = SIGNS.iter().find(|s| self.source[start..].starts_with(**s)) {
                self.at += sign.len();
                Some(Tok::Sign(sign))
            } else {
                self.stray();
                None
            };
            if let Some(tok) = tok {
                return Some(Token { tok, span: Span::new(start, self.at) });
            }
        }
    }

    fn skip_blank(&mut self) {
        loop {
            self.skip_while(|b| b.is_ascii_whitespace());
            match (self.peek(0), self.peek(1)) {
                (b'/', b'/') => self.skip_while(|b| b != b'\n'),
                (b'/', b'*') => self.block_comment(),
                _ => return,
            }
        }
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let mut depth = 0usize;
        // Where the line ends that it begins in, and how deep it is there.
        let mut line = None;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => depth += 1,
                (b'*', b'/') => depth -= 1,
                (byte, _) => {
                    if byte == b'\n' || byte == b'\r' {
                        line.get_or_insert((self.at, depth));
                    }
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
        let (end, open) = line.unwrap_or((self.at, depth));
        self.sink.push(
            Diagnostic::error(codes::OPEN_COMMENT, Span::new(start, start + 2), "this comment is never closed")
                .with_note("`/*` comments nest: each needs its own `*/`")
                .with_fix(Span::new(end, end), " */".repeat(open)),
        );
    }

    fn word(&mut self) -> Option<Tok<'s>> {
        let start = self.at;
        self.skip_while(word_byte);
        let word = &self.source[start..self.at];
        if word.len() > MAX_NAME {
            self.bad(start, format!("this name has {} characters, at most {MAX_NAME} are allowed", word.len()));
            return Some(Tok::Word(&word[..MAX_NAME]));
        }
        Some(Tok::Word(word))
    }

    /// `[0-9]+`, `0x[0-9a-f]+`, `[0-9]+ (. [0-9]+)? (e [+-]? [0-9]+)?`; `0..n` is an integer before a range.
    fn number(&mut self) -> Option<Tok<'s>> {
        let start = self.at;
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X') {
            self.skip_while(word_byte);
            let digits = &self.source[start + 2..self.at];
            return self.finish_int(start, u64::from_str_radix(digits, 16).ok());
        }
        self.skip_while(|b| b.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            float = true;
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit());
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                float = true;
                self.at += 1 + sign;
                self.skip_while(|b| b.is_ascii_digit());
            }
        }
        if word_byte(self.peek(0)) {
            self.skip_while(word_byte);
            return self.finish_int(start, None);
        }
        let text = &self.source[start..self.at];
        if !float {
            return self.finish_int(start, text.parse().ok());
        }
        match text.parse::<f64>() {
            Ok(x) if x.is_finite() => Some(Tok::Float(x)),
            _ => {
                self.bad(start, format!("the number `{}` is too large for a 64-bit float", clip(text)));
                Some(Tok::Float(0.0))
            }
        }
    }

    fn finish_int(&mut self, start: usize, value: Option<u64>) -> Option<Tok<'s>> {
        if value.is_none() {
            let text = clip(&self.source[start..self.at]);
            let message = if text.bytes().all(|b| b.is_ascii_digit()) {
                format!("the integer `{text}` does not fit 64 bits")
            } else {
                format!("`{text}` is not a number")
            };
            let d = Diagnostic::error(codes::BAD_CHARACTER, Span::new(start, self.at), message);
            self.sink.push(match of_another_language(&self.source[start..self.at]) {
                Some(number) => d.with_note(format!("write `{number}`")).with_fix(Span::new(start, self.at), number),
                None => d,
            });
        }
        Some(Tok::Int(value.unwrap_or(0)))
    }

    /// Skips a run of characters that begin no token.
    fn stray(&mut self) {
        let start = self.at;
        let c = self.source[start..].chars().next().unwrap_or(' ');
        self.at += c.len_utf8();
        while self.bytes.get(self.at).is_some_and(|b| !b.is_ascii()) {
            self.at += 1;
        }
        let shown = if c.is_control() || c.is_whitespace() || INVISIBLE.contains(&c) {
            format!("U+{:04X}", u32::from(c))
        } else {
            format!("`{c}`")
        };
        let (span, message) = (Span::new(start, self.at), format!("{shown} is not a character of the language"));
        let d = Diagnostic::error(codes::BAD_CHARACTER, span, message);
        let text = &self.source[start..self.at];
        let d = match MEANT.iter().find(|(theirs, _)| *theirs == text) {
            Some((_, ours)) => d.with_note(format!("write `{ours}`")).with_fix(span, *ours),
            None if text.chars().all(|c| c.is_control() || c.is_whitespace() || INVISIBLE.contains(&c)) => {
                let blank = text.chars().any(char::is_whitespace);
                d.with_fix(span, if blank { " " } else { "" })
            }
            None if c == '#' => {
                // The rest of the line is a comment, not a program.
                self.skip_while(|b| b != b'\n');
                d.with_note("comments begin with `//`").with_fix(span, "//")
            }
            None if c == '?' => {
                d.with_note("an expression chooses by `select(c, a, b)`: `a` where `c` holds, else `b`")
            }
            None => d,
        };
        self.sink.push(d);
    }

    fn bad(&mut self, start: usize, message: String) {
        self.sink.push(Diagnostic::error(codes::BAD_CHARACTER, Span::new(start, self.at), message));
    }
}

/// Characters of other alphabets, and the ASCII signs for which they are mistaken.
const MEANT: &[(&str, &str)] = &[
    ("\u{d7}", "*"),
    ("\u{b7}", "*"),
    ("\u{2212}", "-"),
    ("\u{2013}", "-"),
    ("\u{2014}", "-"),
    ("\u{2264}", "<="),
    ("\u{2265}", ">="),
    ("\u{2260}", "!="),
    ("\u{2192}", "->"),
    ("\u{2026}", ".."),
];

/// A number as other languages write it, `1.0f`, `32u` or `1_000`, as it is written here.
fn of_another_language(text: &str) -> Option<String> {
    let digits = text.replace('_', "");
    let digits = digits.trim_end_matches(['f', 'F', 'h', 'u', 'U', 'l', 'L']);
    let number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b))
        && digits.parse::<f64>().is_ok();
    number.then(|| digits.to_owned())
}

/// The first characters of a long text.
pub(crate) fn clip(text: &str) -> String {
    if text.len() <= 40 { text.to_owned() } else { text.chars().take(37).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toks(source: &str) -> Vec<Tok<'_>> {
        let mut sink = Sink::new();
        let tokens = lex(source, &mut sink);
        assert_eq!(sink.error_count(), 0, "{source}");
        tokens.into_iter().map(|t| t.tok).collect()
    }

    #[test]
    fn ranges_are_not_fractions() {
        assert_eq!(toks("0..8"), [Tok::Int(0), Tok::Sign(".."), Tok::Int(8), Tok::End]);
        assert_eq!(toks("0.5..x"), [Tok::Float(0.5), Tok::Sign(".."), Tok::Word("x"), Tok::End]);
        assert_eq!(toks("1e3 0x1e 2.5e-1"), [Tok::Float(1000.0), Tok::Int(30), Tok::Float(0.25), Tok::End]);
    }

    #[test]
    fn comments_nest_and_vanish() {
        assert_eq!(toks("a/* /* */ // */ b // c\nd/**/"), [Tok::Word("a"), Tok::Word("b"), Tok::Word("d"), Tok::End]);
    }

    #[test]
    fn longer_signs_win() {
        assert_eq!(
            toks("a->b<=c!=!d"),
            [
                Tok::Word("a"),
                Tok::Sign("->"),
                Tok::Word("b"),
                Tok::Sign("<="),
                Tok::Word("c"),
                Tok::Sign("!="),
                Tok::Sign("!"),
                Tok::Word("d"),
                Tok::End
            ]
        );
    }

    #[test]
    fn every_infix_operator_is_a_sign() {
        for op in Op::ALL {
            if op.form() != Form::Call {
                assert!(SIGNS.contains(&op.token()), "{}", op.token());
            }
        }
    }
}

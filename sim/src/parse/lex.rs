//! PTX tokens, each with the line and column it starts at (PTX 4: Syntax).
//!
//! A word keeps its dots apart: `ld.global.v4.b32` is a name followed by three dotted words, and `%tid.x` a name followed
//! by one, so that the parser decides what a dotted word means. Text is never skipped except space and comments.

use super::error::ParseError;

/// Position of a token; line and column count from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Pos {
    /// Line.
    pub(crate) line: u32,
    /// Column in characters.
    pub(crate) col: u32,
}

impl Pos {
    /// A parse error at this place.
    pub(crate) fn error(self, message: impl Into<String>) -> ParseError {
        ParseError { line: self.line, col: self.col, message: message.into(), limit: false }
    }

    /// An error for valid text that the simulator does not execute.
    pub(crate) fn limit(self, message: impl Into<String>) -> ParseError {
        ParseError { limit: true, ..self.error(message) }
    }
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tok<'a> {
    /// `add`, `%r1`, `$L_1`, `_`.
    Name(&'a str),
    /// `.global`, `.L2::128B`: without the dot.
    Dot(&'a str),
    /// An integer that a signed number of 64 bits holds.
    Int(u64),
    /// One that is unsigned, for its `U` or its size.
    Uint(u64),
    /// `0f3F800000`.
    F32(u32),
    /// `0d...` and decimal literals, which PTX reads as 64-bit floats.
    F64(u64),
    /// A quoted string, without quotes.
    Str(&'a str),
    /// One of `, ; : { } ( ) [ ] < > + - * / % & ^ | ! ~ ? @ =`.
    Punct(u8),
    /// An operator of two characters, such as `<<`.
    Op(&'static str),
    /// End of text.
    End,
}

impl Tok<'_> {
    /// The token as a diagnostic shows it.
    pub(crate) fn show(&self) -> String {
        match self {
            Tok::Name(s) => format!("`{s}`"),
            Tok::Dot(s) => format!("`.{s}`"),
            Tok::Int(v) | Tok::Uint(v) => format!("`{v}`"),
            Tok::F32(v) => format!("`0f{v:08X}`"),
            Tok::F64(v) => format!("`0d{v:016X}`"),
            Tok::Str(s) => format!("\"{s}\""),
            Tok::Punct(c) => format!("`{}`", char::from(*c)),
            Tok::Op(op) => format!("`{op}`"),
            Tok::End => "the end of the text".to_owned(),
        }
    }
}

/// Operators of two characters.
const OPERATORS: [&str; 8] = ["<<", ">>", "<=", ">=", "==", "!=", "&&", "||"];

fn is_start(c: u8) -> bool {
    c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%')
}

fn is_part(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$')
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    /// Up to where bytes of the line that begin no character have been counted, and how many there are.
    counted: (usize, usize),
}

/// Splits `text` into tokens; the last is always [`Tok::End`].
pub(crate) fn lex(text: &str) -> Result<Vec<(Tok<'_>, Pos)>, ParseError> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1, line_start: 0, counted: (0, 0) };
    let mut out = Vec::with_capacity(text.len() / 3);
    loop {
        lexer.skip_space()?;
        let pos = lexer.pos();
        let tok = lexer.next()?;
        out.push((tok, pos));
        if tok == Tok::End {
            return Ok(out);
        }
    }
}

impl<'a> Lexer<'a> {
    fn pos(&mut self) -> Pos {
        let (to, behind) = if self.counted.0 < self.line_start { (self.line_start, 0) } else { self.counted };
        let new = self.bytes[to.min(self.at)..self.at].iter().filter(|byte| **byte & 0xC0 == 0x80).count();
        self.counted = (self.at, behind + new);
        let col = u32::try_from(self.at - self.line_start - self.counted.1 + 1).unwrap_or(u32::MAX);
        Pos { line: self.line, col }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn newline(&mut self) {
        self.line = self.line.saturating_add(1);
        self.line_start = self.at + 1;
    }

    fn skip_space(&mut self) -> Result<(), ParseError> {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' => {
                    self.newline();
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                // NVRTC ends its text with a NUL; nothing may follow it.
                0 if self.bytes[self.at..].iter().all(|&b| b == 0) => self.at = self.bytes.len(),
                b'/' if self.peek(1) == b'/' => {
                    while self.at < self.bytes.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => {
                    let open = self.pos();
                    self.at += 2;
                    while !(self.peek(0) == b'*' && self.peek(1) == b'/') {
                        if self.at >= self.bytes.len() {
                            return Err(open.error("this comment is never closed"));
                        }
                        if self.peek(0) == b'\n' {
                            self.newline();
                        }
                        self.at += 1;
                    }
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn take_while(&mut self, mut keep: impl FnMut(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.at < self.bytes.len() && keep(self.bytes[self.at]) {
            self.at += 1;
        }
        // Only ASCII bytes are kept by any caller but the string reader, which stops at a quote: both are boundaries.
        self.text.get(start..self.at).unwrap_or("")
    }

    fn next(&mut self) -> Result<Tok<'a>, ParseError> {
        if self.at >= self.bytes.len() {
            return Ok(Tok::End);
        }
        let pos = self.pos();
        let c = self.peek(0);
        match c {
            b'.' if self.at_fraction() => {
                let start = self.at;
                self.fraction();
                self.decimal(start, pos)
            }
            b'.' if is_part(self.peek(1)) => {
                self.at += 1;
                let start = self.at;
                loop {
                    self.take_while(is_part);
                    if self.peek(0) == b':' && self.peek(1) == b':' && is_part(self.peek(2)) {
                        self.at += 2;
                    } else {
                        break;
                    }
                }
                Ok(Tok::Dot(self.text.get(start..self.at).unwrap_or("")))
            }
            b'"' => {
                self.at += 1;
                let text = self.take_while(|b| b != b'"' && b != b'\n');
                if self.peek(0) != b'"' {
                    return Err(pos.error("this string is never closed"));
                }
                self.at += 1;
                Ok(Tok::Str(text))
            }
            b'0'..=b'9' => self.number(pos),
            _ if is_start(c) && (c != b'%' || is_part(self.peek(1))) => {
                let start = self.at;
                self.at += 1;
                self.take_while(is_part);
                Ok(Tok::Name(self.text.get(start..self.at).unwrap_or("")))
            }
            _ if OPERATORS.iter().any(|op| op.as_bytes() == [c, self.peek(1)]) => {
                self.at += 2;
                let found = OPERATORS.into_iter().find(|op| op.as_bytes() == &self.bytes[self.at - 2..self.at]);
                Ok(Tok::Op(found.unwrap_or_default()))
            }
            b',' | b';' | b':' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/'
            | b'%' | b'&' | b'^' | b'|' | b'!' | b'~' | b'?' | b'@' | b'=' => {
                self.at += 1;
                Ok(Tok::Punct(c))
            }
            _ => {
                let shown = self.text.get(self.at..).and_then(|t| t.chars().next()).unwrap_or('?');
                Err(pos.error(format!("`{}` starts no PTX token", shown.escape_default())))
            }
        }
    }

    /// Integers (decimal, 0x, 0, 0b, with `U`), `0f`/`0d` bit patterns and decimal floats (PTX 4.5).
    fn number(&mut self, pos: Pos) -> Result<Tok<'a>, ParseError> {
        let word = self.take_while(is_part);
        let bits = |digits: &str, n: usize| (digits.len() == n).then(|| u64::from_str_radix(digits, 16).ok()).flatten();
        if let Some(digits) = word.strip_prefix("0f").or_else(|| word.strip_prefix("0F")) {
            let v = bits(digits, 8).ok_or_else(|| pos.error(format!("`{word}` needs 8 hexadecimal digits")))?;
            return Ok(Tok::F32(u32::try_from(v).expect("eight hexadecimal digits fit 32 bits")));
        }
        if let Some(digits) = word.strip_prefix("0d").or_else(|| word.strip_prefix("0D")) {
            let v = bits(digits, 16).ok_or_else(|| pos.error(format!("`{word}` needs 16 hexadecimal digits")))?;
            return Ok(Tok::F64(v));
        }
        let decimal = word.bytes().all(|b| b.is_ascii_digit());
        let exponent = word.len() > 1
            && word.bytes().last().is_some_and(|b| b == b'e' || b == b'E')
            && word[..word.len() - 1].bytes().all(|b| b.is_ascii_digit());
        if (decimal && self.peek(0) == b'.' && self.peek(1).is_ascii_digit())
            || (exponent && matches!(self.peek(0), b'+' | b'-'))
        {
            let start = self.at - word.len();
            self.fraction();
            return self.decimal(start, pos);
        }
        if decimal_exponent(word) {
            return self.decimal(self.at - word.len(), pos);
        }
        let body = word.strip_suffix('U').unwrap_or(word);
        let parsed = if let Some(hex) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
            u64::from_str_radix(hex, 16)
        } else if let Some(bin) = body.strip_prefix("0b").or_else(|| body.strip_prefix("0B")) {
            u64::from_str_radix(bin, 2)
        } else if body.len() > 1 && body.starts_with('0') {
            u64::from_str_radix(body, 8)
        } else {
            body.parse()
        };
        let of = |v| if body.len() < word.len() || v > i64::MAX as u64 { Tok::Uint(v) } else { Tok::Int(v) };
        parsed.map(of).map_err(|_| pos.error(format!("`{word}` is no integer of 64 bits")))
    }

    /// Whether a decimal float without digits in front of its point is here: not a dotted word that begins with a digit (`.2d`).
    fn at_fraction(&self) -> bool {
        let rest = &self.bytes[self.at + 1..];
        let word = &rest[..rest.iter().take_while(|&&b| is_part(b)).count()];
        let behind_word = self.at > 0 && is_part(self.bytes[self.at - 1]);
        let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
        !behind_word && digits > 0 && (digits == word.len() || matches!(word[digits], b'e' | b'E'))
    }

    /// The point of a decimal float, if it is here, the digits after it and the exponent.
    fn fraction(&mut self) {
        if self.peek(0) == b'.' {
            self.at += 1;
            self.take_while(|b| b.is_ascii_digit());
            if matches!(self.peek(0), b'e' | b'E') {
                self.at += 1;
            }
        }
        if self.at > 0 && matches!(self.bytes[self.at - 1], b'e' | b'E') {
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            self.take_while(|b| b.is_ascii_digit());
        }
    }

    /// The decimal float from `start` to here.
    fn decimal(&self, start: usize, pos: Pos) -> Result<Tok<'a>, ParseError> {
        let text = self.text.get(start..self.at).unwrap_or("");
        let v: f64 = text.parse().map_err(|_| pos.error(format!("`{text}` is no number")))?;
        Ok(Tok::F64(v.to_bits()))
    }
}

/// `1e3`: digits, an `e`, digits.
fn decimal_exponent(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    word.split_once(['e', 'E']).is_some_and(|(whole, exponent)| digits(whole) && digits(exponent))
}

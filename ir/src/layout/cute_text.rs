//! Text form of CuTe layouts, `((4,8),2):((1,16),8)`, and the cursor the other layout parsers share.
//!
//! White space is allowed between tokens; nesting is bounded, so recursion is too. Errors carry the
//! byte offset at which the text stops making sense.

use super::cute::{CuteLayout, IntTuple, LayoutParseError, MAX_DEPTH};

/// Parses a CuTe layout, the whole of `text`.
///
/// # Errors
/// Bad syntax, shape and stride that do not match, or sizes that overflow, with the byte offset.
pub fn parse_cute(text: &str) -> Result<CuteLayout, LayoutParseError> {
    let mut c = Cursor::new(text);
    let l = cute(&mut c)?;
    c.expect_end()?;
    Ok(l)
}

/// Parses a CuTe layout at the start of `text`; also returns the bytes consumed.
///
/// # Errors
/// As [`parse_cute`], but text may follow the layout.
pub fn parse_cute_prefix(text: &str) -> Result<(CuteLayout, usize), LayoutParseError> {
    let mut c = Cursor::new(text);
    let l = cute(&mut c)?;
    Ok((l, c.offset()))
}

pub(crate) fn cute(c: &mut Cursor<'_>) -> Result<CuteLayout, LayoutParseError> {
    c.skip_space();
    let start = c.offset();
    let shape = tuple(c, 0)?;
    c.expect(':')?;
    let stride = tuple(c, 0)?;
    CuteLayout::new(shape, stride).map_err(|e| LayoutParseError::no_layout((start, None), e))
}

fn tuple(c: &mut Cursor<'_>, depth: usize) -> Result<IntTuple, LayoutParseError> {
    c.skip_space();
    if !c.eat('(') {
        return Ok(IntTuple::Int(c.number()?));
    }
    if depth == MAX_DEPTH {
        return Err(c.error(format!("layout nested deeper than {MAX_DEPTH}")));
    }
    let mut parts = vec![tuple(c, depth + 1)?];
    loop {
        c.skip_space();
        if c.eat(')') {
            return Ok(IntTuple::Tuple(parts));
        }
        if !c.eat(',') {
            return Err(c.error("expected `,` or `)`"));
        }
        parts.push(tuple(c, depth + 1)?);
    }
}

/// A position in a text being parsed.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Back to an earlier [`Cursor::offset`].
    pub(crate) fn rewind(&mut self, offset: usize) {
        self.at = offset.min(self.at);
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> LayoutParseError {
        LayoutParseError::new(self.at, message)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(crate) fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Skips blanks but not line ends: what follows a layout on its own line is not part of it.
    pub(crate) fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    pub(crate) fn eat(&mut self, ch: char) -> bool {
        let hit = self.rest().starts_with(ch);
        if hit {
            self.at += ch.len_utf8();
        }
        hit
    }

    /// Takes `word` if it is here as a whole word.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let hit = self
            .rest()
            .strip_prefix(word)
            .is_some_and(|after| !after.starts_with(|ch: char| ch.is_ascii_alphanumeric() || ch == '_'));
        if hit {
            self.at += word.len();
        }
        hit
    }

    pub(crate) fn expect(&mut self, ch: char) -> Result<(), LayoutParseError> {
        self.skip_space();
        if self.eat(ch) { Ok(()) } else { Err(self.error(format!("expected `{ch}`"))) }
    }

    pub(crate) fn expect_end(&mut self) -> Result<(), LayoutParseError> {
        self.skip_space();
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("expected the end of the layout")) }
    }

    /// A decimal or `0x` hexadecimal number that fits an `i64`.
    pub(crate) fn number(&mut self) -> Result<u64, LayoutParseError> {
        self.skip_space();
        let hex = self.rest().starts_with("0x");
        let (radix, skip) = if hex { (16, 2) } else { (10, 0) };
        let digits: &str = {
            let rest = &self.rest()[skip..];
            let n = rest.find(|ch: char| !ch.is_ascii_alphanumeric()).unwrap_or(rest.len());
            &rest[..n]
        };
        let valid = !digits.is_empty() && digits.chars().all(|ch| ch.is_digit(radix));
        if !valid {
            return Err(self.error("expected a number"));
        }
        let value = i64::from_str_radix(digits, radix).map_err(|_| self.error("number too large"))?;
        self.at += skip + digits.len();
        Ok(value as u64)
    }

    /// A number of at most 63, such as a bit position.
    pub(crate) fn small(&mut self, what: &str) -> Result<u32, LayoutParseError> {
        self.skip_space();
        let start = self.at;
        let n = self.number()?;
        u32::try_from(n).ok().filter(|n| *n <= 63).ok_or(LayoutParseError::new(start, format!("{what} larger than 63")))
    }

    /// `(n, n, ...)`, possibly empty.
    pub(crate) fn number_list(&mut self) -> Result<Vec<u64>, LayoutParseError> {
        self.expect('(')?;
        let mut out = Vec::new();
        self.skip_space();
        if self.eat(')') {
            return Ok(out);
        }
        loop {
            out.push(self.number()?);
            self.skip_space();
            if self.eat(')') {
                return Ok(out);
            }
            if !self.eat(',') {
                return Err(self.error("expected `,` or `)`"));
            }
        }
    }
}

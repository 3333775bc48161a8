//! Tokens of Rust, as far as names and braces need them.

/// A token with the line on which it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// An identifier or keyword, without `r#`.
    Name(&'a str),
    /// `::`.
    Path,
    /// Any other character that is no space.
    Mark(char),
    /// The inside of a string literal.
    Text(&'a str),
    /// A number, a character, a lifetime.
    Other,
}

impl<'a> Token<'a> {
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    pub(crate) fn is_name(&self, name: &str) -> bool {
        self.kind == Kind::Name(name)
    }
}

/// All tokens of a file; comments are none.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Goes over `bytes` bytes, and gives them back.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let skipped = &self.rest()[..bytes];
        self.line += skipped.matches('\n').count();
        self.at += bytes;
        skipped
    }

    fn skip_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        self.skip(rest.find(|c| !test(c)).unwrap_or(rest.len()))
    }

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let line = self.line;
        let first = self.rest().chars().next()?;
        let kind = if let Some(kind) = self.string() {
            kind
        } else if first == '\'' || self.rest().starts_with("b'") {
            self.skip_while(|c| c == 'b');
            self.quote()
        } else if first.is_ascii_digit() {
            self.skip_while(|c| c.is_alphanumeric() || c == '_');
            Kind::Other
        } else if first.is_alphabetic() || first == '_' {
            if self.rest().starts_with("r#") {
                self.skip(2);
            }
            Kind::Name(self.skip_while(|c| c.is_alphanumeric() || c == '_'))
        } else if self.rest().starts_with("::") {
            self.skip(2);
            Kind::Path
        } else {
            self.skip(first.len_utf8());
            Kind::Mark(first)
        };
        Some(Token { kind, line })
    }

    /// Goes over spaces and comments.
    fn skip_blank(&mut self) {
        loop {
            self.skip_while(char::is_whitespace);
            if self.rest().starts_with("//") {
                self.skip_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.skip(2);
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.skip(2);
            } else if let Some(c) = rest.chars().next() {
                self.skip(c.len_utf8());
            }
            if depth == 0 || self.rest().is_empty() {
                return;
            }
        }
    }

    /// A string literal of any form.
    fn string(&mut self) -> Option<Kind<'a>> {
        let rest = self.rest();
        let prefix = ["", "b", "c", "r", "br", "cr"].into_iter().find(|prefix| {
            let behind = rest.strip_prefix(prefix).unwrap_or("");
            behind.starts_with('"')
                || prefix.ends_with('r') && behind.trim_start_matches('#').starts_with('"') && behind.starts_with('#')
        })?;
        self.skip(prefix.len());
        let hashes = self.skip_while(|c| c == '#').len();
        self.skip(1);
        let end = format!("\"{}", "#".repeat(hashes));
        let raw = prefix.ends_with('r');
        let rest = self.rest();
        let mut length = 0;
        while length < rest.len() && !rest[length..].starts_with(&end) {
            let mut characters = rest[length..].chars();
            let c = characters.next().map_or(1, char::len_utf8);
            let escaped = !raw && rest[length..].starts_with('\\');
            length += c + if escaped { characters.next().map_or(0, char::len_utf8) } else { 0 };
        }
        let inside = self.skip(length.min(rest.len()));
        self.skip(end.len().min(self.rest().len()));
        Some(Kind::Text(inside))
    }

    /// A character or a lifetime.
    fn quote(&mut self) -> Kind<'a> {
        self.skip(1);
        let mut characters = self.rest().chars();
        let (first, second) = (characters.next(), characters.next());
        if first == Some('\\') {
            self.skip(1 + second.map_or(0, char::len_utf8));
            self.skip_while(|c| c != '\'');
            self.skip(1);
        } else if second == Some('\'') {
            self.skip(first.map_or(0, char::len_utf8) + 1);
        } else {
            self.skip_while(|c| c.is_alphanumeric() || c == '_');
        }
        Kind::Other
    }
}

#[test]
fn strings_comments_and_characters_hide_names() {
    let text = "a /* b /* c */ d */ r#\"e \" f\"# '\"' 'g: b'\\'' \"h \\\" i\" r#type // j\n::k";
    let names: Vec<_> = tokens(text).iter().filter_map(Token::name).collect();
    assert_eq!(names, ["a", "type", "k"]);
    assert_eq!(tokens(text).last().map(|token| token.line), Some(2));
}

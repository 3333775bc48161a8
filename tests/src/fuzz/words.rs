//! Programs as words and signs, for changing them.

/// Cuts a program into words, numbers, signs and the white space between them, without comments.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let len = if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if bytes[at].is_ascii_whitespace() {
            rest.bytes().take_while(u8::is_ascii_whitespace).count()
        } else if bytes[at].is_ascii_digit() {
            let digits = |s: &str| s.bytes().take_while(|b| b.is_ascii_alphanumeric()).count();
            let whole = digits(rest);
            let fraction = rest[whole..].strip_prefix('.').map_or(0, digits);
            if fraction > 0 { whole + 1 + fraction } else { whole }
        } else if bytes[at].is_ascii_alphabetic() || bytes[at] == b'_' {
            rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count()
        } else if ["->", "..", "==", "!=", "<=", ">=", "&&", "||"].iter().any(|s| rest.starts_with(s)) {
            2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        out.push(text[at..at + len].to_owned());
        at += len;
    }
    out
}

/// Whether a piece is a number.
pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a piece is a name or a word of the language.
pub(super) fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Whether a piece is white space.
pub(super) fn is_space(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_whitespace())
}

//! Lines of a text, with columns in units of UTF-16 as editors count them.

/// Start offsets of the lines of a text. Lines end with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<usize>,
}

/// A place in a text: line and column from 0, the column in UTF-16 units.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl Lines {
    /// The lines of `text`.
    pub fn new(text: &str) -> Lines {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len())
            .filter(|&i| bytes[i] == b'\n' || (bytes[i] == b'\r' && bytes.get(i + 1) != Some(&b'\n')))
            .map(|i| i + 1);
        Lines { starts: std::iter::once(0).chain(ends).collect() }
    }

    /// The place of a byte of `text`; of one inside a character, that of the character, and past the end, that of the end.
    pub fn place(&self, text: &str, byte: usize) -> Place {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= byte) - 1;
        let column = text[self.starts[line]..byte].encode_utf16().count();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place { line: number(line), column: number(column) }
    }

    /// The byte of a place. Columns past the end of a line are its end, lines past the last one the end of the text.
    pub fn byte(&self, text: &str, place: Place) -> usize {
        let line = place.line as usize;
        let Some(&start) = self.starts.get(line) else { return text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let mut units = 0;
        for (i, c) in text[start..end].char_indices() {
            if units >= place.column || c == '\n' || c == '\r' {
                return start + i;
            }
            units += u32::from(c.len_utf16() == 2) + 1;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character's place leads back to it, and columns count pairs of surrogates as two.
    #[test]
    fn places_and_bytes_are_inverse() {
        for text in ["", "a", "é\n\u{1f600}x\r\ny\rz", "\n\n", "日本\u{1f600}\u{1f600}b\n"] {
            let lines = Lines::new(text);
            for (i, c) in text.char_indices().filter(|(i, c)| *c != '\n' || !text[..*i].ends_with('\r')) {
                assert_eq!(lines.byte(text, lines.place(text, i)), i, "{text:?} {c:?}");
            }
            assert_eq!(lines.byte(text, lines.place(text, text.len() + 9)), text.len());
            assert_eq!(lines.byte(text, Place { line: 99, column: 0 }), text.len());
        }
        let text = "// \u{1f600}é b";
        assert_eq!(Lines::new(text).place(text, text.len() - 1), Place { line: 0, column: 7 });
        assert_eq!(Lines::new("ab\ncd").byte("ab\ncd", Place { line: 0, column: 9 }), 2);
        assert_eq!(Lines::new("a\rb\r\nc").place("a\rb\r\nc", 5), Place { line: 2, column: 0 });
    }
}

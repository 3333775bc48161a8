//! Source texts that `.loc` refers to.

use crate::console::render::SourceFile;
use std::collections::BTreeMap;
use std::io::Read;

/// Longest source that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Source lines by file name: the program, and readable files that the PTX names.
#[derive(Debug)]
pub struct Sources {
    texts: BTreeMap<String, Option<SourceFile>>,
}

impl Sources {
    /// Knows `source` already, under its name.
    pub fn new(source: &SourceFile) -> Sources {
        Sources { texts: BTreeMap::from([(source.name().to_owned(), Some(source.clone()))]) }
    }

    /// Line `line` (from 1) of a file, without indentation and comment. A file that was not loaded is read, if it is a
    /// regular file.
    pub fn line(&mut self, file: &str, line: u32) -> Option<String> {
        let source = self.texts.entry(file.to_owned()).or_insert_with(|| read(file)).as_ref()?;
        let span = source.line_span(line as usize, 1)?;
        let text = source.text()[source.clamp(span)].split("//").next().unwrap_or("");
        Some(tidy(text))
    }
}

/// A line of untrusted text for a message: single spaces, and no terminal control characters.
pub(super) fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "\u{fffd}")
}

/// A statement whose long lists in braces (accumulators of products have up to 128 registers) are cut short.
pub(super) fn short(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('{') {
        let Some((list, after)) = from.split_once('}') else { break };
        let items: Vec<&str> = list.split(',').map(str::trim).collect();
        out += before;
        out += &match items.as_slice() {
            [first, .., last] if items.len() > LONGEST_LIST => {
                format!("{{{first}, .. {last}: {} registers}}", items.len())
            }
            _ => format!("{{{list}}}"),
        };
        rest = after;
    }
    out + rest
}

/// Items of a list that is shown whole.
const LONGEST_LIST: usize = 8;

fn read(file: &str) -> Option<SourceFile> {
    // A file name in foreign PTX may be a device or a pipe, which would never end.
    if !std::fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(SourceFile::new(file, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_short() {
        let list: Vec<String> = (1..=96).map(|i| format!("%f{i}")).collect();
        let text = format!("wgmma {{{}}}, {{%r1, %r2}}, p;", list.join(", "));
        assert_eq!(short(&text), "wgmma {%f1, .. %f96: 96 registers}, {%r1, %r2}, p;");
        for same in ["ld.v2 {%r1, %r2}, [%rd1];", "{ ret", "}{", ""] {
            assert_eq!(short(same), same);
        }
    }

    #[test]
    fn lines_are_found_and_tidied() {
        let source = SourceFile::new("k.tile", "a\n\t copy  A -> a \u{1b}[31m // why\n");
        let mut sources = Sources::new(&source);
        assert_eq!(sources.line("k.tile", 2).as_deref(), Some("copy A -> a \u{fffd}[31m"));
        for (file, line) in [("k.tile", 0), ("k.tile", 9), ("no such file", 1), (".", 1), ("/dev/zero", 1)] {
            assert_eq!(sources.line(file, line), None, "{file}:{line}");
        }
    }
}

//! Draws diagnostics: for people with carets into the source, for programs as one JSON object per line.
//!
//! This is the only file that knows how a diagnostic looks. Spans are clamped to the source and to character boundaries
//! before use, so that a wrong span costs a wrong caret and never a panic.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet, renderer::DecorStyle};
use serde::Serialize;
use std::fmt::Write as _;
use std::ops::Range;
use tilec_ir::diag::{Diagnostic, Severity, Span};

/// More source than this is not drawn under one diagnostic; the place is then named by line and column only.
const MAX_WINDOW: usize = 16 * 1024;

/// A source text with its name and line starts.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    text: String,
    /// Byte offset of the first byte of every line.
    lines: Vec<usize>,
}

/// A position for people.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl SourceFile {
    /// A source called `name` in messages.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> SourceFile {
        let text = text.into();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        SourceFile { name: name.into(), text, lines }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of a span, within the text and at character boundaries.
    pub fn clamp(&self, span: Span) -> Range<usize> {
        let floor = |i: u32| {
            let mut i = usize::try_from(i).unwrap_or(usize::MAX).min(self.text.len());
            while !self.text.is_char_boundary(i) {
                i -= 1;
            }
            i
        };
        let start = floor(span.start);
        start..floor(span.end).max(start)
    }

    /// Line and column of a byte offset; an offset past the end gives those of the end.
    pub fn position(&self, byte: usize) -> Position {
        let byte = self.clamp(Span::new(byte, byte)).start;
        let line = self.lines.partition_point(|&start| start <= byte).max(1);
        Position { line, column: self.text[self.lines[line - 1]..byte].chars().count() + 1 }
    }

    /// From a column of a line (both from 1) to the end of the line; `None`: there is no such line.
    pub fn line_span(&self, line: usize, column: usize) -> Option<Span> {
        let start = *self.lines.get(line.checked_sub(1)?)?;
        let text = self.text[start..].lines().next().unwrap_or("");
        let before: usize = text.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
        Some(Span::new(start + before, start + text.trim_end().len().max(before)))
    }

    /// The bytes of the lines that `bytes` touches, without the last line end.
    fn line_window(&self, bytes: &Range<usize>) -> Range<usize> {
        let first = self.lines.partition_point(|&start| start <= bytes.start).max(1) - 1;
        let start = self.lines[first];
        let end = self.text[bytes.end..].find('\n').map_or(self.text.len(), |i| bytes.end + i);
        start..end
    }
}

/// Which diagnostics are drawn, and how.
#[derive(Copy, Clone, Debug, Default)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Remarks too.
    pub remarks: bool,
}

/// Diagnostics for people, one after the other, each followed by an empty line; then how many errors there were.
pub fn human(source: &SourceFile, diagnostics: &[Diagnostic], errors: usize, style: Style) -> String {
    let mut out = String::new();
    for d in diagnostics.iter().filter(|d| style.remarks || d.severity != Severity::Remark) {
        let _ = writeln!(out, "{}\n", human_one(source, d, style.color));
    }
    let shown = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    let _ = match errors {
        0 => Ok(()),
        1 => writeln!(out, "1 error"),
        n if n > shown => writeln!(out, "{n} errors, the first {shown} shown"),
        n => writeln!(out, "{n} errors"),
    };
    out
}

fn human_one(source: &SourceFile, d: &Diagnostic, color: bool) -> String {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Remark => Level::INFO.with_name("remark"),
    };
    let group = Group::with_title(level.primary_title(&d.message).id(d.code.0));
    let group = place(source, d, group).elements(d.notes.iter().map(|note| Level::NOTE.message(note)));
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// Adds the place of `d`: a drawing of the source where that is small enough, else its name and position.
fn place<'a>(source: &'a SourceFile, d: &'a Diagnostic, group: Group<'a>) -> Group<'a> {
    if d.span.is_none() {
        return group;
    }
    let main = source.clamp(d.span);
    let labels: Vec<_> = d.labels.iter().filter(|l| !l.span.is_none()).map(|l| (source.clamp(l.span), l)).collect();
    let all = labels.iter().fold(main.clone(), |all, (r, _)| all.start.min(r.start)..all.end.max(r.end));
    // Places too far apart for one drawing, as in long PTX, get one each.
    let (window, labels, far) = match source.line_window(&all) {
        window if window.len() <= MAX_WINDOW => (window, labels, Vec::new()),
        _ => (source.line_window(&main), Vec::new(), labels),
    };
    if window.len() > MAX_WINDOW {
        let at = source.position(main.start);
        return group.element(Origin::path(source.name()).line(at.line).char_column(at.column));
    }
    let text = &source.text()[window.clone()];
    let shift = |r: Range<usize>| r.start - window.start..r.end - window.start;
    let primary = AnnotationKind::Primary.span(shift(main)).label((!d.label.is_empty()).then_some(d.label.as_str()));
    let snippet = Snippet::source(text)
        .line_start(source.position(window.start).line)
        .path(source.name())
        .annotation(primary)
        .annotations(labels.into_iter().map(|(range, label)| {
            let text = (!label.text.is_empty()).then_some(label.text.as_str());
            AnnotationKind::Context.span(shift(range)).label(text)
        }));
    let group = group.element(snippet);
    far.into_iter().fold(group, |group, (range, label)| {
        let window = source.line_window(&range);
        if window.len() > MAX_WINDOW {
            return group;
        }
        let text = (!label.text.is_empty()).then_some(label.text.as_str());
        let shifted = range.start - window.start..range.end - window.start;
        let snippet = Snippet::source(&source.text()[window.clone()])
            .line_start(source.position(window.start).line)
            .path(source.name())
            .annotation(AnnotationKind::Context.span(shifted).label(text));
        group.element(snippet)
    })
}

/// A place as JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JsonPlace {
    pub(crate) line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    byte_start: usize,
    byte_end: usize,
}

impl JsonPlace {
    pub(crate) fn new(source: &SourceFile, span: Span) -> Option<JsonPlace> {
        if span.is_none() {
            return None;
        }
        let bytes = source.clamp(span);
        let (start, end) = (source.position(bytes.start), source.position(bytes.end));
        Some(JsonPlace {
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            byte_start: bytes.start,
            byte_end: bytes.end,
        })
    }
}

#[derive(Serialize)]
struct JsonText<'a> {
    text: &'a str,
    #[serde(flatten)]
    place: Option<JsonPlace>,
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    file: &'a str,
    #[serde(flatten)]
    place: Option<JsonPlace>,
    label: &'a str,
    labels: Vec<JsonText<'a>>,
    notes: &'a [String],
    /// A fix: the text replaces the span.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<JsonText<'a>>,
}

/// Diagnostics for programs: one JSON object per line.
///
/// Lines and columns count from 1, columns in characters; `end_column` is one past the last character; byte offsets count
/// from 0. The six fields of a place are absent where a diagnostic has none, `fix` where no change is known that mends it.
pub fn json(source: &SourceFile, diagnostics: &[Diagnostic], style: Style) -> String {
    let mut out = String::new();
    for d in diagnostics.iter().filter(|d| style.remarks || d.severity != Severity::Remark) {
        let fix = d.fix.as_ref().map(|fix| (fix.new_text(source.text()), fix.span));
        let line = serde_json::to_string(&JsonDiagnostic {
            severity: d.severity.name(),
            code: d.code.0,
            message: &d.message,
            file: source.name(),
            place: JsonPlace::new(source, d.span),
            label: &d.label,
            labels: d
                .labels
                .iter()
                .map(|l| JsonText { text: &l.text, place: JsonPlace::new(source, l.span) })
                .collect(),
            notes: &d.notes,
            fix: fix.as_ref().map(|(text, span)| JsonText { text, place: JsonPlace::new(source, *span) }),
        })
        .expect("a diagnostic has only string keys");
        let _ = writeln!(out, "{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use tilec_ir::diag::Code;

    const TEXT: &str = "kernel k(A: gmem f16[M, K])\n{\n    let a = smem f16[48, 32]\n    acc = mma(a, b, acc)\n}\n";

    fn find(text: &str, what: &str) -> Span {
        let at = text.find(what).expect("in the text");
        Span::new(at, at + what.len())
    }

    fn two_places() -> Diagnostic {
        Diagnostic::error(Code("E0207"), find(TEXT, "b,"), "operand 2 of `mma` has 48 rows, expected 32")
            .with_label("48 x 64 here")
            .with_place(find(TEXT, "f16[48, 32]"), "the other operand")
            .with_note("make `BK` a multiple of 16")
    }

    #[test]
    fn errors_show_both_places_the_note_and_the_count() {
        let source = SourceFile::new("gemm.tile", TEXT);
        let drawn = human(&source, &[two_places()], 1, Style::default());
        assert_eq!(
            drawn,
            "\
error[E0207]: operand 2 of `mma` has 48 rows, expected 32
 --> gemm.tile:4:18
  |
3 |     let a = smem f16[48, 32]
  |                  ----------- the other operand
4 |     acc = mma(a, b, acc)
  |                  ^^ 48 x 64 here
  |
  = note: make `BK` a multiple of 16

1 error
"
        );
    }

    #[test]
    fn places_far_apart_are_drawn_apart() {
        let text = format!("first\n{}last\n", "between\n".repeat(MAX_WINDOW));
        let source = SourceFile::new("k.ptx", text.as_str());
        let d = [Diagnostic::error(Code("E0805"), find(&text, "last"), "race")
            .with_label("this read")
            .with_place(find(&text, "first"), "the write")];
        assert_eq!(
            human(&source, &d, 1, Style::default()),
            "\
error[E0805]: race
     --> k.ptx:16386:1
      |
16386 | last
      | ^^^^ this read
      |
     ::: k.ptx:1:1
      |
    1 | first
      | ----- the write

1 error
"
        );
    }

    #[test]
    fn remarks_are_drawn_on_request_and_count_nothing() {
        let source = SourceFile::new("gemm.tile", TEXT);
        let remark = [Diagnostic::remark("vectorize", find(TEXT, "mma"), "copy is 2 bytes wide")];
        assert_eq!(human(&source, &remark, 0, Style::default()), "");
        assert_eq!(json(&source, &remark, Style::default()), "");
        assert_eq!(
            human(&source, &remark, 0, Style { color: false, remarks: true }),
            "\
remark[vectorize]: copy is 2 bytes wide
 --> gemm.tile:4:11
  |
4 |     acc = mma(a, b, acc)
  |           ^^^

"
        );
    }

    #[test]
    fn a_diagnostic_without_a_place_is_a_title() {
        let source = SourceFile::new("x.tile", "");
        let d = [Diagnostic::error(Code("E0601"), Span::default(), "cannot read it").with_note("try harder")];
        assert_eq!(
            human(&source, &d, 3, Style::default()),
            "error[E0601]: cannot read it\n |\n = note: try harder\n\n3 errors, the first 1 shown\n"
        );
    }

    #[test]
    fn json_has_one_object_per_line_with_positions_from_one() {
        let source = SourceFile::new("gemm.tile", TEXT);
        let text = json(&source, &[two_places(), two_places()], Style::default());
        assert_eq!(text.lines().count(), 2);
        let d: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        let at = TEXT.find("b,").expect("in the text");
        assert_eq!(d["severity"], "error");
        assert_eq!(d["code"], "E0207");
        assert_eq!(d["file"], "gemm.tile");
        assert_eq!([&d["line"], &d["column"], &d["end_line"], &d["end_column"]], [4, 18, 4, 20]);
        assert_eq!([&d["byte_start"], &d["byte_end"]], [at, at + 2]);
        assert_eq!(d["labels"][0]["text"], "the other operand");
        assert_eq!(d["labels"][0]["line"], 3);
        assert_eq!(d["notes"][0], "make `BK` a multiple of 16");
    }

    /// Every span over texts with wide, combining, control and no characters is drawn, and its position is in the text.
    #[test]
    fn no_span_panics() {
        for text in ["", "\n", "a", "é\r\n\tü", "日本\n\u{202e}x\u{0}\n\n", "a\u{301}\n"] {
            let source = SourceFile::new("x.tile", text);
            for start in 0..text.len() + 3 {
                for end in start..text.len() + 3 {
                    let span = Span { start: start as u32, end: end as u32 };
                    let d = Diagnostic::error(Code("E0101"), span, "bad")
                        .with_label("here")
                        .with_place(Span { start: 0, end: u32::MAX }, "all");
                    for color in [false, true] {
                        let drawn = human(&source, std::slice::from_ref(&d), 1, Style { color, remarks: true });
                        assert!(drawn.contains("bad"));
                    }
                    let line = json(&source, &[d], Style::default());
                    assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
                }
            }
        }
        let backwards = Span { start: 5, end: 2 };
        let source = SourceFile::new("x.tile", "abcdefgh");
        let d = Diagnostic::error(Code("E0101"), backwards, "bad");
        assert!(human(&source, &[d], 1, Style::default()).contains("x.tile:1:6"));
    }

    #[test]
    fn huge_lines_are_named_and_not_drawn() {
        let text = "x".repeat(1 << 20);
        let source = SourceFile::new("x.tile", text);
        let d = Diagnostic::error(Code("E0101"), Span::new(70_000, 70_001), "bad");
        let drawn = human(&source, &[d], 1, Style::default());
        assert!(drawn.contains("x.tile:1:70001"), "{drawn}");
        assert!(drawn.len() < 1000);
    }
}

//! `verify` and `diag`: messages, expected on the line they point at.
//!
//! `// error[E0201]: text` expects an error of that code on that line whose message contains the text; likewise `warning` and
//! `remark`. `//^ error[..]: ..` means the line above, `//^^` the one before that; a line may expect several, each
//! after its own `//`. `//@ nowhere: error[E0601]: text` expects one without a place. Errors and warnings must all be
//! expected; remarks only of the kinds that the file mentions, or that `//@ remarks: KIND KIND` lists.
//!
//! `verify` parses and verifies; `diag` compiles. With `full`, the drawing of all messages is the expected output, and
//! expectations on lines are not needed.

use super::checks::no_more;
use crate::test_file::TestFile;
use crate::{golden, options};
use tilec::render::{self, SourceFile};
use tilec::{CompileOptions, Diagnostics};
use tilec_ir::diag::{Diagnostic, Severity, Sink};

/// A message: its line (0: none), kind, code, and text.
#[derive(Clone, PartialEq, Debug)]
struct Message {
    line: usize,
    severity: &'static str,
    code: String,
    text: String,
}

pub(super) fn verify(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["nowhere"])?;
    no_more(&file.args, &["full"])?;
    let mut sink = Sink::new();
    if let Ok(module) = tilec_ir::parser::parse(&file.text, &mut sink) {
        for kernel in &module.kernels {
            // The errors are in the sink.
            let _ = tilec_ir::verify::verify(kernel, &mut sink);
        }
    }
    let errors = sink.error_count();
    check(file, &SourceFile::new(&file.name, &file.text), &sink.into_diagnostics(), errors)
}

pub(super) fn compile(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["source", "nowhere", "remarks", "matrix"])?;
    let (options, rest) = options::of(file)?;
    no_more(&rest, &["full"])?;
    options::for_each(file, &options, |options| {
        let (name, text) = file.program()?;
        let options = CompileOptions { source_name: name, ..options.clone() };
        match tilec::compile(&text, &options) {
            Ok(done) => check(file, &done.source, &done.diagnostics, 0),
            Err(Diagnostics { source, list, errors }) => check(file, &source, &list, errors),
        }
    })
}

fn check(file: &TestFile, source: &SourceFile, list: &[Diagnostic], errors: usize) -> Result<(), String> {
    let mut expected = expectations(file)?;
    let kinds: Vec<String> = expected.iter().filter(|m| m.severity == "remark").map(|m| m.code.clone()).collect();
    let listed = |kind: &str| file.values("remarks").flat_map(str::split_whitespace).any(|k| k == kind);
    let counts =
        |d: &&Diagnostic| d.severity != Severity::Remark || kinds.iter().any(|k| k == d.code.0) || listed(d.code.0);
    let mut wrong = String::new();
    for d in list.iter().filter(counts) {
        let line = if d.span.is_none() { 0 } else { source.position(source.clamp(d.span).start).line };
        let met = expected.iter().position(|m| {
            (m.line, m.severity, m.code.as_str()) == (line, d.severity.name(), d.code.0) && d.message.contains(&m.text)
        });
        match met {
            Some(i) => {
                expected.remove(i);
            }
            // The drawing pins it.
            None if file.flag("full") => {}
            None => {
                wrong += &format!("not expected, line {line}: // {}[{}]: {}\n", d.severity.name(), d.code, d.message);
            }
        }
    }
    for m in expected {
        wrong += &format!("missing, line {}: // {}[{}]: {}\n", m.line, m.severity, m.code, m.text);
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    if !file.flag("full") {
        return golden::check(file, &[]);
    }
    let shown: Vec<Diagnostic> = list.iter().filter(counts).cloned().collect();
    let drawing = render::human(source, &shown, errors, render::Style { color: false, remarks: true });
    golden::check(file, &[(String::new(), drawing)])
}

/// Everything that the lines of a file expect.
fn expectations(file: &TestFile) -> Result<Vec<Message>, String> {
    let mut all = Vec::new();
    for text in file.values("nowhere") {
        all.push(message(text, 0).ok_or_else(|| format!("`{text}` is not `error[CODE]: text`"))?);
    }
    let body = file.text.split("\n//@ output").next().unwrap_or("");
    for (number, line) in body.lines().enumerate().filter(|(_, l)| !l.starts_with("//@")) {
        for comment in line.split("//").skip(1) {
            let up = comment.chars().take_while(|&c| c == '^').count();
            all.extend(message(comment[up..].trim(), (number + 1).saturating_sub(up)));
        }
    }
    Ok(all)
}

/// `error[CODE]: text`.
fn message(text: &str, line: usize) -> Option<Message> {
    let (head, rest) = text.split_once('[')?;
    let (code, text) = rest.split_once("]:")?;
    let severity = ["error", "warning", "remark"].into_iter().find(|s| *s == head)?;
    Some(Message { line, severity, code: code.to_owned(), text: text.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        let m = message("error[E0201]: no `x`", 3).unwrap();
        assert_eq!((m.line, m.severity, m.code.as_str(), m.text.as_str()), (3, "error", "E0201", "no `x`"));
        for text in ["errors[E1]: x", "error: x", "error[E1] x", "an error[E1]: x"] {
            assert_eq!(message(text, 1), None, "{text}");
        }
    }
}

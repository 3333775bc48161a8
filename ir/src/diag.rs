//! Diagnostics as data: spans, labels, notes, stable codes. Nothing here draws or prints.

use crate::iteration_time::IterationTime;
use crate::missed_paths::{FastPath, MissedPath};
pub use crate::span::Span;
use std::fmt;

/// How serious a diagnostic is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program compiles; the user probably did not mean this.
    Warning,
    /// What a pass did, or declined to do and why.
    Remark,
}

impl Severity {
    /// The word of the text form.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Remark => "remark",
        }
    }
}

/// A stable diagnostic code; see [`crate::codes`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A source span with a short text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// The text; may be empty.
    pub text: String,
}

/// A change of the source text: replaces `span` by `text`, or surrounds it with two texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The replaced source; empty: an insertion.
    pub span: Span,
    /// The new text; empty: a deletion.
    pub text: String,
    /// If present, the old text is kept between `text` and this; `None`: it is replaced.
    pub behind: Option<String>,
    /// How the change affects the program's meaning; `None` if it only corrects a mistake.
    pub means: Option<&'static str>,
}

impl Edit {
    /// The text that replaces the span in `source`.
    #[must_use]
    pub fn new_text(&self, source: &str) -> String {
        let old = source.get(self.span.start as usize..self.span.end as usize).unwrap_or("");
        // Statements inserted before or after have the indentation of this one.
        let line = source[..(self.span.start as usize).min(source.len())].rsplit('\n').next().unwrap_or("");
        let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        let indented = |text: &str| text.replace('\n', &format!("\n{indent}"));
        match &self.behind {
            Some(behind) => format!("{}{old}{}", indented(&self.text), indented(behind)),
            None => indented(&self.text),
        }
    }
}

/// One message to the user.
///
/// Style: lower case, no full stop, names in backticks, what was found and what was expected; the note says how to fix
/// it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How serious.
    pub severity: Severity,
    /// Stable code: `E....` errors, `W....` warnings, remark kinds such as `vectorize` for remarks.
    pub code: Code,
    /// The message.
    pub message: String,
    /// The main place.
    pub span: Span,
    /// Text at the main span; may be empty.
    pub label: String,
    /// Further places.
    pub labels: Vec<Label>,
    /// Notes: causes and remedies.
    pub notes: Vec<String>,
    /// For a remark, or a warning made from one: its kind, as used by `--deny`.
    pub kind: Option<&'static str>,
    /// For a missed-optimisation remark: the reason alone.
    pub why: Option<String>,
    /// The fast path that is not taken, lost or given up.
    pub declined: Option<FastPath>,
    /// The fast path that is lost.
    pub loss: Option<MissedPath>,
    /// The preconditions that would help, separated by commas; empty: none would.
    pub needs: String,
    /// The note with the cost of the loss.
    pub cost: Option<String>,
    /// For a pipelined loop: the time of an iteration.
    pub iteration_time: Option<IterationTime>,
    /// The change that mends it, where one can be named that needs no thought.
    pub fix: Option<Edit>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, span, message)
    }

    /// A warning.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, span, message)
    }

    /// A remark; `kind` is what `--deny KIND` names.
    pub fn remark(kind: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { kind: Some(kind), ..Diagnostic::new(Severity::Remark, Code(kind), span, message) }
    }

    fn new(severity: Severity, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity,
            code,
            message: message.into(),
            span,
            label: String::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            kind: None,
            why: None,
            declined: None,
            loss: None,
            needs: String::new(),
            cost: None,
            iteration_time: None,
            fix: None,
        }
    }

    /// Sets the text at the main span.
    pub fn with_label(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = text.into();
        self
    }

    /// Adds a further span with a text.
    pub fn with_place(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// With the reason by itself.
    pub fn with_why(mut self, why: impl Into<String>) -> Diagnostic {
        self.why = Some(why.into());
        self
    }

    /// Sets the fast path that is lost.
    pub fn with_loss(mut self, loss: MissedPath) -> Diagnostic {
        self.loss = Some(loss);
        self
    }

    /// Remedies of a missed optimisation: its notes without the one on cost.
    pub fn ways_out(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().filter(|note| self.cost.as_ref() != Some(*note))
    }

    /// Sets the time of an iteration of a loop.
    pub fn with_pace(mut self, pace: IterationTime) -> Diagnostic {
        self.iteration_time = Some(pace);
        self
    }

    /// Adds a fix: the edit and a note that describes it.
    pub fn with_fix(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.fix = Some(Edit { span, text: text.into(), behind: None, means: None });
        self
    }

    /// With the change that mends it by leaving a part of the source out; none where that is in no source.
    pub fn with_left_out(self, part: Option<Span>) -> Diagnostic {
        match part {
            Some(span) => self.with_fix(span, ""),
            None => self,
        }
    }

    /// Adds a fix that replaces an item of the schedule by another; none if the item has no source position. Leading
    /// blanks are kept.
    pub fn with_fix_of_item(self, item: Option<Span>, text: impl Into<String>) -> Diagnostic {
        match item {
            Some(span) => self.with_fix(span, format!(" {}", text.into())),
            None => self,
        }
    }

    /// With the change that mends it by what is around a part of the source; none where the part is in no source.
    pub fn with_fix_around(mut self, span: Span, front: impl Into<String>, behind: impl Into<String>) -> Diagnostic {
        if !span.is_none() {
            self.fix = Some(Edit { span, text: front.into(), behind: Some(behind.into()), means: None });
        }
        self
    }

    /// Sets how the fix affects the program's meaning.
    pub fn with_meaning(mut self, means: &'static str) -> Diagnostic {
        if let Some(fix) = &mut self.fix {
            fix.means = Some(means);
        }
        self
    }

    /// Adds a fix of a misspelt word at the main span.
    pub fn with_spelling(self, meant: &str) -> Diagnostic {
        let span = self.span;
        self.with_note(format!("did you mean `{meant}`?")).with_fix(span, meant)
    }

    /// A remark again, of a warning that one has become.
    pub fn to_remark(&mut self) {
        if let (Severity::Warning, Some(kind)) = (self.severity, self.kind) {
            (self.severity, self.code) = (Severity::Remark, Code(kind));
        }
    }

    /// With a note.
    pub fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}

/// Proof that at least one error was put into a [`Sink`]; only a sink can make one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reported(());

/// Collects diagnostics.
#[derive(Default, Debug)]
pub struct Sink {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
}

/// Errors beyond this number are counted but not stored, so that a broken file fills neither the screen nor memory.
const MAX_ERRORS: usize = 100;

impl Sink {
    /// An empty sink.
    pub fn new() -> Sink {
        Sink::default()
    }

    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
            if self.errors > MAX_ERRORS {
                return;
            }
        }
        self.diagnostics.push(diagnostic);
    }

    /// Adds an error and returns the proof.
    pub fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        debug_assert_eq!(diagnostic.severity, Severity::Error);
        self.push(diagnostic);
        Reported(())
    }

    /// Adds everything that another sink collected.
    pub fn append(&mut self, other: Sink) {
        let kept = other.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
        self.errors += other.errors - kept;
        other.diagnostics.into_iter().for_each(|d| self.push(d));
    }

    /// Makes a warning of a remark that costs much.
    ///
    /// # Panics
    /// The diagnostic is no remark.
    pub fn warn_of(&mut self, index: usize, code: Code, note: String) {
        let d = &mut self.diagnostics[index];
        assert_eq!(d.severity, Severity::Remark, "bug: a warning is made of no remark");
        (d.severity, d.code) = (Severity::Warning, code);
        d.notes.push(note.clone());
        d.cost = Some(note);
    }

    /// Adds to a diagnostic about a lost fast path how many nanoseconds a launch takes longer for it.
    pub fn time_of_loss(&mut self, index: usize, nanoseconds: u64) {
        if let Some(loss) = &mut self.diagnostics[index].loss {
            loss.nanoseconds = Some(nanoseconds);
        }
    }

    /// Number of errors so far.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// `Err` if there was an error.
    pub fn check(&self) -> Result<(), Reported> {
        if self.errors == 0 { Ok(()) } else { Err(Reported(())) }
    }

    /// Everything collected, in order.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Gives up what was collected.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}

/// The remedy for missing preconditions, separated by commas: `` declare `where K % 8 == 0` ``.
pub fn declare_where(preconditions: &str) -> String {
    format!("declare `where {preconditions}`")
}

/// A number of things: `1 range`, `2 ranges`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

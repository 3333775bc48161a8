//! Answers, and what they are made of.

use super::programs::Trials;
use crate::compile::{CompileOptions, Compiled, CompiledKernel, Diagnostics};
use crate::xray::Xray;
use serde::Serialize;
use std::fmt;

/// The value of `schema`.
pub const SCHEMA: &str = "tilec.why/1";

/// An answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What was asked.
    pub question: String,
    /// What was asked about: the line itself, and what it stands for.
    pub about: Vec<String>,
    /// What decided it.
    pub parts: Vec<Part>,
}

/// Part of an answer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Part {
    /// What it is about.
    pub title: String,
    /// Facts, a line each.
    pub facts: Vec<String>,
    /// Decisions, in the order of the passes.
    pub decisions: Vec<Decision>,
}

/// A decision.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// Who decided: a pass, or the code of a message.
    pub by: &'static str,
    /// What that does, as a rule.
    pub rule: String,
    /// The lines that are no more.
    pub before: Vec<String>,
    /// The lines that are there for them.
    pub after: Vec<String>,
    /// What was said of it.
    pub says: Vec<Says>,
    /// What would change it.
    pub change: Vec<String>,
}

/// What a pass said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Says {
    /// The message.
    pub message: String,
    /// Where: `file:line`; empty: nowhere in the source.
    pub at: String,
    /// The source there.
    pub source: String,
}

/// Why a question cannot be answered.
#[derive(Debug)]
pub enum Unanswered {
    /// The program does not compile, or the assembler fails.
    Diagnostics(Diagnostics),
    /// What is asked about is not there; the text says so.
    Asked(String),
}

impl From<Diagnostics> for Unanswered {
    fn from(d: Diagnostics) -> Unanswered {
        Unanswered::Diagnostics(d)
    }
}

/// A program, and what a page would show of it.
pub(super) struct Known<'a> {
    pub(super) program: &'a Compiled,
    pub(super) shown: &'a Xray,
    /// What it was compiled with.
    pub(super) options: &'a CompileOptions,
    /// What was compiled to try advice.
    pub(super) trials: Trials<'a>,
}

impl Known<'_> {
    /// The source.
    pub(super) fn text(&self) -> &str {
        self.program.source.text()
    }

    /// Whether a kernel is judged: what a pass made to bring rows into order means nothing by itself.
    pub(super) fn judges(&self, kernel: &CompiledKernel) -> bool {
        kernel.tile.source_kernel.is_some() || self.program.kernels.iter().all(|k| k.tile.source_kernel.is_none())
    }
}

impl Answer {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("an answer has only string keys");
        text.push('\n');
        text
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.about {
            writeln!(f, "{line}")?;
        }
        for part in &self.parts {
            writeln!(f, "\n{}", part.title)?;
            for fact in &part.facts {
                writeln!(f, "  {fact}")?;
            }
            for (i, decision) in part.decisions.iter().enumerate() {
                if i > 0 || !part.facts.is_empty() {
                    writeln!(f)?;
                }
                decision.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = if self.rule.is_empty() { String::new() } else { format!(": {}", self.rule) };
        writeln!(f, "  {}{rule}", self.by)?;
        for line in &self.before {
            writeln!(f, "    - {line}")?;
        }
        for line in &self.after {
            writeln!(f, "    + {line}")?;
        }
        for says in &self.says {
            writeln!(f, "    {}", says.message)?;
            if !says.at.is_empty() {
                writeln!(f, "      at {}: {}", says.at, says.source)?;
            }
        }
        for change in &self.change {
            writeln!(f, "    to change it: {change}")?;
        }
        Ok(())
    }
}

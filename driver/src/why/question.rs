//! Questions of `tilec why`, and their syntax.

use crate::compile::explain;
use crate::xray::path::Element;
use std::fmt;
use tilec_ir::demands::{Figure, PROPERTIES, What};
use tilec_ir::diag::Sink;
use tilec_ir::parser::parse_demands;
use tilec_ir::target::Target;

/// A question.
#[derive(Clone, PartialEq, Debug)]
pub enum Question {
    /// What costs time: no place is named.
    Overview,
    /// Why a line is as it is: `source:33`, `ptx:412`, `sass:300`, `swizzle:20` (of the program after that pass).
    Line {
        /// `source`, a pass, `ptx` or `sass`.
        column: String,
        /// Its number, from 1.
        line: usize,
    },
    /// Where an element goes: `element:A[3,5]`, of one of several kernels `element:gemm.A[3,5]`.
    Element(Element),
    /// What takes the registers of a thread: `register`.
    Register,
    /// What the barriers are for: `barrier`.
    Barrier,
    /// Why the code is not like this: `--not wgmma`.
    Not(What),
}

impl Question {
    /// A place: `ptx:412`, `element:A[3,5]`, `register`, `barrier`.
    ///
    /// # Errors
    /// It is none of them; the text says what there is.
    pub fn parse(text: &str) -> Result<Question, String> {
        match text.split_once(':') {
            None if text == "register" => Ok(Question::Register),
            None if text == "barrier" => Ok(Question::Barrier),
            Some(("element", rest)) => element(rest),
            Some((column, line)) if !column.is_empty() => match line.parse() {
                Ok(line) if line > 0 => Ok(Question::Line { column: column.to_owned(), line }),
                _ => Err(format!("`{line}` is no number of a line")),
            },
            _ => Err(unknown(text)),
        }
    }

    /// What `--not` names: a property or a figure as in `require`; `resident 2` is `resident >= 2`.
    ///
    /// # Errors
    /// There is no such property; the text says what there is.
    pub fn parse_not(text: &str) -> Result<Question, String> {
        let full = match text.trim().rsplit_once(' ') {
            // More is worse of what a block takes, and better of the rest.
            Some((figure, number)) if number.parse::<f64>().is_ok() && !figure.ends_with('=') => {
                let takes = ["registers", "shared memory", "bytes", "padding"].contains(&figure.trim());
                format!("{figure} {} {number}", if takes { "<=" } else { ">=" })
            }
            _ => text.to_owned(),
        };
        let mut sink = Sink::new();
        match parse_demands(&full, &mut sink).as_deref() {
            Ok([one]) => Ok(Question::Not(one.what)),
            Ok(_) => Err("`--not` takes one property".to_owned()),
            Err(_) => {
                let without = format!("no {}", text.trim());
                if PROPERTIES.iter().any(|(name, _)| *name == without) {
                    return Err(format!("`{text}` is no property; did you mean `{without}`?"));
                }
                let said = sink.into_diagnostics().into_iter().flat_map(|d| std::iter::once(d.message).chain(d.notes));
                Err(said.collect::<Vec<_>>().join("; "))
            }
        }
    }

    /// Whether figures of the assembler belong to the answer.
    pub(super) fn needs_assembler(&self) -> bool {
        match self {
            Question::Overview | Question::Register => true,
            Question::Not(what) => {
                // What is predicted is not of code that spills.
                what.needs_assembler()
                    || matches!(
                        what,
                        What::AtLeast(Figure::Resident | Figure::Roofline, _) | What::AtMost(Figure::Resident, _)
                    )
            }
            _ => false,
        }
    }

    /// Whether machine code does.
    pub(super) fn needs_machine(&self) -> bool {
        match self {
            Question::Line { column, .. } => column == "sass",
            Question::Register => true,
            _ => false,
        }
    }
}

/// What is said of a word that is neither a place nor a target.
fn unknown(word: &str) -> String {
    let targets: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
    let named = ["register", "barrier", "source", "ptx", "sass", "element"];
    let near = explain::nearest(word, targets.iter().copied().chain(named).chain(explain::pass_names()));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("`{word}` is no target and no place{near}; targets are {}, and places {PLACES}", targets.join(", "))
}

/// The places that there are, for messages.
pub(super) const PLACES: &str = "`source:LINE`, `PASS:LINE`, `ptx:LINE`, `sass:LINE`, `element:NAME[I,J]` (of one of several kernels `element:KERNEL.NAME[I,J]`, in a row that memory names `element:NAME[ROWS[I],J]`), `register` and `barrier`";

/// `A[3,5]`.
fn element(text: &str) -> Result<Question, String> {
    let wrong =
        || format!("`{text}` is no element: `element:A[3,5]`, in a row that memory names `element:A[rows[3],5]`");
    Element::parse(text).map(Question::Element).ok_or_else(wrong)
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Overview => f.write_str("overview"),
            Question::Line { column, line } => write!(f, "{column}:{line}"),
            Question::Element(element) => write!(f, "element:{}", element.to_string().replace(' ', "")),
            Question::Register => f.write_str("register"),
            Question::Barrier => f.write_str("barrier"),
            Question::Not(what) => write!(f, "--not {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::demands::Property;

    #[test]
    fn questions_read_as_they_are_written() {
        for text in [
            "ptx:412",
            "source:1",
            "swizzle:20",
            "element:A[3,5]",
            "element:x[0]",
            "element:k.x[0]",
            "element:A[rows[3],5]",
            "register",
            "barrier",
        ] {
            assert_eq!(Question::parse(text).map(|q| q.to_string()).as_deref(), Ok(text));
        }
        for wrong in
            ["", "ptx", "ptx:", "ptx:0", "ptx:x", ":3", "element:A", "element:A[", "element:A[x+1]", "registers"]
        {
            assert!(Question::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Question::parse_not("wgmma"), Ok(Question::Not(What::Has(Property::Wgmma))));
        assert_eq!(Question::parse_not("resident 2"), Ok(Question::Not(What::AtLeast(Figure::Resident, 2.0))));
        assert_eq!(Question::parse_not("registers 96"), Ok(Question::Not(What::AtMost(Figure::Registers, 96.0))));
        let room = Question::parse_not("shared memory 49152");
        assert_eq!(room, Ok(Question::Not(What::AtMost(Figure::SharedMemory, 49152.0))));
        assert_eq!(Question::parse_not("resident >= 2"), Question::parse_not("resident 2"));
        let spills = Question::parse_not("spills").expect_err("no property");
        assert!(spills.contains("did you mean `no spills`?"), "{spills}");
        let unknown = Question::parse_not("wgma").expect_err("no property");
        assert!(unknown.contains("did you mean `wgmma`?") && unknown.contains("`no spills`"), "{unknown}");
        let unknown = Question::parse_not("tensor core").expect_err("no property");
        assert!(unknown.contains("did you mean `tensor cores`?"), "{unknown}");
        let unknown = Question::parse("sm_91").expect_err("no target");
        assert!(unknown.contains("did you mean `sm_90`?") && unknown.contains("sm_75"), "{unknown}");
        let unknown = Question::parse("registr").expect_err("no place");
        assert!(unknown.contains("did you mean `register`?"), "{unknown}");
        assert!(Question::parse_not("wgmma, tma").is_err());
    }
}

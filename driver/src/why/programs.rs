//! Changed programs, each compiled once for an answer.

use crate::compile::{CompileOptions, Compiled, compile, parallel};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilec_ir::diag::{Edit, Span};

/// A change of the program.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Change {
    /// The source; `None`: as it is.
    source: Option<String>,
    /// Values of compile-time parameters, in place of those given or chosen.
    values: Vec<(String, String)>,
    /// Parameters whose given values are left out.
    without: Vec<String>,
    /// It moves elements in another way, and computes the same of them.
    preserves: bool,
}

impl Change {
    /// Other values of compile-time parameters.
    pub(super) fn of_values(values: &[(&str, String)]) -> Change {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Change { values, ..Change::default() }
    }

    /// Given values of compile-time parameters are left out.
    pub(super) fn without(names: Vec<String>) -> Change {
        Change { without: names, ..Change::default() }
    }

    /// Another source.
    pub(super) fn of_source(source: String) -> Change {
        Change { source: Some(source), ..Change::default() }
    }

    /// Another text in place of a part of the source.
    pub(super) fn of_part(source: &str, span: Span, text: &str) -> Option<Change> {
        let mut source = source.to_owned();
        source.get(span.start as usize..span.end as usize)?;
        source.replace_range(span.start as usize..span.end as usize, text);
        Some(Change::of_source(source))
    }

    /// The same with other texts in place of parts of the source that do not overlap.
    pub(super) fn with_parts(self, source: &str, mut parts: Vec<(Span, String)>) -> Change {
        if parts.is_empty() {
            return self;
        }
        parts.sort_by_key(|(span, _)| span.start);
        let mut source = self.source.unwrap_or_else(|| source.to_owned());
        for (span, text) in parts.into_iter().rev() {
            source.replace_range(span.start as usize..span.end as usize, &text);
        }
        Change { source: Some(source), ..self }
    }

    /// The same, which by its making computes what the program does.
    pub(super) fn preserving(self) -> Change {
        Change { preserves: true, ..self }
    }

    /// Whether it does.
    pub(super) fn preserves(&self) -> bool {
        self.preserves
    }

    /// An edit that a message has.
    pub(super) fn of_edit(source: &str, edit: &Edit) -> Option<Change> {
        let mut text = edit.new_text(source);
        if edit.span.start == edit.span.end {
            // In front of another clause with a space between.
            text.push(' ');
        }
        Change::of_part(source, edit.span, &text)
    }
}

/// What was compiled for an answer.
pub(super) struct Trials<'a> {
    source: &'a str,
    options: &'a CompileOptions,
    programs: RefCell<BTreeMap<Change, Option<Arc<Compiled>>>>,
    /// Bytes that the assembler spills in a kernel; `None`: unknown.
    pub(super) spilled: RefCell<BTreeMap<Change, Option<u64>>>,
}

impl<'a> Trials<'a> {
    /// Of a program with these options.
    pub(super) fn new(source: &'a str, options: &'a CompileOptions) -> Trials<'a> {
        Trials { source, options, programs: RefCell::default(), spilled: RefCell::default() }
    }

    /// The changed program; `None`: it does not compile.
    pub(super) fn program(&self, change: &Change) -> Option<Arc<Compiled>> {
        self.prepare(std::slice::from_ref(change));
        self.programs.borrow().get(change).cloned().flatten()
    }

    /// Compiles several programs at the same time, for what is asked of them later.
    pub(super) fn prepare(&self, changes: &[Change]) {
        let mut open: Vec<&Change> = Vec::new();
        for change in changes {
            if !self.programs.borrow().contains_key(change) && !open.contains(&change) {
                open.push(change);
            }
        }
        let (source, options) = (self.source, self.options);
        let programs = parallel::map(open, |change| (change.clone(), compiled(source, options, change)));
        self.programs.borrow_mut().extend(programs);
    }
}

fn compiled(source: &str, options: &CompileOptions, change: &Change) -> Option<Arc<Compiled>> {
    let mut options = CompileOptions { show_broken: true, report_accesses: true, ..options.clone() };
    let is_left_out = |name: &String| change.without.contains(name) || change.values.iter().any(|(n, _)| n == name);
    options.defines.retain(|(name, _)| !is_left_out(name));
    options.defines.extend(change.values.iter().cloned());
    compile(change.source.as_deref().unwrap_or(source), &options).ok().map(Arc::new)
}

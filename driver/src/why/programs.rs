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
    /// Other texts in place of parts of it that do not overlap, in their order.
    texts: Vec<(Span, String)>,
    /// Values of compile-time parameters, in place of those given or chosen.
    values: Vec<(String, String)>,
    /// Parameters whose given values are left out.
    without: Vec<String>,
    /// Sizes of the launch.
    sizes: Vec<(String, i64)>,
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

    /// The same with another size of the launch.
    pub(super) fn with_size(mut self, name: &str, value: i64) -> Change {
        self.sizes.push((name.to_owned(), value));
        self
    }

    /// Whether a size is another one.
    pub(super) fn has_size(&self, name: &str) -> bool {
        self.sizes.iter().any(|(own, _)| own == name)
    }

    /// Another source.
    pub(super) fn of_source(source: String) -> Change {
        Change { source: Some(source), ..Change::default() }
    }

    /// Another text in place of a part of the source.
    pub(super) fn of_part(source: &str, span: Span, text: &str) -> Option<Change> {
        source.get(span.start as usize..span.end as usize)?;
        Some(Change { texts: vec![(span, text.to_owned())], ..Change::default() })
    }

    /// The same with other texts in place of parts of the source that do not overlap.
    pub(super) fn with_parts(mut self, parts: Vec<(Span, String)>) -> Change {
        self.texts.extend(parts);
        // Of texts at the same place the first one stays in front.
        self.texts.sort_by_key(|(span, _)| (span.start, span.end));
        self
    }

    /// This change and another one; `None`: they change the same.
    pub(super) fn and(&self, other: &Change) -> Option<Change> {
        let meet = |a: Span, b: Span| a.start < b.end && b.start < a.end || a.start == b.start;
        let same_text = self.texts.iter().any(|(a, _)| other.texts.iter().any(|(b, _)| meet(*a, *b)));
        let same_value = self.values.iter().any(|(a, _)| other.values.iter().any(|(b, _)| a == b));
        let whole = self.source.is_some() || other.source.is_some();
        if whole || same_text || same_value || !self.without.is_empty() || !other.without.is_empty() {
            return None;
        }
        let mut both = self.clone().with_parts(other.texts.clone());
        both.values.extend(other.values.iter().cloned());
        both.values.sort_unstable();
        both.sizes.extend(other.sizes.iter().cloned());
        both.preserves &= other.preserves;
        Some(both)
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
    for given in options.sizes.iter_mut() {
        given.retain(|(name, _)| !change.has_size(name));
        given.extend(change.sizes.iter().cloned());
    }
    let mut source = change.source.as_deref().unwrap_or(source).to_owned();
    for (span, text) in change.texts.iter().rev() {
        source.replace_range(span.start as usize..span.end as usize, text);
    }
    compile(&source, &options).ok().map(Arc::new)
}

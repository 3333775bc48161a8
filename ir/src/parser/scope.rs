//! The names in scope.

use crate::entities::Value;

use std::collections::{BTreeMap, BTreeSet};

/// The treatment of a name without declaration.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Unknown {
    /// An error.
    Error,
    /// A run-time extent: inside the shape of a tensor.
    Size,
    /// A run-time stride: inside `strides (..)`.
    Stride,
}

/// Names of the kernel being parsed.
pub(super) struct Names<'s> {
    pub(super) visible: BTreeMap<String, Value>,
    /// Names to forget when a scope ends, a list per open scope.
    pub(super) scopes: Vec<Vec<String>>,
    /// Every name in the tables.
    pub(super) taken: BTreeSet<String>,
    /// Last number appended to a name.
    pub(super) numbers: BTreeMap<String, u32>,
    pub(super) words: Words<'s>,
    /// Unknown names already reported.
    pub(super) missing: BTreeSet<String>,
    /// The variable of the loop whose condition is read: the condition cannot see it.
    pub(super) counted: Option<String>,
    /// Reserved words that were declared as names: reported.
    pub(super) reserved: BTreeSet<String>,
    /// What to do about unknown names.
    pub(super) unknown: Unknown,
    /// Part of the header could not be read, so names may be missing through no fault of theirs.
    pub(super) incomplete: bool,
}

impl<'s> Names<'s> {
    pub(super) fn new(words: Words<'s>) -> Names<'s> {
        Names {
            visible: BTreeMap::new(),
            scopes: Vec::new(),
            taken: BTreeSet::new(),
            numbers: BTreeMap::new(),
            words,
            missing: BTreeSet::new(),
            counted: None,
            reserved: BTreeSet::new(),
            unknown: Unknown::Error,
            incomplete: false,
        }
    }

    /// Forgets everything about the last kernel.
    pub(super) fn reset(&mut self) {
        let words = std::mem::take(&mut self.words);
        *self = Names::new(words);
    }

    pub(super) fn unique(&mut self, name: &str) -> String {
        if self.taken.insert(name.to_owned()) {
            return name.to_owned();
        }
        let number = self.numbers.entry(name.to_owned()).or_insert(0);
        loop {
            *number += 1;
            let candidate = format!("{name}_{number}");
            if !self.words.contains(candidate.as_str()) && self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// The words of the source, which generated names avoid.
pub(super) type Words<'s> = BTreeSet<&'s str>;

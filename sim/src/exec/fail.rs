//! Errors inside an instruction.

use crate::race::Conflict;
use crate::report::{Cause, Memory, ReportKind};

/// An error inside an instruction, before its place is added.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub(crate) kind: ReportKind,
    pub(crate) cause: Option<Cause>,
    pub(crate) message: String,
    pub(crate) lane: Option<usize>,
    pub(crate) address: Option<u64>,
    pub(crate) memory: Option<Memory>,
    pub(crate) other: Option<Conflict>,
}

impl Fail {
    pub(crate) fn new(kind: ReportKind, message: impl Into<String>) -> Box<Fail> {
        Box::new(Fail {
            kind,
            cause: None,
            message: message.into(),
            lane: None,
            address: None,
            memory: None,
            other: None,
        })
    }

    pub(crate) fn because(mut self: Box<Fail>, cause: Cause) -> Box<Fail> {
        self.cause = Some(cause);
        self
    }

    /// Adds the other side of a race.
    pub(crate) fn against(mut self: Box<Fail>, other: Conflict) -> Box<Fail> {
        self.other = Some(other);
        self
    }

    pub(crate) fn at(mut self: Box<Fail>, lane: usize) -> Box<Fail> {
        self.lane = Some(lane);
        self
    }

    pub(crate) fn address(mut self: Box<Fail>, address: u64) -> Box<Fail> {
        self.address = Some(address);
        self
    }

    pub(crate) fn in_shared(mut self: Box<Fail>, address: u64) -> Box<Fail> {
        self.memory = Some(Memory::Shared);
        self.address(address)
    }

    pub(crate) fn in_global(mut self: Box<Fail>, address: u64) -> Box<Fail> {
        self.memory = Some(Memory::Global);
        self.address(address)
    }
}

pub(crate) type Step = Result<(), Box<Fail>>;

//! What a timeline has.

use std::collections::BTreeSet;
use tilec_ir::entities::{Stmt, Value};

/// Iterations of an innermost loop.
pub(super) const INNER: u64 = 5;
/// The same if it is inside of another loop.
pub(super) const NESTED: u64 = 3;
/// Iterations of a loop around another one, for each replica of the role.
pub(super) const OUTER: u64 = 2;

/// The roles of a kernel in time, in clocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// The warpgroups of the roles, role by role.
    pub rows: Vec<Row>,
    /// The statements, in the order of the text; also loops, branches and ordered statements around others.
    pub lines: Vec<Line>,
    /// What the warpgroups do and when they wait, in the order in which it begins.
    pub events: Vec<Event>,
    /// What the units do, in the order in which it begins.
    pub units: Vec<(Unit, Event)>,
    /// The uses of the slots of channels, channel by channel.
    pub slots: Vec<SlotUse>,
    /// When the iterations of loops begin that are not unrolled.
    pub turns: Vec<Turn>,
    /// The steps that load by threads what a product of the same iteration multiplies.
    pub(super) multiplied: BTreeSet<usize>,
    /// Iterations of an innermost loop from its first number to its end.
    pub iterations: u64,
    /// Bytes of loads per clock.
    pub loaded: u64,
    /// Clocks from the request of a load to its first bytes.
    pub latency: u64,
}

/// A use of a slot of a channel: filled once, and read until it is released.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotUse {
    /// The channel.
    pub channel: Value,
    /// Which use it is: the first is 0.
    pub number: u64,
    /// Which slot.
    pub slot: u64,
    /// When a producer has it.
    pub acquired: u64,
    /// When it is full: published, and all bytes have landed.
    pub full: u64,
    /// When the first reader goes on with it; `None`: nobody waits for it.
    pub read: Option<u64>,
    /// When the last reader has released it; `None`: not before the end.
    pub released: Option<u64>,
}

/// A warpgroup of a role, or all warps of a role that has no whole warpgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The role.
    pub role: String,
    /// The warps of the row.
    pub warps: u32,
    /// Which warpgroup of the role, if it has several.
    pub warpgroup: Option<u32>,
    /// Which replica, if there are several.
    pub replica: Option<u32>,
    /// One lane executes it for all.
    pub elected: bool,
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Which.
    pub stmt: Stmt,
    /// The name of its role.
    pub role: String,
    /// How many statements of the role are around it.
    pub depth: u32,
    /// Its number, from 1: loops and branches have none.
    pub number: Option<usize>,
    /// What it waits for, in words.
    pub waits_for: Option<String>,
    /// A branch that is taken in no iteration here.
    pub left_out: bool,
}

/// What a warpgroup or a unit does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The warpgroup, as index of [`Timeline::rows`].
    pub row: usize,
    /// The number of the statement.
    pub number: usize,
    /// The iteration that it belongs to, counted over all loops.
    pub iteration: u64,
    /// From this clock.
    pub begin: u64,
    /// To this one.
    pub end: u64,
    /// The warpgroup waits.
    pub waits: bool,
}

/// The begin of an iteration of a loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The warpgroup, as index of [`Timeline::rows`].
    pub row: usize,
    /// The loop.
    pub at: Stmt,
    /// At this clock.
    pub begin: u64,
    /// It is the first iteration since the loop was reached.
    pub first: bool,
}

/// A unit of the multiprocessor.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unit {
    /// Tensor cores.
    TensorCores,
    /// Special functions.
    SpecialFunctions,
    /// Bytes that arrive from tensors.
    Loads,
    /// TMA stores that read shared memory.
    Stores,
}

impl Unit {
    /// In the order of the rows.
    pub const ALL: [Unit; 4] = [Unit::TensorCores, Unit::SpecialFunctions, Unit::Loads, Unit::Stores];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Unit::TensorCores => tilec_ir::iteration_time::TENSOR_CORES,
            Unit::SpecialFunctions => "special functions",
            Unit::Loads => "loads arrive",
            Unit::Stores => "TMA stores",
        }
    }
}

impl Timeline {
    /// When all is done.
    pub fn end(&self) -> u64 {
        let units = self.units.iter().map(|(_, e)| e.end);
        self.events.iter().map(|e| e.end).chain(units).max().unwrap_or(0)
    }
}

//! Rings of slots in shared memory, and the position of producer and consumer in them.

use super::ranged_ints::Int;
use crate::inst::Reg;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::handover::Fill;
use tilec_ir::kernel::Next;

/// A position in a ring: the byte offset of the current slot's stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Position {
    /// A constant: in front of the main loop.
    Slot(u64),
    /// In a register, in bytes.
    Reg(Reg),
}

/// Channels that are operated together.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) channels: Vec<Value>,
    pub(super) slots: u64,
    /// Bytes from slot to slot.
    pub(super) stride: u64,
    pub(super) put: Position,
    /// Ring index for `wait`: the slot that was waited for last. It advances at `release`, or at `wait` if the consumer
    /// may hold several slots at once.
    pub(super) get: Position,
    /// Whether the consumer may hold several slots at once.
    pub(super) holds_several: bool,
    /// If several slots are held: the `full` barrier of the oldest one, which is released next.
    pub(super) oldest: Option<Reg>,
    /// Its barriers, if it is between roles.
    pub(super) barriers: Option<Barriers>,
    /// How the slots are filled, if it is between roles.
    pub(super) fill: Fill,
    /// Bytes that TMA loads write to the slot that is being filled.
    pub(super) filling: u64,
    /// Whether threads have read the current slot by loads. The reads of a wgmma are complete when it has been awaited.
    pub(super) read: bool,
    /// Barrier address and parity of the producer, in its role.
    pub(super) put_turn: Option<OrderedBarrier>,
    /// Whether the last fills have been awaited at the end.
    pub(super) drained: bool,
    pub(super) get_turn: Option<OrderedBarrier>,
}

/// The place of a buffer or channel in shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) offset: u64,
    pub(super) ring: Option<usize>,
}

/// The mbarriers of a ring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Barriers {
    /// The first `full` barrier; the `empty` ones follow.
    pub(super) offset: u64,
    /// Arrivals that complete a phase of a `full` barrier.
    pub(super) full: u32,
    /// Arrivals that complete a phase of an `empty` barrier.
    pub(super) empty: u32,
}

/// Barrier address and parity of the producer or consumer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct OrderedBarrier {
    /// Address of the slot's `full` barrier.
    pub(super) barrier: Reg,
    /// Parity of the phase to wait for.
    pub(super) parity: Reg,
}

impl Ring {
    /// The barriers of a ring between roles.
    pub(super) fn known_barriers(&self) -> Barriers {
        self.barriers.unwrap_or_else(|| panic!("bug: a ring between roles without barriers"))
    }

    /// The position of a side; its role has begun.
    pub(super) fn known_turn(&self, turn: Option<OrderedBarrier>) -> OrderedBarrier {
        turn.unwrap_or_else(|| panic!("bug: a ring is operated where nobody knows its place"))
    }
}

/// State of an `ordered` statement, which replicas execute one after the other.
#[derive(Clone, Debug)]
pub(super) struct OrderedState {
    /// The barrier of the first replica; those of the other replicas follow.
    pub(super) offset: u64,
    pub(super) replicas: u32,
    /// Arrivals that complete a phase.
    pub(super) arrivals: u32,
    /// The rings whose slots the statement waits for, each with the first replica's word for the ring index; those of
    /// the other replicas follow.
    pub(super) places: Vec<(usize, u64)>,
    /// Parity of the phase to wait for.
    pub(super) parity: Option<Reg>,
}

/// A loop that takes its tile numbers from a counter.
#[derive(Clone, Copy)]
pub(super) struct Draws {
    pub(super) next: Next,
    /// Where the loop ends.
    pub(super) end: Int,
    /// The tile number that this iteration took from the counter or read from a slot.
    pub(super) tile_number: Option<Reg>,
}

/// The loads of a role that need not wait.
#[derive(Clone)]
pub(super) struct EarlyLoads {
    /// The copies.
    pub(super) copies: Vec<Stmt>,
    /// The `publish` that ends a step.
    pub(super) ends_step: Stmt,
    /// Slots of the ring with the fewest.
    pub(super) slots: i64,
    /// The register with the number of steps whose loads were issued in front of the wait, and whose slots are not published yet.
    pub(super) steps: Reg,
}

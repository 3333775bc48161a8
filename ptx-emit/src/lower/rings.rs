//! Rings of slots in shared memory, and where each side of one stands.

use super::ints::Int;
use crate::inst::Reg;
use tilec_ir::entities::Value;
use tilec_ir::handover::Fill;
use tilec_ir::kernel::Next;

/// Where a ring stands: bytes of its current slot's stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Position {
    /// Known: in front of the main loop.
    Slot(u64),
    /// In a register, in bytes.
    Reg(Reg),
}

/// Channels operated together.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) channels: Vec<Value>,
    pub(super) slots: u64,
    /// Bytes from slot to slot.
    pub(super) stride: u64,
    pub(super) put: Position,
    /// The slot waited for last. A `release` moves it on to the one that is waited for next; where several are held, the `wait` does.
    pub(super) get: Position,
    pub(super) several: bool,
    /// Where several slots are held: the `full` barrier of the oldest, which is released next.
    pub(super) oldest: Option<Reg>,
    /// Its barriers, if roles hand its slots over.
    pub(super) barriers: Option<Barriers>,
    /// Who fills it, where roles do.
    pub(super) fill: Fill,
    /// Bytes that TMA loads bring to the slot that is being filled.
    pub(super) filling: u64,
    /// Whether threads have read the slot that is waited for themselves. wgmma has read its slot when it is awaited.
    pub(super) read: bool,
    /// Where producer and consumer stand, in their roles.
    pub(super) put_turn: Option<Turn>,
    /// Whether its last fills have been awaited, after all others.
    pub(super) drained: bool,
    pub(super) get_turn: Option<Turn>,
}

/// A buffer's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) offset: u64,
    pub(super) ring: Option<usize>,
}

/// Where a ring's barriers are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Barriers {
    /// The first `full` barrier; the `empty` ones follow.
    pub(super) offset: u64,
    /// Arrivals that complete a phase of a `full` barrier.
    pub(super) full: u32,
    /// Arrivals that complete a phase of an `empty` barrier.
    pub(super) empty: u32,
}

/// Where one side of a ring stands, beside its slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Turn {
    /// Address of the slot's `full` barrier.
    pub(super) barrier: Reg,
    /// Parity of the phase to wait for.
    pub(super) parity: Reg,
}

impl Ring {
    /// The barriers of a ring of which roles hand over slots.
    pub(super) fn known_barriers(&self) -> Barriers {
        self.barriers.unwrap_or_else(|| panic!("bug: a ring between roles without barriers"))
    }

    /// Where a side stands that operates the ring: its role has begun.
    pub(super) fn known_turn(&self, turn: Option<Turn>) -> Turn {
        turn.unwrap_or_else(|| panic!("bug: a ring is operated where nobody knows its place"))
    }
}

/// What replicas need to do an `ordered` statement alternately.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// The barrier of the first replica; those of the others follow.
    pub(super) offset: u64,
    pub(super) replicas: u32,
    /// Arrivals that complete a phase.
    pub(super) arrivals: u32,
    /// The rings that the statement empties, each with the first replica's word for its place; those of the others follow.
    pub(super) places: Vec<(usize, u64)>,
    /// Parity of the phase to wait for.
    pub(super) parity: Option<Reg>,
}

/// A loop that draws.
#[derive(Clone, Copy)]
pub(super) struct Draws {
    pub(super) next: Next,
    /// Where the loop ends.
    pub(super) end: Int,
    /// What was drawn in this iteration, or read.
    pub(super) drawn: Option<Reg>,
}

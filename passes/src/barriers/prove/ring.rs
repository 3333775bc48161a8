//! The abstract state of a buffer and of a channel (a ring of slots), and the precondition of each operation.

use std::collections::BTreeMap;
use tilec_ir::atomics::Combining;

/// Kinds of faults.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FaultKind {
    /// Read in the epoch of a write.
    ReadAfterWrite,
    /// Written in the epoch of a read.
    WriteAfterRead,
    /// Written in the epoch of a write.
    WriteAfterWrite,
    /// Read before anything is written.
    Unwritten,
    /// Read while asynchronous copies into it may be on their way.
    InFlight,
    /// Written while asynchronous copies into it may be on their way.
    WrittenInFlight,
    /// Its memory is reused while asynchronous copies into it may be on their way.
    TakenInFlight,
    /// Used on a path on which it is not allocated.
    NotAllocated,
    /// Acquired while a slot is acquired.
    AcquiredTwice,
    /// Acquired while no slot is free.
    NoneFree,
    /// Published or filled without an acquired slot.
    NotAcquired,
    /// Waited for while nothing is published.
    NonePublished,
    /// Released or read without a waited slot.
    NotWaited,
    /// Acquired, and then the kernel ends.
    NeverPublished,
    /// Written while a TMA store may be reading it.
    WrittenWhileStored,
    /// Its memory is reused while a TMA store may be reading it.
    TakenWhileStored,
    /// Stored, and then the kernel or role ends.
    NeverAwaited,
    /// A tensor that is loaded from, or stored to in another way, after a TMA store.
    UsedAfterStore,
    /// A TMA store to what was stored to in another way.
    StoredTwice,
}

/// A buffer or a slot.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Cell {
    /// It holds something.
    pub(super) filled: bool,
    /// Written in this epoch.
    pub(super) written: bool,
    /// Read in this epoch.
    pub(super) read: bool,
    /// Changed in this epoch by atomic operations, all by this operator.
    pub(super) combined: Option<Combining>,
    /// An asynchronous copy into it may be on its way.
    pub(super) flying: bool,
}

impl Cell {
    /// Adds the accesses of this epoch to `earlier`, which had the same memory.
    pub(super) fn follow(&mut self, earlier: Cell) {
        // To other contents of the memory, an atomic operation is a write.
        self.written |= earlier.written || earlier.combined.is_some();
        self.read |= earlier.read;
    }

    pub(super) fn pass_barrier(&mut self) {
        self.written = false;
        self.read = false;
        self.combined = None;
    }
}

/// A channel: slots `head - live .. head` (modulo `slots`) are in use, oldest first. The first `waited` of them were
/// waited for; the last one is being filled if `acquired`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Ring {
    slots: u32,
    /// The slot that the next `acquire` takes.
    pub(super) head: u32,
    live: u32,
    waited: u32,
    acquired: bool,
    /// Slots that have been accessed.
    pub(super) cells: BTreeMap<u32, Cell>,
}

impl Ring {
    pub(super) fn new(slots: u32) -> Ring {
        Ring { slots, head: 0, live: 0, waited: 0, acquired: false, cells: BTreeMap::new() }
    }

    /// Resets the ring for a new allocation; accesses of this epoch to its memory remain.
    pub(super) fn restart(&mut self) {
        let mut cells = std::mem::take(&mut self.cells);
        cells.values_mut().for_each(|c| c.filled = false);
        *self = Ring { cells, ..Ring::new(self.slots) };
    }

    pub(super) fn pass_barrier(&mut self) {
        self.cells.values_mut().for_each(Cell::pass_barrier);
    }

    /// The slot being filled.
    pub(super) fn filling_slot(&self) -> Option<u32> {
        self.acquired.then(|| self.head.checked_sub(1).unwrap_or(self.slots - 1))
    }

    /// The slot waited for last.
    pub(super) fn get_slot(&self) -> Option<u32> {
        let behind = self.live.checked_sub(self.waited.checked_sub(1)?)?;
        Some(if self.head >= behind { self.head - behind } else { self.slots - (behind - self.head) })
    }

    pub(super) fn acquire(&mut self) -> Result<(), FaultKind> {
        if self.acquired {
            return Err(FaultKind::AcquiredTwice);
        }
        if self.live == self.slots {
            return Err(FaultKind::NoneFree);
        }
        if let Some(cell) = self.cells.get_mut(&self.head) {
            cell.filled = false;
        }
        self.head = if self.head + 1 == self.slots { 0 } else { self.head + 1 };
        self.live += 1;
        self.acquired = true;
        Ok(())
    }

    pub(super) fn publish(&mut self) -> Result<(), FaultKind> {
        if !std::mem::take(&mut self.acquired) {
            return Err(FaultKind::NotAcquired);
        }
        Ok(())
    }

    pub(super) fn wait(&mut self) -> Result<(), FaultKind> {
        if self.live - u32::from(self.acquired) == self.waited {
            return Err(FaultKind::NonePublished);
        }
        self.waited += 1;
        Ok(())
    }

    pub(super) fn release(&mut self) -> Result<(), FaultKind> {
        if self.waited == 0 {
            return Err(FaultKind::NotWaited);
        }
        self.waited -= 1;
        self.live -= 1;
        Ok(())
    }
}

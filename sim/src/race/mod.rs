//! Data races by happens-before (oracle A).
//!
//! Every agent of a block has a clock, and knows of every other up to which clock that one's accesses are ordered before its
//! own ([`clocks`]). Barriers, mbarriers and ordered atomics hand such knowledge on. Every word remembers its last writer and
//! the readers since ([`cell`]); an access that is not ordered after them is a race. A word that someone accesses in parts is
//! remembered byte by byte until it is next written as a whole.
//!
//! An asynchronous copy is an access of its own: what it writes is ordered before nothing until its thread has waited, or
//! its mbarrier has. Then it counts as that thread's write at that moment, or as a write of the warp's copy engine, which
//! the waiters of the mbarrier know of.
//!
//! What a strong write pushes out of a word is kept beside it ([`hidden`]).
//!
//! Strong accesses that count on lanes in step are told from those that do not ([`lockstep`]).
//!
//! Strong accesses to words that stand as flags publish and learn ([`flags`] within the block, [`meet`] between blocks).
//!
//! Global memory is treated alike within a block ([`global`]), whose clocks say nothing about other blocks; what these do is
//! compared when all have ended ([`grid`]). The source of an asynchronous copy is read by the engine, until its thread has
//! waited.
//!
//! What works beside the warps has agents of its own ([`proxy`]); a block of a cluster ends only when others are done with it
//! ([`exits`]).
//!
//! For the executed path the verdict does not depend on the order in which the scheduler ran the warps.

mod cell;
mod clocks;
mod exits;
mod flags;
mod front;
mod global;
mod grid;
mod hidden;
mod lockstep;
mod meet;
pub(crate) mod proxy;
mod shared;
mod summary;
mod units;

use cell::Sets;
use clocks::Clocks;
pub(crate) use clocks::Scope;
use flags::Flags;
pub(crate) use flags::Touch;
pub(crate) use front::Known;
use global::Global;
pub(crate) use grid::{Grid, Side};
pub(crate) use lockstep::Step as LockStep;
use lockstep::Steps;
use meet::Contacts;
pub(crate) use meet::Logs;
pub(crate) use proxy::{Offence, Slot, quarter};
use shared::Shared;

/// The other side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Whether it wrote.
    pub(crate) wrote: bool,
    /// Whether it is an asynchronous copy.
    pub(crate) copy: bool,
    /// Not unordered: one of the two takes the bytes for constants.
    pub(crate) constant: bool,
    /// Bytes from the start of the access at hand to the first that both touch.
    pub(crate) byte: usize,
}

impl Conflict {
    /// The same, found so many bytes behind the start of the access.
    pub(crate) fn behind(self, bytes: usize) -> Conflict {
        Conflict { byte: self.byte + bytes, ..self }
    }
}

/// Whether an access is part of the memory model's communication (PTX ISA 8.4, 8.6): atomic, volatile, relaxed or ordered. Two
/// such accesses are no race if the scope of each has the other's thread in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    #[default]
    Weak,
    /// Towards threads of the block.
    Block,
    /// Towards all threads.
    Wide,
}

impl Strength {
    #[inline(always)]
    pub(crate) fn is_strong(self) -> bool {
        self != Strength::Weak
    }
}

/// Who accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Number of the dynamic instruction.
    pub(crate) seq: u32,
    /// Strong accesses are never in a race with their like.
    pub(crate) strength: Strength,
    /// An asynchronous copy, on behalf of this thread.
    pub(crate) copy: bool,
}

/// Clocks and shadow memory of a block.
#[derive(Debug)]
pub(crate) struct Races {
    pub(crate) clocks: Clocks,
    shared: Shared,
    sets: Sets,
    /// What was published through words that are accessed by strong accesses.
    flags: Flags,
    global: Global,
    /// Lanes of each warp that have read past the first-level cache since their last barrier.
    pub(crate) uncached: Vec<u32>,
    /// What this block tells others and hears of them.
    contacts: Contacts,
    steps: Steps,
}

impl Races {
    /// `beside`: for how many agents that work beside the warps there is room, other than copies of their own.
    pub(crate) fn new(warps: usize, shared_bytes: usize, beside: usize) -> Races {
        Races {
            clocks: Clocks::new(warps, beside),
            shared: Shared::new(shared_bytes),
            sets: Sets::new(warps, beside),
            flags: Flags::default(),
            global: Global::default(),
            uncached: vec![0; warps],
            contacts: Contacts::default(),
            steps: Steps::new(warps),
        }
    }

    /// The common case of [`Races::read`] of whole words: whether it was that and is done.
    #[inline(always)]
    pub(crate) fn read_words(&mut self, who: Who, at: usize, words: usize) -> bool {
        self.shared.read_words(&self.clocks, &mut self.sets, who, at, words)
    }

    /// The common case of [`Races::write`] of whole words; if it was not, the write is to be checked again.
    #[inline(always)]
    pub(crate) fn write_words(&mut self, who: Who, at: usize, words: usize) -> bool {
        self.shared.write_words(&self.clocks, who, at, words)
    }

    /// [`Races::read_words`] of four words on behalf of several lanes, `lanes[i]` of word `i`.
    pub(crate) fn read_row(&mut self, who: Who, at: usize, lanes: [u32; 4]) -> bool {
        self.shared.read_row(&self.clocks, &mut self.sets, who, at, lanes)
    }

    /// [`Races::read_words`] of 32 lanes, so many words each from `at` on; how many from the first on are done.
    #[inline(always)]
    pub(crate) fn read_line(&mut self, who: Who, at: usize, words: usize) -> usize {
        self.shared.read_line(&self.clocks, &mut self.sets, who, at, words)
    }

    /// [`Races::write_words`] of 32 lanes, likewise.
    #[inline(always)]
    pub(crate) fn write_line(&mut self, who: Who, at: usize, words: usize) -> usize {
        self.shared.write_line(&self.clocks, who, at, words)
    }

    /// A read of `n` bytes of shared memory at `at`, within one word.
    pub(crate) fn read(&mut self, who: Who, at: usize, n: usize) -> Result<(), Conflict> {
        self.shared.read(&self.clocks, &mut self.sets, who, at, n)
    }

    /// A write; `same` says that the bytes do not change by it.
    pub(crate) fn write(&mut self, who: Who, at: usize, n: usize, same: bool) -> Result<(), Conflict> {
        self.shared.write(&self.clocks, &mut self.sets, who, at, n, same)
    }

    /// A read of up to 16 bytes of global memory, aligned to their number; the conflict with its address.
    #[inline]
    pub(crate) fn read_global(&mut self, who: Who, address: u64, n: usize) -> Result<(), Conflict> {
        self.global.read(&self.clocks, &mut self.sets, who, address, n)
    }

    /// A write; `same` says that the bytes do not change by it.
    #[inline]
    pub(crate) fn write_global(&mut self, who: Who, address: u64, n: usize, same: bool) -> Result<(), Conflict> {
        self.global.write(&self.clocks, &mut self.sets, who, (address, n), same)
    }

    /// Before accesses to these addresses of global memory, which may lie far apart.
    pub(crate) fn look_ahead(&self, addresses: impl Iterator<Item = u64>) {
        self.global.look_ahead(addresses);
    }

    /// The moment of the strong accesses that follow, of [`Logs::moment`], and whether their threads see what was there.
    pub(crate) fn at_moment(&mut self, moment: u64, sees: bool) {
        self.global.moment = (moment, sees);
    }

    /// A read of these bytes of global memory as constants, after [`Races::read_global`].
    pub(crate) fn read_constant(&mut self, address: u64, n: usize) -> Result<(), Conflict> {
        self.global.read_constant(&self.sets, address, n)
    }

    /// A strong access of a thread of `block` to a flag in global memory, whose scope is more than the block, towards other
    /// blocks.
    pub(crate) fn touch_beyond(
        &mut self,
        logs: &mut Logs,
        (warp, lane, live): (usize, usize, u32),
        (block, address, touch): (u64, u64, Touch),
    ) {
        if touch != Touch::Store
            && let Some(number) = self.contacts.see(logs, block, address)
        {
            self.clocks.see_others(warp, 1 << lane, number);
        }
        if touch != Touch::Load {
            let by = ((warp * 32 + lane) as u32, self.clocks.changes(warp));
            let clocks = &self.clocks;
            self.contacts.write(logs, (block, address, touch), by, || clocks.published(warp, lane, live, true));
        }
    }

    /// Hands what this block did to global memory to the grid, when there is much of it, or at its end.
    #[inline]
    pub(crate) fn hand_in(&mut self, grid: Option<&Grid>, block: u64, end: bool) {
        if !end && !self.global.is_full() {
            return;
        }
        // What comes later in the block is not compared with it.
        self.global.forgot |= !end;
        if let Some(grid) = grid {
            grid.add(block, &self.global, &self.sets, &self.contacts, end);
        }
        self.global.clear();
    }

    /// Bytes of the host for what is remembered, about.
    pub(crate) fn host_bytes(&self) -> u64 {
        self.global.host_bytes()
    }

    /// Whether there was more to remember of global memory than there is room for.
    pub(crate) fn forgot(&self) -> bool {
        self.global.forgot
    }

    /// Takes bytes that belong to no variable out of the common cases.
    pub(crate) fn forbid(&mut self, start: usize, end: usize) {
        self.shared.forbid(&mut self.sets, start, end);
    }

    /// Takes a word out of the common cases: something other than a number is in it.
    pub(crate) fn set_apart(&mut self, at: usize) {
        self.shared.divide(&mut self.sets, at / 4);
    }

    /// The copy `seq` of this thread has landed, the thread having waited: from now on it is a write of the thread. Whoever
    /// touched the bytes meanwhile has been reported.
    pub(crate) fn land(&mut self, (warp, lane): (usize, u8), seq: u32, at: usize, n: usize) {
        let clock = self.clocks.now(warp);
        self.shared.each(at, n, |cell| {
            if cell.flying && (cell.write_seq, cell.write_lane) == (seq, lane) {
                (cell.flying, cell.write_clock) = (false, clock);
            }
        });
    }

    /// The copy has landed and nobody but its mbarrier knows: it is a write of the engine, at `clock`.
    pub(crate) fn land_unseen(&mut self, (warp, lane): (usize, u8), seq: u32, clock: u32, at: usize, n: usize) {
        let engine = self.clocks.engine(warp) as u16;
        self.shared.each(at, n, |cell| {
            if cell.flying && (cell.write_seq, cell.write_lane) == (seq, lane) {
                (cell.flying, cell.write_clock, cell.write_agent) = (false, clock, engine);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(warp: usize, lane: usize, pc: u32) -> Who {
        Who { warp, lane, pc, seq: pc, strength: Strength::Weak, copy: false }
    }

    fn barrier(r: &mut Races) {
        let mut all = Known::default();
        for w in 0..2 {
            r.clocks.release(w, u32::MAX, u32::MAX, &mut all);
        }
        for w in 0..2 {
            r.clocks.acquire(w, u32::MAX, u32::MAX, &all);
        }
    }

    #[test]
    fn a_barrier_orders_and_its_absence_does_not() {
        let mut r = Races::new(2, 64, 0);
        r.write(who(0, 3, 10), 8, 4, false).expect("first access");
        assert_eq!(
            r.read(who(1, 0, 11), 8, 4),
            Err(Conflict { warp: 0, lane: 3, pc: 10, wrote: true, copy: false, constant: false, byte: 0 })
        );
        barrier(&mut r);
        r.read(who(1, 0, 11), 8, 4).expect("ordered by the barrier");
        assert_eq!(
            r.write(who(0, 3, 12), 8, 4, false),
            Err(Conflict { warp: 1, lane: 0, pc: 11, wrote: false, copy: false, constant: false, byte: 0 })
        );
        barrier(&mut r);
        r.write(who(0, 3, 12), 8, 4, false).expect("ordered by the barrier");
    }

    #[test]
    fn every_one_of_many_readers_counts() {
        for late in 0..3 {
            let mut r = Races::new(4, 64, 0);
            for w in 0..3 {
                r.read(who(w, 1, 5), 0, 4).expect("reads never conflict");
            }
            // The writer hears from all readers but one.
            let mut known = Known::default();
            for w in (0..3).filter(|w| *w != late) {
                r.clocks.release(w, u32::MAX, u32::MAX, &mut known);
            }
            r.clocks.acquire(3, u32::MAX, u32::MAX, &known);
            let conflict = r.write(who(3, 0, 6), 0, 4, false).expect_err("one reader is unordered");
            assert_eq!(conflict.warp, late);
        }
    }

    #[test]
    fn lanes_of_a_warp_are_unordered_within_an_epoch() {
        let mut r = Races::new(1, 64, 0);
        r.write(who(0, 0, 1), 0, 4, false).expect("first access");
        assert!(r.read(who(0, 1, 2), 0, 4).is_err());
        r.clocks.synchronise(0, u32::MAX, u32::MAX);
        r.read(who(0, 1, 2), 0, 4).expect("the warp synchronised");
        r.read(who(0, 2, 2), 0, 4).expect("reads never conflict");
        assert!(r.write(who(0, 1, 3), 0, 4, false).is_err());
    }

    #[test]
    fn bytes_of_a_word_are_apart() {
        let mut r = Races::new(2, 64, 0);
        r.write(who(0, 0, 1), 0, 2, false).expect("first access");
        r.write(who(1, 0, 2), 2, 2, false).expect("other half");
        assert!(r.write(who(1, 0, 3), 1, 1, false).is_err());
        assert!(r.read(who(1, 0, 4), 0, 4).is_err());
        barrier(&mut r);
        r.read(who(1, 0, 4), 0, 4).expect("ordered by the barrier");
        assert!(r.write(who(0, 0, 5), 0, 4, false).is_err());
        barrier(&mut r);
        r.write(who(0, 0, 5), 0, 4, false).expect("ordered by the barrier");
        assert!(r.read_words(who(0, 0, 5), 0, 1), "remembered as a whole again");
    }

    #[test]
    fn one_instruction_may_write_one_value_twice() {
        let mut r = Races::new(1, 64, 0);
        r.write(who(0, 0, 1), 0, 4, false).expect("first access");
        r.write(who(0, 1, 1), 0, 4, true).expect("same value, same instruction");
        r.write(Who { seq: 9, ..who(0, 1, 1) }, 0, 4, true).expect("apart from the others");
        assert!(r.write(who(0, 2, 1), 0, 4, false).is_err());
        assert!(r.write(who(0, 2, 2), 0, 4, true).is_err(), "another instruction");
        let copy = |lane, pc| Who { copy: true, ..who(0, lane, pc) };
        r.write(copy(1, 3), 4, 4, false).expect("first access");
        assert!(r.write(who(0, 2, 3), 4, 4, true).is_err(), "while it is on its way");
        r.write(copy(2, 3), 4, 4, true).expect("a copy of the same");
    }
}

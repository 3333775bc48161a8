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
//! Global memory is treated alike within a block ([`global`]), whose clocks say nothing about other blocks; what these do is
//! compared when all have ended ([`grid`]). The source of an asynchronous copy is read by the engine, until its thread has
//! waited.
//!
//! For the executed path the verdict does not depend on the order in which the scheduler ran the warps.

mod cell;
mod clocks;
mod global;
mod grid;
mod shared;

use std::collections::BTreeMap;

use cell::Sets;
use clocks::Clocks;
pub(crate) use clocks::{Known, engine};
use global::Global;
use grid::Meeting;
pub(crate) use grid::{Grid, Side};
use shared::Shared;

/// Words of global memory that threads of a block may use as flags, each by itself.
const MAX_FLAGS: usize = 1 << 12;

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
}

/// Who accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Number of the dynamic instruction: lanes of one may write the same value to one place.
    pub(crate) seq: u32,
    /// Atomic, volatile or ordered: never in a race with its like.
    pub(crate) strong: bool,
    /// An asynchronous copy, on behalf of this thread.
    pub(crate) copy: bool,
}

/// Clocks and shadow memory of a block.
#[derive(Debug)]
pub(crate) struct Races {
    pub(crate) clocks: Clocks,
    shared: Shared,
    sets: Sets,
    /// What was published through words that are accessed atomically.
    published: BTreeMap<u32, Known>,
    global: Global,
    published_globally: BTreeMap<u64, Known>,
    /// What ended each section of this block but the last.
    meetings: Vec<Meeting>,
    /// Which warps have executed a fence that reaches other blocks: what they write atomically publishes.
    fenced: Vec<bool>,
    /// When the block last read something atomically that no fence has followed yet.
    seen: Option<u64>,
    /// What lanes of each warp read atomically, to be known to them after a fence (PTX ISA, acquire pattern).
    unfenced: Vec<(u32, Known)>,
}

impl Races {
    pub(crate) fn new(warps: usize, shared_bytes: usize) -> Races {
        Races {
            clocks: Clocks::new(warps),
            shared: Shared::new(shared_bytes),
            sets: Sets::new(warps.max(1)),
            published: BTreeMap::new(),
            global: Global::default(),
            published_globally: BTreeMap::new(),
            meetings: Vec::new(),
            fenced: vec![false; warps],
            seen: None,
            unfenced: vec![(0, Known::default()); warps],
        }
    }

    /// An atomic access of a lane to `word` that orders nothing by itself: a fence after it does.
    pub(crate) fn observe(&mut self, warp: usize, lane: usize, word: u32) {
        if let Some(known) = self.published.get(&word) {
            self.unfenced[warp].0 |= 1 << lane;
            self.unfenced[warp].1.join(known);
        }
    }

    /// As [`Races::observe`], of global memory.
    pub(crate) fn observe_globally(&mut self, warp: usize, lane: usize, address: u64) {
        for key in [address, u64::MAX] {
            if let Some(known) = self.published_globally.get(&key) {
                self.unfenced[warp].0 |= 1 << lane;
                self.unfenced[warp].1.join(known);
            }
        }
    }

    /// A fence of any scope by these lanes: they know what they have read atomically.
    pub(crate) fn fence_within(&mut self, warp: usize, lanes: u32, live: u32) {
        let (waiting, known) = &mut self.unfenced[warp];
        let now = *waiting & lanes;
        if now != 0 {
            self.clocks.acquire(warp, now, live, known);
            *waiting &= !lanes;
            if *waiting == 0 {
                *known = Known::default();
            }
        }
    }

    /// An ordered access of a lane to `word`: releases to and acquires from everyone who did so before.
    pub(crate) fn synchronise(&mut self, warp: usize, lane: usize, live: u32, word: u32) {
        let mut known = self.published.remove(&word).unwrap_or_default();
        self.clocks.acquire(warp, 1 << lane, live, &known);
        self.clocks.release(warp, 1 << lane, live, &mut known);
        self.published.insert(word, known);
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

    /// As [`Races::synchronise`], by a word of global memory; within the block.
    pub(crate) fn synchronise_globally(&mut self, warp: usize, lane: usize, live: u32, address: u64) {
        // Flags are few; of very many words all that come later are one.
        let key = match self.published_globally.len() < MAX_FLAGS || self.published_globally.contains_key(&address) {
            true => address,
            false => u64::MAX,
        };
        if let Some(rest) = self.published_globally.get(&u64::MAX) {
            self.clocks.acquire(warp, 1 << lane, live, rest);
        }
        let mut known = self.published_globally.remove(&key).unwrap_or_default();
        self.clocks.acquire(warp, 1 << lane, live, &known);
        self.clocks.release(warp, 1 << lane, live, &mut known);
        self.published_globally.insert(key, known);
    }

    /// Before an atomic, volatile or ordered write of `warp` to global memory. It shows other blocks what this one did if it
    /// releases itself, or if the warp has executed a fence.
    pub(crate) fn publish(&mut self, warp: usize, releases: bool, grid: &Grid) {
        if releases || self.fenced[warp] {
            self.meet(Meeting::Published(grid.moment()));
        }
    }

    /// After an atomic, volatile or ordered read of global memory: what others published before is known, at once if the
    /// read acquires itself, else after the next fence of the block.
    pub(crate) fn learn(&mut self, acquires: bool, grid: &Grid) {
        let now = grid.moment();
        if acquires {
            self.meet(Meeting::Learnt(now));
        } else {
            self.seen = Some(now);
        }
    }

    /// A fence whose scope is more than the block.
    pub(crate) fn fence(&mut self, warp: usize) {
        self.fenced[warp] = true;
        if let Some(moment) = self.seen.take() {
            self.meet(Meeting::Learnt(moment));
        }
    }

    fn meet(&mut self, meeting: Meeting) {
        if self.global.section < u8::MAX {
            self.meetings.push(meeting);
            self.global.section += 1;
        }
    }

    /// Hands what this block did to global memory to the grid, when there is much of it, or at its end.
    #[inline]
    pub(crate) fn hand_in(&mut self, grid: Option<&Grid>, block: u64, end: bool) {
        if !end && !self.global.is_full() {
            return;
        }
        if let Some(grid) = grid {
            grid.add(block, &self.global.pages, &mut self.sets, &self.meetings);
        }
        self.global.clear();
    }

    /// Takes a word out of the common cases: something other than a number is in it.
    pub(crate) fn set_apart(&mut self, at: usize) {
        self.shared.divide(&mut self.sets, at / 4);
    }

    /// The copy `seq` of this thread has landed, the thread having waited: from now on it is a write of the thread. Whoever
    /// touched the bytes meanwhile has been reported.
    pub(crate) fn land(&mut self, warp: usize, seq: u32, at: usize, n: usize) {
        let clock = self.clocks.now(warp);
        self.shared.each(at, n, |cell| {
            if cell.flying && cell.write_seq == seq {
                (cell.flying, cell.write_clock) = (false, clock);
            }
        });
    }

    /// The copy has landed and nobody but its mbarrier knows: it is a write of the engine, at `clock`.
    pub(crate) fn land_unseen(&mut self, warp: usize, seq: u32, clock: u32, at: usize, n: usize) {
        self.shared.each(at, n, |cell| {
            if cell.flying && cell.write_seq == seq {
                (cell.flying, cell.write_clock, cell.write_agent) = (false, clock, clocks::engine(warp) as u8);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(warp: usize, lane: usize, pc: u32) -> Who {
        Who { warp, lane, pc, seq: pc, strong: false, copy: false }
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
        let mut r = Races::new(2, 64);
        r.write(who(0, 3, 10), 8, 4, false).expect("first access");
        assert_eq!(r.read(who(1, 0, 11), 8, 4), Err(Conflict { warp: 0, lane: 3, pc: 10, wrote: true, copy: false }));
        barrier(&mut r);
        r.read(who(1, 0, 11), 8, 4).expect("ordered by the barrier");
        assert_eq!(
            r.write(who(0, 3, 12), 8, 4, false),
            Err(Conflict { warp: 1, lane: 0, pc: 11, wrote: false, copy: false })
        );
        barrier(&mut r);
        r.write(who(0, 3, 12), 8, 4, false).expect("ordered by the barrier");
    }

    #[test]
    fn every_one_of_many_readers_counts() {
        for late in 0..3 {
            let mut r = Races::new(4, 64);
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
        let mut r = Races::new(1, 64);
        r.write(who(0, 0, 1), 0, 4, false).expect("first access");
        assert!(r.read(who(0, 1, 2), 0, 4).is_err());
        r.clocks.synchronise(0, u32::MAX, u32::MAX);
        r.read(who(0, 1, 2), 0, 4).expect("the warp synchronised");
        r.read(who(0, 2, 2), 0, 4).expect("reads never conflict");
        assert!(r.write(who(0, 1, 3), 0, 4, false).is_err());
    }

    #[test]
    fn bytes_of_a_word_are_apart() {
        let mut r = Races::new(2, 64);
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
        let mut r = Races::new(1, 64);
        r.write(who(0, 0, 1), 0, 4, false).expect("first access");
        r.write(who(0, 1, 1), 0, 4, true).expect("same value, same instruction");
        assert!(r.write(who(0, 2, 1), 0, 4, false).is_err());
    }
}

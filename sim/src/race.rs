//! Data races on shared memory, by happens-before (oracle A).
//!
//! Each warp has a vector clock. Barriers join the clocks of their participants; a barrier also starts a new epoch of the
//! warp, in which its lanes are not ordered with each other. Every word of shared memory remembers its last writer and the
//! readers since, as epochs (the FastTrack rules); an access that the clocks do not order after them is a race. A word that
//! someone accesses in parts is remembered byte by byte until it is next written as a whole.
//!
//! For the executed path the verdict does not depend on the order in which the scheduler ran the warps. `bar.warp.sync` of
//! part of a warp counts as one of the whole warp: it can hide a race between lanes, never invent one. A further agent (a
//! copy engine) is a further index into the clocks.

use std::collections::BTreeMap;

const NOBODY: u8 = 0xFF;
const MANY: u8 = 0xFE;

/// What is known of one word or byte.
#[derive(Clone, Copy, Debug)]
struct Cell {
    write_clock: u32,
    write_pc: u32,
    write_seq: u32,
    /// Epoch of the only reader, or index into [`Races::many`].
    read_clock: u32,
    read_pc: u32,
    /// Lanes of the only reading warp.
    read_lanes: u32,
    write_warp: u8,
    write_lane: u8,
    write_strong: bool,
    /// By an asynchronous copy that its thread has not waited for: ordered before nothing.
    write_copy: bool,
    read_warp: u8,
    /// Of a word: look at its bytes instead.
    split: bool,
}

const FRESH: Cell = Cell {
    write_clock: 0,
    write_pc: 0,
    write_seq: 0,
    read_clock: 0,
    read_pc: 0,
    read_lanes: 0,
    write_warp: NOBODY,
    write_lane: 0,
    write_strong: false,
    write_copy: false,
    read_warp: NOBODY,
    split: false,
};

#[derive(Clone, Copy, Debug, Default)]
struct Read {
    clock: u32,
    pc: u32,
    lanes: u32,
}

/// The other side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) pc: u32,
    /// Whether it wrote.
    pub(crate) wrote: bool,
    /// Whether it is an asynchronous copy in flight.
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

/// See [`Races::limits`].
pub(crate) struct Limits {
    before: [u32; 32],
    now: u32,
}

/// Clocks and shadow memory of a block.
#[derive(Debug)]
pub(crate) struct Races {
    agents: usize,
    /// `clocks[w * agents + v]`: what `w` knows of `v`.
    clocks: Vec<u32>,
    words: Vec<Cell>,
    /// Four cells for each word, once one was accessed in parts.
    bytes: Vec<Cell>,
    /// Readers of cells with more than one reading warp, `agents` to a set.
    many: Vec<Read>,
    free: Vec<u32>,
    /// Clocks published through words that are accessed atomically.
    published: BTreeMap<u32, Vec<u32>>,
}

impl Races {
    pub(crate) fn new(warps: usize, shared_bytes: usize) -> Races {
        let n = shared_bytes.div_ceil(4);
        let mut clocks = vec![0; warps * warps];
        for w in 0..warps {
            clocks[w * warps + w] = 1;
        }
        Races {
            agents: warps,
            clocks,
            words: vec![FRESH; n],
            bytes: Vec::new(),
            many: Vec::new(),
            free: Vec::new(),
            published: BTreeMap::new(),
        }
    }

    fn knows(&self, who: usize, of: usize) -> u32 {
        self.clocks[who * self.agents + of]
    }

    /// What `warp` knows, to be joined by those who wait for it.
    pub(crate) fn release(&self, warp: usize, into: &mut Vec<u32>) {
        into.resize(self.agents, 0);
        let row = &self.clocks[warp * self.agents..(warp + 1) * self.agents];
        for (a, b) in into.iter_mut().zip(row) {
            *a = (*a).max(*b);
        }
    }

    /// `warp` learns what was released.
    pub(crate) fn acquire(&mut self, warp: usize, from: &[u32]) {
        let row = &mut self.clocks[warp * self.agents..(warp + 1) * self.agents];
        for (a, b) in row.iter_mut().zip(from) {
            *a = (*a).max(*b);
        }
    }

    /// Starts a new epoch of `warp`: what its lanes did before is ordered before what they do now.
    pub(crate) fn tick(&mut self, warp: usize) {
        let clock = &mut self.clocks[warp * self.agents + warp];
        *clock = clock.saturating_add(1);
    }

    /// An ordered access to `word`: releases to and acquires from everyone who did so before.
    pub(crate) fn synchronise(&mut self, warp: usize, word: u32) {
        let mut known = self.published.remove(&word).unwrap_or_default();
        self.acquire(warp, &known);
        self.release(warp, &mut known);
        self.published.insert(word, known);
        self.tick(warp);
    }

    /// What `warp` may rely on: up to which clock of each warp other lanes' accesses are ordered before it.
    pub(crate) fn limits(&self, warp: usize) -> Limits {
        let mut before = [0; 32];
        let row = &self.clocks[warp * self.agents..(warp + 1) * self.agents];
        before[..row.len()].copy_from_slice(row);
        let now = before[warp];
        before[warp] = now - 1;
        Limits { before, now }
    }

    /// The common case of [`Races::read`] of whole words: whether it was that and is done.
    #[inline(always)]
    pub(crate) fn read_words(&mut self, limits: &Limits, who: Who, at: usize, words: usize) -> bool {
        let mine = who.warp as u8;
        let bit = 1 << who.lane;
        let Some(cells) = self.words.get_mut(at / 4..at / 4 + words) else { return false };
        for cell in cells {
            let writer = cell.write_warp;
            let after_write = writer == NOBODY
                || cell.write_clock <= limits.before[usize::from(writer & 31)]
                || (writer == mine && usize::from(cell.write_lane) == who.lane);
            if !after_write || cell.write_copy || cell.split {
                return false;
            }
            if cell.read_warp == mine && cell.read_clock == limits.now {
                cell.read_lanes |= bit;
                cell.read_pc = who.pc;
            } else if cell.read_warp == NOBODY
                || (cell.read_warp < 32 && cell.read_clock <= limits.before[usize::from(cell.read_warp)])
            {
                (cell.read_warp, cell.read_clock, cell.read_pc, cell.read_lanes) = (mine, limits.now, who.pc, bit);
            } else if cell.read_warp == MANY {
                let Some(read) = self.many.get_mut(cell.read_clock as usize * self.agents + who.warp) else {
                    return false;
                };
                read.lanes = if read.clock == limits.now { read.lanes | bit } else { bit };
                (read.clock, read.pc) = (limits.now, who.pc);
            } else {
                return false;
            }
        }
        true
    }

    /// The common case of [`Races::write`] of whole words. It may have recorded some of them when it was not: the write
    /// is then checked again, by the same thread in the same instruction.
    #[inline(always)]
    pub(crate) fn write_words(&mut self, limits: &Limits, who: Who, at: usize, words: usize) -> bool {
        let mine = who.warp as u8;
        let bit = 1 << who.lane;
        let Some(cells) = self.words.get_mut(at / 4..at / 4 + words) else { return false };
        for cell in cells {
            let writer = cell.write_warp;
            let after_write = writer == NOBODY
                || cell.write_clock <= limits.before[usize::from(writer & 31)]
                || (writer == mine && usize::from(cell.write_lane) == who.lane);
            let after_read = cell.read_warp == NOBODY
                || (cell.read_warp < 32 && cell.read_clock <= limits.before[usize::from(cell.read_warp)])
                || (cell.read_warp == mine && cell.read_lanes == bit);
            if !after_write || !after_read || cell.write_copy || cell.split {
                return false;
            }
            *cell = Cell {
                write_clock: limits.now,
                write_pc: who.pc,
                write_seq: who.seq,
                write_warp: mine,
                write_lane: who.lane as u8,
                write_strong: who.strong,
                write_copy: who.copy,
                ..FRESH
            };
        }
        true
    }

    /// A read of `n` bytes at `at`, within one word.
    pub(crate) fn read(&mut self, who: Who, at: usize, n: usize) -> Result<(), Conflict> {
        let word = at / 4;
        if n == 4 && !self.words[word].split {
            let mut cell = self.words[word];
            let result = self.read_cell(&mut cell, who);
            self.words[word] = cell;
            return result;
        }
        self.divide(word);
        for byte in at..at + n {
            let mut cell = self.bytes[byte];
            let result = self.read_cell(&mut cell, who);
            self.bytes[byte] = cell;
            result?;
        }
        Ok(())
    }

    /// A write; `same` says that the bytes do not change by it.
    pub(crate) fn write(&mut self, who: Who, at: usize, n: usize, same: bool) -> Result<(), Conflict> {
        let word = at / 4;
        if n == 4 && !self.words[word].split {
            let mut cell = self.words[word];
            let result = self.write_cell(&mut cell, who, same);
            self.words[word] = cell;
            return result;
        }
        self.divide(word);
        for byte in at..at + n {
            let mut cell = self.bytes[byte];
            let result = self.write_cell(&mut cell, who, same);
            self.bytes[byte] = cell;
            result?;
        }
        if n == 4 {
            // Written as a whole: the four bytes have one history again.
            self.words[word] = self.bytes[at];
        }
        Ok(())
    }

    /// A copy has landed, its thread having waited: from now on it is a write of that thread. Whoever touched the bytes
    /// meanwhile has been reported.
    pub(crate) fn land(&mut self, who: Who, at: usize, n: usize) {
        let clock = self.knows(who.warp, who.warp);
        let settle = |cell: &mut Cell| {
            if cell.write_copy {
                (cell.write_copy, cell.write_clock, cell.write_seq) = (false, clock, who.seq);
            }
        };
        for word in at / 4..(at + n).div_ceil(4) {
            settle(&mut self.words[word]);
            if self.words[word].split {
                self.bytes[word * 4..word * 4 + 4].iter_mut().for_each(settle);
            }
        }
    }

    fn divide(&mut self, word: usize) {
        if self.words[word].split {
            return;
        }
        if self.bytes.is_empty() {
            self.bytes = vec![FRESH; self.words.len() * 4];
        }
        let cell = self.words[word];
        for byte in word * 4..word * 4 + 4 {
            self.bytes[byte] = cell;
            if cell.read_warp == MANY {
                // Each byte owns its set of readers.
                let set = self.take_set();
                let (from, to) = (cell.read_clock as usize * self.agents, set as usize * self.agents);
                self.many.copy_within(from..from + self.agents, to);
                self.bytes[byte].read_clock = set;
            }
        }
        if cell.read_warp == MANY {
            self.free.push(cell.read_clock);
        }
        self.words[word].split = true;
    }

    fn take_set(&mut self) -> u32 {
        let set = self.free.pop().unwrap_or_else(|| {
            let n = self.many.len() / self.agents;
            self.many.resize(self.many.len() + self.agents, Read::default());
            u32::try_from(n).unwrap_or(u32::MAX)
        });
        let start = set as usize * self.agents;
        self.many[start..start + self.agents].fill(Read::default());
        set
    }

    /// Whether the last write of `cell` is not ordered before `who`.
    fn unordered_write(&self, cell: &Cell, who: Who) -> Option<Conflict> {
        if cell.write_warp == NOBODY || (cell.write_strong && who.strong) {
            return None;
        }
        let writer = usize::from(cell.write_warp);
        let ordered = if cell.write_copy {
            false
        } else if writer == who.warp {
            usize::from(cell.write_lane) == who.lane || cell.write_clock < self.knows(who.warp, who.warp)
        } else {
            cell.write_clock <= self.knows(who.warp, writer)
        };
        let lane = usize::from(cell.write_lane);
        (!ordered).then_some(Conflict { warp: writer, lane, pc: cell.write_pc, wrote: true, copy: cell.write_copy })
    }

    fn read_cell(&mut self, cell: &mut Cell, who: Who) -> Result<(), Conflict> {
        let now = self.knows(who.warp, who.warp);
        let bit = 1 << who.lane;
        let mine = who.warp as u8;
        if let Some(conflict) = self.unordered_write(cell, who) {
            return Err(conflict);
        }
        if cell.read_warp == mine {
            cell.read_lanes = if cell.read_clock == now { cell.read_lanes | bit } else { bit };
            (cell.read_clock, cell.read_pc) = (now, who.pc);
        } else if cell.read_warp == MANY {
            let read = &mut self.many[cell.read_clock as usize * self.agents + who.warp];
            read.lanes = if read.clock == now { read.lanes | bit } else { bit };
            (read.clock, read.pc) = (now, who.pc);
        } else if cell.read_warp == NOBODY || cell.read_clock <= self.knows(who.warp, usize::from(cell.read_warp)) {
            // The earlier reader is ordered before this one, so whoever conflicts with it conflicts with this one too.
            (cell.read_warp, cell.read_clock, cell.read_pc, cell.read_lanes) = (mine, now, who.pc, bit);
        } else {
            let set = self.take_set();
            let start = set as usize * self.agents;
            let first = Read { clock: cell.read_clock, pc: cell.read_pc, lanes: cell.read_lanes };
            self.many[start + usize::from(cell.read_warp)] = first;
            self.many[start + who.warp] = Read { clock: now, pc: who.pc, lanes: bit };
            (cell.read_warp, cell.read_clock) = (MANY, set);
        }
        Ok(())
    }

    fn write_cell(&mut self, cell: &mut Cell, who: Who, same: bool) -> Result<(), Conflict> {
        let same_instruction =
            cell.write_seq == who.seq && usize::from(cell.write_warp) == who.warp && cell.write_pc == who.pc;
        if let Some(conflict) = self.unordered_write(cell, who)
            && !(same && same_instruction)
        {
            return Err(conflict);
        }
        match cell.read_warp {
            NOBODY => {}
            MANY => {
                let start = cell.read_clock as usize * self.agents;
                for v in 0..self.agents {
                    let read = self.many[start + v];
                    if let Some(conflict) = self.unordered_read(v, read, who) {
                        return Err(conflict);
                    }
                }
                self.free.push(cell.read_clock);
            }
            v => {
                let read = Read { clock: cell.read_clock, pc: cell.read_pc, lanes: cell.read_lanes };
                if let Some(conflict) = self.unordered_read(usize::from(v), read, who)
                    && !(who.strong && cell.write_strong)
                {
                    return Err(conflict);
                }
            }
        }
        *cell = Cell {
            write_clock: self.knows(who.warp, who.warp),
            write_pc: who.pc,
            write_seq: who.seq,
            write_warp: who.warp as u8,
            write_lane: who.lane as u8,
            write_strong: who.strong,
            write_copy: who.copy,
            ..FRESH
        };
        Ok(())
    }

    fn unordered_read(&self, reader: usize, read: Read, who: Who) -> Option<Conflict> {
        if read.lanes == 0 {
            return None;
        }
        let others = if reader == who.warp { read.lanes & !(1 << who.lane) } else { read.lanes };
        let ordered = if reader == who.warp {
            others == 0 || read.clock < self.knows(who.warp, who.warp)
        } else {
            read.clock <= self.knows(who.warp, reader)
        };
        let lane = others.trailing_zeros() as usize & 31;
        (!ordered).then_some(Conflict { warp: reader, lane, pc: read.pc, wrote: false, copy: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(warp: usize, lane: usize, pc: u32) -> Who {
        Who { warp, lane, pc, seq: pc, strong: false, copy: false }
    }

    fn barrier(r: &mut Races) {
        let mut all = Vec::new();
        for w in 0..r.agents {
            r.release(w, &mut all);
        }
        for w in 0..r.agents {
            r.acquire(w, &all);
            r.tick(w);
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
            let mut known = Vec::new();
            for w in (0..3).filter(|w| *w != late) {
                r.release(w, &mut known);
            }
            r.acquire(3, &known);
            let conflict = r.write(who(3, 0, 6), 0, 4, false).expect_err("one reader is unordered");
            assert_eq!(conflict.warp, late);
        }
    }

    #[test]
    fn lanes_of_a_warp_are_unordered_within_an_epoch() {
        let mut r = Races::new(1, 64);
        r.write(who(0, 0, 1), 0, 4, false).expect("first access");
        assert!(r.read(who(0, 1, 2), 0, 4).is_err());
        r.tick(0);
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
        assert!(!r.words[0].split);
    }

    #[test]
    fn one_instruction_may_write_one_value_twice() {
        let mut r = Races::new(1, 64);
        r.write(who(0, 0, 1), 0, 4, false).expect("first access");
        r.write(who(0, 1, 1), 0, 4, true).expect("same value, same instruction");
        assert!(r.write(who(0, 2, 1), 0, 4, false).is_err());
    }
}

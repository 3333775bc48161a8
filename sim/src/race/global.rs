//! Shadow of global memory for one block: cells for the words it accesses, in pages allocated at the first access.
//!
//! Accesses of one block are checked as those to shared memory are. Accesses of other blocks are not checked here: a
//! block passes its pages to [`super::grid`] when it ends, or when there are too many.

use std::collections::{BTreeMap, HashMap};

use super::access::{Conflict, Issuer, Strength};
use super::clocks::Clocks;
use super::replaced_accesses::Hidden;
use super::shadow_cell::{self, Cell, FRESH, NOBODY, Read, SPLIT, Sets};
use super::shared::{read_fast, write_fast};

/// Words of a page.
pub(super) const WORDS: usize = 256;
/// Pages that a block keeps: 8 MB of data. Older history is dropped, which can hide a race within the block.
const MAX_PAGES: usize = 1 << 13;
/// Accesses that are kept besides the last ones. Later ones are not compared with those of other blocks.
const MAX_OLDER: usize = 1 << 20;
/// Minimum size of the cache of recently found pages; it grows with the number of pages.
const RECENT: usize = 64;

#[derive(Debug)]
pub(super) struct Page {
    /// Address of the first byte divided by the page size.
    pub(super) number: u64,
    pub(super) words: Box<[Cell; WORDS]>,
    /// Four cells for each word; allocated when a word is accessed in parts.
    pub(super) bytes: Option<Box<[Cell]>>,
    /// For each word, how much its last writer and its last reader had acquired from other blocks; allocated at the
    /// first acquire.
    pub(super) foreign: Option<Box<[[u32; WORDS]; 2]>>,
    /// One bit for each word that was read as a constant (`ld.global.nc`).
    pub(super) constants: Option<Box<[u32; WORDS / 32]>>,
    /// Allocated at the first strong access with a scope beyond the block.
    pub(super) moments: Option<Box<[AccessTimes; WORDS]>>,
}

/// Moments of the accesses to a word, for writes and for reads; 0: none. Moments order the strong accesses of all
/// blocks with a scope beyond the block. They are stored per word, because scattered atomics are limited by memory
/// latency.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AccessTimes {
    /// Moment of the last strong access.
    strong: [u64; 2],
    /// Moment of the last strong access that returned the old value to the block.
    seen: u64,
    /// `seen` at the time of the last plain access.
    plain: [u64; 2],
}

/// An access of the block that must be compared with other blocks although a later one replaced it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplacedAccess {
    pub(super) pc: u32,
    pub(super) clock: u32,
    pub(super) agent: usize,
    pub(super) lane: usize,
    pub(super) strength: Strength,
    pub(super) foreign: u32,
    pub(super) wrote: bool,
    /// Its moment; for a plain access, the moment it follows.
    pub(super) moment: u64,
}

#[derive(Debug, Default)]
pub(super) struct Global {
    index: HashMap<u64, u32>,
    recent: Vec<(u64, u32)>,
    pub(super) pages: Vec<Page>,
    /// Number of pages with cells per byte, which are larger.
    divided: usize,
    /// First accesses of their kind, keyed by the address of a word or byte, its size, and the kind.
    pub(super) older: BTreeMap<(u64, usize, u8), ReplacedAccess>,
    /// Whether accesses were dropped, for checks within this block or with others.
    pub(super) forgot: bool,
    /// Moment of the current strong access, and whether its thread receives the old value; `red` does not.
    pub(super) moment: (u64, bool),
    hidden: Hidden,
}

impl Global {
    /// Whether the next access may exceed the page limit.
    pub(super) fn is_full(&self) -> bool {
        self.pages.len() + 4 * self.divided >= MAX_PAGES
    }

    /// Approximate host memory of the pages, in bytes.
    pub(super) fn host_bytes(&self) -> u64 {
        (self.pages.len() + 4 * self.divided) as u64 * (WORDS * size_of::<Cell>()) as u64
    }

    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.recent.clear();
        self.pages.clear();
        self.older.clear();
        self.hidden.clear();
        self.divided = 0;
    }

    #[inline(always)]
    fn page(&mut self, number: u64) -> usize {
        self.known(number).unwrap_or_else(|| self.find(number))
    }

    /// The index of a recently found page.
    #[inline(always)]
    fn known(&self, number: u64) -> Option<usize> {
        // The length is a power of two, or zero.
        let &(known, at) = self.recent.get(number as usize & self.recent.len().wrapping_sub(1))?;
        (known == number).then_some(at as usize)
    }

    #[inline(never)]
    fn find(&mut self, number: u64) -> usize {
        let new = self.pages.len();
        let at = *self.index.entry(number).or_insert(new as u32);
        if at as usize == new {
            let words = Box::new([FRESH; WORDS]);
            self.pages.push(Page { number, words, bytes: None, foreign: None, constants: None, moments: None });
        }
        if self.recent.len() < self.pages.len().max(RECENT) {
            self.recent.clear();
            self.recent.resize(self.pages.len().max(RECENT).next_power_of_two(), (u64::MAX, 0));
            let mask = self.recent.len() - 1;
            for (at, page) in self.pages.iter().enumerate() {
                self.recent[page.number as usize & mask] = (page.number, at as u32);
            }
        }
        let mask = self.recent.len() - 1;
        self.recent[number as usize & mask] = (number, at);
        at as usize
    }

    /// Touches the cell of each word without waiting, so that the cache misses overlap.
    pub(super) fn look_ahead(&self, addresses: impl Iterator<Item = u64>) {
        let mut all = 0;
        for address in addresses {
            let (word, number) = (address as usize / 4 % WORDS, address / (4 * WORDS as u64));
            if let Some(at) = self.known(number) {
                let page = &self.pages[at];
                all ^= u64::from(page.words[word].write_agent);
                all ^= page.moments.as_deref().map_or(0, |moments| moments[word].seen);
            }
        }
        std::hint::black_box(all);
    }

    /// A read of `n` bytes at `address`, within a page.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Issuer,
        address: u64,
        n: usize,
    ) -> Result<(), Conflict> {
        let foreign = clocks.foreign(who.warp, who.lane);
        let at = address as usize % (4 * WORDS);
        let index = self.page(address / (4 * WORDS as u64));
        if who.strength.is_strong() {
            for word in (0..n).step_by(4) {
                let here = (address + word as u64, n.min(4));
                self.hidden.check(clocks, here, who, false).map_err(|conflict| conflict.behind(word))?;
            }
        }
        if foreign > 0 || who.strength.is_strong() || self.pages[index].is_special(at, n) {
            self.keep_replaced(sets, index, (at, n), (foreign, who.strength), false);
            self.pages[index].mark(foreign, 1, at, n);
            self.pages[index].at_moment(self.moment, who.strength, 1, at, n);
        }
        let page = &mut self.pages[index];
        if n >= 4 && !who.copy && !who.strength.is_strong() {
            let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
            let cells = &mut page.words[at / 4..at / 4 + n / 4];
            if cells.iter_mut().all(|c| read_fast(c, row, now, sets, who, 1 << who.lane)) {
                return Ok(());
            }
        }
        let agent = if who.copy { clocks.engine(who.warp) } else { who.warp };
        let agent = (agent, clocks.now(agent));
        let was = page.bytes.is_some();
        let result = page.each(sets, at, n, |sets, cell| shadow_cell::read(clocks, sets, cell, who, agent));
        self.divided += usize::from(was != page.bytes.is_some());
        result
    }

    /// A write; `same` says that the bytes do not change.
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Issuer,
        (address, n): (u64, usize),
        same: bool,
    ) -> Result<(), Conflict> {
        let foreign = clocks.foreign(who.warp, who.lane);
        let at = address as usize % (4 * WORDS);
        let index = self.page(address / (4 * WORDS as u64));
        if who.strength.is_strong() {
            for word in (0..n).step_by(4) {
                let here = (address + word as u64, n.min(4));
                self.hidden.check(clocks, here, who, true).map_err(|conflict| conflict.behind(word))?;
            }
            for (byte, size, cell) in self.pages[index].cells(at, n) {
                self.forgot |= !self.hidden.keep(sets, (address - at as u64 + byte as u64, size), &cell);
            }
        }
        if foreign > 0 || who.strength.is_strong() || self.pages[index].is_special(at, n) {
            self.keep_replaced(sets, index, (at, n), (foreign, who.strength), true);
            self.pages[index].mark(foreign, 0, at, n);
            self.pages[index].at_moment(self.moment, who.strength, 0, at, n);
        }
        let page = &mut self.pages[index];
        if page.constants.is_some()
            && let Some(conflict) = page.constant_reader(sets, at, n)
        {
            return Err(conflict);
        }
        if n >= 4 && !who.strength.is_strong() {
            let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
            let cells = &mut page.words[at / 4..at / 4 + n / 4];
            if cells.iter_mut().all(|c| write_fast(c, row, now, who)) {
                return Ok(());
            }
        }
        let was = page.bytes.is_some();
        page.each(sets, at, n, |sets, cell| shadow_cell::write(clocks, sets, cell, who, same))?;
        self.divided += usize::from(was != page.bytes.is_some());
        if n >= 4 {
            page.join(at / 4, n / 4);
        }
        Ok(())
    }

    /// Attributes the last write at `address` to another agent, at that agent's clock.
    pub(super) fn reattribute_write(&mut self, (address, n): (u64, usize), (agent, clock): (usize, u32)) {
        let (at, index) = (address as usize % (4 * WORDS), self.page(address / (4 * WORDS as u64)));
        let page = &mut self.pages[index];
        for word in at / 4..(at + n).div_ceil(4) {
            match &mut page.bytes {
                Some(bytes) if page.words[word].is_split() => {
                    for cell in &mut bytes[at.max(4 * word)..(at + n).min(4 * word + 4)] {
                        (cell.write_agent, cell.write_clock) = (agent as u16, clock);
                    }
                }
                _ => (page.words[word].write_agent, page.words[word].write_clock) = (agent as u16, clock),
            }
        }
    }

    /// Checks a read of constants (`ld.global.nc`) against every writer of these bytes, after the read was recorded.
    pub(super) fn read_constant(&mut self, sets: &Sets, address: u64, n: usize) -> Result<(), Conflict> {
        let at = address as usize % (4 * WORDS);
        let index = self.page(address / (4 * WORDS as u64));
        let page = &mut self.pages[index];
        let constants = page.constants.get_or_insert_default();
        for word in at / 4..(at + n).div_ceil(4) {
            constants[word / 32] |= 1 << (word % 32);
        }
        let (words, bytes) = (&page.words, page.bytes.as_deref());
        let writer = (at / 4..(at + n).div_ceil(4)).find_map(|word| {
            let first = at.max(4 * word);
            let parts = match bytes {
                Some(bytes) if words[word].is_split() => &bytes[first..(at + n).min(4 * word + 4)],
                _ => &words[word..=word],
            };
            let (i, cell) = parts.iter().enumerate().find(|(_, cell)| cell.write_agent != NOBODY)?;
            Some((first + i - at, cell))
        });
        match writer {
            Some((byte, cell)) => Err(Conflict {
                warp: sets.warp_of(usize::from(cell.write_agent)),
                lane: usize::from(cell.write_lane),
                pc: cell.write_pc,
                wrote: true,
                copy: false,
                constant: true,
                byte,
            }),
            None => Ok(()),
        }
    }

    /// Keeps an access that is about to be replaced in the shadow, if it must be compared with other blocks.
    #[inline(never)]
    fn keep_replaced(
        &mut self,
        sets: &Sets,
        index: usize,
        (at, n): (usize, usize),
        (foreign, strength): (u32, Strength),
        writes: bool,
    ) {
        let page = &self.pages[index];
        for (byte, size, cell) in page.cells(at, n) {
            let known = |kind: usize| page.foreign.as_ref().map_or(0, |f| f[kind][byte / 4]);
            let mut keep = |old: ReplacedAccess| {
                let after = old.strength != Strength::Wide && old.moment != 0;
                let kind = (u8::from(after) * 4 + old.strength as u8) * 2 + u8::from(old.wrote);
                let key = (page.number * 4 * WORDS as u64 + byte as u64, size, kind);
                if self.older.len() < MAX_OLDER {
                    self.older.entry(key).or_insert(old);
                } else {
                    self.forgot = true;
                }
            };
            // A plain access after another strong one, or after none, must be kept separately.
            let moment = |kind, strength| page.moment(kind, strength, byte / 4);
            let later = |kind, before: Strength| {
                before.max(strength) < Strength::Wide && moment(kind, before) != page.seen(byte / 4)
            };
            let (wrote, was) = (cell.write_agent != NOBODY, cell.write_strength);
            if wrote && (was < strength || (writes && (known(0) != foreign || later(0, was)))) {
                keep(ReplacedAccess {
                    pc: cell.write_pc,
                    clock: cell.write_clock,
                    agent: usize::from(cell.write_agent),
                    lane: usize::from(cell.write_lane),
                    strength: cell.write_strength,
                    foreign: known(0),
                    wrote: true,
                    moment: moment(0, was),
                });
            }
            for (agent, read) in sets.reads(&cell) {
                if known(1) != foreign || read.strength < strength || later(1, read.strength) {
                    let lane = read.lanes.trailing_zeros() as usize % 32;
                    let Read { pc, clock, strength, .. } = read;
                    let moment = moment(1, strength);
                    keep(ReplacedAccess { pc, clock, agent, lane, strength, foreign: known(1), wrote: false, moment });
                }
            }
        }
    }
}

impl Page {
    fn mark(&mut self, foreign: u32, kind: usize, at: usize, n: usize) {
        if foreign > 0 || self.foreign.is_some() {
            let marks = self.foreign.get_or_insert_with(|| Box::new([[0; WORDS]; 2]));
            marks[kind][at / 4..(at + n).div_ceil(4)].fill(foreign);
        }
    }

    /// Whether some bytes have more history than their cells.
    fn is_special(&self, at: usize, n: usize) -> bool {
        let seen = |m: &[AccessTimes; WORDS]| m[at / 4..(at + n).div_ceil(4)].iter().any(|word| word.seen != 0);
        self.foreign.is_some() || self.moments.as_deref().is_some_and(seen)
    }

    /// Records the moment of an access.
    fn at_moment(&mut self, (now, sees): (u64, bool), strength: Strength, kind: usize, at: usize, n: usize) {
        let wide = strength == Strength::Wide;
        if !wide && self.moments.is_none() {
            return;
        }
        let moments = self.moments.get_or_insert_with(|| Box::new([AccessTimes::default(); WORDS]));
        for word in &mut moments[at / 4..(at + n).div_ceil(4)] {
            match wide {
                true => word.strong[kind] = now,
                false => word.plain[kind] = word.seen,
            }
            if wide && kind == 1 && sees {
                word.seen = now;
            }
        }
    }

    /// The moment of the last access of a kind and strength to a word, or of the strong access it follows.
    pub(super) fn moment(&self, kind: usize, strength: Strength, word: usize) -> u64 {
        match (&self.moments, strength) {
            (None, _) => 0,
            (Some(moments), Strength::Wide) => moments[word].strong[kind],
            (Some(moments), _) => moments[word].plain[kind],
        }
    }

    /// The moment at which the block last observed the value of a word.
    fn seen(&self, word: usize) -> u64 {
        self.moments.as_ref().map_or(0, |moments| moments[word].seen)
    }

    /// The cells of some bytes, with first byte and size of each.
    fn cells(&self, at: usize, n: usize) -> impl Iterator<Item = (usize, usize, Cell)> {
        (at / 4..(at + n).div_ceil(4)).flat_map(move |word| {
            let bytes = self.bytes.as_deref().filter(|_| self.words[word].is_split());
            let (first, last, size) = match bytes {
                Some(_) => (at.max(4 * word), (at + n).min(4 * word + 4), 1),
                None => (4 * word, 4 * word + 4, 4),
            };
            let cell = move |byte| bytes.map_or(self.words[word], |bytes| bytes[byte]);
            (first..last).step_by(size).map(move |byte| (byte, size, cell(byte)))
        })
    }

    /// The agent that has read one of these bytes as a constant.
    fn constant_reader(&self, sets: &Sets, at: usize, n: usize) -> Option<Conflict> {
        let constants = self.constants.as_ref()?;
        let found = self.cells(at, n).find(|(byte, _, _)| constants[byte / 128] >> (byte / 4 % 32) & 1 != 0);
        let (first, _, cell) = found?;
        let byte = first.saturating_sub(at);
        let (agent, read) = sets.reads(&cell).next()?;
        let lane = read.lanes.trailing_zeros() as usize % 32;
        Some(Conflict { warp: sets.warp_of(agent), lane, pc: read.pc, wrote: false, copy: false, constant: true, byte })
    }

    /// The cells of some bytes: words where they are whole, bytes elsewhere.
    fn each(
        &mut self,
        sets: &mut Sets,
        at: usize,
        n: usize,
        mut f: impl FnMut(&mut Sets, &mut Cell) -> Result<(), Conflict>,
    ) -> Result<(), Conflict> {
        for word in at / 4..(at + n).div_ceil(4) {
            if n >= 4 && !self.words[word].is_split() {
                f(sets, &mut self.words[word]).map_err(|conflict| conflict.behind(4 * word - at))?;
                continue;
            }
            let bytes = self.bytes.get_or_insert_with(|| vec![FRESH; 4 * WORDS].into());
            let own = &mut self.words[word];
            if !own.is_split() {
                for byte in &mut bytes[4 * word..4 * word + 4] {
                    *byte = sets.duplicate(own);
                }
                sets.give_back(own);
                *own = SPLIT;
            }
            let (first, last) = (at.max(4 * word), (at + n).min(4 * word + 4));
            for (byte, cell) in (first..last).zip(&mut bytes[first..last]) {
                f(sets, cell).map_err(|conflict| conflict.behind(byte - at))?;
            }
        }
        Ok(())
    }

    /// Words written as a whole have one history again.
    fn join(&mut self, first: usize, n: usize) {
        let Some(bytes) = &self.bytes else { return };
        for word in first..first + n {
            if self.words[word].is_split() {
                self.words[word] = bytes[4 * word];
            }
        }
    }
}

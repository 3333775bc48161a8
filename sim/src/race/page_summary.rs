//! The accesses of all blocks to a page of global memory.
//!
//! For each word and kind of access, those of the two lowest blocks are kept: that decides whether any two conflict
//! when nothing is ordered. Moments may order strong accesses and the plain ones that follow them. Then the two last
//! strong accesses and the two plain accesses that follow the earliest are kept too, of different blocks: if any two
//! conflict, two of these do. The accesses of blocks that communicated with others are kept in full, with their clocks
//! and what their threads had acquired from other blocks. For each block and word, the first and the last access of
//! each kind count. Words with equal contents are stored once: a page is a list of runs.

use std::collections::HashMap;

use super::access::Strength;
use super::access_units::{Access, NOTHING, Runs, Unit};
use super::block_sync::BlockSync;
use super::global::{Page, ReplacedAccess, WORDS};
use super::packed_access::{KINDS, Kind, NONE, pack};
use super::shadow_cell::{Cell, NOBODY, Read, Sets};

/// Time of an access of a block that communicated with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) pc: u32,
    pub(super) clock: u32,
    pub(super) foreign: u32,
    /// Who did it.
    pub(super) agent: u16,
}

/// Maximum number of accesses in a cell: a write, weak reads and strong reads.
pub(super) const MAX_CELL_ACCESSES: usize = 3;

/// The accesses to a page: per byte if a word was accessed in parts, else per word.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) bytes: bool,
    kinds: [Option<Runs>; 7],
    /// Further accesses: first byte, bytes, kind.
    pub(super) more: Vec<(u16, u16, Kind, Access)>,
}

/// The accesses that a block adds at once.
pub(super) struct BlockAccesses<'a> {
    pub(super) block: u64,
    pub(super) sets: &'a Sets,
    pub(super) contacts: &'a BlockSync,
    /// Whether times matter: the block communicated with others, or may still do so.
    pub(super) spoke: bool,
    pub(super) sites: Vec<Site>,
    pub(super) numbers: HashMap<Site, u32>,
}

impl BlockAccesses<'_> {
    fn value(&mut self, (agent, lane): (usize, usize), pc: u32, clock: u32, foreign: u32) -> u64 {
        let thread = (self.sets.warp_of(agent) * 32 + lane) as u32;
        if !self.spoke {
            return pack(self.block, false, pc, thread);
        }
        let site = Site { pc, clock, foreign, agent: agent as u16 };
        let next = self.sites.len() as u32;
        let number = *self.numbers.entry(site).or_insert(next);
        if number == next {
            self.sites.push(site);
        }
        pack(self.block, true, number, thread)
    }

    /// Among some reads, the one that other blocks have acquired least of.
    fn read(&self, reads: impl Iterator<Item = (usize, Read)>) -> Option<(usize, usize, Read)> {
        let mut first = None;
        for (agent, read) in reads {
            let lanes = (0..32).filter(|l| read.lanes >> l & 1 != 0);
            for lane in lanes {
                let told = |front: &super::clock_front::Front| front.covers(agent, lane, read.clock);
                if !self.contacts.published.as_ref().is_some_and(told) {
                    return Some((agent, lane, read));
                }
                first = first.or(Some((agent, lane, read)));
            }
        }
        first
    }

    /// The accesses of a cell with only weak reads and writes, whose time does not matter.
    #[inline(always)]
    fn plain_accesses(&self, cell: &Cell) -> [Option<(Kind, Access)>; MAX_CELL_ACCESSES] {
        let thread = |agent: usize, lane: usize| (self.sets.warp_of(agent) * 32 + lane) as u32;
        let wrote = (cell.write_agent != NOBODY).then(|| {
            let by = thread(usize::from(cell.write_agent), usize::from(cell.write_lane));
            (Kind::Write, Access { v: pack(self.block, false, cell.write_pc, by), moment: 0 })
        });
        let read = self.sets.first(cell).map(|(agent, read)| {
            let by = thread(agent, read.lanes.trailing_zeros() as usize % 32);
            (Kind::Read, Access { v: pack(self.block, false, read.pc, by), moment: 0 })
        });
        [wrote, read, None]
    }

    /// The accesses of a cell: kinds and packed values.
    fn accesses(&mut self, page: &Page, cell: &Cell, word: usize) -> [Option<(Kind, Access)>; MAX_CELL_ACCESSES] {
        let foreign = |kind: usize| page.foreign.as_ref().map_or(0, |f| f[kind][word]);
        if !self.spoke && page.moments.is_none() && page.constants.is_none() {
            return self.plain_accesses(cell);
        }
        let constant = page.constants.as_ref().is_some_and(|s| s[word / 32] >> (word % 32) & 1 != 0);
        let mut out = [None; 3];
        if cell.write_agent != NOBODY {
            let by = (usize::from(cell.write_agent), usize::from(cell.write_lane));
            let v = self.value(by, cell.write_pc, cell.write_clock, foreign(0));
            let moment = page.moment(0, cell.write_strength, word);
            out[0] = Some((Kind::new(true, cell.write_strength, moment), Access { v, moment }));
        }
        let sets = self.sets;
        for (i, strong) in [(1, false), (2, true)] {
            let wide = |r: &(usize, Read)| (r.1.strength == Strength::Wide) == strong;
            if let Some((agent, lane, read)) = self.read(sets.reads(cell).filter(wide)) {
                let v = self.value((agent, lane), read.pc, read.clock, foreign(1));
                let moment = page.moment(1, read.strength, word);
                let kind = if constant { Kind::Constant } else { Kind::new(false, read.strength, moment) };
                out[i] = Some((kind, Access { v, moment }));
            }
        }
        out
    }
}

impl Summary {
    /// From words to bytes.
    fn divide(&mut self) {
        if !std::mem::replace(&mut self.bytes, true) {
            for runs in self.kinds.iter_mut().flatten() {
                runs.ends.iter_mut().for_each(|e| *e *= 4);
            }
        }
    }

    fn units(&self) -> usize {
        if self.bytes { 4 * WORDS } else { WORDS }
    }

    /// Whether the page was written.
    pub(super) fn written(&self) -> bool {
        KINDS.iter().any(|kind| kind.wrote() && self.kinds[*kind as usize].is_some())
    }

    /// All kept accesses, by words or bytes.
    pub(super) fn accesses(self) -> impl Iterator<Item = Vec<(Kind, Access)>> {
        let (n, size) = (self.units(), if self.bytes { 1 } else { 4 });
        let kinds = KINDS.into_iter().zip(self.kinds);
        let all: Vec<(Kind, Vec<Unit>)> = kinds.filter_map(|(kind, runs)| Some((kind, runs?.expand(n)))).collect();
        let mut more: HashMap<usize, Vec<(Kind, Access)>> = HashMap::new();
        for (first, bytes, kind, access) in self.more {
            for at in usize::from(first) / size..usize::from(first + bytes).div_ceil(size) {
                more.entry(at).or_default().push((kind, access));
            }
        }
        (0..n).map(move |at| {
            let mut accesses = more.remove(&at).unwrap_or_default();
            for (kind, units) in &all {
                let Unit { lowest, extreme } = units[at];
                let others = extreme.into_iter().filter(|a| !lowest.contains(a));
                accesses.extend(lowest.into_iter().chain(others).filter(|a| a.v != NONE).map(|a| (*kind, a)));
            }
            accesses
        })
    }

    /// Adds a block's accesses to a page. Returns the growth in bytes.
    pub(super) fn add(
        &mut self,
        page: &Page,
        hand_in: &mut BlockAccesses<'_>,
        older: &[(u64, usize, ReplacedAccess)],
    ) -> isize {
        if page.bytes.is_some() || older.iter().any(|(_, size, _)| *size == 1) {
            self.divide();
        }
        let (n, size) = (self.units(), if self.bytes { 1 } else { 4 });
        let (before, more) = (self.kinds.iter().flatten().map(Runs::bytes).sum::<usize>(), self.more.len());
        let mut open: [Option<Vec<Unit>>; 7] = Default::default();
        let mut put = |this: &mut Summary, first: usize, bytes: usize, kind: Kind, access: Access| {
            let all = open[kind as usize].get_or_insert_with(|| match &this.kinds[kind as usize] {
                Some(runs) => runs.expand(n),
                None => vec![NOTHING; n],
            });
            for at in first / size..(first + bytes).div_ceil(size) {
                if let Some(lost) = all[at].insert(kind, access) {
                    this.more.push(((at * size) as u16, size as u16, kind, lost));
                }
            }
        };
        for (word, cell) in page.words.iter().enumerate().filter(|(_, cell)| !cell.is_fresh()) {
            match &page.bytes {
                Some(bytes) if cell.is_split() => {
                    let mut byte = 4 * word;
                    while byte < 4 * word + 4 {
                        let alike = bytes[byte..4 * word + 4].iter().take_while(|b| **b == bytes[byte]).count();
                        for (kind, a) in hand_in.accesses(page, &bytes[byte], word).into_iter().flatten() {
                            put(self, byte, alike, kind, a);
                        }
                        byte += alike;
                    }
                }
                _ => {
                    for (kind, a) in hand_in.accesses(page, cell, word).into_iter().flatten() {
                        put(self, 4 * word, 4, kind, a);
                    }
                }
            }
        }
        for (address, bytes, old) in older {
            let v = hand_in.value((old.agent, old.lane), old.pc, old.clock, old.foreign);
            let kind = Kind::new(old.wrote, old.strength, old.moment);
            put(self, *address as usize % (4 * WORDS), *bytes, kind, Access { v, moment: old.moment });
        }
        for (kind, all) in open.into_iter().enumerate() {
            if let Some(all) = all {
                self.kinds[kind] = Some(Runs::new(&all));
            }
        }
        let after = self.kinds.iter().flatten().map(Runs::bytes).sum::<usize>();
        after as isize - before as isize + 24 * (self.more.len() - more) as isize
    }
}

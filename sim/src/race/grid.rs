//! Races between blocks: who of a launch wrote and read each word of global memory.
//!
//! Nothing orders the blocks of a launch but atomics and flags, so two plain accesses of different blocks to one word are a
//! race when one of them writes. Every block hands in what it touched when it ends. Of each word the two lowest blocks are
//! kept that wrote it and that read it, plainly or by ordered accesses: that is enough to know whether any two blocks
//! conflict, it does not depend on the order in which blocks end, and it costs nothing while a block runs. When all have
//! ended the words that were written are looked through, and the conflict of the lowest block is the report.
//!
//! A fence with an atomic or volatile write after it publishes what a block did (PTX 8.7: release pattern), and a block learns
//! what others published by an atomic or volatile read with a fence after it (acquire pattern); an access with `.release` or
//! `.acquire` needs no fence. Either ends a *section* of the block. The writes and reads are numbered in the order in which they
//! happen: what a block did before it published is ordered before what another does after it has learnt something later.
//! That they meant the same flag is not checked, any fence of the block counts as that after a read, any earlier one of the
//! warp as that before a write, and only the last section in which a block touched a word is known: so a launch that
//! synchronises its blocks can hide a race, and never has one invented.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::cell::{Cell, MANY, NOBODY, Sets};
use super::global::{Page, WORDS};

/// Pages remembered: 256 MB of data. Those that come later are not looked at.
const MAX_PAGES: usize = 1 << 18;
/// Nobody.
const NONE: u64 = u64::MAX;

/// An access in one number, ordered by block: 28 bits of block, 18 of instruction, 10 of thread, 8 of section.
fn pack(block: u64, pc: u32, thread: u32, section: u8) -> u64 {
    block << 36 | u64::from(pc & 0x3_FFFF) << 18 | u64::from(thread & 0x3FF) << 8 | u64::from(section)
}

/// One side of a race between blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) block: u64,
    pub(crate) pc: u32,
    pub(crate) thread: u32,
    pub(crate) wrote: bool,
    section: u8,
}

fn unpack(v: u64, wrote: bool) -> Side {
    let (pc, thread) = ((v >> 18) as u32 & 0x3_FFFF, (v >> 8) as u32 & 0x3FF);
    Side { block: v >> 36, pc, thread, wrote, section: v as u8 }
}

/// What the accesses of one kind to a word have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Read,
    StrongWrite,
    StrongRead,
}

/// The two lowest blocks for each word, or byte.
type Lowest = Box<[[u64; 2]]>;

/// All that is known of a page: bytes of it, if one was accessed in parts, else words.
#[derive(Debug, Default)]
struct Summary {
    bytes: bool,
    kinds: [Option<Lowest>; 4],
}

impl Summary {
    fn insert(&mut self, kind: Kind, at: usize, v: u64) {
        let n = if self.bytes { 4 * WORDS } else { WORDS };
        let [low, high] = &mut self.kinds[kind as usize].get_or_insert_with(|| vec![[NONE; 2]; n].into())[at];
        if *low == NONE || v >> 36 < *low >> 36 {
            (*low, *high) = (v, *low);
        } else if v >> 36 == *low >> 36 {
            *low = v.min(*low);
        } else if *high == NONE || v >> 36 < *high >> 36 {
            *high = v;
        } else if v >> 36 == *high >> 36 {
            *high = v.min(*high);
        }
    }

    /// From words to bytes.
    fn divide(&mut self) {
        if !std::mem::replace(&mut self.bytes, true) {
            for lowest in self.kinds.iter_mut().flatten() {
                *lowest = lowest.iter().flat_map(|l| [*l; 4]).collect();
            }
        }
    }

    fn add(&mut self, page: &Page, sets: &mut Sets, block: u64) {
        if page.bytes.is_some() {
            self.divide();
        }
        let whole = if self.bytes { 4 } else { 1 };
        let mut add = |at: usize, n: usize, cell: &Cell, word: usize| {
            let section = |kind: usize| page.sections.as_ref().map_or(0, |s| s[kind][word]);
            let mut insert = |kind: Kind, v: u64| (at..at + n).for_each(|at| self.insert(kind, at, v));
            if cell.write_agent != NOBODY {
                let thread = u32::from(cell.write_agent % 32) * 32 + u32::from(cell.write_lane);
                let kind = if cell.write_strong { Kind::StrongWrite } else { Kind::Write };
                insert(kind, pack(block, cell.write_pc, thread, section(0)));
            }
            let (agent, pc, lanes, strong) = match cell.read_agent {
                NOBODY => return,
                MANY => match sets.first(cell) {
                    Some((agent, read)) => (agent, read.pc, read.lanes, read.strong),
                    None => return,
                },
                agent => (usize::from(agent), cell.read_pc, cell.read_lanes, cell.read_strong),
            };
            let thread = agent as u32 % 32 * 32 + lanes.trailing_zeros() % 32;
            let kind = if strong { Kind::StrongRead } else { Kind::Read };
            insert(kind, pack(block, pc, thread, section(1)));
        };
        for (word, cell) in page.words.iter().enumerate() {
            match &page.bytes {
                Some(bytes) if cell.split => {
                    (4 * word..4 * word + 4).for_each(|byte| add(byte, 1, &bytes[byte], word));
                }
                _ => add(whole * word, whole, cell, word),
            }
        }
    }
}

/// What ends a section of a block, with the moment that counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meeting {
    /// From this moment on others can know what was done before.
    Published(u64),
    /// What was published before this moment is known afterwards.
    Learnt(u64),
}

/// The meetings of a block as its sections need them.
#[derive(Debug)]
struct Sections {
    /// When what was done in a section was first published.
    published: Vec<u64>,
    /// When the block last learnt something before a section began.
    learnt: Vec<u64>,
}

impl Sections {
    fn new(meetings: &[Meeting]) -> Sections {
        let n = meetings.len() + 1;
        let mut sections = Sections { published: vec![u64::MAX; n], learnt: vec![0; n] };
        for (i, meeting) in meetings.iter().enumerate().rev() {
            sections.published[i] = match *meeting {
                Meeting::Published(at) => at.min(sections.published[i + 1]),
                Meeting::Learnt(_) => sections.published[i + 1],
            };
        }
        for (i, meeting) in meetings.iter().enumerate() {
            sections.learnt[i + 1] = match *meeting {
                Meeting::Learnt(at) => at.max(sections.learnt[i]),
                Meeting::Published(_) => sections.learnt[i],
            };
        }
        sections
    }
}

/// What the blocks of a launch have done to global memory.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    pages: Mutex<BTreeMap<u64, Summary>>,
    /// Of blocks with more than one section.
    sections: Mutex<BTreeMap<u64, Sections>>,
    clock: AtomicU64,
}

impl Grid {
    /// The number of a moment at which blocks may publish and learn.
    pub(super) fn moment(&self) -> u64 {
        self.clock.fetch_add(1, Relaxed) + 1
    }

    /// Takes over what `block` did; `meetings` ended its sections so far.
    pub(super) fn add(&self, block: u64, pages: &[Page], sets: &mut Sets, meetings: &[Meeting]) {
        if block >= 1 << 28 {
            return;
        }
        if !meetings.is_empty() {
            let mut sections = self.sections.lock().unwrap_or_else(PoisonError::into_inner);
            sections.insert(block, Sections::new(meetings));
        }
        let mut all = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        for page in pages {
            if all.len() >= MAX_PAGES && !all.contains_key(&page.number) {
                continue;
            }
            all.entry(page.number).or_default().add(page, sets, block);
        }
    }

    /// The race of the lowest block, if there is one: its address, the higher block's side, the lower block's.
    pub(crate) fn race(self) -> Option<(u64, Side, Side)> {
        let sections = self.sections.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ordered = |a: Side, b: Side| {
            // What `a` did was published before `b` learnt; the last section a block can count to is never judged.
            let published = sections.get(&a.block).and_then(|s| s.published.get(usize::from(a.section)));
            let learnt = sections.get(&b.block).and_then(|s| s.learnt.get(usize::from(b.section)));
            a.section == u8::MAX || b.section == u8::MAX || published.zip(learnt).is_some_and(|(p, l)| p < l)
        };
        let mut found: Option<(u64, Side, Side)> = None;
        for (number, page) in self.pages.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let size = if page.bytes { 1 } else { 4 };
            let n = 4 * WORDS / size;
            let side = |kind: Kind, at: usize| {
                let wrote = matches!(kind, Kind::Write | Kind::StrongWrite);
                let both = page.kinds[kind as usize].as_ref().map_or([NONE; 2], |k| k[at]);
                both.into_iter().filter(|v| *v != NONE).map(move |v| unpack(v, wrote))
            };
            if page.kinds[Kind::Write as usize].is_none() && page.kinds[Kind::StrongWrite as usize].is_none() {
                continue;
            }
            for at in 0..n {
                let address = (number * WORDS as u64 * 4) + (at * size) as u64;
                let against = |kind| match kind {
                    Kind::Write => [Kind::Write, Kind::Read, Kind::StrongWrite, Kind::StrongRead].as_slice(),
                    _ => &[Kind::Read],
                };
                for (writer, other) in [Kind::Write, Kind::StrongWrite]
                    .into_iter()
                    .flat_map(|k| side(k, at).map(move |w| (k, w)))
                    .flat_map(|(k, w)| against(k).iter().flat_map(move |o| side(*o, at)).map(move |o| (w, o)))
                {
                    if writer.block == other.block || ordered(writer, other) || ordered(other, writer) {
                        continue;
                    }
                    let (low, high) = if writer.block < other.block { (writer, other) } else { (other, writer) };
                    let key = |(address, high, low): &(u64, Side, Side)| (high.block, low.block, *address, !high.wrote);
                    let new = (address, high, low);
                    if found.as_ref().is_none_or(|old| key(&new) < key(old)) {
                        found = Some(new);
                    }
                }
            }
        }
        found
    }
}

//! Races between the blocks of a launch in global memory.
//!
//! Only flags order the blocks of a launch ([`super::block_sync`]). Two accesses of different blocks to one word, at least
//! one of them a write, are a race, with two exceptions:
//!
//! * both are strong, with a scope beyond their block;
//! * one block releases after its access, and the other acquires that before its own.
//!
//! Every block adds its accesses when it ends. When all have ended, the written words are checked, and the conflict of
//! the lowest blocks is reported. The report does not depend on the order in which the blocks ran, as long as they
//! observed the same flags.
//!
//! [`super::page_summary`] describes what is kept of a page.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::access_units::Access;
use super::block_sync::{BlockOrder, BlockSync, GridSync, Seen};
use super::global::{Global, ReplacedAccess, WORDS};
use super::packed_access::{Kind, MAX_BLOCKS, MAX_PLACES, block_of, place_of, thread_of, was_strong};
use super::page_summary::{BlockAccesses, MAX_CELL_ACCESSES, Site, Summary};
use super::shadow_cell::Sets;

/// Host memory for the accesses of blocks, in bytes. Words beyond the limit are not checked.
const MAX_BYTES: usize = 384 << 20;
/// Accesses kept besides those of the two lowest blocks.
const MAX_MORE: usize = 1 << 21;
/// Maximum number of compared pairs of accesses.
const MAX_PAIRS: usize = 1 << 26;

/// One side of a race between blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) block: u64,
    pub(crate) pc: u32,
    pub(crate) thread: u32,
    pub(crate) wrote: bool,
    /// Whether it read the word as a constant.
    pub(crate) constant: bool,
}

#[derive(Debug, Default)]
struct Pages {
    all: BTreeMap<u64, Summary>,
    sites: HashMap<u64, Vec<Site>>,
    seen: HashMap<u64, Vec<Seen>>,
    bytes: usize,
    more: usize,
    /// Whether some accesses were dropped.
    partial: bool,
}

/// The accesses of a launch's blocks to global memory.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    pages: Mutex<Pages>,
    pub(crate) meetings: GridSync,
}

impl Grid {
    /// Adds the accesses of `block`; `end`: the block has ended.
    pub(super) fn add(&self, block: u64, global: &Global, sets: &Sets, contacts: &BlockSync, end: bool) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = &mut *pages;
        if block >= MAX_BLOCKS {
            pages.partial = true;
            return;
        }
        let spoke = !end || !contacts.seen.is_empty() || contacts.published.is_some();
        let sites = pages.sites.remove(&block).unwrap_or_default();
        let spoke = spoke || !sites.is_empty();
        let mut hand_in = BlockAccesses { block, sets, contacts, spoke, sites, numbers: HashMap::new() };
        let mut older: HashMap<u64, Vec<(u64, usize, ReplacedAccess)>> = HashMap::new();
        for ((address, size, _), old) in &global.older {
            older.entry(address / (4 * WORDS as u64)).or_default().push((*address, *size, *old));
        }
        for page in &global.pages {
            let older = older.get(&page.number).map_or(&[][..], Vec::as_slice);
            let sites = hand_in.sites.len() + MAX_CELL_ACCESSES * 4 * WORDS + older.len();
            if pages.bytes >= MAX_BYTES || pages.more >= MAX_MORE || sites > MAX_PLACES {
                pages.partial = true;
                break;
            }
            let summary = pages.all.entry(page.number).or_default();
            let more = summary.more.len();
            pages.bytes = pages.bytes.saturating_add_signed(summary.add(page, &mut hand_in, older));
            pages.more += summary.more.len() - more;
        }
        if hand_in.spoke {
            pages.sites.insert(block, hand_in.sites);
            pages.seen.insert(block, contacts.seen.clone());
        }
    }

    /// The race of the lowest blocks, if any: its address, the higher block's side, the lower block's. The flag says
    /// that accesses were dropped or not compared.
    pub(crate) fn race(self) -> (Option<(u64, Side, Side)>, bool) {
        let Pages { all, sites, seen, mut partial, .. } =
            self.pages.into_inner().unwrap_or_else(PoisonError::into_inner);
        let logs = self.meetings.finish();
        let mut judge = OrderCheck { knowledge: BlockOrder::new(&logs, &seen), sites: &sites, pairs: 0, found: None };
        for (number, page) in all {
            if !page.written() {
                continue;
            }
            let size = if page.bytes { 1 } else { 4 };
            for (at, accesses) in page.accesses().enumerate() {
                judge.word(number * WORDS as u64 * 4 + at as u64 * size, &accesses);
            }
        }
        partial |= judge.knowledge.is_partial() || judge.pairs >= MAX_PAIRS;
        (judge.found, partial)
    }
}

struct OrderCheck<'a> {
    knowledge: BlockOrder<'a>,
    sites: &'a HashMap<u64, Vec<Site>>,
    pairs: usize,
    found: Option<(u64, Side, Side)>,
}

impl OrderCheck<'_> {
    fn site(&self, v: u64) -> Option<&Site> {
        self.sites.get(&block_of(v)).filter(|_| was_strong(v)).and_then(|sites| sites.get(place_of(v)))
    }

    fn side(&self, kind: Kind, v: u64) -> Side {
        let pc = self.site(v).map_or(place_of(v) as u32, |s| s.pc);
        Side { block: block_of(v), pc, thread: thread_of(v), wrote: kind.wrote(), constant: kind == Kind::Constant }
    }

    /// Whether the access `a` is ordered before `b`.
    fn ordered(&mut self, a: u64, b: u64) -> bool {
        let (Some(a_site), Some(b_site)) = (self.site(a).copied(), self.site(b).copied()) else { return false };
        let (agent, lane) = (usize::from(a_site.agent), thread_of(a) as usize % 32);
        self.knowledge.covers((block_of(b), b_site.foreign), block_of(a), (agent, lane, a_site.clock))
    }

    /// Checks the accesses to one word or byte.
    fn word(&mut self, address: u64, accesses: &[(Kind, Access)]) {
        for (i, one) in accesses.iter().enumerate() {
            for other in &accesses[i + 1..] {
                if one.1.block() == other.1.block() || !one.0.conflicts(other.0) || self.pairs >= MAX_PAIRS {
                    continue;
                }
                self.pairs += 1;
                let constant = one.0 == Kind::Constant || other.0 == Kind::Constant;
                let ordered = ordered_by_flag(*one, *other)
                    || self.ordered(one.1.v, other.1.v)
                    || self.ordered(other.1.v, one.1.v);
                if ordered && !constant {
                    continue;
                }
                let (low, high) = if one.1.block() < other.1.block() { (one, other) } else { (other, one) };
                let (low, high) = turned(accesses, *low, *high);
                let new = (address, self.side(high.0, high.1.v), self.side(low.0, low.1.v));
                let key = |(address, high, low): &(u64, Side, Side)| {
                    let place = (!high.wrote, high.pc, !low.wrote, low.pc);
                    (high.block, low.block, *address, place, high.thread, low.thread)
                };
                if self.found.as_ref().is_none_or(|old| key(&new) < key(old)) {
                    self.found = Some(new);
                }
            }
        }
    }
}

/// Whether a plain access is ordered after a strong one of another block because its own block has read the word by a
/// strong access between them. The block that takes the last ticket may reset the counter with a plain store (PTX ISA
/// 8.9: what a strong read observes happens before what follows the read).
fn ordered_by_flag(one: (Kind, Access), two: (Kind, Access)) -> bool {
    let (plain, strong) = if one.0.after() { (one, two) } else { (two, one) };
    plain.0.after() && strong.0.strong() && strong.1.moment < plain.1.moment
}

/// If each block has a strong and then a plain access, timing decides whose plain access races with the other's strong
/// one. The higher block's plain access is reported in both cases.
fn turned(accesses: &[(Kind, Access)], low: (Kind, Access), high: (Kind, Access)) -> ((Kind, Access), (Kind, Access)) {
    if !low.0.after() || !high.0.strong() {
        return (low, high);
    }
    let lowest = |block: u64, is: fn(Kind) -> bool| {
        let of_block = accesses.iter().filter(|(kind, a)| a.block() == block && is(*kind));
        of_block.min_by_key(|(kind, a)| (!kind.wrote(), a.v)).copied()
    };
    match (lowest(low.1.block(), Kind::strong), lowest(high.1.block(), Kind::after)) {
        (Some(strong), Some(plain)) if strong.0.conflicts(plain.0) => (strong, plain),
        _ => (low, high),
    }
}

//! Races between blocks: who of a launch wrote and read each word of global memory.
//!
//! Nothing orders the blocks of a launch but flags ([`super::meet`]), so two accesses of different blocks to one word, one of
//! them a write, are a race unless both are strong with a scope beyond their block, or one block has published what it did before
//! the other has learnt that. Every block hands in what it touched when it ends. When all have ended the words that were
//! written are looked through, and the conflict of the lowest blocks is the report: it does not depend on the order in which blocks
//! ran, as long as they saw the same flags.
//!
//! What is kept of a page is in [`super::summary`].

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use super::cell::Sets;
use super::global::{Global, Older, WORDS};
use super::meet::{Contacts, Knowledge, Meetings, Seen};
use super::summary::{HandIn, KINDS, Kind, NONE, Site, Summary, spoke};

/// Bytes of the host for what blocks did. Words that come when they are used up are not looked at.
const MAX_BYTES: usize = 384 << 20;
/// Accesses beside the two lowest.
const MAX_MORE: usize = 1 << 21;
/// Pairs of accesses compared.
const MAX_PAIRS: usize = 1 << 26;

/// One side of a race between blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) block: u64,
    pub(crate) pc: u32,
    pub(crate) thread: u32,
    pub(crate) wrote: bool,
    /// Whether it took the word for a constant.
    pub(crate) constant: bool,
}

#[derive(Debug, Default)]
struct Pages {
    all: BTreeMap<u64, Summary>,
    sites: HashMap<u64, Vec<Site>>,
    seen: HashMap<u64, Vec<Seen>>,
    /// When blocks with strong accesses began and ended.
    spans: HashMap<u64, (u64, u64)>,
    bytes: usize,
    more: usize,
    /// Whether something was not kept.
    partial: bool,
}

/// What the blocks of a launch have done to global memory.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    pages: Mutex<Pages>,
    pub(crate) meetings: Meetings,
    clock: AtomicU64,
}

impl Grid {
    /// A moment later than all before.
    pub(crate) fn moment(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst) + 1
    }

    /// Takes over what `block` did; not `end` if it goes on.
    pub(super) fn add(&self, block: u64, global: &Global, sets: &Sets, contacts: &Contacts, end: bool) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = &mut *pages;
        if block >= 1 << 28 {
            pages.partial = true;
            return;
        }
        if global.strong {
            pages.spans.insert(block, (contacts.start, self.moment()));
        }
        let spoke = !end || !contacts.seen.is_empty() || contacts.published.is_some();
        let sites = pages.sites.remove(&block).unwrap_or_default();
        let spoke = spoke || !sites.is_empty();
        let mut hand_in = HandIn { block, sets, contacts, spoke, sites, numbers: HashMap::new() };
        let mut older: HashMap<u64, Vec<(u64, usize, Older)>> = HashMap::new();
        for ((address, size, _), old) in &global.older {
            older.entry(address / (4 * WORDS as u64)).or_default().push((*address, *size, *old));
        }
        for page in &global.pages {
            if pages.bytes >= MAX_BYTES || pages.more >= MAX_MORE {
                pages.partial = true;
                break;
            }
            let older = older.get(&page.number).map_or(&[][..], Vec::as_slice);
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

    /// The race of the lowest blocks, if there is one: its address, the higher block's side, the lower block's. And whether
    /// there was more to compare than could be kept.
    pub(crate) fn race(self) -> (Option<(u64, Side, Side)>, bool) {
        let Pages { all, sites, seen, spans, mut partial, .. } =
            self.pages.into_inner().unwrap_or_else(PoisonError::into_inner);
        let logs = self.meetings.finish();
        let mut judge =
            Judge { knowledge: Knowledge::new(&logs, &seen), sites: &sites, spans: &spans, pairs: 0, found: None };
        for (number, page) in all {
            if KINDS.iter().all(|kind| !kind.wrote() || page.kinds[*kind as usize].is_none()) {
                continue;
            }
            let (n, size) = (page.units(), if page.bytes { 1 } else { 4 });
            let lowest: Vec<(Kind, Vec<[u64; 2]>)> = KINDS
                .into_iter()
                .filter_map(|kind| page.kinds[kind as usize].as_ref().map(|l| (kind, l.expand(n))))
                .collect();
            let mut more: HashMap<usize, Vec<(Kind, u64)>> = HashMap::new();
            for (first, bytes, kind, v) in page.more {
                for at in usize::from(first) / size..usize::from(first + bytes).div_ceil(size) {
                    more.entry(at).or_default().push((kind, v));
                }
            }
            let mut accesses = Vec::new();
            for at in 0..n {
                accesses.clear();
                for (kind, all) in &lowest {
                    accesses.extend(all[at].iter().filter(|v| **v != NONE).map(|v| (*kind, *v)));
                }
                accesses.extend(more.get(&at).into_iter().flatten());
                judge.word(number * WORDS as u64 * 4 + (at * size) as u64, &accesses);
            }
        }
        partial |= judge.knowledge.is_partial() || judge.pairs >= MAX_PAIRS;
        (judge.found, partial)
    }
}

struct Judge<'a> {
    knowledge: Knowledge<'a>,
    sites: &'a HashMap<u64, Vec<Site>>,
    spans: &'a HashMap<u64, (u64, u64)>,
    pairs: usize,
    found: Option<(u64, Side, Side)>,
}

impl Judge<'_> {
    fn site(&self, v: u64) -> Option<&Site> {
        let number = (v >> 10 & 0x1FF_FFFF) as usize;
        self.sites.get(&(v >> 36)).filter(|_| spoke(v)).and_then(|sites| sites.get(number))
    }

    fn side(&self, kind: Kind, v: u64) -> Side {
        let pc = self.site(v).map_or((v >> 10) as u32 & 0x1FF_FFFF, |s| s.pc);
        Side { block: v >> 36, pc, thread: v as u32 & 0x3FF, wrote: kind.wrote(), constant: kind == Kind::Constant }
    }

    /// Whether the access `a` is ordered before `b`.
    fn ordered(&mut self, a: u64, b: u64) -> bool {
        let (Some(a_site), Some(b_site)) = (self.site(a).copied(), self.site(b).copied()) else { return false };
        let thread = a as usize & 0x3FF;
        let agent = thread / 32 + if a_site.engine { 32 } else { 0 };
        self.knowledge.covers((b >> 36, b_site.foreign), a >> 36, (agent, thread % 32, a_site.clock))
    }

    /// Whether a plain access comes after a strong one of another block because the block has itself had a strong access to
    /// the word between them: who takes the last ticket may set the counter back by a plain store (PTX ISA 8.9: what a strong
    /// read observes is before what follows the read). Only a block that began when the other had ended is surely later.
    fn settled(&self, one: (Kind, u64), two: (Kind, u64)) -> bool {
        let (plain, strong) = match (one.0.after(), two.0.after()) {
            (true, false) => (one, two),
            (false, true) => (two, one),
            _ => return false,
        };
        let span = |block: u64| self.spans.get(&block);
        strong.0.strong() && span(plain.1).zip(span(strong.1)).is_some_and(|(plain, strong)| strong.0 <= plain.1)
    }

    /// Looks at the accesses to one word or byte.
    fn word(&mut self, address: u64, accesses: &[(Kind, u64)]) {
        for (i, (kind, v)) in accesses.iter().enumerate() {
            for (other_kind, other) in &accesses[i + 1..] {
                if v >> 36 == other >> 36 || !kind.conflicts(*other_kind) || self.pairs >= MAX_PAIRS {
                    continue;
                }
                self.pairs += 1;
                let constant = *kind == Kind::Constant || *other_kind == Kind::Constant;
                let settled = self.settled((*kind, v >> 36), (*other_kind, other >> 36));
                if !constant && (settled || self.ordered(*v, *other) || self.ordered(*other, *v)) {
                    continue;
                }
                let (one, two) = (self.side(*kind, *v), self.side(*other_kind, *other));
                let (low, high) = if one.block < two.block { (one, two) } else { (two, one) };
                let key = |(address, high, low): &(u64, Side, Side)| {
                    (high.block, low.block, *address, !high.wrote, high.pc, low.pc, high.thread, low.thread)
                };
                let new = (address, high, low);
                if self.found.as_ref().is_none_or(|old| key(&new) < key(old)) {
                    self.found = Some(new);
                }
            }
        }
    }
}

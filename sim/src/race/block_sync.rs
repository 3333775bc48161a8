//! Release and acquire between blocks: flags in global memory.
//!
//! A strong write with a scope beyond the block publishes everything before it that a fence of such a scope has
//! followed (PTX ISA 8.8: release pattern). Every flag has a log of publications: an atomic update adds an entry, a
//! store starts a new log. A strong read *observes* the log as it is then. A later fence acquires it (acquire pattern),
//! with everything that the writers had acquired themselves. None of this is evaluated while blocks run. A block counts
//! its observations, and its accesses carry the count that their thread has acquired. When all blocks have ended,
//! [`BlockOrder`] follows the logs backwards.
//!
//! The log and the flag change together, under one lock, so that the log has the order of the values. Every strong
//! access happens under that lock and gets its own moment: moments order the accesses to a flag as its values were.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clock_front::Front;
use super::flags::FlagAccess;

/// Maximum number of publications of a launch. Beyond it, an observation counts as acquiring everything.
const MAX_PUBLISHED: usize = 1 << 17;
/// Flags with a log of their own; all later words share one log.
const MAX_FLAGS: usize = 1 << 16;
/// Maximum number of observations of a block. Beyond it, the block counts as having acquired everything.
const MAX_SEEN: usize = 1 << 16;
/// Maximum number of steps of [`BlockOrder`] for a launch.
const MAX_STEPS: usize = 1 << 26;

/// The key of the shared log.
const REST: u64 = u64::MAX;

/// One publication.
#[derive(Debug)]
struct Published {
    block: u64,
    front: Front,
}

/// The publications through a flag: indices into the list of all.
#[derive(Debug, Default)]
struct Log {
    list: Vec<u32>,
    /// Entries before this index were replaced by a store.
    start: u32,
    /// The block that wrote last, and where its entries at the end of the list begin.
    last: (u64, u32),
}

/// The observed part of a log; `None`: everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(Option<(u64, u32, u32)>);

#[derive(Debug, Default)]
pub(crate) struct Logs {
    published: Vec<Published>,
    flags: HashMap<u64, Log>,
    full: bool,
    /// Whether anything was published.
    any: bool,
    moment: u64,
}

impl Logs {
    /// The moment of a strong access, later than all before; `publishes`: it may publish to other blocks.
    pub(crate) fn moment(&mut self, publishes: bool) -> u64 {
        self.any |= publishes;
        self.moment += 1;
        self.moment
    }

    /// Whether any access can be published or acquired.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    fn key(&self, address: u64) -> u64 {
        let own = self.flags.len() < MAX_FLAGS || self.flags.contains_key(&address);
        if own { address } else { REST }
    }

    /// What `block` observes at a flag that other blocks wrote.
    fn seen(&self, block: u64, address: u64) -> Option<(u64, u32, u32)> {
        let key = self.key(address);
        let log = self.flags.get(&key)?;
        let end = if log.last.0 == block { log.last.1 } else { log.list.len() as u32 };
        (log.start < end).then_some((key, log.start, end))
    }

    fn write(&mut self, block: u64, address: u64, entry: Option<u32>, touch: FlagAccess) {
        let key = self.key(address);
        if entry.is_none() && (touch != FlagAccess::Store || key == REST) {
            return;
        }
        let Some(entry) = entry else {
            if let Some(log) = self.flags.get_mut(&key) {
                log.start = log.list.len() as u32;
            }
            return;
        };
        let log = self.flags.entry(key).or_default();
        if touch == FlagAccess::Store && key != REST {
            log.start = log.list.len() as u32;
        }
        // Repeating the last entry adds nothing.
        if log.list.len() as u32 == log.start || log.list.last() != Some(&entry) {
            if log.last.0 != block || log.list.is_empty() {
                log.last = (block, log.list.len() as u32);
            }
            log.list.push(entry);
        }
    }

    /// Adds an entry; `None` when there are too many.
    fn publish(&mut self, block: u64, front: Front) -> Option<u32> {
        if self.published.len() >= MAX_PUBLISHED {
            self.full = true;
            return None;
        }
        self.published.push(Published { block, front });
        u32::try_from(self.published.len() - 1).ok()
    }
}

/// The flags of a launch.
#[derive(Debug, Default)]
pub(crate) struct GridSync {
    logs: Mutex<Logs>,
}

impl GridSync {
    /// Takes the lock under which a strong access happens.
    pub(crate) fn enter(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn finish(self) -> Logs {
        self.logs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a block has published and observed.
#[derive(Debug, Default)]
pub(crate) struct BlockSync {
    pub(super) seen: Vec<Seen>,
    /// The last observation of each flag, and its number.
    latest: HashMap<u64, (u32, u32, u32)>,
    /// Everything the block published, joined.
    pub(super) published: Option<Front>,
    /// The last entry of each thread, and the change count of its warp at that time.
    entries: HashMap<u32, (u32, Option<u32>)>,
}

impl BlockSync {
    /// The number of the block's observation of a flag.
    pub(super) fn see(&mut self, logs: &Logs, block: u64, address: u64) -> Option<u32> {
        let (key, start, end) = logs.seen(block, address)?;
        match self.latest.get(&key) {
            Some(&(s, e, number)) if s <= start && end <= e => return Some(number),
            _ => {}
        }
        match self.seen.len() {
            n if n < MAX_SEEN => self.seen.push(Seen(Some((key, start, end)))),
            MAX_SEEN => self.seen.push(Seen(None)),
            _ => {}
        }
        let number = self.seen.len() as u32;
        self.latest.insert(key, (start, end, number));
        Some(number)
    }

    /// Publishes the result of `front` for a thread through a flag; the front is reused while `changes` is the same.
    pub(super) fn write(
        &mut self,
        logs: &mut Logs,
        (block, address, touch): (u64, u64, FlagAccess),
        (thread, changes): (u32, u32),
        front: impl FnOnce() -> Option<Front>,
    ) {
        let entry = match self.entries.get(&thread) {
            Some(&(then, entry)) if then == changes => entry,
            _ => {
                let entry = front().and_then(|front| {
                    self.published.get_or_insert_default().join(&front);
                    logs.publish(block, front)
                });
                self.entries.insert(thread, (changes, entry));
                entry
            }
        };
        logs.write(block, address, entry, touch);
    }
}

/// What a thread of a block has acquired from others: entries by their block. `None`: everything.
type Known = Option<HashMap<u64, Vec<u32>>>;

/// Evaluates the order between blocks, when all have ended.
pub(super) struct BlockOrder<'a> {
    logs: &'a Logs,
    seen: &'a HashMap<u64, Vec<Seen>>,
    known: HashMap<(u64, u32), Rc<Known>>,
    steps: usize,
    /// Whether observations of a block were dropped, so that it counts as having acquired everything.
    forgot: bool,
}

impl<'a> BlockOrder<'a> {
    pub(super) fn new(logs: &'a Logs, seen: &'a HashMap<u64, Vec<Seen>>) -> BlockOrder<'a> {
        BlockOrder { logs, seen, known: HashMap::new(), steps: 0, forgot: false }
    }

    /// Whether limits were exceeded, so that some races may be missed.
    pub(super) fn is_partial(&self) -> bool {
        self.forgot || self.is_exhausted()
    }

    fn is_exhausted(&self) -> bool {
        self.logs.full || self.steps >= MAX_STEPS
    }

    /// Whether the access of `lane` of `agent` of the block `of` at `clock` happens before a thread of `block` that has
    /// acquired its first `count` observations.
    pub(super) fn covers(
        &mut self,
        (block, count): (u64, u32),
        of: u64,
        (agent, lane, clock): (usize, usize, u32),
    ) -> bool {
        if count == 0 {
            return false;
        }
        if self.is_exhausted() {
            return true;
        }
        let known = match self.known.get(&(block, count)) {
            Some(known) => Rc::clone(known),
            None => {
                if self.known.len() >= 256 {
                    self.known.clear();
                }
                let known = Rc::new(self.follow(block, count));
                self.known.insert((block, count), Rc::clone(&known));
                known
            }
        };
        let Some(known) = known.as_ref() else { return true };
        let Some(entries) = known.get(&of) else { return false };
        self.steps += entries.len();
        entries.iter().any(|i| self.logs.published[*i as usize].front.covers(agent, lane, clock))
    }

    fn follow(&mut self, block: u64, count: u32) -> Known {
        let mut out: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut done: HashMap<u64, u32> = HashMap::new();
        let mut scanned: HashMap<u64, Vec<(u32, u32)>> = HashMap::new();
        let mut taken = vec![false; self.logs.published.len()];
        let mut open = vec![(block, count)];
        while let Some((block, count)) = open.pop() {
            let from = done.entry(block).or_insert(0);
            let Some(seen) = self.seen.get(&block).and_then(|s| s.get(*from as usize..count as usize)) else {
                continue;
            };
            *from = count;
            for Seen(part) in seen {
                let Some((key, start, end)) = *part else {
                    self.forgot = true;
                    return None;
                };
                let parts = scanned.entry(key).or_default();
                // Logs only grow: for a range that begins like a known one, only the rest is new.
                let mut first = start;
                for (s, e) in parts.iter() {
                    if *s <= first && first < *e {
                        first = *e;
                    }
                }
                self.steps += 1 + parts.len();
                if first >= end {
                    continue;
                }
                parts.push((start, end));
                let list = self.logs.flags.get(&key).map_or(&[][..], |log| &log.list[first as usize..end as usize]);
                self.steps += list.len();
                for entry in list {
                    if std::mem::replace(&mut taken[*entry as usize], true) {
                        continue;
                    }
                    let Published { block, front } = &self.logs.published[*entry as usize];
                    out.entry(*block).or_default().push(*entry);
                    if front.foreign > 0 {
                        open.push((*block, front.foreign));
                    }
                }
            }
            if self.steps >= MAX_STEPS {
                return None;
            }
        }
        Some(out)
    }
}

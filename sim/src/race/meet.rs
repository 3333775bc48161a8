//! How blocks learn of each other: flags in global memory.
//!
//! A strong write with a scope beyond the block publishes what its thread knows and a fence of such a scope has followed
//! (PTX ISA 8.8: release pattern). Every flag has a log of what was published through it: an atomic update adds to it, a store
//! starts it anew. A strong read has *seen* the log as it is then; after a fence the thread knows it (acquire pattern), and
//! by that all that those knew who wrote it. Nothing of this is looked at while blocks run: a block counts what it sees, its
//! accesses carry the count that their thread knows of, and when all have ended [`Knowledge`] follows the logs backwards.
//!
//! The log and the flag change together, under one lock, so that the order of the log is that of the values. Every strong access
//! happens under that lock, at a moment of its own: moments order the accesses to a flag as its values were.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::flags::Touch;
use super::front::Front;

/// What blocks of a launch can publish. Who looks for more knows everything.
const MAX_PUBLISHED: usize = 1 << 17;
/// Flags with a log of their own; of more words all that come later are one.
const MAX_FLAGS: usize = 1 << 16;
/// What a block can see. After that it knows everything.
const MAX_SEEN: usize = 1 << 16;
/// Steps that [`Knowledge`] takes in all.
const MAX_STEPS: usize = 1 << 26;

/// The key of the flags that are one.
const REST: u64 = u64::MAX;

/// What somebody published.
#[derive(Debug)]
struct Published {
    block: u64,
    front: Front,
}

/// What was published through a flag: places in the list of all.
#[derive(Debug, Default)]
struct Log {
    list: Vec<u32>,
    /// Before it are the entries that a store has replaced.
    start: u32,
    /// Who wrote last, and where that block's entries at the end of the list begin.
    last: (u64, u32),
}

/// A part of a log; `None`: everything.
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
    /// The moment of a strong access, later than all before; `publishes`: it may tell others something.
    pub(crate) fn moment(&mut self, publishes: bool) -> u64 {
        self.any |= publishes;
        self.moment += 1;
        self.moment
    }

    /// Whether anybody may learn of an access or by it.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    fn key(&self, address: u64) -> u64 {
        let own = self.flags.len() < MAX_FLAGS || self.flags.contains_key(&address);
        if own { address } else { REST }
    }

    /// What `block` sees at a flag that others wrote.
    fn seen(&self, block: u64, address: u64) -> Option<(u64, u32, u32)> {
        let key = self.key(address);
        let log = self.flags.get(&key)?;
        let end = if log.last.0 == block { log.last.1 } else { log.list.len() as u32 };
        (log.start < end).then_some((key, log.start, end))
    }

    fn write(&mut self, block: u64, address: u64, entry: Option<u32>, touch: Touch) {
        let key = self.key(address);
        if entry.is_none() && (touch != Touch::Store || key == REST) {
            return;
        }
        let Some(entry) = entry else {
            if let Some(log) = self.flags.get_mut(&key) {
                log.start = log.list.len() as u32;
            }
            return;
        };
        let log = self.flags.entry(key).or_default();
        if touch == Touch::Store && key != REST {
            log.start = log.list.len() as u32;
        }
        // The same once more says nothing new.
        if log.list.len() as u32 == log.start || log.list.last() != Some(&entry) {
            if log.last.0 != block || log.list.is_empty() {
                log.last = (block, log.list.len() as u32);
            }
            log.list.push(entry);
        }
    }

    /// A new entry; `None` when there are too many.
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
pub(crate) struct Meetings {
    logs: Mutex<Logs>,
}

impl Meetings {
    /// To be held while a strong access happens.
    pub(crate) fn enter(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn finish(self) -> Logs {
        self.logs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a block has published and seen.
#[derive(Debug, Default)]
pub(crate) struct Contacts {
    pub(super) seen: Vec<Seen>,
    /// What was last seen of each flag, and its number.
    latest: HashMap<u64, (u32, u32, u32)>,
    /// All that was published.
    pub(super) published: Option<Front>,
    /// The last entry of each thread, and after how many changes of what its warp knows.
    entries: HashMap<u32, (u32, Option<u32>)>,
}

impl Contacts {
    /// The number of what a block sees at a flag.
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

    /// Publishes through a flag what `front` gives for a thread, which is as it was while `changes` is the same.
    pub(super) fn write(
        &mut self,
        logs: &mut Logs,
        (block, address, touch): (u64, u64, Touch),
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

/// What a thread of a block knows of others: entries by their block. `None`: everything.
type Known = Option<HashMap<u64, Vec<u32>>>;

/// Answers who knew what, when all blocks have ended.
pub(super) struct Knowledge<'a> {
    logs: &'a Logs,
    seen: &'a HashMap<u64, Vec<Seen>>,
    known: HashMap<(u64, u32), Rc<Known>>,
    steps: usize,
    /// Whether a block saw more than is kept, and was taken to know everything.
    forgot: bool,
}

impl<'a> Knowledge<'a> {
    pub(super) fn new(logs: &'a Logs, seen: &'a HashMap<u64, Vec<Seen>>) -> Knowledge<'a> {
        Knowledge { logs, seen, known: HashMap::new(), steps: 0, forgot: false }
    }

    /// Whether there was more to know than is kept, so that some races may be missed.
    pub(super) fn is_partial(&self) -> bool {
        self.forgot || self.is_exhausted()
    }

    fn is_exhausted(&self) -> bool {
        self.logs.full || self.steps >= MAX_STEPS
    }

    /// Whether a thread of `block` that knows of the first `count` things it saw comes after the access of `lane` of `agent`
    /// of the block `of` at `clock`.
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
                // Logs grow: of a range that begins as a known one only the rest is new.
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

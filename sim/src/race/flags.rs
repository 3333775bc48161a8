//! Words that threads of a block use as flags: release and acquire patterns (PTX ISA 8.8).
//!
//! A word remembers what its last strong write published. An atomic update adds to it (the chain of updates is one
//! release); a store replaces it. A strong read of the word observes that, and a later fence acquires it.

use std::collections::HashMap;

use super::clock_front::Front;

/// Flags that are tracked one by one; all later words share one entry.
const MAX_FLAGS: usize = 1 << 12;

/// The key of the rest.
const REST: u64 = u64::MAX;

/// What a strong access does to a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagAccess {
    Load,
    Store,
    /// An atomic: both.
    Update,
}

#[derive(Debug, Default)]
pub(super) struct Flags {
    words: HashMap<u64, Front>,
}

impl Flags {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// What a strong read of the flag at this address observes.
    pub(super) fn seen(&self, address: u64) -> impl Iterator<Item = &Front> {
        [address, REST].into_iter().filter_map(|key| self.words.get(&key))
    }

    pub(super) fn put(&mut self, address: u64, what: Option<Front>, touch: FlagAccess) {
        let key = match self.words.len() < MAX_FLAGS || self.words.contains_key(&address) {
            true => address,
            false => REST,
        };
        match what {
            Some(what) if touch == FlagAccess::Update || key == REST => self.words.entry(key).or_default().join(&what),
            Some(what) => drop(self.words.insert(key, what)),
            None if touch == FlagAccess::Store => drop(self.words.remove(&address)),
            None => {}
        }
    }
}

//! A table of a kernel that records whether it was modified.

use cranelift_entity::{EntityRef, PrimaryMap};
use std::ops::{Deref, DerefMut};

/// A table: read and written as the map that it is.
#[derive(Clone, Debug)]
pub struct Table<K: EntityRef, V> {
    map: PrimaryMap<K, V>,
    changes: u64,
}

impl<K: EntityRef, V> Table<K, V> {
    /// An empty one.
    pub fn new() -> Table<K, V> {
        Table { map: PrimaryMap::new(), changes: 0 }
    }

    /// Adds an entry, which changes none that there are.
    pub fn push(&mut self, v: V) -> K {
        self.map.push(v)
    }

    /// How often entries were borrowed mutably.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

impl<K: EntityRef, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table::new()
    }
}

impl<K: EntityRef, V> Deref for Table<K, V> {
    type Target = PrimaryMap<K, V>;

    fn deref(&self) -> &PrimaryMap<K, V> {
        &self.map
    }
}

impl<K: EntityRef, V> DerefMut for Table<K, V> {
    fn deref_mut(&mut self) -> &mut PrimaryMap<K, V> {
        self.changes += 1;
        &mut self.map
    }
}

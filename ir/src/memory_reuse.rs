//! Which buffers share memory: `let x = smem f32[4, 32, 64] over a, b` takes the memory of `a` and `b`, whose contents end.
//!
//! A buffer is over buffers and channels that have memory of their own. Two that are over a common one share memory too, and so do those whose
//! places (`at`) have bytes in common.

use crate::entities::Value;
use crate::kernel::{Kernel, StmtData};
use crate::placement::{overlap, ranges};
use std::collections::BTreeMap;

/// The buffers of a kernel that take the memory of others.
#[derive(Clone, Debug, Default)]
pub struct Overlays {
    over: BTreeMap<Value, Vec<Value>>,
    /// The bytes of what is placed.
    placed: BTreeMap<Value, Vec<(u64, u64)>>,
}

impl Overlays {
    /// Finds them.
    pub fn of(k: &Kernel) -> Overlays {
        let mut found = Overlays::default();
        k.walk(k.body, &mut |k, _, s| {
            let StmtData::Alloc { value, over } = &k.stmts[s] else { return };
            if !over.is_empty() {
                let mut over = over.clone();
                over.sort_unstable();
                found.over.insert(*value, over);
            }
            if k.shared_places[*value].is_some() {
                found.placed.insert(*value, ranges(k, *value));
            }
        });
        found
    }

    /// The places whose memory `v` reuses, sorted; empty if it has its own memory.
    pub fn over(&self, v: Value) -> &[Value] {
        self.over.get(&v).map_or(&[], Vec::as_slice)
    }

    /// The buffers over others, with those.
    pub fn iter(&self) -> impl Iterator<Item = (Value, &[Value])> {
        self.over.iter().map(|(&v, over)| (v, over.as_slice()))
    }

    /// All other places that overlap `v` in memory.
    pub fn sharing(&self, v: Value) -> Vec<Value> {
        let mine = self.over(v);
        let mut out = mine.to_vec();
        for (w, over) in self.iter() {
            if w != v && (over.contains(&v) || over.iter().any(|o| mine.contains(o))) {
                out.push(w);
            }
        }
        if let Some(bytes) = self.placed.get(&v) {
            let others = self.placed.iter().filter(|&(&w, other)| w != v && !out.contains(&w) && overlap(bytes, other));
            let others: Vec<Value> = others.map(|(&w, _)| w).collect();
            out.extend(others);
        }
        out
    }

    /// Bytes of shared memory, of `(v, bytes)` for every buffer and channel: what is over others adds what it has more.
    pub fn total(&self, sizes: &[(Value, u64)]) -> u64 {
        let of = |v: Value| sizes.iter().find(|(w, _)| *w == v).map_or(0, |s| s.1);
        let own = sizes.iter().filter(|(v, _)| self.over(*v).is_empty()).map(|s| s.1).fold(0, u64::saturating_add);
        // Bytes past the end of what each is over; those over the same share them.
        let mut past: BTreeMap<&[Value], u64> = BTreeMap::new();
        for (v, over) in self.iter() {
            let under = over.iter().map(|&o| of(o)).fold(0, u64::saturating_add);
            let more = past.entry(over).or_default();
            *more = (*more).max(of(v).saturating_sub(under));
        }
        past.values().fold(own, |sum, &x| sum.saturating_add(x))
    }
}

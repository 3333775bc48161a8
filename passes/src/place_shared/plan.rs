//! Addresses in shared memory: each buffer, in the order of the text, gets the lowest address that is free during its
//! live range.
//!
//! An *item* is placed as a whole: a buffer, the ring of channels that are operated together, or buffers with those
//! that are over them.

use super::live_ranges::{LiveRange, Liveness, Separation};
use crate::analysis::access_width::slots_of;
use crate::tensor_copies::slot_bytes;
use std::collections::BTreeMap;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::handover::operated_alike;
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::memory_reuse::Overlays;
use tilec_ir::placement;
use tilec_ir::types::Place;

/// A buffer that a pass may turn into a channel with this number of slots.
#[derive(Copy, Clone, Debug)]
pub(crate) struct TrialChannel {
    pub(crate) value: Value,
    pub(crate) slots: u64,
    /// The statement that would contain its live range; `None`: the whole kernel.
    pub(crate) within: Option<Stmt>,
}

/// Buffers up to this size are not worth a barrier, such as partial sums that warps exchange.
const SMALL: u64 = 1024;

/// Which buffers may share bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Sharing {
    /// None, except buffers declared `over` others.
    Nothing,
    /// Buffers with disjoint live ranges, if the barrier in between is outside of loops and both are larger than
    /// [`SMALL`].
    Large,
    /// Buffers with disjoint live ranges, if the barrier in between is outside of loops.
    Once,
    /// All buffers with disjoint live ranges.
    InLoops,
}

/// Values that are placed together.
struct Item {
    /// Its members, with their offsets in the item.
    members: Vec<(Value, Place)>,
    bytes: u64,
    lives: Vec<LiveRange>,
    /// The written address, if any.
    fixed: Option<u64>,
}

/// The places of a kernel's buffers and channels.
pub(crate) struct Plan {
    pub(super) places: Vec<(Value, Place)>,
    /// Groups of values that share bytes with others, and the start of their live ranges.
    pub(super) shared: Vec<(Value, LiveRange)>,
    /// The end of the last item.
    pub(crate) bytes: u64,
}

/// A buffer that is over only a part of an item.
pub(super) struct PartialReuse(pub(super) Value);

/// Facts about a kernel's buffers that do not depend on which become channels.
pub(super) struct Buffers<'k> {
    k: &'k Kernel,
    lives: Liveness<'k>,
    overlays: Overlays,
    align: u64,
    /// Buffers in the order of the text, with their bytes.
    all: Vec<(Value, u64)>,
}

impl<'k> Buffers<'k> {
    pub(super) fn of(k: &'k Kernel) -> Buffers<'k> {
        let mut all: Vec<(Value, u64)> = Vec::new();
        let align = placement::alignment(k);
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::Alloc { value, .. } = k.stmts[s] {
                all.push((value, slot_bytes(k, value).next_multiple_of(align)));
            }
        });
        Buffers { k, lives: Liveness::of(k), overlays: Overlays::of(k), align, all }
    }
}

pub(super) struct Planner<'b> {
    k: &'b Kernel,
    buffers: &'b Buffers<'b>,
    supposed: &'b [TrialChannel],
    items: Vec<Item>,
}

impl<'b> Planner<'b> {
    pub(super) fn new(buffers: &'b Buffers<'b>, supposed: &'b [TrialChannel]) -> Result<Planner<'b>, PartialReuse> {
        let mut planner = Planner { k: buffers.k, buffers, supposed, items: Vec::new() };
        planner.collect()?;
        Ok(planner)
    }

    fn slots(&self, v: Value) -> u64 {
        match self.supposed.iter().find(|s| s.value == v) {
            Some(supposed) => supposed.slots,
            None => slots_of(self.k, v),
        }
    }

    /// Whether a value is a channel, or would become one.
    fn is_channel(&self, v: Value) -> bool {
        matches!(self.k.values[v].def, ValueDef::Channel { .. }) || self.supposed.iter().any(|s| s.value == v)
    }

    /// The live range of a value. A value without accesses is live everywhere, so that a debugger can see it.
    fn life(&self, v: Value) -> LiveRange {
        let found = match self.supposed.iter().find(|s| s.value == v) {
            Some(supposed) => supposed.within.map(|s| self.buffers.lives.whole(s)),
            None => self.buffers.lives.life(v),
        };
        let body = self.k.body;
        found.unwrap_or(LiveRange { block: body, from: 0, to: self.k.blocks[body].len().saturating_sub(1) })
    }

    fn aligned(&self, v: Value) -> u64 {
        let found = self.buffers.all.iter().find(|(w, _)| *w == v);
        found.unwrap_or_else(|| panic!("bug: `{}` is used, and declared nowhere", self.k.values[v].name)).1
    }

    /// Finds the items, in the order of the text.
    fn collect(&mut self) -> Result<(), PartialReuse> {
        let buffers: Vec<Value> = self.buffers.all.iter().map(|(v, _)| *v).collect();
        let overlays = &self.buffers.overlays;
        // Buffers that are over the same list of buffers.
        let mut above: BTreeMap<&[Value], Vec<Value>> = BTreeMap::new();
        for (v, over) in overlays.iter() {
            above.entry(over).or_default().push(v);
        }
        for &v in buffers.iter().filter(|&&v| overlays.over(v).is_empty()) {
            if self.has(v) {
                continue;
            }
            let mut sets = above.iter().filter(|(over, _)| over.contains(&v));
            let Some((&over, top)) = sets.next() else {
                let unit = self.unit(v);
                self.items.push(unit);
                continue;
            };
            let below: Vec<Value> = buffers.iter().copied().filter(|b| over.contains(b)).collect();
            if sets.next().is_some() || below.iter().any(|&b| self.has(b)) {
                return Err(PartialReuse(top[0]));
            }
            let item = self.family(&below, top, &buffers).ok_or(PartialReuse(top[0]))?;
            self.items.push(item);
        }
        Ok(())
    }

    fn has(&self, v: Value) -> bool {
        self.items.iter().any(|item| item.members.iter().any(|m| m.0 == v))
    }

    /// The item of buffers in a row, or at their written addresses, with the buffers over them; `None`: it would split
    /// a ring.
    fn family(&self, below: &[Value], top: &[Value], buffers: &[Value]) -> Option<Item> {
        let top = || top.iter().filter(|&v| buffers.contains(v));
        let written = below.iter().chain(top()).filter_map(|&v| Some(self.k.shared_places[v]?.offset)).min();
        let mut item = Item { members: Vec::new(), bytes: 0, lives: Vec::new(), fixed: written };
        let at = |unit: &Item, otherwise: u64| unit.fixed.zip(written).map_or(otherwise, |(at, start)| at - start);
        for &v in below {
            if item.members.iter().any(|m| m.0 == v) {
                continue;
            }
            let unit = self.unit(v);
            // The slots of a ring alternate, so a buffer over some of its channels would overlap the others.
            if unit.members.iter().any(|m| !below.contains(&m.0)) {
                return None;
            }
            let to = at(&unit, item.bytes);
            item.put(unit, to);
        }
        for &v in top() {
            let unit = self.unit(v);
            let to = at(&unit, 0);
            item.put(unit, to);
        }
        Some(item)
    }

    /// A buffer, or the channels that are operated together with a channel.
    fn unit(&self, v: Value) -> Item {
        let written = self.k.shared_places[v];
        if !self.is_channel(v) || written.is_some() {
            let place = Place { offset: 0, stride: written.and_then(|w| w.stride), barriers: None };
            let bytes = place.stride.map_or(0, |n| n * (self.slots(v) - 1)) + self.aligned(v);
            let fixed = written.map(|w| w.offset);
            return Item { members: vec![(v, place)], bytes, lives: vec![self.life(v)], fixed };
        }
        let channels = self.operated_alike(v);
        let stage: u64 = channels.iter().map(|&c| self.aligned(c)).sum();
        let mut item = Item { members: Vec::new(), bytes: stage * self.slots(v), lives: Vec::new(), fixed: None };
        let mut offset = 0;
        for &c in &channels {
            item.members.push((c, Place { offset, stride: Some(stage), barriers: None }));
            item.lives.push(self.life(c));
            offset += self.aligned(c);
        }
        item
    }

    /// The channels without an address that occur in exactly the same channel operations as `v`, with the same number
    /// of slots.
    fn operated_alike(&self, v: Value) -> Vec<Value> {
        let k = self.k;
        let made = |w: Value| self.supposed.iter().find(|s| s.value == w).map(|s| s.within);
        let shape = |w: Value| (self.is_channel(w) && k.shared_places[w].is_none()).then(|| (made(w), self.slots(w)));
        operated_alike(k, v, &shape)
    }

    /// Whether two items cannot have bytes in common.
    fn conflict(&self, a: &Item, b: &Item, sharing: Sharing) -> bool {
        let large = a.bytes > SMALL && b.bytes > SMALL;
        let allowed = |x: LiveRange, y: LiveRange| match self.buffers.lives.separation(x, y) {
            Separation::No => false,
            Separation::InLoop => sharing == Sharing::InLoops,
            Separation::Once => match sharing {
                Sharing::Nothing => false,
                Sharing::Large => large,
                Sharing::Once | Sharing::InLoops => true,
            },
        };
        a.lives.iter().any(|&x| b.lives.iter().any(|&y| !allowed(x, y)))
    }

    pub(super) fn plan(&self, sharing: Sharing) -> Plan {
        let mut starts: Vec<Option<u64>> = self.items.iter().map(|i| i.fixed).collect();
        for (n, item) in self.items.iter().enumerate() {
            if starts[n].is_some() {
                continue;
            }
            let taken: Vec<(u64, u64)> = self
                .items
                .iter()
                .zip(&starts)
                .filter_map(|(other, start)| Some((start.as_ref()?, other)))
                .filter(|(_, other)| self.conflict(item, other, sharing))
                .map(|(&start, other)| (start, start + other.bytes))
                .collect();
            let free = |at: u64| taken.iter().all(|&(from, to)| at + item.bytes <= from || to <= at);
            let ends = taken.iter().map(|t| t.1.next_multiple_of(self.buffers.align));
            starts[n] = std::iter::once(0).chain(ends).filter(|&at| free(at)).min();
        }
        let mut plan = Plan { places: Vec::new(), shared: Vec::new(), bytes: 0 };
        let placed = || self.items.iter().zip(&starts).filter_map(|(item, start)| Some((item, (*start)?)));
        for (item, start) in placed() {
            plan.bytes = plan.bytes.max(start + item.bytes);
            let shares = placed()
                .any(|(other, at)| !std::ptr::eq(item, other) && start < at + other.bytes && at < start + item.bytes);
            for &(v, place) in &item.members {
                plan.places.push((v, Place { offset: start + place.offset, ..place }));
                plan.shared.extend(shares.then(|| (v, self.life(v))));
            }
        }
        plan
    }
}

impl Item {
    fn put(&mut self, other: Item, at: u64) {
        self.members.extend(other.members.iter().map(|&(v, p)| (v, Place { offset: at + p.offset, ..p })));
        self.bytes = self.bytes.max(at + other.bytes);
        self.lives.extend(other.lives);
    }
}

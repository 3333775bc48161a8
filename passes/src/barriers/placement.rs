//! Placement of barriers: a forward dataflow analysis over the structured program, then the insertion.
//!
//! The state has the accesses of other threads that may be pending since the last barrier:
//!
//! * for each buffer, a read and a write;
//! * accesses to tensors that may conflict with later ones ([`Conflicts`]);
//! * for each channel, whether a slot was written, and how many slots a producer may take. *Fenced* slots were released
//!   before the last barrier. Only they may be filled without another one.
//!
//! A `wait` makes the writes to slots since the last barrier pending. Asynchronous copies count as written at the
//! `wait`, because then they have landed. Both counts of slots are lower bounds: paths that join take the minimum. Slots
//! are freed and taken in ring order, so the next slot is a fenced one while there is any.
//!
//! A barrier is placed as late as possible: directly before the statement that would otherwise race. The exception is a
//! loop that conflicts only with accesses before it: one barrier before the loop then replaces one in every iteration.
//!
//! Short loops between literals are analysed iteration by iteration. For other loops, the entry state is joined with
//! the back edge until nothing changes. Each change records one more pending access or lowers a count, so this
//! terminates. Results are kept by block and state, so nesting does not multiply the work.
//!
//! In a kernel with roles, the body of each role is analysed separately with the buffers that it uses: channels
//! synchronise by mbarriers there.
//!
//! Keeps: barriers already there.

use super::accesses::{Access, Accesses, How, Scope};
use super::global::Conflicts;
use super::hazard_kind::Kind;
use crate::analysis::access_width::slots_of;
use crate::analysis::wgmma::is_product;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tilec_ir::atomics::Combining;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::index;
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::memory_reuse::Overlays;
use tilec_ir::ordered::of_warpgroups;
use tilec_ir::tensor_store::{multiplied, tensor_store};

/// Two accesses that need a barrier between them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Hazard {
    pub(super) kind: Kind,
    /// The buffer or channel.
    pub(super) value: Value,
    /// The earlier access, if it is known.
    pub(super) earlier: Option<Stmt>,
}

/// A barrier to be placed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Placed {
    /// The statement in front of which it is.
    pub(super) before: Stmt,
    /// The reasons. Empty only if `cautious`.
    pub(super) hazards: Vec<Hazard>,
}

/// The barriers that `k` needs.
pub(super) struct Placement {
    /// In program order.
    pub(super) barriers: Vec<Placed>,
    /// Whether the analysis was given up: then there is a barrier before every statement that might need one.
    pub(super) cautious: bool,
}

/// Most statements that the analysis visits.
const WORK: u32 = 400_000;

/// Finds the barriers that `k` needs.
pub(super) fn place(k: &Kernel) -> Placement {
    let roles = super::roles::bodies(k);
    let scope = if roles.is_empty() { Scope::Block } else { Scope::Role };
    // Statements outside of roles are for all threads.
    let bodies = [vec![k.body], roles].concat();
    let accesses = Accesses::of(k, scope);
    let tensors = Conflicts::of(k);
    let mut placement = Placement { barriers: Vec::new(), cautious: false };
    let ordered: BTreeSet<Stmt> = of_warpgroups(k).into_iter().collect();
    for body in bodies {
        let ordered = ordered.clone();
        let around = Around { accesses: &accesses, tensors: &tensors, overlays: Overlays::of(k) };
        let mut analysis = Analysis { k, around, ordered, fixed: None, memo: BTreeMap::new(), work: WORK };
        match analysis.block(body, State::default()) {
            Some(result) => placement.barriers.extend(result.placed.iter().cloned()),
            None => {
                placement.barriers.extend(everywhere(k, body, &accesses, &tensors));
                placement.cautious = true;
            }
        }
    }
    placement
}

/// The hazards that there would be without one of the barriers, each with the later access: all that it resolves.
pub(super) fn without(k: &Kernel, barriers: &[Placed], omitted: Stmt) -> Vec<(Stmt, Hazard)> {
    let roles = super::roles::bodies(k);
    let scope = if roles.is_empty() { Scope::Block } else { Scope::Role };
    let (accesses, tensors) = (Accesses::of(k, scope), Conflicts::of(k));
    let fixed: BTreeSet<Stmt> = barriers.iter().map(|p| p.before).filter(|&s| s != omitted).collect();
    let mut out: Vec<(Stmt, Hazard)> = Vec::new();
    for body in [vec![k.body], roles].concat() {
        let around = Around { accesses: &accesses, tensors: &tensors, overlays: Overlays::of(k) };
        let fixed = Some(fixed.clone());
        let mut analysis = Analysis { k, around, ordered: BTreeSet::new(), fixed, memo: BTreeMap::new(), work: WORK };
        let Some(found) = analysis.block(body, State::default()) else { continue };
        for p in &found.placed {
            for &h in &p.hazards {
                if !out.iter().any(|(_, old)| (old.value, old.kind) == (h.value, h.kind)) {
                    out.push((p.before, h));
                }
            }
        }
    }
    out
}

/// Puts the barriers into the program.
pub(super) fn insert(k: &mut Kernel, barriers: &[Placed]) {
    let before: BTreeSet<Stmt> = barriers.iter().map(|p| p.before).collect();
    let blocks: Vec<Block> = k.blocks.keys().collect();
    for b in blocks {
        let mut list = Vec::with_capacity(k.blocks[b].len() + 1);
        for s in std::mem::take(&mut k.blocks[b]) {
            if before.contains(&s) {
                let span = k.stmt_spans[s];
                list.push(k.stmt(StmtData::Barrier, span));
            }
            list.push(s);
        }
        k.blocks[b] = list;
    }
}

/// The cautious placement: a barrier before every statement that accesses shared memory or acquires a slot, or may
/// conflict with others in a tensor.
fn everywhere(k: &Kernel, body: Block, accesses: &Accesses, tensors: &Conflicts) -> Vec<Placed> {
    let (ordered, mut inside) = (of_warpgroups(k), Vec::new());
    for &s in &ordered {
        k.sub_blocks(s).into_iter().for_each(|b| k.walk(b, &mut |_, _, t| inside.push(t)));
    }
    let mut out = Vec::new();
    k.walk(body, &mut |k, _, s| {
        if ordered.contains(&s) {
            out.push(Placed { before: s, hazards: Vec::new() });
        }
        if inside.contains(&s) {
            return;
        }
        let takes =
            accesses.scope == Scope::Block && matches!(k.stmts[s], StmtData::Channel { op: ChannelOp::Acquire, .. });
        if takes || !accesses.of_stmt(s).is_empty() || tensors.is_later(s) {
            out.push(Placed { before: s, hazards: Vec::new() });
        }
    });
    out
}

/// Accesses since the last barrier, each with a statement for the remark.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Pending {
    read: Option<Stmt>,
    write: Option<Stmt>,
    /// Atomic operations, all by one operator: those by another one are writes.
    combined: Option<(Combining, Stmt)>,
}

impl Pending {
    fn join(&mut self, other: Pending) {
        self.read = self.read.or(other.read);
        self.write = self.write.or(other.write);
        if let Some((op, s)) = other.combined {
            self.note(How::Combine(op), s);
        }
    }

    fn hazards(self, value: Value, how: How, out: &mut Vec<Hazard>) {
        let combined = |by: Option<Combining>| self.combined.filter(|&(op, _)| by != Some(op)).map(|(_, s)| s);
        let mut push = |kind, earlier: Option<Stmt>| {
            let hazard = Hazard { kind, value, earlier };
            if earlier.is_some() && !out.contains(&hazard) {
                out.push(hazard);
            }
        };
        match how {
            How::Read => push(Kind::ReadAfterWrite, self.write.or(combined(None))),
            How::Write => {
                push(Kind::WriteAfterRead, self.read);
                push(Kind::WriteAfterWrite, self.write.or(combined(None)));
            }
            How::Combine(op) => {
                push(Kind::WriteAfterRead, self.read);
                push(Kind::ReadAfterWrite, self.write.or(combined(Some(op))));
            }
        }
    }

    fn note(&mut self, how: How, s: Stmt) {
        match how {
            How::Read => {
                self.read.get_or_insert(s);
            }
            How::Write => {
                self.write.get_or_insert(s);
            }
            How::Combine(op) => {
                let &mut (first, _) = self.combined.get_or_insert((op, s));
                if first != op {
                    self.write.get_or_insert(s);
                }
            }
        }
    }
}

/// The state of a channel since the last barrier.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ring {
    slots: u64,
    /// Lower bound of the number of free slots.
    free: u64,
    /// Lower bound of the slots, next in ring order, that were free at the last barrier.
    fenced: u64,
    /// A slot was written.
    filled: Option<Stmt>,
    /// Asynchronous copies that fill slots; these count as written when they are waited for.
    flying: Option<Stmt>,
    /// A slot was returned.
    released: Option<Stmt>,
    /// Accesses to the acquired slot.
    put: Pending,
    /// Accesses to the waited slot.
    get: Pending,
}

impl Ring {
    fn fence(&mut self) {
        *self = Ring {
            fenced: self.free,
            filled: None,
            released: None,
            put: Pending::default(),
            get: Pending::default(),
            ..*self
        };
    }

    fn join(&mut self, other: &Ring) {
        self.free = self.free.min(other.free);
        self.fenced = self.fenced.min(other.fenced);
        self.filled = self.filled.or(other.filled);
        self.flying = self.flying.or(other.flying);
        self.released = self.released.or(other.released);
        self.put.join(other.put);
        self.get.join(other.get);
    }
}

/// The pending accesses since the last barrier. A buffer or channel that is absent was not allocated on any path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct State {
    buffers: BTreeMap<Value, Pending>,
    rings: BTreeMap<Value, Ring>,
    /// Statements since the last barrier that may conflict with later ones in a tensor.
    tensors: BTreeSet<Stmt>,
    /// Buffers that a pending TMA store may read; no barrier ends this.
    storing: BTreeMap<Value, Stmt>,
    /// Buffers that a pending wgmma may read: the product, and the number of products issued after it.
    multiplying: BTreeMap<Value, (Stmt, u32)>,
}

impl State {
    fn fence(&mut self) {
        self.buffers.clear();
        self.tensors.clear();
        self.rings.values_mut().for_each(Ring::fence);
    }

    fn join(&mut self, other: &State) {
        for (&v, &p) in &other.buffers {
            self.buffers.entry(v).or_default().join(p);
        }
        for (&v, r) in &other.rings {
            self.rings.entry(v).or_insert_with(|| r.clone()).join(r);
        }
        self.tensors.extend(&other.tensors);
        for (&v, &s) in &other.storing {
            self.storing.entry(v).or_insert(s);
        }
        for (&v, &(s, behind)) in &other.multiplying {
            let own = self.multiplying.entry(v).or_insert((s, behind));
            own.1 = own.1.min(behind);
        }
    }

    fn pending(&self, a: Access) -> Pending {
        match a.slot {
            None => self.buffers.get(&a.value).copied().unwrap_or_default(),
            Some(slot) => self.rings.get(&a.value).map_or(Pending::default(), |r| match slot {
                Slot::Put => r.put,
                Slot::Get => r.get,
            }),
        }
    }

    /// The hazards that need a barrier before `s`.
    fn hazards(&self, k: &Kernel, around: &Around<'_>, s: Stmt) -> Vec<Hazard> {
        let mut out = Vec::new();
        for &a in around.accesses.of_stmt(s) {
            self.pending(a).hazards(a.value, a.how, &mut out);
        }
        for &earlier in &self.tensors {
            let met = around.tensors.between(earlier, s).iter();
            out.extend(met.map(|&(value, kind)| Hazard { kind, value, earlier: Some(earlier) }));
        }
        if let StmtData::Channel { op, channels, .. } = &k.stmts[s] {
            for &value in channels {
                // The proof refuses uses in front of declarations; channels between roles synchronise by mbarriers.
                let Some(ring) = self.rings.get(&value) else { continue };
                match op {
                    ChannelOp::Acquire if ring.fenced == 0 => {
                        out.push(Hazard { kind: Kind::WriteAfterRead, value, earlier: ring.released });
                    }
                    _ => {}
                }
            }
        }
        out
    }

    /// The effect of a statement without blocks.
    fn step(&mut self, k: &Kernel, around: &Around<'_>, s: Stmt) {
        self.tensors.extend(around.tensors.is_earlier(s).then_some(s));
        for a in around.accesses.of_stmt(s) {
            match a.slot {
                None => self.buffers.entry(a.value).or_default().note(a.how, s),
                Some(slot) => {
                    let Some(ring) = self.rings.get_mut(&a.value) else { continue };
                    match slot {
                        Slot::Put => ring.put.note(a.how, s),
                        Slot::Get => ring.get.note(a.how, s),
                    }
                    match (a.how != How::Read, a.flying) {
                        (true, true) => {
                            ring.flying.get_or_insert(s);
                        }
                        (true, false) => {
                            ring.filled.get_or_insert(s);
                        }
                        (false, _) => {}
                    }
                }
            }
        }
        if let Some((buffer, _)) = tensor_store(k, s) {
            self.storing.insert(buffer, s);
        }
        self.multiply(k, s);
        match &k.stmts[s] {
            StmtData::Barrier | StmtData::Signal { .. } => self.fence(),
            // The awaiting thread knows that the buffer has been read; the others know it after a barrier.
            StmtData::Await { value, pending, .. } if matches!(k.values[*value].def, ValueDef::Smem(_)) => {
                for (&v, &store) in &self.storing {
                    self.buffers.entry(v).or_default().note(How::Read, store);
                }
                if *pending == 0 {
                    self.storing.clear();
                }
            }
            StmtData::Alloc { value, .. } => self.alloc(k, &around.overlays, *value),
            StmtData::Channel { op, channels, .. } => {
                for v in channels {
                    let Some(ring) = self.rings.get_mut(v) else { continue };
                    match op {
                        ChannelOp::Acquire => {
                            ring.free = ring.free.saturating_sub(1);
                            ring.fenced = ring.fenced.saturating_sub(1);
                            ring.put = Pending::default();
                        }
                        ChannelOp::Release => {
                            ring.free = ring.slots.min(ring.free + 1);
                            ring.released.get_or_insert(s);
                            // The next slot, which may have been waited for already.
                            ring.get = Pending { write: ring.filled, ..Pending::default() };
                        }
                        ChannelOp::Wait => {
                            ring.filled = ring.filled.or(ring.flying);
                            ring.get.write = ring.get.write.or(ring.filled);
                        }
                        ChannelOp::Publish => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// The effect of products and of `await`s for their sums on the buffers that products read. Until a thread waits,
    /// its product may still read; other threads know that it has read after the next barrier.
    fn multiply(&mut self, k: &Kernel, s: Stmt) {
        if is_product(k, s) {
            self.multiplying.values_mut().for_each(|(_, behind)| *behind = behind.saturating_add(1));
            self.multiplying.extend(multiplied(k, s).into_iter().map(|v| (v, (s, 0))));
        }
        if let StmtData::Await { value, pending, .. } = k.stmts[s]
            && !matches!(k.values[value].def, ValueDef::Smem(_))
        {
            let done = |&(_, (_, behind)): &(&Value, &(Stmt, u32))| *behind >= pending;
            for (&v, &(product, _)) in self.multiplying.iter().filter(done) {
                self.buffers.entry(v).or_default().note(How::Read, product);
            }
            self.multiplying.retain(|_, (_, behind)| *behind < pending);
        }
    }

    fn alloc(&mut self, k: &Kernel, overlays: &Overlays, value: Value) {
        // Buffers in the same memory end here, and their pending accesses apply to this one.
        let mut past = Pending::default();
        for other in overlays.sharing(value) {
            past.join(self.buffers.remove(&other).unwrap_or_default());
            if let Some(ring) = self.rings.remove(&other) {
                past.join(ring.put);
                past.join(ring.get);
                past.join(Pending { read: ring.released, write: ring.filled, combined: None });
            }
        }
        if past != Pending::default() && matches!(k.values[value].def, ValueDef::Smem(_)) {
            self.buffers.entry(value).or_default().join(past);
        }
        if !matches!(k.values[value].def, ValueDef::Channel { .. }) {
            return;
        }
        let slots = slots_of(k, value);
        let pending = Pending::default();
        let fresh = Ring {
            slots,
            free: slots,
            fenced: slots,
            filled: None,
            flying: None,
            released: None,
            put: pending,
            get: pending,
        };
        // A channel that is allocated again in a loop has the same memory: pending accesses still count.
        self.rings
            .entry(value)
            .and_modify(|r| {
                *r = Ring { fenced: 0, filled: r.filled, flying: r.flying, released: r.released, ..fresh.clone() };
            })
            .or_insert(fresh);
        let earlier = past.read.or(past.write).or(past.combined.map(|(_, s)| s));
        if let (Some(earlier), Some(ring)) = (earlier, self.rings.get_mut(&value)) {
            ring.fenced = 0;
            ring.released.get_or_insert(earlier);
        }
    }
}

/// The effect of a block on a state.
struct Outcome {
    exit: State,
    placed: Vec<Placed>,
}

/// Facts about a kernel's statements and buffers.
struct Around<'k> {
    accesses: &'k Accesses,
    tensors: &'k Conflicts,
    overlays: Overlays,
}

struct Analysis<'k> {
    k: &'k Kernel,
    around: Around<'k>,
    /// `ordered` statements of warpgroups: a warpgroup that waits for its turn would miss a barrier inside, so barriers
    /// go in front.
    ordered: BTreeSet<Stmt>,
    /// Where barriers are already: hazards are only noted, and no others are placed.
    fixed: Option<BTreeSet<Stmt>>,
    memo: BTreeMap<(Block, State), Rc<Outcome>>,
    work: u32,
}

impl Analysis<'_> {
    /// `None`: out of work.
    fn block(&mut self, block: Block, entry: State) -> Option<Rc<Outcome>> {
        let key = (block, entry);
        if let Some(known) = self.memo.get(&key) {
            return Some(known.clone());
        }
        let mut state = key.1.clone();
        let mut placed = Vec::new();
        for &s in &self.k.blocks[block] {
            self.work = self.work.checked_sub(1)?;
            let hazards = state.hazards(self.k, &self.around, s);
            match &self.fixed {
                Some(fixed) if fixed.contains(&s) => state.fence(),
                _ if hazards.is_empty() => {}
                Some(_) => placed.push(Placed { before: s, hazards }),
                None => {
                    state.fence();
                    placed.push(Placed { before: s, hazards });
                }
            }
            match &self.k.stmts[s] {
                StmtData::For { body, .. } => {
                    state.step(self.k, &self.around, s);
                    let result = self.loop_(s, *body, state)?;
                    placed.extend(result.placed);
                    state = result.exit;
                }
                StmtData::If { then, otherwise, .. } => {
                    state.step(self.k, &self.around, s);
                    let then = self.block(*then, state.clone())?;
                    placed.extend(then.placed.iter().cloned());
                    if let Some(otherwise) = otherwise {
                        let result = self.block(*otherwise, state)?;
                        placed.extend(result.placed.iter().cloned());
                        state = result.exit.clone();
                    }
                    state.join(&then.exit);
                }
                StmtData::Ordered { body } => {
                    let mut result = self.block(*body, state.clone())?;
                    if self.ordered.contains(&s) && !result.placed.is_empty() {
                        let hazards = result.placed.iter().flat_map(|p| p.hazards.clone()).collect();
                        state.fence();
                        placed.push(Placed { before: s, hazards });
                        result = self.block(*body, state)?;
                    }
                    placed.extend(result.placed.iter().cloned());
                    state = result.exit.clone();
                }
                StmtData::Role { .. } => {}
                _ => state.step(self.k, &self.around, s),
            }
        }
        let outcome = Rc::new(Outcome { exit: state, placed });
        self.memo.insert(key, outcome.clone());
        Some(outcome)
    }

    /// A loop, with a barrier in front of it if that saves barriers inside.
    fn loop_(&mut self, s: Stmt, body: Block, entry: State) -> Option<Outcome> {
        let lazy = self.fixpoint(s, body, entry.clone())?;
        if lazy.placed.is_empty() || self.fixed.is_some() {
            return Some(lazy);
        }
        let mut clean = entry;
        clean.fence();
        let mut early = self.fixpoint(s, body, clean)?;
        if early.placed.len() >= lazy.placed.len() {
            return Some(lazy);
        }
        let inside = |h: &Hazard| early.placed.iter().any(|p| p.hazards.contains(h));
        let mut hazards = Vec::new();
        for h in lazy.placed.iter().flat_map(|p| &p.hazards) {
            if !inside(h) && !hazards.contains(h) {
                hazards.push(*h);
            }
        }
        early.placed.insert(0, Placed { before: s, hazards });
        Some(early)
    }

    fn fixpoint(&mut self, s: Stmt, body: Block, entry: State) -> Option<Outcome> {
        match literal_trips(self.k, s) {
            Some(n) if n <= MAX_COPIES => self.copies(body, entry, n),
            _ => self.any_number(s, body, entry),
        }
    }

    /// A loop with `n` iterations. A barrier that one iteration needs is in all iterations: barriers only remove
    /// pending accesses.
    fn copies(&mut self, body: Block, entry: State, n: u64) -> Option<Outcome> {
        let mut total = Outcome { exit: entry, placed: Vec::new() };
        for _ in 0..n {
            let result = self.block(body, total.exit)?;
            total.exit = result.exit.clone();
            for p in &result.placed {
                match total.placed.iter_mut().find(|q| q.before == p.before) {
                    Some(q) => {
                        let new: Vec<Hazard> = p.hazards.iter().filter(|h| !q.hazards.contains(h)).copied().collect();
                        q.hazards.extend(new);
                    }
                    None => total.placed.push(p.clone()),
                }
            }
        }
        Some(total)
    }

    fn any_number(&mut self, s: Stmt, body: Block, entry: State) -> Option<Outcome> {
        let mut head = entry;
        loop {
            let result = self.block(body, head.clone())?;
            let mut joined = head.clone();
            joined.join(&result.exit);
            if joined == head {
                let exit = if runs(self.k, s) { result.exit.clone() } else { head };
                return Some(Outcome { exit, placed: result.placed.clone() });
            }
            head = joined;
        }
    }
}

/// Most iterations of loops between literals that are analysed one by one.
const MAX_COPIES: u64 = 16;

/// The number of iterations of a loop between literals.
fn literal_trips(k: &Kernel, s: Stmt) -> Option<u64> {
    let StmtData::For { start, end, step, cond: None, .. } = k.stmts[s] else { return None };
    index::trips(k.as_int(start)?, k.as_int(end)?, k.as_int(step)?)
}

/// Whether a loop has at least one iteration: it is between literals, or from 0 to a size.
fn runs(k: &Kernel, s: Stmt) -> bool {
    let StmtData::For { start, end, cond: None, .. } = k.stmts[s] else { return false };
    let sized = matches!(k.exprs[end], ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Size));
    literal_trips(k, s).is_some_and(|n| n > 0) || (sized && k.as_int(start).is_some_and(|x| x <= 0))
}

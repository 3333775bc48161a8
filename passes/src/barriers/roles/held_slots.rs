//! The slots that a role holds and its pending products, statement by statement.

use super::super::disjoint::exclusive_statements;
use crate::analysis::uses::{for_each_ref, stmt_exprs};
use crate::barriers::prove::uses::slot_uses;
use crate::barriers::roles::messages::{ended, fault, slots, took};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::typing::resolve_view;

/// The slots that a role holds in front of each channel operation; faults go to `found`.
pub(super) fn walk(k: &Kernel, body: Block, found: &mut Vec<Diagnostic>) -> BTreeMap<Stmt, Counts> {
    let left = |s: &StmtData| match s {
        StmtData::Await { pending, .. } => *pending as usize,
        _ => 0,
    };
    let told_apart = 1 + k.statement_data().map(left).max().unwrap_or(0);
    let mut walk = Walk { k, told_apart, state: State::default(), counts: BTreeMap::new(), found };
    walk.block(body);
    let State { held, pending, .. } = std::mem::take(&mut walk.state);
    for ((value, slot), held) in held {
        let Some(&s) = held.front() else { continue };
        let message = format!("a slot of {} is {} and never {}", walk.name(value), took(slot), ended(slot));
        walk.say(s, message);
    }
    if let Some(product) = pending.iter().flatten().next() {
        walk.say(product.stmt, "products are still pending at the end of the role".to_owned());
    }
    walk.counts
}

/// A wgmma product that has not been awaited.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pending {
    stmt: Stmt,
    acc: Value,
    /// The register tile that is its operand, if any.
    fragment: Option<Value>,
    /// Channels whose slots it reads, and for each the number of older slots that are held.
    slots: Vec<(Value, usize)>,
}

impl Pending {
    /// Whether it has the same effects as another product.
    fn alike(&self, other: &Pending) -> bool {
        (self.acc, self.fragment, &self.slots) == (other.acc, other.fragment, &other.slots)
    }
}

/// Numbers of held slots.
pub(super) type Counts = BTreeMap<(Value, Slot), usize>;

/// What a role holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct State {
    /// Held slots, with the statements that took them, oldest first; never empty.
    held: BTreeMap<(Value, Slot), VecDeque<Stmt>>,
    /// Pending products, oldest first. Each entry has the possible products of different paths; only their number
    /// matters for `await`. The first of [`Walk::told_apart`] entries also has all older ones.
    pending: VecDeque<Vec<Pending>>,
    /// TMA and asynchronous copies into the slot that is being filled, by channel.
    copied: BTreeMap<Value, Vec<Stmt>>,
}

impl State {
    fn counts(&self) -> Counts {
        self.held.iter().map(|(&of, held)| (of, held.len())).collect()
    }

    /// Joins the pending products and copies of another path.
    fn join(&mut self, other: State) {
        while self.pending.len() < other.pending.len() {
            self.pending.push_front(Vec::new());
        }
        for (own, others) in self.pending.iter_mut().rev().zip(other.pending.into_iter().rev()) {
            add(own, others);
        }
        for (v, stmts) in other.copied {
            let copied = self.copied.entry(v).or_default();
            copied.extend(stmts.into_iter().filter(|s| !copied.contains(s)).collect::<Vec<_>>());
        }
    }
}

/// Adds products to others, unless one with the same effects is among these.
fn add(own: &mut Vec<Pending>, others: Vec<Pending>) {
    for product in others {
        if !own.iter().any(|p| p.alike(&product)) {
            own.push(product);
        }
    }
}

struct Walk<'a> {
    k: &'a Kernel,
    /// One more than any `await` leaves pending: older products are awaited together.
    told_apart: usize,
    state: State,
    /// The slots that are held in front of each channel operation.
    counts: BTreeMap<Stmt, Counts>,
    found: &'a mut Vec<Diagnostic>,
}

impl Walk<'_> {
    fn say(&mut self, s: Stmt, message: String) {
        let diagnostic = fault(self.k, s, message);
        let known = |d: &Diagnostic| d.message == diagnostic.message && d.span == diagnostic.span;
        if !self.found.iter().any(known) {
            self.found.push(diagnostic);
        }
    }

    fn name(&self, v: Value) -> String {
        format!("`{}`", self.k.values[v].name)
    }

    fn block(&mut self, block: Block) {
        for s in self.k.blocks[block].clone() {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: Stmt) {
        match &self.k.stmts[s] {
            StmtData::Channel { op, channels, .. } => {
                self.counts.insert(s, self.state.counts());
                for &v in channels {
                    self.channel(s, *op, v);
                }
            }
            StmtData::Await { value, pending, .. } if !matches!(self.k.values[*value].def, ValueDef::Smem(_)) => {
                while self.state.pending.len() > *pending as usize {
                    self.state.pending.pop_front();
                }
            }
            StmtData::Ordered { body } => self.block(*body),
            StmtData::For { body, .. } => {
                self.uses(s);
                self.repeat(s, *body);
            }
            StmtData::If { then, otherwise, .. } => {
                self.uses(s);
                let before = self.state.clone();
                self.block(*then);
                let after = std::mem::replace(&mut self.state, before);
                if let Some(b) = otherwise {
                    self.block(*b);
                }
                if after.counts() != self.state.counts() {
                    self.say(s, "the branches leave channels in different states".to_owned());
                }
                self.state.join(after);
            }
            _ => self.uses(s),
        }
    }

    /// Repeats the body of a loop until the entry state no longer changes. The loop may also have no iteration.
    fn repeat(&mut self, s: Stmt, body: Block) {
        loop {
            let entry = self.state.clone();
            self.block(body);
            if self.state.counts() != entry.counts() {
                let message = self.unbalanced(&entry.counts());
                return self.say(s, message);
            }
            let mut met = entry.clone();
            met.join(std::mem::take(&mut self.state));
            // The order in which slots were taken does not matter.
            self.state = met;
            if self.state.pending == entry.pending && self.state.copied == entry.copied {
                return;
            }
        }
    }

    /// The difference between held slots and those at the start of an iteration, `before`.
    fn unbalanced(&self, before: &Counts) -> String {
        let after = self.state.counts();
        let held = |counts: &Counts, of| counts.get(&of).copied().unwrap_or(0);
        let &(v, slot) = before
            .keys()
            .chain(after.keys())
            .find(|&&of| held(before, of) != held(&after, of))
            .expect("bug: counts that differ do so at some channel");
        let name = self.name(v);
        let more = held(&after, (v, slot)) > held(before, (v, slot));
        match (slot, more) {
            (Slot::Put, true) => format!("an iteration must `publish` every slot of {name} that it acquires"),
            (Slot::Put, false) => format!("an iteration must `acquire` every slot of {name} that it publishes"),
            (Slot::Get, true) => format!("an iteration must `release` every slot of {name} that it waits for"),
            (Slot::Get, false) => format!("an iteration must `wait` for every slot of {name} that it releases"),
        }
    }

    fn channel(&mut self, s: Stmt, op: ChannelOp, v: Value) {
        let slot = match op {
            ChannelOp::Acquire | ChannelOp::Publish => Slot::Put,
            ChannelOp::Wait | ChannelOp::Release => Slot::Get,
        };
        let name = self.name(v);
        if slot == Slot::Put {
            self.state.copied.remove(&v);
        }
        match op {
            ChannelOp::Acquire | ChannelOp::Wait => {
                let held = self.state.held.entry((v, slot)).or_default();
                let before = held.len();
                held.push_back(s);
                match slot {
                    Slot::Put if before > 0 => {
                        self.say(s, format!("a slot of {name} is {} while another is", took(slot)));
                    }
                    Slot::Get if before > 0 && slots(self.k, v).is_some_and(|slots| before >= slots) => {
                        self.say(
                            s,
                            format!("this waits forever (deadlock): all slots of {name} are held already, {before}"),
                        );
                    }
                    _ => {}
                }
            }
            ChannelOp::Publish | ChannelOp::Release => {
                let held = self.state.held.get_mut(&(v, slot));
                let left = held.map(|held| {
                    held.pop_front();
                    held.len()
                });
                match left {
                    None => self.say(s, format!("no slot of {name} is {} here", took(slot))),
                    Some(0) => drop(self.state.held.remove(&(v, slot))),
                    Some(_) => {}
                }
                let mut reader = None;
                for product in self.state.pending.iter_mut().flatten() {
                    for (_, older) in product.slots.iter_mut().filter(|(of, _)| slot == Slot::Get && *of == v) {
                        match older.checked_sub(1) {
                            Some(less) => *older = less,
                            None => reader = reader.or(Some(product.acc)),
                        }
                    }
                }
                if let Some(acc) = reader {
                    let message = format!(
                        "a slot of {name} is released while products read it: {} is not awaited",
                        self.name(acc)
                    );
                    self.say(s, message);
                }
            }
        }
    }

    /// Checks slots and accumulators that a statement itself accesses.
    fn uses(&mut self, s: Stmt) {
        let used = slot_uses(self.k, s);
        for &(value, slot) in &used {
            if !self.state.held.contains_key(&(value, slot)) {
                let message = format!("a slot of {} is used that is not {}", self.name(value), took(slot));
                self.say(s, message);
            }
        }
        self.copies(s, &used);
        let product = asynchronous(self.k, s, &self.state.counts());
        let mut touched = Vec::new();
        for e in stmt_exprs(self.k, s) {
            for_each_ref(self.k, e, &mut |v| touched.push(v));
        }
        touched.extend(match self.k.stmts[s] {
            StmtData::Assign { dst, .. } => Some(dst),
            StmtData::Var { value, .. } => Some(value),
            _ => None,
        });
        // A product may follow another one on the same accumulator, because the hardware runs them in order. Several
        // may read the same registers.
        let own = product.as_ref().map(|p| p.acc);
        let shared = product.as_ref().and_then(|p| p.fragment);
        let mut early = None;
        for p in self.state.pending.iter().flatten() {
            if touched.contains(&p.acc) && own != Some(p.acc) {
                early = early.or(Some((p.acc, "products that add to it")));
            }
            if let Some(v) = p.fragment.filter(|v| touched.contains(v) && shared != Some(*v)) {
                early = early.or(Some((v, "products that read it")));
            }
        }
        if let Some((v, which)) = early {
            self.say(s, format!("{} is used while {which} are pending", self.name(v)));
        }
        self.state.pending.extend(product.map(|p| vec![p]));
        while self.state.pending.len() > self.told_apart
            && let Some(oldest) = self.state.pending.pop_front()
            && let Some(older) = self.state.pending.front_mut()
        {
            add(older, oldest);
        }
    }

    /// Checks that one TMA or asynchronous copy fills a slot, and that the producer does not access the slot meanwhile:
    /// of two copies, the last to land is unknown, and each fills the whole slot.
    fn copies(&mut self, s: Stmt, used: &[(Value, Slot)]) {
        let k = self.k;
        let (filled, on_its_way) = match &k.stmts[s] {
            StmtData::Copy { dst, attrs, .. } => {
                let view = resolve_view(k, *dst).filter(|v| matches!(k.values[v.base].def, ValueDef::Channel { .. }));
                (view.map(|v| v.base), attrs.lands_later())
            }
            _ => (None, false),
        };
        let put = used.iter().filter(|(_, slot)| *slot == Slot::Put).map(|&(v, _)| v);
        for v in put.chain(filled).collect::<BTreeSet<Value>>() {
            let copied = self.state.copied.get(&v).map_or(&[][..], Vec::as_slice);
            let Some(other) = copied.iter().copied().find(|&other| !exclusive_statements(k, other, s)) else {
                continue;
            };
            let kind = match k.stmts[other] {
                StmtData::Copy { ref attrs, .. } if attrs.is_tensor() => "a TMA copy",
                _ => "an asynchronous copy",
            };
            let (again, note) = if filled == Some(v) {
                let note = "fill a slot once between `acquire` and `publish`, and take another for another tile";
                ("filled again", note)
            } else {
                ("read", "a thread that waits for the slot reads it")
            };
            let message = format!("a slot of {} is {again} while {kind} into it is in flight", self.name(v));
            let place = if other == s { "in the iteration before, too" } else { "first filled here" };
            let d = Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message)
                .with_place(k.stmt_spans[other], place)
                .with_note(format!("nothing orders the two: {note}"));
            if !self.found.iter().any(|f| f.message == d.message && f.span == d.span) {
                self.found.push(d);
            }
        }
        if let Some(v) = filled.filter(|_| on_its_way) {
            self.state.copied.entry(v).or_default().push(s);
        }
    }
}

/// The wgmma product that a statement issues, while these slots are held.
fn asynchronous(k: &Kernel, s: Stmt, held: &Counts) -> Option<Pending> {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
    let ExprData::Mma(mma) = k.exprs[src] else { return None };
    mma.atom.filter(|a| a.row().asynchronous())?;
    let read = [mma.a, mma.b].into_iter().filter_map(|e| resolve_view(k, e)).map(|v| v.base);
    let (fragments, slots): (Vec<Value>, Vec<Value>) = read.partition(|&v| matches!(k.values[v].def, ValueDef::Var(_)));
    let older = |v| held.get(&(v, Slot::Get)).map_or(0, |n| n - 1);
    let slots = slots.into_iter().map(|v| (v, older(v))).collect();
    Some(Pending { stmt: s, acc: dst, fragment: fragments.first().copied(), slots })
}

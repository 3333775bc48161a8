//! That roles use their channels in order, for every trip count.
//!
//! Roles synchronise through channels alone, so the proof is about the order of channel operations in each of them:
//!
//! 1. A channel is filled by one role and emptied by another, and by nobody else.
//! 2. Each role takes a slot (`acquire`, `wait`), uses it, and gives it back (`publish`, `release`), in turns: it holds as many at the
//!    start of an iteration as at its end, and none at its own end. `.put` is touched between `acquire` and
//!    `publish` alone, `.get` between `wait` and `release`. One slot of a channel is filled at a time; of those that are waited for a role may hold
//!    several, up to all: `.get` is the one waited for last, and `release` gives back the oldest.
//! 3. Both roles walk through the same loops, with the same bounds, past the same operations in the same order: every slot
//!    that is published is waited for. What is read of a slot was put into it. No role waits for a slot of one channel while the other
//!    waits to fill one of another: of a channel whose slot is taken to be filled before that one is published, not all are held.
//! 4. Which role waits for which has no cycle, so the first in that order never waits for ever.
//! 5. Products of warpgroups read slots and write their accumulator until they are awaited: no slot that one reads is released, and no
//!    accumulator read or written by something else, before. At the end of a role none is pending.
//! 6. Where blocks of a cluster fill slots for one another (`multicast`), the loops and branches around channel operations are the same
//!    in all of them.
//! 7. A buffer is used by one role alone, whose barriers order what its threads do to it.
//!
//! A slot is filled anew only when it was released (the barriers see to that), so 2 and 5 leave no race over slots. Of 7, that there are
//! barriers enough is the proof for a block of threads ([`prove_role`]).

use super::apart::apart;
use super::prove::{buffer_uses, prove_role, slot_uses, tensor_uses};
use crate::analysis::uses::stmt_exprs;
use crate::rewrite::same_expr;
use std::collections::{BTreeMap, VecDeque};
use tilec_ir::cluster::{self, Uniform};
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::typing::{let_init, resolve_view};

/// The bodies of a kernel's roles.
pub(super) fn bodies(k: &Kernel) -> Vec<Block> {
    k.blocks[k.body]
        .iter()
        .filter_map(|&s| match k.stmts[s] {
            StmtData::Role { body, .. } => Some(body),
            _ => None,
        })
        .collect()
}

/// What is wrong with the channels and buffers of a kernel with roles.
pub(super) fn check(k: &Kernel) -> Vec<Diagnostic> {
    let roles: Vec<(Stmt, Block)> = k.blocks[k.body]
        .iter()
        .filter_map(|&s| match k.stmts[s] {
            StmtData::Role { body, .. } => Some((s, body)),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    let mut walks = Vec::new();
    for &(_, body) in &roles {
        let mut walk = Walk { k, state: State::default(), counts: BTreeMap::new(), found: &mut found };
        walk.block(body);
        let (left, counts) = (walk.state, walk.counts);
        for (&(value, slot), held) in &left.held {
            let Some(&s) = held.front() else { continue };
            found.push(fault(
                k,
                s,
                format!("a slot of `{}` is {} and never given back", k.values[value].name, took(slot)),
            ));
        }
        if let Some(product) = left.pending.front() {
            found.push(fault(k, product.stmt, "products are still pending at the end of the role".to_owned()));
        }
        walks.push(trace(k, body, &counts));
    }
    pairs(k, &roles, &walks, &mut found);
    clusters(k, &roles, &mut found);
    let shared = shared(k);
    if shared.is_empty() {
        let bodies = [vec![k.body], bodies(k)].concat();
        found.extend(bodies.into_iter().flat_map(|body| prove_role(k, body)));
    }
    found.extend(shared);
    stored(k, &mut found);
    found
}

/// The statements of each part of a kernel: of its roles, and of what stands beside them.
fn parts(k: &Kernel) -> BTreeMap<Option<Stmt>, Vec<Stmt>> {
    let mut parts: BTreeMap<Option<Stmt>, Vec<Stmt>> = BTreeMap::new();
    for &top in &k.blocks[k.body] {
        let role = matches!(k.stmts[top], StmtData::Role { .. }).then_some(top);
        let part = parts.entry(role).or_default();
        part.push(top);
        for b in k.sub_blocks(top) {
            k.walk(b, &mut |_, _, s| part.push(s));
        }
    }
    parts
}

/// Tensors that tensor stores of one part write and another part uses: nothing tells it when they arrive. What is stored later, or
/// elsewhere, does not matter ([`apart`]).
fn stored(k: &Kernel, found: &mut Vec<Diagnostic>) {
    let parts = parts(k);
    for (part, stmts) in &parts {
        for &store in stmts {
            let Some((_, tensor)) = tensor_store(k, store) else { continue };
            let others = parts.iter().filter(|(other, _)| *other != part).flat_map(|(_, stmts)| stmts);
            let used = others
                .copied()
                .find(|&s| tensor_store(k, s).is_none() && tensor_uses(k, s).contains(&tensor) && !apart(k, s, store));
            if let Some(used) = used {
                let message = format!(
                    "`{}` is used beside tensor stores to it, which may not have arrived",
                    k.values[tensor].name
                );
                found.push(
                    Diagnostic::error(codes::HAZARD, k.stmt_spans[used], message)
                        .with_place(k.stmt_spans[store], "stored here")
                        .with_note("nothing but the end of the kernel waits for them to arrive: give what is stored a tensor of its own"),
                );
            }
        }
    }
}

/// Statement 7: buffers that two roles use, or a role and what stands beside the roles.
fn shared(k: &Kernel) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut users: BTreeMap<Value, (Option<Stmt>, Stmt)> = BTreeMap::new();
    let mut reported: Vec<Value> = Vec::new();
    for (part, stmts) in parts(k) {
        for s in stmts {
            for v in buffer_uses(k, s) {
                let &mut (user, first) = users.entry(v).or_insert((part, s));
                if user == part || reported.contains(&v) {
                    continue;
                }
                reported.push(v);
                let message = format!(
                    "`{}` is used by a role and by other threads, and nothing orders the two",
                    k.values[v].name
                );
                found.push(
                    Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message)
                        .with_place(k.stmt_spans[first], "used here too")
                        .with_note("roles hand tiles over by channels; a buffer is for one role, and its `barrier` for the threads of that"),
                );
            }
        }
    }
    found
}

/// Statement 6: where blocks of a cluster fill slots for one another, they fill and empty equally many, in the same order.
fn clusters(k: &Kernel, roles: &[(Stmt, Block)], found: &mut Vec<Diagnostic>) {
    if cluster::blocks(k) == 1 {
        return;
    }
    let shared = |k: &Kernel, s: Stmt| match &k.stmts[s] {
        StmtData::Channel { channels, .. } => channels.iter().any(|&v| cluster::fills_by_multicast(k, v)),
        _ => false,
    };
    let mut same = Uniform::new(k);
    for &(_, body) in roles {
        if let Some(s) = same.parted(body, &shared) {
            let message =
                "blocks of a cluster do not fill and empty shared slots equally often: this depends on the block";
            found.push(Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message).with_note(
                "of the index `g` of a grid axis with `c` blocks to a cluster, only `g / c` is the same in all of them",
            ));
        }
    }
}

fn took(slot: Slot) -> &'static str {
    match slot {
        Slot::Put => "acquired",
        Slot::Get => "waited for",
    }
}

fn fault(k: &Kernel, s: Stmt, message: String) -> Diagnostic {
    Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message)
        .with_note("a role takes a slot, uses it, and gives it back: `acquire` .. `publish`, `wait` .. `release`")
}

/// A product of warpgroups that nobody has awaited.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pending {
    stmt: Stmt,
    acc: Value,
    /// Channels whose slots it reads, and how many older slots of each are held.
    slots: Vec<(Value, usize)>,
}

impl Pending {
    /// Whether it does the same as another, wherever that stands.
    fn alike(&self, other: &Pending) -> bool {
        (self.acc, &self.slots) == (other.acc, &other.slots)
    }
}

/// How many slots are held.
type Counts = BTreeMap<(Value, Slot), usize>;

/// What a role holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct State {
    /// Slots that it has taken, and where, oldest first; at least one of each that is named.
    held: BTreeMap<(Value, Slot), VecDeque<Stmt>>,
    /// Products, oldest first.
    pending: VecDeque<Pending>,
}

impl State {
    fn counts(&self) -> Counts {
        self.held.iter().map(|(&of, held)| (of, held.len())).collect()
    }
}

struct Walk<'a> {
    k: &'a Kernel,
    state: State,
    /// What is held in front of each channel operation.
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
            StmtData::Await { value, pending } if !matches!(self.k.values[*value].def, ValueDef::Smem(_)) => {
                while self.state.pending.len() > *pending as usize {
                    self.state.pending.pop_front();
                }
            }
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
                if after.counts() != self.state.counts() || after.pending != self.state.pending {
                    self.say(s, "the branches leave channels or products in different states".to_owned());
                }
            }
            _ => self.uses(s),
        }
    }

    /// The body of a loop, twice: the second time begins as every later one does.
    fn repeat(&mut self, s: Stmt, body: Block) {
        let entry = self.state.clone();
        self.block(body);
        let once = self.state.clone();
        if once.counts() != entry.counts() {
            self.say(
                s,
                "an iteration takes slots that it does not give back, or gives back more than it takes".to_owned(),
            );
            return;
        }
        if once.pending != entry.pending {
            self.block(body);
            if self.state.pending != once.pending {
                self.say(s, "products pile up: each iteration leaves more of them pending".to_owned());
                return;
            }
        }
        // Behind the loop there may have been no iteration. What is pending then is the end of what is pending otherwise, or the other way round: the
        // longer list stands for both.
        let ends_with = |long: &VecDeque<Pending>, short: &VecDeque<Pending>| {
            long.len() >= short.len() && long.iter().rev().zip(short.iter().rev()).all(|(a, b)| a.alike(b))
        };
        if ends_with(&self.state.pending, &entry.pending) {
        } else if ends_with(&entry.pending, &self.state.pending) {
            self.state.pending = entry.pending;
        } else {
            self.say(s, "iterations leave other products pending than they find".to_owned());
        }
    }

    fn channel(&mut self, s: Stmt, op: ChannelOp, v: Value) {
        let slot = match op {
            ChannelOp::Acquire | ChannelOp::Publish => Slot::Put,
            ChannelOp::Wait | ChannelOp::Release => Slot::Get,
        };
        let name = self.name(v);
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
                        self.say(s, format!("this waits for ever: of {name} all slots are held already, {before}"));
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
                for product in &mut self.state.pending {
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

    /// Slots and accumulators that a statement touches itself.
    fn uses(&mut self, s: Stmt) {
        for (value, slot) in slot_uses(self.k, s) {
            if !self.state.held.contains_key(&(value, slot)) {
                let message = format!("a slot of {} is used that is not {}", self.name(value), took(slot));
                self.say(s, message);
            }
        }
        let product = asynchronous(self.k, s, &self.state.counts());
        let mut touched = Vec::new();
        for e in stmt_exprs(self.k, s) {
            crate::analysis::uses::for_each_ref(self.k, e, &mut |v| touched.push(v));
        }
        touched.extend(match self.k.stmts[s] {
            StmtData::Assign { dst, .. } => Some(dst),
            StmtData::Var { value, .. } => Some(value),
            _ => None,
        });
        // A product may follow another on the same accumulator: the hardware runs them in order.
        let own = product.as_ref().map(|p| p.acc);
        let early = self.state.pending.iter().find(|p| touched.contains(&p.acc) && own != Some(p.acc)).cloned();
        if let Some(early) = early {
            let message = format!("{} is used while products that add to it are pending", self.name(early.acc));
            self.say(s, message);
        }
        self.state.pending.extend(product);
    }
}

/// The slots of a channel.
fn slots(k: &Kernel, channel: Value) -> Option<usize> {
    match k.values[channel].def {
        ValueDef::Channel { slots, .. } => k.as_int(slots).and_then(|n| usize::try_from(n).ok()),
        _ => None,
    }
}

/// The product of warpgroups that a statement starts, where so many slots are held.
fn asynchronous(k: &Kernel, s: Stmt, held: &Counts) -> Option<Pending> {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
    let ExprData::Mma(mma) = k.exprs[src] else { return None };
    mma.atom.filter(|a| a.row().asynchronous())?;
    let read = [mma.a, mma.b].into_iter().filter_map(|e| resolve_view(k, e)).map(|v| v.base);
    let older = |v| held.get(&(v, Slot::Get)).map_or(0, |n| n - 1);
    let slots = read.map(|v| (v, older(v))).collect();
    Some(Pending { stmt: s, acc: dst, slots })
}

/// A role's way past channel operations.
#[derive(Clone, Debug)]
enum Step {
    /// A slot is filled (`publish`) or there (`wait`). `touched`: what is filled before, or read then, as far as the same block tells.
    /// `held`: slots held in front of the statement, to be filled or those waited for.
    Turn { stmt: Stmt, channels: Vec<Value>, fills: bool, touched: Vec<Value>, held: BTreeMap<Value, usize> },
    /// A loop over steps.
    Loop { stmt: Stmt, var: Value, bounds: [Expr; 3], steps: Vec<Step> },
    /// Steps on a condition.
    Branch { stmt: Stmt, cond: Expr, then: Vec<Step>, otherwise: Vec<Step> },
}

fn trace(k: &Kernel, block: Block, counts: &BTreeMap<Stmt, Counts>) -> Vec<Step> {
    let mut out = Vec::new();
    for (i, &s) in k.blocks[block].iter().enumerate() {
        match &k.stmts[s] {
            StmtData::Channel { op, channels, .. } if matches!(op, ChannelOp::Publish | ChannelOp::Wait) => {
                let fills = *op == ChannelOp::Publish;
                let side = if fills { Slot::Put } else { Slot::Get };
                let all = counts.get(&s).into_iter().flatten();
                let held: BTreeMap<Value, usize> =
                    all.filter(|((_, of), _)| *of == side).map(|(&(v, _), &n)| (v, n)).collect();
                let mut touched = channels.clone();
                touched.retain(|v| {
                    let older = held.get(v).copied().unwrap_or(0);
                    if fills {
                        filled(k, &k.blocks[block][..i], *v)
                    } else {
                        read(k, &k.blocks[block][i + 1..], *v, older)
                    }
                });
                out.push(Step::Turn { stmt: s, channels: channels.clone(), fills, touched, held });
            }
            StmtData::For { var, start, end, step, body, .. } => {
                let steps = trace(k, *body, counts);
                if !steps.is_empty() {
                    out.push(Step::Loop { stmt: s, var: *var, bounds: [*start, *end, *step], steps });
                }
            }
            StmtData::If { cond, then, otherwise } => {
                let (then, otherwise) =
                    (trace(k, *then, counts), otherwise.map_or_else(Vec::new, |b| trace(k, b, counts)));
                if !then.is_empty() || !otherwise.is_empty() {
                    out.push(Step::Branch { stmt: s, cond: *cond, then, otherwise });
                }
            }
            _ => {}
        }
    }
    out
}

/// Whether a slot of `v` is filled by the statements in front of its `publish`; if it was not acquired among them, it may have been before.
fn filled(k: &Kernel, before: &[Stmt], v: Value) -> bool {
    let own = before.iter().rposition(|&s| operates(k, s, ChannelOp::Acquire, v));
    own.is_none_or(|own| touches(k, &before[own..], v, Slot::Put))
}

/// Whether a slot of `v` is read by the statements behind its `wait`, up to where it is given back or another is waited for.
fn read(k: &Kernel, after: &[Stmt], v: Value, mut older: usize) -> bool {
    let end = after.iter().position(|&s| {
        let released = operates(k, s, ChannelOp::Release, v);
        let last = released && older == 0;
        older -= usize::from(released && !last);
        last || operates(k, s, ChannelOp::Wait, v)
    });
    touches(k, &after[..end.unwrap_or(after.len())], v, Slot::Get)
}

fn operates(k: &Kernel, s: Stmt, wanted: ChannelOp, v: Value) -> bool {
    matches!(&k.stmts[s], StmtData::Channel { op, channels, .. } if *op == wanted && channels.contains(&v))
}

fn touches(k: &Kernel, stmts: &[Stmt], v: Value, slot: Slot) -> bool {
    let mut found = false;
    for &s in stmts {
        found |= slot_uses(k, s).contains(&(v, slot));
        for b in k.sub_blocks(s) {
            k.walk(b, &mut |k, _, s| found |= slot_uses(k, s).contains(&(v, slot)));
        }
    }
    found
}

/// The first slot that is read though nothing was put into it, of roles that walk past the same ones: where it is waited for, where published.
fn unfilled(a: &[Step], b: &[Step]) -> Option<(Stmt, Stmt, Value)> {
    a.iter().zip(b).find_map(|(x, y)| match (x, y) {
        (Step::Turn { stmt: publish, touched: full, .. }, Step::Turn { stmt: wait, touched: wanted, .. }) => {
            wanted.iter().find(|v| !full.contains(v)).map(|&v| (*wait, *publish, v))
        }
        (Step::Loop { steps: s, .. }, Step::Loop { steps: t, .. }) => unfilled(s, t),
        (Step::Branch { then: s, otherwise: p, .. }, Step::Branch { then: t, otherwise: q, .. }) => {
            unfilled(s, t).or_else(|| unfilled(p, q))
        }
        _ => None,
    })
}

/// Where the role `b` waits for a slot that `a` does not come to fill: it takes one of another channel first, of which `b` holds all.
fn stuck(k: &Kernel, a: &[Step], b: &[Step]) -> Option<(Stmt, Stmt, Value)> {
    a.iter().zip(b).find_map(|(x, y)| match (x, y) {
        (Step::Turn { stmt: publish, channels, held: ahead, .. }, Step::Turn { stmt: wait, held: before, .. }) => {
            channels.iter().enumerate().find_map(|(i, v)| {
                // What is published in front of `v`, by the same statement, is waited for in front of it.
                let full = |u: &Value| before.get(u).is_some_and(|&n| slots(k, *u).is_some_and(|slots| n >= slots));
                let taken = ahead.keys().find(|u| *u != v && !channels[..i].contains(u) && full(u));
                taken.map(|&u| (*wait, *publish, u))
            })
        }
        (Step::Loop { steps: s, .. }, Step::Loop { steps: t, .. }) => stuck(k, s, t),
        (Step::Branch { then: s, otherwise: p, .. }, Step::Branch { then: t, otherwise: q, .. }) => {
            stuck(k, s, t).or_else(|| stuck(k, p, q))
        }
        _ => None,
    })
}

/// The steps that fill channels of a set, or those that empty them.
fn only(steps: &[Step], of: &dyn Fn(Value) -> bool, fills: bool) -> Vec<Step> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step::Turn { stmt, channels, fills: f, touched, held } if *f == fills => {
                let channels: Vec<Value> = channels.iter().copied().filter(|&v| of(v)).collect();
                if !channels.is_empty() {
                    let (touched, held) = (touched.clone(), held.clone());
                    out.push(Step::Turn { stmt: *stmt, channels, fills, touched, held });
                }
            }
            Step::Turn { .. } => {}
            Step::Loop { stmt, var, bounds, steps } => {
                let steps = only(steps, of, fills);
                if !steps.is_empty() {
                    out.push(Step::Loop { stmt: *stmt, var: *var, bounds: *bounds, steps });
                }
            }
            Step::Branch { stmt, cond, then, otherwise } => {
                let (then, otherwise) = (only(then, of, fills), only(otherwise, of, fills));
                if !then.is_empty() || !otherwise.is_empty() {
                    out.push(Step::Branch { stmt: *stmt, cond: *cond, then, otherwise });
                }
            }
        }
    }
    out
}

/// Statements 1, 3 and 4: who fills and empties which channel.
fn pairs(k: &Kernel, roles: &[(Stmt, Block)], walks: &[Vec<Step>], found: &mut Vec<Diagnostic>) {
    let mut users: BTreeMap<Value, [Vec<usize>; 2]> = BTreeMap::new();
    for (i, walk) in walks.iter().enumerate() {
        note(walk, &mut |v, fills| {
            let list = &mut users.entry(v).or_default()[usize::from(!fills)];
            if !list.contains(&i) {
                list.push(i);
            }
        });
    }
    let mut edges: BTreeMap<(usize, usize), Vec<Value>> = BTreeMap::new();
    for (&v, [fill, empty]) in &users {
        match (&fill[..], &empty[..]) {
            (&[a], &[b]) if a != b => edges.entry((a, b)).or_default().push(v),
            _ => {
                let at = fill.iter().chain(empty).next().map_or(roles[0].0, |&i| roles[i].0);
                let message = format!(
                    "`{}` is filled by {} role(s) and emptied by {}, expected one each, and not the same",
                    k.values[v].name,
                    fill.len(),
                    empty.len()
                );
                found.push(fault(k, at, message));
            }
        }
    }
    for ((a, b), channels) in &edges {
        let of = |v: Value| channels.contains(&v);
        let (filled, emptied) = (only(&walks[*a], &of, true), only(&walks[*b], &of, false));
        if let Some((s, other)) = differs(k, &filled, &emptied, &mut Vec::new()) {
            let at = s.or(other).unwrap_or(roles[*a].0);
            let mut d = fault(
                k,
                at,
                "the roles do not walk past the same slots: loops, branches or the order of channels differ".to_owned(),
            );
            if let (Some(_), Some(other)) = (s, other) {
                d = d.with_place(k.stmt_spans[other], "the other role");
            }
            found.push(d);
        } else if let Some((wait, publish, v)) = unfilled(&filled, &emptied) {
            let message = format!("a slot of `{}` is read that nothing fills", k.values[v].name);
            found.push(fault(k, wait, message).with_place(k.stmt_spans[publish], "the other role publishes it here"));
        } else if let Some((wait, publish, v)) = stuck(k, &filled, &emptied) {
            let message = format!("this may wait for ever: all slots of `{}` are held here", k.values[v].name);
            let place = "the other role takes one of them before it publishes this";
            found.push(fault(k, wait, message).with_place(k.stmt_spans[publish], place));
        }
    }
    // Roles that wait for one another in a ring.
    let mut left: Vec<(usize, usize)> = edges.keys().copied().collect();
    loop {
        let before = left.len();
        let waits: Vec<usize> = left.iter().map(|&(_, b)| b).collect();
        left.retain(|&(a, _)| waits.contains(&a));
        if left.len() == before {
            break;
        }
    }
    if let Some(&(a, _)) = left.first() {
        found.push(fault(k, roles[a].0, "roles fill channels for one another in a ring".to_owned()));
    }
}

fn note(steps: &[Step], f: &mut dyn FnMut(Value, bool)) {
    for step in steps {
        match step {
            Step::Turn { channels, fills, .. } => channels.iter().for_each(|&v| f(v, *fills)),
            Step::Loop { steps, .. } => note(steps, f),
            Step::Branch { then, otherwise, .. } => {
                note(then, f);
                note(otherwise, f);
            }
        }
    }
}

impl Step {
    fn stmt(&self) -> Stmt {
        match self {
            Step::Turn { stmt, .. } | Step::Loop { stmt, .. } | Step::Branch { stmt, .. } => *stmt,
        }
    }
}

/// Statements of the two roles at which their ways part. `same`: loop variables that run alike.
type Parting = (Option<Stmt>, Option<Stmt>);

fn differs(k: &Kernel, a: &[Step], b: &[Step], same: &mut Vec<(Value, Value)>) -> Option<Parting> {
    for i in 0..a.len().max(b.len()) {
        let (Some(x), Some(y)) = (a.get(i), b.get(i)) else {
            return Some((a.get(i).map(Step::stmt), b.get(i).map(Step::stmt)));
        };
        let parting = Some((Some(x.stmt()), Some(y.stmt())));
        match (x, y) {
            (Step::Turn { channels: c, .. }, Step::Turn { channels: d, .. }) => {
                if c != d {
                    return parting;
                }
            }
            (Step::Loop { var: v, bounds: p, steps: s, .. }, Step::Loop { var: w, bounds: q, steps: t, .. }) => {
                if !p.iter().zip(q).all(|(&e, &f)| alike(k, e, f, same)) {
                    return parting;
                }
                same.push((*v, *w));
                let inner = differs(k, s, t, same);
                same.pop();
                if inner.is_some() {
                    return inner;
                }
            }
            (
                Step::Branch { cond: c, then: s, otherwise: p, .. },
                Step::Branch { cond: d, then: t, otherwise: q, .. },
            ) => {
                if !alike(k, *c, *d, same) {
                    return parting;
                }
                if let Some(inner) = differs(k, s, t, same).or_else(|| differs(k, p, q, same)) {
                    return Some(inner);
                }
            }
            _ => return parting,
        }
    }
    None
}

/// Whether two index expressions have the same value: names stand for what they name.
pub(super) fn alike(k: &Kernel, a: Expr, b: Expr, same: &[(Value, Value)]) -> bool {
    let resolved = |e: Expr| match k.exprs[e] {
        ExprData::Ref(v) => let_init(k, v).unwrap_or(e),
        _ => e,
    };
    let (a, b) = (resolved(a), resolved(b));
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Ref(v), ExprData::Ref(w)) => v == w || same.contains(&(*v, *w)),
        (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
            x == y && p.len() == q.len() && p.iter().zip(q).all(|(&e, &f)| alike(k, e, f, same))
        }
        _ => same_expr(k, a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Sink;

    /// What is said of roles with these bodies, over two channels `a` and `b`.
    fn said(producer: &str, consumer: &str) -> Vec<String> {
        let source = format!(
            "kernel t(A: gmem f16[M, K] multiple 8, C: gmem f32[M, N])\n{{\n\
             let a = channel f16[64, 64] slots 2\nlet b = channel f16[64, 64] slots 2\n\
             role producer warps 4 {{\n{producer}\n}}\nrole consumer warps 4 {{\nvar acc = reg f32[64, 64] = 0\n{consumer}\n}}\n}}\n"
        );
        let mut sink = Sink::new();
        let parsed = tilec_ir::parser::parse(&source, &mut sink);
        let kernel = parsed.unwrap_or_else(|_| panic!("{source}\n{:#?}", sink.diagnostics())).kernels.remove(0);
        check(&kernel).into_iter().map(|d| d.message).collect()
    }

    const FILL: &str = "acquire a, b\ncopy A[0.., k..] -> a.put tma\ncopy A[0.., k..] -> b.put tma\npublish a, b";
    const USE: &str = "wait a, b\nacc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 0\nrelease a, b";

    fn looped(body: &str) -> String {
        format!("for k in 0..K step 64 {{\n{body}\n}}")
    }

    fn one(producer: &str, consumer: &str, what: &str) {
        let found = said(producer, consumer);
        assert!(found.iter().any(|m| m.contains(what)), "{what}: {found:#?}");
    }

    #[test]
    fn what_is_in_order_passes() {
        assert_eq!(said(&looped(FILL), &looped(USE)), Vec::<String>::new());
        // Two tiles, each with a loop of its own; the products of a trip overlap the wait of the next.
        let tiles = |body: &str| format!("for t in 0..M {{\n{}\n}}", looped(body));
        assert_eq!(said(&tiles(FILL), &tiles(USE)), Vec::<String>::new());
        // A slot of which one channel is filled, and read.
        let half = FILL.replace("copy A[0.., k..] -> b.put tma\n", "");
        let read = "wait a, b\nvar x = reg f16[64, 64]\ncopy a.get -> x\nrelease a, b";
        assert_eq!(said(&looped(&half), &looped(read)), Vec::<String>::new());
    }

    /// Roles that load and store tiles of one tensor, in the order of the tiles; `from`, `to` replace in the loading, the storing role.
    fn in_place(from: [&str; 2], to: [&str; 2]) -> Vec<String> {
        let walk = "for tile in 0..min(ceildiv(M, 64) * ceildiv(N, 64), 99) step 7 {\nlet strip = tile / (ceildiv(M, 64) * 4)\n\
                    let place = tile % (ceildiv(M, 64) * 4)\nlet columns = max(1, min(4, ceildiv(N, 64) - strip * 4))\n\
                    let bm = min(place / columns, ceildiv(M, 64) - 1)\n\
                    let bn = min(strip * 4 + place % columns, ceildiv(N, 64) - 1)\n";
        let load = "acquire a\ncopy C[bm * 64.., bn * 64..] -> a.put tma\npublish a\n";
        let store =
            "wait a\nawait s, 0\nbarrier\ncopy a.get -> s\nrelease a\nbarrier\ncopy s -> C[bm * 64.., bn * 64..] tma\n";
        let (load, store) = (format!("{walk}{load}}}"), format!("{walk}{store}}}\nawait s, 0"));
        let [x, y] = [(load, from), (store, to)].map(|(text, [old, new])| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        let source = format!(
            "kernel t(C: gmem f16[M, N] multiple 8, beta: f32 = 0)\n{{\nlet a = channel f16[64, 64] slots 2\nlet s = smem f16[64, 64]\n\
             role producer warps 4 {{\n{x}\n}}\nrole consumer warps 4 {{\n{y}\n}}\n}}\n"
        );
        let mut sink = Sink::new();
        let parsed = tilec_ir::parser::parse(&source, &mut sink);
        let kernel = parsed.unwrap_or_else(|_| panic!("{source}\n{:#?}", sink.diagnostics())).kernels.remove(0);
        check(&kernel).into_iter().map(|d| d.message).collect()
    }

    #[test]
    fn tiles_that_are_stored_were_loaded_before() {
        let same = ["tile", "tile"];
        assert_eq!(in_place(same, same), Vec::<String>::new());
        let wrong: [[&str; 2]; 6] = [
            // Another tile, or part of it.
            ["C[bm * 64.., bn * 64..]", "C[bn * 64.., bm * 64..]"],
            ["C[bm * 64.., bn * 64..]", "C[bm * 64 + 64.., bn * 64..]"],
            ["C[bm * 64.., bn * 64..]", "C[bm * 32.., bn * 64..]"],
            // Two tiles at one place.
            ["strip * 4 + place % columns", "place % columns"],
            ["place / columns", "place / 2"],
            ["max(1, min(4, ceildiv(N, 64) - strip * 4))", "max(1, min(8, ceildiv(N, 64) - strip * 4))"],
        ];
        for change in wrong {
            for (x, y) in [(change, same), (same, change)] {
                let found = in_place(x, y);
                assert!(found.iter().any(|m| m.contains("used beside tensor stores")), "{change:?}: {found:#?}");
            }
        }
        // A store that does not wait for the load of its tile.
        let (wait, copy) = ("wait a\n", "copy a.get -> s\nrelease a\n");
        let early = in_place(same, [wait, "var x = reg f16[64, 64] = 0.0\n"]);
        assert!(early.iter().any(|m| m.contains("not waited for")), "{early:#?}");
        let late = format!("copy s -> C[bm * 64.., bn * 64..] tma\n{wait}{copy}");
        let late = in_place(same, ["copy s -> C[bm * 64.., bn * 64..] tma\n", &late]);
        assert!(late.iter().any(|m| m.contains("used beside tensor stores")), "{late:#?}");
    }

    #[test]
    fn slots_are_taken_and_given_back_in_turns() {
        one(&looped(&FILL.replace("acquire a, b", "acquire a")), &looped(USE), "used that is not acquired");
        one(&looped(&FILL.replace("publish a, b", "publish a")), &looped(USE), "does not give back");
        one(&looped(FILL), &looped(&USE.replace("wait a, b", "wait a")), "used that is not waited for");
        one(&looped(FILL), &looped(&USE.replace("release a, b", "release b")), "does not give back");
        one(&looped(FILL), &looped(&USE.replace("release a, b", "release a, b\nrelease a")), "no slot of `a`");
        one(&looped(&FILL.replace("publish a, b", "acquire a\npublish a, b")), &looped(USE), "while another is");
        one(&looped(FILL), &looped(&USE.replace("wait a, b", "wait a, b\nwait a")), "does not give back");
    }

    /// A loop whose first step is taken out, on both sides; `behind`: what the consumer does behind it.
    fn peeled(step: &str, behind: &str) -> [String; 2] {
        let both = |first: &str, later: &str, behind: &str| {
            format!("if K > 0 {{\n{first}\nfor k in 64..K step 64 {{\n{later}\n}}\n{behind}\n}}")
        };
        let first = "wait a, b\nacc = mma<m64k16>(a.get, b.get, acc)";
        [both(&FILL.replace("k..", "0.."), FILL, ""), both(first, step, behind)]
    }

    const STEP: &str = "wait a, b\nacc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 1\nrelease a, b";
    const LAST: &str = "await acc, 0\nrelease a, b";

    #[test]
    fn a_product_may_be_pending_while_the_next_is_issued() {
        let [producer, consumer] = peeled(STEP, LAST);
        assert_eq!(said(&producer, &consumer), Vec::<String>::new());
        let wrong = [
            // The slot that the last product reads, or before its older one is done.
            (STEP.replace("await acc, 1\n", ""), LAST, "released while products read it"),
            (STEP.replace("await acc, 1", "await acc, 2"), LAST, "released while products read it"),
            (format!("{STEP}\nrelease a, b"), LAST, "released while products read it"),
            (STEP.to_owned(), "release a, b\nawait acc, 0", "released while products read it"),
            (STEP.to_owned(), "await acc, 1\nrelease a, b", "released while products read it"),
            (STEP.to_owned(), "await acc, 0", "in different states"),
            // As many are held at the end of an iteration as at its start.
            (STEP.replace("release a, b", ""), LAST, "does not give back"),
            (STEP.replace("release a, b", "release a"), LAST, "does not give back"),
            (format!("{STEP}\nawait acc, 0\nrelease a, b"), LAST, "gives back more than it takes"),
            // Another slot of two, while both are held.
            (STEP.replace("wait a, b", "wait a, b\nwait a\nrelease a"), LAST, "all slots are held already, 2"),
        ];
        for (step, last, what) in wrong {
            let [producer, consumer] = peeled(&step, last);
            one(&producer, &consumer, what);
        }
    }

    #[test]
    fn behind_a_loop_there_may_have_been_no_iteration() {
        // Iterations find a product pending and leave none; without one the slot is still read.
        let step = STEP.replace("await acc, 1\nrelease a, b", "await acc, 0\nrelease a, b");
        let [producer, consumer] = peeled(&step, "release a, b");
        one(&producer, &consumer, "released while products read it");
        let [producer, consumer] = peeled(&step, LAST);
        assert_eq!(said(&producer, &consumer), Vec::<String>::new());
        // Those of two accumulators take turns, an odd number of times.
        let step = STEP.replace("acc = mma<m64k16>(a.get, b.get, acc)", "other = mma<m64k16>(a.get, b.get, other)");
        let [producer, consumer] = peeled(&step, LAST);
        one(&producer, &format!("var other = reg f32[64, 64] = 0\n{consumer}"), "other products pending");
    }

    #[test]
    fn no_role_waits_for_a_slot_that_is_held() {
        // The producer takes the second slot of `a` before it fills the first of `b`.
        let ahead = |slots: usize| {
            let more = "acquire a\ncopy A[0.., 0..] -> a.put tma\npublish a\n".repeat(slots);
            let tail = "acquire a\nacquire b\ncopy A[0.., 0..] -> b.put tma\npublish b\ncopy A[0.., 0..] -> a.put tma\npublish a";
            let read = "acc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 0";
            let waits = "wait a\n".repeat(slots);
            let rest = "release a\n".repeat(slots);
            said(&format!("{more}{tail}"), &format!("{waits}wait b\n{read}\nrelease b\n{rest}wait a\nrelease a"))
        };
        assert!(!ahead(1).iter().any(|m| m.contains("for ever")), "{:#?}", ahead(1));
        assert!(ahead(2).iter().any(|m| m.contains("may wait for ever: all slots of `a`")), "{:#?}", ahead(2));
    }

    #[test]
    fn roles_walk_past_the_same_slots() {
        one(&looped(FILL), &looped(USE).replace("step 64", "step 32"), "the same slots");
        one(&looped(FILL), &looped(USE).replace("0..K", "64..K"), "the same slots");
        let half = FILL.replace("copy A[0.., k..] -> b.put tma\n", "");
        one(&looped(&half), &looped(USE), "a slot of `b` is read that nothing fills");
        one(&looped(FILL), &format!("if M == 1 {{\n{}\n}}", looped(USE)), "the same slots");
        let apart =
            "acquire a\ncopy A[0.., k..] -> a.put tma\npublish a\nacquire b\ncopy A[0.., k..] -> b.put tma\npublish b";
        let crossed = "wait b\nwait a\nacc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 0\nrelease a, b";
        one(&looped(apart), &looped(crossed), "the same slots");
    }

    #[test]
    fn products_are_awaited_before_their_slots_and_sums_are_used() {
        one(&looped(FILL), &looped(&USE.replace("await acc, 0\n", "")), "released while products read it");
        one(&looped(FILL), &looped(&USE.replace("await acc, 0", "await acc, 1")), "released while products read it");
        one(
            &looped(FILL),
            &looped(&USE.replace("await acc, 0", "acc = acc + 1.0\nawait acc, 0")),
            "while products that add to it are pending",
        );
    }

    #[test]
    fn channels_have_two_ends() {
        one(&looped(FILL), "acc = acc + 1.0", "emptied by 0");
    }
}

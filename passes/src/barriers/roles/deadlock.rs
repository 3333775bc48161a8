//! Proves that roles with cyclic channels cannot deadlock.
//!
//! A role that acquires a slot waits for the role that releases it, and a role that waits for a slot waits for the role that publishes it. So roles may deadlock in any cycle of channels,
//! in either direction. [`super::channel_order::stuck`] handles cycles of two roles.
//!
//! A channel has one role at each end, and an operation that can run stays possible until it has run. So the order in which roles are scheduled does not matter:
//! if one order runs all roles to their end, all orders do. [`Circle::run`] looks for one, for every trip count:
//!
//! * An operation runs if a slot is free, or filled.
//! * Roles that are at equal loops run an iteration together. If it leaves as many slots free and filled as before, so does every other iteration.
//! * Roles that are at equal branches run both sides, from the same state. Both must leave the same state.
//! * A loop with a known small number of iterations may also run alone.
//!
//! Operations of one statement run in the order of their channels. Replicas of a role may run as the role without replicas would.

use super::messages::slots;
use crate::analysis::conditions::alike;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData};

/// Most iterations of a loop that may run by itself.
const FEW: usize = 64;

/// Most iterations that are simulated before roles block.
const ROUNDS: usize = 256;

/// Reports cyclic roles that may deadlock: `ends` has the roles that fill and empty each channel.
pub(super) fn check(k: &Kernel, bodies: &[Block], ends: &BTreeMap<Value, [usize; 2]>, found: &mut Vec<Diagnostic>) {
    for channels in circles(ends) {
        let ends: BTreeMap<Value, [usize; 2]> = channels.iter().map(|v| (*v, ends[v])).collect();
        let circle = Circle { k, ends };
        let traces: Vec<Vec<Item>> = bodies.iter().map(|&b| circle.trace(b)).collect();
        let free = channels.iter().map(|&v| (v, Count { free: slots(k, v).unwrap_or(1), full: 0 }));
        let state = State { left: traces.iter().map(|t| t.iter().rev().collect()).collect(), counts: free.collect() };
        if let Err(state) = circle.run(state, &[]) {
            found.push(circle.explain(&state));
        }
    }
}

/// The channels of each set of roles in which any two channels are on a cycle of at least three roles.
fn circles(ends: &BTreeMap<Value, [usize; 2]>) -> Vec<Vec<Value>> {
    let pairs: BTreeSet<[usize; 2]> = ends.values().map(|&[a, b]| [a.min(b), a.max(b)]).collect();
    let pairs: Vec<[usize; 2]> = pairs.into_iter().collect();
    // Two role pairs that share a role are on a cycle if a path avoids that role.
    let mut set: Vec<usize> = (0..pairs.len()).collect();
    for (i, p) in pairs.iter().enumerate() {
        for (j, q) in pairs.iter().enumerate().skip(i + 1) {
            let Some(&shared) = p.iter().find(|r| q.contains(r)) else { continue };
            let other = |pair: &[usize; 2]| pair[usize::from(pair[0] == shared)];
            if reaches(&pairs, other(p), other(q), shared) {
                let (from, to) = (set[i], set[j]);
                set.iter_mut().filter(|s| **s == from).for_each(|s| *s = to);
            }
        }
    }
    let of = |&[a, b]: &[usize; 2]| pairs.iter().position(|p| *p == [a.min(b), a.max(b)]).map(|i| set[i]);
    let mut out: BTreeMap<Option<usize>, Vec<Value>> = BTreeMap::new();
    for (&v, pair) in ends {
        out.entry(of(pair)).or_default().push(v);
    }
    out.retain(|id, _| set.iter().filter(|s| Some(**s) == *id).count() > 1);
    out.into_values().collect()
}

/// Whether pairs lead from one role to another without a third one.
fn reaches(pairs: &[[usize; 2]], from: usize, to: usize, around: usize) -> bool {
    let mut seen = vec![around, from];
    let mut next = 1;
    while let Some(&role) = seen.get(next) {
        for &[a, b] in pairs.iter().filter(|p| p.contains(&role)) {
            let other = if a == role { b } else { a };
            if !seen.contains(&other) {
                seen.push(other);
            }
        }
        next += 1;
    }
    seen[1..].contains(&to)
}

/// A step of a role with channels of a cycle.
#[derive(Debug)]
enum Item {
    Op { stmt: Stmt, op: ChannelOp, channel: Value },
    Loop { stmt: Stmt, var: Value, bounds: [Expr; 3], body: Vec<Item> },
    Branch { stmt: Stmt, cond: Expr, sides: [Vec<Item>; 2] },
}

impl Item {
    fn stmt(&self) -> Stmt {
        match self {
            Item::Op { stmt, .. } | Item::Loop { stmt, .. } | Item::Branch { stmt, .. } => *stmt,
        }
    }

    fn channels(&self, out: &mut BTreeSet<Value>) {
        match self {
            Item::Op { channel, .. } => drop(out.insert(*channel)),
            Item::Loop { body, .. } => body.iter().for_each(|i| i.channels(out)),
            Item::Branch { sides, .. } => sides.iter().flatten().for_each(|i| i.channels(out)),
        }
    }
}

/// The free slots and filled slots of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Count {
    free: usize,
    full: usize,
}

type Counts = BTreeMap<Value, Count>;

/// The progress of all roles.
#[derive(Clone, Debug)]
struct State<'a> {
    /// The remaining steps of each role, the next one last.
    left: Vec<Vec<&'a Item>>,
    counts: Counts,
}

struct Circle<'k> {
    k: &'k Kernel,
    ends: BTreeMap<Value, [usize; 2]>,
}

impl Circle<'_> {
    fn trace(&self, block: Block) -> Vec<Item> {
        let k = self.k;
        let mut out = Vec::new();
        for &stmt in &k.blocks[block] {
            match &k.stmts[stmt] {
                StmtData::Channel { op, channels, .. } => {
                    let own = channels.iter().filter(|v| self.ends.contains_key(*v));
                    out.extend(own.map(|&channel| Item::Op { stmt, op: *op, channel }));
                }
                StmtData::Ordered { body } => out.extend(self.trace(*body)),
                StmtData::For { var, start, end, step, body, .. } => {
                    let body = self.trace(*body);
                    if !body.is_empty() {
                        out.push(Item::Loop { stmt, var: *var, bounds: [*start, *end, *step], body });
                    }
                }
                StmtData::If { cond, then, otherwise } => {
                    let sides = [self.trace(*then), otherwise.map_or_else(Vec::new, |b| self.trace(b))];
                    if sides.iter().any(|s| !s.is_empty()) {
                        out.push(Item::Branch { stmt, cond: *cond, sides });
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// The slot counts after all roles have ended, or the state in which they are blocked. `same`: variables of loops
    /// with the same iterations.
    fn run<'a>(&self, mut state: State<'a>, same: &[(Value, Value)]) -> Result<Counts, State<'a>> {
        loop {
            operate(&mut state);
            if state.left.iter().all(Vec::is_empty) {
                return Ok(state.counts);
            }
            if !self.run_common_loops(&mut state, same) && !self.alone(&mut state) {
                return Err(state);
            }
        }
    }

    /// Runs loops, or branches, that are the next step of their roles. The result says whether one could run.
    fn run_common_loops(&self, state: &mut State<'_>, same: &[(Value, Value)]) -> bool {
        for role in 0..state.left.len() {
            let Some((group, same)) = self.group(state, role, same) else { continue };
            let Some(counts) = self.once(state, &group, &same) else { continue };
            state.counts = counts;
            for &role in group.keys() {
                state.left[role].pop();
            }
            return true;
        }
        false
    }

    /// The loops, or branches, of all roles that take part in the one that is the next step of `role`. `None` if some
    /// are not there yet.
    fn group<'a>(&self, state: &State<'a>, role: usize, same: &[(Value, Value)]) -> Option<Group<'a>> {
        let first: &Item = state.left[role].last()?;
        let mut group = BTreeMap::from([(role, first)]);
        let mut same = same.to_vec();
        let mut new = vec![role];
        while let Some(role) = new.pop() {
            let mut channels = BTreeSet::new();
            group[&role].channels(&mut channels);
            for other in channels.iter().flat_map(|v| self.ends[v]) {
                if group.contains_key(&other) {
                    continue;
                }
                let item: &Item = state.left[other].last()?;
                match (first, item) {
                    (Item::Loop { bounds: p, .. }, Item::Loop { var: w, bounds: q, .. }) => {
                        if !p.iter().zip(q).all(|(&e, &f)| alike(self.k, e, f, &same)) {
                            return None;
                        }
                        let vars = group.values().filter_map(|item| match item {
                            Item::Loop { var, .. } => Some(*var),
                            _ => None,
                        });
                        same.extend(vars.flat_map(|v| [(v, *w), (*w, v)]));
                    }
                    (Item::Branch { cond: c, .. }, Item::Branch { cond: d, .. }) if alike(self.k, *c, *d, &same) => {}
                    _ => return None,
                }
                group.insert(other, item);
                new.push(other);
            }
        }
        Some((group, same))
    }

    /// The slot counts after loops, or branches, that run together. `None` if they are not known.
    fn once(&self, state: &State<'_>, group: &BTreeMap<usize, &Item>, same: &[(Value, Value)]) -> Option<Counts> {
        // A loop may have no iteration; this corresponds to the other side of a branch.
        let behind = |other: bool| {
            let mut left: Vec<Vec<&Item>> = vec![Vec::new(); state.left.len()];
            for (&role, &item) in group {
                left[role] = match item {
                    Item::Op { .. } => return None,
                    Item::Loop { .. } if other => Vec::new(),
                    Item::Loop { body, .. } => body.iter().rev().collect(),
                    Item::Branch { sides, .. } => sides[usize::from(other)].iter().rev().collect(),
                };
            }
            self.run(State { left, counts: state.counts.clone() }, same).ok()
        };
        let counts = behind(false)?;
        (behind(true)? == counts).then_some(counts)
    }

    /// Unrolls a loop with few iterations that is the next step of a role. The result says whether there was one.
    fn alone(&self, state: &mut State<'_>) -> bool {
        for left in &mut state.left {
            let Some(&Item::Loop { bounds, body, .. }) = left.last() else { continue };
            let [Some(start), Some(end), Some(step)] = bounds.map(|e| self.k.as_int(e)) else { continue };
            let Some(step) = usize::try_from(step).ok().filter(|&step| step > 0) else { continue };
            let iterations = (start..end).step_by(step);
            if iterations.clone().nth(FEW).is_none() {
                left.pop();
                iterations.for_each(|_| left.extend(body.iter().rev()));
                return true;
            }
        }
        false
    }

    /// The error for blocked roles.
    fn explain(&self, state: &State<'_>) -> Diagnostic {
        let ring = [0, 1].map(|side| self.ring(&self.inside(state.clone(), side))).into_iter().find(|r| !r.is_empty());
        let (wait, places): (String, Vec<(Stmt, String)>) = if let Some(ring) = ring {
            let places = ring.iter().map(|&(s, op, v)| {
                let which = if op == ChannelOp::Acquire { "free" } else { "filled" };
                (s, format!("here for a {which} slot of `{}`", self.k.values[v].name))
            });
            ("roles wait for one another in a cycle".to_owned(), places.collect())
        } else {
            let places = state.left.iter().filter_map(|left| left.last());
            let text = "in this loop, branch or operation";
            (
                "roles that wait for one another in a cycle take different paths".to_owned(),
                places.map(|i| (i.stmt(), text.to_owned())).collect(),
            )
        };
        let mut places = places.into_iter().map(|(s, text)| (self.k.stmt_spans[s], text));
        let (at, first) = places.next().unwrap_or_default();
        let d = Diagnostic::error(codes::HAZARD, at, format!("this may wait forever (deadlock): {wait}, {first}"));
        let note = "fill and empty the channels in matching loops, in the same order, or give the channel as many slots as are filled ahead";
        places.fold(d, |d, (at, text)| d.with_place(at, text)).with_note(note)
    }

    /// Where blocked roles are if loops run until nothing in them can proceed, and branches take one side.
    fn inside<'a>(&self, mut state: State<'a>, side: usize) -> State<'a> {
        for _ in 0..ROUNDS {
            operate(&mut state);
            if self.run_common_loops(&mut state, &[]) {
                continue;
            }
            for left in &mut state.left {
                match left.last() {
                    Some(&Item::Loop { body, .. }) => left.extend(body.iter().rev()),
                    Some(&Item::Branch { sides, .. }) => {
                        left.pop();
                        left.extend(sides[side].iter().rev());
                    }
                    _ => {}
                }
            }
        }
        state
    }

    /// The operations at which roles are blocked, each waiting for the next; the first acquires a slot. Empty if a role
    /// is blocked elsewhere.
    fn ring(&self, state: &State<'_>) -> Vec<(Stmt, ChannelOp, Value)> {
        let mut ring: Vec<(usize, Stmt, ChannelOp, Value)> = Vec::new();
        let mut next = state.left.iter().position(|left| matches!(left.last(), Some(Item::Op { .. })));
        while let Some(role) = next {
            if let Some(start) = ring.iter().position(|&(known, ..)| known == role) {
                ring.drain(..start);
                let first = ring.iter().position(|&(_, _, op, _)| op == ChannelOp::Acquire);
                ring.rotate_left(first.unwrap_or(0));
                return ring.into_iter().map(|(_, s, op, v)| (s, op, v)).collect();
            }
            next = match state.left[role].last() {
                Some(&&Item::Op { stmt, op, channel }) => {
                    ring.push((role, stmt, op, channel));
                    self.ends[&channel].into_iter().find(|&other| other != role)
                }
                _ => None,
            };
        }
        Vec::new()
    }
}

type Group<'a> = (BTreeMap<usize, &'a Item>, Vec<(Value, Value)>);

/// Runs all operations that can run.
fn operate(state: &mut State<'_>) {
    let State { left, counts } = state;
    loop {
        let mut still = true;
        for left in left.iter_mut() {
            while let Some(&&Item::Op { op, channel, .. }) = left.last() {
                let Some(count) = counts.get_mut(&channel) else { break };
                let (from, to) = match op {
                    ChannelOp::Acquire => (Some(&mut count.free), None),
                    ChannelOp::Publish => (None, Some(&mut count.full)),
                    ChannelOp::Wait => (Some(&mut count.full), None),
                    ChannelOp::Release => (None, Some(&mut count.free)),
                };
                if let Some(from) = from {
                    let Some(less) = from.checked_sub(1) else { break };
                    *from = less;
                }
                if let Some(to) = to {
                    *to += 1;
                }
                left.pop();
                still = false;
            }
        }
        if still {
            return;
        }
    }
}

//! A proof of the finished synchronisation, independent of the placement.
//!
//! The kernel's copies, products, channel operations and barriers are executed on an abstract block of threads. A
//! *cell* is a buffer or a slot of a channel. For each cell the state says whether it holds something, and whether it
//! was written or read in the present *epoch*, the time since the last barrier. Then:
//!
//! * a read needs a write in an earlier epoch; a write needs every earlier read and write to be in an earlier epoch;
//! * `acquire` takes the next slot of the ring, one at a time, which must have been released;
//! * `.put` is used between `acquire` and `publish`, and an acquired slot is published before the kernel ends;
//! * `wait` needs a published slot, else it would wait forever;
//! * `.get`, the slot waited for last, is used between `wait` and `release`;
//! * an asynchronous copy may write its slot at any time from its own place to the `wait` that covers its group: a
//!   `publish` closes the thread's group, and `wait .. pending n` lets all but the thread's last `n` groups land.
//!   Landing counts as a write at the `wait`, so a barrier must follow before other threads may read;
//! * a TMA store reads its buffer at any time up to the `await` that covers it, which counts as the read of one thread:
//!   a barrier must follow before others write. None is left at the end. The writes of threads must be fenced before it
//!   ([`super::fences`]). The completion of the store in global memory cannot be observed. So the same threads access
//!   that tensor afterwards only by TMA stores to other elements ([`super::disjoint`]).
//!
//! Both branches of `if` are taken. A condition on parameters, sizes and grid indices alone is decided once and the
//! same way everywhere; one on variables of loops is decided once in each iteration. Loops between literals run
//! exactly. Others run 0, 1, 2, .. times until no new state appears. This covers every trip count, because there are
//! finitely many states. (`0..M` runs at least once: sizes are at least 1.) Equal states are merged, and the outcome of
//! a block is kept for each entry state. So the work depends on the number of states, not of paths.
//!
//! A buffer declared `over` others reuses their memory. Accesses to them in this epoch count as accesses to it, and
//! their contents are undefined until they are declared again.
//!
//! Tensors are larger than what a block accesses. So the proof only uses whether two statements may access the same
//! elements ([`Conflicts`]); if one of them stores, they must be in different epochs.
//!
//! The unit is the whole buffer or slot: two statements that access different parts of one are taken to conflict. The
//! one exception is an elementwise copy of a buffer onto itself, where a thread accesses only its own elements.

mod report;
mod ring;
mod step;
pub(crate) mod uses;

use super::global::Conflicts;
use crate::analysis::conditions::changes_with;
use crate::barriers::prove::report::Trace;
use report::{Fault, report};
use ring::{Cell, FaultKind, Ring};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::index;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::memory_reuse::Overlays;
use tilec_ir::tensor_store::tensor_store;
use uses::{tensors, uses};

/// Most statements that are executed; then the check is given up with a warning.
const WORK: u32 = 60_000;

/// Checks the buffers that a role uses, or those that statements outside of roles use, for these threads. Buffers
/// declared in front of the roles are available.
pub(super) fn prove_role(k: &Kernel, meetings: &Conflicts, body: Block) -> Vec<Diagnostic> {
    let mut start = State::default();
    for &s in &k.blocks[k.body] {
        if let StmtData::Alloc { value, .. } = k.stmts[s]
            && matches!(k.values[value].def, ValueDef::Smem(_))
        {
            start.buffers.insert(value, Cell::default());
        }
    }
    run(k, meetings, body, start, true)
}

/// Checks a kernel without roles: all statements are for the threads of the block.
pub(super) fn prove_block(k: &Kernel) -> Vec<Diagnostic> {
    run(k, &Conflicts::of(k), k.body, State::default(), false)
}

fn run<'k>(k: &'k Kernel, meetings: &'k Conflicts, body: Block, start: State, buffers_only: bool) -> Vec<Diagnostic> {
    let mut run = Run {
        k,
        buffers_only,
        stored: k.statements().into_iter().filter_map(|s| tensor_store(k, s)).map(|(_, tensor)| tensor).collect(),
        overlays: Overlays::of(k),
        meetings,
        memo: BTreeMap::new(),
        work: WORK,
        faults: BTreeMap::new(),
        relevant: BTreeSet::new(),
        decidable: BTreeMap::new(),
        changing: Vec::new(),
    };
    run.prepare(body);
    let Some(ends) = run.block(body, BTreeMap::from([(start, Trace::default())])) else {
        let message = format!("the synchronisation of `{}` is too complex to be proved", k.name);
        return vec![Diagnostic::warning(codes::HAZARD, k.name_span, message)];
    };
    for (state, trace) in &ends {
        for &v in &state.storing {
            if let Some(&(_, Some(s))) = trace.last.get(&(v, None)) {
                run.fault(s, Fault { value: v, slot: None, rule: FaultKind::NeverAwaited, other: None }, trace);
            }
        }
        for (&v, ring) in &state.rings {
            if let Some(slot) = ring.filling_slot()
                && let Some(&s) = trace.acquired.get(&(v, slot))
            {
                run.fault(s, Fault { value: v, slot: Some(slot), rule: FaultKind::NeverPublished, other: None }, trace);
            }
        }
    }
    run.faults.iter().map(|((s, _, _), (fault, trace))| report(k, *s, fault, trace)).collect()
}

/// The state on which further execution depends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct State {
    buffers: BTreeMap<Value, Cell>,
    rings: BTreeMap<Value, Ring>,
    /// Asynchronous copies by group: the slots that each group fills, closed by `publish`, oldest first.
    groups: VecDeque<Vec<(Value, u32)>>,
    /// Slots of the group that is not closed yet.
    open: Vec<(Value, u32)>,
    /// Buffers that TMA stores may be reading, in the order of their last stores, oldest first.
    storing: Vec<Value>,
    /// Accesses to tensors that TMA stores write.
    tensors: BTreeMap<Value, StoredTensor>,
    /// Statements of this epoch that may conflict with later ones in a tensor.
    touched: BTreeSet<Stmt>,
    /// Decided conditions, by number.
    decided: BTreeMap<usize, bool>,
}

/// Accesses to a tensor that TMA stores write.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct StoredTensor {
    /// Stored to by threads.
    written: bool,
    /// Stored to by TMA stores.
    stored: bool,
}

impl State {
    fn close_group(&mut self) {
        let group = std::mem::take(&mut self.open);
        self.groups.push_back(group);
    }

    /// Lets all but the last `pending` groups land.
    fn complete_groups(&mut self, pending: usize) {
        let landed = self.groups.len().saturating_sub(pending);
        for group in self.groups.drain(..landed) {
            for (v, slot) in group {
                if let Some(cell) = self.rings.get_mut(&v).and_then(|r| r.cells.get_mut(&slot)) {
                    (cell.flying, cell.written) = (false, true);
                }
            }
        }
    }
}

type States = BTreeMap<State, Trace>;

fn merge(into: &mut States, from: States) {
    for (state, trace) in from {
        into.entry(state).or_insert(trace);
    }
}

struct Run<'k> {
    k: &'k Kernel,
    /// In roles, only buffers are checked: mbarriers synchronise channels.
    buffers_only: bool,
    /// Tensors that TMA stores write.
    stored: BTreeSet<Value>,
    /// Which buffers share memory.
    overlays: Overlays,
    /// Pairs of statements that need a barrier between them for tensors.
    meetings: &'k Conflicts,
    memo: BTreeMap<(Block, State), Rc<States>>,
    work: u32,
    faults: BTreeMap<(Stmt, Value, FaultKind), (Fault, Trace)>,
    /// Statements that synchronise or access shared memory, directly or inside.
    relevant: BTreeSet<Stmt>,
    /// Branches on recurring conditions that are fixed for the whole kernel or for an iteration of loops, with the
    /// condition's number.
    decidable: BTreeMap<Stmt, usize>,
    /// By condition number, the loop variables and names on which it depends.
    changing: Vec<BTreeSet<Value>>,
}

impl Run<'_> {
    /// Finds relevant statements and recurring conditions.
    fn prepare(&mut self, body: Block) {
        let k = self.k;
        self.mark(body);
        let mut by_text: BTreeMap<(BTreeSet<Value>, String), Vec<Stmt>> = BTreeMap::new();
        for &s in &self.relevant {
            if let StmtData::If { cond, .. } = k.stmts[s]
                && let Some(loops) = changes_with(k, cond)
            {
                by_text.entry((loops, tilec_ir::print::print_expr(k, cond))).or_default().push(s);
            }
        }
        // A single branch in a loop recurs, too, and accesses to a tensor may depend on it.
        let matters = !self.stored.is_empty();
        for ((loops, _), stmts) in by_text {
            if stmts.len() > 1 || matters && loops.is_empty() {
                let number = self.changing.len();
                self.decidable.extend(stmts.into_iter().map(|s| (s, number)));
                self.changing.push(loops);
            }
        }
    }

    fn mark(&mut self, block: Block) -> bool {
        let k = self.k;
        let mut any = false;
        for &s in &k.blocks[block] {
            let meets = self.meetings.is_earlier(s) || self.meetings.is_later(s);
            let mut here = meets
                || match k.stmts[s] {
                    StmtData::Channel { .. } => !self.buffers_only,
                    StmtData::Alloc { value, .. } => self.concerns(value),
                    StmtData::Barrier | StmtData::Signal { .. } | StmtData::Await { .. } => true,
                    _ => uses(k, s).iter().any(|u| self.concerns(u.value)) || !self.touches(s).is_empty(),
                };
            if !matches!(k.stmts[s], StmtData::Role { .. }) {
                for b in k.sub_blocks(s) {
                    here |= self.mark(b);
                }
            }
            if here {
                self.relevant.insert(s);
            }
            any |= here;
        }
        any
    }

    /// Accesses of a statement itself to tensors that TMA stores write: each tensor, and whether it is stored to.
    fn touches(&self, s: Stmt) -> Vec<(Value, bool)> {
        if self.stored.is_empty() {
            return Vec::new();
        }
        let found = tensors(self.k, s);
        let loads = found.loads.into_iter().map(|v| (v, false));
        let all = loads.chain(found.stores.into_iter().map(|v| (v, true)));
        all.filter(|(v, _)| self.stored.contains(v)).collect()
    }

    fn concerns(&self, value: Value) -> bool {
        !self.buffers_only || matches!(self.k.values[value].def, ValueDef::Smem(_))
    }

    fn fault(&mut self, s: Stmt, fault: Fault, trace: &Trace) {
        self.faults.entry((s, fault.value, fault.rule)).or_insert_with(|| (fault, trace.clone()));
    }

    /// Executes a block from each state. `None`: the work limit is reached.
    fn block(&mut self, block: Block, states: States) -> Option<States> {
        let mut out = States::new();
        for (state, trace) in states {
            let key = (block, state);
            if let Some(known) = self.memo.get(&key) {
                merge(&mut out, States::clone(known));
                continue;
            }
            let mut now = States::from([(key.1.clone(), trace)]);
            for &s in &self.k.blocks[block] {
                if self.relevant.contains(&s) {
                    now = self.stmt(s, now)?;
                }
            }
            self.memo.insert(key, Rc::new(now.clone()));
            merge(&mut out, now);
        }
        Some(out)
    }

    fn stmt(&mut self, s: Stmt, states: States) -> Option<States> {
        self.work = self.work.checked_sub(u32::try_from(states.len()).unwrap_or(u32::MAX))?;
        let k = self.k;
        match &k.stmts[s] {
            StmtData::For { body, .. } => self.for_(s, *body, states),
            StmtData::If { then, otherwise, .. } => self.if_(s, *then, *otherwise, states),
            StmtData::Ordered { body } => self.block(*body, states),
            _ => {
                let mut out = States::new();
                for (mut state, mut trace) in states {
                    match self.step(s, &mut state, &mut trace) {
                        Ok(()) => {
                            out.entry(state).or_insert(trace);
                        }
                        Err(fault) => self.fault(s, fault, &trace),
                    }
                }
                Some(out)
            }
        }
    }

    fn if_(&mut self, s: Stmt, then: Block, otherwise: Option<Block>, states: States) -> Option<States> {
        let number = self.decidable.get(&s).copied();
        let mut out = States::new();
        for taken in [true, false] {
            let mut entering = States::new();
            for (state, trace) in &states {
                let (mut state, mut trace) = (state.clone(), trace.clone());
                if let Some(number) = number
                    && *state.decided.entry(number).or_insert(taken) != taken
                {
                    continue;
                }
                trace.branches.insert(s, taken);
                entering.insert(state, trace);
            }
            let left = match if taken { Some(then) } else { otherwise } {
                Some(block) => self.block(block, entering)?,
                None => entering,
            };
            merge(&mut out, left);
        }
        Some(out)
    }

    fn for_(&mut self, s: Stmt, body: Block, mut entry: States) -> Option<States> {
        entry.values_mut().for_each(|t| {
            t.trips.insert(s, 0);
        });
        match trips(self.k, s) {
            Trips::Exactly(n) => self.exactly(s, body, entry, n),
            Trips::AtLeast(least) => self.any_number(s, body, entry, least),
        }
    }

    fn iteration(&mut self, s: Stmt, body: Block, states: States, number: u64) -> Option<States> {
        let StmtData::For { var, .. } = self.k.stmts[s] else { unreachable!("a loop has iterations") };
        let mut next = States::new();
        for (mut state, mut trace) in self.block(body, states)? {
            // Conditions on the loop variable are decided again in the next iteration.
            state.decided.retain(|&number, _| !self.changing[number].contains(&var));
            trace.trips.insert(s, number);
            next.entry(state).or_insert(trace);
        }
        Some(next)
    }

    /// Executes `n` iterations. Once states recur, only the remainder is executed.
    fn exactly(&mut self, s: Stmt, body: Block, entry: States, n: u64) -> Option<States> {
        let mut now = entry;
        let mut seen: BTreeMap<Vec<State>, u64> = BTreeMap::new();
        let (mut done, mut end) = (0, n);
        while done < end && !now.is_empty() {
            if end == n
                && let Some(&before) = seen.get(&now.keys().cloned().collect::<Vec<_>>())
            {
                end = done + (n - done) % (done - before);
                if done == end {
                    break;
                }
            }
            seen.entry(now.keys().cloned().collect()).or_insert(done);
            done += 1;
            now = self.iteration(s, body, now, done)?;
        }
        Some(now)
    }

    /// Executes any number of iterations from `least` on, which is 0 or 1.
    fn any_number(&mut self, s: Stmt, body: Block, entry: States, least: u64) -> Option<States> {
        let mut exits = if least == 0 { entry.clone() } else { States::new() };
        let mut expanded: BTreeSet<State> = BTreeSet::new();
        let mut frontier = entry;
        let mut number = 0;
        while !frontier.is_empty() {
            number += 1;
            expanded.extend(frontier.keys().cloned());
            let next = self.iteration(s, body, frontier, number)?;
            frontier =
                next.iter().filter(|(q, _)| !expanded.contains(q)).map(|(q, t)| (q.clone(), t.clone())).collect();
            merge(&mut exits, next);
        }
        Some(exits)
    }
}

/// The trip count of a loop.
enum Trips {
    Exactly(u64),
    AtLeast(u64),
}

fn trips(k: &Kernel, s: Stmt) -> Trips {
    let StmtData::For { start, end, step, cond, .. } = k.stmts[s] else { unreachable!("it is a loop") };
    if cond.is_some() {
        return Trips::AtLeast(0);
    }
    if let (Some(from), Some(to), Some(by)) = (k.as_int(start), k.as_int(end), k.as_int(step))
        && let Some(trips) = index::trips(from, to, by)
    {
        return Trips::Exactly(trips);
    }
    let sized = matches!(k.exprs[end], ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Size));
    Trips::AtLeast(u64::from(sized && k.as_int(start).is_some_and(|x| x <= 0)))
}

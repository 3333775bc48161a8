//! Placement of waits for wgmma in the consumer.
//!
//! A product is pending from its statement on. Until it is complete, only further products may use its accumulator. A
//! register tile that it reads must not be written, and a slot that it reads must not be released. `await acc, n` waits
//! until all but the last `n` products are complete. So each statement needs the number of products that were issued
//! after the one on which it depends. A forward dataflow analysis counts them; where paths join, the smaller count is
//! correct for both.

use crate::analysis::wgmma::is_product;
use crate::graph::accesses::Accesses;
use std::collections::BTreeMap;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::types::Elem;
use tilec_ir::typing::resolve_view;

/// A product that may be pending: the number of products issued after it, and its accumulator, which identifies it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Issued {
    behind: u32,
    acc: Value,
}

/// The accumulators, operands and slots that pending products use.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct State {
    /// Accumulators.
    sums: BTreeMap<Value, Issued>,
    /// Register tiles, and buffers of the consumer, that are operands.
    operands: BTreeMap<Value, Issued>,
    /// The held slots of each channel, oldest first, each with the last product that reads it.
    held: BTreeMap<Value, Vec<Option<Issued>>>,
}

impl State {
    fn each(&mut self, f: &mut dyn FnMut(&mut Issued)) {
        self.sums.values_mut().for_each(&mut *f);
        self.operands.values_mut().for_each(&mut *f);
        self.held.values_mut().flatten().flatten().for_each(f);
    }

    /// The state after waiting for all but the last `n` products.
    fn awaited(&mut self, n: u32) {
        self.sums.retain(|_, p| p.behind < n);
        self.operands.retain(|_, p| p.behind < n);
        for slot in self.held.values_mut().flatten() {
            *slot = slot.filter(|p| p.behind < n);
        }
    }

    /// The join of two paths.
    fn join(&self, other: &State) -> State {
        let both = |a: &BTreeMap<Value, Issued>, b: &BTreeMap<Value, Issued>| {
            let mut all = a.clone();
            for (&v, &p) in b {
                all.entry(v).and_modify(|q| *q = (*q).min(p)).or_insert(p);
            }
            all
        };
        let mut held = self.held.clone();
        for (&c, slots) in &other.held {
            let own = held.entry(c).or_default();
            if own.is_empty() {
                own.clone_from(slots);
                continue;
            }
            for (a, b) in own.iter_mut().zip(slots) {
                *a = match (*a, *b) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
        State { sums: both(&self.sums, &other.sums), operands: both(&self.operands, &other.operands), held }
    }
}

/// Inserts the `await`s in a role's body.
pub(super) fn insert(k: &mut Kernel, body: Block) {
    let mut state = State::default();
    walk(k, body, &mut state, true);
    // No product may be pending at the end of the role.
    if let Some(&last) = state.sums.values().min() {
        let span = k.blocks[body].last().map_or(k.name_span, |&s| k.stmt_spans[s]);
        let s = k.stmt(StmtData::Await { value: last.acc, pending: last.behind, after: Vec::new() }, span);
        k.blocks[body].push(s);
    }
}

/// Analyses the statements of a block; with `write` it inserts the `await`s.
fn walk(k: &mut Kernel, block: Block, state: &mut State, write: bool) {
    let mut out = Vec::new();
    for s in k.blocks[block].clone() {
        if let Some(issued) = needed(k, s, state) {
            let after = if write { small_tiles_computed_after(k, &out, state) } else { Vec::new() };
            state.awaited(issued.behind);
            if write {
                let span: Span = k.stmt_spans[s];
                out.push(k.stmt(StmtData::Await { value: issued.acc, pending: issued.behind, after }, span));
            }
        }
        out.push(s);
        step(k, s, state, write);
    }
    // An accumulator that is never read is awaited here, because its registers are free after the block.
    let declared = |s: &Stmt| match k.stmts[*s] {
        StmtData::Var { value, .. } => state.sums.get(&value).copied(),
        _ => None,
    };
    if let Some(issued) = k.blocks[block].iter().filter_map(declared).min() {
        state.awaited(issued.behind);
        if write {
            let span = k.stmt_spans[*out.last().expect("a product is a statement")];
            out.push(k.stmt(StmtData::Await { value: issued.acc, pending: issued.behind, after: Vec::new() }, span));
        }
    }
    if write {
        k.blocks[block] = out;
    }
}

/// Small register tiles that the statements after the last product compute and none of them reads: forcing them forces
/// everything in between. Larger tiles would cost too many register reads, and pending accumulators are not available
/// yet.
fn small_tiles_computed_after(k: &Kernel, list: &[Stmt], state: &State) -> Vec<Value> {
    let multiplies = |s: &Stmt| is_product(k, *s) || k.sub_blocks(*s).into_iter().any(|b| multiplies(k, b));
    let Some(issued) = list.iter().rposition(multiplies) else { return Vec::new() };
    let mut found: Vec<Value> = Vec::new();
    for &s in &list[issued + 1..] {
        let touches = Accesses::of(k, s).touches;
        found.retain(|v| touches.iter().all(|t| t.value != *v || !t.reads));
        let written = touches.iter().filter(|t| t.writes).map(|t| t.value);
        found.extend(written.filter(|&v| is_small(k, v)).collect::<Vec<_>>());
    }
    found.retain(|v| !state.sums.contains_key(v));
    found.dedup();
    found
}

/// Most elements of a small tile for each of its threads.
const FEW: u64 = 8;

/// Whether a value is a register tile of f32 with few elements in a thread.
fn is_small(k: &Kernel, v: Value) -> bool {
    let elements = k.tile_ty(v).and_then(|t| t.reg_layout.as_ref()).map(|l| 1u64 << l.value_bits());
    matches!(k.values[v].def, ValueDef::Var(_))
        && elements.is_some_and(|n| n <= FEW)
        && crate::analysis::access_width::elem_of(k, v) == Some(Elem::F32)
}

/// The product that must be complete before a statement (or before a loop or branch begins): the one that was issued
/// last.
fn needed(k: &Kernel, s: Stmt, state: &State) -> Option<Issued> {
    if let StmtData::Channel { op: ChannelOp::Release, channels, .. } = &k.stmts[s] {
        let oldest = |c: &Value| state.held.get(c).and_then(|slots| slots.first().copied().flatten());
        return channels.iter().filter_map(oldest).min();
    }
    if is_product(k, s) {
        let (acc, operands) = product(k, s);
        // A product may use another one's sums as operand, or write its operands; products on one accumulator run in
        // order.
        let written = state.operands.get(&acc).copied();
        return operands.iter().filter_map(|v| state.sums.get(v).copied()).chain(written).min();
    }
    if let StmtData::Await { .. } = k.stmts[s] {
        return None;
    }
    let mut found: Option<Issued> = None;
    let mut note = |p: Option<&Issued>| found = found.into_iter().chain(p.copied()).min();
    // All sides of a branch, and all iterations of a loop, begin in the same state; those with products of their own
    // wait inside.
    let pipelined = match k.stmts[s] {
        StmtData::For { body, .. } => multiplies(k, body),
        StmtData::If { then, otherwise, .. } => [Some(then), otherwise].into_iter().flatten().any(|b| multiplies(k, b)),
        _ => false,
    };
    if !pipelined {
        for touch in &Accesses::of(k, s).touches {
            note(state.sums.get(&touch.value));
            note(state.operands.get(&touch.value).filter(|_| touch.writes));
        }
    } else {
        for e in crate::analysis::uses::stmt_exprs(k, s) {
            crate::analysis::uses::for_each_ref(k, e, &mut |v| note(state.sums.get(&v)));
        }
    }
    found
}

/// Whether there is a product under a block.
fn multiplies(k: &Kernel, block: Block) -> bool {
    crate::analysis::uses::all_stmts(k, block).into_iter().any(|s| is_product(k, s))
}

/// The accumulator of a product, and its operands that are not slots: register tiles, or buffers that consumer threads
/// write.
fn product(k: &Kernel, s: Stmt) -> (Value, Vec<Value>) {
    let StmtData::Assign { dst, src } = k.stmts[s] else { unreachable!("a product is assigned") };
    let ExprData::Mma(mma) = k.exprs[src] else { unreachable!("a product is assigned") };
    let own = |e: Expr| {
        resolve_view(k, e).map(|view| view.base).filter(|&v| !matches!(k.values[v].def, ValueDef::Channel { .. }))
    };
    (dst, [mma.a, mma.b].into_iter().filter_map(own).collect())
}

/// The channels whose slots a statement's own expressions read.
fn slots_read(k: &Kernel, s: Stmt) -> Vec<Value> {
    let mut found = Vec::new();
    let mut stack = crate::analysis::uses::stmt_exprs(k, s);
    while let Some(e) = stack.pop() {
        stack.extend(k.children(e));
        if let Some(view) = resolve_view(k, e).filter(|v| v.slot == Some(Slot::Get)) {
            found.push(view.base);
        }
    }
    found
}

/// Updates the state for a statement.
fn step(k: &mut Kernel, s: Stmt, state: &mut State, write: bool) {
    match k.stmts[s].clone() {
        StmtData::Channel { op: ChannelOp::Wait, channels, .. } => {
            channels.iter().for_each(|&c| state.held.entry(c).or_default().push(None));
        }
        StmtData::Channel { op: ChannelOp::Release, channels, .. } => {
            for c in channels {
                let slots = state.held.entry(c).or_default();
                // The proof of roles refuses a written release without a wait.
                if !slots.is_empty() {
                    slots.remove(0);
                }
            }
        }
        StmtData::Assign { .. } if is_product(k, s) => {
            state.each(&mut |p| p.behind += 1);
            let (acc, operands) = product(k, s);
            let now = Issued { behind: 0, acc };
            state.sums.insert(acc, now);
            operands.into_iter().for_each(|v| {
                state.operands.insert(v, now);
            });
            for c in slots_read(k, s) {
                if let Some(slot) = state.held.entry(c).or_default().last_mut() {
                    *slot = Some(now);
                }
            }
        }
        // For a buffer, `await` means TMA stores, not products.
        StmtData::Await { value, pending, .. } if matches!(k.values[value].def, ValueDef::Var(_)) => {
            state.awaited(pending);
        }
        StmtData::If { then, otherwise, .. } => {
            let mut other = state.clone();
            walk(k, then, state, write);
            otherwise.into_iter().for_each(|b| walk(k, b, &mut other, write));
            *state = state.join(&other);
        }
        StmtData::For { body, .. } => {
            loop {
                let mut after = state.clone();
                walk(k, body, &mut after, false);
                let met = state.join(&after);
                if met == *state {
                    break;
                }
                *state = met;
            }
            let mut inside = state.clone();
            walk(k, body, &mut inside, write);
        }
        StmtData::Ordered { body } | StmtData::Role { body, .. } => walk(k, body, state, write),
        _ => {}
    }
}

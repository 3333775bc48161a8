//! Fences between the proxies: `fence async` between writes of threads to shared memory and asynchronous reads of it.
//!
//! TMA stores and wgmma read through the *asynchronous proxy*. It sees writes through the generic proxy only after a
//! fence (PTX ISA 8.6, "Proxies"). Barriers are needed as well, because a fence orders only the accesses of its own
//! thread.
//!
//! [`place`] inserts a fence
//!
//! * after each write to a buffer that is read asynchronously, in front of the next barrier or channel operation;
//! * in front of the `publish` of slots to which threads have stored;
//! * after the `wait` for slots that `cp.async` fills, because these copies land later.
//!
//! [`prove`] is independent of the placement. It follows the program over all branches and iterations with the set of
//! unfenced writes, and refuses asynchronous reads of them:
//!
//! * a buffer is unfenced from a write by threads to the next fence of these threads;
//! * a slot is unfenced from a store to the next fence in front of its `publish`, or else from the `wait` for it to the
//!   next fence. Data of `cp.async` counts as written at the `wait`.

use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::placement::multiplies_by_warpgroups;
use tilec_ir::tensor_store::{read_asynchronously, tensor_store};
use tilec_ir::typing::resolve_view;

/// Inserts missing fences.
pub(super) fn place(k: &mut Kernel) {
    let products = multiplies_by_warpgroups(k);
    let mut around: BTreeMap<Stmt, bool> = BTreeMap::new();
    for s in k.statements() {
        let in_front = match &k.stmts[s] {
            StmtData::Copy { .. } => {
                written(k, s).filter(|&v| is_buffer(k, v) && read_asynchronously(k, v)).map(|_| false)
            }
            StmtData::Channel { op, channels, .. } if products => {
                let asynchronous = channels.iter().any(|&c| k.fills_asynchronously(c));
                let stored = channels.iter().any(|&c| !k.fills_asynchronously(c) && k.fills_by_threads(c));
                match op {
                    ChannelOp::Publish => stored.then_some(true),
                    ChannelOp::Wait => asynchronous.then_some(false),
                    ChannelOp::Acquire | ChannelOp::Release => None,
                }
            }
            _ => None,
        };
        around.extend(in_front.map(|in_front| (s, in_front)));
    }
    if around.is_empty() {
        return;
    }
    let blocks: Vec<Block> = k.blocks.keys().collect();
    for b in blocks {
        let stmts = k.blocks[b].clone();
        let fence = |s: Option<&Stmt>| s.is_some_and(|&s| matches!(k.stmts[s], StmtData::Fence));
        let before = |i: usize| around.get(&stmts[i]) == Some(&true) && !fence(i.checked_sub(1).map(|i| &stmts[i]));
        let behind = |i: usize| around.get(&stmts[i]) == Some(&false) && !fence(stmts.get(i + 1));
        let places: Vec<(bool, bool)> = (0..stmts.len()).map(|i| (before(i), behind(i))).collect();
        let mut list = Vec::with_capacity(stmts.len());
        for (s, (before, behind)) in stmts.into_iter().zip(places) {
            if before {
                list.push(k.stmt(StmtData::Fence, Span::default()));
            }
            list.push(s);
            if behind {
                list.push(k.stmt(StmtData::Fence, Span::default()));
            }
        }
        k.blocks[b] = list;
    }
}

/// Reports asynchronous reads of unfenced writes.
pub(super) fn prove(k: &Kernel) -> Vec<Diagnostic> {
    let reads = k.statements().into_iter().any(|s| !read(k, s).is_empty());
    if !reads {
        return Vec::new();
    }
    let mut walk = Walk { k, unfenced: BTreeMap::new(), found: BTreeMap::new() };
    // Slots that are published without a fence are found in the first pass, whatever the order of roles.
    for _ in 0..2 {
        walk.found.clear();
        walk.block(k.body, &mut State::default());
    }
    let say = |(&(s, v), &at): (&(Stmt, Value), &Stmt)| {
        let message = format!(
            "`{}` is read by the async proxy, and there is no fence after the writes of threads",
            k.values[v].name
        );
        Diagnostic::error(codes::HAZARD, k.stmt_spans[s], message)
            .with_place(k.stmt_spans[at], "written here")
            .with_note("TMA stores and wgmma see what threads write only after a `fence async`")
    };
    walk.found.iter().map(say).collect()
}

fn is_buffer(k: &Kernel, v: Value) -> bool {
    matches!(k.values[v].def, ValueDef::Smem(_))
}

/// The buffer or channel to which threads write in a statement.
fn written(k: &Kernel, s: Stmt) -> Option<Value> {
    let StmtData::Copy { dst, attrs, .. } = &k.stmts[s] else { return None };
    let to = resolve_view(k, *dst)?.base;
    let shared = k.values[to].def.space().is_of_block();
    (shared && attrs.is_by_threads()).then_some(to)
}

/// The buffers and channels that a statement reads through the asynchronous proxy.
fn read(k: &Kernel, s: Stmt) -> Vec<Value> {
    if let Some((buffer, _)) = tensor_store(k, s) {
        return vec![buffer];
    }
    let StmtData::Assign { src, .. } = k.stmts[s] else { return Vec::new() };
    let ExprData::Mma(mma) = k.exprs[src] else { return Vec::new() };
    if !mma.atom.is_some_and(|a| a.row().asynchronous()) {
        return Vec::new();
    }
    let bases = [mma.a, mma.b].into_iter().filter_map(|e| resolve_view(k, e)).map(|view| view.base);
    bases.filter(|&v| k.values[v].def.space().is_of_block()).collect()
}

/// Unfenced writes of threads, each with a statement that wrote.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct State {
    /// Buffers, and slots that were waited for.
    unfenced: BTreeMap<Value, Stmt>,
    /// Slots that are being filled.
    filling: BTreeMap<Value, Stmt>,
}

impl State {
    /// Whether it grew.
    fn join(&mut self, other: &State) -> bool {
        let before = self.unfenced.len() + self.filling.len();
        for (&v, &s) in &other.unfenced {
            self.unfenced.entry(v).or_insert(s);
        }
        for (&v, &s) in &other.filling {
            self.filling.entry(v).or_insert(s);
        }
        before < self.unfenced.len() + self.filling.len()
    }
}

struct Walk<'k> {
    k: &'k Kernel,
    /// Channels whose slots are published without a fence, with the statements that wrote these.
    unfenced: BTreeMap<Value, Stmt>,
    found: BTreeMap<(Stmt, Value), Stmt>,
}

impl Walk<'_> {
    fn block(&mut self, block: Block, state: &mut State) {
        let k = self.k;
        for &s in &k.blocks[block] {
            match &k.stmts[s] {
                StmtData::Fence => *state = State::default(),
                StmtData::For { body, .. } => loop {
                    let mut after = state.clone();
                    self.block(*body, &mut after);
                    if !state.join(&after) {
                        break;
                    }
                },
                StmtData::If { then, otherwise, .. } => {
                    let mut other = state.clone();
                    self.block(*then, state);
                    otherwise.iter().for_each(|&b| self.block(b, &mut other));
                    state.join(&other);
                }
                // Each role has its own threads.
                StmtData::Role { body, .. } => self.block(*body, &mut State::default()),
                StmtData::Ordered { body } => self.block(*body, state),
                StmtData::Channel { op, channels, .. } => self.operate(*op, channels, state),
                _ => self.access(s, state),
            }
        }
    }

    fn access(&mut self, s: Stmt, state: &mut State) {
        let k = self.k;
        for v in read(k, s) {
            if let Some(&at) = state.unfenced.get(&v) {
                self.found.insert((s, v), at);
            }
        }
        let Some(v) = written(k, s) else { return };
        let StmtData::Copy { attrs, .. } = &k.stmts[s] else { return };
        if attrs.is_asynchronous() {
            // The copy lands later than any fence before the `publish`.
            self.unfenced.entry(v).or_insert(s);
        } else if is_buffer(k, v) {
            state.unfenced.insert(v, s);
        } else {
            state.filling.insert(v, s);
        }
    }

    fn operate(&mut self, op: ChannelOp, channels: &[Value], state: &mut State) {
        for v in channels {
            match op {
                ChannelOp::Publish => {
                    if let Some(s) = state.filling.remove(v) {
                        self.unfenced.entry(*v).or_insert(s);
                    }
                }
                ChannelOp::Wait => {
                    if let Some(&s) = self.unfenced.get(v) {
                        state.unfenced.insert(*v, s);
                    }
                }
                ChannelOp::Acquire => {
                    state.filling.remove(v);
                }
                ChannelOp::Release => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;

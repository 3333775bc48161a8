//! Compares the channel operations of two roles over the same channels.

use super::held_slots::Counts;
use crate::analysis::conditions::alike;
use crate::barriers::prove::uses::slot_uses;
use crate::barriers::roles::messages::slots;
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, Kernel, Next, Slot, StmtData};

/// A step of a role with channel operations.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A slot is filled (`publish`) or waited for (`wait`). `touched`: the channels that are written before, or read
    /// afterwards, in the same block. `held`: slots held in front of the statement, to be filled or waited for.
    Turn { stmt: Stmt, channels: Vec<Value>, fills: bool, touched: Vec<Value>, held: BTreeMap<Value, usize> },
    /// A loop over steps.
    Loop { stmt: Stmt, var: Value, bounds: [Expr; 3], next: Option<Next>, steps: Vec<Step> },
    /// Steps on a condition.
    Branch { stmt: Stmt, cond: Expr, then: Vec<Step>, otherwise: Vec<Step> },
}

pub(super) fn trace(k: &Kernel, block: Block, counts: &BTreeMap<Stmt, Counts>) -> Vec<Step> {
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
            StmtData::Ordered { body } => out.extend(trace(k, *body, counts)),
            StmtData::For { var, start, end, step, next, body, .. } => {
                let steps = trace(k, *body, counts);
                if !steps.is_empty() {
                    out.push(Step::Loop { stmt: s, var: *var, bounds: [*start, *end, *step], next: *next, steps });
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

/// Whether the statements in front of a `publish` fill a slot of `v`; if they do not acquire it, it may have been
/// filled earlier.
fn filled(k: &Kernel, before: &[Stmt], v: Value) -> bool {
    let own = before.iter().rposition(|&s| operates(k, s, ChannelOp::Acquire, v));
    own.is_none_or(|own| touches(k, &before[own..], v, Slot::Put))
}

/// Whether the statements after a `wait` read the slot of `v`, before it is released or another one is waited for.
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

/// The first slot that is read although nothing was put into it, for roles with the same steps: its `wait`, its
/// `publish` and the channel.
pub(super) fn unfilled(a: &[Step], b: &[Step]) -> Option<(Stmt, Stmt, Value)> {
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

/// Where role `b` waits for a slot that `a` cannot fill, because `a` first acquires a slot of another channel whose
/// slots `b` all holds.
pub(super) fn stuck(k: &Kernel, a: &[Step], b: &[Step]) -> Option<(Stmt, Stmt, Value)> {
    a.iter().zip(b).find_map(|(x, y)| match (x, y) {
        (Step::Turn { stmt: publish, channels, held: ahead, .. }, Step::Turn { stmt: wait, held: before, .. }) => {
            channels.iter().enumerate().find_map(|(i, v)| {
                // Channels that the same statement publishes in front of `v` are waited for in front of it.
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
pub(super) fn only(steps: &[Step], of: &dyn Fn(Value) -> bool, fills: bool) -> Vec<Step> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step::Turn { stmt, channels, fills: f, touched, held } if *f == fills => {
                let channels: Vec<Value> = channels.iter().copied().filter(|&v| of(v)).collect();
                if !channels.is_empty() {
                    let touched = touched.iter().copied().filter(|&v| of(v)).collect();
                    let held = held.clone();
                    out.push(Step::Turn { stmt: *stmt, channels, fills, touched, held });
                }
            }
            Step::Turn { .. } => {}
            Step::Loop { stmt, var, bounds, next, steps } => {
                let steps = only(steps, of, fills);
                if !steps.is_empty() {
                    out.push(Step::Loop { stmt: *stmt, var: *var, bounds: *bounds, next: *next, steps });
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

pub(super) fn note(steps: &[Step], f: &mut dyn FnMut(Value, bool)) {
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

/// The statements of the two roles at which their steps differ.
type Parting = (Option<Stmt>, Option<Stmt>);

pub(super) fn differs(k: &Kernel, a: &[Step], b: &[Step], same: &mut Vec<(Value, Value)>) -> Option<Parting> {
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
            (
                Step::Loop { var: v, bounds: p, next: n, steps: s, .. },
                Step::Loop { var: w, bounds: q, next: m, steps: t, .. },
            ) => {
                // Tile numbers from a counter are equal if they pass through one channel.
                if n != m || !p.iter().zip(q).all(|(&e, &f)| alike(k, e, f, same)) {
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

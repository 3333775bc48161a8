//! Proves that roles use their channels in order, for every trip count.
//!
//! Roles synchronise only through channels, so the proof is about the order of channel operations in each role:
//!
//! 1. One role fills a channel and another one empties it.
//! 2. Each role alternately takes a slot (`acquire`, `wait`), uses it, and returns it (`publish`, `release`). It holds
//!    as many slots at the start of an iteration as at its end, and none at its own end. `.put` is accessed only between
//!    `acquire` and `publish`, `.get` only between `wait` and `release`. One slot of a channel is filled at a time. A role
//!    may hold several slots that it waited for, up to all: `.get` is the one waited for last, and `release` returns the
//!    oldest.
//! 3. Both roles run the same loops, with the same bounds, and the same operations in the same order: every published
//!    slot is waited for, and has been filled. No role waits for a slot of one channel while the other waits to fill a
//!    slot of another channel: if a slot is acquired before another channel's slot is published, not all slots of its
//!    channel are held.
//! 4. No role waits for ever. The graph of roles that fill channels for each other has no cycle, or the roles in the
//!    cycle can all run to their end ([`deadlock`]).
//! 5. wgmma products read slots, or registers, and write their accumulator until they are awaited. Before that, no slot
//!    that one reads is released, only products use a register tile that one reads, and nothing else reads or writes an
//!    accumulator. At the end of a role none is pending.
//! 6. If blocks of a cluster fill slots for one another (`multicast`), the loops and branches around channel operations
//!    are the same in all of them.
//! 7. A buffer is used by one role, whose barriers order the accesses of its threads.
//! 8. Replicas of a role share data only in `ordered` statements, each in one ([`replicas`]).
//!
//! A slot is filled again only after it was released (the mbarriers ensure this), so 2 and 5 exclude races on slots.
//! For 7, the proof for a block of threads shows that there are enough barriers ([`prove_role`]).

mod channel_order;
mod deadlock;
mod held_slots;
mod messages;
mod replicas;

use super::disjoint::{never_loads_stored, stored_twice};
use super::global::Conflicts;
use super::prove::prove_role;
use crate::barriers::prove::uses::{buffer_uses, tensor_uses};
use crate::barriers::roles::messages::fault;
use channel_order::{Step, differs, note, only, stuck, trace, unfilled};
use held_slots::walk;
use std::collections::BTreeMap;
use tilec_ir::cluster::{self, Uniform};
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::ordered::of_warpgroups;
use tilec_ir::tensor_store::tensor_store;

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

/// The faults of channels and buffers in a kernel with roles.
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
    for &(role, body) in &roles {
        let counts = walk(k, body, &mut found);
        walks.push(trace(k, body, &counts));
        replicas::check(k, role, body, &mut found);
    }
    pairs(k, &roles, &walks, &mut found);
    clusters(k, &roles, &mut found);
    let shared = shared(k);
    if shared.is_empty() {
        let bodies = [vec![k.body], bodies(k)].concat();
        let meetings = Conflicts::of(k);
        found.extend(bodies.into_iter().flat_map(|body| prove_role(k, &meetings, body)));
    }
    found.extend(shared);
    stored(k, &mut found);
    found.extend(stored_twice(k));
    found.extend(barriers_in_turns(k));
    found
}

/// Barriers in `ordered` statements of warpgroups: the first warpgroup would wait there for those that may enter only
/// after it has left.
fn barriers_in_turns(k: &Kernel) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for turn in of_warpgroups(k) {
        let mut barriers = Vec::new();
        for b in k.sub_blocks(turn) {
            k.walk(b, &mut |k, _, s| barriers.extend(matches!(k.stmts[s], StmtData::Barrier).then_some(s)));
        }
        found.extend(barriers.into_iter().map(|s| {
            Diagnostic::error(codes::HAZARD, k.stmt_spans[s], "a barrier in `ordered`, which warpgroups run one after the other")
                .with_place(k.stmt_spans[turn], "`ordered` here")
                .with_note("the first warpgroup would wait for the others, and they wait for it: put the barrier in front of `ordered`")
        }));
    }
    found
}

/// The statements of each role, and of the code outside of roles.
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

/// Tensors that TMA stores of one role write and another role accesses in another way: the stores' completion cannot be
/// observed. Stores that come later, or to other elements, are fine ([`super::disjoint`]). [`stored_twice`] compares TMA stores
/// with each other.
fn stored(k: &Kernel, found: &mut Vec<Diagnostic>) {
    let parts = parts(k);
    for (part, stmts) in &parts {
        for &store in stmts {
            let Some((_, tensor)) = tensor_store(k, store) else { continue };
            let others = parts.iter().filter(|(other, _)| *other != part).flat_map(|(_, stmts)| stmts);
            let used = others.copied().find(|&s| {
                tensor_store(k, s).is_none() && tensor_uses(k, s).contains(&tensor) && !never_loads_stored(k, s, store)
            });
            if let Some(used) = used {
                let message =
                    format!("`{}` is used while TMA stores to it may not have arrived", k.values[tensor].name);
                found.push(
                    Diagnostic::error(codes::HAZARD, k.stmt_spans[used], message)
                        .with_place(k.stmt_spans[store], "stored here")
                        .with_note("only the end of the kernel waits for the data of a TMA store: store to a tensor that the kernel uses in no other way"),
                );
            }
        }
    }
}

/// Rule 7: buffers that two roles use, or a role and the code outside of roles.
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
                        .with_note("roles pass tiles through channels; a buffer belongs to one role, and a `barrier` in a role orders its threads only"),
                );
            }
        }
    }
    found
}

/// Rule 6: if blocks of a cluster fill slots for one another, all fill and empty equally many, in the same order.
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

/// Rules 1, 3 and 4: the roles that fill and empty each channel. `found` has the faults of single roles already.
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
    let mut ends: BTreeMap<Value, [usize; 2]> = BTreeMap::new();
    for (&v, [fill, empty]) in &users {
        match (&fill[..], &empty[..]) {
            (&[a], &[b]) if a != b => {
                edges.entry((a, b)).or_default().push(v);
                ends.insert(v, [a, b]);
            }
            _ => {
                let at = fill.iter().chain(empty).next().map_or(roles[0].0, |&i| roles[i].0);
                let name = &k.values[v].name;
                let message = match (fill.len(), empty.len()) {
                    (0, _) => format!("no role publishes to channel `{name}`"),
                    (_, 0) => format!("no role waits for channel `{name}`"),
                    (1, 1) => format!("one role publishes to channel `{name}` and waits for it: these are two roles"),
                    (1, n) => format!("{n} roles wait for channel `{name}`: a channel has one consumer role"),
                    (n, _) => format!("{n} roles publish to channel `{name}`: a channel has one producer role"),
                };
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
                "the roles do not use the same slots in the same order: loops, branches or the order of channels differ".to_owned(),
            );
            if let (Some(_), Some(other)) = (s, other) {
                d = d.with_place(k.stmt_spans[other], "the other role");
            }
            found.push(d);
        } else if let Some((wait, publish, v)) = unfilled(&filled, &emptied) {
            let message = format!("a slot of `{}` is read that nothing fills", k.values[v].name);
            found.push(fault(k, wait, message).with_place(k.stmt_spans[publish], "the other role publishes it here"));
        } else if let Some((wait, publish, v)) = stuck(k, &filled, &emptied) {
            let message =
                format!("this may wait forever (deadlock): all slots of `{}` are held here", k.values[v].name);
            let place = "the other role waits for one of them before it publishes this";
            found.push(fault(k, wait, message).with_place(k.stmt_spans[publish], place));
        }
    }
    // Roles that wait for one another in a cycle.
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
        found.push(fault(k, roles[a].0, "roles fill channels for one another in a cycle".to_owned()));
    }
    if found.is_empty() {
        let bodies: Vec<Block> = roles.iter().map(|&(_, body)| body).collect();
        deadlock::check(k, &bodies, &ends, found);
    }
}

#[cfg(test)]
mod tests;

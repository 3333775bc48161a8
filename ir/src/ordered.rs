//! `ordered` statements, which groups of warps execute one after the other: `ordered arrivals 4 at 65600 { .. }`.
//!
//! The groups are the replicas of a role, or the warpgroups of a role without replicas. Each group has an mbarrier for
//! the statement. It completes a phase when all warps of the previous group have left the statement: that is the
//! arrival count. The barriers of all groups are contiguous.
//!
//! A replica does not know which slots other replicas take. So the barriers are followed by a word of 8 bytes per
//! replica for each ring whose slots the statement waits for. It holds the position in the ring at which the replica
//! continues. Warpgroups of one role all wait for the same slots, and need none.

use crate::entities::{Block, Stmt, Value};
use crate::handover::{ring, role_warps};
use crate::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use crate::placement::{BARRIER_BYTES, end_with_barriers};
use crate::roles::{distributed_loop, replicas};
use crate::target::WARPGROUP;

/// How an `ordered` statement is done alternately.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderedGroup {
    /// The role that it is in.
    pub role: Stmt,
    /// The statement.
    pub stmt: Stmt,
    /// How many groups of warps take turns.
    pub groups: u32,
    /// Warps of a group: the arrivals that complete a phase.
    pub warps: u32,
    /// Rings, each by the first of its channels, whose places are passed on.
    pub passed_rings: Vec<Value>,
}

impl OrderedGroup {
    /// The bytes that it takes.
    pub fn bytes(&self) -> u64 {
        (1 + self.passed_rings.len() as u64) * u64::from(self.groups) * BARRIER_BYTES
    }

    /// Where the words for a ring begin, from where its barriers do: one after the other.
    pub fn word(&self, ring: usize) -> u64 {
        (1 + ring as u64) * u64::from(self.groups) * BARRIER_BYTES
    }
}

/// The `ordered` statements that are done alternately, in the order of the text.
pub fn turns(k: &Kernel) -> Vec<OrderedGroup> {
    k.blocks[k.body].iter().flat_map(|&s| of_role(k, s)).collect()
}

/// Those that the warpgroups of a role do one after the other.
pub fn of_warpgroups(k: &Kernel) -> Vec<Stmt> {
    turns(k).into_iter().filter(|turn| replicas(k, turn.role) == Some(1)).map(|turn| turn.stmt).collect()
}

/// Those of a role.
fn of_role(k: &Kernel, role: Stmt) -> Vec<OrderedGroup> {
    let StmtData::Role { body, .. } = k.stmts[role] else { return Vec::new() };
    let (Some(own), Some(replicas)) = (role_warps(k, role), replicas(k, role)) else { return Vec::new() };
    let (groups, warps) = if replicas > 1 { (replicas, own) } else { (own / WARPGROUP, WARPGROUP) };
    let mut found = Vec::new();
    let within = match distributed_loop(k, body).filter(|_| replicas > 1).map(|s| &k.stmts[s]) {
        Some(&StmtData::For { body, .. }) => body,
        _ => body,
    };
    k.walk(within, &mut |k, block, s| {
        let StmtData::Ordered { body } = k.stmts[s] else { return };
        // Replicas take turns in the loop that is distributed to them, and nowhere deeper.
        if groups < 2 || replicas > 1 && block != within {
            return;
        }
        let handed = if replicas > 1 { emptied(k, body) } else { Vec::new() };
        found.push(OrderedGroup { role, stmt: s, groups, warps, passed_rings: handed });
    });
    found
}

/// The rings between roles whose slots are waited for under a block, in the order of the text.
fn emptied(k: &Kernel, block: Block) -> Vec<Value> {
    let mut channels = Vec::new();
    k.walk(k.body, &mut |k, _, s| match k.stmts[s] {
        StmtData::Alloc { value, .. } if matches!(k.values[value].def, ValueDef::Channel { .. }) => {
            channels.push(value);
        }
        _ => {}
    });
    let mut found: Vec<Value> = Vec::new();
    for v in channels {
        let ring = ring(k, v);
        if ring.first() == Some(&v) && k.handovers[v].is_some() && waits(k, block, &ring) {
            found.push(v);
        }
    }
    found
}

/// Whether slots of one of the channels are waited for under `block`.
fn waits(k: &Kernel, block: Block, of: &[Value]) -> bool {
    let mut found = false;
    k.walk(block, &mut |k, _, s| {
        found |= matches!(&k.stmts[s], StmtData::Channel { op: ChannelOp::Wait, channels, .. } if channels.iter().any(|c| of.contains(c)));
    });
    found
}

/// Whether replicas of a role pass on their place in a channel.
pub fn passes_ring_state(k: &Kernel, channel: Value) -> bool {
    k.blocks[k.body].iter().any(|&s| match k.stmts[s] {
        StmtData::Role { body, .. } => replicas(k, s).is_some_and(|n| n > 1) && waits(k, body, &[channel]),
        _ => false,
    })
}

/// The bytes of a statement that is placed.
pub fn range(k: &Kernel, turn: &OrderedGroup) -> Option<(u64, u64)> {
    let start = k.ordered[turn.stmt]?.at?;
    Some((start, start.saturating_add(turn.bytes())))
}

/// Where everything ends that is placed in shared memory: slots and buffers, barriers of channels, and what `ordered` statements need.
pub fn end(k: &Kernel) -> u64 {
    turns(k).iter().filter_map(|turn| Some(range(k, turn)?.1)).fold(end_with_barriers(k), u64::max)
}

//! Accesses to tensors in global memory, and which of them barriers order.
//!
//! What a thread stores is seen by others after a barrier; what others have still to load is not overwritten in front of one, and what others
//! have still to store does not come last if it is to come first. But a thread mostly stores where it has loaded or stored itself, and most windows
//! have nothing in common. So it is said of two statements whether a barrier is between them, and both the placement and the proof ask it here.
//!
//! Two stores that combine with what is there may come in any order. What TMA stores no barrier orders: it has rules of its own
//! ([`super::apart`], [`mod@super::prove`]), but for loads in front of it.

use super::apart::Pairs;
use super::kind::Kind;
use super::prove::uses::tensors;
use crate::analysis::uses::path_to;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::tensor_store::tensor_store;

/// Pairs of statements that are compared; of others it is taken for granted that they meet.
const PAIRS: u32 = 4096;

/// Statements between which a barrier stands, for what they do to tensors.
pub(super) struct Meetings {
    /// By the earlier one, then the later one.
    of: BTreeMap<Stmt, BTreeMap<Stmt, Vec<(Value, Kind)>>>,
    /// The later ones.
    later: BTreeSet<Stmt>,
}

/// What a statement itself does to a tensor.
#[derive(Copy, Clone)]
struct Touch {
    stmt: Stmt,
    /// The statement of the kernel's body that it is in, if that is a role.
    role: Option<Stmt>,
    loads: bool,
    stores: bool,
}

impl Meetings {
    pub(super) fn of(k: &Kernel) -> Meetings {
        let mut touches: BTreeMap<Value, Vec<Touch>> = BTreeMap::new();
        for stmt in k.statements() {
            let found = tensors(k, stmt);
            let all: BTreeSet<Value> = found.loads.iter().chain(&found.stores).copied().collect();
            for v in all {
                let (loads, stores) = (found.loads.contains(&v), found.stores.contains(&v));
                touches.entry(v).or_default().push(Touch { stmt, role: role(k, stmt), loads, stores });
            }
        }
        touches.retain(|_, all| all.iter().any(|t| t.stores));
        let mut meetings = Meetings { of: BTreeMap::new(), later: BTreeSet::new() };
        if touches.is_empty() {
            return meetings;
        }
        let (mut pairs, mut left) = (Pairs::new(k), PAIRS);
        for (&tensor, all) in &touches {
            for earlier in all {
                for later in all.iter().filter(|later| later.role == earlier.role) {
                    let kinds = [
                        (Kind::ReadAfterWrite, earlier.stores && later.loads),
                        (Kind::WriteAfterRead, earlier.loads && later.stores),
                        (Kind::WriteAfterWrite, earlier.stores && later.stores),
                    ];
                    for (kind, _) in kinds.into_iter().filter(|(_, both)| *both) {
                        left = left.saturating_sub(1);
                        let both = [earlier.stmt, later.stmt];
                        if ordered_by_barriers(k, kind, both) && (left == 0 || pairs.meet(tensor, kind, both)) {
                            meetings.note(tensor, kind, both);
                        }
                    }
                }
            }
        }
        meetings
    }

    fn note(&mut self, tensor: Value, kind: Kind, [earlier, later]: [Stmt; 2]) {
        self.of.entry(earlier).or_default().entry(later).or_default().push((tensor, kind));
        self.later.insert(later);
    }

    /// Whether no barrier is needed for what is done to tensors.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether something may need a barrier after a statement.
    pub(super) fn is_earlier(&self, s: Stmt) -> bool {
        self.of.contains_key(&s)
    }

    /// Whether something may need a barrier in front of a statement.
    pub(super) fn is_later(&self, s: Stmt) -> bool {
        self.later.contains(&s)
    }

    /// For what a barrier is between two statements.
    pub(super) fn between(&self, earlier: Stmt, later: Stmt) -> &[(Value, Kind)] {
        self.of.get(&earlier).and_then(|of| of.get(&later)).map_or(&[], |found| found)
    }
}

/// The role that a statement is in.
fn role(k: &Kernel, s: Stmt) -> Option<Stmt> {
    let &(block, index) = path_to(k, s).first()?;
    let top = k.blocks[block][index];
    matches!(k.stmts[top], StmtData::Role { .. }).then_some(top)
}

/// Whether it is barriers that order what two statements do to a tensor.
fn ordered_by_barriers(k: &Kernel, kind: Kind, [earlier, later]: [Stmt; 2]) -> bool {
    let accelerated = |s| tensor_store(k, s).is_some();
    !accelerated(earlier) && (!accelerated(later) || kind == Kind::WriteAfterRead)
}

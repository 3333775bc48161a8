//! Accesses to tensors in global memory, and which of them barriers order.
//!
//! If one thread stores an element, a barrier is needed before another thread loads or stores it. A barrier is also
//! needed between a load and a later store. But a thread usually accesses the same elements in both statements, and
//! most windows are disjoint. So the question is answered for pairs of statements, and both the placement and the proof
//! use the answers.
//!
//! Two stores that combine in memory may come in any order. Barriers do not order TMA stores, which have their own
//! rules ([`super::disjoint`], [`mod@super::prove`]), but they order earlier loads before them.

use super::disjoint::Pairs;
use super::hazard_kind::Kind;
use super::prove::uses::tensors;
use crate::analysis::uses::path_to;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::tensor_store::tensor_store;

/// Most pairs of statements that are compared; other pairs are taken to conflict.
const PAIRS: u32 = 4096;

/// Pairs of statements that need a barrier between them, for accesses to tensors.
pub(super) struct Conflicts {
    /// By the earlier statement, then the later one.
    of: BTreeMap<Stmt, BTreeMap<Stmt, Vec<(Value, Kind)>>>,
    /// The later ones.
    later: BTreeSet<Stmt>,
}

/// An access of a statement to a tensor, without those of its blocks.
#[derive(Copy, Clone)]
struct TensorAccess {
    stmt: Stmt,
    /// The role that contains the statement.
    role: Option<Stmt>,
    loads: bool,
    stores: bool,
}

impl Conflicts {
    pub(super) fn of(k: &Kernel) -> Conflicts {
        let mut touches: BTreeMap<Value, Vec<TensorAccess>> = BTreeMap::new();
        for stmt in k.statements() {
            let found = tensors(k, stmt);
            let all: BTreeSet<Value> = found.loads.iter().chain(&found.stores).copied().collect();
            for v in all {
                let (loads, stores) = (found.loads.contains(&v), found.stores.contains(&v));
                touches.entry(v).or_default().push(TensorAccess { stmt, role: role(k, stmt), loads, stores });
            }
        }
        touches.retain(|_, all| all.iter().any(|t| t.stores));
        let mut meetings = Conflicts { of: BTreeMap::new(), later: BTreeSet::new() };
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
                        if ordered_by_barriers(k, kind, both) && (left == 0 || pairs.may_conflict(tensor, kind, both)) {
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

    /// Whether no accesses to tensors need barriers.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether a statement may need a barrier after it.
    pub(super) fn is_earlier(&self, s: Stmt) -> bool {
        self.of.contains_key(&s)
    }

    /// Whether a statement may need a barrier in front of it.
    pub(super) fn is_later(&self, s: Stmt) -> bool {
        self.later.contains(&s)
    }

    /// The tensors and hazards for which two statements need a barrier between them.
    pub(super) fn between(&self, earlier: Stmt, later: Stmt) -> &[(Value, Kind)] {
        self.of.get(&earlier).and_then(|of| of.get(&later)).map_or(&[], |found| found)
    }
}

/// The role that contains a statement.
fn role(k: &Kernel, s: Stmt) -> Option<Stmt> {
    let &(block, index) = path_to(k, s).first()?;
    let top = k.blocks[block][index];
    matches!(k.stmts[top], StmtData::Role { .. }).then_some(top)
}

/// Whether barriers order the accesses of two statements to a tensor.
fn ordered_by_barriers(k: &Kernel, kind: Kind, [earlier, later]: [Stmt; 2]) -> bool {
    let accelerated = |s| tensor_store(k, s).is_some();
    !accelerated(earlier) && (!accelerated(later) || kind == Kind::WriteAfterRead)
}

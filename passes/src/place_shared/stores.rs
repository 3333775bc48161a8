//! Waits for TMA stores: `await s, n` waits until all but the last `n` stores of these threads have read their buffers,
//! not only those of `s`.

use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::tensor_store::tensor_store;

/// Buffers that TMA stores may be reading, each with a lower bound of the stores issued after its last one.
type Storing = BTreeMap<Value, u32>;

/// The buffers whose stores each statement awaits.
#[derive(Default)]
pub(super) struct Awaited(BTreeMap<Stmt, BTreeSet<Value>>);

impl Awaited {
    pub(super) fn of(k: &Kernel) -> Awaited {
        let mut awaited = Awaited::default();
        awaited.block(k, k.body, &mut Storing::new());
        awaited
    }

    /// The buffers whose stores are awaited by a statement, or inside it.
    pub(super) fn inside(&self, k: &Kernel, s: Stmt, out: &mut Vec<Value>) {
        out.extend(self.0.get(&s).into_iter().flatten());
        for b in k.sub_blocks(s) {
            k.blocks[b].iter().for_each(|&s| self.inside(k, s, out));
        }
    }

    fn block(&mut self, k: &Kernel, block: Block, storing: &mut Storing) {
        for &s in &k.blocks[block] {
            match k.stmts[s] {
                // An iteration begins with the stores of earlier iterations.
                StmtData::For { body, .. } => loop {
                    let before = storing.clone();
                    let mut after = before.clone();
                    self.block(k, body, &mut after);
                    join(storing, after);
                    if *storing == before {
                        break;
                    }
                },
                StmtData::If { then, otherwise, .. } => {
                    let mut other = storing.clone();
                    self.block(k, then, storing);
                    otherwise.into_iter().for_each(|b| self.block(k, b, &mut other));
                    join(storing, other);
                }
                // A role has its own threads.
                StmtData::Role { body, .. } => self.block(k, body, &mut Storing::new()),
                StmtData::Ordered { body } => self.block(k, body, storing),
                StmtData::Await { value, pending, .. } if matches!(k.values[value].def, ValueDef::Smem(_)) => {
                    let done = storing.iter().filter(|(_, behind)| **behind >= pending).map(|(&v, _)| v);
                    self.0.entry(s).or_default().extend(done.chain([value]));
                    storing.retain(|_, behind| *behind < pending);
                }
                _ => {
                    if let Some((buffer, _)) = tensor_store(k, s) {
                        storing.values_mut().for_each(|behind| *behind = behind.saturating_add(1));
                        storing.insert(buffer, 0);
                    }
                }
            }
        }
    }
}

/// The join of two paths: the store may be on either.
fn join(storing: &mut Storing, other: Storing) {
    for (v, behind) in other {
        let own = storing.entry(v).or_insert(behind);
        *own = behind.min(*own);
    }
}

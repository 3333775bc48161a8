//! Which of the threads that come to a statement do it, where not all of them do it together.
//!
//! * `elected`: one lane of the first warp, of the role's (of a replica's) or of the block's. A role that does nothing but issue TMA loads is run by it
//!   as a whole: `role producer warps 4 elected { .. }`. In others it issues the TMA loads, `copy A[i.., k..] -> a.put tma elected`, and expects
//!   their bytes, `publish a expect 8192 elected`, beside which the other threads arrive. So with tensor stores, and with the waits for them, which have to be
//!   by the lane that asked: `await s, 0 elected`.
//! * `spread`: of a loop that only awaits signals of other blocks, each thread awaits those of iterations of its own, all at a time; then they meet.

use crate::entities::{Block, Stmt};
use crate::kernel::{ChannelOp, Kernel, SignalOp, StmtData};
use crate::tensor_store::{is_stored, tensor_store};
use crate::types::Lanes;
use crate::typing::{Type, type_of};
use std::collections::BTreeMap;

/// The statements that not all threads do together.
pub fn lanes(k: &Kernel) -> BTreeMap<Stmt, Lanes> {
    let mut found = BTreeMap::new();
    k.walk(k.body, &mut |k, _, s| {
        let elected = match &k.stmts[s] {
            StmtData::Role { body, .. } => only_asks_for_copies(k, *body),
            StmtData::Copy { .. } => tensor_store(k, s).is_some(),
            StmtData::Await { value, .. } => is_stored(k, *value),
            _ => false,
        };
        if elected {
            found.insert(s, Lanes::Elected);
        } else if only_awaits_signals(k, s) {
            found.insert(s, Lanes::Spread);
        }
    });
    for &role in &k.blocks[k.body] {
        let StmtData::Role { body, .. } = k.stmts[role] else { continue };
        if found.contains_key(&role) {
            continue;
        }
        k.walk(body, &mut |k, _, s| {
            let asks = match &k.stmts[s] {
                StmtData::Copy { attrs, .. } => attrs.is_tensor(),
                StmtData::Channel { op: ChannelOp::Publish, channels, .. } => {
                    channels.iter().any(|&c| k.fills_by_tensor_copies(c))
                }
                _ => false,
            };
            if asks {
                found.insert(s, Lanes::Elected);
            }
        });
    }
    found
}

/// Whether the statements of a role are loops, names, and what one lane does for all.
pub fn only_asks_for_copies(k: &Kernel, body: Block) -> bool {
    let mut only = true;
    k.walk(body, &mut |k, _, s| {
        only &= match &k.stmts[s] {
            StmtData::For { .. } | StmtData::If { .. } => true,
            StmtData::Let { init, .. } => !matches!(type_of(k, *init), Ok(Type::Tile(_)) | Err(_)),
            StmtData::Copy { attrs, .. } => attrs.is_tensor() && tensor_store(k, s).is_none(),
            StmtData::Channel { op, .. } => matches!(op, ChannelOp::Acquire | ChannelOp::Publish),
            _ => false,
        };
    });
    only
}

/// Whether a statement is a loop that awaits signals and does nothing else.
fn only_awaits_signals(k: &Kernel, s: Stmt) -> bool {
    let StmtData::For { body, .. } = k.stmts[s] else { return false };
    let [only] = k.blocks[body][..] else { return false };
    matches!(k.stmts[only], StmtData::Signal { op: SignalOp::Await, .. })
}

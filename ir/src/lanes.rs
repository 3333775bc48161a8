//! Statements that only some of the threads execute.
//!
//! * `elected`: one lane of the first warp, of the role (of a replica) or of the block. It runs a role that only issues
//!   TMA loads as a whole: `role producer warps 4 elected { .. }`. In other roles it issues the TMA loads,
//!   `copy A[i.., k..] -> a.put tma elected`, and expects their bytes, `publish a expect 8192 elected`, at which the
//!   other threads arrive too. The same holds for TMA stores and the waits for them, which the same lane must execute:
//!   `await s, 0 elected`.
//! * `spread`: in a loop that only awaits signals of other blocks, each thread awaits those of some iterations,
//!   concurrently; a barrier follows.
//! * `changing`: a multiplication of a tile, `o = o * a changing`, is executed only by warps with some factor other
//!   than 1. Multiplication by 1 does not change the elements of the others.

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ChannelOp, ExprData, Kernel, SignalOp, StmtData, ValueDef};
use crate::ops::Op;
use crate::tensor_store::{is_stored, tensor_store};
use crate::types::{ElemRef, Lanes};
use crate::typing::{Type, type_of};
use std::collections::BTreeMap;

/// The tile that a statement only multiplies in place: a named register tile. `None` for any other statement.
pub fn scaling(k: &Kernel, s: Stmt) -> Option<Value> {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
    let ExprData::Op { op: Op::Mul, args } = &k.exprs[src] else { return None };
    let in_registers = |v: Value| matches!(k.values[v].def, ValueDef::Var(_) | ValueDef::Let);
    let tile = |e: Expr| match (&k.exprs[e], type_of(k, e)) {
        (&ExprData::Ref(v), Ok(Type::Tile(t))) if in_registers(v) => {
            matches!(t.elem, ElemRef::Known(elem) if elem.is_float()).then_some(v)
        }
        _ => None,
    };
    let [a, b] = args[..] else { return None };
    match (tile(a)?, tile(b)?) {
        (a, b) if a == b => None,
        (a, b) if a == dst => Some(b),
        (a, b) if b == dst => Some(a),
        _ => None,
    }
}

/// The statements that only some threads execute, where the schedule does not request it.
pub fn lanes(k: &Kernel) -> BTreeMap<Stmt, Lanes> {
    let mut found = BTreeMap::new();
    k.walk(k.body, &mut |k, _, s| {
        let elected = match &k.stmts[s] {
            StmtData::Role { body, .. } => only_issues_tma_loads(k, *body),
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
pub fn only_issues_tma_loads(k: &Kernel, body: Block) -> bool {
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
    let in_global = |v| k.tensor_ty(v).is_some_and(|t| !t.is_of_cluster());
    matches!(k.stmts[only], StmtData::Signal { op: SignalOp::Await, signals, .. } if in_global(signals))
}

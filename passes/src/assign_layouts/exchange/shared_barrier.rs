//! Consecutive reductions across warps share one barrier.
//!
//! The partial results of two reductions go through two buffers. If the second reduction does not need the first result, the loads of the first, and computations with
//! them, move after the stores of the second. Then one barrier between all stores and all loads suffices.
//!
//! ```text
//! copy a_parts -> a_parts_shared                copy a_parts -> a_parts_shared
//! copy a_parts_shared -> a_parts_all            copy b_parts -> b_parts_shared
//! let a = sum(a_parts_all, 1)                   copy a_parts_shared -> a_parts_all
//! copy b_parts -> b_parts_shared                let a = sum(a_parts_all, 1)
//! copy b_parts_shared -> b_parts_all            copy b_parts_shared -> b_parts_all
//! ```

use crate::analysis::uses::{all_stmts, for_each_ref, place_of, stmt_exprs};
use crate::analysis::views::memory_views;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::modified_values::changes;

/// Moves the loads of parts; each entry of `loads` is a list of adjacent statements in the order of the text.
pub(super) fn merge_barriers(k: &mut Kernel, loads: &[Vec<Stmt>]) {
    let mut firsts: Vec<Stmt> = loads.iter().filter_map(|of| of.first().copied()).collect();
    let order = all_stmts(k, k.body);
    firsts.sort_by_key(|&s| order.iter().position(|&other| other == s));
    // From the last one to the first, so that moved statements do not change the places of earlier ones.
    for &first in firsts.iter().rev() {
        let (block, start) = place_of(k, first);
        let own = loads.iter().find(|of| of.first() == Some(&first)).map_or(0, Vec::len);
        let (end, needed) = run(k, &k.blocks[block][start..], own);
        let list = &k.blocks[block];
        let behind = &list[start + end..];
        let Some(steps) = behind.iter().position(|s| firsts.contains(s)) else { continue };
        let jumped = &behind[..steps];
        let made: Vec<Value> = list[start..start + end].iter().filter_map(|&s| declared(k, s)).collect();
        let uses = |s: Stmt| reads(k, s).into_iter().any(|v| made.contains(&v));
        let alters = |s: Stmt| needed.iter().any(|&v| !made.contains(&v) && changes(k, s, v));
        if !jumped.iter().any(|&s| uses(s) || alters(s)) {
            k.blocks[block][start..start + end + steps].rotate_left(end);
        }
    }
}

/// The number of consecutive statements that are the `own` loads or `let`s of loaded values, and all values that these
/// read.
fn run(k: &Kernel, list: &[Stmt], own: usize) -> (usize, Vec<Value>) {
    let mut made: Vec<Value> = list[..own].iter().filter_map(|&s| declared(k, s)).collect();
    let mut needed: Vec<Value> = list[..own].iter().flat_map(|&s| reads(k, s)).collect();
    let mut end = own;
    for &s in &list[own..] {
        let StmtData::Let { value, init } = k.stmts[s] else { break };
        let of = reads(k, s);
        // After the next reduction, other threads may have stored to memory.
        if !of.iter().any(|v| made.contains(v)) || !memory_views(k, init).is_empty() {
            break;
        }
        made.push(value);
        needed.extend(of);
        end += 1;
    }
    needed.retain(|&v| matches!(k.values[v].def, ValueDef::Var(_) | ValueDef::Smem(_)));
    (end, needed)
}

fn declared(k: &Kernel, s: Stmt) -> Option<Value> {
    match k.stmts[s] {
        StmtData::Let { value, .. } | StmtData::Var { value, .. } => Some(value),
        _ => None,
    }
}

/// The values that a statement, or one inside it, mentions.
fn reads(k: &Kernel, s: Stmt) -> Vec<Value> {
    let mut found = Vec::new();
    for e in stmt_exprs(k, s) {
        for_each_ref(k, e, &mut |v| found.push(v));
    }
    for b in k.sub_blocks(s) {
        found.extend(k.blocks[b].iter().flat_map(|&s| reads(k, s)));
    }
    found
}

//! Rematerialisation: values that a loop recomputes because it has no registers for them.
//!
//! Addresses, masks and indices that do not change in a loop are normally computed in front of it. A loop with several
//! products may have so many accumulator registers that the assembler would spill these values.

use crate::Cx;
use crate::analysis::live_ranges;
use crate::analysis::uses::{all_stmts, path_to};
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// Registers of several accumulators from which on values that only a branch needs are computed in the branch.
/// `attention.tile` for sm_86 has 192 of 255, and spilled; for sm_90a it has 96 to 168 of 240, and recomputed masks
/// cost 2 to 4 % (H200, heads of 64 and 128, causal).
const CROWDED: u64 = 192;

/// Registers of one accumulator from which on a loop recomputes values that a later loop of products needs: half of a
/// thread's registers. Two loops of 64x64 in one warp for sm_80 spilled 268 bytes.
const LARGE: u64 = 128;

/// Marks loops, and the branches in them.
pub(super) fn decide(k: &mut Kernel, cx: &mut Cx<'_>) {
    let loops: Vec<(Stmt, Block)> = all_stmts(k, k.body)
        .into_iter()
        .filter_map(|s| match k.stmts[s] {
            StmtData::For { unroll: false, body, .. } => Some((s, body)),
            _ => None,
        })
        .collect();
    for (s, body) in loops {
        let sums = accumulators(k, body);
        let (several, sums): (bool, u64) = (sums.len() > 1, sums.values().sum());
        // The tile of a single product uses most registers: a loop around its loop has no room for other values,
        // either.
        let crowded = if several { sums >= CROWDED } else { has_loop(k, body) };
        k.recomputed[s] |= several || sums >= LARGE && product_behind(k, s);
        let mut branches = Vec::new();
        if crowded {
            inner_branches(k, body, &mut branches);
        }
        if several && !branches.is_empty() {
            let what = format!(
                "the accumulators need {sums} registers of a thread: branches recompute values that only they need"
            );
            cx.remark(k.stmt_spans[s], what);
        }
        for branch in branches {
            k.recomputed[branch] = true;
        }
    }
}

/// The branches under a block that are in no inner loop.
fn inner_branches(k: &Kernel, block: Block, found: &mut Vec<Stmt>) {
    for &s in &k.blocks[block] {
        match k.stmts[s] {
            StmtData::For { unroll: false, .. } => continue,
            StmtData::If { .. } => found.push(s),
            _ => {}
        }
        for b in k.sub_blocks(s) {
            inner_branches(k, b, found);
        }
    }
}

/// Whether a loop of products follows another loop, in its block or in a block around it.
fn product_behind(k: &Kernel, s: Stmt) -> bool {
    path_to(k, s).into_iter().any(|(block, index)| {
        let behind = k.blocks[block][index + 1..].iter();
        behind.copied().any(|s| match k.stmts[s] {
            StmtData::For { unroll: false, body, .. } => !accumulators(k, body).is_empty(),
            _ => false,
        })
    })
}

/// Whether there is a run-time loop under a block.
fn has_loop(k: &Kernel, body: Block) -> bool {
    let mut found = false;
    k.walk(body, &mut |k, _, s| found |= matches!(k.stmts[s], StmtData::For { unroll: false, .. }));
    found
}

/// The accumulators of products under a block, and the registers of a thread for each.
fn accumulators(k: &Kernel, body: Block) -> BTreeMap<Value, u64> {
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).map_or(1, i64::unsigned_abs);
    let mut found = BTreeMap::new();
    k.walk(body, &mut |k, _, s| {
        if let StmtData::Assign { dst, src } = k.stmts[s]
            && matches!(k.exprs[src], ExprData::Mma(_))
            && let Some(tile) = live_ranges::tile_of(k, dst)
        {
            found.insert(dst, live_ranges::registers(k, dst, &tile, threads));
        }
    });
    found
}

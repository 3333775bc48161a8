//! Tiles for which a thread has no registers: the assembler keeps what is too much in memory.
//!
//! What lives at a statement are the tiles whose elements are read later, as much of each as its layout gives a thread. Those that copies fill from
//! memory do not count, as the assembler may load them piece by piece. So what is warned of certainly spills; what needs more for addresses than
//! [`LEAST`] may spill, too.

use super::occupancy::Block as Resident;
use crate::Cx;
use crate::analysis::live;
use crate::analysis::uses::{all_stmts, for_each_read, stmt_exprs};
use crate::assign_layouts::Threads;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::codes;
use tilec_ir::deferred::Deferred;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::target::{REGISTERS_PER_THREAD, WARP, register_share};

use tilec_ir::typing::resolve_view;

/// Registers that addresses and counters take at least.
const LEAST: u64 = 8;

/// Statements that the same threads run, and the registers that each of these has.
struct Context {
    body: Block,
    threads: u64,
    has: u64,
}

/// Warns of the statement at which most is too much, in each role.
pub(super) fn warn(k: &Kernel, cx: &mut Cx<'_>) {
    let deferred = Deferred::of(k);
    for context in contexts(k) {
        let Some((at, most)) = most(k, &deferred, &context) else { continue };
        let has = context.has;
        let message = format!("the tiles of a thread take {most} registers here, and it has {has} for everything");
        let d = Diagnostic::warning(codes::SPILLED, k.stmt_spans[at], message);
        cx.warn(d.with_note("the assembler keeps the rest in memory; smaller tiles, or more threads, leave it more"));
    }
}

fn contexts(k: &Kernel) -> Vec<Context> {
    let int = |e| k.as_int(e).and_then(|n| u32::try_from(n).ok());
    let blocks = k.schedule.min_ctas.and_then(int).unwrap_or(1).max(1);
    let mut roles = Vec::new();
    let mut all = 0;
    for &s in &k.blocks[k.body] {
        let StmtData::Role { warps, replicas, registers, body, .. } = k.stmts[s] else { continue };
        let warps = int(warps).unwrap_or(1);
        all += warps * replicas.and_then(int).unwrap_or(1) * WARP;
        roles.push((body, warps * WARP, registers.and_then(int)));
    }
    if roles.is_empty() {
        let threads = Threads::of(k).count();
        let block = Resident { threads, tiles: 0, shared: 0, wide: true, mixed: 0, lone: false };
        return vec![Context { body: k.body, threads, has: block.cap(u64::from(blocks)) }];
    }
    let share = register_share(all, blocks).min(REGISTERS_PER_THREAD);
    let of = |(body, threads, registers): (Block, u32, Option<u32>)| Context {
        body,
        threads: u64::from(threads),
        has: u64::from(registers.unwrap_or(share).min(REGISTERS_PER_THREAD)),
    };
    roles.into_iter().map(of).collect()
}

/// The first statement at which most registers are held, and how many, if they are more than there are.
fn most(k: &Kernel, deferred: &Deferred, context: &Context) -> Option<(Stmt, u64)> {
    let mut tiles = BTreeMap::new();
    for s in all_stmts(k, context.body) {
        let (StmtData::Var { value, .. } | StmtData::Let { value, .. }) = k.stmts[s] else { continue };
        if let Some(tile) = live::declared(k, deferred, value, s) {
            tiles.insert(value, live::registers(k, value, &tile, context.threads));
        }
    }
    for s in all_stmts(k, context.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let loaded = resolve_view(k, src).is_some_and(|view| view.space(k).is_memory());
        if let ExprData::Ref(whole) = k.exprs[dst]
            && loaded
        {
            tiles.remove(&whole);
        }
    }
    // Most kernels hold less than that in all: where each tile lives need not be asked.
    let room = context.has.saturating_sub(LEAST);
    // What is too large by itself is refused.
    let refused = tiles.values().any(|&n| n > u64::from(REGISTERS_PER_THREAD));
    if refused || tiles.values().sum::<u64>() <= room {
        return None;
    }
    let mut walk = Walk { k, deferred, tiles, most: None };
    walk.block(context.body, BTreeSet::new());
    walk.most.filter(|&(_, n)| n > room)
}

/// A walk against the order of the text.
struct Walk<'a> {
    k: &'a Kernel,
    deferred: &'a Deferred,
    /// The tiles, and registers of a thread that hold each.
    tiles: BTreeMap<Value, u64>,
    /// The first statement at which most are held, and how many.
    most: Option<(Stmt, u64)>,
}

/// Tiles whose elements are read later.
type Live = BTreeSet<Value>;

impl Walk<'_> {
    /// What lives in front of a block, of what lives behind it.
    fn block(&mut self, block: Block, behind: Live) -> Live {
        self.k.blocks[block].iter().rev().fold(behind, |live, &s| self.stmt(s, live))
    }

    fn stmt(&mut self, s: Stmt, mut live: Live) -> Live {
        let k = self.k;
        self.note(s, &live);
        match &k.stmts[s] {
            StmtData::For { body, .. } => {
                // What one iteration hands to the next: more lives with each round until nothing is added.
                loop {
                    let mut more = self.block(*body, live.clone());
                    more.extend(&live);
                    if more == live {
                        break;
                    }
                    live = more;
                }
            }
            StmtData::If { then, otherwise, .. } => {
                let skipped = match otherwise {
                    Some(other) => self.block(*other, live.clone()),
                    None => live.clone(),
                };
                live = self.block(*then, live);
                live.extend(skipped);
            }
            StmtData::Let { value, .. } | StmtData::Var { value, .. } => {
                live.remove(value);
            }
            StmtData::Assign { dst, .. } => {
                live.remove(dst);
            }
            StmtData::Copy { dst, .. } => {
                if let ExprData::Ref(whole) = k.exprs[*dst] {
                    live.remove(&whole);
                }
            }
            _ => live = k.sub_blocks(s).into_iter().fold(live, |live, b| self.block(b, live)),
        }
        let written = match k.stmts[s] {
            StmtData::Copy { dst, .. } => Some(dst),
            _ => None,
        };
        for e in stmt_exprs(k, s).into_iter().filter(|&e| Some(e) != written) {
            self.read(e, &mut live);
        }
        self.note(s, &live);
        live
    }

    /// Adds what an expression reads, through names whose expressions are computed where they are used.
    fn read(&self, e: Expr, live: &mut Live) {
        for_each_read(self.k, e, &mut |v| match self.deferred.init(v) {
            Some(init) => self.read(init, live),
            None => {
                live.extend(self.tiles.contains_key(&v).then_some(v));
            }
        });
    }

    fn note(&mut self, s: Stmt, live: &Live) {
        let held = live.iter().filter_map(|v| self.tiles.get(v)).sum::<u64>();
        if self.most.is_none_or(|(_, most)| held >= most) {
            self.most = Some((s, held));
        }
    }
}

//! Tiles for which a thread has no registers: the assembler keeps what is too much in memory.
//!
//! What lives at a statement are the tiles whose elements are read later, as much of each as its layout gives a thread. Those that copies fill from
//! memory do not count where one statement of the same block reads them, as the assembler loads them piece by piece. To that comes what code takes beside
//! its tiles ([`beside`]), which is fitted to what ptxas 13 takes for the examples: where this says that there is room, none of the examples that are
//! chosen spills (`scripts/check_choices.sh`), and of what is warned of some has a few registers left. It counts no addresses: other programs may spill a few bytes.

use super::occupancy::Block as Resident;
use crate::Cx;
use crate::analysis::functions::function_registers;
use crate::analysis::live;
use crate::analysis::uses::{all_stmts, for_each_read, place_of, stmt_exprs};
use crate::analysis::views::for_each_tile;
use crate::assign_layouts::Threads;
use crate::roles::BESIDE;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::atoms::{AtomRow, Unit};
use tilec_ir::codes;
use tilec_ir::deferred::Deferred;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::target::{REGISTERS_PER_THREAD, Target, WARP, register_share};

use tilec_ir::typing::resolve_view;

/// Registers that addresses and counters take at least.
const LEAST: u64 = 8;
/// The same in a loop of products of warps: addresses of copies and fragments (40 of `gemm.tile` for sm_80).
const LOOP: u64 = 40;
/// The same on Volta, which has neither `cp.async` nor `ldmatrix` and so fewer addresses (15 to 28 of `gemm.tile` for sm_70 beside 216 of tiles: "Machine code for
/// Volta" in docs/performance.md).
const LOOP_OF_VOLTA: u64 = 28;
/// The same where the instruction is older than the target, and is made of others (60 to 80 of `gemm_explicit.tile` for sm_80).
const MADE_OF_OTHERS: u64 = 32;

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
        let beside = beside(k, context.body, cx.options.target);
        let Some((at, most)) = most(k, &deferred, &context, beside) else { continue };
        let has = context.has;
        let message = match most + LEAST > has {
            true => format!("the tiles of a thread take {most} registers here, and it has {has} for everything"),
            false => format!(
                "the tiles of a thread take {most} registers here, what goes with them some {beside}, and it has {has}"
            ),
        };
        let d = Diagnostic::warning(codes::SPILLED, k.stmt_spans[at], message);
        cx.warn(d.with_note("the assembler keeps the rest in memory; smaller tiles, or more threads, leave it more"));
    }
}

/// Registers that the code of a role, or of the kernel, takes beside its tiles.
fn beside(k: &Kernel, body: Block, target: Target) -> u64 {
    let atoms = all_stmts(k, body).into_iter().filter_map(|s| match k.stmts[s] {
        StmtData::Assign { src, .. } => match k.exprs[src] {
            ExprData::Mma(mma) => mma.atom,
            _ => None,
        },
        _ => None,
    });
    let of = |row: &AtomRow| match row.unit {
        Unit::Warpgroup(_) => BESIDE,
        Unit::Warp => beside_loop(row, target),
    };
    atoms.map(|atom| of(atom.row())).max().unwrap_or(LEAST) + function_registers(k)
}

/// Registers that a loop of products of warps takes beside its tiles.
pub(crate) fn beside_loop(row: &AtomRow, target: Target) -> u64 {
    match row.tensor_core {
        true if target.cc() > row.last_native_cc => LOOP + MADE_OF_OTHERS,
        true if !target.has_matrix_loads() => LOOP_OF_VOLTA,
        _ => LOOP,
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
        let block = Resident { threads, tiles: 0, shared: 0, wide: true, mixed: 0, lone: false, beside: 0 };
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
fn most(k: &Kernel, deferred: &Deferred, context: &Context, beside: u64) -> Option<(Stmt, u64)> {
    let mut tiles = BTreeMap::new();
    for s in all_stmts(k, context.body) {
        let (StmtData::Var { value, .. } | StmtData::Let { value, .. }) = k.stmts[s] else { continue };
        if let Some(tile) = live::declared(k, deferred, value, s) {
            tiles.insert(value, live::registers(k, value, &tile, context.threads));
        }
    }
    // Most kernels hold less than that in all: where each tile lives need not be asked.
    let room = context.has.saturating_sub(beside);
    // What is too large by itself is refused.
    let refused = tiles.values().any(|&n| n > u64::from(REGISTERS_PER_THREAD));
    if refused || tiles.values().sum::<u64>() <= room {
        return None;
    }
    for s in all_stmts(k, context.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let loaded = resolve_view(k, src).is_some_and(|view| view.space(k).is_memory());
        if let ExprData::Ref(whole) = k.exprs[dst]
            && loaded
            && in_pieces(k, deferred, context.body, (s, whole))
        {
            tiles.remove(&whole);
        }
    }
    let mut walk = Walk { k, deferred, tiles, most: None };
    walk.block(context.body, BTreeSet::new());
    walk.most.filter(|&(_, n)| n > room)
}

/// Whether the assembler may load a tile piece by piece: one statement reads it, of the block of the copy.
fn in_pieces(k: &Kernel, deferred: &Deferred, body: Block, (s, tile): (Stmt, Value)) -> bool {
    let reads = |&t: &Stmt| {
        let mut found = false;
        let written = match k.stmts[t] {
            StmtData::Copy { dst, .. } => Some(dst),
            _ => None,
        };
        for e in stmt_exprs(k, t).into_iter().filter(|&e| Some(e) != written) {
            for_each_tile(k, deferred, e, &mut |v| found |= v == tile);
        }
        found && !matches!(k.stmts[t], StmtData::Let { value, .. } if deferred.init(value).is_some())
    };
    let readers: Vec<Stmt> = all_stmts(k, body).into_iter().filter(reads).collect();
    let [reader] = readers[..] else { return readers.is_empty() };
    place_of(k, reader).0 == place_of(k, s).0
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

//! Live ranges of buffers and channels: from the first to the last statement that accesses them, in the innermost
//! common block.
//!
//! A buffer's live range is in a loop only if no iteration reads what another one wrote. A channel's is in the block
//! that declares it, because its ring index continues. Roles run at the same time, so a buffer of one is live in all of
//! them, and so is a buffer of a role with replicas. A TMA store reads its buffer up to an `await`
//! ([`stores`](super::stores)), which may be in the next iteration; then the range is not inside the loop.

use super::stores::Awaited;
use crate::analysis::uses::{all_stmts, for_each_ref, stmt_exprs};
use crate::graph::DepGraph;
use crate::graph::accesses::Accesses;
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::placement::is_shared;
use tilec_ir::roles::replicas;
use tilec_ir::tensor_store::is_stored;

/// A live range: first and last statement of a block, inclusive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LiveRange {
    pub(crate) block: Block,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// How two live ranges are separated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Separation {
    /// They overlap.
    No,
    /// One ends before the other begins, in each iteration of a loop.
    InLoop,
    /// One ends before the other begins, once in a run.
    Once,
}

/// The facts from which live ranges follow.
pub(super) struct Liveness<'k> {
    k: &'k Kernel,
    /// The block and index of the statement that owns a block.
    owner: SecondaryMap<Block, Option<(Block, usize)>>,
    /// The block that declares a buffer or channel.
    declared: SecondaryMap<Value, Option<Block>>,
    /// Buffers and channels that a statement accesses, directly or inside.
    touched: SecondaryMap<Stmt, Vec<Value>>,
    /// The statements that await the TMA stores of each buffer.
    awaited: Awaited,
    /// Buffers that carry values between iterations of the loop with this body.
    carried: BTreeMap<Block, BTreeSet<Value>>,
}

impl<'k> Liveness<'k> {
    pub(super) fn of(k: &'k Kernel) -> Liveness<'k> {
        let mut lives = Liveness {
            k,
            owner: SecondaryMap::new(),
            declared: SecondaryMap::new(),
            touched: SecondaryMap::new(),
            awaited: Awaited::of(k),
            carried: BTreeMap::new(),
        };
        lives.visit(k.body);
        lives
    }

    fn visit(&mut self, block: Block) {
        let k = self.k;
        for (i, &s) in k.blocks[block].iter().enumerate() {
            let mut own = None;
            if let StmtData::Alloc { value, .. } = k.stmts[s] {
                self.declared[value] = Some(block);
                own = Some(value);
            }
            let touches = Accesses::of(k, s).touches;
            let mut touched: Vec<Value> = touches.iter().map(|t| t.value).filter(|&v| own != Some(v)).collect();
            self.awaited.inside(k, s, &mut touched);
            touched.extend(named_channels(k, s));
            touched.retain(|&v| is_shared(k, v));
            self.touched[s] = touched;
            for b in k.sub_blocks(s) {
                self.owner[b] = Some((block, i));
                if matches!(k.stmts[s], StmtData::For { .. }) {
                    let graph = DepGraph::of(k, b, true);
                    let carried =
                        graph.edges().filter(|e| e.2.distance > 0 && e.2.reason == crate::graph::DepReason::Flow);
                    self.carried.insert(b, carried.map(|e| e.2.value).filter(|&v| is_shared(k, v)).collect());
                }
                self.visit(b);
            }
        }
    }

    /// The live range of a buffer or channel; `None`: nothing accesses it.
    pub(super) fn life(&self, v: Value) -> Option<LiveRange> {
        let k = self.k;
        let mut block = k.body;
        loop {
            let stmts = &k.blocks[block];
            let touching = |&i: &usize| self.touched[stmts[i]].contains(&v);
            let from = (0..stmts.len()).find(touching)?;
            let to = (0..stmts.len()).rfind(touching)?;
            let (from, to) = self.roles(block, from, to);
            let here = LiveRange { block, from, to };
            let only = stmts[from];
            let mut touched = k.sub_blocks(only).to_vec();
            touched.retain(|&b| k.blocks[b].iter().any(|&s| self.touched[s].contains(&v)));
            match touched[..] {
                [b] if from == to && self.may_descend(v, block, only, b) => block = b,
                _ => return Some(here),
            }
        }
    }

    /// The range of a single statement with everything inside it.
    pub(super) fn whole(&self, s: Stmt) -> LiveRange {
        let (block, at) = crate::analysis::uses::place_of(self.k, s);
        LiveRange { block, from: at, to: at }
    }

    /// Whether the live range in one statement of a block may be narrowed to the block `inside` of it.
    fn may_descend(&self, v: Value, block: Block, s: Stmt, inside: Block) -> bool {
        let k = self.k;
        let channel = matches!(k.values[v].def, ValueDef::Channel { .. });
        if channel && self.declared[v] == Some(block) {
            return false;
        }
        match k.stmts[s] {
            StmtData::For { .. } => {
                !is_stored(k, v) && !self.carried.get(&inside).is_some_and(|carried| carried.contains(&v))
            }
            StmtData::Role { .. } => replicas(k, s) == Some(1),
            StmtData::Ordered { .. } => false,
            _ => true,
        }
    }

    /// Extends a range over some of the roles to all of them, because roles run at the same time.
    fn roles(&self, block: Block, from: usize, to: usize) -> (usize, usize) {
        let k = self.k;
        let role = |i: usize| matches!(k.stmts[k.blocks[block][i]], StmtData::Role { .. });
        let one = from == to;
        if one && role(from) || block != k.body {
            return (from, to);
        }
        let all: Vec<usize> = (0..k.blocks[block].len()).filter(|&i| role(i)).collect();
        let (Some(&first), Some(&last)) = (all.first(), all.last()) else { return (from, to) };
        (if role(from) { first } else { from }, if role(to) { last } else { to })
    }

    /// The blocks around a range, including its own, with the first and last statement of the range in each.
    fn path(&self, life: LiveRange) -> Vec<(Block, usize, usize)> {
        let mut path = vec![(life.block, life.from, life.to)];
        let mut block = life.block;
        while let Some((outer, at)) = self.owner[block] {
            path.push((outer, at, at));
            block = outer;
        }
        path.reverse();
        path
    }

    fn in_loop(&self, block: Block) -> bool {
        let mut block = block;
        while let Some((outer, at)) = self.owner[block] {
            if matches!(self.k.stmts[self.k.blocks[outer][at]], StmtData::For { .. }) {
                return true;
            }
            block = outer;
        }
        false
    }

    /// Whether two lives are apart.
    pub(super) fn separation(&self, a: LiveRange, b: LiveRange) -> Separation {
        let (x, y) = (self.path(a), self.path(b));
        let Some(depth) = x.iter().zip(&y).rposition(|(x, y)| x.0 == y.0) else { return Separation::No };
        let (common, x_from, x_to) = x[depth];
        let (_, y_from, y_to) = y[depth];
        let stmts = &self.k.blocks[common];
        let role = |i: usize| matches!(self.k.stmts[stmts[i]], StmtData::Role { .. });
        let disjoint = x_to < y_from || y_to < x_from;
        // In different branches of one `if`.
        let branches = x_from == x_to && (x_from, x_to) == (y_from, y_to) && depth + 1 < x.len().min(y.len());
        let beside = role(x_from) && role(y_from);
        if !branches && (beside || !disjoint) {
            return Separation::No;
        }
        if self.in_loop(common) { Separation::InLoop } else { Separation::Once }
    }
}

/// The channels that a statement names, or one inside it: what fills a slot is no access to the slot that is read.
fn named_channels(k: &Kernel, s: Stmt) -> Vec<Value> {
    let inside = k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
    let mut channels = Vec::new();
    for e in inside.chain([s]).flat_map(|s| stmt_exprs(k, s)) {
        for_each_ref(k, e, &mut |v| {
            if matches!(k.values[v].def, ValueDef::Channel { .. }) && !channels.contains(&v) {
                channels.push(v);
            }
        });
    }
    channels
}

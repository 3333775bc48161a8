//! Clusters: blocks that run side by side and reach one another's shared memory, and what is the same in all blocks of one.
//!
//! A schedule's `cluster (2, 1)` counts blocks along the axes of the grid; the hardware takes neighbours. So along an axis `g` with
//! `c` blocks to a cluster, `g / c` is the same in all of them, and `g % c` tells them apart.

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::Op;
use crate::typing::{const_int, let_init};
use std::collections::BTreeMap;

/// Blocks of a cluster that every device can run at once (CUDA programming guide, "Thread Block Clusters").
pub const MAX_BLOCKS: i64 = 8;

/// Blocks of a cluster along an axis of the grid; 1 where the schedule says nothing, or nothing constant.
pub fn along(k: &Kernel, axis: usize) -> i64 {
    k.schedule.cluster.get(axis).and_then(|&e| const_int(k, e)).unwrap_or(1).max(1)
}

/// Blocks of a cluster.
pub fn blocks(k: &Kernel) -> i64 {
    (0..k.schedule.cluster.len()).map(|axis| along(k, axis)).fold(1, i64::saturating_mul)
}

/// Whether slots of the channel are filled for all blocks of a cluster at once.
pub fn fills_by_multicast(k: &Kernel, channel: Value) -> bool {
    k.stmts.values().any(|s| match s {
        StmtData::Copy { dst, attrs, .. } => {
            attrs.multicast && matches!(&k.exprs[*dst], ExprData::View(view) if view.base == channel)
        }
        _ => false,
    })
}

/// What is the same in all blocks of a cluster.
pub struct Uniform<'a> {
    k: &'a Kernel,
    loops: BTreeMap<Value, [Expr; 3]>,
    known: BTreeMap<Value, bool>,
}

impl<'a> Uniform<'a> {
    /// Reads the loops of a kernel.
    pub fn new(k: &'a Kernel) -> Uniform<'a> {
        let loops = k.stmts.values().filter_map(|s| match *s {
            StmtData::For { var, start, end, step, .. } => Some((var, [start, end, step])),
            _ => None,
        });
        Uniform { k, loops: loops.collect(), known: BTreeMap::new() }
    }

    /// Whether an index or a condition has one value in all blocks of a cluster.
    pub fn expr(&mut self, e: Expr) -> bool {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Int(_) | ExprData::Float(_) => true,
            ExprData::Ref(v) => self.value(*v),
            ExprData::Op { op: Op::Div, args } if self.is_cluster(args) => true,
            ExprData::Op { args, .. } => args.iter().all(|&a| self.expr(a)),
            ExprData::Cast { arg, .. } => self.expr(*arg),
            _ => false,
        }
    }

    /// `g / c`, of an axis with `c` blocks to a cluster.
    fn is_cluster(&self, args: &[Expr]) -> bool {
        let [index, by] = args else { return false };
        let ExprData::Ref(v) = self.k.exprs[*index] else { return false };
        let axis = self.k.grid.iter().position(|g| g.index == v);
        axis.is_some_and(|axis| const_int(self.k, *by) == Some(along(self.k, axis)))
    }

    fn value(&mut self, v: Value) -> bool {
        let k = self.k;
        if let Some(&known) = self.known.get(&v) {
            return known;
        }
        let same = match &k.values[v].def {
            ValueDef::Grid => k.grid.iter().position(|g| g.index == v).is_some_and(|axis| along(k, axis) == 1),
            ValueDef::Let => let_init(k, v).is_some_and(|init| self.expr(init)),
            // In the same iteration, if they make as many.
            ValueDef::Loop => {
                self.loops.get(&v).copied().is_some_and(|bounds| bounds.into_iter().all(|e| self.expr(e)))
            }
            ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } | ValueDef::Tensor(_) => false,
            _ => true,
        };
        self.known.insert(v, same);
        same
    }

    /// The first loop or branch around statements that `wanted` finds whose iterations or choice are not the same in all blocks.
    pub fn parted(&mut self, block: Block, wanted: &dyn Fn(&Kernel, Stmt) -> bool) -> Option<Stmt> {
        for &s in &self.k.blocks[block].clone() {
            let inside = self.k.sub_blocks(s);
            let own = match self.k.stmts[s] {
                StmtData::For { start, end, step, .. } => [start, end, step].into_iter().all(|e| self.expr(e)),
                StmtData::If { cond, .. } => self.expr(cond),
                _ => true,
            };
            for b in inside {
                let mut found = false;
                self.k.walk(b, &mut |k, _, s| found |= wanted(k, s));
                if found && !own {
                    return Some(s);
                }
                if let Some(s) = self.parted(b, wanted) {
                    return Some(s);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Sink;

    fn kernel(body: &str) -> Kernel {
        let text = format!(
            "kernel k(A: gmem f16[M, K]) grid (g: ceildiv(M, 64), h: 4) schedule {{ threads 128 cluster (2, 1) }} {{\n{body}\n}}\n"
        );
        let mut sink = Sink::new();
        crate::parser::parse(&text, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics())).kernels.remove(0)
    }

    #[test]
    fn what_tells_blocks_apart_is_found() {
        let k = kernel(
            "let pair = g / 2\nlet rank = g % 2\nlet other = g / 4\nlet twice = pair * 2 + h\nlet own = pair * 2 + rank\n\
             for i in pair..M step 64 { let inner = i + K }\nfor j in g..M step 64 { let apart = j }",
        );
        let mut uniform = Uniform::new(&k);
        let mut of = |name: &str| {
            let (v, _) = k.values.iter().find(|(_, d)| d.name == name).expect("it is there");
            uniform.value(v)
        };
        for name in ["pair", "twice", "inner", "i", "h", "M"] {
            assert!(of(name), "{name}");
        }
        for name in ["rank", "other", "own", "apart", "j", "g"] {
            assert!(!of(name), "{name}");
        }
        assert_eq!(blocks(&k), 2);
        let parted = uniform.parted(k.body, &|k, s| matches!(k.stmts[s], StmtData::Let { .. }));
        assert!(parted.is_some_and(|s| matches!(&k.stmts[s], StmtData::For { var, .. } if k.values[*var].name == "j")));
    }
}

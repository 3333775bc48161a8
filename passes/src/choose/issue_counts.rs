//! Numbers of executions of statements after the passes, for counting issued instructions.

use crate::roles::threads_of;
use std::collections::BTreeMap;
use tilec_ir::ctas::ctas;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ENDLESS, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::target::WARP;

/// The number of executions of a statement.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Runs {
    /// Warps of a block, times the iterations of the loops around it.
    pub warps: f64,
    /// Iterations of the loops around it.
    pub times: f64,
    /// The variable's name in the innermost loop around it.
    pub within: Option<Span>,
}

/// For each statement after the passes, its executions in a block with these sizes. Unrolled loops count once, because
/// their instructions are repeated in the code. Loops with unknown ends count once, too. Of branches, only the first,
/// which is the common one, is counted.
pub fn runs(k: &Kernel, sizes: &[(String, i64)]) -> BTreeMap<Stmt, Runs> {
    let mut all = BTreeMap::new();
    let own = f64::from(threads_of(k).div_ceil(WARP));
    let own = Runs { warps: own, times: 1.0, within: None };
    Reader { k, sizes, all: &mut all }.block(k.body, own);
    all
}

/// The number of blocks of a launch with these sizes; `None`: it depends on run-time values. A block of a persistent
/// grid computes several tiles. If blocks of a cluster share tiles (`ctas`), an index of the grid stands for all of them.
pub fn launched(k: &Kernel, sizes: &[(String, i64)]) -> Option<f64> {
    let reader = Reader { k, sizes, all: &mut BTreeMap::new() };
    let counted: Option<f64> = k.grid.iter().map(|axis| reader.int(axis.extent).map(|n| n as f64)).product();
    counted.map(|n| n * ctas(k) as f64)
}

struct Reader<'a> {
    k: &'a Kernel,
    sizes: &'a [(String, i64)],
    all: &'a mut BTreeMap<Stmt, Runs>,
}

impl Reader<'_> {
    fn block(&mut self, block: Block, around: Runs) {
        for &s in &self.k.blocks[block] {
            self.all.insert(s, around);
            match &self.k.stmts[s] {
                &StmtData::For { var, start, end, step, body, unroll, .. } => {
                    let trips = self.trips([start, end, step]);
                    let inside = match unroll {
                        true => around,
                        false => Runs {
                            warps: around.warps * trips,
                            times: around.times * trips,
                            within: Some(self.k.values[var].span).filter(|span| !span.is_none()).or(around.within),
                        },
                    };
                    self.block(body, inside);
                }
                StmtData::If { then, .. } => self.block(*then, around),
                StmtData::Role { warps, body, .. } => {
                    let own = self.k.as_int(*warps).map_or(0.0, |n| n as f64);
                    self.block(*body, Runs { warps: own, ..around });
                }
                _ => self.k.sub_blocks(s).into_iter().for_each(|body| self.block(body, around)),
            }
        }
    }

    /// Iterations of a loop, for a block in the middle of the grid; 1 if they are not known.
    fn trips(&self, [start, end, step]: [Expr; 3]) -> f64 {
        if self.k.as_int(end) == Some(ENDLESS) {
            return 1.0;
        }
        let known = || index::trips(self.int(start)?, self.int(end)?, self.int(step)?);
        known().map_or(1.0, |n| n as f64)
    }

    fn int(&self, e: Expr) -> Option<i64> {
        self.k.by_names(e, |e, known| index::int(&OfKernel::new(self.k, |e| self.leaf(e, known)), e))
    }

    /// `known`: values of names in the expression.
    fn leaf(&self, e: Expr, known: &BTreeMap<Value, Option<i64>>) -> Option<i64> {
        let ExprData::Ref(v) = self.k.exprs[e] else { return None };
        self.size(v).or_else(|| match self.k.values[v].def {
            ValueDef::Grid => {
                let axis = self.k.grid.iter().find(|axis| axis.index == v)?;
                Some(self.int(axis.extent)? / 2)
            }
            _ => known.get(&v).copied().flatten(),
        })
    }

    fn size(&self, v: Value) -> Option<i64> {
        let name = &self.k.values[v].name;
        self.k.sizes.contains(&v).then(|| self.sizes.iter().find(|(n, _)| n == name).map(|(_, x)| *x))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Sink;

    /// An index of the grid stands for all blocks that share a tile: each of them issues instructions.
    #[test]
    fn blocks_that_share_tiles_are_all_launched() {
        let blocks = |schedule: &str| {
            let source = format!(
                "kernel k(X: gmem f32[M, N], Y: gmem f32[M, N]) grid (i: ceildiv(M, 8)) schedule {{ threads 64{schedule} }} {{\n\
                 copy X[i * 8..+8, 0..+1024] -> Y[i * 8.., 0..]\n}}\n"
            );
            let module = tilec_ir::parser::parse(&source, &mut Sink::new()).expect("it parses");
            launched(&module.kernels[0], &[("M".to_owned(), 64), ("N".to_owned(), 1024)])
        };
        assert_eq!((blocks(""), blocks(" ctas 4")), (Some(8.0), Some(32.0)));
    }
}

//! Numbers of executions of statements after the passes, for counting issued instructions.

use super::cards::Card;
use crate::roles::threads_of;
use std::collections::BTreeMap;
use tilec_ir::ctas::ctas;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ENDLESS, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
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
    Reader { k, sizes, variables: &BTreeMap::new(), all: &mut all }.block(k.body, own);
    all
}

/// The number of blocks of a launch with these sizes; `None`: it depends on run-time values. A block of a persistent
/// grid computes several tiles. If blocks of a cluster share tiles (`ctas`), an index of the grid stands for all of them.
pub fn launched(k: &Kernel, sizes: &[(String, i64)]) -> Option<f64> {
    let reader = Reader { k, sizes, variables: &BTreeMap::new(), all: &mut BTreeMap::new() };
    let counted: Option<f64> = k.grid.iter().map(|axis| reader.int(axis.extent).map(|n| n as f64)).product();
    counted.map(|n| n * ctas(k) as f64)
}

/// Blocks that a multiprocessor of a card gets at most, because the grid is limited (a persistent grid): more are never
/// resident. `None`: the grid grows with the sizes.
pub fn most_on_multiprocessor(k: &Kernel, card: &Card) -> Option<u64> {
    let most: Option<i64> = k.grid.iter().try_fold(1i64, |all, axis| all.checked_mul(at_most(k, axis.extent)?));
    let blocks = u64::try_from(most?.checked_mul(ctas(k))?).ok()?;
    Some(blocks.div_ceil(u64::from(card.sms)).max(1))
}

/// A bound of an index that holds for all sizes.
fn at_most(k: &Kernel, e: Expr) -> Option<i64> {
    match &k.exprs[e] {
        ExprData::Op { op: Op::Min, args } => args.iter().filter_map(|&arg| at_most(k, arg)).min(),
        _ => k.as_int(e),
    }
}

/// The value of an index of the header with these sizes; `None`: it depends on run-time values.
pub fn known_int(k: &Kernel, e: Expr, sizes: &[(String, i64)]) -> Option<i64> {
    known_int_in(k, e, sizes, &BTreeMap::new())
}

/// The same of an index inside of loops whose variables have these values.
pub(crate) fn known_int_in(
    k: &Kernel,
    e: Expr,
    sizes: &[(String, i64)],
    variables: &BTreeMap<Value, i64>,
) -> Option<i64> {
    Reader { k, sizes, variables, all: &mut BTreeMap::new() }.int(e)
}

struct Reader<'a> {
    k: &'a Kernel,
    sizes: &'a [(String, i64)],
    /// Values of variables of loops.
    variables: &'a BTreeMap<Value, i64>,
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
        self.size(v).or_else(|| self.variables.get(&v).copied()).or_else(|| match self.k.values[v].def {
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

    /// A grid with a limit gives each multiprocessor no more than its part of it, for any sizes.
    #[test]
    fn limited_grids_limit_the_blocks_of_a_multiprocessor() {
        let most = |extent: &str| {
            let source = format!(
                "kernel k(Y: gmem f32[N]) grid (i: {extent}) {{ for t in i..ceildiv(N, 64) step 264 {{ copy 1.0 -> Y[t..+1] }} }}"
            );
            let module = tilec_ir::parser::parse(&source, &mut Sink::new()).expect("it parses");
            most_on_multiprocessor(&module.kernels[0], Card::from_name("H200").expect("a card"))
        };
        assert_eq!(most("min(ceildiv(N, 64), 132)"), Some(1));
        assert_eq!((most("min(N, 264)"), most("265"), most("ceildiv(N, 64)")), (Some(2), Some(3), None));
    }

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

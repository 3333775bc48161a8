//! Start positions of windows of register tiles.

use crate::analysis::uses::{mentions, path_to};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::index::{OfKernel, int};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::typing::{ResolvedView, ViewDim};

/// Most positions of a window in unrolled loops; a window with more goes through memory.
const MOST_PLACES: usize = 1 << 12;

/// All positions at which a window in `s` can start, over all iterations of the unrolled loops around it; `None`: not
/// known.
pub(super) fn places(k: &Kernel, s: Stmt, view: &ResolvedView) -> Option<Vec<Vec<u64>>> {
    let starts: Vec<&[Expr]> = view
        .dims
        .iter()
        .map(|dim| match dim {
            ViewDim::Gather(_) | ViewDim::From { end: Some(_), .. } => None,
            _ => Some(dim.starts()),
        })
        .collect::<Option<_>>()?;
    let mut values: Vec<Vec<(Value, i64)>> = vec![Vec::new()];
    for &(block, index) in &path_to(k, s) {
        let StmtData::For { var, start, end, step, unroll: true, .. } = k.stmts[k.blocks[block][index]] else {
            continue;
        };
        if !starts.iter().copied().flatten().any(|&e| mentions(k, e, var)) {
            continue;
        }
        let literals = OfKernel::literals(k);
        let (at, end, step) = (int(&literals, start)?, int(&literals, end)?, int(&literals, step)?);
        let all: Vec<i64> = (at..end).step_by(usize::try_from(step).ok().filter(|&step| step > 0)?).collect();
        if values.len().saturating_mul(all.len()) > MOST_PLACES {
            return None;
        }
        values = values.iter().flat_map(|known| all.iter().map(|&x| [&known[..], &[(var, x)]].concat())).collect();
    }
    let one = |known: &Vec<(Value, i64)>| {
        let leaf = |e: Expr| match k.exprs[e] {
            ExprData::Ref(v) => known.iter().find(|&&(var, _)| var == v).map(|&(_, x)| x),
            _ => None,
        };
        let known = OfKernel::new(k, leaf);
        let sum = |parts: &[Expr]| {
            parts.iter().try_fold(0u64, |sum, &e| sum.checked_add(u64::try_from(int(&known, e)?).ok()?))
        };
        starts.iter().map(|parts| sum(parts)).collect::<Option<Vec<u64>>>()
    };
    values.iter().map(one).collect()
}

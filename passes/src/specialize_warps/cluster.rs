//! Clusters: neighbouring tiles whose blocks copy what both want once for both.
//!
//! Tiles beside each other along the rows of the output take the same columns of B, those beside each other along its columns the
//! same rows of A. Two such blocks in a cluster ask for half of the shared operand each, and the hardware gives both halves to
//! both: less passes through the second-level cache, and fewer rows are asked for.

use crate::Cx;
use crate::analysis::facts::contiguous_dim;
use crate::analysis::fold::eval_int;
use crate::analysis::uses::all_stmts;
use crate::analysis::width::elem_of;
use tilec_ir::cluster::{self, Uniform};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::typing::{ViewDim, resolve_view};

/// Elements of a tile from which clusters gain.
const LARGE: u64 = 128 * 256;
/// The same where rows lie across lines of the cache, which are then asked for twice.
pub(crate) const ACROSS_LINES: u64 = 64 * 128;
/// Bytes of a line of the second-level cache.
pub(crate) const LINE: u64 = 128;
/// Tiles along an axis from which one too many does not count.
const FEW: i64 = 8;

/// Blocks of a cluster along the rows and the columns of tiles.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Cluster {
    pub(super) along: [i64; 2],
}

impl Cluster {
    /// As the schedule says; without a word, two blocks that share the larger operand where their tiles are large, or rows are given
    /// that lie across lines.
    ///
    /// A cluster loses what the tiles lack of an even number, and some time at either end: on an H200 it gains a fifth where rows do not
    /// begin at multiples of 128 bytes, and otherwise from 128x256 on, if anything (docs/performance.md).
    pub(super) fn of(k: &Kernel, cx: &mut Cx<'_>, span: Span) -> Cluster {
        if k.grid.len() < 2 {
            return Cluster { along: [1, 1] };
        }
        if !k.schedule.cluster.is_empty() {
            return Cluster { along: [cluster::along(k, 0), cluster::along(k, 1)] };
        }
        let Some((rows, cols)) = tile(k) else { return Cluster { along: [1, 1] } };
        let axis = usize::from(cols < rows);
        let least = if across_lines(k, cx) { ACROSS_LINES } else { LARGE };
        let count = tiles(k, cx, k.grid[axis].extent);
        if rows * cols < least || count.is_some_and(|n| n % 2 != 0 && n < FEW) {
            return Cluster { along: [1, 1] };
        }
        let mut along = [1, 1];
        along[axis] = 2;
        let message = format!("clusters of {} x {} tiles, whose blocks share the larger operand", along[0], along[1]);
        cx.remark_note(span, message, "`cluster (1, 1)` in the schedule leaves them out");
        Cluster { along }
    }

    pub(super) fn blocks(self) -> i64 {
        self.along[0] * self.along[1]
    }
}

/// Rows and columns of the tile of a product of warpgroups.
fn tile(k: &Kernel) -> Option<(u64, u64)> {
    all_stmts(k, k.body).into_iter().find_map(|s| {
        let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
        let ExprData::Mma(_) = k.exprs[src] else { return None };
        match k.const_shape(&k.tile_ty(dst)?.shape)?[..] {
            [rows, cols] => Some((rows, cols)),
            _ => None,
        }
    })
}

/// Whether rows of an operand, without padding, begin elsewhere than at multiples of a line, as far as their length is given.
fn across_lines(k: &Kernel, cx: &Cx<'_>) -> bool {
    k.stmts.values().any(|s| {
        let StmtData::Copy { src, attrs, .. } = s else { return false };
        let Some(from) = resolve_view(k, *src).filter(|_| attrs.tensor) else { return false };
        let length = || tiles(k, cx, *k.tensor_ty(from.base)?.shape.get(contiguous_dim(k, from.base)?)?);
        let bytes = |n: i64| n.checked_mul(i64::from(elem_of(k, from.base)?.bytes()));
        length().and_then(bytes).is_some_and(|n| !n.unsigned_abs().is_multiple_of(LINE))
    })
}

/// Tiles along an axis, if the sizes are given.
pub(super) fn tiles(k: &Kernel, cx: &Cx<'_>, e: Expr) -> Option<i64> {
    match &k.exprs[e] {
        ExprData::Int(x) => Some(*x),
        ExprData::Ref(v) => {
            let name = &k.values[*v].name;
            cx.options.sizes.iter().rev().find(|(n, _)| n == name).map(|&(_, x)| x)
        }
        ExprData::Op { op, args } => match args[..] {
            [a, b] => eval_int(*op, tiles(k, cx, a)?, tiles(k, cx, b)?),
            _ => None,
        },
        _ => None,
    }
}

/// Lets the blocks of a cluster share the copies under `block` whose windows are the same in all of them.
pub(super) fn multicast(k: &mut Kernel, cx: &mut Cx<'_>, block: Block) {
    if cluster::blocks(k) == 1 {
        return;
    }
    let mut same = Uniform::new(k);
    let mut shared: Vec<Stmt> = Vec::new();
    for s in all_stmts(k, block) {
        let StmtData::Copy { src, ref attrs, .. } = k.stmts[s] else { continue };
        let Some(from) = resolve_view(k, src).filter(|_| attrs.tensor) else { continue };
        let mut starts = from.dims.iter().flat_map(|d| match d {
            ViewDim::Fixed(e) => std::slice::from_ref(e),
            ViewDim::From { starts, .. } => starts.as_slice(),
        });
        if starts.all(|&e| same.expr(e)) {
            shared.push(s);
            let message = format!(
                "the {} blocks of a cluster take the same window of `{}`: each asks for its part, all of them get it",
                cluster::blocks(k),
                k.values[from.base].name
            );
            cx.remark(k.stmt_spans[s], message);
        }
    }
    for s in shared {
        if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
            attrs.multicast = true;
        }
    }
}

//! Elements past the end: where they come from, what they are, and what takes them in.

use crate::analysis::facts::Facts;
use crate::analysis::past_end::Pad;
use tilec_ir::entities::Expr;
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::typing::{ResolvedView, ViewDim, same_expr};

/// Where elements past the end come from.
#[derive(Copy, Clone, PartialEq)]
pub(super) struct Past {
    /// The window.
    pub(super) window: Expr,
    /// The dimension of the tensor.
    pub(super) dim: usize,
    /// How many elements the window has along it.
    pub(super) extent: u64,
    /// What it may reach past.
    pub(super) limit: Expr,
    /// They have a written number.
    pub(super) filled: bool,
}

/// What is known of the elements of a tile along a dimension.
#[derive(Copy, Clone, PartialEq)]
pub(super) struct Along {
    /// Of those past the end, or all.
    pub(super) pad: Pad,
    /// There are some.
    pub(super) past: Option<Past>,
}

impl Along {
    /// One number for all.
    pub(super) const FIXED: Along = Along { pad: Pad::FIXED, past: None };
    /// Nothing is known.
    pub(super) const UNKNOWN: Along = Along { pad: Pad::UNKNOWN, past: None };

    pub(super) fn join(self, other: Along) -> Along {
        Along { pad: self.pad.join(other.pad), past: self.past.or(other.past) }
    }
}

/// What takes elements past the end in.
#[derive(Copy, Clone, PartialEq)]
pub(super) enum Taker {
    Reduction {
        op: ReduceOp,
        axis: u32,
        arg: Expr,
    },
    Product,
    /// A sum, divided by the extent of the tile.
    Mean,
    /// A store to where integers say.
    Scatter,
}

/// An expression whose result elements past the end change.
pub(super) struct Found {
    pub(super) at: Expr,
    pub(super) taker: Taker,
    pub(super) past: Past,
}

/// What limits the window along dimension `dim` and may lie inside of it, so that elements are past the end; `None`: nothing does.
pub(super) fn limit(k: &Kernel, facts: &Facts, view: &ResolvedView, dim: usize, extent: u64) -> Option<Expr> {
    let ViewDim::From { starts, end } = &view.dims[dim] else { return None };
    let tensor = k.tensor_ty(view.base).expect("a window of a tensor");
    let ranges = Ranges::new(k);
    let last = starts.iter().map(|&e| Some(ranges.of(e)?.hi)).sum::<Option<i128>>();
    let begins_whole = starts.iter().all(|&e| facts.is_multiple(k, e, extent));
    let is_behind = |limit: Expr| {
        let of_start = match (&k.exprs[limit], &starts[..]) {
            (ExprData::Op { op: Op::Add, args }, [start]) => {
                same_expr(k, args[0], *start) && k.as_int(args[1]).is_some_and(|n| n >= extent as i64)
            }
            _ => false,
        };
        let apart = || last.zip(ranges.of(limit)).is_some_and(|(last, limit)| last + i128::from(extent) <= limit.lo);
        // All of the tile is in front of such a limit, or nothing.
        of_start || begins_whole && facts.is_multiple(k, limit, extent) || apart()
    };
    [*end, Some(tensor.shape[dim])].into_iter().flatten().find(|&limit| !is_behind(limit))
}

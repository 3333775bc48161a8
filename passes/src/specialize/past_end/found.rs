//! Elements past the end: their source, their values, and the operations that include them.

use crate::analysis::facts::Facts;
use crate::analysis::inequalities::{Inequalities, Outside};
use crate::analysis::past_end::Pad;
use tilec_ir::entities::Expr;
use tilec_ir::index_values::begins_at_value;
use tilec_ir::ops::ReduceOp;
use tilec_ir::typing::{ResolvedView, ViewDim};

/// The source of elements past the end.
#[derive(Copy, Clone, PartialEq)]
pub(super) struct Past {
    /// The window.
    pub(super) window: Expr,
    /// The dimension of the tensor.
    pub(super) dim: usize,
    /// The extent of the window along it.
    pub(super) extent: u64,
    /// The end that the window may exceed; `None`: elements are in front of 0.
    pub(super) end: Option<Expr>,
    /// Whether they have the value of `fill`.
    pub(super) filled: bool,
}

/// Facts about the elements of a tile along a dimension.
#[derive(Copy, Clone, PartialEq)]
pub(super) struct Along {
    /// The value of elements past the end, or of all elements.
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

/// The operation that includes elements past the end.
#[derive(Copy, Clone, PartialEq)]
pub(super) enum Consumer {
    Reduction {
        op: ReduceOp,
        axis: u32,
        arg: Expr,
    },
    Product,
    /// A sum, divided by the extent of the tile.
    Mean,
    /// A scatter, with the dimension of its tile of indices.
    Scatter {
        axis: u32,
    },
}

/// An expression whose result depends on elements past the end.
pub(super) struct TaintedExpr {
    pub(super) at: Expr,
    pub(super) taker: Consumer,
    pub(super) past: Past,
}

/// Outside elements of a window.
pub(super) struct Place {
    pub(super) outside: Outside,
    /// The end after which they are; `None`: they are in front of 0.
    pub(super) end: Option<Expr>,
}

/// Possible outside elements of a tensor's window along dimension `dim`.
pub(super) fn places(
    known: &Inequalities<'_>,
    facts: &Facts,
    view: &ResolvedView,
    dim: usize,
    extent: u64,
) -> Vec<Place> {
    let k = known.kernel();
    let (ViewDim::From { starts, end }, Some(tensor)) = (&view.dims[dim], k.tensor_ty(view.base)) else {
        return Vec::new();
    };
    // If the start comes from memory, the author is responsible for it.
    let given = starts.iter().any(|&e| begins_at_value(k, e));
    if extent == 1 || given || tensor.repeats.contains(&dim) || tensor.scratch.is_some() {
        return Vec::new();
    }
    let begins_whole = starts.iter().all(|&e| facts.is_multiple(k, e, extent));
    let behind = |limit: Expr| {
        // The tile is either completely in front of this end, or not at all.
        let whole = begins_whole && facts.is_multiple(k, limit, extent);
        let outside = known.behind(starts, extent, limit).filter(|of| !whole && !known.is_never(of, &[]))?;
        Some(Place { outside, end: Some(limit) })
    };
    let behind = [*end, Some(tensor.shape[dim])].into_iter().flatten().find_map(behind);
    let in_front = known.in_front(starts, extent).filter(|of| !begins_whole && !known.is_never(of, &[]));
    behind.into_iter().chain(in_front.map(|outside| Place { outside, end: None })).collect()
}

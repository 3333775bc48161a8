//! Elements past the end: where they come from, what they are, and what takes them in.

use crate::analysis::facts::Facts;
use crate::analysis::inequalities::{Inequalities, Outside};
use crate::analysis::past_end::Pad;
use tilec_ir::entities::Expr;
use tilec_ir::ops::ReduceOp;
use tilec_ir::typing::{ResolvedView, ViewDim};
use tilec_ir::values::begins_at_value;

/// Where elements past the end come from.
#[derive(Copy, Clone, PartialEq)]
pub(super) struct Past {
    /// The window.
    pub(super) window: Expr,
    /// The dimension of the tensor.
    pub(super) dim: usize,
    /// How many elements the window has along it.
    pub(super) extent: u64,
    /// What it may reach past; `None`: elements in front of 0.
    pub(super) end: Option<Expr>,
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

/// Elements of a window that are outside.
pub(super) struct Place {
    pub(super) outside: Outside,
    /// What they are after; `None`: they are in front of 0.
    pub(super) end: Option<Expr>,
}

/// Where a window of a tensor may have elements outside along dimension `dim`.
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
    // What memory says of where a window begins is the author's word for where it lies.
    let given = starts.iter().any(|&e| begins_at_value(k, e));
    if extent == 1 || given || tensor.repeats.contains(&dim) || tensor.scratch.is_some() {
        return Vec::new();
    }
    let begins_whole = starts.iter().all(|&e| facts.is_multiple(k, e, extent));
    let behind = |limit: Expr| {
        // All of the tile is in front of such a limit, or nothing.
        let whole = begins_whole && facts.is_multiple(k, limit, extent);
        let outside = known.behind(starts, extent, limit).filter(|of| !whole && !known.is_never(of, &[]))?;
        Some(Place { outside, end: Some(limit) })
    };
    let behind = [*end, Some(tensor.shape[dim])].into_iter().flatten().find_map(behind);
    let in_front = known.in_front(starts, extent).filter(|of| !begins_whole && !known.is_never(of, &[]));
    behind.into_iter().chain(in_front.map(|outside| Place { outside, end: None })).collect()
}

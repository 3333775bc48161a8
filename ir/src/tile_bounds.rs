//! Bounds of windows of tiles in shared memory and registers: accesses to these are not checked at run time.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::Value;
use crate::index::Interval;
use crate::kernel::{Kernel, ValueDef};

/// A window along one dimension of a tile, in elements.
#[derive(Copy, Clone, Debug)]
pub struct Reach {
    /// The least and the greatest start.
    pub start: Interval,
    /// Elements of the window.
    pub extent: u64,
    /// Where the window ends at the latest, if it has an end of its own.
    pub end: Option<i128>,
}

impl Reach {
    /// E0704, if the window may have an element in front of dimension `d` of `tile`, or past its `own` elements.
    pub fn error(self, k: &Kernel, (tile, d): (Value, usize), own: i128, at: Span) -> Option<Diagnostic> {
        let Interval { lo: first, hi: last } = self.start;
        let extent = i128::from(self.extent);
        let past = last + extent;
        let end = self.end.map_or(past, |end| end.min(past));
        if first >= 0 && end <= own {
            return None;
        }
        let leaves = if first == last && end == past { "leaves" } else { "may leave" };
        let (from, to) = if first < 0 { (first, first + extent) } else { (last, end) };
        let name = &k.values[tile].name;
        let message = format!("a window from {from} to {to} {leaves} `{name}`, whose dimension {d} has extent {own}");
        let memory = if let ValueDef::Var(_) = k.values[tile].def { "registers have" } else { "shared memory has" };
        let error = Diagnostic::error(codes::OUT_OF_BOUNDS, at, message);
        Some(error.with_note(format!("{memory} no bounds checks: the window must be inside")))
    }
}
